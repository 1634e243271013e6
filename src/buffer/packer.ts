import type { Steps } from "../base/timer.ts";
import type { Layout } from "../model/layout.ts";
import { PackBuilder, type Packed } from "./pack.ts";
import { NONE_GONE, type PackRow } from "./packs.ts";
import type { IdRange } from "./position.ts";
import { rowBytes } from "./row-bytes.ts";
import { isIntact } from "./schema.ts";
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
/** The part of `blockBytes` that a pack of noise has at least. */
const LEAST_PART = 1 / 4;
/** A row's work beyond its payload, as bytes: a pack of small ones is not much slower than one of large ones. */
const ROW_BYTES = 40;
/** Rows of the first look after an opening, when nothing is known of their size. */
const LIKELY_PAYLOAD_BYTES = 60;
/** Commits wait for no longer; the last step of a pack, its transaction, takes some ms more. */
const SLICE_MS = 4;
const READ_ROWS = 64;
/** The size of rows to come is guessed by about so many. */
const MEAN_OF_ROWS = 64;
/** Marks of the newest id are so far apart, ms. */
const MARK_EVERY_MS = 1000;
/** A file that takes no pack is not asked again for so long, ms: a full disk has its own alarm. */
const PAUSE_MS = 60_000;

interface Work {
  readonly builder: PackBuilder;
  readonly to: number;
  cursor: number;
  bytes: number;
  /** In the file, without packing. */
  fileBytes: number;
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
  /** Rows below stay as they are. */
  #skipTo = 0;
  /** Fewer rows than up to here do not fill a pack. */
  #notBeforeId = 0;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  #addedRows = 0;
  #bytesOfRow = LIKELY_PAYLOAD_BYTES + ROW_BYTES;
  #blockBytes: number;
  #packedPart: number | undefined;

  constructor(tables: Tables, pageBytes: number, bounds: Partial<PackingBounds>, monotonicMs: () => number) {
    this.#tables = tables;
    this.#pageBytes = pageBytes;
    const { afterMs = AFTER_MS, blockBytes = BLOCK_BYTES, sliceMs = SLICE_MS } = bounds;
    this.#bounds = { afterMs, blockBytes, sliceMs };
    this.#blockBytes = this.#bounds.blockBytes;
    this.#monotonicMs = monotonicMs;
  }

  /** Bytes that rows take in the file once they are packed, per byte before; undefined: not known yet. */
  get packedPart(): number | undefined {
    return this.#packedPart;
  }

  /** A row that was added has so much payload. */
  added(payloadBytes: number): void {
    this.#addedRows = Math.min(MEAN_OF_ROWS, this.#addedRows + 1);
    this.#bytesOfRow += (payloadBytes + ROW_BYTES - this.#bytesOfRow) / this.#addedRows;
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
      const untilMs = performance.now() + this.#bounds.sliceMs;
      do {
        this.#work ??= this.#begin({ from: Math.max(pendingFrom, this.#skipTo), to: this.#endOfWaiting(nowMs) }, maxBytes);
        if (!this.#work) return false;
        this.#goOn(this.#work, write);
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

  #begin({ from, to }: IdRange, maxBytes: number): Work | undefined {
    if (to < this.#notBeforeId) return undefined;
    const first = this.#tables.firstUnpacked({ from, to });
    if (first === undefined) return undefined;
    this.#blockBytes = Math.min(this.#blockBytes, maxBytes / 16);
    if ((to - first) * this.#bytesOfRow < this.#blockBytes) return undefined;
    const layouts = new Map<number, Layout | undefined>();
    const builder = new PackBuilder((id) => {
      if (!layouts.has(id)) layouts.set(id, this.#tables.layout(id));
      return layouts.get(id);
    });
    return {
      builder,
      to: Math.min(to, this.#tables.firstPack({ from: first, to }) ?? to),
      cursor: first,
      bytes: 0,
      fileBytes: 0,
      steps: undefined,
    };
  }

  #goOn(work: Work, write: (pack: NewPack) => boolean): void {
    if (!work.steps) {
      this.#read(work);
      return;
    }
    const step = work.steps.next();
    if (!step.done) return;
    this.#work = undefined;
    const { firstId: id, lastId: last, rows, counts } = work.builder;
    const row = { id, last, rows, n: counts.n, n_exploration: counts.nExploration, gone: NONE_GONE };
    if (!write({ row, packed: step.value })) return;
    const packedBytes = step.value.head.length + step.value.body.length;
    const { blockBytes } = this.#bounds;
    this.#packedPart = packedBytes / work.fileBytes;
    this.#blockBytes = Math.min(blockBytes, Math.max(LEAST_PART * blockBytes, (PACKED_BYTES * work.bytes) / packedBytes));
  }

  #read(work: Work): void {
    const { builder } = work;
    const rows = this.#tables.unpacked({ from: work.cursor, to: work.to }, READ_ROWS);
    for (const row of rows) {
      work.cursor = row.id + 1;
      // What is damaged stays what it is: a pack would give it a right checksum.
      if (!isIntact(row)) {
        if (builder.rows === 0) this.#skipTo = row.id + 1;
        else work.steps = builder.finish();
        return;
      }
      builder.add(row);
      work.bytes += row.payload.byteLength + ROW_BYTES;
      work.fileBytes += rowBytes(row.payload.byteLength, this.#pageBytes);
      if (work.bytes < this.#blockBytes && !builder.isFull) continue;
      this.#bytesOfRow = work.bytes / builder.rows;
      work.steps = builder.finish();
      return;
    }
    if (rows.length === READ_ROWS) return;
    // Too few: up to the next pack there never will be more.
    this.#work = undefined;
    if (builder.rows > 0) this.#bytesOfRow = work.bytes / builder.rows;
    const next = this.#tables.firstPack({ from: work.cursor, to: Number.MAX_SAFE_INTEGER });
    if (next === undefined) this.#notBeforeId = work.to + Math.ceil((this.#blockBytes - work.bytes) / this.#bytesOfRow);
    else this.#skipTo = this.#tables.endOfPack(next) ?? next;
  }
}
