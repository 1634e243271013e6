import { expect, test } from "vitest";
import type { ChecksumKind } from "../../src/model/profile.ts";
import { checksumOf, isChecksumOf, writtenChecksum } from "./checksum.ts";

// The check values of the catalogue of parametrised CRC algorithms (G. Cook), of "123456789"; the sums by hand: 9 digits, 0x1dd together.
test.each<[ChecksumKind, number]>([
  ["xor", 0x31],
  ["sum8", 0xdd],
  ["lrc", 0x23],
  ["crc16_modbus", 0x4b37],
  ["crc16_ccitt", 0x29b1],
  ["crc16_xmodem", 0x31c3],
  ["crc32", 0xcbf43926],
])("%s of 123456789", (kind, sum) => {
  expect(checksumOf(kind, Buffer.from("123456789"))).toBe(sum);
});

test("checksums are written high or low byte first, or in digits, which count in either case when they come", () => {
  const bytes = Buffer.from("123456789");
  const written = (how: "be" | "le" | "hex" | "HEX") => writtenChecksum({ kind: "crc16_modbus", written: how }, bytes).toString("latin1");
  expect([written("be"), written("le"), written("hex"), written("HEX")]).toEqual(["\x4b\x37", "\x37\x4b", "4b37", "4B37"]);
  expect(isChecksumOf({ kind: "crc16_modbus", written: "hex" }, Buffer.from("4B37"), bytes)).toBe(true);
  expect(isChecksumOf({ kind: "crc16_modbus", written: "be" }, Buffer.from("\x37\x4b", "latin1"), bytes)).toBe(false);
});
