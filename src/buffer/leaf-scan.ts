import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { crc32 } from "node:zlib";
import { hasCode } from "../lib/files.ts";
import { type BatchRow, isIntact } from "./schema.ts";

/*
 * SQLite file format, 1.6 (pages of a table's leaves), 2.1 (records) and 4.1 (WAL): finds the rows of a damaged file where the pages above
 * them, by which SQLite would come to them, are gone. A checksum over all of a batch says which finds are right, and the key of a layout.
 */
const LEAF = 0x0d;
const PAGE_BYTES = 4096;
const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** Of the record of a batch: the id is the row's own, and empty in the record. */
const COLUMNS = 7;
/** Of those of a layout, a pack and the account. */
const FEW_COLUMNS = 3;
/** The record's word for a text of 32 characters. */
const KEY_TYPE = 13 + 2 * 32;
/** A payload that is larger is none. */
const MAX_RECORD_BYTES = 256 * 2 ** 20;

/** A whole thing that was found in a damaged file. Of the account, the text and its checksum are as they were written. */
export type Found =
  | { readonly what: "batch"; readonly row: BatchRow }
  | { readonly what: "pack"; readonly id: number; readonly head: Uint8Array; readonly body: Uint8Array }
  | { readonly what: "layout"; readonly id: number; readonly key: string; readonly body: string | Uint8Array }
  | { readonly what: "account"; readonly body: string };

/** Pages after which a scan pauses: it is long for who may not wait. */
const PAUSE_PAGES = 256;

/**
 * Finds all that is in the file, then in its WAL as far as that was committed: of several accounts the last one is the newest. A batch, a
 * layout or a pack may come several times, and may be one that the file had given up; a batch has the right checksum, of the others the caller
 * looks. Undefined: nothing was found for a while. Throws what the file system throws.
 */
export function* scanLeaves(file: string): Generator<Found | undefined> {
  const pages = new Pages(file);
  let seen = 0;
  try {
    for (const { page, isFirst } of pages.all()) {
      if (++seen % PAUSE_PAGES === 0) yield undefined;
      const start = isFirst ? 100 : 0;
      if (page.readUInt8(start) !== LEAF) continue;
      const cells = page.readUInt16BE(start + 3);
      for (let i = 0; i < cells && start + 10 + 2 * i <= page.length; i++) {
        const cell = recordAt(page, page.readUInt16BE(start + 8 + 2 * i), pages);
        const found = cell && foundIn(cell);
        if (found) yield found;
      }
    }
  } finally {
    pages.close();
  }
}

function foundIn({ id, record }: FoundRecord): Found | undefined {
  const row = batchOf(record, id);
  if (row) return isIntact(row) ? { what: "batch", row } : undefined;
  return packOf(record, id) ?? layoutOf(record, id) ?? accountOf(record);
}

/** The record is in the memory of the one before, where it fits its page. */
interface FoundRecord {
  readonly id: number;
  readonly record: Buffer;
}

/** The pages of a file, and those that its WAL has in their place. */
class Pages {
  readonly #file: number;
  readonly #wal: number | undefined;
  readonly #count: number;
  /** Frames that were committed, rising. */
  readonly #frames: readonly number[];
  /** By number: the last frame of the WAL that has it. */
  readonly #inWal = new Map<number, number>();

  constructor(file: string) {
    this.#file = openSync(file, "r");
    this.#count = Math.ceil(fstatSync(this.#file).size / PAGE_BYTES);
    this.#wal = opened(`${file}-wal`);
    const walBytes = this.#wal === undefined ? 0 : fstatSync(this.#wal).size;
    const frames = Math.max(0, Math.floor((walBytes - WAL_HEADER_BYTES) / (FRAME_HEADER_BYTES + PAGE_BYTES)));
    this.#frames = this.#committed(frames);
  }

