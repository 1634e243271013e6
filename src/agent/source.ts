import type { AnySession, DriverContext, Tap } from "../../drivers/driver.ts";
import type { Clock } from "../model/clock.ts";
import type { Log } from "../model/context.ts";
import { messageOf, toReasonError } from "../model/failure.ts";
import type { Layout } from "../model/layout.ts";
import { ReasonError } from "../model/reason.ts";
import type { SourceCounters, SourceReport } from "../model/report.ts";
import type { Reading, Readout } from "../model/value.ts";
import type { Lanes } from "./lanes.ts";
import { type SourceSpec, scale } from "./prepare.ts";
import { createGroupMemory, readAll } from "./read.ts";
import { isChange, judge, logChange, nextState, type Problem, problemOf, type SourceState, toReadoutState } from "./status.ts";
import { supervise } from "./supervise.ts";
import { backoffMs, nextTick, sleep, stableFraction, ticksBetween } from "./time.ts";

/** What a source's task needs of the agent. */
export interface SourceDeps {
  readonly lanes: Lanes;
  readonly clock: Clock;
  /** The first readout comes within this, or within the interval where that is shorter: many that start at once are spread. */
  readonly startSpreadMs: number;
  /** Already carries the source's name, type and endpoint. */
  readonly log: Log;
  readonly tap?: Tap;
  readonly resolve?: NonNullable<DriverContext["resolve"]>;
  /** Takes a readout with at least one answer. */
  emit(layout: Layout, readout: Readout): void;
  /** After each change of state or reason. */
  changed(): void;
}

export interface RunningSource {
  report(): SourceReport;
  /** Resolves when its sockets are let go of. Idempotent. */
  stop(): Promise<void>;
}

/** A readout may take as long as its interval, and at least this. */
const SHORTEST_READOUT_DEADLINE_MS = 10_000;
const NAMED_FAULTS = 100;

type MutableCounters = { -readonly [K in keyof SourceCounters]: SourceCounters[K] };

interface Outcome {
  readonly time: number;
  readonly spanMs: number;
  readonly readings: readonly (Reading | undefined)[];
  readonly failure: ReasonError | undefined;
}

