import { readFileSync } from "node:fs";

/** SQLite file format, 4.1: a header of 32 bytes, then frames of a 24-byte header and a page. All numbers big endian. */
const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const MAGIC = 0x377f0682;
/** A larger one is not looked at: it would delay the start. */
const MAX_LOOKED_AT_BYTES = 256 * 2 ** 20;

/**
 * True: the WAL lost transactions that had been committed: a frame is damaged although a whole transaction and frames of a later one follow
 * it, and a later one only begins once the earlier is on disk. The tail that a power failure leaves is not that: it was never committed.
 * Returns what is wrong, in words; undefined: nothing, or no WAL exists.
 */
export function tornWal(walFile: string): string | undefined {
  let wal: Buffer;
  try {
    wal = readFileSync(walFile);
  } catch {
    return undefined;
  }
  if (wal.length <= HEADER_BYTES || wal.length > MAX_LOOKED_AT_BYTES) return undefined;
  const damagedAt = firstDamagedFrame(wal);
  return damagedAt === undefined
    ? undefined
    : `${walFile} is damaged at byte ${damagedAt}: what was committed behind it and was pending is not delivered`;
}

/** Offset of the damaged frame (0: the header). */
export function firstDamagedFrame(wal: Buffer): number | undefined {
  const magic = wal.readUInt32BE(0);
  const pageBytes = wal.readUInt32BE(8) || 65_536;
  if ((magic | 1) >>> 0 !== MAGIC + 1 || pageBytes < 512 || pageBytes > 65_536) return 0;
  const isBigEndian = (magic & 1) === 1;
  const sum: [number, number] = [0, 0];
  add(sum, wal.subarray(0, 24), isBigEndian);
  if (sum[0] !== wal.readUInt32BE(24) || sum[1] !== wal.readUInt32BE(28)) return 0;
  const salts = wal.subarray(16, 24);
  const frameBytes = FRAME_HEADER_BYTES + pageBytes;
  const ofThisWal = (at: number): boolean => wal.subarray(at + 8, at + 16).equals(salts);

  let at = HEADER_BYTES;
  for (; at + frameBytes <= wal.length; at += frameBytes) {
    if (!ofThisWal(at)) break;
    add(sum, wal.subarray(at, at + 8), isBigEndian);
    add(sum, wal.subarray(at + FRAME_HEADER_BYTES, at + frameBytes), isBigEndian);
    if (sum[0] !== wal.readUInt32BE(at + 16) || sum[1] !== wal.readUInt32BE(at + 20)) break;
  }
  // Behind the damage: a commit (the size of the database after it is not 0), and something after that.
  let hasCommit = false;
  for (let next = at; next + frameBytes <= wal.length; next += frameBytes) {
    if (!ofThisWal(next)) continue;
    if (hasCommit) return at;
    hasCommit = wal.readUInt32BE(next + 4) !== 0;
  }
  return undefined;
}

/** SQLite file format, 4.2. */
function add(sum: [number, number], bytes: Buffer, isBigEndian: boolean): void {
  let [s0, s1] = sum;
  for (let i = 0; i < bytes.length; i += 8) {
    s0 = (s0 + (isBigEndian ? bytes.readUInt32BE(i) : bytes.readUInt32LE(i)) + s1) >>> 0;
    s1 = (s1 + (isBigEndian ? bytes.readUInt32BE(i + 4) : bytes.readUInt32LE(i + 4)) + s0) >>> 0;
  }
  sum[0] = s0;
  sum[1] = s1;
}
