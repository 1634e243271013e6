import type { AnyDriver, AnySession, DriverContext, Limits, Point, Request } from "../../drivers/driver.ts";
import { sleep } from "../base/timer.ts";
import { type ReasonError, restMsOf } from "../model/reason.ts";
import type { Reading } from "../model/value.ts";
import { Asking } from "./asking.ts";
import { answered, type DeviceShare, DeviceTime, probed, probeTimeoutMs } from "./device-time.ts";
import type { LearnedGroups } from "./learned-groups.ts";
import { isGood } from "./search/facts.ts";
import { finish } from "./search/finish.ts";
import { type Next, newReadout, type Outcome, type PassEnd, type State } from "./search/state.ts";
import { begin, next, restMsOf as restOf, step } from "./search/step.ts";

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
  /** For a person who reads once: see Bounds. Default: false. */
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

/**
 * One readout's pass over all points of a source, over as many connections as it takes: the thin edge of `search/step`, which says what is asked
 * next and learns from each outcome. What was learned stays in `learned`.
 */
export class ReadPass {
  readonly #driver: AnyDriver;
  readonly #asking: Asking;
  readonly #state: State;
  readonly #share: DeviceShare;
  readonly #now: () => number;
  readonly #wait: NonNullable<PassOptions["wait"]>;
  readonly #isTurnOver: (() => boolean) | undefined;
  /** Why a request had no answer first; what a stale connection says of itself does not count. */
  #firstFailure: ReasonError | undefined;

  constructor(driver: AnyDriver, learned: LearnedGroups, options: PassOptions = {}) {
    const { now = () => performance.now(), intervalMs = 0, isThorough = false } = options;
    const { searchUntilMs = Number.MAX_SAFE_INTEGER, shortUntilMs = searchUntilMs } = options;
    this.#driver = driver;
    this.#asking = new Asking(driver, learned.width);
    this.#share = options.share ?? new DeviceTime(now).join(intervalMs);
    const { device, user } = this.#share;
    const bounds = { intervalMs, isThorough, searchUntilMs, shortUntilMs, idleUntilMs: now() + intervalMs };
    this.#state = { plan: learned, device, user, readout: newReadout(bounds, this.#asking.readings) };
    this.#now = now;
    this.#wait = options.wait ?? sleep;
    this.#isTurnOver = options.isTurnOver;
    learned.known.readouts++;
  }

  /** True: the connection that it ran on last is lost. */
  get isLost(): boolean {
    return this.#state.readout.lost !== null;
  }

  /** Requests that were answered, be it with a refusal. */
  get answered(): number {
    return this.#state.readout.answered;
  }

