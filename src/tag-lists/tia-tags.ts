import type { Cells } from "../configuration/variable-file.ts";
import { MAX_ROWS } from "../configuration/variable-file.ts";
import type { TagEntry, TagListFormat, Wanted } from "./format.ts";
import { readXlsx, type Sheet } from "./xlsx.ts";
import { isZip } from "./zip.ts";

const COLUMNS = ["name", "data type", "logical address"] as const;

/** The PLC tags of a TIA Portal project as it exports them (XLSX): addresses for s7, symbols for s7plus. */
export const tiaTags: TagListFormat = {
  program: "TIA Portal",
  what: "PLC tags (XLSX)",
  read: ({ bytes }, wanted) => (isZip(bytes) ? entries(bytes, wanted) : undefined),
};

async function* entries(bytes: Uint8Array, { type }: Wanted): AsyncGenerator<TagEntry> {
  const sheets = await readXlsx(bytes, { maxRows: MAX_ROWS + 1 });
  if ("fault" in sheets) {
    yield { refusal: sheets.fault };
    return;
  }
  const found = sheets.map(tableOf).filter((one) => one !== undefined);
  if (found.length === 0) {
    yield {
      refusal: "has no sheet with the columns Name, Data Type and Logical Address: export the PLC tags of TIA Portal, sheet PLC Tags",
    };
    return;
  }
  if (type !== "s7" && type !== "s7plus") {
    yield { refusal: `holds tags of a SIMATIC S7, which data sources of the types s7 and s7plus read, not ${type}` };
    return;
  }
  for (const { sheet, columns } of found) {
    for (const { row, cells } of sheet.rows.slice(1)) {
      const cell = (column: string): string => (cells[columns.indexOf(column)] ?? "").trim();
      const place = `${sheet.name}, row ${row}`;
      if (cell("name") === "") continue;
      const tag = tagOf(cell, type);
      yield typeof tag === "string" ? { place, name: cell("name"), problem: tag } : { place, tag };
    }
    if (sheet.isCut) yield { place: sheet.name, problem: `has more than ${MAX_ROWS} rows; those after the first ${MAX_ROWS} are not read` };
  }
}

/** The first row that is not empty names the columns. */
function tableOf(sheet: Sheet): { readonly sheet: Sheet; readonly columns: readonly string[] } | undefined {
  const columns = sheet.rows[0]?.cells.map((name) => name.trim().toLowerCase()) ?? [];
  return COLUMNS.every((column) => columns.includes(column)) ? { sheet, columns } : undefined;
}

function tagOf(cell: (column: string) => string, type: "s7" | "s7plus"): Cells | string {
  const name = cell("name");
  const comment = cell("comment");
  const common = { name, ...(comment !== "" && { comment }) };
  if (type === "s7plus") {
    if (/^false$/i.test(cell("hmi accessible"))) return "it is not accessible from HMI/OPC UA: switch that on in the tag table";
    return { ...common, address: `"${name.replaceAll('"', '""')}"` };
  }
  const address = cell("logical address").replace(/^%/, "");
  if (address === "") return "it has no logical address";
  const word = typeOf(cell("data type"));
  return word === undefined
    ? `the type ${cell("data type")} is a structure: add its members with collector variables add`
    : { ...common, address, type: word };
}

/** `Int`, `Array[0..7] of Int`; undefined: a PLC data type. */
function typeOf(declared: string): string | undefined {
  const array = /^Array\s*\[\s*(-?\d{1,10})\s*\.\.\s*(-?\d{1,10})\s*\]\s*of\s+(\w+)$/i.exec(declared);
  if (array) return `${array[3]?.toUpperCase()}[${Number(array[2]) - Number(array[1]) + 1}]`;
  return /^\w+$/.test(declared) ? declared.toUpperCase() : undefined;
}
