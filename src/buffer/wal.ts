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
  // Behind the damage: a commit, and something after that.
  let hasCommit = false;
  let isTorn = false;
  for (let next = at; next + frameBytes <= wal.length && !isTorn; next += frameBytes) {
    if (!ofThisWal(next)) continue;
    isTorn = hasCommit;
    hasCommit ||= isCommit(wal, next);
  }
  return { at, isTorn, isBigEndian, frameBytes };
}

/** Counts of what was put right in a WAL that had been on disk. A power failure leaves the last transaction as it likes, which is no damage. */
export interface Mended {
  /** Bits that were wrong and are right. */
  readonly bits: number;
  /** Frames that keep what is wrong in them, and hold up none behind them any more. */
  readonly frames: number;
}

/**
 * Makes a damaged WAL, of a file that nobody has open, one that SQLite reads to its end: a single wrong bit is put right where the checksum
 * tells which one it is; of a page that is wrong otherwise the checksums follow what it holds, so that rows and pages, which have checks of
 * their own, are all that it costs, unless its transaction may never have been on disk as a whole: SQLite leaves that out. Frames behind count
 * only by the checksums that were written. Throws what the file system throws.
 */
export function mendWal(walFile: string): Mended {
  const bytes = statSync(walFile, { throwIfNoEntry: false })?.size ?? 0;
  if (bytes <= HEADER_BYTES || bytes > MAX_LOOKED_AT_BYTES) return { bits: 0, frames: 0 };
  const wal = readFileSync(walFile);
  const { bits, frames, isOther } = mend(wal);
  if (!isOther) return { bits, frames };
  const fd = openSync(walFile, "r+");
  try {
    writeSync(fd, wal, 0, wal.length, 0);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  return { bits, frames };
}

/** Changes the bytes; `isOther`: some are other ones. */
function mend(wal: Buffer): Mended & { readonly isOther: boolean } {
  const headerBits = lookThrough(wal).at === 0 ? mendHeader(wal) : 0;
  const { at, isBigEndian, frameBytes } = lookThrough(wal);
  if (at === 0 || at + frameBytes > wal.length) return { bits: headerBits, frames: 0, isOther: headerBits > 0 };
  const mended = mendBits(wal, frameBytes, isBigEndian);
  const { bits, frames } = mendChecksums(wal, mended, frameBytes, isBigEndian);
  return { bits: headerBits + bits, frames, isOther: headerBits + mended.size + frames > 0 };
}

const put = (wal: Buffer, { at, mask }: Bit): void => void wal.writeUInt8(wal.readUInt8(at) ^ mask, at);

function mendHeader(wal: Buffer): number {
  const found = [false, true].flatMap((isBig) => bitsIn(wal, [{ from: 0, to: 24 }], 24, [0, 0], isBig));
  // Both orders may tell of the bit that says which one it is.
  const [bit] = found.filter(
    ({ at, mask }, i) => found.findIndex((other) => other.at === at && other.mask === mask) === i && heals(wal, { at, mask }),
  );
  if (!bit || found.filter((one) => heals(wal, one)).some(({ at, mask }) => at !== bit.at || mask !== bit.mask)) return 0;
  put(wal, bit);
  return 1;
}

/** Puts single bits right. Returns the offsets of their frames. */
function mendBits(wal: Buffer, frameBytes: number, isBigEndian: boolean): ReadonlySet<number> {
  const salts = wal.subarray(16, 24);
  const mended = new Set<number>();
  let before = summed([0, 0], wal.subarray(0, 24), isBigEndian);
  for (let at = HEADER_BYTES; at + frameBytes <= wal.length; at += frameBytes) {
    const salt = oneBit(wal, at + 8, salts);
    const sum = frameSum(before, wal, at, frameBytes, isBigEndian);
    const isWhole = isStored(sum, wal, at + 16);
    if (salt && isWhole) put(wal, salt);
    else if (!wal.subarray(at + 8, at + 16).equals(salts)) break;
    // A checksum that is wrong is told by the frame behind it.
    const isChecksum = !isWhole && follows(wal, at + frameBytes, frameBytes, sum, isBigEndian);
    const bit = isWhole || isChecksum ? undefined : bitOfFrame(wal, at, frameBytes, before, isBigEndian);
    if (bit) put(wal, bit);
    if (isChecksum) {
      wal.writeUInt32BE(sum[0], at + 16);
      wal.writeUInt32BE(sum[1], at + 20);
    }
    if (salt || bit || isChecksum) mended.add(at);
    before = sumAt(wal, at + 16);
  }
  return mended;
}

function bitOfFrame(wal: Buffer, at: number, frameBytes: number, before: Sum, isBigEndian: boolean): Bit | undefined {
  const parts = [
    { from: at, to: at + 8 },
    { from: at + FRAME_HEADER_BYTES, to: at + frameBytes },
  ];
  const [bit, ...others] = bitsIn(wal, parts, at + 16, before, isBigEndian);
  return others.length === 0 ? bit : undefined;
}

/** Has the checksums follow from each other, up to the end or the transaction that may never have been on disk. `mended`: offsets of the frames in which bits were put right. */
function mendChecksums(wal: Buffer, mended: ReadonlySet<number>, frameBytes: number, isBigEndian: boolean): Mended {
  const salts = wal.subarray(16, 24);
  let [bits, frames] = [0, 0];
  // Bits in the transaction that may be the last.
  let bitsOfLast = 0;
  let isOver = false;
  // The running checksum of what was written, and of what is there now.
  let written = summed([0, 0], wal.subarray(0, 24), isBigEndian);
  let stored = written;
  for (let at = HEADER_BYTES; at + frameBytes <= wal.length && wal.subarray(at + 8, at + 16).equals(salts); at += frameBytes) {
    if (!isStored(frameSum(written, wal, at, frameBytes, isBigEndian), wal, at + 16)) {
      if (!wasOnDisk(wal, at, frameBytes, isBigEndian)) break;
      frames++;
    }
    if (isOver) [bits, bitsOfLast] = [bits + bitsOfLast, 0];
    if (mended.has(at)) bitsOfLast++;
    isOver = isCommit(wal, at);
    written = sumAt(wal, at + 16);
    stored = frameSum(stored, wal, at, frameBytes, isBigEndian);
    wal.writeUInt32BE(stored[0], at + 16);
    wal.writeUInt32BE(stored[1], at + 20);
  }
  return { bits, frames };
}

/** A disk writes so many bytes as a whole. */
const SECTOR_BYTES = 512;

/**
 * True: frames of a later transaction follow, which begins only once the one of this frame is on disk. A commit that the damaged frame itself
 * names counts where the salts, which tell that it is of this WAL, came to the disk with it.
 */
function wasOnDisk(wal: Buffer, at: number, frameBytes: number, isBigEndian: boolean): boolean {
  const isOneSector = Math.floor(at / SECTOR_BYTES) === Math.floor((at + 15) / SECTOR_BYTES);
  let isOver = isOneSector && isCommit(wal, at);
  for (let next = at + frameBytes; follows(wal, next, frameBytes, sumAt(wal, next - frameBytes + 16), isBigEndian); next += frameBytes) {
    if (isOver) return true;
    isOver = isCommit(wal, next);
  }
  return false;
}

/** True: it is the last of its transaction; it has the size of the database after it. */
const isCommit = (wal: Buffer, at: number): boolean => wal.readUInt32BE(at + 4) !== 0;

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
