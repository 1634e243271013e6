import { type DataType, formatDataType, MAX_COUNT } from "../../src/model/value.ts";
import type { WirePlaces } from "../driver.ts";
import { type CodingName, codingOf, parseCoded } from "../lib/coded-numbers.ts";
import type { Encoding } from "../lib/encoding.ts";
import { addressInvalid, typeMismatch } from "../lib/text.ts";
import type { Place } from "./locate.ts";
import type { VariablePlace } from "./omron/locate.ts";
import type { CipSettings } from "./settings.ts";

/** A tag by its name, and what of it. Names as they were typed: the controller does not mind their case. */
export interface CipAddress {
  /** `Program:Main`; undefined: a tag of the controller. */
  readonly program: string | undefined;
  /** Names, and behind each the indices of an element, where it is one. The first is the name of the tag. */
  readonly steps: readonly Step[];
  readonly bit: number | undefined;
  /** Elements from there on, as the address says it. */
  readonly count: number | undefined;
  /** Once it is looked up. */
  readonly place?: Place;
  /** Once it is looked up in an NJ or NX controller. */
  readonly variable?: VariablePlace;
  /** Its bytes are read as they come, instead of the value. */
  readonly isRaw?: true;
  /** Coding of decimal digits in a whole number. */
  readonly coding?: CodingName;
  /** Encoding of texts. */
  readonly encoding?: Encoding;
}

export type Step = string | readonly number[];

const FORM =
  "expected for example Tag, Program:Main.Tag, Tag[3], Tag[1,2], Tag.Member.Sub[2], a bit such as Tag.5, or Tag[0]{10} for ten elements";
/** Letters of any script, as NJ and NX controllers have them; a Logix controller refuses what it does not know. */
const NAME = /^[\p{L}_][\p{L}\p{M}\p{N}_]{0,126}$/u;
/** Tags of modules: `Local:1:I`. The last part names a connection, not an element (`N7:0`) or a type (`Tag:REAL`), which other tools write. */
const ROOT = /^(?:[\p{L}_][\p{L}\p{M}\p{N}_]{0,126}|[A-Za-z_][A-Za-z0-9_]{0,39}(?::[A-Za-z0-9_]{1,40}){1,3})$/u;
const NOT_A_MODULE = /:(?:\d+|BOOL|U?[SDL]?INT|L?REAL|BYTE|[DL]?WORD|STRING|INTEGER|FLOAT|BIT|BCD|ASCII|STATUS)$/;
const PROGRAM = /^Program:[A-Za-z_][A-Za-z0-9_]{0,39}$/i;
const PART = /^([^[\]]*)(?:\[([^[\]]*)\])?$/;
const COUNT = /\{ ?(\d{1,6}) ?\}$/;
const MAX_STEPS = 32;
const MAX_BIT = 63;
const MAX_INDEX = 0xffff_ffff;
const MAX_DIMENSIONS = 3;
const AUTO: DataType = { scalar: "auto" };

interface Parsed {
  readonly address: CipAddress;
  readonly type: DataType;
}

/**
 * Reads addresses of tags as Studio 5000 and CCW write them, with `{n}` for n elements. Pure; which types and members there are is looked up later.
 * Throws FaultError: `address_invalid` (the text), `type_mismatch` (the text and the type count
 * their elements differently).
 */
export function parseTag(text: string, type: DataType | undefined, { encoding }: Pick<CipSettings, "encoding">): Parsed {
  const parsed = parseOwn(text, type);
  return { ...parsed, address: { ...parsed.address, encoding } };
}

/** Words for decimal digits in the whole numbers of a controller. */
const WORDS: ReadonlyMap<string, CodingName> = new Map([
  ["BYTE_BCD", "BYTE_BCD"],
  ["BCD", "WORD_BCD"],
  ["WORD_BCD", "WORD_BCD"],
  ["LBCD", "DWORD_BCD"],
  ["DWORD_BCD", "DWORD_BCD"],
  ["LWORD_BCD", "LWORD_BCD"],
]);

/** `BCD`, `DWORD_BCD[4]`. Undefined: no type, or one that every driver takes. Pure. */
export const parseType = (text: string): DataType | undefined => parseCoded(text, WORDS);

