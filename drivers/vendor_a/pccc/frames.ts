/**
 * PCCC commands that read, and their replies. Rockwell 1770-6.5.16 (7-17, 8-3, 13-11) and 1770-6.5.16 as independent clients quote it; Execute
 * PCCC is service 4B of class 67. All pure.
 */

import { request } from "../cip.ts";
import { FILES } from "./functions.ts";

const OBJECT = Buffer.of(0x20, 0x67, 0x24, 0x01);
export const EXECUTE = 0x4b;
/** Vendor and serial number of the requester, behind their own length; a device gives them back. */
const REQUESTER = Buffer.of(7, 0xcc, 0x0c, 1, 0, 0, 0);
export const REQUESTER_AT = 2 + OBJECT.length;
/** CMD, STS and TNS. */
const HEAD_BYTES = 4;
/** Place of the number that an answer repeats, of a request in the envelope. */
export const ENVELOPE_TNS_AT = REQUESTER_AT + REQUESTER.length + 2;
/** Destination link and node, source link and node: in front of a command over DH+. */
export const DHP_HEADER_BYTES = 8;
export const DHP_TNS_AT = DHP_HEADER_BYTES + 2;

/** A number of up to 16 bits: one byte up to 254, else FF and two. 1770-6.5.16, 7-17 and 13-11. */
export const numberBytes = (value: number): readonly number[] => (value < 0xff ? [value] : [0xff, value & 0xff, value >> 8]);

const command = (code: number, data: readonly number[]): Buffer => Buffer.of(code, 0, 0, 0, ...data);

/** Elements of a file as an SLC or MicroLogix numbers them. */
export interface LogicalRead {
  readonly bytes: number;
  readonly file: number;
  /** See FileKind.code. */
  readonly code: number;
  readonly element: number;
  readonly sub: number;
}

/** Protected typed logical read with three address fields, 0F/A2. */
export const logicalRead = ({ bytes, file, code, element, sub }: LogicalRead): Buffer =>
  command(FILES.command, [FILES.logicalRead, bytes, ...numberBytes(file), code, ...numberBytes(element), ...numberBytes(sub)]);

/** Protected typed logical read with two fields, 0F/A1: for the directory, file 0. */
export const directoryRead = ({
  bytes,
  code,
  offset,
}: {
  readonly bytes: number;
  readonly code: number;
  readonly offset: number;
}): Buffer => command(FILES.command, [FILES.directoryRead, bytes, 0, code, ...numberBytes(offset)]);

/** Levels 2 (file), 3 (element) and, where there is one, 4 of a logical binary address; level 1, the data table, is the default. 13-11. */
const logicalAddress = (file: number, element: number): readonly number[] => [0x06, ...numberBytes(file), ...numberBytes(element)];

/** Elements of a file as a PLC-5 numbers them. */
export interface TypedRead {
  readonly file: number;
  readonly element: number;
  readonly count: number;
}

/** Typed read, 0F/68. */
export const typedRead = ({ file, element, count }: TypedRead): Buffer =>
  command(FILES.command, [FILES.typedRead, 0, 0, count & 0xff, count >> 8, ...logicalAddress(file, element), count & 0xff, count >> 8]);

/** Word range read, 0F/01; an even number of bytes. */
export const wordRangeRead = ({
  file,
  element,
  bytes,
}: {
  readonly file: number;
  readonly element: number;
  readonly bytes: number;
}): Buffer => command(FILES.command, [FILES.wordRangeRead, 0, 0, bytes >> 1, 0, ...logicalAddress(file, element), bytes]);

/** Diagnostic status, 06/03. */
export const diagnosticStatus = (): Buffer => command(FILES.diagnostic, [FILES.diagnosticStatus]);

/** A command in the envelope of CIP; its TNS is at ENVELOPE_TNS_AT. */
export const enveloped = (bytes: Uint8Array): Buffer => request(EXECUTE, OBJECT, Buffer.concat([REQUESTER, bytes]));

/** A command to a node of DH+, behind a connection to the channel; its TNS is at DHP_TNS_AT. */
export function toNode(node: number, bytes: Uint8Array): Buffer {
  const header = Buffer.alloc(DHP_HEADER_BYTES);
  header.writeUInt16LE(node, 2);
  return Buffer.concat([header, bytes]);
}

/** A reply; its data are `bytes` from `at` to before `end`. */
export interface FileReply {
  readonly bytes: Buffer;
  readonly at: number;
  readonly end: number;
  readonly status: number;
  /** With the status F0. */
  readonly extended: number | undefined;
}

