import type { Budget } from "../model/budget.ts";
import type { Clock } from "../model/clock.ts";
import type { Log } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";
import type { Layout } from "../model/layout.ts";
import type { Permit } from "../model/policy.ts";
import { type ReasonError, restMsOf } from "../model/reason.ts";
import type { SourceCounters, SourceReport } from "../model/report.ts";
import { sleep } from "../model/timer.ts";
import type { Reading, Readout } from "../model/value.ts";
import type { Lanes } from "./lanes.ts";
import { createGroupMemory, forget } from "./memory.ts";
import { type SourceSpec, scale } from "./prepare.ts";
import { createReadouts, type Outcome } from "./readout.ts";
import type { Resolver } from "./resolve.ts";
import { settleTypes } from "./settle-types.ts";
import { createSpeaker } from "./speak.ts";
import { isChange, judge, nextState, type Problem, problemOf, type SourceState, toReadoutState } from "./status.ts";
import { supervise } from "./supervise.ts";
import { createBackoff, nextTick, stableFraction, ticksBetween } from "./time.ts";

/** What a source's task needs of the agent. */
export interface SourceDeps {
  readonly lanes: Lanes;
  readonly clock: Clock;
  /** The first readout comes within this: many that start at once are spread. */
  readonly startSpreadMs: number;
  /** Already carries the source's name, type and endpoint. */
  readonly log: Log;
  readonly resolver?: Resolver;
  readonly permit?: Permit;
  /** Shared by all sources: see createSpeaker. */
  readonly reasonLines: Budget;
  /** Takes a readout with at least one answer. */
  emit(layout: Layout, readout: Readout): void;
  /** A readout on the schedule began so many ms after its tick. */
  late?(ms: number): void;
  /** After each change of state or reason. */
  changed(): void;
}

export interface RunningSource {
  report(): SourceReport;
  /** Resolves when its sockets are let go of. Idempotent. */
  stop(): Promise<void>;
}

const NAMED_FAULTS = 100;
/** Readouts without a good value on a connection that stands, after which it is thrown away. */
const FRUITLESS_BEFORE_RENEWAL = 5;
const FIRST_RENEWAL_MS = 10_000;
const LAST_RENEWAL_MS = 600_000;
/** After trouble of this length the device may have another program: what was learned about it is forgotten. */
const LONG_OUTAGE_MS = 600_000;
/** A source that had no answer takes at most one part in so many of a device's time that others use too. */
const SHARE_OF_DEMOTED = 5;

type MutableCounters = { -readonly [K in keyof SourceCounters]: SourceCounters[K] };