/** One source, from its first readout until it is stopped. Everything that fails becomes its status. */
export function startSource(spec: SourceSpec, configured: number, lastReadoutAt: number | null, deps: SourceDeps): RunningSource {
  const { clock, lanes, log } = deps;
  const { intervalMs, driver, layout } = spec;
  const where = `${spec.endpoint.host}:${spec.endpoint.port}`;
  const laneName = `${spec.endpoint.transport}:${spec.endpoint.host.toLowerCase()}:${spec.endpoint.port}`;
  // Sources with the same way in share open connections; the text holds secrets and never leaves this function.
  const connectionKey = JSON.stringify([spec.type, spec.connect]);
  const stop = new AbortController();
  const memory = createGroupMemory(spec.points);
  const counters: MutableCounters = { readouts: 0, failedReadouts: 0, overruns: 0, valuesRead: 0, valuesFaulted: 0, connects: 0 };
  let state: SourceState = { type: "UNKNOWN", since: clock.epochMs() };
  let lastGoodAt = lastReadoutAt;
  let lastReadings: readonly (Reading | undefined)[] = [];
  let nextRetryAt: number | undefined;
  let underWay: AbortController | undefined;
  /** The last connection of a source that keeps none; the readout's values do not wait for it. */
  let closing: Promise<void> = Promise.resolve();
  stop.signal.addEventListener("abort", () => underWay?.abort(stop.signal.reason), { once: true });

  const context = (signal: AbortSignal): DriverContext => ({
    signal,
    log,
    timeouts: spec.timeouts,
    ...(deps.tap && { tap: deps.tap }),
    ...(deps.resolve && { resolve: deps.resolve }),
  });

  /** Reads everything once on the given session, or on a new one. Never throws. */
  const readOn = async (
    given: AnySession | undefined,
    ctx: DriverContext,
  ): Promise<{ readonly outcome: Outcome; readonly session: AnySession | undefined }> => {
    let session = given;
    let time = clock.epochMs();
    let started = clock.monotonicMs();
    try {
      if (!session) {
        counters.connects++;
        session = await driver.connect(spec.connect, ctx);
      }
      time = clock.epochMs();
      started = clock.monotonicMs();
      const { readings, failure, ranOut } = await readAll(driver, session, memory, ctx);
      const spanMs = clock.monotonicMs() - started;
      if (failure) {
        await session.close();
        session = undefined;
      }
      return {
        outcome: {
          time,
          spanMs,
          readings,
          failure:
            failure ?? (ranOut ? new ReasonError("TIMEOUT", "the readout's deadline came before every variable was asked for") : undefined),
        },
        session,
      };
    } catch (error) {
      await session?.close();
      return { outcome: { time, spanMs: clock.monotonicMs() - started, readings: [], failure: toReasonError(error) }, session: undefined };
    }
  };

  const readout = async (): Promise<Outcome> => {
    if (spec.points.length === 0) return { time: clock.epochMs(), spanMs: 0, readings: [], failure: undefined };
    const deadline = new AbortController();
    underWay = deadline;
    const timer = setTimeout(
      () => deadline.abort(new ReasonError("TIMEOUT", "the readout's deadline has passed")),
      Math.min(2 ** 31 - 1, Math.max(intervalMs, SHORTEST_READOUT_DEADLINE_MS)),
    );
    try {
      const turn = await lanes.acquire(laneName, connectionKey, spec.maxConnections, deadline.signal);
      if (!turn)
        return {
          time: clock.epochMs(),
          spanMs: 0,
          readings: [],
          failure: new ReasonError(
            "TIMEOUT",
            `waited for a turn: the ${spec.maxConnections} connection(s) to ${where} were in use by other data sources`,
          ),
        };
      const ctx = context(deadline.signal);
      let result = await readOn(turn.session, ctx);
      // A kept connection that the device has dropped since is normal life: one new one within the readout.
      if (turn.session && result.outcome.failure && isLoss(result.outcome.failure) && !deadline.signal.aborted)
        result = await readOn(undefined, ctx);
      if (result.session && (!spec.keepsConnection || stop.signal.aborted)) {
        const { session } = result;
        closing = session.close().finally(() => turn.release(undefined));
      } else turn.release(result.session);
      return result.outcome;
    } finally {
      clearTimeout(timer);
      underWay = undefined;
    }
  };

  const settle = ({ time, spanMs, readings, failure }: Outcome): Problem | undefined => {
    counters.readouts++;
    const answered = spec.points.length === 0 || readings.length > 0;
    const problem = answered ? judge(complete(spec, readings, undefined), failure) : failure && problemOf(failure);
    if (problem) counters.failedReadouts++;
    else lastGoodAt = time;
    if (answered) {
      const all = complete(spec, readings, failure);
      lastReadings = all;
      for (const reading of all)
        if (reading?.quality === "bad") counters.valuesFaulted++;
        else if (reading) counters.valuesRead++;
      deps.emit(layout, { time, spanMs, clockSynced: clock.synced(), readings: all });
    }
    return problem;
  };

  const run = async (): Promise<void> => {
    if (layout.variables.length === 0) return;
    const phase = Math.floor(stableFraction(spec.uuid) * intervalMs);
    let trouble: { readonly began: number; attempts: number } | undefined;
    let due = clock.monotonicMs() + stableFraction(spec.uuid) * Math.min(intervalMs, deps.startSpreadMs);
    while (await sleep(due - clock.monotonicMs(), stop.signal)) {
      nextRetryAt = undefined;
      const outcome = await readout();
      if (stop.signal.aborted) return;
      const problem = settle(outcome);
      const now = clock.monotonicMs();
      if (problem && outcome.failure) {
        trouble ??= { began: due, attempts: 0 };
        const wait = backoffMs(now - trouble.began, trouble.attempts);
        if (now - trouble.began >= 10_000) trouble.attempts++;
        due = now + wait;
        nextRetryAt = clock.epochMs() + wait;
      } else {
        trouble = undefined;
        counters.overruns += ticksBetween(due, now, intervalMs, phase);
        // A readout that ends before its own tick (a timer may fire early) is not read again at it.
        due = nextTick(Math.max(now, due), intervalMs, phase);
      }
      const before = state;
      state = nextState(before, problem, outcome.time);
      if (isChange(before, state)) {
        logChange(log, before, state, { source: spec.name, endpoint: where });
        deps.changed();
      }
    }
  };

  const crashed = (error: unknown) => {
    log.error({ err: error, condition: "internal_error" }, "the collector failed while it read this source; the others go on");
    state = nextState(state, { reason: { type: "UNKNOWN" }, condition: "internal_error", detail: messageOf(error) }, clock.epochMs());
    deps.changed();
  };
  const done = supervise(run, stop.signal, crashed, clock.monotonicMs)
    .then(() => closing)
    .then(() => lanes.drop(laneName, connectionKey));
  return {
    report: () => ({
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
      nextRetryAt: nextRetryAt === undefined ? null : new Date(nextRetryAt).toISOString(),
      intervalMs,
      warnings: spec.warnings,
      counters: { ...counters },
      faults: faultsOf(layout, lastReadings),
      layout,
    }),
    stop() {
      stop.abort();
      return done;
    },
  };
}

const isLoss = ({ reason: { type } }: ReasonError): boolean => type === "CONNECTION_CLOSED" || type === "CONNECTION_RESET";

/** One reading per variable of the layout: scaled, the refused ones filled in, and where the source failed half-way, `no_answer` for the rest. */
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
