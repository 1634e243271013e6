import { instancePath, request, SERVICE, tagPath } from "../cip.ts";
import { isStructureCode } from "./types.ts";

/**
 * Requests for variables and for the maker's objects that list them, and their replies. No document of the maker describes the objects: their
 * layouts are from independent client code and not verified. All pure.
 */

export const CLASS = { names: 0x6a, variable: 0x6b, type: 0x6c } as const;
/** Lists the variables of the tag name server. */
export const LIST_VARIABLES = 0x5f;
export type VariableKind = "system" | "user";
const KINDS: Readonly<Record<VariableKind, number>> = { system: 1, user: 2 };

/** Simple data segment: three words behind it. */
const DATA_SEGMENT = Buffer.of(0x80, 0x03);
export const DATA_SEGMENT_BYTES = 8;

/** Up to so many variables of a kind, by their places in the list from 1 on. */
export function variablesRequest(from: number, count: number, kind: VariableKind): Buffer {
  const data = Buffer.alloc(10);
  data.writeUInt32LE(from, 0);
  data.writeUInt32LE(count, 4);
  data.writeUInt16LE(KINDS[kind], 8);
  return request(LIST_VARIABLES, instancePath(CLASS.names, 0), data);
}

const NOTHING = Buffer.alloc(0);

export const variableRequest = (instance: number): Buffer =>
  request(SERVICE.attributesAll, instancePath(CLASS.variable, instance), NOTHING);
export const typeRequest = (instance: number): Buffer => request(SERVICE.attributesAll, instancePath(CLASS.type, instance), NOTHING);

/** Asks for bytes of a variable's memory from an offset on. `path`: with the indices of an element. */
export function partRequest(path: readonly (string | number)[], offset: number, bytes: number): Buffer {
  const segment = Buffer.alloc(DATA_SEGMENT_BYTES);
  segment.set(DATA_SEGMENT);
  segment.writeUInt32LE(offset, 2);
  segment.writeUInt16LE(bytes, 6);
  return request(SERVICE.readTag, Buffer.concat([tagPath(path), segment]), Buffer.of(1, 0));
}

export interface ListedVariable {
  readonly instance: number;
  readonly name: string;
}

export interface VariablePage {
  readonly variables: readonly ListedVariable[];
  /** Entries, of other classes too. */
  readonly count: number;
  readonly hasMore: boolean;
}

const HEAD_BYTES = 4;
/** Instance, and length of what follows. */
const ENTRY_HEAD_BYTES = 6;
/** Class, instance and length of the name. */
const ENTRY_BYTES = 7;

/** A string: what about the page breaks its form. */
export function parseVariables(bytes: Buffer, at: number, end: number): VariablePage | string {
  if (end - at < HEAD_BYTES) return `a list of ${end - at} bytes`;
  const count = bytes.readUInt16LE(at);
  const variables: ListedVariable[] = [];
  let next = at + HEAD_BYTES;
  for (let i = 0; i < count; i++) {
    const from = next + ENTRY_HEAD_BYTES;
    const length = from <= end ? bytes.readUInt16LE(next + 4) : 0;
    next = from + length;
    if (length < ENTRY_BYTES || next > end) return `variable ${i} of ${count} goes beyond the end of the list`;
    const nameAt = from + ENTRY_BYTES;
    const nameBytes = bytes[nameAt - 1] ?? 0;
    if (nameAt + nameBytes > next) return `the name of variable ${i} of ${count} goes beyond its end`;
    if (bytes.readUInt16LE(from) !== CLASS.variable) continue;
    variables.push({ instance: bytes.readUInt32LE(from + 2), name: bytes.toString("utf8", nameAt, nameAt + nameBytes) });
  }
  return { variables, count, hasMore: bytes[at + 2] !== 0 };
}

/** A variable object or a variable type object. */
export interface Described {
  /** In memory; of an array: all of it. */
  readonly bytes: number;
  readonly code: number;
  /** Type code of the elements of an array. */
  readonly elementCode: number;
  readonly dimensions: readonly number[];
  readonly firsts: readonly number[];
}

export interface DescribedVariable extends Described {
  /** Instance of its type; 0: it has none. */
  readonly type: number;
}

export interface DescribedType extends Described {
  readonly name: string;
  readonly members: number;
  readonly crc: number;
  /** The next member of the same structure; 0: it is the last one. */
  readonly next: number;
  /** The type of a member that is a structure, or a structure's first member; 0: there is none. */
  readonly nested: number;
}