  /**
   * Continues over this session. `limits` may differ from those of the session before. `isKept`: the connection is from an earlier
   * readout, and that it has ended since says nothing.
   */
  async run(session: AnySession, limits: Limits, ctx: DriverContext, isKept = false): Promise<PassEnd> {
    const state = this.#state;
    const { readout } = state;
    readout.fullMs = ctx.timeouts.answerMs;
    readout.isAborted = ctx.signal.aborted;
    this.#asking.lost = undefined;
    begin(state, state.plan.plan(this.#driver, limits), isKept);
    for (;;) {
      const first = next(state, this.#now());
      const width =
        first?.what === "planned" && !readout.isSequential ? Math.min(limits.inFlight, readout.main.length - readout.at + 1) : 1;
      const end = width > 1 && first ? await this.#together(session, first, width, ctx) : await this.#follow(session, first, ctx);
      if (end === "done" && !(await this.#tryInFlight(session, ctx))) await this.#tryHabit(session, ctx);
      if (end) return end;
    }
  }

  /** Asks `width` requests at once, as long as there are planned ones; what follows is one after the other. */
  async #together(session: AnySession, first: Next, width: number, ctx: DriverContext): Promise<PassEnd | undefined> {
    const begun = [this.#follow(session, first, ctx)];
    while (begun.length < width) begun.push(this.#follow(session, next(this.#state, this.#now()), ctx));
    const ends = await Promise.all(begun);
    return ends.find((end) => end !== undefined);
  }

  /** Asks this, and what comes after it, until the pass over this connection ends, or others are under way that know more. */
  async #follow(session: AnySession, first: Next | undefined, ctx: DriverContext): Promise<PassEnd | undefined> {
    let after = first;
    while (after && after.what !== "end") {
      if (after.what === "pause") {
        await this.#wait(after.ms, ctx.signal);
        this.#look(ctx);
        after = next(this.#state, this.#now());
      } else after = await this.#ask(session, after, ctx);
    }
    return after?.end;
  }

  async #ask(session: AnySession, ask: Exclude<Next, { readonly what: "pause" | "end" }>, ctx: DriverContext): Promise<Next | undefined> {
    const { readout } = this.#state;
    const began = this.#now();
    const outcome = await this.#asking.ask(session, ask.request, ctx, readout.waitMs);
    const nowMs = this.#now();
    this.#look(ctx);
    this.#noteHabits(ask.request, outcome, began, nowMs);
    const after = step(this.#state, ask, outcome, nowMs - began, nowMs);
    if (readout.hasFailure) this.#firstFailure ??= this.#asking.lost;
    this.#share.tell();
    return after;
  }

  /** Whether the device loses requests that come right after an answer. */
  #noteHabits(request: Request, outcome: Outcome, beganMs: number, nowMs: number): void {
    const { habits } = this.#state.plan;
    if (!habits) return;
    const afterMs = beganMs - habits.answeredMs;
    const isSilent = outcome.type === "ended" ? outcome.loss.isTimeout : outcome.type === "refused" && outcome.scope === "silent";
    if (!isSilent && outcome.type !== "ended") habits.answered(request, afterMs, nowMs);
    else if (isSilent && !this.#state.readout.isAborted) habits.lost(request, afterMs);
  }

  /** One request as if the device had no such habit, once a day: if it is answered, the habit has gone. */
  async #tryHabit(session: AnySession, ctx: DriverContext): Promise<void> {
    const { plan, device, user, readout } = this.#state;
    const { habits, points, groups } = plan;
    if (!habits || readout.bounds.isThorough || readout.good === 0 || readout.lost || readout.isAborted) return;
    const planned = (): readonly Request[] => groups.flatMap(({ requests }) => requests.map(({ request }) => request));
    const trial = habits.trial(points, session.limits, planned, (request) => isGood(this.#state, request));
    if (!trial) return;
    const began = this.#now();
    const { request } = trial;
    const timeoutMs = probeTimeoutMs(device, ctx.timeouts.answerMs, began);
    const outcome = await this.#asking.tryOut(session, request, ctx, timeoutMs);
    const nowMs = this.#now();
    if (outcome === undefined) return;
    if (outcome === "answered") answered(device, user, nowMs - began, nowMs);
    else if (outcome === "silent") probed(device, user, nowMs - began, "share", request.part, nowMs);
    habits.tried(trial, outcome === "answered");
  }

  /** Tries now and then how many requests the device answers at once, in time that no readout needs. True: it was tried. */
  async #tryInFlight(session: AnySession, ctx: DriverContext): Promise<boolean> {
    const { plan, device, readout } = this.#state;
    const { main, bounds, sent } = readout;
    const nowMs = this.#now();
    const step =
      this.#isAsPlanned && !bounds.isThorough && !readout.isTurnOver
        ? (plan.habits?.dueInFlight(session.limits, plan.points, main.length) ?? 0)
        : 0;
    if (step < 2) return false;
    const eachMs = (nowMs - (bounds.idleUntilMs - bounds.intervalMs)) / Math.max(1, sent);
    // Three times one after the other, and as much in reserve.
    if (nowMs + eachMs * step * 6 > bounds.idleUntilMs) return false;
    const first = plan.known.readouts % main.length;
    const requests = Array.from({ length: step }, (_, i) => main[(first + i) % main.length]?.request).filter((one) => one !== undefined);
    const timeoutMs = probeTimeoutMs(device, ctx.timeouts.answerMs, nowMs);
    const round = await this.#asking.tryTogether(session, requests, ctx, timeoutMs, this.#now);
    if (round) plan.habits?.triedInFlight(round);
    return true;
  }

  /** Everything was asked once, and answered. */
  get #isAsPlanned(): boolean {
    const { good, main, hasFailed, lost, isAborted } = this.#state.readout;
    return main.length > 0 && good >= main.length && !hasFailed && !lost && !isAborted;
  }

  /** Facts from outside that decisions depend on. */
  #look(ctx: DriverContext): void {
    const { readout } = this.#state;
    readout.isAborted = ctx.signal.aborted;
    readout.isTurnOver = this.#isTurnOver?.() === true;
  }

  /** Ends the pass: every point that was answered or is accounted for has its reading. `failure`: no connection could be opened. */
  finish(failure?: ReasonError): ReadResult {
    const state = this.#state;
    const { isUnanswered, unreached } = finish(state, failure !== undefined, this.#now());
    this.#keepHabits();
    const { sent, answered, isDefinite, isGivenUp } = state.readout;
    return {
      readings: this.#asking.readings,
      failure: failure ?? (isUnanswered ? this.#firstFailure : undefined),
      restMs: Math.max(restOf(state), failure ? restMsOf(failure) : 0),
      unreached,
      requests: sent,
      answered,
      givenUp: isGivenUp ? this.#asking.lost : undefined,
      definite: isDefinite,
    };
  }

  #keepHabits(): void {
    const { habits, known, limits, points } = this.#state.plan;
    for (const { name, part, value } of known.habits.splice(0)) habits?.learn(name, part, value);
    const isWhole = () => points.every(({ index }) => this.#asking.readings[index]?.quality === "good");
    const { hasLostTogether, busyRounds, main, again } = this.#state.readout;
    if ((limits?.inFlight ?? 1) > 1) habits?.askedTogether({ hasLost: hasLostTogether, wasBusy: busyRounds > 0 }, isWhole);
    habits?.readout(this.#isAsPlanned && again.length === 0, new Set(main.map(({ request }) => request.part)));
  }

  /** Values that were read of points that are elsewhere by now are forgotten: they may be another variable's. */
  readAgain(before: readonly Point[], now: readonly Point[]): void {
    const places: Point[] = [];
    for (const point of now) places[point.index] = point;
    this.#asking.drop(before.filter((point) => places[point.index] !== point));
  }
}
