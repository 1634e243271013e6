import { closeSync, fsyncSync, openSync, readFileSync, statSync, writeSync } from "node:fs";

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

/** The place where a WAL stops to be whole, and whether that is damage and not its end. */
interface Found {
  /** Offset of the first frame that is not whole; 0: the header; the length of the WAL: none. */
  readonly at: number;
  /** A whole transaction follows it, and frames of a later one. */
  readonly isTorn: boolean;
  readonly isBigEndian: boolean;
  readonly frameBytes: number;
}

type Sum = readonly [number, number];

/** Offset of the damaged frame (0: the header). */
export function firstDamagedFrame(wal: Buffer): number | undefined {
  const { at, isTorn } = lookThrough(wal);
  return isTorn ? at : undefined;
}

function lookThrough(wal: Buffer): Found {
  const magic = wal.readUInt32BE(0);
  const pageBytes = wal.readUInt32BE(8) || 65_536;
  const frameBytes = FRAME_HEADER_BYTES + pageBytes;
  const isBigEndian = (magic & 1) === 1;
  const header = { at: 0, isTorn: true, isBigEndian, frameBytes };
  if ((magic | 1) >>> 0 !== MAGIC + 1 || pageBytes < 512 || pageBytes > 65_536) return header;
  let sum = summed([0, 0], wal.subarray(0, 24), isBigEndian);
  if (!isStored(sum, wal, 24)) return header;
  const salts = wal.subarray(16, 24);
  const ofThisWal = (at: number): boolean => wal.subarray(at + 8, at + 16).equals(salts);

  let at = HEADER_BYTES;
  for (; at + frameBytes <= wal.length; at += frameBytes) {
    if (!ofThisWal(at)) break;
    const after = frameSum(sum, wal, at, frameBytes, isBigEndian);
    if (!isStored(after, wal, at + 16)) break;
    sum = after;
  }
  // Behind the damage: a commit (the size of the database after it is not 0), and something after that.
  let hasCommit = false;
  let isTorn = false;
  for (let next = at; next + frameBytes <= wal.length && !isTorn; next += frameBytes) {
    if (!ofThisWal(next)) continue;
    isTorn = hasCommit;
    hasCommit ||= wal.readUInt32BE(next + 4) !== 0;
  }
  return { at, isTorn, isBigEndian, frameBytes };
}

/** Counts of what was put right in a WAL. */
export interface Mended {
  /** Bits that were wrong and are right. */
  readonly bits: number;
  /** Frames that keep what is wrong in them, and hold up none behind them any more. */
  readonly frames: number;
}

/**
 * Makes a damaged WAL, of a file that nobody has open, one that SQLite reads to its end: a single wrong bit is put right where the checksum
 * tells which one it is; of a page that is wrong otherwise the checksums follow what it holds, so that rows and pages, which have checks of
 * their own, are all that it costs. Frames behind count only by the checksums that were written. Throws what the file system throws.
 */
