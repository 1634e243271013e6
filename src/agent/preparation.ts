import { isDeepStrictEqual } from "node:util";
import type { AnySession, DriverContext, Point, Prepared } from "../../drivers/driver.ts";
import { FaultError } from "../model/fault.ts";
import type { Reading } from "../model/value.ts";
import { badReading } from "./learned-groups.ts";

interface Refused {
  readonly reading: Reading;
  /** Monotonic ms from which it is looked up again. */
  readonly dueMs: number;
}

/**
 * Where the points of a source are, for drivers that have to look that up first. It outlives readouts and connections: a look-up
 * that takes longer than one readout goes on in the next.
 */
export class Preparation {
  readonly #points: readonly Point[];
  /** Monotonic ms. */
  readonly #now: () => number;
  readonly #known = new Map<Point, Point | Refused>();
  /** Where points were before all was forgotten: one that is found there again stays the same object, with all that was learned of it. */
  readonly #before = new Map<Point, Point>();
  #epoch: string | undefined;
  #isNeeded = false;
  #ready: readonly Point[];
  #lastReady: readonly Point[] = [];
  #refused: readonly (readonly [index: number, reading: Reading])[] = [];
  /** When the first refused point is looked up again. */
  #dueMs = Number.POSITIVE_INFINITY;
  #refusal: Reading | undefined;

  constructor(points: readonly Point[], now: () => number = () => performance.now()) {
    this.#points = points;
    this.#now = now;
    this.#ready = points;
  }

  /** The points to plan: prepared, or as they are where the driver needs no preparing. The same array while nothing changes. */
  get ready(): readonly Point[] {
    return this.#ready;
  }

  /** How far it has come; undefined: all is known, or nothing has to be. */
  get progress(): { readonly done: number; readonly total: number } | undefined {
    const [done, total] = [this.#known.size, this.#points.length];
    return this.#isNeeded && done < total ? { done, total } : undefined;
  }

  /** Whether anything has to be looked up on this session. */
  isDue(session: AnySession): boolean {
    if (!session.prepare) return false;
    if (!this.#isNeeded || session.epoch !== this.#epoch) return true;
    return this.#known.size < this.#points.length || this.#now() >= this.#dueMs;
  }

  /** What was found holds no longer: the device has another program. */
  forget(): void {
    for (const [point, known] of this.#known) if ("address" in known) this.#before.set(point, known);
    this.#known.clear();
    this.#refused = [];
    this.#ready = this.#isNeeded ? [] : this.#points;
  }

  /**
   * Looks up what is missing for this session, until `ctx.signal` aborts; what was found is kept. False: nothing was missing, or the time
   * was over from the beginning. Throws ReasonError: the source failed before that.
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
    const missing = this.#points.filter((point) => this.#isMissing(point));
    try {
      for await (const batch of session.prepare(missing, ctx)) {
        for (const one of batch) this.#take(one);
        ctx.progress?.(this.#known.size, this.#points.length);
        if (ctx.signal.aborted) break;
      }
    } catch (error) {
      // The time was up while it waited for an answer: what is known is read.
      if (ctx.signal.aborted) return true;
      if (!(error instanceof FaultError)) throw error;
      this.#refusal = badReading(error);
    } finally {
      this.#settle();
    }
    return true;
  }

  #isMissing(point: Point): boolean {
    const known = this.#known.get(point);
    return known === undefined || ("dueMs" in known && known.dueMs <= this.#now());
  }

  #take(one: Prepared): void {
    const { point } = one;
    if ("refusal" in one) {
      this.#known.set(point, { reading: badReading(one.refusal), dueMs: this.#now() + (one.retryAfterMs ?? Number.POSITIVE_INFINITY) });
      return;
    }
    const { address, type } = one;
    const before = this.#before.get(point);
    const isSame = before !== undefined && isDeepStrictEqual([before.address, before.type], [address, type]);
    this.#known.set(point, isSame ? before : { index: point.index, address, type });
  }

  #settle(): void {
    const ready: Point[] = [];
    const refused: (readonly [index: number, reading: Reading])[] = [];
    this.#dueMs = Number.POSITIVE_INFINITY;
    for (const point of this.#points) {
      const known = this.#known.get(point);
      if (!known) continue;
      if ("address" in known) ready.push(known);
      else {
        refused.push([point.index, known.reading]);
        this.#dueMs = Math.min(this.#dueMs, known.dueMs);
      }
    }
    if (this.#known.size === this.#points.length) this.#before.clear();
    const isSame = ready.length === this.#lastReady.length && ready.every((point, i) => point === this.#lastReady[i]);
    if (!isSame) this.#lastReady = ready;
    this.#ready = this.#lastReady;
    this.#refused = refused;
  }

  /** Gives every point that cannot be planned the reading that says why. */
  fill(readings: (Reading | undefined)[]): void {
    if (!this.#isNeeded) return;
    for (const [index, reading] of this.#refused) readings[index] ??= reading;
    if (this.#known.size === this.#points.length) return;
    const waiting: Reading = this.#refusal ?? {
      quality: "bad",
      fault: "no_answer",
      detail: `its address is being looked up: ${this.#known.size} of ${this.#points.length} are known`,
    };
    for (const point of this.#points) if (!this.#known.has(point)) readings[point.index] ??= waiting;
  }
}
