import type { DataType } from "../../src/model/value.ts";
import { type CodingName, parseCoded } from "../lib/coded-numbers.ts";
import { typeMismatch } from "../lib/text.ts";

/** Words for numbers that registers code in other ways; those of IEC 61131-3 are every driver's. */
const WORDS: ReadonlyMap<string, CodingName> = new Map([
  ["BCD", "WORD_BCD"],
  ["WORD_BCD", "WORD_BCD"],
  ["UINT_BCD", "WORD_BCD"],
  ["LBCD", "DWORD_BCD"],
  ["DWORD_BCD", "DWORD_BCD"],
  ["UDINT_BCD", "DWORD_BCD"],
  ["LWORD_BCD", "LWORD_BCD"],
  ["ULINT_BCD", "LWORD_BCD"],
  ["MOD10(1)", "MOD10(1)"],
  ["MOD10(2)", "MOD10(2)"],
  ["MOD10(3)", "MOD10(3)"],
  ["MOD10(4)", "MOD10(4)"],
  ["INT48", "INT48"],
  ["UINT48", "UINT48"],
  ["FLOAT16", "FLOAT16"],
  ["HALF", "FLOAT16"],
]);

/**
 * `BCD`, `LBCD[4]`, `MOD10(4)`, `INT48`, `FLOAT16`. Undefined: no type, or one that every driver takes. Throws FaultError
 * `type_mismatch`: MOD10 without its registers. Pure.
 */
export function parseType(text: string): DataType | undefined {
  const type = parseCoded(text, WORDS);
  if (!type && /^MOD10\b/i.test(text)) throw typeMismatch(text, "expected the number of its registers, 1 to 4, such as MOD10(4)");
  return type;
}
