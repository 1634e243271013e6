import { cellText } from "../base/plain-text.ts";
import { type CsvRow, csvRows, decodeText, delimiterOf } from "./csv.ts";
import { type Cells, type CheckVariable, collect, MAX_ROWS, type ParsedVariables, variableOf } from "./variable-file.ts";

/** A tag as another program lists it, in the words of our own columns; or why it cannot be one of our variables; undefined: it is no tag. */
type Tag = Cells | string | undefined;

interface TagList {
  /** For people. */
  readonly program: string;
  /** Columns that only this program's lists have all of. */
  readonly columns: readonly string[];
  readonly tagOf: (cell: (column: string) => string) => Tag;
}

/** Rows before the one that names the columns: remarks, and the version of the format. */
const MAX_HEAD = 50;

/** Of KEPServerEX; Word Array and the like are arrays, whose length is in the address. */
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
};

/** What Studio 5000 calls them: each is one value, or a list of such. */
const LOGIX_TYPES = new Set([
  "BOOL",
  "SINT",
  "INT",
  "DINT",
  "LINT",
  "USINT",
  "UINT",
  "UDINT",
  "ULINT",
  "REAL",
  "LREAL",
  "STRING",
  "BYTE",
  "WORD",
  "DWORD",
  "LWORD",
]);

const LISTS: readonly TagList[] = [
  { program: "KEPServerEX", columns: ["tag name", "address", "data type", "respect data type"], tagOf: kepwareTag },
  { program: "Studio 5000", columns: ["type", "scope", "name", "datatype", "specifier"], tagOf: logixTag },
];

/**
 * The variables of a tag list that another engineering program has exported, known by its columns: KEPServerEX, and Studio 5000 (RSLogix 5000).
 * A tag that cannot be read as one variable is a problem with its line, and the rest is taken. Undefined: the text is no such list. Pure.
 */
export function parseTagList(bytes: Uint8Array, check?: CheckVariable): (ParsedVariables & { readonly program: string }) | undefined {
  const text = decodeText(bytes);
  const head = headOf(text);
  if (!head) return undefined;
  const { list, delimiter, columns, at } = head;
  const collected = collect(check);
  const rows = csvRows(text, delimiter, at + MAX_ROWS + 1);
  let row = rows.next();
  for (let n = 0; !row.done; row = rows.next(), n++) {
    const { line, fields, problem } = row.value;
    if (n <= at) continue;
    if (problem !== undefined) {
      collected.problem({ line, message: problem });
      continue;
    }
    const tag = list.tagOf((column) => cellText(fields[columns.indexOf(column)] ?? ""));
    if (typeof tag === "string") collected.problem({ line, message: tag });
    else if (tag) collected.variable(line, variableOf(tag));
  }
  if (row.value.more) collected.problem({ message: `has more than ${MAX_ROWS} tags; those after the first ${MAX_ROWS} are not read` });
  return { ...collected.result(), program: list.program };
}

function headOf(text: string) {
  const delimiter = delimiterOf(
    text
      .split(/\r?\n/)
      .slice(0, MAX_HEAD)
      .find((line) => line.split(/[;,\t]/).length > 3) ?? "",
  );
  let at = 0;
  for (const { fields } of csvRows(text, delimiter, MAX_HEAD) as Iterable<CsvRow>) {
    const columns = fields.map((field) => field.toLowerCase());
    const list = LISTS.find((one) => one.columns.every((column) => columns.includes(column)));
    if (list) return { list, delimiter, columns, at };
    at++;
  }
  return undefined;
}

function kepwareTag(cell: (column: string) => string): Tag {
  const [type, array] = [cell("data type").replace(/\s+array$/i, ""), /\s+array$/i.test(cell("data type"))];
  const known = KEPWARE_TYPES[type.toLowerCase()];
  const name = cell("tag name");
  if (/^WO$/i.test(cell("client access"))) return `${name}: is write-only`;
  // A text's length is in the address, and an array's too: the driver knows.
  const leavesType = array || /^(string|default|)$/i.test(type);
  if (!known && !leavesType) return `${name}: the data type ${type} has no counterpart here; give the variable a type of its own`;
  const scaling = kepwareScaling(cell);
  if (typeof scaling === "string") return `${name}: ${scaling}`;
  return {
    name,
    address: cell("address"),
    ...(known !== undefined && !array && { type: known }),
    unit: cell("eng units") || cell("eng. units"),
    comment: cell("description"),
    ...scaling,
  };
}

/** A line through two points, as factor and offset. */
function kepwareScaling(cell: (column: string) => string): Pick<Cells, "factor" | "offset"> | string {
  const mode = cell("scaling").toLowerCase();
  if (mode === "" || mode === "none") return {};
  if (mode !== "linear") return `the scaling ${cell("scaling")} has no counterpart here; only Linear has`;
  const [rawLow, rawHigh, low, high] = ["raw low", "raw high", "scaled low", "scaled high"].map((column) =>
    Number(cell(column).replace(",", ".")),
  );
  if (rawLow === undefined || rawHigh === undefined || low === undefined || high === undefined) return {};
  const factor = (high - low) / (rawHigh - rawLow);
  if (!Number.isFinite(factor) || factor === 0)
    return "its scaling is not a line: Raw Low equals Raw High, or Scaled Low equals Scaled High";
  const sign = /^(1|true|yes)$/i.test(cell("negate value")) ? -1 : 1;
  return { factor: decimal(sign * factor), offset: decimal(sign * (low - rawLow * factor)) };
}

/** Without the last digits of a division: 0.1, and not 0.10000000000000002. */
const decimal = (value: number): string => String(Number(value.toPrecision(12)));

function logixTag(cell: (column: string) => string): Tag {
  const kind = cell("type").toUpperCase();
  if (kind !== "TAG" && kind !== "ALIAS") return undefined;
  const [scope, tag, type] = [cell("scope"), cell("name"), cell("datatype").toUpperCase()];
  const name = scope === "" ? tag : `${scope}.${tag}`;
  if (/ExternalAccess\s*:=\s*None/i.test(cell("attributes"))) return `${name}: External Access in the controller: None. It cannot be read`;
  const plain = type.replace(/\[.*$/, "");
  if (kind === "TAG" && plain !== "" && !LOGIX_TYPES.has(plain))
    return `${name}: ${cell("datatype")} is a structure; collector browse lists its members, which are variables`;
  // The controller says the type, and how long an array is.
  return { name, address: scope === "" ? tag : `Program:${scope}.${tag}`, comment: logixText(cell("description")) };
}

/** Signs that the export writes as `$N`, `$Q`, `$D55C`. */
const logixText = (text: string): string =>
  text.replace(/\$(\$|[NRTLP]|Q|'|[0-9A-F]{4}|[0-9A-F]{2})/gi, (_all, code: string) => {
    if (code === "$" || code === "'") return code;
    if (/^[0-9A-F]+$/i.test(code)) return String.fromCharCode(Number.parseInt(code, 16));
    return code.toUpperCase() === "Q" ? '"' : " ";
  });
