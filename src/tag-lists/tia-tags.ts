import type { Cells } from "../configuration/variable-file.ts";
import type { TagEntry, TagListFormat, Wanted } from "./format.ts";
import { rowsOf, type SheetTable, sheetTables } from "./sheet-table.ts";

const COLUMNS = ["name", "data type", "logical address"] as const;

/** The PLC tags of a TIA Portal project as it exports them (XLSX): addresses for s7, symbols for s7plus. */
export const tiaTags: TagListFormat = {
  program: "TIA Portal",
  what: "PLC tags (XLSX)",
  async read(file, wanted) {
    const tables = await sheetTables(file, COLUMNS);
    return tables && ("tables" in tables ? entries(tables.tables, wanted) : tables);
  },
};

function* entries(tables: readonly SheetTable[], { type }: Wanted): Generator<TagEntry> {
  if (type !== "s7" && type !== "s7plus") {
    yield { refusal: `holds tags of a SIMATIC S7, which data sources of the types s7 and s7plus read, not ${type}` };
    return;
  }
  for (const table of tables)
    yield* rowsOf(table, (cell, place) => {
      if (cell("name") === "") return [];
      const tag = tagOf(cell, type);
      return [typeof tag === "string" ? { place, name: cell("name"), problem: tag } : { place, tag }];
    });
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
