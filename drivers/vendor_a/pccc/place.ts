import { FaultError } from "../../../src/model/fault.ts";
import { addressInvalid, quote } from "../../lib/text.ts";
import { type FileAddress, fileText } from "./address.ts";
import { FAMILY_WORDS, type FileFamily, type FileKind, isInputOrOutput, kindOf, whyLacking } from "./files.ts";

/** The place of an address in the files of a controller, and how it is asked for. */
export interface FilePlace {
  readonly family: FileFamily;
  readonly kind: FileKind;
  readonly file: number;
  /** The slot of inputs or outputs, whose words are counted within it. Absent: elements are counted within the file. */
  readonly slot?: number;
  /** First element or word, and how many of them. */
  readonly start: number;
  readonly count: number;
  /** In the bytes of the first: where the value begins. */
  readonly offset: number;
  /** In the word that is there. */
  readonly bit?: number;
}

const WORD_BITS = 16;
const WORD_BYTES = 2;

/** Pure. Throws FaultError: `address_invalid` for digits that are not octal on a PLC-5, `not_found` where the family has no such files. */
export function placeOf(address: FileAddress, family: FileFamily): FilePlace {
  const { letter, file, member, count = 1 } = address;
  const kind = kindOf(letter);
  const lacking = whyLacking(family, letter);
  if (lacking !== undefined)
    throw new FaultError("not_found", `${quote(fileText(address))}: ${FAMILY_WORDS[family]} has no ${letter} files for this: ${lacking}`);
  const known = { family, kind, file, count };
  if (isInputOrOutput(letter)) return family === "plc5" ? octalPlace(address, known) : slotPlace(address, known);
  const bit = member ? member.bit : numberOf(address.bit);
  const offset = (member?.word ?? 0) * WORD_BYTES;
  return { ...known, start: Number(address.element), offset, ...(bit !== undefined && { bit }) };
}

type Known = Pick<FilePlace, "family" | "kind" | "file" | "count">;

/** `I:1.0/7`; bits above 15 are those of the slot's next words. */
function slotPlace({ element, word = "0", bit }: FileAddress, known: Known): FilePlace {
  const bits = numberOf(bit);
  const start = Number(word) + Math.floor((bits ?? 0) / WORD_BITS);
  return { ...known, slot: Number(element), start, offset: 0, ...(bits !== undefined && { bit: bits % WORD_BITS }) };
}

/** `I:012/17`: word 10, bit 15. */
function octalPlace(address: FileAddress, known: Known): FilePlace {
  const { element, word, bit } = address;
  const text = fileText(address);
  if (word !== undefined) throw addressInvalid(text, "words of a PLC-5's inputs and outputs have no slot; write for example I:012/17");
  if (![element, bit ?? "0"].every((digits) => /^[0-7]+$/.test(digits)))
    throw addressInvalid(text, "words and bits of a PLC-5's inputs and outputs are numbered in octal, without 8 and 9");
  const at = bit === undefined ? undefined : Number.parseInt(bit, 8);
  if (at !== undefined && at >= WORD_BITS) throw addressInvalid(text, `the bit is ${bit}, a word has 0 to 17, in octal`);
  return { ...known, start: Number.parseInt(element, 8), offset: 0, ...(at !== undefined && { bit: at }) };
}

const numberOf = (digits: string | undefined): number | undefined => (digits === undefined ? undefined : Number(digits));
