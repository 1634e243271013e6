import type { Fence } from "../lib/exchange.ts";

// MODBUS Messaging on TCP/IP Implementation Guide V1.0b, 3.1.3: transaction, protocol 0, length of what follows, unit.
const HEADER_BYTES = 7;
const LENGTH_AT = 4;
/** Unit id and PDU (at most 253 bytes); the PDU has a function code at least. */
const MIN_LENGTH = 2;
const MAX_LENGTH = 254;
export const MAX_FRAME_BYTES = 6 + MAX_LENGTH;
const READ_REQUEST_BYTES = 12;
const FILE_REQUEST_BYTES = 16;
const IDENTIFY_BYTES = 11;
/** Behind the byte that counts it. */
const DATA_AT = 9;
/** Behind the length and the reference type of the one sub-answer. V1.1b3, 6.14. */
const FILE_DATA_AT = 11;
const REFERENCE_TYPE = 6;
/** Read file record, read device identification (function and MEI type). V1.1b3, 6.14 and 6.21. */
const FILE = 20;
const IDENTIFY = 43;
const MEI = 14;
/** Basic identification, as a stream from the given object on. */
const BASIC = 1;

export type FunctionCode = 1 | 2 | 3 | 4 | 20;
export type Area = "holding" | "input" | "coil" | "discrete" | "file";

// MODBUS Application Protocol V1.1b3, 6.1 to 6.4 and 6.14.
export const FUNCTION_OF: Readonly<Record<Area, FunctionCode>> = { coil: 1, discrete: 2, holding: 3, input: 4, file: FILE };
export const AREA_WORDS: Readonly<Record<FunctionCode, string>> = {
  1: "coils",
  2: "discrete inputs",
  3: "holding registers",
  4: "input registers",
  20: "file records",
};
/** Coils or registers in one read, by function code; records as the answer's length of 0xF5 bytes lets them. */
export const MAX_COUNT: Readonly<Record<FunctionCode, number>> = { 1: 2000, 2: 2000, 3: 125, 4: 125, 20: 121 };
/** Registers of 32 bits in one read: the data of an answer has 250 bytes. */
export const MAX_WIDE_COUNT = 62;
/** Addresses run from 0 to 65535 in each area. */
export const ADDRESS_SPACE = 65_536;
/** Records of a file run from 0 to 9999. V1.1b3, 6.14. */
export const RECORD_SPACE = 10_000;
/** Bytes that a register of 32 bits takes in an answer, and any other one. */
const [WIDE_BYTES, REGISTER_BYTES] = [4, 2];

export const isFunctionCode = (code: number): code is FunctionCode => code === 1 || code === 2 || code === 3 || code === 4 || code === FILE;
const readsBits = (code: number): boolean => code === 1 || code === 2;

/** A read as it goes into a request. */
export interface Wanted {
  readonly unit: number;
  readonly functionCode: FunctionCode;
  readonly start: number;
  readonly count: number;
  /** Number of the file, 1 to 65535. Absent: the read is not of a file. */
  readonly file?: number | undefined;
}

/**
 * A read of `count` coils, registers or records from `start`; `transaction` is 0 to 65535. MODBUS Application Protocol V1.1b3, 6.1 to 6.4 and
 * 6.14. Pure.
 */
export function requestFrame(transaction: number, { unit, functionCode, start, count, file = 0 }: Wanted): Buffer {
  if (functionCode === FILE)
    return framed(transaction, unit, [FILE, 7, REFERENCE_TYPE, ...bytesOf(file), ...bytesOf(start), ...bytesOf(count)]);
  const frame = Buffer.allocUnsafe(READ_REQUEST_BYTES);
  frame.writeUInt16BE(transaction, 0);
  frame.writeUInt16BE(0, 2);
  frame.writeUInt16BE(READ_REQUEST_BYTES - 6, LENGTH_AT);
  frame[6] = unit;
  frame[HEADER_BYTES] = functionCode;
  frame.writeUInt16BE(start, 8);
  frame.writeUInt16BE(count, 10);
  return frame;
}

const bytesOf = (value: number): readonly [number, number] => [value >> 8, value & 0xff];

