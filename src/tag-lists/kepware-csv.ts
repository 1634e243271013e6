import type { Cells } from "../configuration/variable-file.ts";
import { csvTable, type Row } from "./csv-table.ts";
import type { TagEntry, TagListFormat } from "./format.ts";
import { lineThrough } from "./scaling.ts";

/** Types of Kepware by their names here; Word Array and the like are arrays, whose length is in the address. */
const KEPWARE_TYPES: Readonly<Record<string, string>> = {
  boolean: "bool",
  char: "int8",
  byte: "uint8",
  short: "int16",
  word: "uint16",
  long: "int32",
  dword: "uint32",
  llong: "int64",
  qword: "uint64",
  float: "float32",
  double: "float64",
  bcd: "BCD",
  lbcd: "LBCD",
};

/** The tag list of one device, as KEPServerEX and ThingWorx Kepware Server export it. */
export const kepwareCsv: TagListFormat = {
  program: "Kepware",
  what: "tag list (CSV)",
  read: (file) =>
    csvTable(file, ["tag name", "address", "data type", "respect data type"], (row, line): readonly TagEntry[] => {
      const tag = kepwareTag(row);
      return [typeof tag === "string" ? { place: line, name: row("tag name"), problem: tag } : { place: line, tag }];
    }),
};

function kepwareTag(cell: Row): Cells | string {
  if (/^WO$/i.test(cell("client access"))) return "is write-only";
  const type = typeOf(cell("data type"));
  if ("problem" in type) return type.problem;
  const scaling = scalingOf(cell);
  if (typeof scaling === "string") return scaling;
  return {
    name: cell("tag name"),
    address: cell("address"),
    ...type,
    unit: cell("eng units") || cell("eng. units"),
    comment: cell("description"),
    ...scaling,
  };
}

function typeOf(text: string): { readonly type?: string } | { readonly problem: string } {
  const [type, isArray] = [text.replace(/\s+array$/i, ""), /\s+array$/i.test(text)];
  const known = KEPWARE_TYPES[type.toLowerCase()];
  // The address says how long a text or an array is: the driver knows.
  if (isArray || /^(string|default|)$/i.test(type)) return {};
  return known === undefined
    ? { problem: `the data type ${type} has no counterpart here; give the variable a type of its own` }
    : { type: known };
}

function scalingOf(cell: Row): Pick<Cells, "factor" | "offset"> | string {
  const mode = cell("scaling").toLowerCase();
  if (mode === "" || mode === "none") return {};
  if (mode !== "linear") return `the scaling ${cell("scaling")} has no counterpart here; only Linear has`;
  const [rawLow, rawHigh, low, high] = ["raw low", "raw high", "scaled low", "scaled high"].map((column) =>
    Number(cell(column).replace(",", ".")),
  );
  if (rawLow === undefined || rawHigh === undefined || low === undefined || high === undefined) return {};
  const line = lineThrough({ rawLow, rawHigh, low, high, isNegated: /^(1|true|yes)$/i.test(cell("negate value")) });
  return line ?? "its scaling is not a line: Raw Low equals Raw High, or Scaled Low equals Scaled High";
}
