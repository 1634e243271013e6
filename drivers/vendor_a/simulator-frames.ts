/*
 * EtherNet/IP as a device's own end sees it: encapsulation (ODVA volume 2, chapter 2), the common packet format, and CIP requests,
 * paths and replies (ODVA volume 1, chapter 2 and appendix C). Little-endian, but for addresses of IP.
 */

import type { Cut } from "../../simulators/kit/framed-connection.ts";

export const ENCAPSULATION_HEADER = 24;
/** ODVA volume 2, 2-3.1: the longest payload of one frame. */
const MAX_PAYLOAD = 65_511;

export const COMMANDS = {
  listServices: 0x0004,
  listIdentity: 0x0063,
  registerSession: 0x0065,
  unregisterSession: 0x0066,
  sendRequest: 0x006f,
  sendUnit: 0x0070,
} as const;

/** Status of the encapsulation header. */
export const ENCAPSULATION_STATUS = {
  invalidCommand: 0x01,
  noMemory: 0x02,
  incorrectData: 0x03,
  invalidSession: 0x64,
  invalidLength: 0x65,
  unsupportedRevision: 0x69,
} as const;

export interface Encapsulated {
  readonly command: number;
  readonly session: number;
  readonly status: number;
  readonly context: Buffer;
  readonly payload: Buffer;
}

export const cutFrame: Cut = (bytes) => {
  if (bytes.length < ENCAPSULATION_HEADER) return "more";
  const length = bytes.readUInt16LE(2);
  return length > MAX_PAYLOAD ? "wrong" : ENCAPSULATION_HEADER + length;
};

export const encapsulatedIn = (frame: Buffer): Encapsulated => ({
  command: frame.readUInt16LE(0),
  session: frame.readUInt32LE(4),
  status: frame.readUInt32LE(8),
  context: frame.subarray(12, 20),
  payload: frame.subarray(ENCAPSULATION_HEADER),
});

export function encapsulate({ command, session, status, context, payload }: Encapsulated): Buffer {
  const header = Buffer.alloc(ENCAPSULATION_HEADER);
  header.writeUInt16LE(command, 0);
  header.writeUInt16LE(payload.length, 2);
  header.writeUInt32LE(session, 4);
  header.writeUInt32LE(status, 8);
  header.set(context, 12);
  return Buffer.concat([header, payload]);
}

const [NULL_ADDRESS, CONNECTED_ADDRESS, CONNECTED_DATA, UNCONNECTED_DATA] = [0x0000, 0x00a1, 0x00b1, 0x00b2];

/** What SendRRData and SendUnitData carry. */
export type Carried =
  | { readonly kind: "unconnected"; readonly message: Buffer }
  | { readonly kind: "connected"; readonly connection: number; readonly sequence: number; readonly message: Buffer };

/** Two items behind interface handle and time-out; undefined: it is anything else. */
export function parseCarried(payload: Buffer): Carried | undefined {
  if (payload.length < 16 || payload.readUInt32LE(0) !== 0 || payload.readUInt16LE(6) !== 2) return undefined;
  const [address, addressBytes] = [payload.readUInt16LE(8), payload.readUInt16LE(10)];
  const at = 12 + addressBytes;
  if (payload.length < at + 4) return undefined;
  const [data, dataBytes] = [payload.readUInt16LE(at), payload.readUInt16LE(at + 2)];
  const message = payload.subarray(at + 4);
  if (message.length !== dataBytes) return undefined;
  if (address === NULL_ADDRESS && addressBytes === 0 && data === UNCONNECTED_DATA) return { kind: "unconnected", message };
  if (address !== CONNECTED_ADDRESS || addressBytes !== 4 || data !== CONNECTED_DATA || dataBytes < 2) return undefined;
  return { kind: "connected", connection: payload.readUInt32LE(12), sequence: message.readUInt16LE(0), message: message.subarray(2) };
}

export function carry(carried: Carried): Buffer {
  if (carried.kind === "unconnected") {
    const head = Buffer.alloc(16);
    head.writeUInt16LE(2, 6);
    head.writeUInt16LE(UNCONNECTED_DATA, 12);
    head.writeUInt16LE(carried.message.length, 14);
    return Buffer.concat([head, carried.message]);
  }
  const head = Buffer.alloc(22);
  head.writeUInt16LE(2, 6);
  head.writeUInt16LE(CONNECTED_ADDRESS, 8);
  head.writeUInt16LE(4, 10);
  head.writeUInt32LE(carried.connection, 12);
  head.writeUInt16LE(CONNECTED_DATA, 16);
  head.writeUInt16LE(carried.message.length + 2, 18);
  head.writeUInt16LE(carried.sequence, 20);
  return Buffer.concat([head, carried.message]);
}

export type Segment =
  | { readonly kind: "symbol"; readonly name: string }
  | { readonly kind: "class" | "instance" | "attribute" | "element" | "point"; readonly value: number }
  /** A simple data segment of Omron's: a part of a variable's memory. */
  | { readonly kind: "data"; readonly offset: number; readonly bytes: number }
  | { readonly kind: "port"; readonly port: number; readonly link: number | string };

