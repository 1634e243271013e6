import { type DataType, formatDataType, MAX_COUNT } from "../../src/model/value.ts";
import type { WirePlaces } from "../driver.ts";
import type { Encoding } from "../lib/encoding.ts";
import { parseOrAnswer } from "../lib/spellings.ts";
import { addressInvalid, typeMismatch } from "../lib/text.ts";
import { AREAS, type Area, areaName, MAX_BANK, type Place } from "./areas.ts";
import type { FinsSettings } from "./settings.ts";
import { FORMS } from "./spellings.ts";
import { dataTypeOf, KINDS, type Kind, type KindOf, kindOf, parseType, wordsOf } from "./types.ts";

/** The place where a variable is, and how it is read. */
export interface FinsVariable {
  readonly area: Area;
  /** Of E; undefined: the one that the program has selected, and for all other areas. */
  readonly bank: number | undefined;
  /** First word; the number of the first timer, counter or register. */
  readonly start: number;
  /** Words, completion flags, or registers. */
  readonly count: number;
  /** Completion flags of timers or counters. */
  readonly isFlag: boolean;
  /** Of a BOOL in a word: 0 is the least significant bit. */
  readonly bit: number;
  readonly kind: Kind;
  /** Bytes of a string. */
  readonly chars: number | undefined;
  /** Encoding of a string; absent for all others. */
  readonly encoding?: Encoding;
  /** In this controller; undefined: it has not been looked up. */
  readonly place?: Place;
}

const FORM = "expected for example D100, D100[8], D100.03, W10.03, CIO100.01, H5, A401.08, E0_100, T5, C3, IR0 or DR0";

const BANKED = /^EM?([0-9A-F]{1,2})_(\d{1,5})(?:\.(\d{1,2}))?(?:\[(\d{1,5})\])?$/i;
const PLAIN = /^(CIO|WR?|HR?|AR?|DM?|EM?|T(?:IM)?|C(?:NT)?|LR?|G)(\d{1,5})(?:\.(\d{1,2}))?(?:\[(\d{1,5})\])?$/i;
const REGISTER = /^([ID]R)(\d{1,2})(?:\[(\d{1,5})\])?$/i;
const LONG_NAMES: ReadonlyMap<string, Area> = new Map([
  ["WR", "W"],
  ["HR", "H"],
  ["AR", "A"],
  ["DM", "D"],
  ["EM", "E"],
  ["TIM", "T"],
  ["CNT", "C"],
  ["LR", "L"],
]);

const MAX_WORD = 65_535;
const MAX_BIT = 15;
const MAX_REGISTER = 15;

/** Kinds of the same words as binary numbers and as BCD. */
const CODINGS: Readonly<Partial<Record<Kind, readonly [binary: Kind, bcd: Kind]>>> = {
  INT: ["INT", "UINT_BCD"],
  UINT: ["UINT", "UINT_BCD"],
  UINT_BCD: ["UINT", "UINT_BCD"],
  DINT: ["DINT", "UDINT_BCD"],
  UDINT: ["UDINT", "UDINT_BCD"],
  UDINT_BCD: ["UDINT", "UDINT_BCD"],
  LINT: ["LINT", "ULINT_BCD"],
  ULINT: ["ULINT", "ULINT_BCD"],
  ULINT_BCD: ["ULINT", "ULINT_BCD"],
};

/** The words of a variable, and whole numbers as binary and BCD; undefined for completion flags. FINS has one order of bytes. Pure. */
export function wireOf(variable: FinsVariable): WirePlaces<FinsVariable> | undefined {
  if (variable.isFlag) return undefined;
  if (variable.area === "IR") return { bytes: wordsOfIndex(variable), orders: [] };
  const codings = CODINGS[variable.kind] ?? [];
  const orders = codings.map((kind, i) => ({
    order: i === 0 ? "binary" : "BCD",
    isConfigured: kind === variable.kind,
    address: { ...variable, kind },
  }));
  const words: FinsVariable = { ...variable, kind: "UINT", bit: 0, chars: undefined };
  return { bytes: { address: words, type: { scalar: "uint16", count: variable.count } }, orders };
}

/** Both words of each register where it has two. */
function wordsOfIndex(variable: FinsVariable): WirePlaces<FinsVariable>["bytes"] {
  const words = variable.count * (variable.place?.hasLongElements ? 2 : 1);
  return { address: { ...variable, kind: "UINT" }, type: { scalar: "uint16", count: words } };
}

/** An address by itself. */
interface Located {
  readonly area: Area;
  readonly bank: number | undefined;
  readonly start: number;
  readonly bit: number | undefined;
  readonly count: number | undefined;
}

interface Parsed {
  readonly address: FinsVariable;
  readonly type: DataType;
}

/**
 * Reads addresses as CX-Programmer writes them. Which areas there are, and how long they are, depends on the controller: see placeOf. Pure.
 * Throws FaultError: `address_invalid` (the text, with our words for an address of another tool), `type_mismatch` (type and address contradict
 * each other).
 */
export const parseAddress = (text: string, type: DataType | undefined, settings: Pick<FinsSettings, "encoding">): Parsed =>
  parseOrAnswer(text, type, FORMS, (own, wanted) => parseOwn(own, wanted, settings), parseType);

