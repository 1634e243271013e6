import { csvRows } from "../configuration/csv.ts";
import type { TagEntry, TagListFormat, Wanted } from "./format.ts";

/**
 * A project of CX-Programmer as text (CXT): the symbol tables of the controller and of its programs. Their form comes from three programs in
 * public repositories that read such files (unverified with CX-Programmer, which documents it nowhere).
 */
export const cxProgrammer: TagListFormat = {
  program: "CX-Programmer",
  what: "project (CXT)",
  read: ({ text }, wanted) => (LOOKS_SO.test(text) ? entries(text, wanted) : undefined),
};

const LOOKS_SO = /^[ \t]*VariableList:=[ \t]*\r?\n[ \t]*BEGIN_LIST_\$#\[\d+\]/m;
const LIST = /^BEGIN_LIST_\$#\[(\d+)\]$/;
/** Begins a text of any lines, and ends it where it has the same number. */
const RAW = /\$\?St\$Bk\?_#\[\d+\]/;
/** Fields of a symbol: name, address, type; the comment is the seventh. */
const [TYPE, COMMENT] = [2, 6];
const MAX_ROWS_OF_SYMBOL = 2;

const COUNTED =
  "timers and counters are read as BCD, which is the default of a CJ and CS: give them the type UINT where the project counts in binary";

function* entries(text: string, { type }: Wanted): Generator<TagEntry> {
  if (type !== "fins") {
    yield { refusal: `holds symbols of an Omron controller, which data sources of the type fins read, not ${type}` };
    return;
  }
  let program = "";
  let isLocal = false;
  let isProgramOpen = false;
  /** The mark of the text, or the list, in which the line is. */
  let raw: string | undefined;
  let list: { readonly number: string; readonly isSymbols: boolean; readonly line: number } | undefined;
  let isVariables = false;
  let n = 0;
  for (const whole of linesOf(text)) {
    n++;
    const line = whole.trim();
    if (raw !== undefined) {
      if (line.includes(raw)) raw = undefined;
    } else if (list) {
      if (line === `END_LIST_$#[${list.number}];`) list = undefined;
      else if (list.isSymbols && line !== "") yield* symbolEntries(line, n, isLocal ? program : "");
    } else if (RAW.test(line)) {
      const [mark = ""] = RAW.exec(line) ?? [];
      raw = line.indexOf(mark) === line.lastIndexOf(mark) ? mark : undefined;
    } else if (LIST.test(line)) list = { number: LIST.exec(line)?.[1] ?? "", isSymbols: isVariables, line: n };
    else if (/^Program\[\d+\]:=$/.test(line)) isProgramOpen = true;
    else if (/^(Global|Local)Variables:=$/.test(line)) isLocal = line.startsWith("Local");
    else if (isProgramOpen && /^Name:=".*";$/.test(line)) {
      program = line.slice('Name:="'.length, -'";'.length);
      isProgramOpen = false;
    }
    isVariables = line === "VariableList:=";
  }
  if (raw !== undefined || list)
    yield { place: list?.line ?? n, refusal: "a list or text in it has no end: the rest of the file is missing" };
}

function* linesOf(text: string): Generator<string> {
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf("\n", from);
    yield text.slice(from, end < 0 ? text.length : end);
    from = end < 0 ? text.length : end + 1;
  }
}

/** `GO,W10.00,BOOL,,,,"start, go";` */
function* symbolEntries(line: string, n: number, program: string): Generator<TagEntry> {
  const { value: row } = csvRows(line.replace(/;$/, ""), ",", MAX_ROWS_OF_SYMBOL).next();
  if (row === undefined || !("fields" in row)) return;
  const { fields, problem } = row;
  const [symbol = "", address = ""] = fields;
  // Symbols of addresses that have a comment only.
  const own = symbol === "" ? address : symbol;
  const name = program === "" ? own : `${program}.${own}`;
  const say = (message: string): TagEntry => ({ place: n, name, problem: message });
  const declared = (fields[TYPE] ?? "").toUpperCase();
  if (problem !== undefined) yield { place: n, problem };
  else if (fields.length <= TYPE) yield say(`has ${fields.length} fields; a symbol has a name, an address and a type`);
  else if (declared === "NUMBER") yield say("is a constant, which has no place in the memory");
  else if (address === "") yield say("has no address: CX-Programmer has not given it one yet");
  else {
    const isCounted = declared === "TIMER" || declared === "COUNTER";
    const comment = fields[COMMENT] ?? "";
    yield { place: n, tag: { name, address, ...(!isCounted && { type: declared }), ...(comment !== "" && { comment }) } };
    if (isCounted) yield { note: COUNTED };
  }
}
