import { sleep } from "../base/timer.ts";
import { type Account, type Loss, type LossAcknowledgement, type Place, pendingOf, type StoredBatch } from "../buffer/buffer.ts";
import type { Clock } from "../model/clock.ts";
import type { Context, Log } from "../model/context.ts";
import { messageOf, toReasonError } from "../model/failure.ts";
import type { Layout } from "../model/layout.ts";
import { nameInCommand } from "../model/name-in-command.ts";
import { ReasonError } from "../model/reason.ts";
import type { SinkReport, SourceReport } from "../model/report.ts";
import { type Warning, WarningTimes } from "../model/warning.ts";
import type { Sink, SinkMemory } from "../sinks/sink.ts";
import type { Settled } from "./acknowledgements.ts";
import { AskedPolicy } from "./asked-policy.ts";
import { DeliveryQueue } from "./delivery-queue.ts";
import { KeptBack } from "./kept-back.ts";
import { Notices } from "./notices.ts";
import type { Opening } from "./opening.ts";
import type { PreparedSink } from "./prepare-sink.ts";
import { Reopening } from "./reopening.ts";
import { SinkState } from "./sink-state.ts";
import { Watchdog } from "./watchdog.ts";
import { Writer } from "./writer.ts";
import { writtenBytesOf } from "./written-size.ts";

/** What a pump needs of the engine. */
export interface PumpPort {
  readonly log: Log;
  readonly clock: Clock;
  /** The context of the sink, except the signal and the log. */
  readonly surroundings?: Omit<Context, "signal" | "log">;
  /** Folder of the files that sinks keep over restarts; absent: they keep nothing. */
  readonly memoryDir?: string;
  /** Layout by its id in the file; undefined: the file does not have it. Throws if the file cannot be read. */
  layout(id: number): Layout | undefined;
  /** Rows with from <= id < to, of up to `maxBytes` of payload but at least one. Throws if the file cannot be read. */
  read(from: number, to: number, maxBytes: number): readonly StoredBatch[];
  /** Distinguishes lives of the file in batch ids. */
  epoch(): string;
  /** Names the start of the store since which batches have this id. */
  startOf(id: number): string;
  /** These rows are about to be sent. Returns them with the stamps to send them with. */
  sending(rows: readonly StoredBatch[]): readonly StoredBatch[];
  /** Distinguishes lives of the delivery in the batch ids of unstored rows. */
  readonly life: string;
  acknowledge(settled: Settled): void;
  deliveredUnstored(values: number): void;
  /** The losses that are not acknowledged. Throws if the file cannot be read. */
  losses(): readonly Loss[];
  lossPublished(loss: Omit<LossAcknowledgement, "sink">): void;
  /** The report has changed. */
  changed(): void;
}

export interface PumpLimits {
  /** Payload bytes of live rows that wait in memory for one sink. */
  readonly maxLiveBytes: number;
  /** Payload bytes of one read from the file. */
  readonly maxReadBytes: number;
  /** Payload bytes of one batch; a single row may exceed it. */
  readonly maxBatchBytes: number;
  readonly maxBatchReadouts: number;
  /** About how many bytes a sink may make of one batch of several readouts. */
  readonly maxWrittenBytes: number;
  /** Of all batches that are written at once, but for a single one. */
  readonly maxUnderWayBytes: number;
  readonly openTimeoutMs: number;
  /** On stop, for the writes under way. */
  readonly drainTimeoutMs: number;
}

const DRAIN_STEP_MS = 10;
/** A row with its payload in memory of its own, and its place in the queue. */
const ROW_BYTES = 400;

