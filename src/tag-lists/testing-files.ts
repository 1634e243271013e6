import { crc32, deflateRawSync } from "node:zlib";
import type { TagFile, TagListFormat, Wanted } from "./format.ts";

export interface ZipEntry {
  readonly name: string;
  readonly content: Buffer | string;
  /** Fields of the entry that lie. */
  readonly declared?: { readonly size?: number; readonly flags?: number; readonly method?: number; readonly crc?: number };
}

/** Writes a zip file, for tests; entries may lie. */
export function zip(entries: readonly ZipEntry[]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const { name, content, declared = {} } of entries) {
    const plain = Buffer.from(content);
    const packed = deflateRawSync(plain);
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt16LE(declared.flags ?? 0, 2);
    fields.writeUInt16LE(declared.method ?? 8, 4);
    fields.writeUInt32LE(declared.crc ?? crc32(plain), 10);
    fields.writeUInt32LE(packed.length, 14);
    fields.writeUInt32LE(declared.size ?? plain.length, 18);
    fields.writeUInt16LE(Buffer.byteLength(name), 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04"), fields, Buffer.from(name), packed]);
    const behind = Buffer.alloc(14);
    behind.writeUInt32LE(at, 10);
    directory.push(Buffer.from("PK\x01\x02\x14\x00"), fields, behind, Buffer.from(name));
    parts.push(local);
    at += local.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(listed.length, 8);
  end.writeUInt32LE(at, 12);
  return Buffer.concat([...parts, listed, Buffer.from("PK\x05\x06"), end]);
}

const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** Writes an XLSX file with shared texts, for tests. */
export function xlsx(sheets: Readonly<Record<string, readonly (readonly string[])[]>>): Buffer {
  const texts: string[] = [];
  const cell = (text: string, row: number, column: number): string => {
    if (text === "") return "";
    texts.push(`<si><t>${escaped(text)}</t></si>`);
    return `<c r="${String.fromCharCode(65 + column)}${row + 1}" t="s"><v>${texts.length - 1}</v></c>`;
  };
  const names = Object.keys(sheets);
  const rows = Object.values(sheets).map((sheet) =>
    sheet.map((cells, row) => `<row r="${row + 1}">${cells.map((text, column) => cell(text, row, column)).join("")}</row>`).join(""),
  );
  const MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
  const REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
  return zip([
    {
      name: "xl/workbook.xml",
      content: `<?xml version="1.0"?><workbook xmlns="${MAIN}" xmlns:r="${REL}"><sheets>${names
        .map((name, i) => `<sheet name="${escaped(name)}" sheetId="${i + 1}" r:id="rId${i + 1}"/>`)
        .join("")}</sheets></workbook>`,
    },
    {
      name: "xl/_rels/workbook.xml.rels",
      content: `<Relationships>${names
        .map((_, i) => `<Relationship Id="rId${i + 1}" Type="${REL}/worksheet" Target="worksheets/sheet${i + 1}.xml"/>`)
        .join("")}</Relationships>`,
    },
    ...rows.map((content, i) => ({
      name: `xl/worksheets/sheet${i + 1}.xml`,
      content: `<worksheet xmlns="${MAIN}"><sheetData>${content}</sheetData></worksheet>`,
    })),
    { name: "xl/sharedStrings.xml", content: `<sst xmlns="${MAIN}">${texts.join("")}</sst>` },
  ]);
}

/** The entries of a list, each as one line: `7 name = address type (comment)`, `7 name: problem`. */
export async function shownEntries(format: TagListFormat, file: TagFile, wanted: Wanted): Promise<readonly string[] | undefined> {
  const entries = await format.read(file, wanted);
  if (!entries) return undefined;
  const shown: string[] = [];
  for await (const entry of entries) {
    if ("refusal" in entry) shown.push(`${entry.place === undefined ? "" : `${entry.place} `}refused: ${entry.refusal}`);
    else if ("note" in entry) shown.push(`note: ${entry.note}`);
    else if ("problem" in entry) shown.push(`${entry.place} ${entry.name}: ${entry.problem}`);
    else {
      const { name, address, type, comment } = entry.tag;
      shown.push(`${entry.place} ${name} = ${address}${type === undefined ? "" : ` ${type}`}${comment ? ` (${comment})` : ""}`);
    }
  }
  return shown;
}
