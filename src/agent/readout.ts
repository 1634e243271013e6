import type { AnySession, DriverContext } from "../../drivers/driver.ts";
import { Deadline } from "../base/deadline.ts";
import { bootTimeOf, type Clock } from "../model/clock.ts";
import { toReasonError } from "../model/failure.ts";
import type { HabitName } from "../model/habit.ts";
import { ReasonError, restMsOf } from "../model/reason.ts";
import type { Reading } from "../model/value.ts";
import type { Warning } from "../model/warning.ts";
import { Confirming } from "./confirming.ts";
import type { Turn } from "./connection-pool.ts";
import { type AccessDeps, DeviceAccess } from "./device-access.ts";
import type { HabitMemories } from "./device-habits.ts";
import { hasAnsweredOthers, mayWaitInFull } from "./device-time.ts";
import { type Aside, readAside } from "./explain.ts";
import type { RingMember } from "./frame-rings.ts";
import type { Habits } from "./habits.ts";
import type { LearnedGroups } from "./learned-groups.ts";
import { LookUpTime } from "./look-up-time.ts";
import { Preparation } from "./preparation.ts";
import { type Read, readOnce } from "./read.ts";
import { LEAST_TIMEOUT_MS } from "./search/pace.ts";
import { type Evidence, namedSilence } from "./silence.ts";
import { SHORTEST_READOUT_MS, type SourceSpec } from "./source-spec.ts";

/**
 * A readout that is answered keeps its turn for so long where others are due, and for so many times what its last connect took: to change the
 * turn may cost each of them a connection.
 */
const SLICE_MS = 100;
const SLICE_CONNECTS = 4;
/** A driver whose work has not ended so long after the signal is not waited for: its source goes on without it. */
const GRACE_MS = 5000;
/** Of its interval, what a readout may search for: it ends before the next one is due. */
const SEARCHED_PART = 0.8;
/** If the interval is short: so many asks of a search after an answer was waited for in vain, each of the least time-out. */
const SEARCHED_AFTER = 2;
/** What is to be read beside the plan, at most. */
const MAX_ASIDES = 8;

export interface Outcome {
  /** Epoch ms of the first request. */
  readonly time: number;
  readonly spanMs: number;
  /** As the readout's. */
  readonly bootTimeMs: number;
  readonly readings: readonly (Reading | undefined)[];
  readonly failure: ReasonError | undefined;
  /** True: every refusal was about what was asked: see `ReadResult.definite`. */
  readonly definite: boolean;
  /** The device asks not to be read again before: ms. */
  readonly restMs: number;
  /** Variables that this readout had no time for. */
  readonly unreached: number;
  readonly requests: number;
  /** How long it waited for its turn on the connection. */
  readonly waitedMs: number;
  /** Part of `spanMs` in which others of the device had the turn. Absent: none. */
  readonly passedMs?: number;
}

export interface ReadoutDeps extends AccessDeps {
  readonly clock: Clock;
  readonly habits: HabitMemories;
  /** Counts a connect. */
  connecting(): void;
}

/** What a readout has open, and when its last value came. */
interface Open {
  session: AnySession | undefined;
  /** Undefined: it has passed its turn on, and waits for another. */
  turn: Turn | undefined;
  /** When its turn began, monotonic ms. */
  turnMs?: number;
  /** Time in which it had passed its turn on. */
  passedMs: number;
  /** A connection was opened in this readout. */
  hasConnected?: boolean;
  /** It was looked at once more though nothing was answered. */
  hasLooked?: true;
  /** Monotonic ms; absent: not yet. */
  readMs?: number;
}

/** How one source is read: its turn on the device, its connection, and its deadline. */
export class Readouts {
  readonly #spec: SourceSpec;
  readonly #learned: LearnedGroups;
  readonly #habits: Habits;
  readonly #preparation: Preparation;
  readonly #confirming: Confirming;
  readonly #deps: ReadoutDeps;
  readonly #access: DeviceAccess;
  readonly #deadlineMs: number;
  /** The last connection of a source that keeps none; the readout's values do not wait for it. */
  #closing: Promise<void> = Promise.resolve();
  #sliceMs = SLICE_MS;
  /** The last readout's, and what ends it. */
  #running: ReadoutDeadline | undefined;
  #stop: AbortSignal | undefined;
  #isToRenew = false;
  #asides: Aside[] = [];
  #warnings: readonly Warning[] = [];