const framed = (transaction: number, unit: number, pdu: readonly number[]): Buffer =>
  Buffer.from([...bytesOf(transaction), 0, 0, ...bytesOf(pdu.length + 1), unit, ...pdu]);

/** A request for the basic identification of a device, from this object on. V1.1b3, 6.21. Pure. */
export const identifyFrame = (transaction: number, unit: number, object: number): Buffer =>
  framed(transaction, unit, [IDENTIFY, MEI, BASIC, object]);

/** Length of the frame that begins at `start`: see `Framing.frameLength`. */
export function frameLength(bytes: Buffer, start: number): number | undefined | string {
  if (bytes.length - start < LENGTH_AT + 2) return undefined;
  const protocol = bytes.readUInt16BE(start + 2);
  if (protocol !== 0) return `protocol id ${protocol} in an answer, it must be 0`;
  const length = bytes.readUInt16BE(start + LENGTH_AT);
  if (length < MIN_LENGTH || length > MAX_LENGTH)
    return `length ${length} in the header of an answer, it must be ${MIN_LENGTH} to ${MAX_LENGTH}`;
  return 6 + length;
}

/** Only whole, well-formed requests of the functions 1 to 4, 20 and 43/14 pass: they read and cannot write. */
export const fence: Fence = (frame) => {
  const code = frame[HEADER_BYTES];
  if (code === FILE) return fileFence(frame);
  if (code === IDENTIFY) return identifyFence(frame);
  if (code === undefined || !isFunctionCode(code)) return `function ${code ?? "(none)"} on Modbus TCP`;
  if (frame.length !== READ_REQUEST_BYTES) return `function ${code} with ${frame.length} bytes instead of ${READ_REQUEST_BYTES}`;
  if (word(frame, 2) !== 0 || word(frame, LENGTH_AT) !== READ_REQUEST_BYTES - 6) return `function ${code} with a wrong header`;
  const count = word(frame, 10);
  if (count < 1 || count > MAX_COUNT[code] || word(frame, 8) + count > ADDRESS_SPACE)
    return `function ${code} for ${count} ${AREA_WORDS[code]} from ${word(frame, 8)}`;
  return true;
};

function hasHeader(frame: Uint8Array, bytes: number): boolean {
  return frame.length === bytes && word(frame, 2) === 0 && word(frame, LENGTH_AT) === bytes - 6;
}

/** One sub-request, of one group of records. */
function fileFence(frame: Uint8Array): true | string {
  const [start, count] = [word(frame, 12), word(frame, 14)];
  if (!hasHeader(frame, FILE_REQUEST_BYTES) || frame[8] !== 7 || frame[9] !== REFERENCE_TYPE || word(frame, 10) === 0)
    return `function ${FILE} in another form than one group of records`;
  if (count < 1 || count > MAX_COUNT[FILE] || start + count > RECORD_SPACE) return `function ${FILE} for ${count} records from ${start}`;
  return true;
}

function identifyFence(frame: Uint8Array): true | string {
  if (hasHeader(frame, IDENTIFY_BYTES) && frame[8] === MEI && frame[9] === BASIC) return true;
  return `function ${IDENTIFY} in another form than the basic device identification`;
}

/**
 * Breach of the protocol in a whole answer to a request that the fence let pass; undefined: nothing. How much data it brings is not looked
 * at, as long as the answer agrees with itself: see `miscount`. Units 0 and 255 mean the device itself,
 * and some devices answer so whatever was asked.
 */
