import type { Cells } from "../configuration/variable-file.ts";
import { csvTable, type Row } from "./csv-table.ts";
import type { TagEntry, TagListFormat } from "./format.ts";

/** Types of one value, or of a list of such. */
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

/** The tag list of a controller or a program, as Studio 5000 (RSLogix 5000) exports it. */
export const studio5000Csv: TagListFormat = {
  program: "Studio 5000",
  what: "tag list (CSV)",
  read: (file) =>
    csvTable(file, ["type", "scope", "name", "datatype", "specifier"], (row, line): readonly TagEntry[] => {
      const kind = row("type").toUpperCase();
      if (kind !== "TAG" && kind !== "ALIAS") return [];
      const tag = logixTag(kind, row);
      return [typeof tag === "string" ? { place: line, name: nameOf(row), problem: tag } : { place: line, tag }];
    }),
};

const nameOf = (cell: Row): string => (cell("scope") === "" ? cell("name") : `${cell("scope")}.${cell("name")}`);

function logixTag(kind: "TAG" | "ALIAS", cell: Row): Cells | string {
  const [scope, tag, type] = [cell("scope"), cell("name"), cell("datatype").toUpperCase()];
  if (/ExternalAccess\s*:=\s*None/i.test(cell("attributes"))) return "External Access in the controller: None. It cannot be read";
  const plain = type.replace(/\[.*$/, "");
  if (kind === "TAG" && plain !== "" && !LOGIX_TYPES.has(plain))
    return `${cell("datatype")} is a structure; collector browse lists its members, which are variables`;
  // The controller says the type, and how long an array is.
  return { name: nameOf(cell), address: scope === "" ? tag : `Program:${scope}.${tag}`, comment: logixText(cell("description")) };
}

/** Signs that the export writes as `$N`, `$Q`, `$D55C`. */
const logixText = (text: string): string =>
  text.replace(/\$(\$|[NRTLP]|Q|'|[0-9A-F]{4}|[0-9A-F]{2})/gi, (_all, code: string) => {
    if (code === "$" || code === "'") return code;
    if (/^[0-9A-F]+$/i.test(code)) return String.fromCharCode(Number.parseInt(code, 16));
    return code.toUpperCase() === "Q" ? '"' : " ";
  });
