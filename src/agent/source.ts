import { setImmediate as nextTurn } from "node:timers/promises";
import type { Endpoint } from "../../drivers/driver.ts";
import { formatDuration } from "../base/duration.ts";
import { atOnce, createYielder, inSlices, Nap, type Steps } from "../base/timer.ts";
import { withoutSecrets } from "../lib/capture/secrets.ts";
import { createBackoff } from "../lib/retry.ts";
import { bootTimeOf, type Clock, timeAt, upMsOf } from "../model/clock.ts";
import type { Log } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";
import { habitWords, isBenefit } from "../model/habit.ts";
import type { Layout } from "../model/layout.ts";
import type { SourceCounters, SourceReport } from "../model/report.ts";
import type { SourceInsight } from "../model/source-insight.ts";
import { LARGE_READOUT, type Readout } from "../model/value.ts";
import { type RaiseAlarm, type Warning, WarningTimes, warning } from "../model/warning.ts";
import type { SourceFrames } from "../model/wire.ts";
import { DeviceClock } from "./device-clock.ts";
import { type EarlierReadouts, NONE_EARLIER, partSteps, partTime } from "./earlier.ts";
import { Explaining } from "./explain.ts";
import { FaultLog } from "./fault-log.ts";
import { wordsOfFrames } from "./frame-words.ts";
import { Freshness } from "./freshness.ts";
import { Habits } from "./habits.ts";
import { LearnedGroups } from "./learned-groups.ts";
import { type IsMeant, LiveValues, type Sample } from "./live-values.ts";
import { hasOrders, OddValues } from "./odd-values.ts";
import { OwnFaults } from "./own-faults.ts";
import { PlanFit } from "./plan-fit.ts";
import { planView, ReadoutTimes } from "./plan-view.ts";
import { faultsOf, lookAt, lookAtPart, NO_FAULTS, noTimeWords } from "./readings.ts";
import { type Outcome, type ReadoutDeps, Readouts } from "./readout.ts";
import { ReportFilter } from "./report-filter.ts";
import { hasAuto, settleSteps } from "./settle-types.ts";
import type { SourceSpec } from "./source-spec.ts";
import { type SharedLines, StateLog } from "./state-log.ts";
import { isChange, judge, nextState, type Problem, problemOf, type SourceState, toReadoutState } from "./status.ts";
import { supervise } from "./supervise.ts";
import { nextTick, phaseOf, stableFraction, ticksBetween } from "./time.ts";

/** What a source's task needs of the agent. */
export interface SourceDeps extends Omit<ReadoutDeps, "connecting" | "otherIsBack">, SharedLines {
  /** The first readout comes within this: many that start at once are spread. */
  readonly startSpreadMs: number;
  /** Works as `log` does, for what is no change of its state; all sources share its budget. */
  readonly notes: Log;
  /**
   * Makes ready for readouts with this layout, by slices; awaited before the first of them is emitted. Undefined: nothing has to be waited
   * for. Must not reject.
   */
  prepare?(layout: Layout): Promise<void> | undefined;
  /**
   * Takes a readout with at least one answer, at once or by the time that the promise settles: the driver may reuse its readings from the
   * source's readout after the next on. Must not reject.
   */
  emit(layout: Layout, readout: Readout, intervalMs: number): void | Promise<void>;
  /** A readout on the schedule began so many ms after its tick. */
  late?(ms: number): void;
  /** After each change of state or reason. */
  changed(): void;
  /** Absent: alarms are nobody's. */
  readonly alarm?: RaiseAlarm;
  /** It has begun to fail, or fails for another reason; `why` names the reason. */
  failed?(uuid: string, why: string): void;
}

/** What somebody wants to see of a source. */
export interface Look {
  readonly isMeant: IsMeant;
  /** Name or uuid of the variable that is to be explained. */
  readonly explain?: string | undefined;
  readonly hasPlan: boolean;
}

/** What is seen of a source that somebody looks into. */
export type Looked = Pick<SourceInsight, "plan" | "readout" | "explained">;

export interface RunningSource {
  /** The place where it connects to; undefined: it cannot run as it is configured. */
  readonly endpoint: Endpoint | undefined;
  report(): SourceReport;
  /** Its plan, the last values of the variables that are meant, and how one comes about; absent: it cannot run as it is configured. */
  inspect?(look: Look): Looked;
  /** Another object whenever its state is another. */
  mark?(): object;
  /** One of its last values; absent or undefined: it was not read. */
  sample?(): Sample | undefined;
  /** What it exchanged last; absent: it cannot run as it is configured, or nothing is kept. */
  frames?(): SourceFrames | undefined;
  /** Sinks may know less of it than was reported: its next readout reports all values. Absent: it cannot run as it is configured. */
  reportAll?(): void;
  /** Resolves when its sockets are closed. Idempotent. */
  stop(): Promise<void>;
}

