import type { Member } from "./members.ts";
import { elementTypeOf } from "./soft-types.ts";

/** As the CPU calculates it: most significant bit first, begins at 0, nothing at the end. */
const POLYNOMIAL = 0xf4ac_fb13;

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 24;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000_0000 ? (crc << 1) ^ POLYNOMIAL : crc << 1;
  return crc >>> 0;
});

export function crc32(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) crc = ((crc << 8) ^ (TABLE[((crc >>> 24) ^ byte) & 0xff] ?? 0)) >>> 0;
  return crc;
}

/** Between the levels of a path. */
const LEVEL = 0x89;
const ARRAY = 0x10;
/** Alias types count as what they are made of: BOOL, DWORD, WORD, INT; numbers of ports and blocks are UINT. */
const BASE_TYPES: Readonly<Record<string, number>> = { BOOL: 1, DWORD: 6, WORD: 4, INT: 5 };
const UINT = 53;
const UINT_ALIASES: ReadonlySet<number> = new Set([173, 174, 175, 208, 209, 210]);
/** Up to here types are no aliases, but for packed bits. */
const FIRST_ALIAS = 128;
const PACKED_BITS = 40;

function typeByte(member: Member): number {
  const { softType } = member;
  if (softType < FIRST_ALIAS && softType !== PACKED_BITS) return softType;
  if (UINT_ALIASES.has(softType)) return UINT;
  const kind = elementTypeOf(member)?.kind;
  return (kind === undefined ? undefined : BASE_TYPES[kind]) ?? softType;
}

const littleEndian = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value | 0);
  return bytes;
};

function elementCrc(member: Member): number {
  const [first] = member.dimensions;
  const name = Buffer.from(member.name, "utf8");
  const type = Buffer.of(typeByte(member));
  return crc32(first ? Buffer.concat([name, Buffer.of(ARRAY), type, littleEndian(first.lower)]) : Buffer.concat([name, type]));
}

/** What the CPU checks a variable's name and type with: of its levels behind the block or area, without elements of arrays. Pure. */
export function pathCrc(members: readonly Member[]): number {
  const crcs = members.map((member) => littleEndian(elementCrc(member)));
  return crc32(Buffer.concat(crcs.flatMap((crc, i) => (i === 0 ? [crc] : [Buffer.of(LEVEL), crc]))));
}
