import type { Fence } from "../lib/exchange.ts";

// MODBUS Messaging on TCP/IP Implementation Guide V1.0b, 3.1.3: transaction, protocol 0, length of what follows, unit.
const HEADER_BYTES = 7;
const LENGTH_AT = 4;
/** Unit id and PDU (at most 253 bytes); the PDU has a function code at least. */
const MIN_LENGTH = 2;
const MAX_LENGTH = 254;
export const MAX_FRAME_BYTES = 6 + MAX_LENGTH;
const READ_REQUEST_BYTES = 12;

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
 * What is wrong with a whole answer to a request that the fence let pass; undefined: nothing.
 * Units 0 and 255 mean the device itself, and some devices answer so whatever was asked.
 */
export function wrongAnswer(request: Uint8Array, answer: Uint8Array): string | undefined {
  const [asked, answered] = [request[6], answer[6]];
  if (answered !== asked && answered !== 0 && answered !== 255) return `unit ${answered} answered a request to unit ${asked}`;
  const [wanted, code] = [request[HEADER_BYTES] ?? 0, answer[HEADER_BYTES] ?? 0];
  if (code === (wanted | 0x80)) return answer.length === 9 ? undefined : `an exception of ${answer.length} bytes, it must have 9`;
  if (code !== wanted) return `function ${code} answered a request of function ${wanted}`;
  const count = word(request, 10);
  const bytes = readsBits(code) ? Math.ceil(count / 8) : count * 2;
  if (answer[8] === bytes && answer.length === 9 + bytes) return undefined;
  return `${answer[8] ?? 0} bytes announced and ${Math.max(0, answer.length - 9)} sent for ${count} ${AREA_WORDS[wanted as FunctionCode]}, it must be ${bytes}`;
}

/** The transaction id of a frame. */
export const transactionOf = (frame: Uint8Array): number => word(frame, 0);

function word(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
}
