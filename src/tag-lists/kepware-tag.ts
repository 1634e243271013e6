import { type Cells, parseNumber } from "../configuration/variable-file.ts";
import type { Wanted } from "./format.ts";
import { lineThrough } from "./scaling.ts";

/** A tag of Kepware, from any of its files; texts as its lists have them. */
export interface KepwareTag {
  readonly name: string;
  readonly address: string;
  /** `Word`, `Word Array`, `Default`. */
  readonly type: string;
  readonly isWriteOnly: boolean;
  readonly scaling: KepwareScaling;
  readonly unit: string;
  readonly comment: string;
}

interface KepwareScaling {
  /** `None`, `Linear`, `Square Root`; empty: None. */
  readonly mode: string;
  /** Raw low, raw high, scaled low, scaled high; a decimal comma is one too. */
  readonly ends: readonly [string, string, string, string];
  readonly isNegated: boolean;
}

/** Types of Kepware by their names here; Word Array and the like are arrays, whose length is in the address. */
const TYPES: Readonly<Record<string, string | undefined>> = {
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

/** Devices that say the type of a value themselves. */
const SAYS_TYPES: ReadonlySet<string> = new Set(["vendor_a", "opcua", "s7plus"]);

/** The tag in the words of our columns, or why it cannot be read. Pure. */
export function kepwareCells({ name, address, type, isWriteOnly, scaling, unit, comment }: KepwareTag, wanted: Wanted): Cells | string {
  if (isWriteOnly) return "is write-only";
  const known = typeOf(type, wanted);
  if ("problem" in known) return known.problem;
  const line = scalingOf(scaling);
  if (typeof line === "string") return line;
  return { name, address, ...known, unit, comment, ...line };
}

function typeOf(text: string, wanted: Wanted): { readonly type?: string } | { readonly problem: string } {
  const [type, isArray] = [text.replace(/\s+array$/i, ""), /\s+array$/i.test(text)];
  // The address says how long a text or an array is: the driver knows.
  const isSaid = SAYS_TYPES.has(wanted.type) && !/bcd$/i.test(type);
  if (isArray || isSaid || /^(string|default|)$/i.test(type)) return {};
  const known = Object.hasOwn(TYPES, type.toLowerCase()) ? TYPES[type.toLowerCase()] : undefined;
  return known === undefined
    ? { problem: `the data type ${type} has no counterpart here; give the variable a type of its own` }
    : { type: known };
}

function scalingOf({ mode, ends, isNegated }: KepwareScaling): Pick<Cells, "factor" | "offset"> | string {
  if (/^(none|)$/i.test(mode)) return {};
  if (!/^linear$/i.test(mode)) return `the scaling ${mode} has no counterpart here; only Linear has`;
  const [rawLow, rawHigh, low, high] = ends.map(parseNumber);
  if (rawLow === undefined || rawHigh === undefined || low === undefined || high === undefined)
    return "one of its four ends of the scaling (Raw Low, Raw High, Scaled Low, Scaled High) is not a number";
  return (
    lineThrough({ rawLow, rawHigh, low, high, isNegated }) ??
    "its scaling is not a line: Raw Low equals Raw High, or Scaled Low equals Scaled High"
  );
}

/** True: the value takes several registers of Modbus, so that the order of words matters. Pure. */
export const isWide = (type: string): boolean => /^(long|dword|float|lbcd|llong|qword|double)( array)?$/i.test(type);

/** The remark for a list that lacks the setting. */
export const WORD_ORDER =
  "the list does not say the order of words, which is First Word Low in a device of Kepware by default: check a value of 32 bits with --try, and set order=CDAB on the data source where it is wrong";