const MAX_DIMENSIONS = 3;
const MAX_ELEMENTS = 2 ** 31;

/** A string: what is wrong with them. */
function dimensionsAt(bytes: Buffer, at: number, count: number, end: number): readonly number[] | string {
  if (count > MAX_DIMENSIONS) return `an array of ${count} dimensions`;
  if (at + count * 4 > end) return "dimensions beyond the end";
  return Array.from({ length: count }, (_, i) => bytes.readUInt32LE(at + i * 4));
}

const areSizes = (sizes: readonly number[]): boolean =>
  sizes.every((size) => size >= 1) && sizes.reduce((so, n) => so * n, 1) <= MAX_ELEMENTS;

/** A reply of class 6B. A string: what about it breaks its form. */
export function parseVariable(bytes: Buffer, at: number, end: number): DescribedVariable | string {
  if (end - at < 8) return `a variable described in ${end - at} bytes`;
  const dimensions = dimensionsAt(bytes, at + 8, bytes[at + 6] ?? 0, end);
  if (typeof dimensions === "string") return dimensions;
  if (!areSizes(dimensions)) return `an array of ${dimensions.join(" x ")} elements`;
  const typeAt = at + 20 + dimensions.length * 4;
  if (typeAt + 4 > end) return `a variable described in ${end - at} bytes`;
  const firsts = dimensionsAt(bytes, typeAt + 4, dimensions.length, end);
  if (typeof firsts === "string") return firsts;
  const [code = 0, elementCode = 0] = bytes.subarray(at + 4, at + 6);
  return { bytes: bytes.readUInt32LE(at), code, elementCode, dimensions, firsts, type: bytes.readUInt32LE(typeAt) };
}

/** A reply of class 6C. A string: what about it breaks its form. */
export function parseType(bytes: Buffer, at: number, end: number): DescribedType | string {
  if (end - at < 8) return `a type described in ${end - at} bytes`;
  const dimensions = dimensionsAt(bytes, at + 8, bytes[at + 7] ?? 0, end);
  if (typeof dimensions === "string") return dimensions;
  if (!areSizes(dimensions)) return `an array of ${dimensions.join(" x ")} elements`;
  const rest = at + 8 + dimensions.length * 4;
  const nameAt = rest + 9;
  if (nameAt > end) return `a type described in ${end - at} bytes`;
  const nameBytes = bytes[nameAt - 1] ?? 0;
  const nextAt = nameAt + nameBytes + (nameBytes % 2 === 0 ? 1 : 0);
  if (nextAt + 8 > end) return `a type described in ${end - at} bytes with a name of ${nameBytes}`;
  const firsts = dimensionsAt(bytes, nextAt + 8, dimensions.length, end);
  if (typeof firsts === "string") return firsts;
  const [code = 0, elementCode = 0] = bytes.subarray(at + 5, at + 7);
  return {
    bytes: bytes.readUInt32LE(at),
    code,
    elementCode,
    dimensions,
    firsts,
    name: bytes.toString("utf8", nameAt, nameAt + nameBytes),
    members: bytes.readUInt16LE(rest),
    crc: bytes.readUInt16LE(rest + 6),
    next: bytes.readUInt32LE(nextAt),
    nested: bytes.readUInt32LE(nextAt + 4),
  };
}

/** The head of a value: type code, and of a structure its CRC. */
export interface ValueHead {
  readonly code: number;
  readonly crc: number | undefined;
  readonly dataAt: number;
}

/** A reply to Read Tag: one byte of type, one byte of length, so many more. A string: what about it breaks the form. W506, 8-6-1. */
export function parseValueHead(bytes: Buffer, at: number, end: number): ValueHead | string {
  const code = bytes[at];
  const more = bytes[at + 1];
  if (code === undefined || more === undefined || end - at < 2) return `a value of ${Math.max(0, end - at)} bytes`;
  const dataAt = at + 2 + more;
  if (dataAt > end) return `a value whose type has ${more} bytes, of which ${end - at - 2} came`;
  if (!isStructureCode(code)) return more === 0 ? { code, crc: undefined, dataAt } : `the type 0x${code.toString(16)} with ${more} bytes`;
  if (more !== 2) return `a structure whose mark has ${more} bytes`;
  return { code, crc: bytes.readUInt16LE(at + 2), dataAt };
}
