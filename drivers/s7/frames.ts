import type { Fence } from "../lib/exchange.ts";
import { isConnectRequest, isOnePacket, messageIn, PAYLOAD_AT } from "../lib/iso.ts";
import type { Area } from "./address.ts";

/** S7 messages, without TPKT and COTP: requests of two functions, and what answers them. All pure. */

const PROTOCOL_ID = 0x32;
const JOB = 1;
const ACK = 2;
const ACK_DATA = 3;
const REQUEST_HEADER_BYTES = 10;
/** With the two bytes of the error. */
const ANSWER_HEADER_BYTES = 12;
/** Of the reference in a message. */
export const REFERENCE_AT = 4;

const SETUP = 0xf0;
const READ_VAR = 0x04;
const SETUP_BYTES = 8;
const ITEM_BYTES = 12;
/** Return code, transport size, length. */
const ITEM_HEADER_BYTES = 4;
/** Function and number of items, in a request and in its answer. */
const READ_HEADER_BYTES = 2;

const BYTE = 0x02;
const COUNTER = 0x1c;
const TIMER = 0x1d;
/** Items of one job at most: common servers and older processors stop there. */
export const MAX_ITEMS = 20;
export const GOOD = 0xff;
/** The smallest message that is worked with: one item with some bytes. */
export const MIN_PDU_BYTES = 48;

const AREA_CODES: Readonly<Record<Area, number>> = { DB: 0x84, DI: 0x85, M: 0x83, I: 0x81, Q: 0x82, T: TIMER, C: COUNTER };
const AREAS: ReadonlySet<number> = new Set(Object.values(AREA_CODES));
const isCounted = (area: Area): boolean => area === "T" || area === "C";

/** A range of one area: bytes, or timers or counters. */
export interface Range {
  readonly area: Area;
  readonly block: number;
  readonly start: number;
  readonly length: number;
}

/** What a range has in an answer: two bytes for each timer or counter. */
export const bytesOf = ({ area, length }: Pick<Range, "area" | "length">): number => (isCounted(area) ? length * 2 : length);

/** What an item with so many bytes takes of an answer. */
export const answerBytes = (bytes: number): number => ITEM_HEADER_BYTES + bytes + (bytes & 1);

/** What is left for items in a request and in its answer. */
export const itemsRoom = (pduBytes: number): { readonly requestItems: number; readonly answerBytes: number } => ({
  requestItems: Math.floor((pduBytes - REQUEST_HEADER_BYTES - READ_HEADER_BYTES) / ITEM_BYTES),
  answerBytes: pduBytes - ANSWER_HEADER_BYTES - READ_HEADER_BYTES,
});

/** The most that one item can bring. */
export const maxItemBytes = (pduBytes: number): number => itemsRoom(pduBytes).answerBytes - ITEM_HEADER_BYTES;

/** What the two ends agree on. */
export interface Granted {
  /** Of a message, from the protocol id on. */
  readonly pduBytes: number;
  /** Jobs under way at once. */
  readonly jobs: number;
}

export function setupRequest(reference: number, { pduBytes, jobs }: Granted): Buffer {
  const message = Buffer.alloc(REQUEST_HEADER_BYTES + SETUP_BYTES);
  putHeader(message, reference, SETUP_BYTES);
  message[REQUEST_HEADER_BYTES] = SETUP;
  message.writeUInt16BE(jobs, REQUEST_HEADER_BYTES + 2);
  message.writeUInt16BE(jobs, REQUEST_HEADER_BYTES + 4);
  message.writeUInt16BE(pduBytes, REQUEST_HEADER_BYTES + 6);
  return message;
}

/** Every range is one item, read as bytes: controllers answer bits and numbers in different ways. */
export function readRequest(reference: number, ranges: readonly Range[]): Buffer {
  const parameterBytes = READ_HEADER_BYTES + ranges.length * ITEM_BYTES;
  const message = Buffer.alloc(REQUEST_HEADER_BYTES + parameterBytes);
  putHeader(message, reference, parameterBytes);
  message[REQUEST_HEADER_BYTES] = READ_VAR;
  message[REQUEST_HEADER_BYTES + 1] = ranges.length;
  let at = REQUEST_HEADER_BYTES + READ_HEADER_BYTES;
  for (const { area, block, start, length } of ranges) {
    // A variable specification of 10 bytes in the syntax S7ANY.
    message[at] = 0x12;
    message[at + 1] = ITEM_BYTES - 2;
    message[at + 2] = 0x10;
    message[at + 3] = isCounted(area) ? AREA_CODES[area] : BYTE;
    message.writeUInt16BE(length, at + 4);
    message.writeUInt16BE(block, at + 6);
    message[at + 8] = AREA_CODES[area];
    message.writeUIntBE(isCounted(area) ? start : start * 8, at + 9, 3);
    at += ITEM_BYTES;
  }
  return message;
}

