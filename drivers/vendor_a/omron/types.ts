import type { ScalarType } from "../../../src/model/value.ts";
import type { CodingName } from "../../lib/coded-numbers.ts";
import { COMMON_TYPES } from "../elements.ts";

/** Dates and times are 64-bit counts of nanoseconds: since 1970 in the controller's local time, since midnight, or long. */
export type Moment = "date" | "time of day" | "date and time";

/** A type of an NJ or NX controller that has no parts. Omron W506, 8-7; the codes of bold types there are the maker's own. */
export interface Elementary {
  readonly name: string;
  readonly scalar: ScalarType;
  /** Size of one element in memory; 0: as long as it is declared. */
  readonly bytes: number;
  readonly coding?: CodingName;
  readonly moment?: Moment;
}

export const BOOL = 0xc1;
export const STRING = 0xd0;
/** In front of the CRC of a structure. */
export const STRUCTURE = 0xa0;
export const ABBREVIATED = 0xa2;
/** Only in the listing. */
export const ARRAY = 0xa3;
export const UNION = 0x0c;
/** Elements of an array of BOOL in a word. */
export const BITS_OF_WORD = 16;

export const ELEMENTARY: ReadonlyMap<number, Elementary> = new Map<number, Elementary>([
  [BOOL, { name: "BOOL", scalar: "bool", bytes: 2 }],
  ...COMMON_TYPES,
  [0x04, { name: "UINT_BCD", scalar: "uint16", bytes: 2, coding: "WORD_BCD" }],
  [0x05, { name: "UDINT_BCD", scalar: "uint32", bytes: 4, coding: "DWORD_BCD" }],
  [0x06, { name: "ULINT_BCD", scalar: "uint64", bytes: 8, coding: "LWORD_BCD" }],
  [0x07, { name: "an enumeration", scalar: "int32", bytes: 4 }],
  [0x08, { name: "DATE", scalar: "string", bytes: 8, moment: "date" }],
  [0x09, { name: "TIME", scalar: "int64", bytes: 8 }],
  [0xdb, { name: "TIME", scalar: "int64", bytes: 8 }],
  [0x0a, { name: "DATE_AND_TIME", scalar: "string", bytes: 8, moment: "date and time" }],
  [0x0b, { name: "TIME_OF_DAY", scalar: "string", bytes: 8, moment: "time of day" }],
]);

/** A structure as its types declare it. Plain data. */
export interface VariableStructure {
  readonly name: string;
  /** Comes in front of its values: another layout has another one. */
  readonly crc: number;
  /** In memory. */
  readonly bytes: number;
  readonly members: readonly VariableMember[];
}

export interface VariableMember {
  readonly name: string;
  readonly shape: Shape;
  /** In bytes; undefined: members at their alignments do not make the size that the controller says. */
  readonly offset: number | undefined;
}

/** The type of a variable or of a member. Plain data. */
export interface Shape {
  /** Type code of a value, or of an element of an array; a structure has STRUCTURE. */
  readonly code: number;
  /** Size of one element in memory; 0: not known. */
  readonly bytes: number;
  /** Elements of each dimension; empty: no array. */
  readonly dimensions: readonly number[];
  /** The index of the first element in each dimension. */
  readonly firsts: readonly number[];
  /** Undefined: no structure, or one whose members are not known. */
  readonly structure?: VariableStructure;
}

export const isStructureCode = (code: number): boolean => code === STRUCTURE || code === ABBREVIATED;

export const elementsOf = ({ dimensions }: Pick<Shape, "dimensions">): number => dimensions.reduce((so, n) => so * n, 1);

/** Bits that one can take out of a number; 0: it is no whole number. */
export function bitsOf(code: number): number {
  const { scalar, bytes, coding, moment } = ELEMENTARY.get(code) ?? { scalar: "string", bytes: 0 };
  return /^u?int/.test(scalar) && coding === undefined && moment === undefined ? bytes * 8 : 0;
}

/** For messages: `DINT`, `Recipe`, `type 0xBE`. */
export function shapeName({ code, structure }: Pick<Shape, "code" | "structure">): string {
  if (isStructureCode(code)) return structure?.name ?? "a structure";
  if (code === UNION) return "a union";
  return ELEMENTARY.get(code)?.name ?? `type 0x${code.toString(16).toUpperCase().padStart(2, "0")}`;
}

/** Bytes in memory of a value or of a whole array. */
export function memoryBytes(shape: Shape): number {
  const elements = elementsOf(shape);
  if (shape.code === BOOL && shape.dimensions.length > 0) return Math.ceil(elements / BITS_OF_WORD) * 2;
  return elements * shape.bytes;
}

const LARGEST_ALIGNMENT = 8;

/** Texts begin anywhere; a structure where its widest member may. */
function alignmentOf({ code, bytes, structure }: Shape): number {
  if (structure) return structure.members.reduce((most, { shape }) => Math.max(most, alignmentOf(shape)), 1);
  return code === STRING ? 1 : Math.min(LARGEST_ALIGNMENT, Math.max(1, bytes));
}

const alignUp = (at: number, to: number): number => Math.ceil(at / to) * to;

/**
 * Members with their places in memory, from independent client code and unverified: each at its alignment. Where that does not make the size
 * that the controller says, or a member's own members have no places, none has one. Pure.
 */
export function layOut(members: readonly Pick<VariableMember, "name" | "shape">[], bytes: number): readonly VariableMember[] {
  const laid: VariableMember[] = [];
  let [at, widest] = [0, 1];
  let isKnown = true;
  for (const { name, shape } of members) {
    const alignment = alignmentOf(shape);
    const size = memoryBytes(shape);
    widest = Math.max(widest, alignment);
    at = alignUp(at, alignment);
    laid.push({ name, shape, offset: at });
    at += size;
    const hasInner = !isStructureCode(shape.code) || shape.structure?.members.every(({ offset }) => offset !== undefined) === true;
    isKnown &&= size > 0 && shape.code !== UNION && hasInner && (isStructureCode(shape.code) || ELEMENTARY.has(shape.code));
  }
  return isKnown && alignUp(at, widest) === bytes ? laid : laid.map(({ name, shape }) => ({ name, shape, offset: undefined }));
}

/** True: its bytes can be taken apart. */
export const isLaidOut = ({ members }: VariableStructure): boolean =>
  members.length > 0 && members.every(({ offset }) => offset !== undefined);

/** Values in one structure, those of the structures in it among them. */
export const valuesIn = ({ members }: VariableStructure): number =>
  members.reduce((sum, { shape }) => sum + elementsOf(shape) * (shape.structure ? valuesIn(shape.structure) : 1), 1);
