import { isDeepStrictEqual } from "node:util";
import type { AnySession, DriverContext, Point, Prepared } from "../../drivers/driver.ts";
import { createYielder, inSlices, type Steps, type YieldToEventLoop } from "../base/timer.ts";
import { messageOf } from "../model/failure.ts";
import { FaultError } from "../model/fault.ts";
import type { Reading } from "../model/value.ts";
import { badReading } from "./learned-groups.ts";

interface Refused {
  readonly reading: Reading;
  /** Monotonic ms from which it is looked up again. */
  readonly dueMs: number;
}

/** What has no answer takes one part in so many of the time. */
const COST_SHARE = 10;
const LONGEST_PAUSE_MS = 30_000;
/** Points in one step. */
const AT_ONCE = 500;
/** Runs in a row without an answer, after which the readout goes on with what is known. */
const MAX_BARREN = 3;
/** The same of runs that were refused: each takes an answer and no time-out, and the one point to blame is halved out of thousands. */
const MAX_REFUSED = 20;

/**
 * The place where the points of a source are, for drivers that have to look that up first. It outlives readouts and connections: a look-up
 * that takes longer than one readout goes on in the next.
 */
export class Preparation {
  readonly #points: readonly Point[];
  /** Monotonic ms. */
  readonly #now: () => number;
  /** By the place of the point: a map of so many would be copied in one go as it grows. */
  #known: (Point | Refused | undefined)[] = [];
  #knownCount = 0;
  /** Places of the points, once something is looked up: a driver may answer for others. */
  #places: Uint8Array | undefined;
  /** The place where points were before all was forgotten: one that is found there again stays the same object, with all that was learned of it. */
  #before: (Point | undefined)[] = [];
  /** Points that were not found where they had been, since these were taken last. */
  #moved: Point[] = [];
  #programs = 0;
  #epoch: string | undefined;
  #isNeeded = false;
  /** All was known at the end of the last run: while all is looked up once more, what was read stays read. */
  #wasComplete = false;
  #ready: readonly Point[];
  #lastReady: readonly Point[] = [];
  #refused: readonly (readonly [index: number, reading: Reading])[] = [];
  /** When the first refused point is looked up again. */
  #dueMs = Number.POSITIVE_INFINITY;
  #refusal: Reading | undefined;
  /** What is asked for together where something of it had no answer; what is in none is asked for first. */
  #runs: (readonly Point[])[] = [];
  /** Runs without an answer in a row. */
  #barren = 0;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(points: readonly Point[], now: () => number = () => performance.now()) {
    this.#points = points;
    this.#now = now;
    this.#ready = points;
  }

  /** The points to plan: prepared, or as they are where the driver needs no preparing. The same array while nothing changes. */
  get ready(): readonly Point[] {
    return this.#ready;
  }

  /** How often what was known was forgotten: the device had another program. */
  get programs(): number {
    return this.#programs;
  }

  /** The points, as they were before, that a look-up has not found where they had been; each once. */
  takeMoved(): readonly Point[] {
    if (this.#moved.length === 0) return NO_POINTS;
    const moved = this.#moved;
    this.#moved = [];
    return moved;
  }

  /** How far it has come; undefined: all is known, or nothing has to be. */
  get progress(): { readonly done: number; readonly total: number } | undefined {
    const [done, total] = [this.#knownCount, this.#points.length];
    return this.#isNeeded && !this.#wasComplete && done < total ? { done, total } : undefined;
  }

  /** True: anything has to be looked up on this session. */
  isDue(session: AnySession): boolean {
    if (!session.prepare) return false;
    if (!this.#isNeeded || session.epoch !== this.#epoch) return true;
    if (this.#now() < this.#pausedUntilMs) return false;
    return this.#knownCount < this.#points.length || this.#now() >= this.#dueMs;
  }

  /** What was found holds no longer: the device has another program. */
  forget(): void {
    const known = this.#known;
    if (this.#knownCount > 0) this.#programs++;
    // Of a source that begins nothing is known.
    for (const { index } of this.#knownCount > 0 ? this.#points : []) {
      const was = known[index];
      if (was && "address" in was) this.#before[index] = was;
    }
    this.#known = [];
    this.#knownCount = 0;
    this.#refused = [];
    this.#runs = [];
    this.#pausedUntilMs = Number.NEGATIVE_INFINITY;
    this.#ready = this.#isNeeded ? [] : this.#points;
  }

  /**
   * Looks up what is missing for this session, until `ctx.signal` aborts; what was found is kept. False: nothing was missing, or the time
   * was over from the beginning. Throws ReasonError: the source failed before that. Goes by slices.
   */
  async run(session: AnySession, ctx: DriverContext): Promise<boolean> {
    if (!session.prepare || !this.isDue(session)) return false;
    if (!this.#isNeeded || session.epoch !== this.#epoch) {
      this.#isNeeded = true;
      this.#epoch = session.epoch;
      this.forget();
    }
    if (ctx.signal.aborted) return false;
    this.#refusal = undefined;
    this.#barren = 0;
    const yieldToEventLoop = createYielder();
    this.#places ??= await inSlices(placesOf(this.#points), yieldToEventLoop);
    const runs = await inSlices(this.#missingRuns(), yieldToEventLoop);
    const unanswered: (readonly Point[])[] = [];
    try {
      for (let run = runs.shift(); run; run = runs.shift()) {
        const beganMs = this.#now();
        const error = await this.#lookUp(session, run, ctx, yieldToEventLoop);
        const rest = await inSlices(this.#missingOf(run), yieldToEventLoop);
        const hasNoAnswer = error !== undefined && !(error instanceof FaultError);
        const isRefused = error instanceof FaultError && error.scope === "points";
        if (isRefused && rest.length === 1) for (const point of rest) this.#take({ point, refusal: error, retryAfterMs: LONGEST_PAUSE_MS });
        else if (rest.length > 1 && (hasNoAnswer || isRefused)) runs.push(...halves(rest));
        else if (rest.length > 0) unanswered.push(rest);
        // If nothing was answered so far, nothing tells the device from this run.
        if (hasNoAnswer && this.#knownCount === 0) throw error;
        if (hasNoAnswer) this.#pause((this.#now() - beganMs) * Math.max(1, unanswered.length), runs.length === 0);
        const most = hasNoAnswer ? MAX_BARREN : isRefused ? MAX_REFUSED : 0;
        if (ctx.signal.aborted || (error !== undefined && (!session.alive() || this.#barren >= most))) break;
      }
    } finally {
      this.#runs = [...runs, ...unanswered];
      await inSlices(this.#settle(), yieldToEventLoop);
    }
    return true;
  }

  /** The device's others wait meanwhile: what is still searched for is gone on with soon, what has been found to have no answer seldom. */
  #pause(costMs: number, isFound: boolean): void {
    const soonMs = this.#barren >= MAX_BARREN ? costMs : 0;
    this.#pausedUntilMs = this.#now() + (isFound ? Math.min(LONGEST_PAUSE_MS, COST_SHARE * costMs) : soonMs);
  }

  /** What is missing, by the runs in which it is asked for. */
  *#missingRuns(): Steps<(readonly Point[])[]> {
    const runs: (readonly Point[])[] = [];
    const asked = new Set<Point>();
    for (const before of this.#runs) {
      const run = yield* this.#missingOf(before);
      if (run.length > 0) runs.push(run);
      for (const point of run) asked.add(point);
    }
    const others = yield* this.#missingOf(this.#points, asked);
    this.#runs = [];
    return others.length > 0 ? [others, ...runs] : runs;
  }

  *#missingOf(points: readonly Point[], without?: ReadonlySet<Point>): Steps<readonly Point[]> {
    const missing: Point[] = [];
    for (const [i, point] of points.entries()) {
      if (i > 0 && i % AT_ONCE === 0) yield;
      if (this.#isMissing(point) && !without?.has(point)) missing.push(point);
    }
    return missing;
  }

  /** Why it was not looked up to its end; undefined: it was, or the signal aborted between two batches. */
  async #lookUp(session: AnySession, points: readonly Point[], ctx: DriverContext, yieldToEventLoop: YieldToEventLoop): Promise<unknown> {
    try {
      for await (const batch of session.prepare?.(points, ctx) ?? []) {
        for (const [i, one] of batch.entries()) {
          this.#take(one);
          if (i > 0 && i % AT_ONCE === 0) await yieldToEventLoop();
        }
        await yieldToEventLoop();
        this.#barren = 0;
        ctx.progress?.(this.#knownCount, this.#points.length);
        if (ctx.signal.aborted) break;
      }
      return undefined;
    } catch (error) {
      // If the time was up while it waited for an answer, what is known is read.
      if (ctx.signal.aborted) return undefined;
      this.#refusal = error instanceof FaultError ? badReading(error) : { quality: "bad", fault: "no_answer", detail: messageOf(error) };
      this.#barren++;
      return error;
    }
  }

  #isMissing(point: Point): boolean {
    const known = this.#known[point.index];
    return known === undefined || ("dueMs" in known && known.dueMs <= this.#now());
  }

  #take(one: Prepared): void {
    const { point } = one;
    const before = this.#before[point.index];
    if ("refusal" in one) {
      if (before) this.#hasMoved(before);
      this.#keep(point, { reading: badReading(one.refusal), dueMs: this.#now() + (one.retryAfterMs ?? Number.POSITIVE_INFINITY) });
      return;
    }
    const { address, type } = one;
    const isSame = before !== undefined && isDeepStrictEqual([before.address, before.type], [address, type]);
    if (before && !isSame) this.#hasMoved(before);
    this.#keep(point, isSame ? before : { ...point, address, type });
  }

  #hasMoved(before: Point): void {
    this.#before[before.index] = undefined;
    this.#moved.push(before);
  }

  #keep({ index }: Point, found: Point | Refused): void {
    if (this.#places?.[index] !== 1) return;
    if (this.#known[index] === undefined) this.#knownCount++;
    this.#known[index] = found;
  }

  *#settle(): Steps<void> {
    const ready: Point[] = [];
    const refused: (readonly [index: number, reading: Reading])[] = [];
    let dueMs = Number.POSITIVE_INFINITY;
    let isSame = true;
    for (const [i, point] of this.#points.entries()) {
      if (i > 0 && i % AT_ONCE === 0) yield;
      const known = this.#known[point.index];
      if (!known) continue;
      if ("address" in known) {
        isSame &&= known === this.#lastReady[ready.length];
        ready.push(known);
      } else {
        refused.push([point.index, known.reading]);
        dueMs = Math.min(dueMs, known.dueMs);
      }
    }
    this.#dueMs = dueMs;
    this.#wasComplete = this.#knownCount === this.#points.length;
    if (this.#wasComplete) this.#before = [];
    if (!isSame || ready.length !== this.#lastReady.length) this.#lastReady = ready;
    this.#ready = this.#lastReady;
    this.#refused = refused;
  }

  /** Gives every point that cannot be planned the reading that says why. */
  fill(readings: (Reading | undefined)[]): void {
    if (!this.#isNeeded) return;
    for (const [index, reading] of this.#refused) readings[index] ??= reading;
    if (this.#knownCount === this.#points.length) return;
    const waiting: Reading = this.#refusal ?? {
      quality: "bad",
      fault: "no_answer",
      detail: `its address is being looked up: ${this.#knownCount} of ${this.#points.length} are known`,
    };
    for (const point of this.#points) if (!this.#known[point.index]) readings[point.index] ??= waiting;
  }
}

const NO_POINTS: readonly Point[] = [];

const halves = (points: readonly Point[]): (readonly Point[])[] =>
  points.length < 2 ? [points] : [points.slice(0, points.length >> 1), points.slice(points.length >> 1)];

/** 1 at the place of each point. */
function* placesOf(points: readonly Point[]): Steps<Uint8Array> {
  let most = -1;
  for (const [i, { index }] of points.entries()) {
    if (i % AT_ONCE === 0) yield;
    most = Math.max(most, index);
  }
  const places = new Uint8Array(most + 1);
  for (const [i, { index }] of points.entries()) {
    if (i % AT_ONCE === 0) yield;
    places[index] = 1;
  }
  return places;
}