/** The ranges of a read, as `readRequest` writes them; undefined: the job is a set-up. Of messages that the fence lets pass. */
export function rangesIn(message: Buffer): readonly Range[] | undefined {
  if (message[REQUEST_HEADER_BYTES] !== READ_VAR) return undefined;
  return Array.from({ length: message[REQUEST_HEADER_BYTES + 1] ?? 0 }, (_, i) => {
    const at = REQUEST_HEADER_BYTES + READ_HEADER_BYTES + i * ITEM_BYTES;
    const area = (Object.keys(AREA_CODES) as Area[]).find((one) => AREA_CODES[one] === message[at + 8]) ?? "DB";
    const start = message.readUIntBE(at + 9, 3);
    return { area, block: message.readUInt16BE(at + 6), start: isCounted(area) ? start : start / 8, length: message.readUInt16BE(at + 4) };
  });
}

/** The first item of an answer to a read, by its return code, and how many there are; undefined: it answers no read. */
export function firstItem({ message, parameterAt, dataAt, end }: Answer): { readonly code: number; readonly items: number } | undefined {
  if (dataAt - parameterAt < READ_HEADER_BYTES || message[parameterAt] !== READ_VAR || dataAt >= end) return undefined;
  return { code: message[dataAt] ?? 0, items: message[parameterAt + 1] ?? 0 };
}

function putHeader(message: Buffer, reference: number, parameterBytes: number): void {
  message[0] = PROTOCOL_ID;
  message[1] = JOB;
  message.writeUInt16BE(reference, REFERENCE_AT);
  message.writeUInt16BE(parameterBytes, 6);
}

/** Only connect requests, set-ups and reads pass, each whole, in one packet or in several. */
export const fence: Fence = (frame) => {
  // Most messages are one packet, and are looked at where they are.
  if (isOnePacket(frame)) return checkMessage(frame, PAYLOAD_AT);
  if (isConnectRequest(frame)) return true;
  const message = messageIn(frame);
  return message ? checkMessage(message, 0) : "bytes that are not one whole S7 message";
};

/** True: the message that begins at `start` and ends with the bytes only reads; else what it is. */
function checkMessage(bytes: Uint8Array, start: number): true | string {
  const parameterBytes = word(bytes, start + 6);
  if (bytes[start] !== PROTOCOL_ID || bytes[start + 1] !== JOB || word(bytes, start + 2) !== 0) return "an S7 message that is not a job";
  if (bytes.length - start !== REQUEST_HEADER_BYTES + parameterBytes || word(bytes, start + 8) !== 0)
    return "an S7 job with data or a wrong length";
  const code = bytes[start + REQUEST_HEADER_BYTES];
  if (code === SETUP) return parameterBytes === SETUP_BYTES || `a set-up of ${parameterBytes} bytes`;
  if (code !== READ_VAR) return `S7 function 0x${(code ?? 0).toString(16).padStart(2, "0")}`;
  const items = bytes[start + REQUEST_HEADER_BYTES + 1] ?? 0;
  if (items < 1 || items > MAX_ITEMS || parameterBytes !== READ_HEADER_BYTES + items * ITEM_BYTES) return `a read of ${items} items`;
  for (let i = 0; i < items; i++) {
    const at = start + REQUEST_HEADER_BYTES + READ_HEADER_BYTES + i * ITEM_BYTES;
    const isItem = bytes[at] === 0x12 && bytes[at + 1] === ITEM_BYTES - 2 && bytes[at + 2] === 0x10;
    const area = bytes[at + 8] ?? 0;
    if (!isItem || !AREAS.has(area) || bytes[at + 3] !== (area === TIMER || area === COUNTER ? area : BYTE)) return `item ${i} of a read`;
  }
  return true;
}

/** An answer's head; the message has what its lengths say. */
export interface Answer {
  readonly message: Buffer;
  readonly reference: number;
  /** Error class and code; 0: none. */
  readonly error: number;
  readonly parameterAt: number;
  readonly dataAt: number;
  readonly end: number;
}

