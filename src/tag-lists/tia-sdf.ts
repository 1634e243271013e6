import { csvRows } from "../configuration/csv.ts";
import { MAX_ROWS } from "../configuration/variable-file.ts";
import type { TagEntry, TagListFormat, Wanted } from "./format.ts";
import { isTiaType, notForTia, tiaCells } from "./tia-tag.ts";

/** Rows that are looked at to know the form. */
const LOOKED_AT = 20;
const FIRST_TEXT = 64 * 1024;

/** Fields of a row: name, address, type, comment in STEP 7 V5; in TIA Portal five more around the comment. */
const COMMENT_OF: Readonly<Record<number, number>> = { 4: 3, 9: 6 };
const ADDRESS = /^%?(?:[IQMEATCZ]|D[BI]\d+\.)/i;
/** Blocks and tables have symbols too. */
const BLOCK = /^(?:OB|FB|FC|DB|SFB|SFC|UDT|VAT|SDB)\d+$/i;
const TYPE = /^[A-Za-z_"]/;

/**
 * A symbol table as STEP 7 and TIA Portal export it (SDF): quoted fields without names of columns. The form comes from samples in public
 * repositories (unverified with the programs): its fields for HMI access are not taken.
 */
export const tiaSdf: TagListFormat = {
  program: "TIA Portal",
  what: "symbol table (SDF)",
  read: ({ text }, wanted) => (looksSo(text) ? entries(text, wanted) : undefined),
};

const placeOf = (address: string | undefined): string => (address ?? "").replace(/\s+/g, "");

function looksSo(text: string): boolean {
  const start = text.slice(0, FIRST_TEXT);
  if (!start.trimStart().startsWith('"')) return false;
  // The first symbol decides: remarks are empty fields with a text in the fourth.
  for (const { fields, problem } of csvRows(start, ",", LOOKED_AT)) {
    const [name, address] = [fields[0] ?? "", placeOf(fields[1])];
    if (problem !== undefined || (name === "" && address === "")) continue;
    if (COMMENT_OF[fields.length] === undefined) return false;
    return BLOCK.test(address) || (ADDRESS.test(address) && /\d/.test(address) && TYPE.test(fields[2] ?? ""));
  }
  return false;
}

function* entries(text: string, { type }: Wanted): Generator<TagEntry> {
  if (!isTiaType(type)) {
    yield notForTia(type);
    return;
  }
  const rows = csvRows(text, ",", 2 * MAX_ROWS);
  let row = rows.next();
  for (; !row.done; row = rows.next()) {
    const { line, fields, problem } = row.value;
    const [name = "", , declared = ""] = fields;
    const address = placeOf(fields[1]);
    const comment = fields[COMMENT_OF[fields.length] ?? -1];
    // A remark in the fourth field of an empty row.
    if (problem === undefined && name === "" && address === "") continue;
    if (problem !== undefined) yield { place: line, problem };
    else if (comment === undefined) yield { place: line, name, problem: `has ${fields.length} fields; a symbol has 4 or 9` };
    else if (BLOCK.test(address)) yield { place: line, name, problem: "is the symbol of a block or table, and no value" };
    else {
      const cells = tiaCells({ name, type: declared, address, comment, isAccessible: true }, type);
      yield typeof cells === "string" ? { place: line, name, problem: cells } : { place: line, tag: cells };
    }
  }
  const { more, open } = row.value;
  if (open && (open.problem !== undefined || COMMENT_OF[open.fields.length] === undefined))
    yield { place: open.line, refusal: "the last line has no line end and is incomplete: the rest seems to be missing" };
  if (more) yield { place: 1, problem: `has more than ${2 * MAX_ROWS} rows; those after them are not read` };
}
