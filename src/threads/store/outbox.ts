import { serialize } from "node:v8";
import type { MessagePort } from "node:worker_threads";
import type { BufferSink, Start, StoredBatch } from "../../buffer/buffer.ts";
import type { DeliveryToStore, StoreToRelay } from "../../buffer/messages.ts";
import { NewestRows } from "../../buffer/newest-rows.ts";
import type { Layout } from "../../model/layout.ts";

/** Bytes under way to a delivery at once; it reads what is beyond from the file. */
const MAX_UNDER_WAY_BYTES = 8 * 2 ** 20;
/** Variables of a layout that a relay copies as objects: about a millisecond. */
const RELAYED_AT_ONCE = 200;
/** Of its bytes in one message: below what memory of its own is asked of the system for. */
const PIECE_BYTES = 64 * 1024;
/** Memory that a batch costs on top of its payload. */
const BATCH_OVERHEAD_BYTES = 400;

export interface OutboxOptions {
  /** All but `received`. */
  readonly onMessage: (message: Exclude<DeliveryToStore, { readonly type: "received" }>) => void;
  /** A layout by the id that a batch names. */
  readonly layout: (id: number) => Layout | undefined;
  /** The delivery is in another process, behind a relay. */
  readonly isRelayed: boolean;
  /** Default 8 MiB. */
  readonly maxUnderWayBytes?: number | undefined;
}

/** The first message to a delivery worker. */
export interface Attached {
  /** The sinks that the file has; undefined: not known yet. */
  readonly sinks: readonly BufferSink[] | undefined;
  /** Of the ids in the file. Undefined: no file is open. */
  readonly start: Start | undefined;
  readonly nextId: number | undefined;
}

/**
 * The channel to one delivery worker. What a worker cannot take now, it reads from the file; a relayed one, which serves current values, gets
 * the newest of each source once there is room.
 */
export class Outbox {
  readonly #onMessage: OutboxOptions["onMessage"];
  readonly #layout: OutboxOptions["layout"];
  readonly #isRelayed: boolean;
  readonly #maxUnderWayBytes: number;
  #port: MessagePort | undefined;
  #sentLayouts = new Set<number>();
  /** Bytes of each message that was not received yet, oldest first. */
  #underWay: number[] = [];
  #underWayBytes = 0;
  #skippedTo: number | undefined;
  /** Of a relayed delivery: what waits for room. */
  readonly #behind: NewestRows;

  constructor({ onMessage, layout, isRelayed, maxUnderWayBytes = MAX_UNDER_WAY_BYTES }: OutboxOptions) {
    this.#isRelayed = isRelayed;
    this.#onMessage = onMessage;
    this.#layout = layout;
    this.#maxUnderWayBytes = maxUnderWayBytes;
    this.#behind = new NewestRows((row) => layout(row.layout)?.source.uuid ?? `layout ${row.layout}`, maxUnderWayBytes);
  }