/** After trouble of this length the device may have another program: what was learned about it is forgotten. */
const LONG_OUTAGE_MS = 600_000;
/** Between two tries of a source without an answer, while others of its device are answered. */
const LONGEST_PAUSE_AMONG_OTHERS_MS = 30_000;
/** Between two tries of what can be asked at nobody's cost: a device alone that does not take or keep a connection, or says nothing. */
const LONGEST_PAUSE_ALONE_MS = 10_000;
const COSTS_NOBODY: ReadonlySet<string> = new Set([
  "HOST_DOWN",
  "NETWORK_UNREACHABLE",
  "CONNECTION_REFUSED",
  "CONNECTION_RESET",
  "CONNECTION_CLOSED",
  "NO_ROUTE_TO_HOST",
  "TIMEOUT",
]);
/** A wait for the connection that is longer than so many intervals is a warning. */
const LONG_WAIT_INTERVALS = 2;

/** Readouts with earlier values that are emitted in one turn of the event loop. */
const PARTS_AT_ONCE = 20;

type MutableCounters = { -readonly [K in keyof SourceCounters]: SourceCounters[K] };

/** One source, from its first readout until it is stopped. Everything that fails becomes its status. */
export function startSource(spec: SourceSpec, configured: number, lastReadoutAt: number | null, deps: SourceDeps): RunningSource {
  const task = new SourceTask(spec, configured, lastReadoutAt, deps);
  return {
    endpoint: spec.endpoint,
    report: () => task.report(),
    inspect: (look) => task.inspect(look),
    mark: () => task.mark,
    sample: () => task.sample(),
    reportAll: () => task.reportAll(),
    frames: () => task.frames(),
    stop: () => task.stop(),
  };
}

interface Trouble {
  readonly beganMs: number;
  readonly backoff: ReturnType<typeof createBackoff>;
}

