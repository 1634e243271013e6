import { setImmediate as nextTurn } from "node:timers/promises";
import { createYielder, inSlices } from "../../base/timer.ts";
import type { BufferFill, BufferSink, Ledger, NewBatch, RejectedSpan } from "../../buffer/buffer.ts";
import { type EncodedReadout, encodeReadout, encodeSteps, layoutKey, layoutKeySteps, planSteps } from "../../buffer/codec.ts";
import { joinSpans, spanOf } from "../../buffer/commit-group.ts";
import type { FromStore, ToStore } from "../../buffer/messages.ts";
import { createRecentLayouts } from "../../buffer/recent-layouts.ts";
import type { Layout } from "../../model/layout.ts";
import type { Readout } from "../../model/value.ts";
import { type RaiseAlarm, warning } from "../../model/warning.ts";

export interface StoreClientOptions {
  /** One life of the process; the same as the store's. */
  readonly run: string;
  /** Bound of what waits for the store's answer, but for a single readout; default 12 MiB. */
  readonly maxUnansweredBytes?: number;
  /** How long a readout waits for others at least, so that they cross to the store in one message; default 50 ms. */
  readonly postDelayMs?: number;
  /** Every batch up to this number that was not rejected is on disk (or was not to be stored). */
  readonly onCommitted?: (upTo: number) => void;
  /** Every batch up to this number that was not committed before is rejected. */
  readonly onRejected?: (upTo: number) => void;
  readonly onLedger: (ledger: Ledger, bytes: number, fill?: BufferFill) => void;
  /** Sentences for the operator; the same one does not come twice in a row. */
  readonly onAlarm: RaiseAlarm;
  /** Sentences for the log alone. */
  readonly onNote?: (message: string) => void;
}

interface Unanswered {
  readonly batch: NewBatch;
  readonly layout: Layout;
}

/** The store has what waits a second time. */
const MAX_UNANSWERED_BYTES = 12 * 2 ** 20;
/** Memory that a batch costs on top of its payload. */
const BATCH_OVERHEAD_BYTES = 600;
/** Each message wakes the store's thread, which costs more than what it carries. The store's own delay makes room for this one. */
const POST_DELAY_MS = 50;
/** A readout may wait for this part of its source's interval: what is read seldom comes in fewer commits. */
const POST_DELAY_PART = 1 / 20;
/** So much of what was read may be lost with the power, and no more, however seldom it is read. */
const MOST_POST_DELAY_MS = 500;
/** Payload bytes in one message; so many are posted at once. */
const MESSAGE_BYTES = 2 ** 20;

/** Variables of layouts that cross to the store in one go, in one message or several: about a millisecond. */
const VARIABLES_AT_ONCE = 500;

/** From which batch on the sinks are these. */
interface SinksFrom {
  readonly seq: number;
  readonly sinks: readonly BufferSink[];
}

/** The host's end of the store: encodes each readout once, and keeps it until the store has answered, over restarts of the worker. */
export class StoreClient {
  readonly #options: StoreClientOptions;
  readonly #maxUnansweredBytes: number;
  readonly #postDelayMs: number;
  /** By number, oldest first. */
  readonly #unanswered = new Map<number, Unanswered>();
  #unansweredBytes = 0;
  #nextSeq = 1;
  /** Since when, monotonic ms, what is appended waits without anything being stored; undefined: nothing waits. */
  #waitingSinceMs: number | undefined;
  /** The first batch that was not posted to this worker. */
  #nextToPost = 1;
  #post: ((message: ToStore) => void) | undefined;
  #isReady = false;
  /** Keys of layouts that this worker knows. */
  #sentLayouts = createRecentLayouts<string, true>();
  /** Large ones that are on their way to this worker, by key. */
  #layoutsUnderWay = new Map<string, Promise<void>>();
  /** What is unposted follows a layout that is on its way. */
  #isHeld = false;
  /** Grows with each worker that is ready: what was begun for another one ends. */
  #workers = 0;
  #sinks: readonly BufferSink[] | undefined;
  /** Those that this worker was not posted yet, oldest first. */
  #unpostedSinks: SinksFrom[] = [];
  #flushing: NodeJS.Timeout | undefined;
  /** When it fires, monotonic ms. */
  #flushAtMs = 0;
  #unpostedBytes = 0;
  #rejectedReadouts = 0;
  #rejectedValues = 0;
  #reportedRejectedValues = 0;
  /** Of what was rejected: all of it, and what this worker was not told of. */
  #rejectedSpan: RejectedSpan | undefined;
  #unreportedSpan: RejectedSpan | undefined;
  #lastAlarm: string | undefined;
  /** There are sinks that serve current values. */
  #isServing = false;
  #isFull = false;
  #isClosed = false;
  #onDrained: (() => void) | undefined;

