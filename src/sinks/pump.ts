import type { Gap, GapAcknowledgement, Position, StoredBatch } from "../buffer/buffer.ts";
import type { IdRange } from "../buffer/position.ts";
import { explainReason } from "../model/catalogue.ts";
import type { Log } from "../model/context.ts";
import { messageOf, toReasonError } from "../model/failure.ts";
import type { Layout } from "../model/layout.ts";
import type { Permit } from "../model/policy.ts";
import { ReasonError } from "../model/reason.ts";
import type { SinkReport, SourceReport } from "../model/report.ts";
import { type Backoff, backOff, HEALTHY_MS } from "./backoff.ts";
import { type Decoded, decodeJob, withRefused } from "./decode.ts";
import { createFlow, type Flow, type Job } from "./flow.ts";
import { createGapTeller } from "./gaps.ts";
import { createGuard, isClose } from "./guard.ts";
import type { Outcome, Settled } from "./lane.ts";
import { openLeftBehind } from "./left-behind.ts";
import type { PreparedSink } from "./prepare.ts";
import type { Sink, SinkBatch } from "./sink.ts";

/** What a pump needs of the others. */
export interface PumpPort {
  readonly log: Log;
  readonly permit?: Permit;
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
  /** What is to be told to the far side. Throws if the file cannot be read. */
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
  /** There are gaps to tell. */
  tellGaps(): void;
  describe(sources: readonly SourceReport[]): void;
  report(): SinkReport;
  /** Lets go of the sink, in bounded time. `removed`: what it left behind is cleared first. Never throws. */
  stop(removed: boolean): Promise<void>;
}

/** After a refused write the sink is said to be in trouble for so long. */
const REFUSAL_MS = 60_000;
/** After the file could not be read. */
const READ_PAUSE_MS = 1000;
const DRAIN_STEP_MS = 10;
/** So many closes soon after opening look like another client under the same name: both would go on cutting each other off. */
const CLOSED_SOON_TIMES = 3;
const TAKEOVER_MS = 60_000;
/** An open connection that lasts so long without a write is not closed for another reason than the next write. */
const PROOF_MS = 500;

