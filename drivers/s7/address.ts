import { FaultError } from "../../src/model/fault.ts";
import { type DataType, formatDataType, MAX_COUNT } from "../../src/model/value.ts";
import type { WirePlaces } from "../driver.ts";
import type { Encoding } from "../lib/encoding.ts";
import { ambiguous, parseOrAnswer, typed } from "../lib/spellings.ts";
import { ADDRESS_WORDS, dataTypeOf, KINDS, type Kind, type KindOf, kindOf, MAX_CHARS, parseType, sizeOf } from "../lib/step7-types.ts";
import { addressInvalid, quote, typeMismatch } from "../lib/text.ts";
import type { S7Settings } from "./settings.ts";
import { FORMS } from "./spellings.ts";

/** The place where the controller keeps values, by its international letters. */
export type Area = "DB" | "DI" | "M" | "I" | "Q" | "T" | "C";

/** The place where a variable is, and how it is read. */
export interface S7Address {
  readonly area: Area;
  /** Number of the data block; 0 elsewhere. */
  readonly block: number;
  /** First byte; the number of the first timer or counter. */
  readonly start: number;
  /** Bytes; timers or counters. */
  readonly length: number;
  /** Of a BOOL: its bit in the first byte, 0 the least significant. */
  readonly bit: number;
  readonly kind: Kind;
  /** Of a string, or of a text of several CHAR. */
  readonly chars: number | undefined;
  /** Encoding of a text whose characters are bytes; absent for all others. */
  readonly encoding?: Encoding;
}

const FORM =
  "expected for example DB1.DBX0.1, DB10.DBD4, DB10.DBW2[8], DB1,REAL4, DI5.DIW0, M0.0, MW20, I0.0, QB4, T5 or C3 (German E, A and Z too)";

// A step 7 notation, with or without the % of TIA Portal, and with the blank that STEP 7 puts before a number.
const IN_BLOCK = /^%?D([BI]) ?(\d{1,5}) ?\. ?(?:D\1)?([XBWD]) ?(\d{1,7})(?:\.(\d{1,2}))?(?:\[(\d{1,5})\])?$/i;
const IN_AREA = /^%?([MIEQAV])([XBWD]?) ?(\d{1,7})(?:\.(\d{1,2}))?(?:\[(\d{1,5})\])?$/i;
const TYPED = /^%?(?:D([BI]) ?(\d{1,5})|([MIEQA])), ?([A-Z][A-Z_]*?|S5TIME)(\d{1,7})(?:\.(\d{1,5}))?(?:\[(\d{1,5})\])?$/i;
const NUMBERED = /^%?([TCZ]) ?(\d{1,5})(?:\[(\d{1,5})\])?$/i;

const AREA_OF_LETTER: Readonly<Record<string, Area>> = { M: "M", I: "I", E: "I", Q: "Q", A: "Q", T: "T", C: "C", Z: "C" };
const KIND_OF_WIDTH: Readonly<Record<string, Kind>> = { X: "BOOL", B: "BYTE", W: "WORD", D: "DWORD" };

/** Kinds whose bits other tools name by a number behind the address. */
const HAS_BITS: ReadonlySet<Kind> = new Set(["BYTE", "SINT", "WORD", "INT", "DWORD", "DINT", "LWORD", "LINT"]);

/** A data block's number at most; bytes count from 0, and a bit's number has 24 bits on the wire. */
const MAX_BLOCK = 65_535;
const MAX_BYTE = 2 ** 21 - 1;

/** The bytes of a variable; undefined for timers and counters. STEP 7 has one order. Pure. */
export function wireOf(address: S7Address): WirePlaces<S7Address> | undefined {
  if (address.area === "T" || address.area === "C") return undefined;
  const bytes: S7Address = { ...address, kind: "BYTE", bit: 0, chars: undefined };
  return { bytes: { address: bytes, type: { scalar: "uint8", count: address.length } }, orders: [] };
}