  constructor(options: StoreClientOptions) {
    this.#options = options;
    this.#maxUnansweredBytes = options.maxUnansweredBytes ?? MAX_UNANSWERED_BYTES;
    this.#postDelayMs = options.postDelayMs ?? POST_DELAY_MS;
  }

  /** A worker has started: what is unanswered is posted to it as soon as it is ready. */
  attach(post: (message: ToStore) => void): void {
    this.#post = post;
    this.#isReady = false;
  }

  /** A message of the worker. */
  onMessage(message: FromStore): void {
    switch (message.type) {
      case "ready":
        this.#onReady(message.life, message.lastSeq);
        return;
      case "committed":
        this.#answered(message.upTo);
        this.#waitingSinceMs = this.#unanswered.size > 0 ? performance.now() : undefined;
        this.#options.onCommitted?.(message.upTo);
        this.#reportOverflow();
        return;
      case "rejected":
        this.#answered(message.upTo);
        this.#options.onRejected?.(message.upTo);
        this.#reportOverflow();
        return;
      case "ledger":
        this.#reportOverflow();
        this.#options.onLedger(message.ledger, message.bytes, message.fill);
        return;
      case "alarm":
        if (message.alarm.text !== this.#lastAlarm) this.#options.onAlarm(message.alarm, message.isOver);
        this.#lastAlarm = message.alarm.text;
        return;
      case "note":
        this.#options.onNote?.(message.message);
        return;
      case "stopped":
        this.#isReady = false;
        return;
    }
  }

  /**
   * False: too much is unanswered, or the client is closed; the readout's values are counted as rejected (overflow). `intervalMs`: between two
   * readouts of the source; 0: not known, and it waits for as few others as may be.
   */
  append(layout: Layout, readout: Readout, intervalMs = 0): boolean {
    const whole = this.#wholeOf(readout);
    return this.#append(layout, readout, intervalMs, encodeReadout(layout, readout), whole && encodeReadout(layout, whole));
  }

  /** append by slices; the readings stay as they are until then. It has its number once it is encoded. */
  async appendInSlices(layout: Layout, readout: Readout, intervalMs = 0): Promise<boolean> {
    const whole = this.#wholeOf(readout);
    const encoded = await inSlices(encodeSteps(layout, readout), createYielder());
    const encodedWhole = whole && (await inSlices(encodeSteps(layout, whole), createYielder()));
    return this.#append(layout, readout, intervalMs, encoded, encodedWhole);
  }

  /** The readout with the values that are as they were: sinks that serve current values show when they were read. Undefined: it has all. */
  #wholeOf({ unchanged, ...whole }: Readout): Readout | undefined {
    return unchanged && this.#isServing ? whole : undefined;
  }