function parseOwn(text: string, type: DataType | undefined, { encoding }: Pick<FinsSettings, "encoding">): Parsed {
  const located = locate(text);
  const whole = typeFor(text, located, type);
  const { area, bank, start, bit = 0 } = located;
  const { kind, chars } = whole;
  const isFlag = isCounted(area) && kind === "BOOL";
  const count = isFlag || isRegister(area) ? (whole.count ?? 1) : wordsOf(whole, bit);
  refuseBehindLast(text, area, start, count);
  if (start + count - 1 > MAX_WORD)
    throw addressInvalid(text, `it ends at ${areaName(located)}${start + count - 1}, the last one is ${areaName(located)}${MAX_WORD}`);
  const address: FinsVariable = { area, bank, start, count, isFlag, bit, kind, chars, ...(kind === "STRING" && { encoding }) };
  return { address, type: dataTypeOf(whole) };
}

const isCounted = (area: Area): boolean => area === "T" || area === "C";
const isRegister = (area: Area): boolean => area === "IR" || area === "DR";

function locate(text: string): Located {
  const plain = text.trim();
  const inBank = BANKED.exec(plain);
  if (inBank) {
    const bank = Number.parseInt(inBank[1] ?? "", 16);
    if (bank > MAX_BANK) throw addressInvalid(text, `the bank is ${inBank[1]}, banks are 0 to ${MAX_BANK.toString(16)} in hexadecimal`);
    return located(text, "E", bank, inBank.slice(2));
  }
  const [, register, index, elements] = REGISTER.exec(plain) ?? [];
  if (register !== undefined) return located(text, register.toUpperCase() === "IR" ? "IR" : "DR", undefined, [index, undefined, elements]);
  const [, name, ...rest] = PLAIN.exec(plain) ?? [];
  if (name === undefined) throw addressInvalid(text, FORM);
  const area = areaOf(name.toUpperCase());
  if (!area) throw addressInvalid(text, FORM);
  return located(text, area, undefined, rest);
}

function refuseBehindLast(text: string, area: Area, start: number, count = 1): void {
  if (isRegister(area) && start + count - 1 > MAX_REGISTER)
    throw addressInvalid(text, `it ends at ${area}${start + count - 1}, the last one is ${area}${MAX_REGISTER}`);
}

const areaOf = (name: string): Area | undefined => LONG_NAMES.get(name) ?? AREAS.find((area) => area === name);

/** `parts`: number, bit and count as they are written. */
function located(text: string, area: Area, bank: number | undefined, parts: readonly (string | undefined)[]): Located {
  const [number, bitText, countText] = parts;
  const start = Number(number);
  const bit = bitText === undefined ? undefined : Number(bitText);
  const count = countText === undefined ? undefined : Number(countText);
  if (start > MAX_WORD) throw addressInvalid(text, `the number is ${start}, it must be 0 to ${MAX_WORD}`);
  if (isRegister(area) && start > MAX_REGISTER)
    throw addressInvalid(text, `the number is ${start}, the last register is ${area}${MAX_REGISTER}`);
  refuseBehindLast(text, area, start, count);
  if (bit !== undefined && isCounted(area))
    throw addressInvalid(text, `timers and counters have no bits; ${area}${start} of type BOOL is the completion flag`);
  if (bit !== undefined && bit > MAX_BIT) throw addressInvalid(text, `the bit is ${bit}, a word has 0 to ${MAX_BIT}`);
  if (count !== undefined && (count < 1 || count > MAX_COUNT))
    throw addressInvalid(text, `the count is ${count}, it must be 1 to ${MAX_COUNT}`);
  return { area, bank, start, bit, count };
}

function usualKind(area: Area): Kind {
  if (area === "IR") return "UDINT";
  return isCounted(area) ? "UINT_BCD" : "UINT";
}

/** The type of the variable: what is given, with the count of the address, or what the address says. */
function typeFor(text: string, located: Located, type: DataType | undefined): KindOf {
  const { area, bit, count: own } = located;
  if (type === undefined) return { kind: bit === undefined ? usualKind(area) : "BOOL", chars: undefined, count: own };
  const given = kindOf(type);
  if (typeof given === "string") throw typeMismatch(text, given);
  if (own !== undefined && given.count !== undefined && own !== given.count)
    throw typeMismatch(text, `the address counts ${own} elements and the type ${given.count}; leave out one of them`);
  const { kind } = given;
  if (area === "IR") {
    if (kind !== "UDINT") throw typeMismatch(text, `an index register is a UDINT (uint32), a memory address, not ${formatDataType(type)}`);
  } else if (area === "DR") {
    if (KINDS[kind].words !== 1) throw typeMismatch(text, `a data register has one word: INT, UINT or BCD, not ${formatDataType(type)}`);
  } else if (isCounted(area)) {
    if (kind !== "BOOL" && KINDS[kind].words !== 1)
      throw typeMismatch(text, `a timer or counter has one word: BCD, UINT, or BOOL for its completion flag, not ${formatDataType(type)}`);
  } else if (kind === "BOOL" && bit === undefined) throw typeMismatch(text, `a BOOL needs its bit, for example ${text.trim()}.00`);
  else if (kind !== "BOOL" && bit !== undefined)
    throw typeMismatch(text, `a bit is a BOOL, not ${type.word ?? formatDataType(type)}; leave out .${String(bit).padStart(2, "0")}`);
  return { ...given, count: given.count ?? own };
}
