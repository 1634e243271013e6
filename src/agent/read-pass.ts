import type { AnyDriver, AnySession, DriverContext, Limits, Point, Request } from "../../drivers/driver.ts";
import { type ReasonError, restMsOf } from "../model/reason.ts";
import { sleep } from "../model/timer.ts";
import type { Reading } from "../model/value.ts";
import { Asking, type Outcome } from "./asking.ts";
import { type DeviceShare, DeviceTime } from "./device-time.ts";
import type { Extra, PassView } from "./extras.ts";
import type { BadReading, Group, LearnedGroups, Planned } from "./learned-groups.ts";
import { ReadoutConnections } from "./readout-connections.ts";
import { Searching } from "./searching.ts";

/**
 * Why a pass wants no more of its connection. `done`: nothing is left to ask. `lost`: go on over a new one. `renew`: the same, and
 * nothing is wrong: the device closes after so many answers. `failed`: the source gave no answer. `stopped`: the signal aborted.
 * `unprepared`: the device has another program, so that addresses have to be looked up again before it goes on. `turn`: others of the
 * device are due, and it continues when it has another turn.
 */
export type PassEnd = "done" | "lost" | "renew" | "failed" | "stopped" | "unprepared" | "turn";

export interface PassOptions {
  /** Monotonic ms. */
  readonly now?: () => number;
  /** After this, at most two requests more look for what failed: the next readout goes on there. Default: never. */
  readonly searchUntilMs?: number;
  /** `searchUntilMs` of a source with several parts (units). Default: the same. */
  readonly shortUntilMs?: number;
  /** Default: the device is this source's alone. */
  readonly share?: DeviceShare;
  /** Between two readouts of this source. Default: 0. */
  readonly intervalMs?: number;
  /** For a person who reads once: see SearchContext. Default: false. */
  readonly isThorough?: boolean;
  /** True: others of the device are due, and this source has used its slice. Default: never. */
  readonly isTurnOver?: () => boolean;
  /** False: the signal aborted meanwhile. Default: a timer. */
  readonly wait?: (ms: number, signal: AbortSignal) => Promise<boolean>;
}

export interface ReadResult {
  /** By `point.index`; undefined: not answered. */
  readonly readings: (Reading | undefined)[];
  /** The source failed: no answer at all, or the connection could not be opened again. */
  readonly failure: ReasonError | undefined;
  /** The device asks not to be read again before: ms. */
  readonly restMs: number;
  /** Points that were not asked for lack of time. */
  readonly unreached: number;
  readonly requests: number;
  /** Requests that the device answered, be it with a refusal. */
  readonly answered: number;
  /** Why it ended before its time, with something left to ask; undefined: it did not. */
  readonly givenUp: ReasonError | undefined;
  /** Every refusal was about what was asked: the device is in order, whatever it says. */
  readonly definite: boolean;
}

/** Each of so many tries waits for the whole time. */
const PATIENT_EVERY = 5;
/** This many planned requests in a row that are refused with a pause say that it is the device's, although others were answered before. */
const RESTING_REQUESTS = 2;

/** Pauses before a busy device is asked again in the same readout: a controller is busy for some cycles, and others wait meanwhile. */
const BUSY_PAUSES_MS = [50, 100] as const;
/** Part of its interval in which a readout asks a busy device again. */
const BUSY_PART = 0.5;

const notReached = (why: string): BadReading => ({ quality: "bad", fault: "no_answer", detail: `not reached: ${why}` });
const NOT_REACHED = notReached("the readout's time was up before; the next readout continues here");
/** For a person who reads once. */
const NOT_REACHED_ONCE = notReached("reading ended before");

/**
 * One readout's pass over all points of a source, over as many connections as it takes. What is well is asked first, as planned;
 * what fails is kept for last and halved, so that one wrong address costs one reading and not its request. A request on which the
 * connection ends is asked last, alone. What was learned stays in `learned`.
 */