  attach(port: MessagePort, { sinks, start, nextId }: Attached): void {
    this.#port?.close();
    this.#port = port;
    this.#sentLayouts = new Set();
    this.#underWay = [];
    this.#underWayBytes = 0;
    this.#skippedTo = undefined;
    this.#behind.clear();
    port.on("message", (message: DeliveryToStore) => {
      if (this.#port !== port) return;
      if (message.type === "received") this.#received();
      else this.#onMessage(message);
    });
    port.on("close", () => {
      if (this.#port === port) this.#port = undefined;
    });
    this.#post({ type: "ready", start, nextId });
    if (sinks) this.sinks(sinks);
  }

  isAttached(): boolean {
    return this.#port !== undefined;
  }

  sinks(sinks: readonly BufferSink[]): void {
    this.#post({ type: "sinks", sinks });
  }

  /** `nextId`: the id after the last one. */
  committed(batches: readonly StoredBatch[], nextId: number): void {
    if (!this.#port || batches.length === 0) return;
    if (this.#isRelayed) this.#giveNewest("committed", batches);
    else if (!this.#postBatches("committed", batches)) this.#skippedTo = nextId;
  }

  unstored(batches: readonly StoredBatch[]): void {
    if (this.#isRelayed) this.#giveNewest("unstored", batches);
    else this.#postBatches("unstored", batches);
  }

  losses(sinks: readonly string[]): void {
    this.#post({ type: "losses", sinks });
  }

  /** Layout ids mean something else from now on. */
  forgetLayouts(): void {
    this.#sentLayouts = new Set();
    this.#behind.clear();
  }

  close(): void {
    this.#port?.close();
    this.#port = undefined;
  }

  #post(message: StoreToRelay, transfer: readonly ArrayBuffer[] = []): void {
    this.#port?.postMessage(message, transfer);
  }

  #postBatches(type: "committed" | "unstored", batches: readonly StoredBatch[]): boolean {
    if (!this.#port || batches.length === 0 || this.#underWayBytes >= this.#maxUnderWayBytes) return false;
    for (const id of new Set(batches.map(({ layout }) => layout))) this.#postLayout(id);
    const bytes = batches.reduce((sum, { payload }) => sum + payload.byteLength + BATCH_OVERHEAD_BYTES, 0);
    this.#underWay.push(bytes);
    this.#underWayBytes += bytes;
    // The payloads came here as copies, and nobody else needs them now.
    const memory = new Set(batches.map(({ payload }) => payload.buffer).filter((buffer) => buffer instanceof ArrayBuffer));
    this.#post({ type, batches }, [...memory]);
    return true;
  }

  /** Current values: what finds no room waits, until a newer row of its source takes its place. */
  #giveNewest(type: "committed" | "unstored", batches: readonly StoredBatch[]): void {
    if (!this.#port || batches.length === 0) return;
    if (this.#behind.size === 0 && this.#postBatches(type, batches)) return;
    this.#behind.add(batches);
    this.#giveBehind();
  }

  #giveBehind(): void {
    if (this.#behind.size === 0 || this.#underWayBytes >= this.#maxUnderWayBytes) return;
    const rows = [...this.#behind.rows()];
    const keptBack = new Map([...this.#behind.forgotten].map(([source, { bytes }]) => [source, bytes]));
    this.#behind.clear();
    if (keptBack.size > 0) this.#post({ type: "kept_back", bytes: keptBack });
    const stored = rows.filter(({ id }) => id >= 0);
    const unstored = rows.filter(({ id }) => id < 0);
    if (stored.length > 0) this.#postBatches("committed", stored);
    if (unstored.length > 0 && !this.#postBatches("unstored", unstored)) this.#behind.add(unstored);
  }

  #postLayout(id: number): void {
    if (this.#sentLayouts.has(id)) return;
    const layout = this.#layout(id);
    if (layout && this.#isRelayed && layout.variables.length > RELAYED_AT_ONCE) this.#postBytes(id, layout);
    else if (layout) this.#post({ type: "layout", id, layout });
    this.#sentLayouts.add(id);
  }

  #postBytes(id: number, layout: Layout): void {
    const bytes = serialize(layout);
    for (let from = 0; from < bytes.length; from += PIECE_BYTES) {
      const piece = new Uint8Array(bytes.subarray(from, from + PIECE_BYTES));
      this.#post({ type: "layout_bytes", id, bytes: piece, isLast: from + PIECE_BYTES >= bytes.length }, [piece.buffer]);
    }
  }

  #received(): void {
    this.#underWayBytes -= this.#underWay.shift() ?? 0;
    this.#giveBehind();
    if (this.#skippedTo === undefined || this.#underWayBytes >= this.#maxUnderWayBytes) return;
    this.#post({ type: "skipped", nextId: this.#skippedTo });
    this.#skippedTo = undefined;
  }
}