  #append(
    layout: Layout,
    readout: Readout,
    intervalMs: number,
    { payload, count, explorationCount, unchangedCount: suppressed }: EncodedReadout,
    whole: EncodedReadout | undefined,
  ): boolean {
    this.#waitingSinceMs ??= performance.now();
    const { time, clockSynced, bootTimeMs } = readout;
    const counts = { count, explorationCount, ...(suppressed > 0 && { suppressed }) };
    const shown = whole && { payload: whole.payload, count: whole.count, explorationCount: whole.explorationCount };
    const stamp = { time, clockSynced, bootTimeMs };
    const batch = { seq: this.#nextSeq, layoutKey: layoutKey(layout), ...stamp, ...counts, payload, ...(shown && { shown }) };
    // One always fits.
    const isFull = this.#unanswered.size > 0 && this.#unansweredBytes + bytesOf(batch) > this.#maxUnansweredBytes;
    if (this.#isClosed || isFull) {
      this.#rejectedReadouts++;
      // Values that it left out are lost with it: the next readout has them again.
      this.#rejectedValues += count + explorationCount + suppressed;
      const span = spanOf(batch);
      this.#rejectedSpan = joinSpans(this.#rejectedSpan, span);
      this.#unreportedSpan = joinSpans(this.#unreportedSpan, span);
      this.#reportFull();
      return false;
    }
    this.#nextSeq++;
    this.#unanswered.set(batch.seq, { batch, layout });
    this.#unansweredBytes += bytesOf(batch);
    this.#unpostedBytes += payload.byteLength;
    if (this.#unpostedBytes >= MESSAGE_BYTES) this.#flush();
    else this.#flushWithin(Math.max(this.#postDelayMs, Math.min(intervalMs * POST_DELAY_PART, MOST_POST_DELAY_MS)));
    return true;
  }

  /**
   * Makes what the first readout with a large layout needs, and sends the layout ahead, by slices. Undefined: it is small, and nothing has to
   * be waited for. What is appended without it costs one long slice. Never rejects.
   */
  prepare(layout: Layout): Promise<void> | undefined {
    return layout.variables.length > VARIABLES_AT_ONCE ? this.#prepare(layout) : undefined;
  }

  /** The sinks that get the whole history from now on. What was appended before belongs to the earlier ones. */
  setSinks(sinks: readonly BufferSink[]): void {
    this.#sinks = sinks;
    if (this.#isReady) this.#unpostedSinks.push({ seq: this.#nextSeq, sinks });
    this.#flush();
  }

  /** Sinks that serve current values get whole readouts from now on. */
  setServing(isServing: boolean): void {
    this.#isServing = isServing;
  }

  unanswered(): { readonly batches: number; readonly bytes: number } {
    return { batches: this.#unanswered.size, bytes: this.#unansweredBytes };
  }

  /** How long what was appended has waited without any of it being stored, or rejected values come while none is; 0: it does not wait. */
  unstoredForMs(): number {
    return this.#waitingSinceMs === undefined ? 0 : performance.now() - this.#waitingSinceMs;
  }

  /** Values that `append` refused. */
  rejected(): { readonly readouts: number; readonly values: number } {
    return { readouts: this.#rejectedReadouts, values: this.#rejectedValues };
  }

  /** Takes no more. True once everything is answered, false if it is not within `timeoutMs`. */
  close(timeoutMs: number): Promise<boolean> {
    this.#isClosed = true;
    this.#flush();
    if (this.#unanswered.size === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), timeoutMs);
      this.#onDrained = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }

  #onReady(life: number, lastSeq: number): void {
    this.#isReady = true;
    this.#workers++;
    this.#sentLayouts = createRecentLayouts();
    this.#layoutsUnderWay = new Map();
    this.#isHeld = false;
    this.#unpostedSinks = [];
    this.#reportedRejectedValues = 0;
    this.#unreportedSpan = this.#rejectedSpan;
    this.#reportOverflow();
    this.#answered(lastSeq);
    if (this.#unanswered.size === 0) this.#waitingSinceMs = undefined;
    this.#post?.({ type: "begin", life });
    if (this.#sinks) this.#post?.({ type: "sinks", sinks: this.#sinks });
    this.#nextToPost = this.#unanswered.keys().next().value ?? this.#nextSeq;
    this.#flush();
  }

  /** Does nothing where a sooner time is set. */
  #flushWithin(ms: number): void {
    const atMs = performance.now() + ms;
    if (this.#flushing && this.#flushAtMs <= atMs) return;
    clearTimeout(this.#flushing);
    this.#flushAtMs = atMs;
    this.#flushing = setTimeout(() => this.#flush(), ms);
  }

  /** Posts what this worker was not posted yet, each layout before the first batch that names it. */
  #flush(): void {
    clearTimeout(this.#flushing);
    this.#flushing = undefined;
    this.#unpostedBytes = 0;
    const post = this.#post;
    if (!post || !this.#isReady || this.#isHeld) return;
    let batches: NewBatch[] = [];
    let bytes = 0;
    let variables = 0;
    const postBatches = (): void => {
      if (batches.length > 0) post({ type: "append", batches });
      batches = [];
      bytes = 0;
    };
    for (; this.#nextToPost < this.#nextSeq; this.#nextToPost++) {
      if (this.#unpostedSinks[0] && this.#unpostedSinks[0].seq <= this.#nextToPost) {
        postBatches();
        this.#postSinks(post, this.#nextToPost);
      }
      const entry = this.#unanswered.get(this.#nextToPost);
      if (!entry) continue;
      const { batch, layout } = entry;
      if (!this.#sentLayouts.get(batch.layoutKey)) {
        variables += layout.variables.length;
        if (variables > VARIABLES_AT_ONCE) {
          postBatches();
          void this.#holdFor(batch.layoutKey, layout);
          return;
        }
        post({ type: "layout", key: batch.layoutKey, layout });
        this.#sentLayouts.add(batch.layoutKey, layout.source.uuid, true);
      }
      batches.push(batch);
      bytes += batch.payload.byteLength;
      if (bytes >= MESSAGE_BYTES) postBatches();
    }
    postBatches();
    this.#postSinks(post, this.#nextSeq);
  }

  /** The latest that are for batches up to this one. */
  #postSinks(post: (message: ToStore) => void, seq: number): void {
    const due = this.#unpostedSinks.filter((one) => one.seq <= seq);
    this.#unpostedSinks = this.#unpostedSinks.slice(due.length);
    const last = due.at(-1);
    if (last) post({ type: "sinks", sinks: last.sinks });
  }

  async #prepare(layout: Layout): Promise<void> {
    const yieldToEventLoop = createYielder();
    const key = await inSlices(layoutKeySteps(layout), yieldToEventLoop);
    await inSlices(planSteps(layout), yieldToEventLoop);
    if (this.#isReady && !this.#sentLayouts.get(key)) await this.#sendLayout(key, layout);
  }

  /** Batches follow once their layout has crossed. */
  async #holdFor(key: string, layout: Layout): Promise<void> {
    const worker = this.#workers;
    this.#isHeld = true;
    await this.#sendLayout(key, layout);
    if (worker !== this.#workers) return;
    this.#isHeld = false;
    this.#flush();
  }

  #sendLayout(key: string, layout: Layout): Promise<void> {
    const known = this.#layoutsUnderWay.get(key);
    if (known) return known;
    const underWay = this.#layoutsUnderWay;
    const sent = this.#sendParts(key, layout).finally(() => underWay.delete(key));
    underWay.set(key, sent);
    return sent;
  }

  async #sendParts(key: string, layout: Layout): Promise<void> {
    const worker = this.#workers;
    const yieldToEventLoop = createYielder();
    // This turn may have sent others.
    await nextTurn();
    const { source, variables } = layout;
    let from = 0;
    for (; from + VARIABLES_AT_ONCE < variables.length; from += VARIABLES_AT_ONCE) {
      if (worker !== this.#workers || !this.#isReady) return;
      this.#post?.({ type: "layout_part", key, variables: variables.slice(from, from + VARIABLES_AT_ONCE) });
      await yieldToEventLoop();
    }
    if (worker !== this.#workers || !this.#isReady) return;
    this.#post?.({ type: "layout", key, layout: { source, variables: variables.slice(from) } });
    this.#sentLayouts.add(key, source.uuid, true);
  }

  #reportOverflow(): void {
    if (!this.#isReady || this.#reportedRejectedValues === this.#rejectedValues) return;
    this.#reportedRejectedValues = this.#rejectedValues;
    const span = this.#unreportedSpan;
    this.#unreportedSpan = undefined;
    this.#post?.({ type: "overflow", values: this.#rejectedValues, ...(span && { span }) });
  }

  /** Once, until something is answered. */
  #reportFull(): void {
    if (this.#isFull || this.#isClosed) return;
    this.#isFull = true;
    this.#options.onAlarm(
      warning(
        "buffer_full_of_waiting",
        `the memory for values that wait for the buffer is full (${Math.round(this.#unansweredBytes / 2 ** 20)} MiB): what is read now is rejected, and counted as overflow`,
      ),
    );
  }

  #answered(upTo: number): void {
    for (const [seq, { batch }] of this.#unanswered) {
      if (seq > upTo) break;
      this.#unanswered.delete(seq);
      this.#unansweredBytes -= bytesOf(batch);
      this.#isFull = false;
    }
    if (this.#unanswered.size === 0) this.#onDrained?.();
  }
}

/** A batch's share of the client's memory. */
const bytesOf = ({ payload, shown }: NewBatch): number => payload.byteLength + (shown?.payload.byteLength ?? 0) + BATCH_OVERHEAD_BYTES;
