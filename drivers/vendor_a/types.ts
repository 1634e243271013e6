import type { ScalarType } from "../../src/model/value.ts";
import { COMMON_TYPES } from "./elements.ts";

/** A type of the controller that is no structure. */
export interface Atomic {
  readonly name: string;
  readonly scalar: ScalarType;
  /** Of one element on the wire; 0: as long as it says itself. */
  readonly bytes: number;
}

export const BOOL = 0xc1;
/** 32 bits. */
export const DWORD = 0xd3;
export const STRING = 0xd0;
export const SHORT_STRING = 0xda;
/** In front of the handle of a structure. */
export const STRUCTURE = 0x02a0;
export const BITS_OF_DWORD = 32;
/** Characters that a text with its own length may have where nobody says it: those of a Micro800's STRING. */
export const SHORT_STRING_BYTES = 81;

/**
 * By type code. CIP Vol. 1, C-6.1, and what newer Logix controllers add (Rockwell 1756-PM020, LDT and the 64-bit durations). Durations of
 * 64 bits are microseconds on the wire and milliseconds here, LTIME nanoseconds.
 */
export const ATOMICS: ReadonlyMap<number, Atomic> = new Map<number, Atomic>([
  [BOOL, { name: "BOOL", scalar: "bool", bytes: 1 }],
  ...COMMON_TYPES,
  [SHORT_STRING, { name: "SHORT_STRING", scalar: "string", bytes: 0 }],
  [0xdb, { name: "TIME", scalar: "int32", bytes: 4 }],
  [0xc0, { name: "DT", scalar: "string", bytes: 8 }],
  [0xcc, { name: "LDT", scalar: "string", bytes: 8 }],
  [0xd6, { name: "TIME32", scalar: "float64", bytes: 4 }],
  [0xd7, { name: "TIME", scalar: "float64", bytes: 8 }],
  [0xdf, { name: "LTIME", scalar: "int64", bytes: 8 }],
]);

/** Bits that one can take out of a number: the type's width; 0: it is no integer. */
export function bitsOf(code: number): number {
  const { scalar, bytes } = ATOMICS.get(code) ?? { scalar: "string", bytes: 0 };
  return /^u?int/.test(scalar) ? bytes * 8 : 0;
}

/** For messages: `DINT`, `type 0x00BE`. */
export const typeName = (code: number): string => ATOMICS.get(code)?.name ?? `type 0x${code.toString(16).toUpperCase().padStart(4, "0")}`;

/** A structure as the controller declares it. Plain data. */
export interface Structure {
  readonly id: number;
  readonly name: string;
  /** Follows 02A0 in front of its values; another layout has another one. */
  readonly handle: number;
  /** On the wire. */
  readonly bytes: number;
  readonly members: readonly Member[];
  /** A string of at most so many characters: LEN and DATA. */
  readonly chars?: number;
}

export interface Member {
  readonly name: string;
  /** In bytes. */
  readonly offset: number;
  readonly type: MemberType;
  /** Elements; undefined: no array. */
  readonly count?: number;
  /** Of a BOOL: from the least significant bit of the byte at `offset`. */
  readonly bit?: number;
  /** It only carries other members. */
  readonly isHidden: boolean;
}

/** `isBits`: the words of an array of BOOL. */
export type MemberType = { readonly code: number; readonly isBits?: true } | { readonly structure: Structure };

/** Families of controllers that mean different things by one type code. */
export type Family = "logix" | "micro800";

/**
 * The type of a tag, or of a member, that is no structure. Logix keeps an array of BOOL as a one-dimensional array of DWORD and has no
 * DWORD of its own; a Micro800 has DWORD as IEC 61131-3 does (unverified on hardware). Pure.
 */
export function elementaryType(code: number, dimensions: number, family: Family): MemberType {
  return code === DWORD && dimensions === 1 && family === "logix" ? { code, isBits: true } : { code };
}

export const isStructure = (type: MemberType): type is { readonly structure: Structure } => "structure" in type;

const valuesOf = new WeakMap<Structure, number>();

/** Values in one structure, those of the structures in it among them: what it takes to read it. */
export function valuesIn(structure: Structure): number {
  const known = valuesOf.get(structure);
  if (known !== undefined) return known;
  const values = structure.members.reduce(
    (sum, { type, count = 1 }) => sum + count * (isStructure(type) ? valuesIn(type.structure) : 1),
    1,
  );
  valuesOf.set(structure, values);
  return values;
}

/** Of one element on the wire. */
export const bytesOfType = (type: MemberType): number =>
  isStructure(type) ? type.structure.bytes : (ATOMICS.get(type.code)?.bytes ?? 0) || SHORT_STRING_BYTES;