class SourceTask {
  readonly #spec: SourceSpec;
  readonly #deps: SourceDeps;
  readonly #configured: number;
  /** The place where in a span it begins, so that sources are spread. */
  readonly #fraction: number;
  /** Its ticks, where it has its device for itself, and among others of it. */
  readonly #phaseMs: { readonly alone: number; readonly among: number };
  readonly #where: string;
  readonly #stop = new AbortController();
  readonly #learned: LearnedGroups;
  readonly #habits: Habits;
  readonly #readouts: Readouts;
  readonly #freshness: Freshness;
  readonly #fit: PlanFit;
  readonly #times = new ReadoutTimes();
  readonly #deviceClock: DeviceClock;
  readonly #odd: OddValues | undefined;
  readonly #live: LiveValues;
  readonly #explaining: Explaining;
  readonly #stateLog: StateLog;
  readonly #faultLog: FaultLog;
  readonly #ownFaults: OwnFaults;
  readonly #done: Promise<void>;
  /** Undefined: each value is reported. */
  readonly #report: ReportFilter | undefined;
  readonly #counters: MutableCounters = {
    readouts: 0,
    failed_readouts: 0,
    overruns: 0,
    values_read: 0,
    values_faulted: 0,
    values_unchanged: 0,
    connects: 0,
  };
  #layout: Layout;
  /** That of the last readout that was emitted. */
  #emitted: Layout | undefined;
  /** True: the type of a variable comes with its first value. */
  #hasAuto: boolean;
  #state: SourceState;
  /** Before this source began, epoch ms; null: it is not known. */
  readonly #lastReadoutAt: number | null;
  /** Of the last readout with a good value, ms since the machine's start; undefined: there was none yet. */
  #lastGoodUpMs: number | undefined;
  /** Of the last readout; not the readings themselves, which are many and would outlive the youngest generation of the heap. */
  #faults: SourceReport["faults"] = NO_FAULTS;
  /** Monotonic ms. */
  #nextRetryMs: number | undefined;
  /** Of the last readout: times of its device that are none. */
  #noTimes: string | undefined;
  #trouble: Trouble | undefined;
  /** Between two readouts. */
  readonly #nap = new Nap();
  /** It waits for the next try of a source in trouble, and the device has not asked for it: something else of the device may end it. */
  #isPause = false;
  /** This try comes before its time, since something ended the pause; a timer that fires a little early did not. */
  #isEarly = false;
  #waitedMs = 0;
  readonly #warningTimes = new WarningTimes();

  constructor(spec: SourceSpec, configured: number, lastReadoutAt: number | null, deps: SourceDeps) {
    const { clock, log } = deps;
    this.#spec = spec;
    this.#deps = deps;
    this.#configured = configured;
    this.#fraction = stableFraction(spec.uuid);
    this.#phaseMs = { alone: phaseOf(this.#fraction, spec.intervalMs), among: Math.floor(this.#fraction * spec.intervalMs) };
    this.#lastReadoutAt = lastReadoutAt;
    this.#layout = spec.layout;
    this.#report = spec.report && new ReportFilter(spec.report);
    this.#hasAuto = spec.auto.length > 0;
    this.#where = `${spec.endpoint.host}:${spec.endpoint.port}`;
    this.#state = { type: "UNKNOWN", since: upMsOf(clock) };
    const { endpoint, connect, driver, habitsMs } = spec;
    const device = deps.habits.of(`${endpoint.transport}:${endpoint.host}:${endpoint.port}`);
    const { details, settings } = connect;
    const place = driver.connectionKey?.(details, settings) ?? "";
    this.#habits = new Habits({ driver, settings, keepMs: habitsMs, place, epochMs: clock.epochMs, log }, device);
    this.#learned = new LearnedGroups(spec.points, spec.layout.variables.length, this.#habits);
    this.#readouts = new Readouts(spec, this.#learned, this.#habits, {
      ...deps,
      connecting: () => this.#counters.connects++,
      otherIsBack: () => {
        if (!this.#isPause) return;
        this.#isEarly = true;
        this.#nap.wake();
      },
    });
    this.#explaining = new Explaining(spec, this.#learned, clock.monotonicMs, (aside) => this.#readouts.readAside(aside));
    this.#freshness = new Freshness(log, () => {
      this.#readouts.renew();
      this.#learned.forget();
    });
    this.#fit = new PlanFit(spec.intervalMs, spec.name, deps.notes);
    this.#deviceClock = new DeviceClock(spec.intervalMs);
    this.#odd = spec.float && hasOrders(spec.driver, spec.float) ? new OddValues(spec.name) : undefined;
    this.#live = new LiveValues(clock.monotonicMs, spec.intervalMs, spec.layout.variables.length);
    const where = { source: spec.name, endpoint: this.#where, timeOf: this.#timeOf };
    this.#stateLog = new StateLog(log, where, this.#state, deps, clock.monotonicMs);
    this.#faultLog = new FaultLog(deps.notes, clock.monotonicMs);
    this.#ownFaults = new OwnFaults(spec.name, deps.alarm ?? (() => {}));
    this.#done = supervise(
      () => this.#run(),
      this.#stop.signal,
      (error) => this.#crashed(error),
      clock.monotonicMs,
    ).then(() => {
      this.#ownFaults.end();
      return this.#readouts.leave();
    });
  }

  /** Epoch ms by the clock as it is now. */
  readonly #timeOf = (upMs: number): number => timeAt(this.#deps.clock, upMs);

  stop(): Promise<void> {
    this.#stop.abort();
    this.#nap.wake();
    return this.#done;
  }

  report(): SourceReport {
    const { uuid, name, type, driver, intervalMs } = this.#spec;
    const state = this.#state;
    const lastAt = this.#lastGoodUpMs === undefined ? this.#lastReadoutAt : this.#timeOf(this.#lastGoodUpMs);
    const { clock } = this.#deps;
    const retryAt = this.#nextRetryMs === undefined ? undefined : clock.epochMs() + this.#nextRetryMs - clock.monotonicMs();
    return {
      discovers: driver.canDiscover === true,
      uuid,
      name,
      type,
      endpoint: this.#where,
      status: {
        last_readout_at: lastAt === null ? null : new Date(lastAt).toISOString(),
        configured_variables: this.#configured,
        state: toReadoutState(state, this.#timeOf),
      },
      since: new Date(this.#timeOf(state.since)).toISOString(),
      error: state.type === "ERROR" ? state.problem : null,
      next_retry_at: retryAt === undefined ? null : new Date(retryAt).toISOString(),
      interval_ms: intervalMs,
      warnings: this.#warningTimes.dated(this.#warnings(), this.#deps.clock.epochMs()),
      counters: { ...this.#counters },
      faults: this.#faults,
      layout: this.#layout,
    };
  }

  inspect({ isMeant, explain, hasPlan }: Look): Looked {
    const { driver, intervalMs, maxConnections } = this.#spec;
    const habits = this.#habits.list(this.#learned.points);
    const of = { driver, learned: this.#learned, habits, intervalMs, maxConnections, measured: this.#times.measured };
    const plan = hasPlan ? planView(of) : null;
    const explained = explain === undefined ? undefined : (this.#explaining.look(explain) ?? null);
    return { plan, readout: this.#live.look(isMeant), ...(explained !== undefined && { explained }) };
  }

  /** Sinks may know less than was reported: the next readout reports all values. */
  reportAll(): void {
    this.#report?.reportAll();
  }

  get mark(): object {
    return this.#state;
  }

  sample(): Sample | undefined {
    return this.#live.sample();
  }

  frames(): SourceFrames | undefined {
    const { frames } = this.#readouts;
    if (!frames) return undefined;
    const { uuid, name, type, driver, connect } = this.#spec;
    const record = frames.record();
    const events = withoutSecrets(record.events, Object.values(connect.secrets));
    const words = wordsOfFrames(events, driver);
    return { uuid, name, type, standardPort: driver.standardPort, bytes: frames.bytes, record: { ...record, events }, words };
  }

  #warnings(): readonly Warning[] {
    const { intervalMs, maxConnections, warnings } = this.#spec;
    const { preparing } = this.#readouts;
    const noTimes = this.#noTimes === undefined ? undefined : warning("source_times_missing", this.#noTimes);
    const hasWaited = this.#waitedMs >= LONG_WAIT_INTERVALS * intervalMs && !this.#trouble;
    const waited = `waited ${formatDuration(this.#waitedMs)} for its turn: the ${maxConnections} connection(s) to ${this.#where} were in use by other data sources`;
    return [
      ...warnings,
      ...this.#readouts.warnings,
      ...(preparing
        ? [
            warning(
              "addresses_looked_up",
              `${preparing.done} of ${preparing.total} addresses are looked up; the others follow in the next readouts`,
            ),
          ]
        : []),
      ...[this.#fit.warning, this.#fit.youngerWarning, noTimes, this.#deviceClock.warning, this.#odd?.warning].filter(
        (one) => one !== undefined,
      ),
      ...(hasWaited ? [warning("waits_for_turn", waited)] : []),
      ...this.#habits
        .list(this.#learned.points)
        .filter((habit) => !isBenefit(habit))
        .map((habit) => warning("device_habit", habitWords(habit), `${habit.part ?? "device"} ${habit.name}`)),
      ...culprits(this.#learned, this.#layout),
    ];
  }

  async #run(): Promise<void> {
    if (this.#layout.variables.length === 0) return;
    const { clock, startSpreadMs, late } = this.#deps;
    let due = clock.monotonicMs() + this.#fraction * startSpreadMs;
    while (await this.#wait(due - clock.monotonicMs())) {
      this.#nextRetryMs = undefined;
      // The ticks go on from here, and not from when the try would have come.
      if (this.#isEarly) due = Math.min(due, clock.monotonicMs());
      this.#isEarly = false;
      const isProbe = this.#trouble !== undefined;
      if (!isProbe) late?.(clock.monotonicMs() - due);
      const read = this.#spec.points.length === 0 ? nothingAsked(clock) : await this.#readouts.read(isProbe, this.#stop.signal);
      if (this.#stop.signal.aborted) return;
      const parted = await sliced(partSteps(read.readings), read.readings.length);
      const outcome = parted ? { ...read, readings: parted.newest } : read;
      const layout = this.#hasAuto ? await this.#settled(parted?.first ?? outcome.readings) : this.#layout;
      if (layout !== this.#emitted && this.#isAnswered(outcome.readings)) await this.#deps.prepare?.(layout);
      const problem = await this.#settle(outcome, layout, parted?.earlier);
      due = this.#after(outcome, problem, due);
    }
  }

  /** False: it is being stopped. */
  async #wait(ms: number): Promise<boolean> {
    if (!this.#stop.signal.aborted) await this.#nap.sleep(ms);
    this.#isPause = false;
    return !this.#stop.signal.aborted;
  }

  /** Takes what a readout brought; gives when the next one is due, monotonic ms. */
  #after(outcome: Outcome, problem: Problem | undefined, due: number): number {
    const { clock } = this.#deps;
    const now = clock.monotonicMs();
    this.#waitedMs = outcome.waitedMs;
    // If other sources are answered over it, the connection is well.
    if (!this.#readouts.hasHealthyOthers()) this.#freshness.watch(outcome, problem, now);
    if (!outcome.failure) {
      this.#fit.watch(outcome, this.#learned.plannedRequests);
      if (outcome.requests > 0) this.#times.take(outcome);
    }
    const { restMs } = outcome;
    const next =
      problem && outcome.failure ? this.#retryAt(due, now, restMs, outcome.failure.reason.type) : this.#nextTick(due, now, restMs);
    if (this.#trouble || restMs > 0) this.#nextRetryMs = next;
    this.#isPause = this.#trouble !== undefined && restMs === 0;
    const before = this.#state;
    this.#state = nextState(before, problem, outcome.time - outcome.bootTimeMs);
    this.#stateLog.note(this.#state);
    if (isChange(before, this.#state)) {
      this.#deps.changed();
      if (problem) this.#deps.failed?.(this.#spec.uuid, problem.condition ?? problem.reason.type);
    }
    return next;
  }

  #retryAt(due: number, now: number, restMs: number, reason: string): number {
    this.#trouble ??= { beganMs: due, backoff: createBackoff() };
    const troubleMs = now - this.#trouble.beganMs;
    const steadyMs = this.#trouble.backoff(troubleMs);
    if (troubleMs >= LONG_OUTAGE_MS) this.#learned.forget();
    const aloneMs = COSTS_NOBODY.has(reason) ? LONGEST_PAUSE_ALONE_MS : Number.POSITIVE_INFINITY;
    const longestMs = this.#readouts.hasHealthyOthers() ? LONGEST_PAUSE_AMONG_OTHERS_MS : aloneMs;
    return now + Math.max(Math.min(steadyMs, longestMs), restMs);
  }

  #nextTick(due: number, now: number, restMs: number): number {
    const { intervalMs } = this.#spec;
    this.#trouble = undefined;
    // Those that share a device take turns: the further apart they begin, the better.
    const phaseMs = this.#readouts.isOneOfSeveral() ? this.#phaseMs.among : this.#phaseMs.alone;
    this.#counters.overruns += ticksBetween(due, now, intervalMs, phaseMs);
    // A readout that ends before its own tick (a timer may fire early) is not read again at it.
    return nextTick(Math.max(now + restMs, due), intervalMs, phaseMs);
  }

  /** The layout with the types that came with these readings. */
  #settled(readings: Outcome["readings"]): Layout | Promise<Layout> {
    return sliced(settleSteps(this.#layout, readings), readings.length);
  }

  /** What its values say of the device, and what is shown of them. */
  *#watch(readout: Readout, raw: Outcome["readings"]): Steps<void> {
    const { clock } = this.#deps;
    yield* this.#deviceClock.watch(readout.readings, readout.time + readout.spanMs, clock.monotonicMs());
    if (this.#odd) yield* this.#odd.watch(this.#layout, readout.readings, clock.monotonicMs());
    yield* this.#live.take(this.#layout, readout, raw, this.#spec.scalings.keys());
  }

  /** Finds the readings that need not be reported, by place, and counts them; undefined: there are none. */
  *#unchanged(readout: Readout, isPart = false): Steps<Uint8Array | undefined> {
    if (!this.#report) return undefined;
    const found = yield* this.#report.unchanged(this.#layout, readout, this.#deps.clock.monotonicMs(), isPart);
    this.#counters.values_unchanged += this.#report.count;
    return found;
  }

  /** Counts, shows and emits what was read; many readings by turns of the event loop. */
  async #settle(outcome: Outcome, settled: Layout, earlier: EarlierReadouts = NONE_EARLIER): Promise<Problem | undefined> {
    const { time, spanMs, bootTimeMs, readings, failure } = outcome;
    const { clock, changed, emit } = this.#deps;
    const isLarge = readings.length >= LARGE_READOUT;
    const counters = this.#counters;
    counters.readouts++;
    const answered = this.#isAnswered(readings);
    const looks = lookAt(this.#spec, readings, failure, settled);
    const { all, read, faulted, own, doubted, noTimes } = isLarge ? await inSlices(looks, createYielder()) : atOnce(looks);
    const problem = answered ? judge(all, failure) : failure && problemOf(failure);
    if (problem) counters.failed_readouts++;
    else this.#lastGoodUpMs = time - bootTimeMs;
    if (!answered) {
      this.#report?.reportAll();
      return problem;
    }
    if (settled !== this.#layout) {
      this.#layout = settled;
      const auto = hasAuto(settled);
      this.#hasAuto = isLarge ? await inSlices(auto, createYielder()) : atOnce(auto);
      changed();
    }
    for (let i = 0; i < earlier.count; i++) {
      if (i % PARTS_AT_ONCE === PARTS_AT_ONCE - 1) await nextTurn();
      await this.#settlePart(earlier.at(i), { ...outcome, time: partTime(outcome.time, this.#spec.intervalMs, i, earlier.count) });
    }
    counters.values_read += read;
    counters.values_faulted += faulted;
    const troubled = faulted + doubted;
    this.#faults = troubled > 0 ? faultsOf(this.#layout, all) : NO_FAULTS;
    this.#noTimes = noTimes && noTimeWords(this.#layout, noTimes);
    this.#ownFaults.note(this.#layout, all, own);
    if (!problem) this.#faultLog.note(this.#faults, troubled, all.length);
    const whole = { time, spanMs, clockSynced: clock.synced(), bootTimeMs, readings: all };
    if (isLarge) await nextTurn();
    const finding = this.#unchanged(whole);
    const unchanged = isLarge ? await inSlices(finding, createYielder()) : atOnce(finding);
    const readout = unchanged ? { ...whole, unchanged } : whole;
    const watching = this.#watch(readout, readings);
    if (isLarge) await inSlices(watching, createYielder());
    else atOnce(watching);
    this.#emitted = this.#layout;
    if (isLarge) await nextTurn();
    const taken = emit(this.#layout, readout, this.#spec.intervalMs);
    if (taken) await taken;
    return problem;
  }

  /** Counts and emits readings that came before those of the readout. */
  async #settlePart(readings: Outcome["readings"], { time, spanMs, bootTimeMs }: Outcome): Promise<void> {
    const { clock, emit } = this.#deps;
    const { all, read, faulted } = await sliced(lookAtPart(this.#spec, readings, this.#layout), readings.length);
    this.#counters.values_read += read;
    this.#counters.values_faulted += faulted;
    const part = { time, spanMs, clockSynced: clock.synced(), bootTimeMs, readings: all };
    const unchanged = await sliced(this.#unchanged(part, true), readings.length);
    await emit(this.#layout, unchanged ? { ...part, unchanged } : part, this.#spec.intervalMs);
  }

  #isAnswered(readings: Outcome["readings"]): boolean {
    return this.#spec.points.length === 0 || readings.length > 0;
  }

  #crashed(error: unknown): void {
    const { clock, log, changed } = this.#deps;
    this.#report?.reportAll();
    log.error({ err: error, condition: "internal_error" }, "the collector failed while it read this source; other sources continue");
    const problem: Problem = { reason: { type: "UNKNOWN" }, condition: "internal_error", detail: messageOf(error) };
    this.#state = nextState(this.#state, problem, upMsOf(clock));
    changed();
  }
}

/** The work of so many readings, by slices where they are many. */
const sliced = <T>(steps: Steps<T>, count: number): T | Promise<T> =>
  count >= LARGE_READOUT ? inSlices(steps, createYielder()) : atOnce(steps);

const NAMED_CULPRITS = 5;

/** Addresses on which the connection ends or that stay without an answer: they cost more than their own reading. */
function culprits(learned: LearnedGroups, layout: Layout): readonly Warning[] {
  const found: Warning[] = [];
  let more = 0;
  for (const [point, { kind, reading, points }] of learned.known.closed) {
    if (kind !== "lost" || points.length > 1) continue;
    const variable = layout.variables[point.index];
    if (found.length < NAMED_CULPRITS && variable)
      found.push(
        warning(
          "variable_apart",
          `${variable.name} (${variable.address}) has no answer and gets a request of its own now and then: ${reading.detail ?? reading.fault}`,
          variable.name,
        ),
      );
    else more++;
  }
  if (more > 0) found.push(warning("variable_apart", `${more} more variables have no answer and get requests of their own now and then`));
  return found;
}

const nothingAsked = (clock: Clock): Outcome => ({
  time: clock.epochMs(),
  spanMs: 0,
  bootTimeMs: bootTimeOf(clock),
  readings: [],
  failure: undefined,
  definite: true,
  restMs: 0,
  unreached: 0,
  requests: 0,
  waitedMs: 0,
});