const EXTENDED = 0xf0;
const ANSWERED = 0x40;

/** A reply to a command with this number. A string: what about it breaks the protocol. */
export function parseCommandReply(bytes: Buffer, from: number, end: number, asked: number, tns: number): FileReply | string {
  if (end - from < HEAD_BYTES) return `a PCCC reply of ${Math.max(0, end - from)} bytes`;
  const code = bytes[from] ?? 0;
  if (code !== (asked | ANSWERED)) return `PCCC command 0x${hex(code)} answers command 0x${hex(asked)}`;
  const answered = bytes.readUInt16LE(from + 2);
  if (answered !== tns) return `PCCC reply ${answered} answers request ${tns}`;
  const status = bytes[from + 1] ?? 0;
  const at = from + HEAD_BYTES;
  if (status !== EXTENDED) return { bytes, at, end, status, extended: undefined };
  if (at >= end) return "a PCCC reply with the status F0 and no extended status";
  return { bytes, at: at + 1, end, status, extended: bytes[at] };
}

/** Place of the PCCC reply in the data of a reply to Execute PCCC, behind the id of the requester; undefined: it has none. */
export function afterRequester(bytes: Buffer, at: number, end: number): number | undefined {
  const length = bytes[at] ?? 0;
  return at < end && length >= 1 && at + length <= end ? at + length : undefined;
}

/** Place of the PCCC reply in a message from DH+; undefined: it is too short. */
export const afterDhpHeader = (from: number, to: number): number | undefined =>
  to - from < DHP_HEADER_BYTES ? undefined : from + DHP_HEADER_BYTES;

/** The type of data in the reply to a typed read. */
export interface DataType {
  /** Type of an element. */
  readonly id: number;
  /** Bytes of one element. */
  readonly bytes: number;
  readonly isArray: boolean;
  /** The place where the data begin, and where they end. */
  readonly at: number;
  readonly end: number;
}

interface Parameter {
  readonly id: number;
  readonly size: number;
  readonly at: number;
}

const ARRAY = 9;
const INLINE = 8;
/** Bytes of an id and of a size, at most. */
const MAX_NUMBER_BYTES = 4;

/** The type/data parameter in front of the data of a typed read. A string: what about it breaks the protocol. 1770-6.5.16, 7-28 [clients quote it]. */
export function parseDataType(bytes: Buffer, from: number, end: number): DataType | string {
  const outer = parameterAt(bytes, from, end);
  if (typeof outer === "string") return outer;
  if (outer.id !== ARRAY) {
    if (outer.size === 0 || (end - outer.at) % outer.size !== 0 || end === outer.at)
      return `${end - outer.at} bytes of a type that has ${outer.size}`;
    return { id: outer.id, bytes: outer.size, isArray: false, at: outer.at, end };
  }
  if (outer.at + outer.size !== end) return `an array of ${outer.size} bytes in ${end - outer.at}`;
  const inner = parameterAt(bytes, outer.at, end);
  if (typeof inner === "string") return inner;
  if (inner.id === ARRAY) return "an array of arrays";
  if (inner.size === 0 || (end - inner.at) % inner.size !== 0) return `${end - inner.at} bytes of elements of ${inner.size}`;
  return { id: inner.id, bytes: inner.size, isArray: true, at: inner.at, end };
}

/** A flag byte, and id and size behind it where they have no room in it. */
function parameterAt(bytes: Buffer, from: number, end: number): Parameter | string {
  if (from >= end) return "a typed reply without a type";
  const flag = bytes[from] ?? 0;
  const id = numberAt(bytes, from + 1, end, flag >> 4);
  if (typeof id === "string") return id;
  const size = numberAt(bytes, id.at, end, flag & 0x0f);
  return typeof size === "string" ? size : { id: id.value, size: size.value, at: size.at };
}

function numberAt(bytes: Buffer, at: number, end: number, nibble: number): { readonly value: number; readonly at: number } | string {
  if (nibble < INLINE) return { value: nibble, at };
  const length = nibble - INLINE;
  if (length === 0 || length > MAX_NUMBER_BYTES) return `a number of ${length} bytes in a type`;
  if (at + length > end) return "a type that is cut off";
  return { value: bytes.readUIntLE(at, length), at: at + length };
}

const hex = (value: number): string => value.toString(16).padStart(2, "0");