export function mendWal(walFile: string): Mended {
  const bytes = statSync(walFile, { throwIfNoEntry: false })?.size ?? 0;
  if (bytes <= HEADER_BYTES || bytes > MAX_LOOKED_AT_BYTES) return { bits: 0, frames: 0 };
  const wal = readFileSync(walFile);
  const mended = mend(wal);
  if (mended.bits + mended.frames === 0) return mended;
  const fd = openSync(walFile, "r+");
  try {
    writeSync(fd, wal, 0, wal.length, 0);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  return mended;
}

/** Changes the bytes. */
function mend(wal: Buffer): Mended {
  let [bits, frames] = [0, 0];
  const put = (bit: Bit): void => {
    wal.writeUInt8(wal.readUInt8(bit.at) ^ bit.mask, bit.at);
    bits++;
  };
  if (lookThrough(wal).at === 0) {
    const found = [false, true].flatMap((isBig) => bitsIn(wal, [{ from: 0, to: 24 }], 24, [0, 0], isBig));
    // Both orders may tell of the bit that says which one it is.
    const [bit] = found.filter(
      ({ at, mask }, i) => found.findIndex((other) => other.at === at && other.mask === mask) === i && heals(wal, { at, mask }),
    );
    if (!bit || found.filter((one) => heals(wal, one)).some(({ at, mask }) => at !== bit.at || mask !== bit.mask)) return { bits, frames };
    put(bit);
  }
  const { isBigEndian, frameBytes } = lookThrough(wal);
  const salts = wal.subarray(16, 24);
  // The running checksum of what was written, and of what is there now.
  let written = summed([0, 0], wal.subarray(0, 24), isBigEndian);
  let stored = written;
  for (let at = HEADER_BYTES; at + frameBytes <= wal.length; at += frameBytes) {
    const salt = oneBit(wal, at + 8, salts);
    let sum = frameSum(written, wal, at, frameBytes, isBigEndian);
    if (salt && isStored(sum, wal, at + 16)) put(salt);
    else if (!wal.subarray(at + 8, at + 16).equals(salts)) break;
    if (!isStored(sum, wal, at + 16)) {
      const parts = [
        { from: at, to: at + 8 },
        { from: at + FRAME_HEADER_BYTES, to: at + frameBytes },
      ];
      const [bit, ...others] = bitsIn(wal, parts, at + 16, written, isBigEndian);
      const isChecksum = follows(wal, at + frameBytes, frameBytes, sum, isBigEndian);
      if (isChecksum) bits++;
      else if (bit && others.length === 0) put(bit);
      else if (follows(wal, at + frameBytes, frameBytes, sumAt(wal, at + 16), isBigEndian)) frames++;
      else break;
      if (!isChecksum) sum = sumAt(wal, at + 16);
    }
    written = sum;
    stored = frameSum(stored, wal, at, frameBytes, isBigEndian);
    wal.writeUInt32BE(stored[0], at + 16);
    wal.writeUInt32BE(stored[1], at + 20);
  }
  return { bits, frames };
}

/** True: the header is whole with the bit. */
function heals(wal: Buffer, { at, mask }: Bit): boolean {
  const header = Buffer.from(wal.subarray(0, HEADER_BYTES));
  header.writeUInt8(header.readUInt8(at) ^ mask, at);
  return lookThrough(header).at !== 0;
}

/** True: a frame that follows one with this checksum begins there. */
function follows(wal: Buffer, at: number, frameBytes: number, sum: Sum, isBigEndian: boolean): boolean {
  if (at + frameBytes > wal.length || !wal.subarray(at + 8, at + 16).equals(wal.subarray(16, 24))) return false;
  return isStored(frameSum(sum, wal, at, frameBytes, isBigEndian), wal, at + 16);
}

const sumAt = (wal: Buffer, at: number): Sum => [wal.readUInt32BE(at), wal.readUInt32BE(at + 4)];

interface Bit {
  readonly at: number;
  readonly mask: number;
}

interface Part {
  readonly from: number;
  readonly to: number;
}

/**
 * The bits of the parts of which one may be wrong, or that of the checksum behind them. The checksum is linear: each bit adds to it what its
 * place makes of it; the highest bits of words add the same in many places.
 */
function bitsIn(wal: Buffer, parts: readonly Part[], checksumAt: number, before: Sum, isBigEndian: boolean): readonly Bit[] {
  const sum = parts.reduce((done, { from, to }) => summed(done, wal.subarray(from, to), isBigEndian), before);
  const expected = Buffer.alloc(8);
  expected.writeUInt32BE(sum[0], 0);
  expected.writeUInt32BE(sum[1], 4);
  const inChecksum = oneBit(wal, checksumAt, expected);
  const found: Bit[] = inChecksum ? [inChecksum] : [];
  const [s0, s1] = sumAt(wal, checksumAt);
  const missing: Sum = [(s0 - sum[0]) >>> 0, (s1 - sum[1]) >>> 0];
  // Added by 1 in the first and in the second word of a pair, the last pair's first.
  let first: Sum = [1, 1];
  let second: Sum = [0, 1];
  for (const { from, to } of [...parts].reverse())
    for (let at = to - 8; at >= from; at -= 8) {
      found.push(...bitOfWord(wal, at, first, missing, isBigEndian), ...bitOfWord(wal, at + 4, second, missing, isBigEndian));
      first = further(first);
      second = further(second);
    }
  return found;
}

const further = ([a, b]: Sum): Sum => [(a + b) >>> 0, (a + 2 * b) >>> 0];

function bitOfWord(wal: Buffer, at: number, [a, b]: Sum, missing: Sum, isBigEndian: boolean): readonly Bit[] {
  const word = isBigEndian ? wal.readUInt32BE(at) : wal.readUInt32LE(at);
  const found: Bit[] = [];
  for (let bit = 0; bit < 32; bit++) {
    const added = (word >>> bit) & 1 ? -(2 ** bit) : 2 ** bit;
    if (Math.imul(a, added) >>> 0 !== missing[0] || Math.imul(b, added) >>> 0 !== missing[1]) continue;
    const byte = bit >> 3;
    found.push({ at: at + (isBigEndian ? 3 - byte : byte), mask: 1 << (bit & 7) });
  }
  return found;
}

/** The bit by which the bytes there differ from the expected ones; undefined: not by one. */
function oneBit(wal: Buffer, at: number, expected: Buffer): Bit | undefined {
  let found: Bit | undefined;
  for (let i = 0; i < expected.length; i++) {
    const mask = wal.readUInt8(at + i) ^ expected.readUInt8(i);
    if (mask === 0) continue;
    if (found || (mask & (mask - 1)) !== 0) return undefined;
    found = { at: at + i, mask };
  }
  return found;
}

const isStored = (sum: Sum, wal: Buffer, at: number): boolean => sum[0] === wal.readUInt32BE(at) && sum[1] === wal.readUInt32BE(at + 4);

const frameSum = (sum: Sum, wal: Buffer, at: number, frameBytes: number, isBigEndian: boolean): Sum =>
  summed(summed(sum, wal.subarray(at, at + 8), isBigEndian), wal.subarray(at + FRAME_HEADER_BYTES, at + frameBytes), isBigEndian);

/** SQLite file format, 4.2. */
function summed(sum: Sum, bytes: Buffer, isBigEndian: boolean): Sum {
  let [s0, s1] = sum;
  for (let i = 0; i < bytes.length; i += 8) {
    s0 = (s0 + (isBigEndian ? bytes.readUInt32BE(i) : bytes.readUInt32LE(i)) + s1) >>> 0;
    s1 = (s1 + (isBigEndian ? bytes.readUInt32BE(i + 4) : bytes.readUInt32LE(i + 4)) + s0) >>> 0;
  }
  return [s0, s1];
}