/** An address by itself. */
interface Located {
  readonly area: Area;
  readonly block: number;
  readonly start: number;
  readonly bit: number | undefined;
  /** The letter of the width; undefined: the address names its type. */
  readonly width: "X" | "B" | "W" | "D" | undefined;
  /** If no type is given, or in the address itself. */
  readonly type: KindOf;
  readonly isTyped: boolean;
}

interface Parsed {
  readonly address: S7Address;
  readonly type: DataType;
}

/**
 * Reads addresses as STEP 7 and TIA Portal write them. Pure.
 * Throws FaultError: `address_invalid` (the text, with our words for an address of another tool), `type_mismatch` (type and address contradict
 * each other).
 */
export const parseAddress = (text: string, type: DataType | undefined, settings: Pick<S7Settings, "encoding">): Parsed =>
  parseOrAnswer(text, type, FORMS, (own, wanted) => parseOwn(own, wanted, settings), parseType);

function parseOwn(text: string, type: DataType | undefined, { encoding }: Pick<S7Settings, "encoding">): Parsed {
  const located = locate(text);
  const whole = typeFor(text, located, type);
  const { kind, chars, count } = whole;
  const { area, block, start } = located;
  const bit = kind === "BOOL" ? (located.bit ?? 0) : 0;
  if (located.bit !== undefined && located.bit > 0 && kind !== "BOOL")
    throw typeMismatch(text, `a bit is a BOOL, not ${kind}; leave out .${located.bit}`);
  if (located.width !== undefined) checkWidth(text, located.width, kind, located.bit);
  const length = area === "T" || area === "C" ? (count ?? 1) : sizeOf(whole, bit);
  const last = area === "T" || area === "C" ? MAX_BLOCK : MAX_BYTE;
  if (start + length - 1 > last) throw addressInvalid(text, `it ends at ${start + length - 1}, the last one is ${last}`);
  const isText = kind === "STRING" || kind === "CHAR";
  return { address: { area, block, start, length, bit, kind, chars, ...(isText && { encoding }) }, type: dataTypeOf(whole) };
}

function locate(text: string): Located {
  const plain = text.trim();
  const inBlock = IN_BLOCK.exec(plain);
  if (inBlock) {
    const [, letter = "", block, width = "", byte, bit, count] = inBlock;
    return located(text, letter.toUpperCase() === "B" ? "DB" : "DI", blockOf(text, block), width.toUpperCase(), byte, bit, count);
  }
  const inArea = IN_AREA.exec(plain);
  if (inArea) {
    const [, letter = "", width = "", byte, bit, count] = inArea;
    // The V memory of a LOGO! or an S7-200 is data block 1.
    if (letter.toUpperCase() === "V") return located(text, "DB", 1, width.toUpperCase(), byte, bit, count);
    return located(text, areaOf(letter), 0, width.toUpperCase(), byte, bit, count);
  }
  const numbered = NUMBERED.exec(plain);
  if (numbered) {
    const [, letter = "", number, count] = numbered;
    const area = areaOf(letter);
    const start = Number(number);
    if (start > MAX_BLOCK) throw addressInvalid(text, `the number is ${start}, it must be 0 to ${MAX_BLOCK}`);
    const kind = area === "T" ? "S5TIME" : "COUNTER";
    return {
      ...{ area, block: 0, start, bit: undefined, width: undefined, isTyped: true },
      type: { kind, chars: undefined, count: countOf(text, count) },
    };
  }
  return locateTyped(text, plain);
}