/** Undefined: a message that answers nothing (a job, a diagnostic event); a string: what about it breaks the protocol. */
export function parseAnswer(message: Buffer): Answer | undefined | string {
  if (message[0] !== PROTOCOL_ID) return `protocol id 0x${(message[0] ?? 0).toString(16)} in an answer, it must be 0x32`;
  const kind = message[1];
  if (kind !== ACK && kind !== ACK_DATA) return undefined;
  if (message.length < ANSWER_HEADER_BYTES) return `an answer of ${message.length} bytes`;
  const parameterAt = ANSWER_HEADER_BYTES;
  const dataAt = parameterAt + message.readUInt16BE(6);
  const end = dataAt + message.readUInt16BE(8);
  if (end > message.length) return `an answer of ${message.length} bytes whose lengths make ${end}`;
  return { message, reference: message.readUInt16BE(REFERENCE_AT), error: message.readUInt16BE(10), parameterAt, dataAt, end };
}

/** A string: it does not answer a set-up. At most what was asked for counts, and one job at least. */
export function parseSetup({ message, parameterAt, dataAt }: Answer, asked: Granted): Granted | string {
  if (dataAt - parameterAt < SETUP_BYTES || message[parameterAt] !== SETUP) return "an answer without parameters to the set-up";
  const jobs = Math.min(message.readUInt16BE(parameterAt + 2), message.readUInt16BE(parameterAt + 4), asked.jobs);
  const pduBytes = message.readUInt16BE(parameterAt + 6);
  if (pduBytes < MIN_PDU_BYTES) return `messages of ${pduBytes} bytes are granted, fewer than ${MIN_PDU_BYTES}`;
  return { pduBytes: Math.min(pduBytes, asked.pduBytes), jobs: Math.max(1, jobs) };
}

/** Of each item of an answer: its return code, and where its bytes begin. Reused: it is filled by `walkItems`. */
export interface ItemResults {
  readonly codes: Uint8Array;
  readonly dataAt: Int32Array;
  /** Bytes that the device says it sent, where they are not those that were asked for; 0 elsewhere. */
  readonly miscounts: Int32Array;
}

export const emptyResults = (items: number): ItemResults => ({
  codes: new Uint8Array(items),
  dataAt: new Int32Array(items),
  miscounts: new Int32Array(items),
});

/**
 * Fills in what the answer says of the items of a read; `sizes` are the bytes that each was asked for. Gives the number of items that were
 * answered, which may be smaller than that of those asked for; a string: what about the answer breaks the protocol.
 */
export function walkItems({ message, parameterAt, dataAt, end }: Answer, sizes: readonly number[], results: ItemResults): number | string {
  if (dataAt - parameterAt < READ_HEADER_BYTES || message[parameterAt] !== READ_VAR) return "an answer without parameters to a read";
  const answered = message[parameterAt + 1] ?? 0;
  if (answered > sizes.length) return `${answered} items answered a read of ${sizes.length}`;
  let at = dataAt;
  for (let i = 0; i < answered; i++) {
    if (at + ITEM_HEADER_BYTES > end) return `item ${i} of ${answered} is missing in an answer`;
    const code = message[at] ?? 0;
    const size = sizes[i] ?? 0;
    results.codes[i] = code;
    results.miscounts[i] = 0;
    results.dataAt[i] = at + ITEM_HEADER_BYTES;
    const announced = code === GOOD ? announcedBytes(message[at + 1] ?? 0, message.readUInt16BE(at + 2), size) : 0;
    at += ITEM_HEADER_BYTES;
    // Whatever the length of an item without data says, nothing follows it.
    if (code !== GOOD) continue;
    if (announced !== size) results.miscounts[i] = announced === 0 ? -1 : announced;
    at += announced;
    if (at > end) return `item ${i} of an answer goes ${at - end} bytes beyond its end`;
    if ((announced & 1) === 1 && i < answered - 1) at++;
  }
  if (answered < sizes.length && end - at > 1)
    return `${answered} items answered a read of ${sizes.length}, and ${end - at} bytes follow them`;
  return answered;
}

/** Bits for the transport sizes 3 to 5, bytes for the others; servers differ in both, so that the length that fits what was asked counts. */
function announcedBytes(transport: number, length: number, asked: number): number {
  if (length === asked && transport !== 0) return asked;
  const isBits = transport >= 3 && transport <= 6;
  return isBits ? (length + 7) >> 3 : length;
}

/** Messages of a device are at most this long: what was negotiated, and what servers send that do not keep to it. */
export const MAX_MESSAGE_BYTES = 8192;

function word(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
}