  constructor(spec: SourceSpec, learned: LearnedGroups, habits: Habits, deps: ReadoutDeps) {
    this.#spec = spec;
    this.#learned = learned;
    this.#habits = habits;
    this.#preparation = new Preparation(spec.points, deps.clock.monotonicMs);
    this.#confirming = new Confirming(spec.intervalMs, spec.layout.variables, deps.clock, deps.log);
    this.#deps = deps;
    const habit = (name: HabitName, holds: boolean) => (holds ? habits.learn(name, undefined) : habits.forget(name, undefined));
    this.#access = new DeviceAccess(spec, { ...deps, habit }, () => this.renew());
    habits.use(deps.habits.of(this.#access.device));
    const { connectMs, answerMs } = spec.timeouts;
    this.#deadlineMs = Math.max(spec.intervalMs, SHORTEST_READOUT_MS, connectMs + answerMs);
  }

  /** What passed last over the connections that it shares with others of their key; undefined: that is turned off. */
  get frames(): Pick<RingMember, "bytes" | "record"> | undefined {
    return this.#access.ring;
  }

  /** What the last session had to say of itself, and what is known of the program behind the values. */
  get warnings(): readonly Warning[] {
    return [...this.#warnings, ...this.#confirming.warnings];
  }

  /** How far the look-up of addresses has come; undefined: all are known. */
  get preparing(): { readonly done: number; readonly total: number } | undefined {
    return this.#preparation.progress;
  }

  /** True: other sources use the same device. */
  isOneOfSeveral(): boolean {
    return this.#access.membership.isOneOfSeveral();
  }

  /** True: other sources of the same device are answered. */
  hasHealthyOthers(): boolean {
    return this.#access.membership.hasHealthyOthers();
  }

  /** Has points read once more, at the end of a readout that ends with its connection. At most so many wait; the oldest gives way. */
  readAside(aside: Aside): void {
    this.#asides.push(aside);
    if (this.#asides.length > MAX_ASIDES) this.#asides.shift()?.settle(new Error("too many variables are looked at; try again"));
  }

  /** The next readout opens a new connection. */
  renew(): void {
    this.#isToRenew = true;
  }

  /**
   * One pass over all points, within its deadline or until the signal aborts. Waiting for a turn, or before that for the first look-up of a
   * name, is no part of it: the deadline begins with the turn. `isProbe`: the last readout had no answer. Never throws.
   */
  async read(isProbe: boolean, stop: AbortSignal): Promise<Outcome> {
    const { clock } = this.#deps;
    const looking = this.#access.lookUp(stop);
    if (looking) await looking;
    const askedMs = clock.monotonicMs();
    const turn = await this.#access.acquire(isProbe, stop);
    const waitedMs = clock.monotonicMs() - askedMs;
    if (turn instanceof ReasonError) return this.#failed(turn, waitedMs);
    if (!turn) return this.#failed(new ReasonError("CONNECTION_CLOSED", "the data source is being stopped"), waitedMs);
    this.#habits.use(this.#deps.habits.of(this.#access.device));
    const deadline = new ReadoutDeadline(this.#deadlineMs);
    this.#follow(stop, deadline);
    try {
      return { ...(await this.#readIn(turn, deadline, stop)), waitedMs };
    } finally {
      deadline.end();
    }
  }

  /** The readout ends with the source. One listener for all readouts: one for each costs more than their requests. */
  #follow(stop: AbortSignal, deadline: ReadoutDeadline): void {
    this.#running = deadline;
    if (stop.aborted) deadline.stop(stop.reason);
    if (stop === this.#stop) return;
    this.#stop = stop;
    stop.addEventListener("abort", () => stop === this.#stop && this.#running?.stop(stop.reason), { once: true });
  }

  /** Closes the connection; resolves when it is closed. */
  async leave(): Promise<void> {
    await this.#closing;
    await this.#access.leave();
  }

  async #readIn(turn: Turn, deadline: ReadoutDeadline, stop: AbortSignal): Promise<Outcome> {
    let { session } = turn;
    if (this.#isToRenew) {
      await session?.close();
      session = undefined;
      this.#isToRenew = false;
    }
    const { clock } = this.#deps;
    const beganMs = clock.monotonicMs();
    let at = { time: clock.epochMs(), startedMs: beganMs, bootTimeMs: bootTimeOf(clock) };
    const began = () => {
      at = { time: clock.epochMs(), startedMs: clock.monotonicMs(), bootTimeMs: bootTimeOf(clock) };
    };
    const open: Open = { session, turn, passedMs: 0 };
    const reading = this.#readOver(open, deadline, beganMs, began, stop);
    const result = await deadline.settled(reading);
    if (!result) {
      // What is open is closed before others of the device have their turn, and whatever it still opens.
      const { session: last } = open;
      void reading.then((late) => (late instanceof ReasonError || late.session === last ? undefined : late.session?.close()));
      void (last?.close() ?? Promise.resolve()).finally(() => open.turn?.release(undefined));
      const words = `the driver did not end the readout within ${GRACE_MS / 1000} s after its deadline`;
      return this.#failed(new ReasonError("UNKNOWN", words, { condition: "internal_error" }), 0);
    }
    const spanMs = toMicroseconds((open.readMs ?? clock.monotonicMs()) - at.startedMs);
    if (result instanceof ReasonError) {
      open.turn?.release(undefined);
      return { ...this.#failed(result, 0), time: at.time, bootTimeMs: at.bootTimeMs, spanMs };
    }
    this.#giveBack(open.turn, result, stop);
    const { readings, definite, restMs, unreached, requests, answered } = result;
    const late = unreached > 0 && answered === 0;
    const known = result.failure && namedSilence(result.failure, this.#evidence(open.hasConnected), this.#spec.name);
    const failure =
      known ?? (late ? new ReasonError("TIMEOUT", "the readout's deadline came before any variable was asked for") : undefined);
    const { time, bootTimeMs } = at;
    const { passedMs } = open;
    return { time, spanMs, bootTimeMs, readings, failure, definite, restMs, unreached, requests, waitedMs: 0, passedMs };
  }

  /**
   * What was read; a ReasonError where the driver made a mistake: the turn is given back all the same, because others wait for it. `open`: the
   * session that is kept, and then the one that was opened last.
   */
  async #readOver(
    open: Open,
    deadline: ReadoutDeadline,
    beganMs: number,
    began: () => void,
    stop: AbortSignal,
  ): Promise<Read | ReasonError> {
    const { clock, connecting } = this.#deps;
    const { signal } = deadline;
    const { driver, timeouts, intervalMs } = this.#spec;
    const ctx: DriverContext = { ...this.#access.context, signal, reader: this.#spec.uuid, intervalMs };
    const connectAgain = async (): Promise<AnySession> => {
      const loading = driver.load?.(stop);
      if (loading) await deadline.during(loading);
      connecting();
      return this.#connect(open, ctx);
    };
    let looking: LookUpTime | undefined;
    const prepare = async (session: AnySession): Promise<boolean> => {
      if (!this.#preparation.isDue(session)) return false;
      looking ??= new LookUpTime(this.#spec.prepareMs, stop, () => deadline.giveUpLater());
      const hasTime = !looking.signal.aborted;
      if (hasTime) deadline.pause();
      try {
        return await looking.during(this.#preparation.run(session, { ...ctx, signal: looking.signal }));
      } finally {
        this.#learned.use(this.#preparation.ready);
        if (hasTime) deadline.resume();
      }
    };
    const untilMs = beganMs + this.#deadlineMs;
    const passOn = (isAnswered: boolean, last: AnySession | undefined) => this.#passOn(open, last, isAnswered, untilMs, signal);
    open.turnMs = beganMs;
    const isTurnOver = () => open.turn?.isWanted() === true && clock.monotonicMs() - (open.turnMs ?? 0) >= this.#sliceMs;
    const unprepared = () => this.#preparation.forget();
    const limitsOf = ({ limits }: AnySession) => this.#habits.limits(limits, this.#learned.points);
    const searchMs = Math.max(
      SEARCHED_PART * intervalMs,
      timeouts.answerMs + SEARCHED_AFTER * Math.min(LEAST_TIMEOUT_MS, timeouts.answerMs),
    );
    const searchUntilMs = beganMs + Math.min(this.#deadlineMs / 2, searchMs);
    const shortUntilMs = beganMs + SEARCHED_PART * intervalMs;
    const options = { now: clock.monotonicMs, searchUntilMs, shortUntilMs, isTurnOver, share: this.#access.membership.share, intervalMs };
    try {
      const read = await readOnce(
        { driver, connect: connectAgain, limitsOf, began, prepare, unprepared, passOn },
        this.#learned,
        open.session,
        ctx,
        options,
      );
      open.readMs = clock.monotonicMs();
      const confirmed = await this.#confirm(read, ctx);
      if (read.readings.length > 0 || read.failure === undefined) this.#preparation.fill(read.readings);
      if (this.#asides.length > 0) await this.#readAsides(confirmed, ctx);
      return confirmed;
    } catch (error) {
      return toReasonError(error);
    } finally {
      looking?.cancel();
    }
  }

  /**
   * Opens a connection. Where others of the device are answered, what has no answer on the way is one more request without one: it is waited
   * for as long as opening takes there, and the time is charged.
   */
  async #connect(open: Open, ctx: DriverContext): Promise<AnySession> {
    const { clock } = this.#deps;
    const { driver, connect, timeouts } = this.#spec;
    const { membership } = this.#access;
    const { share } = membership;
    const isShared = membership.hasHealthyOthers();
    const beganMs = clock.monotonicMs();
    const isInFull = !isShared || mayWaitInFull(share.device, share.user, beganMs);
    const answerMs = isInFull ? timeouts.answerMs : membership.connectMs(timeouts.answerMs);
    try {
      const settings = this.#habits.settings(this.#learned.points);
      open.session = await driver.connect({ ...connect, settings }, { ...ctx, timeouts: { ...timeouts, answerMs } });
      open.hasConnected = true;
      const tookMs = clock.monotonicMs() - beganMs;
      membership.connected(tookMs);
      this.#sliceMs = Math.max(SLICE_MS, SLICE_CONNECTS * tookMs);
      return open.session;
    } catch (error) {
      this.#access.couldNotOpen();
      const isSilent = isShared && toReasonError(error).reason.type === "TIMEOUT" && !ctx.signal.aborted;
      if (isSilent) share.probed(clock.monotonicMs() - beganMs, this.#learned.known.unanswered > 0 ? "share" : "surprise");
      throw error;
    }
  }

  /** See ReadDeps.passOn. A probe that the device's budget does not allow before `untilMs` ends the readout. */
  async #passOn(
    open: Open,
    last: AnySession | undefined,
    isAnswered: boolean,
    untilMs: number,
    signal: AbortSignal,
  ): Promise<AnySession | undefined | false> {
    const { membership } = this.#access;
    if (!last && !membership.hasHealthyOthers()) return undefined;
    const kept = last && this.#spec.keepsConnection && !this.#access.hasMoved ? last : undefined;
    if (!kept) await last?.close();
    open.turn?.release(kept);
    open.turn = undefined;
    open.session = undefined;
    const { share, freeAtMs } = membership;
    // A source that was answered before may have one place that is silent: what else it asks for tells.
    const isFree = isAnswered || share.user.isShadowed || share.user.wasQuick;
    const isGood = isFree || (this.#learned.known.unanswered === 0 && !open.hasLooked && share.mayLookAgain());
    if (!isFree) open.hasLooked = true;
    if (!isGood && freeAtMs() >= untilMs) return false;
    const passedMs = this.#deps.clock.monotonicMs();
    const turn = await this.#access.acquireAgain(isAnswered, !isGood, signal);
    open.passedMs += this.#deps.clock.monotonicMs() - passedMs;
    if (!turn || turn instanceof ReasonError) return false;
    // A request that the deadline would cut off is not begun.
    if (signal.aborted || this.#deps.clock.monotonicMs() + Math.max(LEAST_TIMEOUT_MS, share.user.pace.slowestMs) > untilMs) {
      turn.release(turn.session);
      return false;
    }
    open.turn = turn;
    open.turnMs = this.#deps.clock.monotonicMs();
    open.session = turn.session;
    return turn.session;
  }

  /** Values that may be another variable's do not leave as good ones. A look that costs the connection costs no value. */
  async #confirm(read: Read, ctx: DriverContext): Promise<Read> {
    const { session, readings, failure } = read;
    const { programs, progress, ready } = this.#preparation;
    if (readings.length > 0) this.#confirming.lookedUp(programs, this.#preparation.takeMoved(), progress === undefined, readings);
    if (!session?.prepare || failure || read.answered === 0 || ctx.signal.aborted) return read;
    try {
      await this.#confirming.run(session, ready, readings, ctx, this.#access.membership.hasHealthyOthers());
      return read;
    } catch (error) {
      const level = toReasonError(error).condition === "internal_error" ? "warn" : "debug";
      this.#deps.log[level]({ err: error }, "the connection is given up: whether the device has another program could not be asked");
      return { ...read, session: undefined, closing: session.close() };
    }
  }

  async #readAsides({ session, failure }: Read, ctx: DriverContext): Promise<void> {
    for (const aside of this.#asides.splice(0)) {
      if (failure || !session?.alive()) aside.settle(failure ?? new Error("the connection ended before"));
      else await readAside(aside, this.#spec.driver, this.#habits.limits(session.limits, this.#learned.points), session, ctx);
    }
  }

  #evidence(hasConnected = false): Evidence {
    const { share } = this.#access.membership;
    const { isHeard } = this.#learned.known;
    const { answerMs } = this.#spec.timeouts;
    return {
      hasConnected: hasConnected && this.#spec.endpoint.transport === "tcp",
      isHeard,
      hasAnsweredOthers: hasAnsweredOthers(share.device, share.user),
      slowestMs: share.user.pace.slowestMs,
      answerMs,
    };
  }

  #giveBack(turn: Turn | undefined, { session, closing, refused, failure, answered }: Read, stop: AbortSignal): void {
    if (failure && !refused && answered === 0 && !stop.aborted) this.#access.wasUnanswered();
    if (session) this.#warnings = session.warnings?.() ?? [];
    const isKept = session && this.#spec.keepsConnection && !stop.aborted && !this.#access.hasMoved;
    const ending = session && !isKept ? session.close() : closing;
    const release = (kept: AnySession | undefined): void => {
      if (session || answered > 0) this.#access.wasAnswered();
      turn?.release(kept, refused);
    };
    if (ending && !isKept) this.#closing = ending.finally(() => release(undefined));
    else release(session);
  }

  #failed(failure: ReasonError, waitedMs: number): Outcome {
    const { clock } = this.#deps;
    const at = { time: clock.epochMs(), bootTimeMs: bootTimeOf(clock), spanMs: 0 };
    return { ...at, readings: [], failure, definite: false, restMs: restMsOf(failure), unreached: 0, requests: 0, waitedMs };
  }
}

/** The deadline of one readout, which stands still while addresses are looked up, or the driver is loaded. */
class ReadoutDeadline {
  readonly #controller = new AbortController();
  readonly #deadlineMs: number;
  #running: Deadline | undefined;
  /** Ends what waits for the work. The promise's own function: a closure here brings each readout's values into the old space. */
  #giveUp: ((nothing: undefined) => void) | undefined;
  #grace: Deadline | undefined;
  #hasEnded = false;

  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs;
    this.resume();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  pause(): void {
    this.#running?.cancel();
  }

  /** Stands still until this has settled, and throws what it throws. */
  async during(work: Promise<void>): Promise<void> {
    this.pause();
    try {
      await work;
    } finally {
      this.resume();
    }
  }

  /** The whole time from now on. */
  resume(): void {
    this.#running?.cancel();
    if (this.#hasEnded) return;
    if (!this.signal.aborted) this.#grace?.cancel();
    this.#running = new Deadline(this.#deadlineMs, () => this.stop(new ReasonError("TIMEOUT", "the readout's deadline has passed")));
  }

  /** What the work settles with; undefined where it has not settled GRACE_MS after the signal's abort. */
  settled<T>(work: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      this.#giveUp = resolve;
      if (this.signal.aborted) this.#aborted();
      work.then(resolve, reject);
    });
  }

  /** What it stands still for is to end: it is waited for as after the signal's abort, until the next `resume`. */
  giveUpLater(): void {
    if (!this.#hasEnded && !this.signal.aborted) this.#aborted();
  }

  /** Aborts the signal. Nothing once it has ended. */
  stop(reason: unknown): void {
    if (this.#hasEnded || this.signal.aborted) return;
    this.#controller.abort(reason);
    this.#aborted();
  }

  end(): void {
    this.#hasEnded = true;
    this.#giveUp = undefined;
    this.#grace?.cancel();
    this.#running?.cancel();
  }

  /** Not a listener, because one that comes and goes with each readout costs more. */
  #aborted(): void {
    this.#grace?.cancel();
    if (this.#giveUp) this.#grace = new Deadline(GRACE_MS, () => this.#giveUp?.(undefined));
  }
}

/** Three digits behind the point: a clock gives no more than that, and consumers see the number. */
const toMicroseconds = (ms: number): number => Math.round(ms * 1000) / 1000;