/** `DB1,REAL4`, `DB1,X0.1`, `DB1,STRING20.30` (30 characters from byte 20), `DB1,REAL10.5` (five from byte 10). */
function locateTyped(text: string, plain: string): Located {
  const [whole, blockLetter, block, areaLetter = "", word = "", byte, second, brackets] = TYPED.exec(plain) ?? [];
  const name = word.toUpperCase();
  const kind = Object.hasOwn(ADDRESS_WORDS, name) ? ADDRESS_WORDS[name] : undefined;
  if (whole === undefined || !kind) throw addressInvalid(text, FORM);
  const area = blockLetter === undefined ? areaOf(areaLetter) : blockLetter.toUpperCase() === "B" ? "DB" : "DI";
  const start = byteOf(text, byte);
  const at = { area, block: blockLetter === undefined ? 0 : blockOf(text, block), start, width: undefined, isTyped: true };
  const bracketCount = countOf(text, brackets);
  if (kind === "BOOL") {
    if (second === undefined) throw addressInvalid(text, "a BOOL needs its bit, for example DB1,X0.1");
    return { ...at, bit: bitOf(text, second), type: { kind, chars: undefined, count: bracketCount } };
  }
  if (second !== undefined) checkMeaning(text, at, kind, Number(second));
  const number = countOf(text, second);
  if (kind === "STRING" || kind === "WSTRING") {
    const chars = number ?? 254;
    if (chars > MAX_CHARS[kind]) throw addressInvalid(text, `a ${kind} has ${MAX_CHARS[kind]} characters at most`);
    return { ...at, bit: undefined, type: { kind, chars, count: bracketCount } };
  }
  if (number !== undefined && bracketCount !== undefined) throw addressInvalid(text, `it counts its elements twice; leave out .${second}`);
  return { ...at, bit: undefined, type: { kind, chars: undefined, count: number ?? bracketCount } };
}

/**
 * Refuse a number that is a bit in some tools and a count of elements in others (nodes7).
 * Throws FaultError `address_invalid` where both can be meant, with the spelling of each.
 */
function checkMeaning(text: string, at: Pick<Located, "area" | "block" | "start">, kind: Kind, second: number): void {
  const whole = text.trim().replace(/\.\d+(?:\[\d+\])?$/, "");
  const { bytes } = KINDS[kind];
  const isText = kind === "CHAR";
  if (isText ? second === 0 : !HAS_BITS.has(kind) || second >= bytes * 8) return;
  const one = isText
    ? { write: typed(whole, `CHAR(${second})`), when: "for one text" }
    : { write: bitPlace(at, bytes, second), when: `for bit ${second}` };
  const other =
    second === 0
      ? { write: whole, when: "for the whole" }
      : { write: `${whole}[${second}]`, when: `for ${second} ${second === 1 ? "element" : "elements"}` };
  throw ambiguous(text, [one, other]);
}

/** The place where bit `bit` of a number of `bytes` bytes is: STEP 7 keeps the most significant byte first. */
function bitPlace({ area, block, start }: Pick<Located, "area" | "block" | "start">, bytes: number, bit: number): string {
  const place = `${start + bytes - 1 - (bit >> 3)}.${bit & 7}`;
  return area === "DB" || area === "DI" ? `${area}${block}.${area}X${place}` : `${area}${place}`;
}

function located(
  text: string,
  area: Area,
  block: number,
  letter: string,
  byte: string | undefined,
  bitText: string | undefined,
  countText: string | undefined,
): Located {
  const width = letter === "" ? "X" : letter;
  if (width !== "X" && width !== "B" && width !== "W" && width !== "D") throw addressInvalid(text, FORM);
  const start = byteOf(text, byte);
  if (width === "X" && bitText === undefined)
    throw addressInvalid(text, "a bit is missing, for example .0, or a letter for the width: B, W or D");
  const kind = KIND_OF_WIDTH[width] ?? "BYTE";
  if (width !== "X" && bitText !== undefined) {
    const { bytes } = KINDS[kind];
    const bit = Number(bitText);
    if (bit >= bytes * 8) throw addressInvalid(text, `the bit is ${bit}, a ${kind} has 0 to ${bytes * 8 - 1}`);
    throw addressInvalid(text, `${width} is followed by a byte only; write ${bitPlace({ area, block, start }, bytes, bit)} for bit ${bit}`);
  }
  const bit = bitText === undefined ? undefined : bitOf(text, bitText);
  return { area, block, start, bit, width, type: { kind, chars: undefined, count: countOf(text, countText) }, isTyped: false };
}

