import { type Cells, parseNumber } from "../configuration/variable-file.ts";
import type { TagEntry, TagListFormat, Wanted } from "./format.ts";
import { rowsOf, type SheetTable, sheetTables } from "./sheet-table.ts";

const COLUMNS = ["group", "name", "address", "attribute", "type"] as const;

/** Types of Neuron by their names here; undefined: the address says how long it is. */
const TYPES: ReadonlyMap<string, string | undefined> = new Map([
  ...(["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"] as const).map((word) => [word, word] as const),
  ["float", "float32"],
  ["double", "float64"],
  ["bit", "bool"],
  ["bool", "bool"],
  ["word", "uint16"],
  ["dword", "uint32"],
  ["lword", "uint64"],
  ["string", undefined],
]);
/** Devices that say the type of a value themselves. */
const SAYS_TYPES: ReadonlySet<string> = new Set(["vendor_a", "opcua", "s7plus"]);

const WORD_ORDER =
  "an address without # has the order of words of the device in Neuron, which the file does not say: check a value of 32 bits with --try, and set order on the data source where it is wrong";
const FIRST_IS_1 = "the addresses are read with Neuron's start address 1, where 400001 is the first register; the file does not say it";

/** The tags of one device of EMQX Neuron as it exports them (XLSX), by the documents of emqx/neuronex-docs: group and name, address, type. */
export const neuronTags: TagListFormat = {
  program: "EMQX Neuron",
  what: "tags (XLSX)",
  async read(file, wanted) {
    const tables = await sheetTables(file, COLUMNS);
    return tables && ("tables" in tables ? entries(tables.tables, wanted) : tables);
  },
};

function* entries(tables: readonly SheetTable[], wanted: Wanted): Generator<TagEntry> {
  for (const table of tables)
    yield* rowsOf(table, (cell, place) => {
      if (cell("name") === "" && cell("address") === "") return [];
      const name = cell("group") === "" ? cell("name") : `${cell("group")}.${cell("name")}`;
      const cells = cellsOf(cell, wanted);
      if (typeof cells === "string") return [{ place, name, problem: cells }];
      const { from, ...tag } = cells;
      return [{ place, tag: { name, ...tag }, ...(from !== undefined && { from }) }, ...notesOf(cell, wanted)];
    });
}

function notesOf(cell: (column: string) => string, { type }: Wanted): readonly TagEntry[] {
  if (type !== "modbus_tcp") return [];
  const isWide = /^(u?int(32|64)|float|double|dword|lword)$/i.test(cell("type")) && !cell("address").includes("#");
  return [{ note: FIRST_IS_1 }, ...(isWide ? [{ note: WORD_ORDER }] : [])];
}

function cellsOf(cell: (column: string) => string, wanted: Wanted): (Omit<Cells, "name"> & { readonly from?: string }) | string {
  const attribute = cell("attribute").toLowerCase();
  if (/static/.test(attribute)) return "is a static tag, whose value is in Neuron and not in the device";
  if (attribute !== "" && !/read|subscribe/.test(attribute)) return "is write-only";
  const word = cell("type").toLowerCase();
  if (!TYPES.has(word)) return `the type ${JSON.stringify(cell("type"))} has no counterpart here; give the variable a type of its own`;
  const line = scalingOf(cell);
  if (typeof line === "string") return line;
  const type = SAYS_TYPES.has(wanted.type) ? undefined : TYPES.get(word);
  const address = wanted.type === "modbus_tcp" ? clearAddress(cell("address"), word) : cell("address");
  return {
    address,
    ...(address !== cell("address") && { from: cell("address") }),
    ...(type !== undefined && { type }),
    ...(cell("description") !== "" && { comment: cell("description") }),
    ...line,
  };
}

/** `1!400010.4` is bit 4 of a tag of the type BIT, and 4 characters of one of the type STRING: the type says which. */
function clearAddress(address: string, word: string): string {
  const [, unit, area, number, extra] = /^(\d{1,3})!([34])(\d{4,5})\.(\d{1,3})$/.exec(address) ?? [];
  if (extra === undefined) return address;
  if (word === "string") return `${address}L`;
  return word === "bit" ? `${Number(unit)}/${area === "3" ? "input" : "holding"}:${Number(number) - 1}.${Number(extra)}` : address;
}

/** `device value * decimal`, `device value + bias`. */
function scalingOf(cell: (column: string) => string): Pick<Cells, "factor" | "offset"> | string {
  const [decimal, bias, precision] = ["decimal", "bias", "precision"].map((column) =>
    cell(column) === "" ? 0 : parseNumber(cell(column)),
  );
  if (decimal === undefined || bias === undefined || precision === undefined) return "its decimal, bias or precision is not a number";
  if (!Number.isInteger(precision) || precision < 0 || precision > 17)
    return "its precision is not a number of digits; older documents of Neuron have decimal and precision the other way round";
  if (decimal !== 0 && bias !== 0) return "it has a decimal and a bias, and which of them comes first is not documented";
  if (decimal !== 0 && decimal !== 1) return { factor: String(decimal) };
  return bias === 0 ? {} : { offset: String(bias) };
}