  /** In the memory of the one before. */
  *all(): Generator<{ readonly page: Buffer; readonly isFirst: boolean }> {
    const page = Buffer.alloc(PAGE_BYTES);
    for (let number = 1; number <= this.#count; number++) {
      readPage(this.#file, page, (number - 1) * PAGE_BYTES);
      yield { page, isFirst: number === 1 };
    }
    for (const frame of this.#frames) {
      if (this.#wal !== undefined) readPage(this.#wal, page, this.#frameAt(frame) + FRAME_HEADER_BYTES);
      yield { page, isFirst: false };
    }
  }

  /** No record is larger, however its pages lead to each other. */
  get bytes(): number {
    return (this.#count + this.#frames.length) * PAGE_BYTES;
  }

  /** As it is now; undefined: there is none. */
  page(number: number): Buffer | undefined {
    const page = Buffer.alloc(PAGE_BYTES);
    const frame = this.#inWal.get(number);
    if (frame !== undefined && this.#wal !== undefined) {
      readPage(this.#wal, page, this.#frameAt(frame) + FRAME_HEADER_BYTES);
      return page;
    }
    if (number < 1 || number > this.#count) return undefined;
    readPage(this.#file, page, (number - 1) * PAGE_BYTES);
    return page;
  }

  close(): void {
    closeSync(this.#file);
    if (this.#wal !== undefined) closeSync(this.#wal);
  }

  /**
   * Those of this WAL up to its last commit, where a frame says how large the database is then. Salts tell them from what is left of an earlier
   * one; the first frame has them, too, where the header is damaged.
   */
  #committed(frames: number): readonly number[] {
    const wal = this.#wal;
    if (wal === undefined) return [];
    const heads = Array.from({ length: frames }, (_, frame) => {
      const head = Buffer.alloc(FRAME_HEADER_BYTES);
      readSync(wal, head, 0, head.length, this.#frameAt(frame));
      return { frame, page: head.readUInt32BE(0), isCommit: head.readUInt32BE(4) !== 0, salts: head.toString("latin1", 8, 16) };
    });
    const header = Buffer.alloc(WAL_HEADER_BYTES);
    readSync(wal, header, 0, header.length, 0);
    const salts = header.toString("latin1", 16, 24);
    const known = heads.some((head) => head.salts === salts) ? salts : heads[0]?.salts;
    const own = heads.filter((head) => head.salts === known);
    const committed = own.slice(0, own.findLastIndex(({ isCommit }) => isCommit) + 1);
    for (const { frame, page } of committed) this.#inWal.set(page, frame);
    return committed.map(({ frame }) => frame);
  }

  #frameAt(frame: number): number {
    return WAL_HEADER_BYTES + frame * (FRAME_HEADER_BYTES + PAGE_BYTES);
  }
}

/** One that the disk cannot read is empty: what is behind it can be read. */
function readPage(fd: number, page: Buffer, at: number): void {
  page.fill(0);
  try {
    readSync(fd, page, 0, PAGE_BYTES, at);
  } catch (error) {
    if (!hasCode(error, "EIO")) throw error;
  }
}

function opened(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch {
    return undefined;
  }
}

/** The record whose cell begins there; undefined: it is none. */
function recordAt(page: Buffer, at: number, pages: Pages): FoundRecord | undefined {
  try {
    const size = varint(page, at);
    const id = varint(page, size.end);
    if (size.value > Math.min(MAX_RECORD_BYTES, pages.bytes) || id.value < 1) return undefined;
    const record = recordOf(page, id.end, size.value, pages);
    return record && { id: id.value, record };
  } catch (error) {
    // Past the end of the page: what stands there is no cell.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** A record that is too long for its page goes on in a chain of others. */
function recordOf(page: Buffer, at: number, bytes: number, pages: Pages): Buffer | undefined {
  const most = PAGE_BYTES - 35;
  if (bytes <= most) return page.subarray(at, at + bytes);
  const least = Math.floor(((PAGE_BYTES - 12) * 32) / 255) - 23;
  const wanted = least + ((bytes - least) % (PAGE_BYTES - 4));
  const local = wanted <= most ? wanted : least;
  const parts = [page.subarray(at, at + local)];
  let left = bytes - local;
  for (let next = page.readUInt32BE(at + local); left > 0; ) {
    const more = pages.page(next);
    if (!more) return undefined;
    parts.push(more.subarray(4, 4 + Math.min(left, PAGE_BYTES - 4)));
    left -= PAGE_BYTES - 4;
    next = more.readUInt32BE(0);
  }
  return Buffer.concat(parts);
}

/** What the columns are and where the first one begins; undefined: they are not so many, or the first one is not the row's own id. */
function columnsOf(record: Buffer, count: number): { readonly types: readonly number[]; readonly at: number } | undefined {
  try {
    const header = varint(record, 0);
    const types: number[] = [];
    for (let at = header.end; at < header.value && types.length <= count; ) {
      const type = varint(record, at);
      types.push(type.value);
      at = type.end;
    }
    return types.length === count && types[0] === 0 ? { types, at: header.value } : undefined;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function layoutOf(record: Buffer, id: number): Found | undefined {
  const { types: [, key, body = 0] = [], at = 0 } = columnsOf(record, FEW_COLUMNS) ?? {};
  const bodyAt = at + (KEY_TYPE - 13) / 2;
  if (key !== KEY_TYPE || body < 12 || bodyAt + Math.floor((body - 12) / 2) !== record.length) return undefined;
  const bytes = record.subarray(bodyAt);
  return {
    what: "layout",
    id,
    key: record.toString("latin1", at, bodyAt),
    body: body % 2 === 1 ? bytes.toString() : new Uint8Array(bytes),
  };
}

function packOf(record: Buffer, id: number): Found | undefined {
  const { types: [, head = 0, body = 0] = [], at = 0 } = columnsOf(record, FEW_COLUMNS) ?? {};
  if (head < 12 || head % 2 === 1 || body < 12 || body % 2 === 1) return undefined;
  const bodyAt = at + (head - 12) / 2;
  if (bodyAt + (body - 12) / 2 !== record.length) return undefined;
  return { what: "pack", id, head: new Uint8Array(record.subarray(at, bodyAt)), body: new Uint8Array(record.subarray(bodyAt)) };
}

function accountOf(record: Buffer): Found | undefined {
  const { types: [, text = 0, crc = 0] = [], at = 0 } = columnsOf(record, FEW_COLUMNS) ?? {};
  if (text < 13 || text % 2 === 0) return undefined;
  const crcAt = at + (text - 13) / 2;
  const sum = numberAt(record, crcAt, crc);
  const body = record.toString("utf8", at, crcAt);
  return sum?.end === record.length && sum.value === crc32(body) ? { what: "account", body } : undefined;
}

function batchOf(record: Buffer, id: number): BatchRow | undefined {
  const columns = columnsOf(record, COLUMNS);
  if (!columns) return undefined;
  const { types } = columns;
  let { at } = columns;
  const numbers: number[] = [];
  for (const type of types.slice(1, -1)) {
    const found = numberAt(record, at, type);
    if (!found) return undefined;
    numbers.push(found.value);
    at = found.end;
  }
  const type = types[COLUMNS - 1] ?? 0;
  if (type < 12 || type % 2 === 1 || at + (type - 12) / 2 !== record.length) return undefined;
  const [layout = 0, ts = 0, n = 0, n_exploration = 0, crc = 0] = numbers;
  return { id, layout, ts, n, n_exploration, crc, payload: new Uint8Array(record.subarray(at)) };
}

/** A whole number of `type` bytes, or a float. */
function numberAt(record: Buffer, at: number, type: number): { readonly value: number; readonly end: number } | undefined {
  if (type >= 1 && type <= 4) return { value: record.readIntBE(at, type), end: at + type };
  if (type === 5) return { value: record.readIntBE(at, 6), end: at + 6 };
  if (type === 6) return { value: Number(record.readBigInt64BE(at)), end: at + 8 };
  if (type === 7) return { value: record.readDoubleBE(at), end: at + 8 };
  return type === 8 || type === 9 ? { value: type - 8, end: at } : undefined;
}

/** Seven bits a byte, the highest first; ids and lengths here are below 2^53. */
function varint(bytes: Buffer, at: number): { readonly value: number; readonly end: number } {
  let value = 0;
  for (let i = at; i < at + 8; i++) {
    const byte = bytes.readUInt8(i);
    value = value * 128 + (byte & 0x7f);
    if (byte < 0x80) return { value, end: i + 1 };
  }
  throw new RangeError("a number of nine bytes");
}
