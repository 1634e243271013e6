import { crc32 } from "node:zlib";
import type { ChecksumKind, ChecksumOf } from "../../src/model/profile.ts";

const BYTES: Readonly<Record<ChecksumKind, 1 | 2 | 4>> = {
  xor: 1,
  sum8: 1,
  lrc: 1,
  crc16_modbus: 2,
  crc16_ccitt: 2,
  crc16_xmodem: 2,
  crc32: 4,
};

/** The checksum of bytes as a number. Parameters of the CRCs as in the catalogue of parametrised CRC algorithms (G. Cook). Pure. */
export function checksumOf(kind: ChecksumKind, bytes: Uint8Array): number {
  switch (kind) {
    case "xor":
      return bytes.reduce((sum, byte) => sum ^ byte, 0);
    case "sum8":
      return bytes.reduce((sum, byte) => (sum + byte) & 0xff, 0);
    case "lrc":
      return -bytes.reduce((sum, byte) => (sum + byte) & 0xff, 0) & 0xff;
    case "crc16_modbus":
      return reflected16(bytes);
    case "crc16_ccitt":
      return straight16(bytes, 0xffff);
    case "crc16_xmodem":
      return straight16(bytes, 0);
    case "crc32":
      return crc32(bytes);
  }
}

/** CRC-16/MODBUS: 0x8005 reflected, from FFFF. */
function reflected16(bytes: Uint8Array): number {
  let crc = 0xffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >> 1) ^ 0xa001 : crc >> 1;
  }
  return crc;
}

/** CRC-16 with 0x1021: CCITT-FALSE from FFFF, XMODEM from 0. */
function straight16(bytes: Uint8Array, from: number): number {
  let crc = from;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
  }
  return crc;
}

/** Bytes that a checksum takes in a frame. Pure. */
export const checksumBytes = ({ kind, written }: ChecksumOf): number => BYTES[kind] * (written === "hex" || written === "HEX" ? 2 : 1);

/** The checksum of bytes as it is written in a frame. Pure. */
export function writtenChecksum({ kind, written }: ChecksumOf, bytes: Uint8Array): Buffer {
  const size = BYTES[kind];
  const sum = Buffer.alloc(size);
  const value = checksumOf(kind, bytes);
  if (written === "le") sum.writeUIntLE(value, 0, size);
  else sum.writeUIntBE(value, 0, size);
  if (written === "hex") return Buffer.from(sum.toString("hex"), "latin1");
  return written === "HEX" ? Buffer.from(sum.toString("hex").toUpperCase(), "latin1") : sum;
}

/** True: a checksum is that of the bytes; hexadecimal digits count in either case. Pure. */
export function isChecksumOf(checksum: ChecksumOf, sum: Buffer, bytes: Uint8Array): boolean {
  const right = writtenChecksum(checksum, bytes);
  if (checksum.written !== "hex" && checksum.written !== "HEX") return right.equals(sum);
  return right.toString("latin1").toLowerCase() === sum.toString("latin1").toLowerCase();
}
