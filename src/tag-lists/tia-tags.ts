import type { TagEntry, TagListFormat, Wanted } from "./format.ts";
import { rowsOf, type SheetTable, sheetTables } from "./sheet-table.ts";
import { isTiaType, notForTia, tiaCells } from "./tia-tag.ts";

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
  if (!isTiaType(type)) {
    yield notForTia(type);
    return;
  }
  for (const table of tables)
    yield* rowsOf(table, (cell, place) => {
      const name = cell("name");
      if (name === "") return [];
      const [address, comment] = [cell("logical address"), cell("comment")];
      const isAccessible = !/^false$/i.test(cell("hmi accessible"));
      const tag = tiaCells({ name, type: cell("data type"), address, comment, isAccessible }, type);
      return [typeof tag === "string" ? { place, name, problem: tag } : { place, tag }];
    });
}