function areaOf(letter: string): Area {
  const area = AREA_OF_LETTER[letter.toUpperCase()];
  if (!area) throw new FaultError("address_invalid", `${quote(letter)} is not an area`);
  return area;
}

function blockOf(text: string, digits: string | undefined): number {
  const block = Number(digits);
  if (block < 1 || block > MAX_BLOCK) throw addressInvalid(text, `the data block is ${block}, it must be 1 to ${MAX_BLOCK}`);
  return block;
}

function byteOf(text: string, digits: string | undefined): number {
  const byte = Number(digits);
  if (byte > MAX_BYTE) throw addressInvalid(text, `the byte is ${byte}, the last one is ${MAX_BYTE}`);
  return byte;
}

function bitOf(text: string, digits: string): number {
  const bit = Number(digits);
  if (bit > 7) throw addressInvalid(text, `the bit is ${bit}, a byte has 0 to 7`);
  return bit;
}

function countOf(text: string, digits: string | undefined): number | undefined {
  if (digits === undefined) return undefined;
  const count = Number(digits);
  if (count < 1 || count > MAX_COUNT) throw addressInvalid(text, `the count is ${count}, it must be 1 to ${MAX_COUNT}`);
  return count;
}

/** The type of the variable: what is given, with the count of the address, or what the address says. */
function typeFor(text: string, { type: own, isTyped, area, width, bit }: Located, type: DataType | undefined): KindOf {
  if (type === undefined) return own;
  const given = kindOf(type);
  if (!given) throw typeMismatch(text, `a STRING has ${MAX_CHARS.STRING} characters at most, not ${formatDataType(type)}`);
  if (type.dimensions) throw typeMismatch(text, "an array has one dimension here; name the number of its elements");
  if (own.count !== undefined && given.count !== undefined && own.count !== given.count)
    throw typeMismatch(text, `the address counts ${own.count} elements and the type ${given.count}; leave out one of them`);
  const count = given.count ?? own.count;
  if (!isTyped) {
    if (given.kind === "BOOL" && width !== "X") throw typeMismatch(text, "a BOOL needs its bit, for example DB1.DBX0.1 or M0.0");
    if (given.kind !== "BOOL" && bit !== undefined && bit > 0)
      throw typeMismatch(text, `a bit is a BOOL, not ${given.kind}; leave out .${bit}`);
    return { ...given, count };
  }
  const isSame = KINDS[given.kind].scalar === KINDS[own.kind].scalar && (type.word === undefined || given.kind === own.kind);
  if (!isSame) {
    const what =
      area === "T" ? "a timer is read as S5TIME (ms)" : area === "C" ? "a counter is read as COUNTER" : `the address says ${own.kind}`;
    throw typeMismatch(text, `${what}, not ${type.word ?? formatDataType(type)}`);
  }
  const hasLength = type.maxBytes !== undefined || (given.kind === "STRING" && type.count !== undefined);
  return { kind: own.kind, chars: hasLength && own.kind === given.kind ? given.chars : own.chars, count };
}

/**
 * A width says where a value begins and how long it is: W two bytes, D four, and as no letter is wider, more than four; B and a whole byte
 * that is written as a bit (`DB1.DBX8.0`, the offset that TIA Portal shows) say only where.
 */
function checkWidth(text: string, width: "X" | "B" | "W" | "D", kind: Kind, bit: number | undefined): void {
  const { bytes } = KINDS[kind];
  const isFit = width === "X" ? kind === "BOOL" || bit === 0 : width === "B" || (width === "W" ? bytes === 2 : bytes >= 4);
  const isString = kind === "STRING" || kind === "WSTRING";
  if (!isFit || (isString && width !== "B" && width !== "X"))
    throw typeMismatch(text, `${width} is not the width of ${kind}; write the byte where it begins with B, for example DB1.DBB0`);
}