export function wrongAnswer(request: Uint8Array, answer: Uint8Array): string | undefined {
  if (isSame(request, answer)) return "the request itself came back";
  const asked = request[6];
  const answered = answer[6];
  if (answered !== asked && answered !== 0 && answered !== 255) return `unit ${answered} answered a request to unit ${asked}`;
  const wanted = request[HEADER_BYTES] ?? 0;
  const code = answer[HEADER_BYTES] ?? 0;
  if (code === (wanted | 0x80)) return answer.length === DATA_AT ? undefined : `an exception of ${answer.length} bytes, it must have 9`;
  if (code !== wanted) return `function ${code} answered a request of function ${wanted}`;
  if (code === IDENTIFY)
    return answer[8] === MEI && answer[9] === BASIC ? undefined : `MEI type ${answer[8] ?? "(none)"} answered a request of type ${MEI}`;
  if (code === FILE && (answer[9] !== (answer[8] ?? 0) - 1 || answer[10] !== REFERENCE_TYPE))
    return `an answer of function ${FILE} with more than one group of records, or with another reference type than ${REFERENCE_TYPE}`;
  if (answer.length >= DATA_AT && answer[8] === answer.length - DATA_AT) return undefined;
  return `${answer[8] ?? 0} bytes announced and ${Math.max(0, answer.length - DATA_AT)} sent for ${wordsOf(request)}, it must be ${dataBytes(request)}`;
}

/** True: an echo. As the answer to a read of 17 to 24 coils from 0x0300 on, its bytes would fit. */
const isSame = (request: Uint8Array, answer: Uint8Array): boolean =>
  request.length === answer.length && request.every((byte, at) => byte === answer[at]);

/**
 * An answer that is nothing wrong with but that it holds more or less than was asked for, as from devices that count registers wrongly;
 * in words, undefined: it holds what was asked for. Which register its data belongs to cannot be known.
 */
export function miscount(request: Uint8Array, answer: Uint8Array, isWide = false): string | undefined {
  const bytes = dataBytes(request, isWide);
  if (isException(answer) || answer[HEADER_BYTES] === IDENTIFY || answer[8] === bytes) return undefined;
  return `the device sent ${answer[8] ?? 0} bytes for ${wordsOf(request)}, it must be ${bytes}`;
}

const isException = (answer: Uint8Array): boolean => ((answer[HEADER_BYTES] ?? 0) & 0x80) !== 0;

/** The exception code of an answer that breaks nothing; undefined: it is none. V1.1b3, 7. */
export const exceptionOf = (answer: Uint8Array): number | undefined => (isException(answer) ? (answer[DATA_AT - 1] ?? 0) : undefined);

/** The data of an answer that breaks nothing and holds what was asked for; a view of it. */
export const dataOf = (answer: Buffer): Buffer => answer.subarray(answer[HEADER_BYTES] === FILE ? FILE_DATA_AT : DATA_AT);

/** Objects of an identification by number: 0 vendor, 1 product code, 2 revision; and the object to ask on from. V1.1b3, 6.21. */
export interface Identified {
  readonly objects: ReadonlyMap<number, string>;
  readonly next: number | undefined;
}

/**
 * The objects of an answer that breaks nothing; undefined: they do not fill it. Where more are to follow, some devices count those too. Pure.
 */
export function identifiedBy(answer: Buffer): Identified | undefined {
  if (answer.length < 14) return undefined;
  const objects = new Map<number, string>();
  let at = 14;
  for (let left = answer.readUInt8(13); left > 0 && (objects.size === 0 || at < answer.length); left--) {
    const [id, length] = [answer[at], answer[at + 1]];
    if (id === undefined || length === undefined || at + 2 + length > answer.length) return undefined;
    objects.set(id, answer.toString("latin1", at + 2, at + 2 + length));
    at += 2 + length;
  }
  if (at !== answer.length) return undefined;
  return { objects, next: answer[11] === 0xff ? answer[12] : undefined };
}

/** Byte count of an answer with the data of this request. Pure. */
export function dataBytes(request: Uint8Array, isWide = false): number {
  const code = request[HEADER_BYTES] ?? 0;
  const count = countOf(request);
  if (readsBits(code)) return Math.ceil(count / 8);
  return count * (isWide ? WIDE_BYTES : REGISTER_BYTES) + (code === FILE ? FILE_DATA_AT - DATA_AT : 0);
}

const countOf = (request: Uint8Array): number => word(request, request[HEADER_BYTES] === FILE ? 14 : 10);

function wordsOf(request: Uint8Array): string {
  const code = request[HEADER_BYTES] ?? 0;
  return `${countOf(request)} ${isFunctionCode(code) ? AREA_WORDS[code] : "values"}`;
}

/** The transaction id of a frame. */
export const transactionOf = (frame: Uint8Array): number => word(frame, 0);

function word(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
}
