import { closeSync, fstatSync, openSync, readSync } from "node:fs";
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
const LAYOUT_COLUMNS = 3;
const PACK_COLUMNS = 3;
/** The record's word for a text of 32 characters. */
const KEY_TYPE = 13 + 2 * 32;
/** A payload that is larger is none. */
const MAX_RECORD_BYTES = 256 * 2 ** 20;

/** A row of a layout, or of its copy, or what looks like one: `body` is to be compared with `key`. */
export interface FoundLayout {
  readonly id: number;
  readonly key: string;
  readonly body: string | Uint8Array;
}

/** A pack, or what looks like one: its blobs have checksums. */
export interface FoundPackData {
  readonly id: number;
  readonly head: Uint8Array;
  readonly body: Uint8Array;
}

/** Pages after which a scan pauses: it is long for who may not wait. */
const PAUSE_PAGES = 256;

/**
 * Every batch that is found in the file or its WAL, in no order; one may come twice. Undefined: nothing was found for a while. Throws what the
 * file system throws.
 */
export function* scanLeaves(file: string): Generator<BatchRow | undefined> {
  for (const found of scanRecords(file)) {
    const row = found && batchOf(found.record, found.id);
    if (!found || (row && isIntact(row))) yield row;
  }
}

/** What may be a layout, as `scanLeaves`. */
export function* scanLayouts(file: string): Generator<FoundLayout | undefined> {
  for (const found of scanRecords(file)) {
    const layout = found && layoutOf(found.record, found.id);
    if (!found || layout) yield layout;
  }
}

/** Finds data that may be a pack's, as `scanLeaves`. */
export function* scanPacks(file: string): Generator<FoundPackData | undefined> {
  for (const found of scanRecords(file)) {
    const pack = found && packOf(found.record, found.id);
    if (!found || pack) yield pack;
  }
}

interface FoundRecord {
  readonly id: number;
  readonly record: Buffer;
}

/** A record is in the memory of the one before, where it fits its page. Undefined: a pause. */
function* scanRecords(file: string): Generator<FoundRecord | undefined> {
  const pages = new Pages(file);
  let seen = 0;
  try {
    for (const { page, isFirst } of pages.all()) {
      if (++seen % PAUSE_PAGES === 0) yield undefined;
      const start = isFirst ? 100 : 0;
      if (page.readUInt8(start) !== LEAF) continue;
      const cells = page.readUInt16BE(start + 3);
      for (let i = 0; i < cells && start + 10 + 2 * i <= page.length; i++) {
        const found = recordAt(page, page.readUInt16BE(start + 8 + 2 * i), pages);
        if (found) yield found;
      }
    }
  } finally {
    pages.close();
  }
}

/** The pages of a file, and those that its WAL has in their place. */
class Pages {
  readonly #file: number;
  readonly #wal: number | undefined;
  readonly #count: number;
  readonly #frames: number;
  /** By number: the last frame of the WAL that has it. */
  readonly #inWal = new Map<number, number>();

  constructor(file: string) {
    this.#file = openSync(file, "r");
    this.#count = Math.ceil(fstatSync(this.#file).size / PAGE_BYTES);
    this.#wal = opened(`${file}-wal`);
    const walBytes = this.#wal === undefined ? 0 : fstatSync(this.#wal).size;
    this.#frames = Math.max(0, Math.floor((walBytes - WAL_HEADER_BYTES) / (FRAME_HEADER_BYTES + PAGE_BYTES)));
    const head = Buffer.alloc(4);
    for (let frame = 0; frame < this.#frames && this.#wal !== undefined; frame++) {
      readSync(this.#wal, head, 0, 4, this.#frameAt(frame));
      this.#inWal.set(head.readUInt32BE(0), frame);
    }
  }

  /** In the memory of the one before. */
  *all(): Generator<{ readonly page: Buffer; readonly isFirst: boolean }> {
    const page = Buffer.alloc(PAGE_BYTES);
    for (let number = 1; number <= this.#count; number++) {
      readPage(this.#file, page, (number - 1) * PAGE_BYTES);
      yield { page, isFirst: number === 1 };
    }
    for (let frame = 0; frame < this.#frames && this.#wal !== undefined; frame++) {
      readPage(this.#wal, page, this.#frameAt(frame) + FRAME_HEADER_BYTES);
      yield { page, isFirst: false };
    }
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
    if (size.value > MAX_RECORD_BYTES || id.value < 1) return undefined;
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

function layoutOf(record: Buffer, id: number): FoundLayout | undefined {
  const { types: [, key, body = 0] = [], at = 0 } = columnsOf(record, LAYOUT_COLUMNS) ?? {};
  const bodyAt = at + (KEY_TYPE - 13) / 2;
  if (key !== KEY_TYPE || body < 12 || bodyAt + Math.floor((body - 12) / 2) !== record.length) return undefined;
  const bytes = record.subarray(bodyAt);
  return { id, key: record.toString("latin1", at, bodyAt), body: body % 2 === 1 ? bytes.toString() : bytes };
}

function packOf(record: Buffer, id: number): FoundPackData | undefined {
  const { types: [, head = 0, body = 0] = [], at = 0 } = columnsOf(record, PACK_COLUMNS) ?? {};
  if (head < 12 || head % 2 === 1 || body < 12 || body % 2 === 1) return undefined;
  const bodyAt = at + (head - 12) / 2;
  if (bodyAt + (body - 12) / 2 !== record.length) return undefined;
  return { id, head: new Uint8Array(record.subarray(at, bodyAt)), body: new Uint8Array(record.subarray(bodyAt)) };
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
