import type { Steps } from "../base/timer.ts";
import type { StoredBatch } from "./buffer.ts";
import { type Fields, fieldsOf, PackBuilder, type Packed, PackScratch } from "./pack.ts";
import { NONE_GONE, type PackRow } from "./packs.ts";
import { rowBytes } from "./row-bytes.ts";
import { type BatchRow, isIntact } from "./schema.ts";
import type { Tables } from "./tables.ts";

/** When rows are packed, and how many together. */
export interface PackingBounds {
  /** Rows that have waited for so long are packed; ms. */
  readonly afterMs: number;
  /** Bytes of one pack before it is packed: payloads, and ROW_BYTES each. */
  readonly blockBytes: number;
  /** The store's turn for packing, ms: one step at least. */
  readonly sliceMs: number;
}

/** A sink that publishes every few seconds takes its rows before. */
const AFTER_MS = 10_000;
/**
 * Readouts of 1,000 sources are in it some dozens of times: what is there once for each source costs a tenth of a byte for a value. It takes
 * some dozens of ms to unpack.
 */
const BLOCK_BYTES = 4 * 2 ** 20;
/** A pack that is larger gains nothing, and more is lost with it where it is damaged. */
const PACKED_BYTES = 512 * 1024;
/** With so many readouts of each source a pack is complete from LEAST_BYTES_PART on: more would save less than a tenth of a byte for a value. */
const READOUTS_OF_SOURCE = 64;
const LEAST_BYTES_PART = 1 / 8;
/** The part of `blockBytes` that a pack of noise has at least. */
const LEAST_PART = 1 / 2;
/** The first pack is begun when so much of it waits: a sink that takes its rows a little late costs nothing. */
const BEGIN_PART = LEAST_BYTES_PART;
/** A small file has at least so many packs: the oldest is dropped as a whole. */
const LEAST_PACKS = 16;
/** A row's work beyond its payload, as bytes: a pack of small ones is not much slower than one of large ones. */
const ROW_BYTES = 40;
/** Rows of the first look after an opening, when nothing is known of their size. */
const LIKELY_PAYLOAD_BYTES = 60;
/** Commits wait for no longer; the last step of a pack, its transaction, takes some ms more. */
const SLICE_MS = 4;
/** Bytes of the fields of layouts that are remembered, and of one beyond its variables. */
const MAX_FIELDS_BYTES = 2 ** 20;
const FIELDS_BYTES = 64;
const READ_ROWS = 64;
/** The size of rows to come is guessed by about so many. */
const MEAN_OF_ROWS = 64;
/** Each hour some rows are packed to see how small they get, also where none waits. */
const SAMPLE_EVERY_MS = 3_600_000;
/** The first one comes so long after the opening: a start has other work. */
const FIRST_SAMPLE_MS = 60_000;
/** A sample has so much of a pack: it takes about 20 ms an hour. */
const SAMPLE_PART = 1 / 4;
/** Marks of the newest id are so far apart, ms. */
const MARK_EVERY_MS = 1000;
/** A file that takes no pack is not asked again for so long, ms: a full disk has its own alarm. */
const PAUSE_MS = 60_000;

interface Work {
  readonly builder: PackBuilder;
  /** The pack that follows begins here; undefined: none does. */
  readonly end: number | undefined;
  /** Rows below were looked at. */
  cursor: number;
  /** All rows that there are were looked at: those that are added come by `added`. */
  isAtEdge: boolean;
  bytes: number;
  /** In the file, without packing. */
  fileBytes: number;
  /** Packed when it has so many. */
  readonly blockBytes: number;
  /** The pack is not put into the file. */
  readonly isSample: boolean;
  steps: Steps<Packed> | undefined;
}

/** A finished pack. */
export interface NewPack {
  readonly row: Omit<PackRow, "crc">;
  readonly packed: Packed;
}