function parseOwn(text: string, type: DataType | undefined): Parsed {
  const trimmed = text.trim();
  const counted = COUNT.exec(trimmed);
  const count = counted ? countOf(text, counted[1]) : undefined;
  const parts = (counted ? trimmed.slice(0, counted.index).trimEnd() : trimmed).split(".");
  const program = PROGRAM.test(parts[0] ?? "") ? parts.shift() : undefined;
  const bit = parts.length > 1 ? bitOf(text, parts) : undefined;
  if (parts.length === 0) throw addressInvalid(text, FORM);
  const steps = parts.flatMap((part, i) => stepsOf(text, part, i === 0));
  if (steps.length > MAX_STEPS) throw addressInvalid(text, `it has ${steps.length} parts, at most ${MAX_STEPS} can be`);
  if (bit !== undefined && count !== undefined) throw addressInvalid(text, "bits of a number are read one by one");
  if (count !== undefined && type?.count !== undefined && count !== type.count)
    throw typeMismatch(text, `the address counts ${count} elements and the type ${formatDataType(type)}; leave out one of them`);
  const coding = type && codingOf(type);
  if (coding && bit !== undefined) throw typeMismatch(text, `a bit is a BOOL, not ${coding.name}; leave out .${bit}`);
  return { address: { program, steps, bit, count, ...(coding && { coding: coding.name }) }, type: withoutWord(type ?? AUTO) };
}

/** The bytes of a variable that was looked up. The controller says its type, and has one order: the least significant byte first. Pure. */
export function wireOf(address: CipAddress): WirePlaces<CipAddress> | undefined {
  if (address.variable) return variableWire(address, address.variable);
  if (!address.place) return undefined;
  const form = address.place.sources.at(-1)?.bit === undefined ? undefined : "the bytes that hold the bits";
  return {
    bytes: { address: { ...address, isRaw: true }, type: { scalar: "uint8", count: 1 } },
    ...(form !== undefined && { form }),
    orders: [],
  };
}

/** A BOOL is two bytes, a bit is in its number. */
const variableWire = (address: CipAddress, { bit }: VariablePlace): WirePlaces<CipAddress> => ({
  bytes: { address: { ...address, isRaw: true }, type: { scalar: "uint8", count: 1 } },
  ...(bit !== undefined && { form: "the bytes that hold the bit" }),
  orders: [],
});

function withoutWord({ word: _, ...type }: DataType): DataType {
  return type;
}

function countOf(text: string, digits: string | undefined): number {
  const count = Number(digits);
  if (count < 1 || count > MAX_COUNT) throw addressInvalid(text, `the count is ${count}, it must be 1 to ${MAX_COUNT}`);
  return count;
}

/** Takes a number at the end off. */
function bitOf(text: string, parts: string[]): number | undefined {
  const last = parts.at(-1) ?? "";
  if (!/^\d{1,3}$/.test(last)) return undefined;
  const bit = Number(last);
  if (bit > MAX_BIT) throw addressInvalid(text, `the bit is ${bit}, a number has at most 0 to ${MAX_BIT}`);
  parts.pop();
  return bit;
}

function stepsOf(text: string, part: string, isRoot: boolean): Step[] {
  const [whole, name = "", indices] = PART.exec(part) ?? [];
  if (whole === undefined || !(isRoot ? ROOT : NAME).test(name) || NOT_A_MODULE.test(name)) throw addressInvalid(text, FORM);
  return indices === undefined ? [name] : [name, indicesOf(text, indices)];
}

function indicesOf(text: string, indices: string): readonly number[] {
  const numbers = indices.split(",").map((one) => one.trim());
  if (numbers.length > MAX_DIMENSIONS || !numbers.every((one) => /^\d{1,10}$/.test(one) && Number(one) <= MAX_INDEX))
    throw addressInvalid(text, `[${indices}] is not an index: up to ${MAX_DIMENSIONS} numbers, for example [3] or [1,2]`);
  return numbers.map(Number);
}

/** As it is written: `Program:Main.Motors[3].Speed`. */
export function textOf({ program, steps, bit }: Pick<CipAddress, "program" | "steps" | "bit">): string {
  let text = program ?? "";
  for (const step of steps) text += typeof step === "string" ? `${text === "" ? "" : "."}${step}` : `[${step.join(",")}]`;
  return bit === undefined ? text : `${text}.${bit}`;
}