/** Runs one sink: opens it, writes the queue to it, and opens it again whenever it is lost. Sinks do not affect each other. */
export class SinkPump {
  readonly #prepared: PreparedSink;
  readonly #port: PumpPort;
  readonly #limits: PumpLimits;
  readonly #log: Log;
  /** What the kind keeps over openings. */
  readonly #memory: SinkMemory | undefined;
  readonly #queue: DeliveryQueue;
  readonly #state: SinkState;
  readonly #writer: Writer;
  readonly #notices: Notices;
  readonly #reopening: Reopening;
  readonly #keptBack: KeptBack;
  /** Sources that were kept back when that was looked at last. */
  #keptBackSize = 0;
  readonly #watchdog: Watchdog;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  /** Resolves when the pump has stopped. */
  #ending: Promise<void> | undefined;
  #opening: Opening | undefined;
  /** What the policy said to the last try to open. */
  #asked: AskedPolicy;
  /** Ends the wait for the next try. */
  #pause: AbortController | undefined;
  /** Aborts when the opening ends. */
  #openingEnd = new AbortController();
  #reported = "";
  #filterWarning: Warning | undefined;
  readonly #warningTimes = new WarningTimes();

  constructor(prepared: PreparedSink, port: PumpPort, limits: PumpLimits) {
    this.#prepared = prepared;
    this.#port = port;
    this.#limits = limits;
    this.#asked = new AskedPolicy(port.surroundings ?? {});
    const { spec, kind, endpoint } = prepared;
    this.#log = withFields(port.log, { sink: spec.name ?? spec.uuid, type: spec.type, endpoint });
    this.#memory = kind.openMemory?.({ folder: port.memoryDir, uuid: spec.uuid, endpoint, log: this.#log });
    this.#queue = this.#createQueue();
    this.#keptBack = new KeptBack(
      {
        keepsAll: this.keepsAll,
        maxBytes: this.#maxLiveBytes,
        setting: kind.maxWaitingBytes && `max_waiting of the sink ${nameInCommand(spec)}`,
      },
      this.#log,
    );
    this.#state = new SinkState({ endpoint, sinkType: spec.type }, this.#log, () => port.changed(), port.clock);
    this.#watchdog = new Watchdog(prepared.publishIntervalMs);
    this.#writer = new Writer({
      queue: this.#queue,
      takesExploration: kind.takesExploration,
      filter: prepared.filter,
      log: this.#log,
      layout: (id) => port.layout(id),
      names: { startOf: (id) => port.startOf(id), life: port.life },
      sending: (rows) => (this.keepsAll ? port.sending(rows) : rows),
      maxUnderWayBytes: limits.maxUnderWayBytes,
      state: this.#state,
    });
    const losses = { losses: () => port.losses(), epoch: () => port.epoch(), published: port.lossPublished };
    this.#notices = new Notices(this.keepsAll ? losses : undefined, this.#log);
    this.#reopening = new Reopening(kind.closedSoon && { ...kind.closedSoon, hint: kind.closedSoon.hint(nameInCommand(spec)) });
    this.#running = this.#run().catch((error: unknown) =>
      this.#log.error({ err: error }, `the loop of the sink ended: ${messageOf(error)}`),
    );
  }

  /** True: the sink gets the whole history. False: current values only. */
  get keepsAll(): boolean {
    return this.#prepared.kind.delivery === "every";
  }

  isOpen(): boolean {
    return this.#opening !== undefined;
  }

  isAttached(): boolean {
    return this.#queue.isAttached();
  }

  /** Starts from the sink's place in the file. */
  attach(place: Place): void {
    this.#writer.forget();
    this.#queue.attach(place);
    this.#writer.wake();
  }

  /**
   * Looks whether what waits for the sink is delivered. True: it is to be attached again. `account`: of this moment. To be called about once a
   * second.
   */
  look(account: Account, nowMs: number): boolean {
    const { accepted, delivered, unconfirmed, filtered, dropped } = account;
    const settled = delivered + unconfirmed + filtered + (dropped.refused ?? 0) + (dropped.damaged ?? 0);
    const isIdle = this.#state.isWell() && this.#writer.isIdle() && !this.#writer.holdsBack();
    const isStalled = this.#watchdog.look(nowMs, { accepted, settled, pending: pendingOf(account), isIdle });
    const { isFailing, patienceMs } = this.#watchdog;
    const what = `nothing was delivered for ${Math.round(patienceMs / 1000)} s, although the sink is connected and values wait`;
    if (isStalled && !isFailing) this.#log.warn({ pending: pendingOf(account) }, `${what}: it is attached to the buffer again`);
    this.#state.stalled(isFailing ? `${what}, and attaching it again did not help` : undefined);
    return isStalled;
  }

  /** The file is closed, or another one: forgets its rows. */
  detach(): void {
    this.#queue.detach();
    this.#writer.forget();
  }

  /** Takes rows as they were committed, in order. */
  take(rows: readonly StoredBatch[]): void {
    this.#queue.take(rows, performance.now());
    this.#writer.wake();
    this.#lookAtKeptBack();
  }

  /** Takes rows that are in no file: they are written now or never. */
  takeUnstored(rows: readonly StoredBatch[]): void {
    this.#queue.takeUnstored(rows, performance.now());
    this.#writer.wake();
    this.#lookAtKeptBack();
  }

  /** Ids below `to` are committed: those whose rows did not come are read from the file. */
  advance(to: number): void {
    this.#queue.advance(to);
    this.#writer.wake();
  }

  /** Newest readouts that found no room on the way here: bytes by uuid of the source. */
  keepBack(bytes: ReadonlyMap<string, number>): void {
    this.#queue.keepBack(bytes);
    this.#lookAtKeptBack();
  }

  /** Publishes the losses that are not published yet. */
  publishLosses(): void {
    this.#notices.publishLosses();
  }

  /** Publishes the sources as they are now. */
  describe(sources: readonly SourceReport[]): void {
    const { filter } = this.#prepared;
    this.#notices.describe(filter.sources(sources));
    this.#filterWarning = filter.warning(sources);
    this.#queue.retainSources(this.#keptBack.describe(sources));
    this.#reportChanges();
  }

  /** The policy is another one: where that concerns this sink, its opening ends now, or the next try comes now. */
  policyChanged(): void {
    const change = this.#asked.change();
    if (!change) return;
    this.#pause?.abort();
    if (!this.#opening) return;
    // What is under way is not the cause.
    this.#writer.giveUp();
    this.#opening.lose(endedByPolicy(change));
  }

  report(): SinkReport {
    const { spec, endpoint, filter } = this.#prepared;
    const { uuid, name, type } = spec;
    const sink = this.#opening?.sink;
    const link = sink?.link?.();
    const clients = sink?.clients?.();
    const named = { uuid, name, type, endpoint: sink?.endpoint ?? endpoint };
    return {
      ...named,
      ...this.#state.report(),
      warnings: this.#warningTimes.dated(this.#warnings(), this.#port.clock.epochMs()),
      ...(link && { link }),
      ...(clients && { clients }),
      ...(!filter.isOpen && { filter: filter.patterns }),
    };
  }

  /**
   * Stops the sink, within a few drain timeouts. `removed`: writes nothing more, and clears what the sink retained at the server.
   * Idempotent; never throws.
   */
  stop(removed: boolean): Promise<void> {
    this.#ending ??= this.#end(removed);
    return this.#ending;
  }

  #createQueue(): DeliveryQueue {
    const limits = this.#limits;
    const port = this.#port;
    return new DeliveryQueue({
      keepsAll: this.keepsAll,
      inOrder: this.#prepared.backlog === "in_order",
      intervalMs: this.#prepared.publishIntervalMs,
      maxBytes: limits.maxBatchBytes,
      maxReadouts: limits.maxBatchReadouts,
      rowBytes: ROW_BYTES,
      maxWrittenBytes: limits.maxWrittenBytes,
      writtenBytesOf: (row) => writtenBytesOf(row, this.#layoutOf(row)),
      maxLiveBytes: this.#maxLiveBytes,
      maxReadBytes: limits.maxReadBytes,
      // What is live always has room.
      maxOlderBytes: limits.maxUnderWayBytes / 2,
      keyOf: (row) => this.#keyOf(row),
      read: (from, to, maxBytes) => port.read(from, to, maxBytes),
      acknowledge: (settled) => port.acknowledge(this.#isConfirmed ? settled : { ...settled, isUnconfirmed: true }),
      deliveredUnstored: (values) => port.deliveredUnstored(values),
    });
  }

  /** The server confirms what it has. */
  get #isConfirmed(): boolean {
    const { kind, settings } = this.#prepared;
    return kind.confirms?.(settings) ?? true;
  }

  get #maxLiveBytes(): number {
    const { kind, settings } = this.#prepared;
    return kind.maxWaitingBytes?.(settings) ?? this.#limits.maxLiveBytes;
  }

  /** Rows of one source stay in order also where its layout changes. */
  #keyOf(row: StoredBatch): string {
    return this.#layoutOf(row)?.source.uuid ?? `layout ${row.layout}`;
  }

  /** Undefined: it is not known, or cannot be read at this moment. */
  #layoutOf({ layout }: StoredBatch): Layout | undefined {
    try {
      return this.#port.layout(layout);
    } catch {
      return undefined;
    }
  }

  /** Opens and serves the sink until the pump stops. */
  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      let reason: ReasonError;
      let isIsolating = false;
      try {
        const sink = await this.#open();
        if (!sink) return;
        const lost = await this.#serve(sink);
        if (!lost) return;
        isIsolating = lost.isIsolating;
        reason = lost.reason;
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        reason = toReasonError(error);
      }
      await this.#waitForRetry(reason, isIsolating);
    }
  }

  /** Undefined: the pump stops. Throws ReasonError if the sink does not open. */
  async #open(): Promise<Sink | undefined> {
    const { spec, kind, details, settings } = this.#prepared;
    this.#openingEnd = new AbortController();
    const timeout = AbortSignal.timeout(this.#limits.openTimeoutMs);
    const signal = AbortSignal.any([this.#openingEnd.signal, this.#stopping.signal, timeout]);
    const { uuid, name, secrets, collector } = spec;
    const { surroundings = {} } = this.#port;
    const asked = new AskedPolicy(surroundings);
    this.#asked = asked;
    const sink = await kind.open(
      { uuid, name, details, settings, secrets, collector, memory: this.#memory },
      { ...surroundings, ...asked.context, signal, log: this.#log },
    );
    const change = asked.change();
    if (!this.#stopping.signal.aborted && !change) return sink;
    await sink.close();
    if (change) throw endedByPolicy(change);
    return undefined;
  }

  /** Writes to the sink until it is lost, and closes it. Undefined: the pump stops, and the sink is still open. */
  async #serve(sink: Sink): Promise<{ readonly reason: ReasonError; readonly isIsolating: boolean } | undefined> {
    const openedMs = performance.now();
    const reason = await this.#untilLost(sink);
    if (!reason) return undefined;
    const lastedMs = performance.now() - openedMs;
    const isIsolating = this.#writer.isIsolating();
    if (reason.isOfLimit) this.#writer.giveUp();
    const writes = this.#writer.lost(reason, this.#notices.isPublishing());
    this.#reopening.lost({ reason, lastedMs, isIsolating, hasCause: writes > 0 || this.#writer.hasJustRefused() });
    await this.#release(sink);
    return { reason, isIsolating };
  }

  async #untilLost(sink: Sink): Promise<ReasonError | undefined> {
    let lose: Opening["lose"] = () => {};
    const lost = new Promise<unknown>((done) => {
      lose = done;
    });
    const opening: Opening = { sink, ctx: { signal: this.#openingEnd.signal, log: this.#log }, lose };
    this.#opening = opening;
    sink.watchWarnings?.(() => this.#reportChanges());
    this.#state.opened();
    this.#notices.open(opening);
    this.#writer.open(opening);
    const reason = await Promise.race([lost, sink.lost]);
    return this.#stopping.signal.aborted ? undefined : toReasonError(reason);
  }

  async #release(sink: Sink): Promise<void> {
    this.#opening = undefined;
    this.#writer.close();
    this.#notices.close();
    this.#openingEnd.abort();
    await sink.close();
  }

  async #waitForRetry(reason: ReasonError, isIsolating: boolean): Promise<void> {
    const { delayMs, hint, condition } = this.#reopening.next(reason, performance.now());
    this.#state.lost(reason, delayMs, { hint, condition, isIsolating });
    // The policy has changed since it was asked: what it says now decides.
    if (this.#asked.change()) return;
    this.#pause = new AbortController();
    await sleep(delayMs, AbortSignal.any([this.#stopping.signal, this.#pause.signal]));
    this.#pause = undefined;
  }

  async #end(removed: boolean): Promise<void> {
    const { drainTimeoutMs } = this.#limits;
    // Ends the waits: a timer that is left would keep the whole worker from ending.
    const ended = new AbortController();
    if (removed) this.#queue.halt();
    this.#stopping.abort();
    this.#opening?.lose(undefined);
    await Promise.race([this.#running, sleep(drainTimeoutMs, ended.signal)]);
    if (this.#opening) {
      const { sink, ctx } = this.#opening;
      await this.#drain(sink);
      if (removed && sink.forget) {
        const clearing = sink
          .forget(ctx)
          .catch((error: unknown) => this.#log.debug({ err: error }, "what the sink retained at the server could not be cleared"));
        await Promise.race([clearing, sleep(drainTimeoutMs, ended.signal)]);
      }
      await this.#release(sink);
    }
    ended.abort();
    this.#memory?.close(removed);
    this.#writer.end();
    this.#state.stopped();
  }

  /** Writes the live rows that are left, until the drain timeout. */
  async #drain(sink: Sink): Promise<void> {
    const endMs = performance.now() + this.#limits.drainTimeoutMs;
    let isLost = false;
    void sink.lost.then(() => {
      isLost = true;
    });
    while (!isLost && performance.now() < endMs && !(this.#queue.drain() && this.#writer.isIdle())) {
      this.#writer.drain();
      await sleep(DRAIN_STEP_MS);
    }
  }

  #warnings(): readonly Warning[] {
    const kept = this.#keptBack.warning(this.#queue.keptBack);
    const ofFilter = this.#filterWarning;
    const own = [...(kept === undefined ? [] : [kept]), ...(ofFilter === undefined ? [] : [ofFilter])];
    return [...(this.#prepared.spec.notes ?? []), ...own, ...(this.#opening?.sink.warnings ?? [])];
  }

  #lookAtKeptBack(): void {
    const { size } = this.#queue.keptBack;
    if (size === this.#keptBackSize) return;
    this.#keptBackSize = size;
    this.#reportChanges();
  }

  /** Warnings, link and clients change without an event: they are compared as often as the sources are described. */
  #reportChanges(): void {
    const now = JSON.stringify([this.#warnings(), this.#opening?.sink.link?.(), this.#opening?.sink.clients?.()]);
    if (now === this.#reported) return;
    this.#reported = now;
    this.#port.changed();
  }
}

const endedByPolicy = ({ refusal }: { readonly refusal: string | undefined }): ReasonError =>
  refusal === undefined
    ? new ReasonError("UNKNOWN", "policy.yaml changed: reconnecting")
    : new ReasonError("UNKNOWN", refusal, { condition: "forbidden_by_policy" });

function withFields(log: Log, fields: object): Log {
  return {
    debug: (more, message) => log.debug({ ...fields, ...more }, message),
    info: (more, message) => log.info({ ...fields, ...more }, message),
    warn: (more, message) => log.warn({ ...fields, ...more }, message),
    error: (more, message) => log.error({ ...fields, ...more }, message),
  };
}