/** Packs rows that wait, a few ms at a time. Until the transaction that puts a pack in their place the rows stay as they are. */
export class Packer {
  readonly #tables: Tables;
  readonly #bounds: PackingBounds;
  readonly #pageBytes: number;
  readonly #monotonicMs: () => number;
  /** Rows below the id were there at the time. */
  #marks: { readonly id: number; readonly atMs: number }[] = [];
  #work: Work | undefined;
  /** Some MiB, which are given back where nothing waits. */
  #scratch: PackScratch | undefined;
  /** By layout: to read one takes as long as to pack some hundred rows of it. */
  readonly #fields = new Map<number, Fields>();
  #fieldsBytes = 0;
  /** Rows below stay as they are. */
  #skipTo = 0;
  /** Packs are made one after the other, since something waits. */
  #isFilling = false;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  #addedRows = 0;
  #bytesOfRow = LIKELY_PAYLOAD_BYTES + ROW_BYTES;
  #blockBytes: number;
  #packedPart: number | undefined;
  #sampleAtMs: number;

  constructor(tables: Tables, pageBytes: number, bounds: Partial<PackingBounds>, monotonicMs: () => number) {
    this.#tables = tables;
    this.#pageBytes = pageBytes;
    const { afterMs = AFTER_MS, blockBytes = BLOCK_BYTES, sliceMs = SLICE_MS } = bounds;
    this.#bounds = { afterMs, blockBytes, sliceMs };
    this.#blockBytes = this.#bounds.blockBytes;
    this.#monotonicMs = monotonicMs;
    this.#sampleAtMs = monotonicMs() + FIRST_SAMPLE_MS;
  }

  /** Bytes that rows take in the file once they are packed, per byte before; undefined: not known yet. */
  get packedPart(): number | undefined {
    return this.#packedPart;
  }

  /** Rows were stored: those of a pack that waits for more come into it without being read again. */
  added(batches: readonly StoredBatch[]): void {
    for (const { id, layout, time, count, explorationCount, payload } of batches) {
      this.#addedRows = Math.min(MEAN_OF_ROWS, this.#addedRows + 1);
      this.#bytesOfRow += (payload.byteLength + ROW_BYTES - this.#bytesOfRow) / this.#addedRows;
      const work = this.#work;
      if (work?.isAtEdge && !work.steps) this.#add(work, { id, layout, ts: time, n: count, n_exploration: explorationCount, payload });
    }
  }