/** One source, from its first readout until it is stopped. Everything that fails becomes its status. */
export function startSource(spec: SourceSpec, configured: number, lastReadoutAt: number | null, deps: SourceDeps): RunningSource {
  const { clock, log } = deps;
  const { intervalMs } = spec;
  let { layout } = spec;
  const where = `${spec.endpoint.host}:${spec.endpoint.port}`;
  const stop = new AbortController();
  const memory = createGroupMemory(spec.points);
  const counters: MutableCounters = { readouts: 0, failed_readouts: 0, overruns: 0, values_read: 0, values_faulted: 0, connects: 0 };
  let state: SourceState = { type: "UNKNOWN", since: clock.epochMs() };
  let lastGoodAt = lastReadoutAt;
  /** Of the last readout; not the readings themselves, which are many and would outlive the youngest generation of the heap. */
  let faults: SourceReport["faults"] = [];
  let nextRetryAt: number | undefined;
  const speaker = createSpeaker(log, { source: spec.name, endpoint: where }, state, deps.reasonLines, clock.monotonicMs);
  const readouts = createReadouts(spec, memory, { ...deps, connecting: () => counters.connects++ });

  const settle = ({ time, spanMs, readings, failure }: Outcome): Problem | undefined => {
    counters.readouts++;
    const answered = spec.points.length === 0 || readings.length > 0;
    const all = answered ? complete(spec, readings, failure) : readings;
    const problem = answered ? judge(all, failure) : failure && problemOf(failure);
    if (problem) counters.failed_readouts++;
    else lastGoodAt = time;
    if (answered) {
      const settled = settleTypes(layout, all);
      if (settled !== layout) {
        layout = settled;
        deps.changed();
      }
      faults = faultsOf(layout, all);
      for (const reading of all)
        if (reading?.quality === "bad") counters.values_faulted++;
        else if (reading) counters.values_read++;
      deps.emit(layout, { time, spanMs, clockSynced: clock.synced(), readings: all });
    }
    return problem;
  };

  /** Connected, asked and not one good value, and not because the device says so of each: the connection itself may be what is wrong. */
  let fruitless = { readouts: 0, renewals: 0, renewedAt: Number.NEGATIVE_INFINITY };
  const watchFreshness = ({ failure, definite, readings }: Outcome, problem: Problem | undefined, nowMs: number): void => {
    if (!problem) {
      fruitless = { readouts: 0, renewals: 0, renewedAt: fruitless.renewedAt };
      return;
    }
    if (failure || (definite && !readings.some(isIndefinite))) {
      fruitless = { ...fruitless, readouts: 0 };
      return;
    }
    const pauseMs = fruitless.renewals === 0 ? 0 : Math.min(LAST_RENEWAL_MS, FIRST_RENEWAL_MS * 2 ** Math.min(fruitless.renewals, 10));
    fruitless = { ...fruitless, readouts: fruitless.readouts + 1 };
    if (fruitless.readouts < FRUITLESS_BEFORE_RENEWAL || nowMs - fruitless.renewedAt < pauseMs) return;
    fruitless = { readouts: 0, renewals: fruitless.renewals + 1, renewedAt: nowMs };
    log.debug({}, `no good value in ${FRUITLESS_BEFORE_RENEWAL} readouts over a connection that stands: opening a new one`);
    readouts.renew();
    forget(memory);
  };

  const run = async (): Promise<void> => {
    if (layout.variables.length === 0) return;
    const phase = Math.floor(stableFraction(spec.uuid) * intervalMs);
    let trouble: { readonly began: number; readonly backoff: ReturnType<typeof createBackoff> } | undefined;
    let due = clock.monotonicMs() + stableFraction(spec.uuid) * deps.startSpreadMs;
    while (await sleep(due - clock.monotonicMs(), stop.signal)) {
      nextRetryAt = undefined;
      const demoted = trouble !== undefined;
      const began = clock.monotonicMs();
      if (!demoted) deps.late?.(began - due);
      const outcome = spec.points.length === 0 ? nothingAsked(clock) : await readouts.read(demoted, stop.signal);
      if (stop.signal.aborted) return;
      const problem = settle(outcome);
      const now = clock.monotonicMs();
      watchFreshness(outcome, problem, now);
      const restMs = outcome.failure ? restMsOf(outcome.failure) : 0;
      if (problem && outcome.failure) {
        trouble ??= { began: due, backoff: createBackoff() };
        const steady = trouble.backoff(now - trouble.began);
        const shareMs = readouts.othersAnsweredSince(trouble.began) ? (SHARE_OF_DEMOTED - 1) * (now - began) : 0;
        const wait = Math.max(steady, shareMs, restMs);
        if (now - trouble.began >= LONG_OUTAGE_MS) forget(memory);
        due = now + wait;
      } else {
        trouble = undefined;
        counters.overruns += ticksBetween(due, now, intervalMs, phase);
        // A readout that ends before its own tick (a timer may fire early) is not read again at it.
        due = nextTick(Math.max(now + restMs, due), intervalMs, phase);
      }
      if (trouble || restMs > 0) nextRetryAt = clock.epochMs() + due - now;
      const before = state;
      state = nextState(before, problem, outcome.time);
      speaker.say(state);
      if (isChange(before, state)) deps.changed();
    }
  };

  const crashed = (error: unknown) => {
    log.error({ err: error, condition: "internal_error" }, "the collector failed while it read this source; the others go on");
    state = nextState(state, { reason: { type: "UNKNOWN" }, condition: "internal_error", detail: messageOf(error) }, clock.epochMs());
    deps.changed();
  };
  const done = supervise(run, stop.signal, crashed, clock.monotonicMs).then(() => readouts.leave());
  return {
    report: () => ({
      discovers: spec.driver.canDiscover === true,
      uuid: spec.uuid,
      name: spec.name,
      type: spec.type,
      endpoint: where,
      status: {
        last_readout_at: lastGoodAt === null ? null : new Date(lastGoodAt).toISOString(),
        configured_variables: configured,
        state: toReadoutState(state),
      },
      since: new Date(state.since).toISOString(),
      error: state.type === "ERROR" ? state.problem : null,
      next_retry_at: nextRetryAt === undefined ? null : new Date(nextRetryAt).toISOString(),
      interval_ms: intervalMs,
      warnings: [...spec.warnings, ...readouts.warnings()],
      counters: { ...counters },
      faults,
      layout,
    }),
    stop() {
      stop.abort();
      return done;
    },
  };
}

/** Says that there is no value, and not what is wrong with the variable. */
const isIndefinite = (reading: Reading | undefined): boolean =>
  reading?.quality === "bad" && (reading.fault === "no_answer" || reading.fault === "stale");

const nothingAsked = (clock: Clock): Outcome => ({ time: clock.epochMs(), spanMs: 0, readings: [], failure: undefined, definite: true });

/**
 * One reading per variable of the layout: scaled, the refused ones filled in, and where the source failed half-way, `no_answer` for the
 * rest.
 */
function complete(
  spec: SourceSpec,
  readings: readonly (Reading | undefined)[],
  failure: ReasonError | undefined,
): readonly (Reading | undefined)[] {
  if (spec.refused.size === 0 && spec.scalings.size === 0 && !failure) return readings;
  return spec.layout.variables.map((_, index) => {
    const refused = spec.refused.get(index);
    if (refused) return refused;
    const reading = readings[index];
    if (!reading) return failure && { quality: "bad", fault: "no_answer", detail: `${failure.reason.type}: ${failure.message}` };
    const scaling = spec.scalings.get(index);
    return scaling ? scale(reading, scaling) : reading;
  });
}

function faultsOf(layout: Layout, readings: readonly (Reading | undefined)[]): SourceReport["faults"] {
  const faults: { variable: string; fault: string; detail: string | null }[] = [];
  for (let i = 0; i < readings.length && faults.length < NAMED_FAULTS; i++) {
    const reading = readings[i];
    if (reading?.quality === "bad")
      faults.push({ variable: layout.variables[i]?.name ?? String(i), fault: reading.fault, detail: reading.detail ?? null });
  }
  return faults;
}
