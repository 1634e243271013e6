import type { Gap, GapAcknowledgement, Position, StoredBatch } from "../buffer/buffer.ts";
import type { IdRange } from "../buffer/position.ts";
import { type Backoff, backOff, HEALTHY_MS } from "../lib/backoff.ts";
import type { Context, Log } from "../model/context.ts";
import { messageOf, toReasonError } from "../model/failure.ts";
import type { Layout } from "../model/layout.ts";
import { type ReasonError, restMsOf } from "../model/reason.ts";
import type { SinkReport, SourceReport } from "../model/report.ts";
import { sleep } from "../model/timer.ts";
import { isClose } from "../sinks/lib/in-flight-window.ts";
import { openLeftBehind } from "../sinks/mqtt/retained-topics.ts";
import type { Sink, Unwelcome } from "../sinks/sink.ts";
import type { Settled } from "./acknowledgements.ts";
import { createFlow, type Flow } from "./delivery-queue.ts";
import { Notices } from "./notices.ts";
import type { Opening } from "./opening.ts";
import type { PreparedSink } from "./prepare-sink.ts";
import { SinkState } from "./sink-state.ts";
import { Writer } from "./writer.ts";

/** What a pump needs of the others. */
export interface PumpPort {
  readonly log: Log;
  /** What the sink gets beside the signal and the log. */
  readonly surroundings?: Omit<Context, "signal" | "log">;
  /** Where sinks keep what they left behind; absent: in memory only. */
  readonly leftBehindDir?: string;
  /** Layout by its id in the file; undefined: the file does not have it. Throws if the file cannot be read. */
  layout(id: number): Layout | undefined;
  /** Throws if the file cannot be read. */
  read(from: number, to: number, maxBytes: number): readonly StoredBatch[];
  /** Distinguishes lives of the file in batch ids. */
  epoch(): string;
  /** Distinguishes lives of the delivery in the ids of what is in no file. */
  readonly life: string;
  acknowledge(settled: Settled): void;
  deliveredUnstored(values: number): void;
  /** The gaps that are not published yet. Throws if the file cannot be read. */
  gaps(): readonly Gap[];
  gapPublished(gap: Omit<GapAcknowledgement, "sink">): void;
  /** The report has changed. */
  changed(): void;
}

export interface PumpLimits {
  readonly maxLiveBytes: number;
  readonly maxReadBytes: number;
  readonly maxBatchBytes: number;
  readonly maxBatchReadouts: number;
  readonly openTimeoutMs: number;
  /** On stop: for what is under way. */
  readonly drainTimeoutMs: number;
}

/** One sink: opens it, keeps it open, writes to it. Nothing it does touches another. */
export interface Pump {
  /** The whole history; false: current values only. */
  readonly keepsAll: boolean;
  readonly flow: Pick<Flow, "isAttached" | "detach">;
  attach(position: Position, edge: number): void;
  take(rows: readonly StoredBatch[]): void;
  /** Rows that are in no file: written now or never. */
  takeUnstored(rows: readonly StoredBatch[]): void;
  addOlder(range: IdRange): void;
  /** There are gaps to publish. */
  publishGaps(): void;
  describe(sources: readonly SourceReport[]): void;
  report(): SinkReport;
  /**
   * Lets go of the sink, in bounded time. `removed`: nothing more is written, and what it left behind is cleared first. Never throws.
   */
  stop(removed: boolean): Promise<void>;
}

const DRAIN_STEP_MS = 10;
/** So many closes soon after opening look like another client under the same name: both would go on cutting each other off. */
const CLOSED_SOON_TIMES = 3;
const TAKEOVER_MS = 60_000;

