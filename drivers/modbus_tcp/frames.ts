import type { Fence } from "../lib/exchange.ts";

// MODBUS Messaging on TCP/IP Implementation Guide V1.0b, 3.1.3: transaction, protocol 0, length of what follows, unit.
const HEADER_BYTES = 7;
const LENGTH_AT = 4;
/** Unit id and PDU (at most 253 bytes); the PDU has a function code at least. */
const MIN_LENGTH = 2;
const MAX_LENGTH = 254;
export const MAX_FRAME_BYTES = 6 + MAX_LENGTH;
const READ_REQUEST_BYTES = 12;
/** Behind the byte that counts it. */
const DATA_AT = 9;

export type FunctionCode = 1 | 2 | 3 | 4;
export type Area = "holding" | "input" | "coil" | "discrete";

// MODBUS Application Protocol V1.1b3, 6.1 to 6.4.
export const FUNCTION_OF: Readonly<Record<Area, FunctionCode>> = { coil: 1, discrete: 2, holding: 3, input: 4 };
export const AREA_WORDS: Readonly<Record<FunctionCode, string>> = {
  1: "coils",
  2: "discrete inputs",
  3: "holding registers",
  4: "input registers",
};
/** Coils or registers in one read, by function code. */
export const MAX_COUNT: Readonly<Record<FunctionCode, number>> = { 1: 2000, 2: 2000, 3: 125, 4: 125 };
/** Addresses run from 0 to 65535 in each area. */
export const ADDRESS_SPACE = 65_536;

export const isFunctionCode = (code: number): code is FunctionCode => code === 1 || code === 2 || code === 3 || code === 4;
const readsBits = (code: number): boolean => code === 1 || code === 2;

/** A read of `count` coils or registers from `start`; `transaction` is 0 to 65535. MODBUS Application Protocol V1.1b3, 6.1 to 6.4. Pure. */
export function requestFrame(
  transaction: number,
  {
    unit,
    functionCode,
    start,
    count,
  }: { readonly unit: number; readonly functionCode: FunctionCode; readonly start: number; readonly count: number },
): Buffer {
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

/** Only whole, well-formed requests of function 1 to 4 pass: they read and cannot write. */
export const fence: Fence = (frame) => {
  const code = frame[HEADER_BYTES];
  if (code === undefined || !isFunctionCode(code)) return `function ${code ?? "(none)"} on Modbus TCP`;
  if (frame.length !== READ_REQUEST_BYTES) return `function ${code} with ${frame.length} bytes instead of ${READ_REQUEST_BYTES}`;
  if (word(frame, 2) !== 0 || word(frame, LENGTH_AT) !== READ_REQUEST_BYTES - 6) return `function ${code} with a wrong header`;
  const count = word(frame, 10);
  if (count < 1 || count > MAX_COUNT[code] || word(frame, 8) + count > ADDRESS_SPACE)
    return `function ${code} for ${count} ${AREA_WORDS[code]} from ${word(frame, 8)}`;
  return true;
};

/**
 * What breaks the protocol in a whole answer to a request that the fence let pass; undefined: nothing. How much data it brings is not looked
 * at, as long as the answer agrees with itself: see `miscount`. Units 0 and 255 mean the device itself,
 * and some devices answer so whatever was asked.
 */
export function wrongAnswer(request: Uint8Array, answer: Uint8Array): string | undefined {
  const asked = request[6];
  const answered = answer[6];
  if (answered !== asked && answered !== 0 && answered !== 255) return `unit ${answered} answered a request to unit ${asked}`;
  const wanted = request[HEADER_BYTES] ?? 0;
  const code = answer[HEADER_BYTES] ?? 0;
  if (code === (wanted | 0x80)) return answer.length === DATA_AT ? undefined : `an exception of ${answer.length} bytes, it must have 9`;
  if (code !== wanted) return `function ${code} answered a request of function ${wanted}`;
  if (answer.length >= DATA_AT && answer[8] === answer.length - DATA_AT) return undefined;
  return `${answer[8] ?? 0} bytes announced and ${Math.max(0, answer.length - DATA_AT)} sent for ${wordsOf(request)}, it must be ${dataBytes(request)}`;
}

/**
 * An answer that is nothing wrong with but that it holds more or less than was asked for, as from devices that count registers wrongly;
 * in words, undefined: it holds what was asked for. Which register its data belongs to cannot be known.
 */
export function miscount(request: Uint8Array, answer: Uint8Array): string | undefined {
  const bytes = dataBytes(request);
  if (isException(answer) || answer[8] === bytes) return undefined;
  return `the device sent ${answer[8] ?? 0} bytes for ${wordsOf(request)}, it must be ${bytes}`;
}

const isException = (answer: Uint8Array): boolean => ((answer[HEADER_BYTES] ?? 0) & 0x80) !== 0;

/** The exception code of an answer that breaks nothing; undefined: it is none. V1.1b3, 7. */
export const exceptionOf = (answer: Uint8Array): number | undefined => (isException(answer) ? (answer[DATA_AT - 1] ?? 0) : undefined);

/** The data of an answer that breaks nothing and holds what was asked for; a view of it. */
export const dataOf = (answer: Buffer): Buffer => answer.subarray(DATA_AT);

function dataBytes(request: Uint8Array): number {
  const count = word(request, 10);
  return readsBits(request[HEADER_BYTES] ?? 0) ? Math.ceil(count / 8) : count * 2;
}

function wordsOf(request: Uint8Array): string {
  const code = request[HEADER_BYTES] ?? 0;
  return `${word(request, 10)} ${isFunctionCode(code) ? AREA_WORDS[code] : "values"}`;
}

/** The transaction id of a frame. */
export const transactionOf = (frame: Uint8Array): number => word(frame, 0);

function word(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
}