type Trouble = NonNullable<SinkReport["error"]>;

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
  const gapTeller = createGapTeller({
    gaps: () => port.gaps(),
    epoch: () => port.epoch(),
    published: (gap) => port.gapPublished(gap),
  });

  const guard = createGuard();

  let state: SinkReport["state"] = "CONNECTING";
  let trouble: Trouble | undefined;
  let since = new Date().toISOString();
  let nextRetryAt: string | null = null;
  let refusedAtMs: number | undefined;
  let sink: Sink | undefined;
  let lose: (error: unknown) => void = () => {};
  let underWay = 0;
  let timer: NodeJS.Timeout | undefined;
  let soon: NodeJS.Immediate | undefined;
  let notBeforeMs = 0;
  let sources: readonly SourceReport[] | undefined;
  let isDescribing = false;

  const enter = (next: SinkReport["state"], error?: Trouble): void => {
    const isSame = state === next && JSON.stringify(error) === JSON.stringify(trouble);
    port.changed();
    if (isSame) return;
    state = next;
    trouble = error;
    since = new Date().toISOString();
    if (error) {
      const { nextStep } = explainReason(error.reason, error.condition, { endpoint: prepared.endpoint });
      const told = { reason: error.reason, condition: error.condition, since, nextRetryAt, nextStep, detail: error.detail };
      if (error.condition === null && refusedAtMs !== undefined) log.error(told, "the sink refuses values; they are dropped and counted");
      else log.warn(told, "the sink cannot be reached; values wait in the buffer");
    } else if (next === "OK") log.info({ since }, "the sink is connected");
    else log.info({ since }, "the sink is closed");
  };
  const troubleOf = ({ reason, condition, message }: ReasonError): Trouble => ({ reason, condition: condition ?? null, detail: message });

  const fillSoon = (): void => {
    soon ??= setImmediate(() => {
      soon = undefined;
      fill();
    });
  };

  /** Starts one write and comes back for the next, so that no slice of this thread is longer than one batch. */
  const fill = (): void => {
    clearTimeout(timer);
    const target = sink;
    const inFlight = guard.isAlone() ? 1 : (target?.inFlight ?? 0);
    if (!target || underWay >= inFlight) return;
    const nowMs = performance.now();
    const waitMs = notBeforeMs - nowMs;
    if (waitMs > 0) {
      timer = setTimeout(fill, waitMs);
      return;
    }
    let job: Job | undefined;
    try {
      job = flow.next(nowMs, inFlight);
    } catch (error) {
      unreadable(error);
      return;
    }
    if (!job) {
      const dueMs = flow.nextDueMs();
      if (dueMs !== undefined) timer = setTimeout(fill, Math.min(Math.max(1, dueMs - nowMs), 2 ** 31 - 1));
      return;
    }
    underWay++;
    void write(target, job).finally(() => {
      underWay--;
      fillSoon();
    });
    fillSoon();
  };

  /** What was taken from the file goes back to it. */
  const unreadable = (error: unknown): void => {
    log.debug({ err: error }, "the buffer cannot be read; it is tried again");
    flow.close();
    if (sink) flow.open();
    notBeforeMs = performance.now() + READ_PAUSE_MS;
    fillSoon();
  };

  const write = async (target: Sink, job: Job): Promise<void> => {
    const outcomes: Outcome[] = [];
    for (const part of guard.partsOf(job)) {
      let decoded: Decoded;
      try {
        decoded = decodeJob(part, port.layout(part.group.layout), kind.takesExploration, { epoch: port.epoch(), life: port.life });
      } catch (error) {
        unreadable(error);
        return;
      }
      try {
        const refused = decoded.batch ? await writePart(target, part, decoded.batch) : 0;
        outcomes.push(...withRefused(decoded.outcomes, refused));
      } catch (error) {
        if (target === sink) lose(error);
        return;
      }
    }
    guard.held(job);
    flow.settle(job, outcomes);
  };

  /** Values that the sink refuses for ever. */
  const writePart = async (target: Sink, part: Job, batch: SinkBatch): Promise<number> => {
    const { closes, maxMessageBytes } = guard.verdictOf(part);
    if (closes !== undefined) {
      const time = new Date(batch.readouts[0]?.time ?? 0).toISOString();
      noteRefusal(
        1,
        `the far side closed the connection ${closes} times right after the readout of ${batch.layout.source.name} of ${time}: it is dropped; see the far side's log, it may limit the size of a message`,
      );
      guard.held(part);
      return Number.POSITIVE_INFINITY;
    }
    guard.begin(part);
    const whole = maxMessageBytes === undefined ? batch : { ...batch, maxMessageBytes };
    const { refused, detail } = await target.write(whole, { signal: opening.signal, log });
    guard.held(part);
    noteRefusal(refused, detail);
    return refused;
  };

  const noteRefusal = (refused: number, detail: string | undefined): void => {
    const nowMs = performance.now();
    if (refused > 0) {
      refusedAtMs = nowMs;
      if (state !== "ERROR") enter("ERROR", { reason: { type: "UNKNOWN" }, condition: null, detail: detail ?? "the sink refuses values" });
    } else if (refusedAtMs !== undefined && nowMs - refusedAtMs > REFUSAL_MS) {
      refusedAtMs = undefined;
      if (sink) enter("OK");
    }
  };

  const describe = async (): Promise<void> => {
    const target = sink;
    if (!target?.describe || isDescribing) return;
    isDescribing = true;
    try {
      for (let now = sources; now && target === sink; now = sources === now ? undefined : sources)
        await target.describe(now, { signal: opening.signal, log });
    } catch (error) {
      if (target === sink) lose(error);
    } finally {
      isDescribing = false;
      if (sink && target !== sink) void describe();
    }
  };

  const tellGaps = async (): Promise<void> => {
    const target = sink;
    if (!target || !keepsAll) return;
    try {
      await gapTeller.tell(target, { signal: opening.signal, log });
    } catch (error) {
      if (target === sink && error instanceof ReasonError) lose(error);
      else log.debug({ err: error }, "the gaps cannot be read; they are told later");
    }
  };

  /** Lives as long as one opening of the sink. */
  let opening = new AbortController();

  const open = async (): Promise<Sink | undefined> => {
    opening = new AbortController();
    const signal = AbortSignal.any([opening.signal, stopping.signal, AbortSignal.timeout(limits.openTimeoutMs)]);
    const { uuid, name, secrets } = spec;
    const opened = await kind.open(
      { uuid, name, details: prepared.details, settings: prepared.settings, secrets, leftBehind: leftBehind.topics },
      { signal, log, ...(port.permit && { permit: port.permit }) },
    );
    if (!stopping.signal.aborted) return opened;
    await opened.close();
    return undefined;
  };

  /** Until the sink is lost or the pump stops: why. */
  const serve = async (target: Sink): Promise<ReasonError | undefined> => {
    const lost = new Promise<unknown>((done) => {
      lose = done;
    });
    sink = target;
    flow.open();
    nextRetryAt = null;
    if (guard.isSuspicious()) notBeforeMs = performance.now() + PROOF_MS;
    enter("OK");
    void describe();
    void tellGaps();
    fill();
    const reason = await Promise.race([lost, target.lost]);
    return stopping.signal.aborted ? undefined : toReasonError(reason);
  };

  const letGo = async (target: Sink): Promise<void> => {
    sink = undefined;
    clearTimeout(timer);
    flow.close();
    refusedAtMs = undefined;
    opening.abort();
    await target.close();
  };

  const run = async (): Promise<void> => {
    let backoff: Backoff | undefined;
    /** Openings in a row that the far side ended soon, with nothing under way that might be the cause. */
    let closedSoon = 0;
    while (!stopping.signal.aborted) {
      let reason: ReasonError;
      try {
        const opened = await open();
        if (!opened) return;
        const openedMs = performance.now();
        const lost = await serve(opened);
        if (!lost) return;
        const wasHealthy = performance.now() - openedMs >= HEALTHY_MS;
        const writes = guard.lost(lost);
        if (wasHealthy || !isClose(lost.reason.type)) closedSoon = 0;
        else if (writes === 0) closedSoon++;
        await letGo(opened);
        if (wasHealthy) backoff = undefined;
        reason = lost;
      } catch (error) {
        if (stopping.signal.aborted) return;
        reason = toReasonError(error);
      }
      const next = backOff(backoff, performance.now());
      backoff = next.state;
      const isTakeover = closedSoon >= CLOSED_SOON_TIMES && kind.closedSoonHint !== undefined;
      const delayMs = isTakeover ? TAKEOVER_MS : next.delayMs;
      nextRetryAt = new Date(Date.now() + delayMs).toISOString();
      const said = troubleOf(reason);
      const hint = `closed ${closedSoon} times within ${HEALTHY_MS / 1000} s of connecting: ${kind.closedSoonHint}`;
      enter("ERROR", isTakeover ? { ...said, detail: `${said.detail}; ${hint}` } : said);
      await pause(delayMs, stopping.signal);
    }
  };

  const running = run().catch((error: unknown) => log.error({ err: error }, `the sink's loop ended: ${messageOf(error)}`));

  const drain = async (target: Sink): Promise<void> => {
    const endMs = performance.now() + limits.drainTimeoutMs;
    const isGone = { lost: false };
    void target.lost.then(() => {
      isGone.lost = true;
    });
    while (!isGone.lost && performance.now() < endMs && !(flow.drain() && underWay === 0)) {
      fill();
      await pause(DRAIN_STEP_MS);
    }
  };

  const end = async (removed: boolean): Promise<void> => {
    // Ends the waits: a timer that is left would keep the whole worker from ending.
    const ended = new AbortController();
    stopping.abort();
    lose(undefined);
    await Promise.race([running, pause(limits.drainTimeoutMs, ended.signal)]);
    const target = sink;
    if (target) {
      await drain(target);
      if (removed && target.forget) {
        const clearing = target
          .forget({ signal: opening.signal, log })
          .catch((error: unknown) => log.debug({ err: error }, "what the sink left behind could not be cleared"));
        await Promise.race([clearing, pause(limits.drainTimeoutMs, ended.signal)]);
      }
      await letGo(target);
    }
    ended.abort();
    leftBehind.close(removed);
    clearImmediate(soon);
    nextRetryAt = null;
    enter("STOPPED");
  };

  let ending: Promise<void> | undefined;
  return {
    keepsAll,
    flow,
    attach(position, edge) {
      flow.attach(position, edge);
      fill();
    },
    take(rows) {
      flow.take(rows, performance.now());
      fill();
    },
    takeUnstored(rows) {
      flow.takeUnstored(rows, performance.now());
      fill();
    },
    tellGaps: () => void tellGaps(),
    addOlder(range) {
      flow.addOlder(range);
      fill();
    },
    describe(now) {
      sources = now;
      void describe();
    },
    report: () => ({
      uuid: spec.uuid,
      name: spec.name,
      type: spec.type,
      endpoint: prepared.endpoint,
      state,
      since,
      error: trouble ?? null,
      next_retry_at: nextRetryAt,
      warnings: sink?.warnings ?? [],
    }),
    stop(removed) {
      ending ??= end(removed);
      return ending;
    },
  };
}

/** Settles after `ms`, or at once when the signal aborts. */
function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(finish, ms);
    function finish() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", finish);
      done();
    }
    if (signal?.aborted) finish();
    else signal?.addEventListener("abort", finish, { once: true });
  });
}
