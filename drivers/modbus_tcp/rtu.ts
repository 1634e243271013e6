import type { Fence } from "../lib/exchange.ts";
import { dataBytes, fence as tcpFence } from "./frames.ts";

/**
 * Frames as on a serial line: unit, PDU, CRC with its low byte first (MODBUS over Serial Line V1.02, 2.5.1). They are made of frames of Modbus TCP and
 * into such, so that both framings are judged alike. All pure.
 */

/** Longest frame of a serial line: unit, PDU of 253 bytes at most, CRC. */
export const MAX_RTU_BYTES = 256;
/** Bytes that may begin a frame are held up to here; what comes before them is no frame. */
export const MAX_HELD_BYTES = 2 * MAX_RTU_BYTES;
const CRC_BYTES = 2;
const MIN_BYTES = 4;
const HEADER_BYTES = 6;

/** MODBUS over Serial Line V1.02, 6.2.2: polynomial 0xA001, from 0xFFFF. */
const CRC_TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >> 1) ^ 0xa001 : crc >> 1;
  return crc;
});

/** CRC of the bytes from `start` until before `end`, 0 to 65535. */
export function crcOf(bytes: Uint8Array, start = 0, end = bytes.length): number {
  let crc = 0xffff;
  for (let at = start; at < end; at++) crc = (crc >> 8) ^ (CRC_TABLE[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0);
  return crc;
}

/** Puts a CRC in place of the header. */
export function toRtu(frame: Uint8Array): Buffer {
  const rtu = Buffer.allocUnsafe(frame.length - HEADER_BYTES + CRC_BYTES);
  rtu.set(frame.subarray(HEADER_BYTES));
  rtu.writeUInt16LE(crcOf(rtu, 0, rtu.length - CRC_BYTES), rtu.length - CRC_BYTES);
  return rtu;
}

/** Puts a header with this transaction id in place of the CRC; undefined: the bytes are no whole frame, or their CRC is wrong. */
export function fromRtu(rtu: Uint8Array, transaction: number): Buffer | undefined {
  if (!hasCrc(rtu, 0, rtu.length)) return undefined;
  const frame = Buffer.alloc(HEADER_BYTES + rtu.length - CRC_BYTES);
  frame.writeUInt16BE(transaction, 0);
  frame.writeUInt16BE(rtu.length - CRC_BYTES, 4);
  frame.set(rtu.subarray(0, rtu.length - CRC_BYTES), HEADER_BYTES);
  return frame;
}

function hasCrc(bytes: Uint8Array, start: number, length: number): boolean {
  if (length < MIN_BYTES || length > MAX_RTU_BYTES) return false;
  const at = start + length - CRC_BYTES;
  return crcOf(bytes, start, at) === ((bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8));
}

/** Lets the requests pass that the fence of Modbus TCP lets pass, with a right CRC. */
export const rtuFence: Fence = (rtu) => {
  const frame = fromRtu(rtu, 0);
  return frame ? tcpFence(frame) : "bytes with a wrong CRC";
};

/** How far the search of an answer has come. */
export type RtuStep =
  /** The next `length` bytes: a frame, or what is none and lies before one. */
  | { readonly length: number; readonly isFrame: boolean }
  /** More bytes are needed. `isDamaged`: among those there is an answer whose CRC is wrong. */
  | { readonly length: undefined; readonly isDamaged: boolean };

/**
 * Looks from `start` on for the answer to this request (a frame of Modbus TCP; undefined: none is under way, and all that comes is no answer).
 * Where several frames could be meant, the first one counts that begins as the answer must: unit, function and byte count, or an exception of it.
 * Frames of other units, functions and sizes count only when they are whole and their CRC is right.
 */
export function nextRtu(bytes: Buffer, start: number, request: Uint8Array | undefined, isWide: boolean): RtuStep {
  const held = bytes.length - start;
  if (!request) return { length: held, isFrame: false };
  if (held > MAX_HELD_BYTES) return { length: held - MAX_HELD_BYTES, isFrame: false };
  let isDamaged = false;
  for (let at = start; at < bytes.length; at++) {
    const length = lengthAt(bytes, at);
    const isMeant = mayAnswer(bytes, at, request, isWide);
    if (length !== undefined && at + length <= bytes.length) {
      if (hasCrc(bytes, at, length)) return at === start ? { length, isFrame: true } : { length: at - start, isFrame: false };
      isDamaged ||= isMeant;
    } else if (isMeant) return { length: undefined, isDamaged };
  }
  return { length: undefined, isDamaged };
}

/** Length of an answer that begins here; undefined: not known yet, or it is of a function that is never asked for. */
function lengthAt(bytes: Uint8Array, at: number): number | undefined {
  const code = bytes[at + 1];
  if (code === undefined) return undefined;
  if (code >= 0x80) return 5;
  if ((code >= 1 && code <= 4) || code === 20) {
    const count = bytes[at + 2];
    return count === undefined ? undefined : 3 + count + CRC_BYTES;
  }
  return code === 43 ? identificationLength(bytes, at) : undefined;
}

/**
 * Unit, function, MEI type, three bytes of how much is told, the next object, and the objects, each with its length. V1.1b3, 6.21. Ends at a right
 * CRC before the last of them: some devices count those that are to follow too.
 */
function identificationLength(bytes: Uint8Array, at: number): number | undefined {
  const objects = bytes[at + 7];
  if (objects === undefined) return undefined;
  let length = 8;
  for (let left = objects; left > 0 && length <= MAX_RTU_BYTES; left--) {
    const value = bytes[at + length + 1];
    if (value === undefined) return undefined;
    length += 2 + value;
    if (left > 1 && at + length + CRC_BYTES <= bytes.length && hasCrc(bytes, at, length + CRC_BYTES)) break;
  }
  return length + CRC_BYTES;
}

/** True: the bytes that have come from here on are those that an answer to the request begins with. */
function mayAnswer(bytes: Uint8Array, at: number, request: Uint8Array, isWide: boolean): boolean {
  if (bytes[at] !== request[HEADER_BYTES]) return false;
  const [wanted, code, third] = [request[HEADER_BYTES + 1] ?? 0, bytes[at + 1], bytes[at + 2]];
  if (code === undefined || code === (wanted | 0x80)) return true;
  if (code !== wanted) return false;
  return third === undefined || third === (wanted === 43 ? request[HEADER_BYTES + 2] : dataBytes(request, isWide));
}