export function startPump(prepared: PreparedSink, port: PumpPort, limits: PumpLimits): Pump {
  const { spec, kind } = prepared;
  const stopping = new AbortController();
  const fields = { sink: spec.name ?? spec.uuid, type: spec.type, endpoint: prepared.endpoint };
  const log: Log = {
    debug: (more, message) => port.log.debug({ ...fields, ...more }, message),
    info: (more, message) => port.log.info({ ...fields, ...more }, message),
    warn: (more, message) => port.log.warn({ ...fields, ...more }, message),
    error: (more, message) => port.log.error({ ...fields, ...more }, message),
  };
  const leftBehind = openLeftBehind(port.leftBehindDir, spec.uuid, prepared.endpoint, log);
  /** Rows of one source stay in order also where its layout changes. */
  const keyOf = ({ layout }: StoredBatch): string => {
    try {
      return port.layout(layout)?.source.uuid ?? `layout ${layout}`;
    } catch {
      return `layout ${layout}`;
    }
  };
  const keepsAll = kind.delivery === "every";
  const flow = createFlow({
    keepsAll,
    inOrder: prepared.backlog === "in_order",
    intervalMs: prepared.publishIntervalMs,
    maxBytes: limits.maxBatchBytes,
    maxReadouts: limits.maxBatchReadouts,
    maxLiveBytes: limits.maxLiveBytes,
    maxReadBytes: limits.maxReadBytes,
    keyOf,
    read: (from, to, maxBytes) => port.read(from, to, maxBytes),
    acknowledge: (settled) => port.acknowledge(settled),
    deliveredUnstored: (values) => port.deliveredUnstored(values),
  });
  const state = new SinkState(prepared.endpoint, log, () => port.changed());
  const writer = new Writer({
    flow,
    takesExploration: kind.takesExploration,
    log,
    layout: (id) => port.layout(id),
    names: () => ({ epoch: port.epoch(), life: port.life }),
    wrote: (refused, detail) => state.wrote(refused, detail),
    dropped: (values, detail) => state.dropped(values, detail),
    keeping: (detail) => state.keeping(detail),
  });
  const gaps = { gaps: () => port.gaps(), epoch: () => port.epoch(), published: port.gapPublished };
  const notices = new Notices(keepsAll ? gaps : undefined, log);

  const unwelcome = new Map<string, Unwelcome>();
  const remembered = new Map<string, string>();
  let current: Opening | undefined;
  /** Aborts when one opening of the sink ends. */
  let life = new AbortController();

  const open = async (): Promise<Sink | undefined> => {
    life = new AbortController();
    const signal = AbortSignal.any([life.signal, stopping.signal, AbortSignal.timeout(limits.openTimeoutMs)]);
    const { uuid, name, secrets } = spec;
    const kept = { leftBehind: leftBehind.topics, unwelcome, remembered };
    const opened = await kind.open(
      { uuid, name, details: prepared.details, settings: prepared.settings, secrets, ...kept },
      { ...port.surroundings, signal, log },
    );
    if (!stopping.signal.aborted) return opened;
    await opened.close();
    return undefined;
  };

  /** Until the sink is lost or the pump stops: why. */
  const serve = async (sink: Sink): Promise<ReasonError | undefined> => {
    let lose: Opening["lose"] = () => {};
    const lost = new Promise<unknown>((done) => {
      lose = done;
    });
    const opening: Opening = { sink, ctx: { signal: life.signal, log }, lose };
    current = opening;
    state.opened();
    notices.open(opening);
    writer.open(opening);
    const reason = await Promise.race([lost, sink.lost]);
    return stopping.signal.aborted ? undefined : toReasonError(reason);
  };

  const letGo = async (sink: Sink): Promise<void> => {
    current = undefined;
    writer.close();
    notices.close();
    life.abort();
    await sink.close();
  };

  const run = async (): Promise<void> => {
    let backoff: Backoff | undefined;
    /** Openings in a row that the far side ended soon, with nothing under way that might be the cause. */
    let closedSoon = 0;
    while (!stopping.signal.aborted) {
      let reason: ReasonError;
      let isIsolating = false;
      try {
        const opened = await open();
        if (!opened) return;
        const openedMs = performance.now();
        const lost = await serve(opened);
        if (!lost) return;
        const wasHealthy = performance.now() - openedMs >= HEALTHY_MS;
        isIsolating = writer.isIsolating();
        const writes = writer.lost(lost, notices.isPublishing());
        if (wasHealthy || !isClose(lost.reason.type)) closedSoon = 0;
        else if (writes === 0 && !writer.hasJustRefused()) closedSoon++;
        await letGo(opened);
        if (wasHealthy || isIsolating) backoff = undefined;
        reason = lost;
      } catch (error) {
        if (stopping.signal.aborted) return;
        reason = toReasonError(error);
      }
      const next = backOff(backoff, performance.now());
      backoff = next.state;
      const isTakeover = closedSoon >= CLOSED_SOON_TIMES && kind.closedSoonHint !== undefined;
      const delayMs = isTakeover ? TAKEOVER_MS : Math.max(next.delayMs, restMsOf(reason));
      const hint = `closed ${closedSoon} times within ${HEALTHY_MS / 1000} s of connecting: ${kind.closedSoonHint}`;
      state.lost(reason, delayMs, { hint: isTakeover ? hint : undefined, isIsolating });
      await sleep(delayMs, stopping.signal);
    }
  };

  const running = run().catch((error: unknown) => log.error({ err: error }, `the sink's loop ended: ${messageOf(error)}`));

  const drain = async (sink: Sink): Promise<void> => {
    const endMs = performance.now() + limits.drainTimeoutMs;
    const isGone = { lost: false };
    void sink.lost.then(() => {
      isGone.lost = true;
    });
    while (!isGone.lost && performance.now() < endMs && !(flow.drain() && writer.isIdle())) {
      writer.drain();
      await sleep(DRAIN_STEP_MS);
    }
  };

  const end = async (removed: boolean): Promise<void> => {
    // Ends the waits: a timer that is left would keep the whole worker from ending.
    const ended = new AbortController();
    if (removed) flow.halt();
    stopping.abort();
    current?.lose(undefined);
    await Promise.race([running, sleep(limits.drainTimeoutMs, ended.signal)]);
    if (current) {
      const { sink, ctx } = current;
      await drain(sink);
      if (removed && sink.forget) {
        const clearing = sink
          .forget(ctx)
          .catch((error: unknown) => log.debug({ err: error }, "what the sink left behind could not be cleared"));
        await Promise.race([clearing, sleep(limits.drainTimeoutMs, ended.signal)]);
      }
      await letGo(sink);
    }
    ended.abort();
    leftBehind.close(removed);
    writer.end();
    state.stopped();
  };

  /** Warnings come and go without anything else about the sink: looked at as often as the sources are told. */
  let toldWarnings = "";
  const tellWarnings = (): void => {
    const now = (current?.sink.warnings ?? []).join("\n");
    if (now === toldWarnings) return;
    toldWarnings = now;
    port.changed();
  };

  let ending: Promise<void> | undefined;
  return {
    keepsAll,
    flow: {
      isAttached: flow.isAttached,
      detach() {
        flow.detach();
        writer.forget();
      },
    },
    attach(position, edge) {
      writer.forget();
      flow.attach(position, edge);
      writer.wake();
    },
    take(rows) {
      flow.take(rows, performance.now());
      writer.wake();
    },
    takeUnstored(rows) {
      flow.takeUnstored(rows, performance.now());
      writer.wake();
    },
    addOlder(range) {
      flow.addOlder(range);
      writer.wake();
    },
    publishGaps: () => notices.publishGaps(),
    describe(now) {
      notices.describe(now);
      tellWarnings();
    },
    report: () => ({
      uuid: spec.uuid,
      name: spec.name,
      type: spec.type,
      endpoint: prepared.endpoint,
      ...state.report(),
      warnings: current?.sink.warnings ?? [],
    }),
    stop(removed) {
      ending ??= end(removed);
      return ending;
    },
  };
}