export class ReadPass implements PassView {
  readonly #asking: Asking;
  readonly #connections: ReadoutConnections;
  readonly #driver: AnyDriver;
  readonly #learned: LearnedGroups;
  readonly #share: DeviceShare;
  readonly #searching: Searching;
  readonly #isThorough: boolean;
  #answerMs = 0;
  #limits: Limits = { maxPoints: 0, maxBytes: 0, inFlight: 1 };
  #groups: readonly Group[] | undefined;
  /** What is asked as planned, and how far that has come. */
  #main: readonly Planned[] = [];
  #at = 0;
  /** Lost with a connection that had answered before: first on the next one. */
  #again: Planned[] = [];
  /** Absent, as in most readouts: none yet. */
  #againOnce: Set<Request> | undefined;
  /** Planned requests that the device refused with a pause, since one was answered. Absent, as in most readouts: none yet. */
  #resting: Set<Request> | undefined;
  #sequential = false;
  /** A request was lost with others under way. */
  #hasLostTogether = false;
  #pending: Extra | undefined;
  /** Planned requests whose answers the deadline cut off. */
  readonly #cut: Planned[] = [];
  /** Requests that the device was too busy for. */
  #busy: Planned[] = [];
  #hasAskedBusy = false;
  readonly #busyUntilMs: number;
  readonly #now: () => number;
  readonly #wait: NonNullable<PassOptions["wait"]>;
  readonly #isTurnOver: () => boolean;
  #canSettle = true;
  /** What was answered in this readout is not any more, and there is no other part: the next one tells whether anything is. */
  #isSilentNow = false;
  #givenUp: ReasonError | undefined;