  /**
   * Works for a slice. `pendingFrom`: no sink waits for a row below; `nextId`: the file's. `write` puts a pack into the file, and throws what
   * SQLite throws; false: rows of it are gone. True: there is more to do at once.
   */
  step(pendingFrom: number, nextId: number, maxBytes: number, write: (pack: NewPack) => boolean): boolean {
    const nowMs = this.#monotonicMs();
    this.#mark(nextId, nowMs);
    if (nowMs < this.#pausedUntilMs) return false;
    try {
      const oldTo = this.#endOfWaiting(nowMs);
      if (this.#work && this.#isUseless(this.#work, pendingFrom, oldTo)) this.#work = undefined;
      const untilMs = performance.now() + this.#bounds.sliceMs;
      do {
        this.#work ??= pendingFrom < oldTo ? this.#begin(pendingFrom, nextId, maxBytes) : this.#rest(nowMs, nextId);
        if (!this.#work || (this.#work.isAtEdge && !this.#work.steps)) return false;
        this.#goOn(this.#work, nextId, write);
      } while (performance.now() < untilMs);
      return true;
    } catch (error) {
      this.#work = undefined;
      this.#pausedUntilMs = nowMs + PAUSE_MS;
      throw error;
    }
  }

  #mark(id: number, atMs: number): void {
    const last = this.#marks.at(-1);
    if (!last || atMs - last.atMs >= Math.min(MARK_EVERY_MS, this.#bounds.afterMs)) this.#marks.push({ id, atMs });
  }

  /** Rows below have waited for long enough. */
  #endOfWaiting(nowMs: number): number {
    const newest = this.#marks.findLastIndex(({ atMs }) => atMs <= nowMs - this.#bounds.afterMs);
    this.#marks.splice(0, newest);
    return newest < 0 ? 0 : (this.#marks[0]?.id ?? 0);
  }

  /** Nothing waits for the rows of the pack, or more than a sample of them. */
  #isUseless({ builder, isSample }: Work, pendingFrom: number, oldTo: number): boolean {
    return isSample ? pendingFrom < oldTo : builder.rows > 0 && pendingFrom > builder.lastId;
  }

  /** Nothing waits: gives memory back, but for a sample that is due. */
  #rest(nowMs: number, nextId: number): Work | undefined {
    this.#isFilling = false;
    this.#scratch = undefined;
    this.#fields.clear();
    this.#fieldsBytes = 0;
    if (nowMs < this.#sampleAtMs) return undefined;
    this.#sampleAtMs = nowMs + SAMPLE_EVERY_MS;
    return { ...this.#newWork(nextId, undefined, SAMPLE_PART * this.#bounds.blockBytes), isAtEdge: true, isSample: true };
  }

  #begin(pendingFrom: number, nextId: number, maxBytes: number): Work | undefined {
    const first = this.#tables.firstUnpacked({ from: Math.max(pendingFrom, this.#skipTo), to: nextId }) ?? nextId;
    this.#blockBytes = Math.min(this.#blockBytes, maxBytes / LEAST_PACKS);
    if (!this.#isFilling && (nextId - first) * this.#bytesOfRow < this.#blockBytes * BEGIN_PART) return undefined;
    this.#isFilling = true;
    return this.#newWork(first, this.#tables.firstPack({ from: first, to: Number.MAX_SAFE_INTEGER }), this.#blockBytes);
  }

  #newWork(cursor: number, end: number | undefined, blockBytes: number): Work {
    this.#scratch ??= new PackScratch();
    const builder = new PackBuilder((layout) => this.#fieldsOf(layout), this.#scratch);
    return { builder, end, cursor, isAtEdge: false, bytes: 0, fileBytes: 0, blockBytes, isSample: false, steps: undefined };
  }

  #fieldsOf(layout: number): Fields | undefined {
    const known = this.#fields.get(layout);
    if (known) return known;
    const read = this.#tables.layout(layout);
    if (!read) return undefined;
    const fields = fieldsOf(read);
    this.#fieldsBytes += FIELDS_BYTES + fields.kinds.length;
    if (this.#fieldsBytes > MAX_FIELDS_BYTES) {
      this.#fields.clear();
      this.#fieldsBytes = FIELDS_BYTES + fields.kinds.length;
    }
    this.#fields.set(layout, fields);
    return fields;
  }

  #goOn(work: Work, nextId: number, write: (pack: NewPack) => boolean): void {
    if (!work.steps) {
      this.#read(work, nextId);
      return;
    }
    const step = work.steps.next();
    if (!step.done) return;
    this.#work = undefined;
    const { firstId: id, lastId: last, rows, counts } = work.builder;
    const row = { id, last, rows, n: counts.n, n_exploration: counts.nExploration, gone: NONE_GONE };
    if (!work.isSample && !write({ row, packed: step.value })) return;
    const packedBytes = step.value.head.length + step.value.body.length;
    const { blockBytes } = this.#bounds;
    this.#packedPart = packedBytes / work.fileBytes;
    if (work.isSample) return;
    this.#blockBytes = Math.min(blockBytes, Math.max(LEAST_PART * blockBytes, (PACKED_BYTES * work.bytes) / packedBytes));
  }

  #read(work: Work, nextId: number): void {
    const { builder, end = nextId } = work;
    const rows = this.#tables.unpacked({ from: work.cursor, to: end }, READ_ROWS);
    for (const row of rows) {
      work.cursor = row.id + 1;
      // A damaged row stays what it is: a pack would give it a right checksum.
      if (!isIntact(row)) {
        if (builder.rows === 0) this.#skipTo = row.id + 1;
        else work.steps = builder.finish();
        return;
      }
      this.#add(work, row);
      if (work.steps) return;
    }
    if (rows.length === READ_ROWS) return;
    if (work.end === undefined) {
      work.isAtEdge = true;
      return;
    }
    // Too few, and there never will be more before the next pack.
    this.#work = undefined;
    this.#skipTo = this.#tables.endOfPack(work.end) ?? work.end;
  }

  #add(work: Work, row: Omit<BatchRow, "crc">): void {
    const { builder } = work;
    builder.add(row);
    work.bytes += row.payload.byteLength + ROW_BYTES;
    work.fileBytes += rowBytes(row.payload.byteLength, this.#pageBytes);
    const isComplete = builder.rowsOfGroup >= READOUTS_OF_SOURCE && work.bytes >= LEAST_BYTES_PART * work.blockBytes;
    if (isComplete || work.bytes >= work.blockBytes || builder.isFull) work.steps = builder.finish();
  }
}
