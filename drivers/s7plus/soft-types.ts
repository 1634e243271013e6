import type { DataType } from "../../src/model/value.ts";
import { dataTypeOf, type Kind } from "../lib/step7-types.ts";
import type { Member } from "./members.ts";

/** Types of the engineering tool whose values are read, by its own numbers; names after the public protocol dissector. */
const KIND_OF: ReadonlyMap<number, Kind> = new Map([
  ...all("BOOL", 1, 40),
  ...all("BYTE", 2, 52),
  ...all("CHAR", 3),
  // WORD, block numbers, counters and timers, UINT, hardware ids, connection ids, ports and block references
  ...all("WORD", 4, 23, 24, 28, 29, 53, ...range(144, 156), ...range(168, 170), ...range(173, 175), ...range(208, 210)),
  // INT and numbers of organisation blocks
  ...all("INT", 5, ...range(160, 164), 192, 193, ...range(195, 197)),
  // DWORD, UDINT, ids of events and connections
  ...all("DWORD", 6, 54, ...range(128, 130), ...range(132, 134), 171),
  ...all("DINT", 7),
  ...all("REAL", 8),
  ...all("DATE", 9),
  ...all("TOD", 10),
  ...all("TIME", 11),
  ...all("S5TIME", 12),
  ...all("DT", 14),
  ...all("STRING", 19),
  ...all("LREAL", 48),
  ...all("LWORD", 49, 51),
  ...all("LINT", 50),
  ...all("SINT", 55),
  ...all("WCHAR", 61),
  ...all("WSTRING", 62),
  ...all("LTIME", 64),
  ...all("LTOD", 65),
  ...all("LDT", 66),
  ...all("DTL", 67),
]);
/** POINTER, ANY and REMOTE: bytes as they are. */
const RAW_BYTES: ReadonlyMap<number, number> = new Map([
  [20, 6],
  [22, 10],
  [96, 10],
]);
/** Bits of an array that are packed: each innermost row begins a byte. */
const PACKED_BITS = 40;
/** A DTL is a structure too, and is read as a whole. */
const DTL = 67;

function all(kind: Kind, ...types: readonly number[]): (readonly [number, Kind])[] {
  return types.map((type) => [type, kind] as const);
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

/** How one value of a member is read. */
export interface ElementType {
  readonly kind: Kind;
  /** Of a string. */
  readonly chars: number | undefined;
  /** Several bytes that are one value. */
  readonly count: number | undefined;
}

/** Of one element, where the member is an array; undefined: it has no value of its own that is known here. Pure. */
export function elementTypeOf({ softType, chars }: Member): ElementType | undefined {
  const rawBytes = RAW_BYTES.get(softType);
  if (rawBytes !== undefined) return { kind: "BYTE", chars: undefined, count: rawBytes };
  const kind = KIND_OF.get(softType);
  return kind && { kind, chars, count: undefined };
}

/** True: the member, or each of its elements, is made of members. */
export const isStructured = ({ softType, typeId }: Member): boolean => typeId !== undefined && softType !== DTL;

/** True: the array is of DTLs, whose elements are addressed like structures. */
export const isDtl = ({ softType }: Member): boolean => softType === DTL;

/** True: all of an array is read as one value: one dimension, of numbers, bits or characters. */
export function isWhole(member: Member): boolean {
  const element = elementTypeOf(member);
  const plain = element !== undefined && element.count === undefined && !["STRING", "WSTRING", "DT", "DTL"].includes(element.kind);
  return plain && member.dimensions.length === 1 && !isStructured(member);
}

/** Places that an element takes of the row that it is in, by dimension from the outermost: rows of packed bits are filled to whole bytes. */
export function stridesOf({ dimensions, softType }: Member): readonly number[] {
  const strides: number[] = [];
  let stride = 1;
  for (let i = dimensions.length - 1; i >= 0; i--) {
    strides.unshift(stride);
    const count = dimensions[i]?.count ?? 0;
    const isRow = i === dimensions.length - 1 && dimensions.length > 1 && softType === PACKED_BITS;
    stride *= isRow ? (count + 7) & ~7 : count;
  }
  return strides;
}

/** The type of a variable. */
export const typeOfElement = ({ kind, chars, count }: ElementType, elements = count): DataType =>
  dataTypeOf({ kind, chars: kind === "STRING" || kind === "WSTRING" ? chars : undefined, count: elements });