  constructor(driver: AnyDriver, learned: LearnedGroups, options: PassOptions = {}) {
    const { now = () => performance.now(), searchUntilMs = Number.POSITIVE_INFINITY, intervalMs = 0, isThorough = false } = options;
    const share = options.share ?? new DeviceTime(now).join(intervalMs);
    this.#driver = driver;
    this.#learned = learned;
    this.#share = share;
    this.#isThorough = isThorough;
    this.#now = now;
    this.#wait = options.wait ?? sleep;
    this.#isTurnOver = options.isTurnOver ?? (() => false);
    this.#busyUntilMs = now() + BUSY_PART * intervalMs;
    this.#asking = new Asking(driver, learned, share, now, (points, reading) => this.#searching.failedItem(points, reading));
    this.#connections = new ReadoutConnections(this.#asking, learned, share, isThorough);
    learned.readouts++;
    const idleUntilMs = now() + intervalMs;
    this.#searching = new Searching(learned, {
      now,
      searchUntilMs,
      shortUntilMs: options.shortUntilMs ?? searchUntilMs,
      idleUntilMs,
      answerMs: () => this.#answerMs,
      share,
      intervalMs,
      isThorough,
      pass: this,
    });
  }

  get sent(): number {
    return this.#asking.sent;
  }

  /** True: the connection that it ran on last is lost. */
  get isLost(): boolean {
    return this.#asking.lost !== undefined;
  }

  /** Requests answered with a value at least. */
  get good(): number {
    return this.#asking.good;
  }

  get answered(): number {
    return this.#asking.answered;
  }

  /**
   * Goes on over this session. `limits` may differ from those of the session before. `isKept`: the connection is from an earlier
   * readout, and that it has ended since says nothing.
   */
  async run(session: AnySession, limits: Limits, ctx: DriverContext, isKept = false): Promise<PassEnd> {
    this.#answerMs = ctx.timeouts.answerMs;
    this.#begin(limits, isKept);
    if (this.#searching.mustProbeFirst(this.#main)) {
      const end = await this.#probeFirst(session, ctx);
      if (end) return end;
    }
    for (;;) {
      await this.#askAgain(session, ctx);
      if (!this.#hasEnded(ctx)) await this.#askMain(session, limits, ctx);
      if (this.#hasEnded(ctx)) return this.#end(ctx);
      const extra = this.#takeExtra();
      if (!extra) {
        if (this.#at < this.#main.length) continue;
        if (this.#busy.length === 0 || this.#hasAskedBusy) {
          await this.#tryHabit(session, ctx);
          return "done";
        }
        await this.#askBusy(session, ctx);
        if (this.#hasEnded(ctx)) return this.#end(ctx);
        continue;
      }
      await this.#askExtra(session, extra, ctx);
      if (this.#hasEnded(ctx)) return this.#end(ctx);
    }
  }

  /** Ends the pass: every point that was answered or is accounted for has its reading. `failure`: no connection could be opened. */
  finish(failure?: ReasonError): ReadResult {
    const learned = this.#learned;
    const { readings, answered, firstFailure } = this.#asking;
    const isUnanswered = answered === 0 && (failure ?? firstFailure) !== undefined;
    learned.unanswered = isUnanswered ? learned.unanswered + 1 : 0;
    learned.hadGood = this.#asking.good > 0;
    if (isUnanswered || failure) this.#share.failed();
    if (this.#limits.inFlight > 1)
      learned.habits?.askedTogether(this.#hasLostTogether, () => learned.points.every((point) => this.isGood({ points: [point] })));
    const left = [...this.#cut, ...this.#main.slice(this.#at)].filter(({ request }) => !this.isRead(request));
    // What a device that refuses everything was not asked for did not lack time.
    const unreached = isUnanswered || failure || learned.shut ? 0 : left.reduce((sum, { request }) => sum + request.points.length, 0);
    learned.resumeAt = unreached > 0 && left[0] ? Math.max(0, learned.plan(this.#driver, this.#limits).indexOf(left[0])) : 0;
    if (this.#pending) this.#searching.putBack(this.#pending);
    this.#searching.finish(isUnanswered);
    if (isUnanswered) readings.length = 0;
    else if (!failure) readings.length = learned.width;
    if (readings.length > 0) this.#searching.fill(readings);
    const notReached = this.#isThorough ? NOT_REACHED_ONCE : NOT_REACHED;
    if (unreached > 0) for (const { request } of left) for (const { index } of request.points) readings[index] ??= notReached;
    if (readings.length > 0 && !failure) this.#searching.fillRest(readings);
    return {
      readings,
      failure: failure ?? (isUnanswered ? firstFailure : undefined),
      restMs: Math.max(this.#restMs, failure ? restMsOf(failure) : 0),
      unreached,
      requests: this.#asking.sent,
      answered,
      givenUp: this.#givenUp,
      definite: this.#asking.isDefinite,
    };
  }

  hasReading(index: number): boolean {
    return this.#asking.readings[index] !== undefined;
  }

  isRead({ points }: Request): boolean {
    return points.every(({ index }) => this.hasReading(index));
  }

  isGood({ points }: Request): boolean {
    return points.every(({ index }) => this.#asking.readings[index]?.quality === "good");
  }

  give(points: readonly Point[], reading: Reading): void {
    this.#asking.give(points, reading);
  }

  /** Values that were read of points that are elsewhere by now are forgotten: they may be another variable's. */
  readAgain(before: readonly Point[], now: readonly Point[]): void {
    const places: Point[] = [];
    for (const point of now) places[point.index] = point;
    this.#asking.drop(before.filter((point) => places[point.index] !== point));
  }

  /** Begins again with the plan as it is now: what was learned is forgotten. */
  restart(): void {
    this.#groups = undefined;
    this.#setMain(this.#limits);
  }

  /** Asks these as planned before anything else is looked for. */
  queue(planned: readonly Planned[]): void {
    this.#main = [...this.#main.slice(this.#at), ...planned];
    this.#at = 0;
  }

  #begin(limits: Limits, isKept: boolean): void {
    this.#limits = limits;
    this.#connections.begin();
    this.#asking.begin(isKept);
    this.#setMain(limits);
  }

  #setMain(limits: Limits): void {
    const plan = this.#learned.plan(this.#driver, limits);
    if (this.#groups === this.#learned.groups) return;
    // Another plan than the connection before had: what is read stays read, the rest is asked by it.
    this.#groups = this.#learned.groups;
    const { resumeAt } = this.#learned;
    this.#main = resumeAt > 0 && resumeAt < plan.length ? [...plan.slice(resumeAt), ...plan.slice(0, resumeAt)] : plan;
    this.#at = 0;
    this.#again = [];
    this.#pending = undefined;
    this.#searching.begin(this.#main.length);
  }

  /** A source without an answer in the last readout, or that is refused everything, is asked for one point before all. */
  async #probeFirst(session: AnySession, ctx: DriverContext): Promise<PassEnd | undefined> {
    const extra = this.#searching.firstProbe();
    if (!extra) return undefined;
    this.#learned.shut = undefined;
    const outcome = await this.#askInFull(session, extra.request, ctx);
    if (this.#asking.lost && !this.#asking.isStale) return "failed";
    if (this.#hasEnded(ctx)) return this.#end(ctx);
    if (outcome.type === "everything") return "done";
    this.#searching.wakeUp();
    return undefined;
  }

  /** What was lost with the connection before comes first on this one: whether it is to blame shows at once. */
  async #askAgain(session: AnySession, ctx: DriverContext): Promise<void> {
    while (this.#again.length > 0 && !this.#hasEnded(ctx)) {
      const planned = this.#again.shift();
      if (!planned || this.isRead(planned.request)) continue;
      this.#settle(planned, await this.#askInFull(session, planned.request, ctx), ctx);
    }
  }

  /**
   * Asks once more, after pauses, for what the device was too busy for; where the first of it is in vain, the rest is too. What is busy for
   * longer comes in the next readout.
   */
  async #askBusy(session: AnySession, ctx: DriverContext): Promise<void> {
    this.#hasAskedBusy = true;
    for (const pauseMs of BUSY_PAUSES_MS) {
      const isInOrder = this.#asking.good > 0 || this.#learned.hadGood;
      const hasTime = this.#now() + pauseMs <= this.#busyUntilMs && this.#share.mayProbe(true);
      if (this.#busy.length === 0 || !isInOrder || !hasTime || !(await this.#wait(pauseMs, ctx.signal))) return;
      const waiting = this.#busy;
      this.#busy = [];
      for (const [at, planned] of waiting.entries()) {
        const outcome = await this.#askInFull(session, planned.request, ctx);
        this.#settle(planned, outcome, ctx);
        if (this.#hasEnded(ctx)) return;
        if (outcome.type !== "busy") continue;
        this.#busy.push(...waiting.slice(at + 1));
        break;
      }
    }
  }

  async #askMain(session: AnySession, limits: Limits, ctx: DriverContext): Promise<void> {
    const askInTurn = async (): Promise<void> => {
      while (!this.#hasEnded(ctx)) {
        const planned = this.#nextMain();
        if (!planned) return;
        if (this.#isThorough && !(await this.#letSettle(session, planned.request, ctx))) {
          this.#again.push(planned);
          return;
        }
        this.#settle(planned, await this.#askInFull(session, planned.request, ctx), ctx);
      }
    };
    const width = this.#sequential ? 1 : Math.min(limits.inFlight, this.#main.length - this.#at);
    if (width <= 1) await askInTurn();
    else await Promise.all(Array.from({ length: width }, askInTurn));
  }

  /** One request as if the device had no such habit, once a day: if it is answered, the habit has gone. */
  async #tryHabit(session: AnySession, ctx: DriverContext): Promise<void> {
    const { habits, points, groups } = this.#learned;
    if (!habits || this.#isThorough || this.#asking.good === 0) return;
    const planned = (): readonly Request[] => groups.flatMap(({ requests }) => requests);
    const trial = habits.trial(points, session.limits, planned, (request) => this.isGood(request));
    if (!trial) return;
    const isAnswered = await this.#asking.tryOut(session, trial.request, ctx, this.#share.timeoutMs(ctx.timeouts.answerMs));
    if (isAnswered !== undefined) habits.tried(trial, isAnswered);
  }

  #nextMain(): Planned | undefined {
    while (this.#at < this.#main.length) {
      const planned = this.#main[this.#at++];
      if (!planned || this.isRead(planned.request)) continue;
      if (!this.#searching.skips(planned)) return planned;
    }
    return undefined;
  }

  #askInFull(session: AnySession, request: Request, ctx: DriverContext): Promise<Outcome> {
    const fullMs = ctx.timeouts.answerMs;
    const { unanswered, doubtful } = this.#learned;
    const isExpected = unanswered > 0 || doubtful?.has(request) === true;
    const timeoutMs = this.#timeoutMs(request, fullMs);
    if (timeoutMs === fullMs) this.#searching.waitsInFull(request.part);
    return this.#asking.ask(session, request, ctx, timeoutMs, isExpected ? "share" : "surprise");
  }

  #settle(planned: Planned, outcome: Outcome, ctx: DriverContext): void {
    const { request } = planned;
    if (outcome.type === "answered") {
      this.#resting?.clear();
      this.#searching.partAnswered(request.part);
    } else if (outcome.type === "failed") {
      if (outcome.restMs !== undefined) this.#resting = (this.#resting ?? new Set()).add(request);
      // That the readout's time is up says nothing of this request: the next readout begins with it, so that it has its whole time.
      if (ctx.signal.aborted) this.#cut.push(planned);
      else if (outcome.isLoss) this.#keepForLater(planned, outcome.reading);
      else this.#searching.failed(planned, outcome);
    } else if (outcome.type === "busy") this.#busy.push(planned);
    // If the other program has everything at its place, the plan stays the same, and goes on after this request.
    else if (outcome.type === "program" && this.#asking.isUnprepared) this.#again.push(planned);
  }

  /**
   * What has given no answer so far is waited for as long as the device takes as a rule, where that is known; each fifth time for as
   * long as any request.
   */
  #timeoutMs(request: Request, fullMs: number): number {
    const { part } = request;
    const { unanswered, isHeard, doubtful } = this.#learned;
    const isShared = this.#share.hasHealthyOthers() || this.#searching.isOneOfSeveral(part);
    if (isShared ? this.#share.mayWaitInFull() : unanswered % PATIENT_EVERY === PATIENT_EVERY - 1) return fullMs;
    const isUnheardPart = part !== undefined && this.#searching.isUnheardOfSeveral(part);
    const isUnheardUnit = !isHeard && part !== undefined;
    const isUnanswered = unanswered > 0 || isUnheardUnit || this.#asking.firstFailure !== undefined;
    const isInTrouble = isUnheardPart || (this.#asking.answered === 0 ? isUnanswered : this.#isInTrouble(part));
    const isDoubtful = isInTrouble || doubtful?.has(request) === true || this.#searching.isDoubted(part);
    const hasFailed = isShared && isHeard && unanswered > 0;
    if (isDoubtful && !hasFailed) return this.#share.timeoutMs(fullMs);
    return isShared && isHeard ? this.#share.ownTimeoutMs(fullMs) : fullMs;
  }

  /** True: something had no answer in this readout, and this part of several has given none either. */
  #isInTrouble(part: string | undefined): boolean {
    return this.#asking.firstFailure !== undefined && this.#searching.isUnheard(part);
  }

  /** Lost with its connection: that may be its own fault, or nobody's. */
  #keepForLater(planned: Planned, reading: BadReading): void {
    this.#hasLostTogether = this.#hasLostTogether || (!this.#sequential && this.#limits.inFlight > 1);
    this.#sequential = true;
    const { lost, answersHere, isStale } = this.#asking;
    const isFirstTime = !this.#againOnce?.has(planned.request);
    if (isFirstTime && this.#share.isShadowed()) {
      this.#againOnce = (this.#againOnce ?? new Set()).add(planned.request);
      this.#putLast(planned);
    } else if (lost?.sessionLost && isFirstTime && (answersHere > 0 || isStale)) {
      this.#againOnce = (this.#againOnce ?? new Set()).add(planned.request);
      this.#again.push(planned);
    } else this.#searching.suspect(planned, reading, lost?.reason.type !== "TIMEOUT");
  }

  /** Asks it once more after all else that is planned, with what else is planned of its part. */
  #putLast(planned: Planned): void {
    const { part } = planned.request;
    const rest = this.#main.slice(this.#at);
    const isOfIt = ({ request }: Planned) => part !== undefined && request.part === part;
    this.#main = [...rest.filter((one) => !isOfIt(one)), planned, ...rest.filter(isOfIt)];
    this.#at = 0;
  }

  #takeExtra(): Extra | undefined {
    const extra = this.#pending ?? this.#searching.next();
    this.#pending = undefined;
    return extra;
  }

  async #askExtra(session: AnySession, extra: Extra, ctx: DriverContext): Promise<void> {
    const { request, isRisky } = extra;
    if (isRisky && !extra.isPatient && !(await this.#letSettle(session, request, ctx))) {
      this.#pending = extra;
      return;
    }
    const fullMs = ctx.timeouts.answerMs;
    const timeoutMs = isRisky && !extra.isPatient ? this.#share.timeoutMs(fullMs) : fullMs;
    const outcome = await this.#asking.ask(session, request, ctx, timeoutMs, extra.time ?? "share");
    if (ctx.signal.aborted && this.#asking.lost) return;
    if (outcome.type === "answered") {
      this.#searching.partAnswered(request.part);
      this.#searching.answered(extra);
    } else if (outcome.type === "failed") this.#searching.extraFailed(extra, outcome);
    else if (outcome.type === "program" && this.#asking.isUnprepared) this.#pending = extra;
  }

  /**
   * Asks once more for what was answered, where a gateway may be busy with what was given up: that takes as long as it is busy, and what
   * comes next need not be waited for longer because of it. False: not even this had an answer.
   */
  async #letSettle(session: AnySession, { part }: Request, ctx: DriverContext): Promise<boolean> {
    const mayAsk = this.#canSettle && this.#searching.hasRoom && this.#share.mayBeBusy(ctx.timeouts.answerMs);
    const request = mayAsk ? this.#asking.goodBeside(part) : undefined;
    if (!request) return true;
    await this.#asking.ask(session, request, ctx, this.#share.timeoutMs(ctx.timeouts.answerMs), "surprise");
    // A person who reads once has no next readout: the device may take a moment until it serves a new connection.
    this.#canSettle = this.#isThorough || !this.#asking.lost;
    this.#isSilentNow = !this.#canSettle && request.part === part;
    return !this.#hasEnded(ctx);
  }

  #hasEnded(ctx: DriverContext): boolean {
    const { lost, isUnprepared } = this.#asking;
    const isOver = lost !== undefined || ctx.signal.aborted || this.#learned.shut !== undefined || isUnprepared;
    return isOver || this.#connections.isUsedUp || (this.#asking.answersHere > 0 && this.#isTurnOver());
  }

  #end(ctx: DriverContext): PassEnd {
    const { lost } = this.#asking;
    if (ctx.signal.aborted) return "stopped";
    if (!lost && this.#learned.shut) return "done";
    if (!lost && this.#asking.isUnprepared) {
      this.#asking.preparesAgain();
      return "unprepared";
    }
    if (lost) {
      this.#connections.lost(lost);
      if (this.#connections.areBarren || this.#restMs > 0) {
        this.#givenUp = lost;
        return "failed";
      }
      if (this.#asking.answered === 0) this.#lastFirst();
    }
    if (!this.#hasWork()) return "done";
    if (lost) return "lost";
    return this.#connections.isUsedUp ? "renew" : "turn";
  }

  /** The pause that the device asks for; 0 where what it refused with one is to blame, because others are answered. */
  get #restMs(): number {
    const { answered, restMs } = this.#asking;
    return answered === 0 || (this.#resting?.size ?? 0) >= RESTING_REQUESTS ? restMs : 0;
  }

  /** Nothing was answered so far: what is planned far from it may be. */
  #lastFirst(): void {
    const rest = this.#main.slice(this.#at);
    const last = rest.pop();
    this.#main = last ? [last, ...rest] : [];
    this.#at = 0;
  }

  #hasWork(): boolean {
    if (this.#isSilentNow) return false;
    if (this.#again.length > 0 || this.#at < this.#main.length) return true;
    this.#pending ??= this.#searching.next();
    return this.#pending !== undefined || this.#at < this.#main.length;
  }
}