const LOGICAL: Readonly<Record<number, "class" | "instance" | "attribute" | "element" | "point">> = {
  32: "class",
  36: "instance",
  40: "element",
  44: "point",
  48: "attribute",
};

/** A padded path (volume 1, C-1.4); undefined: it cannot be taken apart. */
export function parsePath(path: Buffer): readonly Segment[] | undefined {
  const segments: Segment[] = [];
  let at = 0;
  while (at < path.length) {
    const found = segmentAt(path, at);
    if (!found || found.end > path.length) return undefined;
    segments.push(found.segment);
    at = found.end;
  }
  return segments;
}

function segmentAt(path: Buffer, at: number): { readonly segment: Segment; readonly end: number } | undefined {
  const head = path[at] ?? 0;
  if (head === 0x91) {
    const length = path[at + 1] ?? 0;
    if (length === 0) return undefined;
    const name = path.toString("utf8", at + 2, at + 2 + length);
    return { segment: { kind: "symbol", name }, end: at + 2 + length + (length % 2) };
  }
  if (head === 0x80 && path[at + 1] === 3 && at + 8 <= path.length)
    return { segment: { kind: "data", offset: path.readUInt32LE(at + 2), bytes: path.readUInt16LE(at + 6) }, end: at + 8 };
  if (head < 0x20) return portAt(path, at, head);
  const kind = LOGICAL[head & 0xfc];
  const width = head & 3;
  if (!kind || width === 3) return undefined;
  if (width === 0) return { segment: { kind, value: path[at + 1] ?? 0 }, end: at + 2 };
  const end = at + (width === 1 ? 4 : 6);
  if (end > path.length) return undefined;
  return { segment: { kind, value: width === 1 ? path.readUInt16LE(at + 2) : path.readUInt32LE(at + 2) }, end };
}

/** Bit 4: the link is a text whose length comes first. */
function portAt(path: Buffer, at: number, head: number): { readonly segment: Segment; readonly end: number } | undefined {
  const port = head & 0x0f;
  if (port === 0 || port === 0x0f) return undefined;
  if ((head & 0x10) === 0) return { segment: { kind: "port", port, link: path[at + 1] ?? 0 }, end: at + 2 };
  const length = path[at + 1] ?? 0;
  const link = path.toString("latin1", at + 2, at + 2 + length);
  return { segment: { kind: "port", port, link }, end: at + 2 + length + (length % 2) };
}

/** For people and tests: `Program:Main.Rows[2,3].Speed`, `class 0x6b instance 7`, `port 1/0`. */
export function pathText(path: readonly Segment[]): string {
  let text = "";
  for (const [i, segment] of path.entries()) {
    const before = path[i - 1]?.kind;
    if (segment.kind === "symbol") text += `${text && "."}${segment.name}`;
    else if (segment.kind === "element")
      text = before === "element" ? `${text.slice(0, -1)},${segment.value}]` : `${text}[${segment.value}]`;
    else if (segment.kind === "port") text += `${text && " "}port ${segment.port}/${segment.link}`;
    else if (segment.kind === "data") text += `, ${segment.bytes} bytes from ${segment.offset}`;
    else text += `${text && " "}${segment.kind} ${segment.kind === "class" ? `0x${segment.value.toString(16)}` : segment.value}`;
  }
  return text;
}

export interface CipRequest {
  readonly service: number;
  readonly path: readonly Segment[];
  readonly data: Buffer;
  /** Bytes of the whole request. */
  readonly bytes: number;
}

/** Undefined: it is shorter than it says, or its path cannot be taken apart. */
export function parseRequest(message: Buffer): CipRequest | undefined {
  const end = 2 + (message[1] ?? 0) * 2;
  if (message.length < 2 || message.length < end) return undefined;
  const path = parsePath(message.subarray(2, end));
  return path && { service: message[0] ?? 0, path, data: message.subarray(end), bytes: message.length };
}

/** A general status with its extended words. */
export interface CipStatus {
  readonly general: number;
  readonly extended?: readonly number[];
}

export interface CipReply extends CipStatus {
  readonly data?: Buffer;
}

const REPLY_HEADER = 4;
const NO_DATA = Buffer.alloc(0);

export const replyBytes = ({ extended = [], data = NO_DATA }: CipReply): number => REPLY_HEADER + extended.length * 2 + data.length;

export function encodeReply(service: number, { general, extended = [], data = NO_DATA }: CipReply): Buffer {
  const head = Buffer.alloc(REPLY_HEADER + extended.length * 2);
  head[0] = service | 0x80;
  head[2] = general;
  head[3] = extended.length;
  for (const [i, value] of extended.entries()) head.writeUInt16LE(value, REPLY_HEADER + i * 2);
  return Buffer.concat([head, data]);
}

export const word = (value: number): Buffer => {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
};

export const doubleWord = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
