import type { AnyDriver, AnySession, DriverContext, Point, Request } from "../../drivers/driver.ts";
import { toFailure, toReadFailure } from "../model/failure.ts";
import { FaultError, PartialRefusal } from "../model/fault.ts";
import { type ReasonError, restMsOf } from "../model/reason.ts";
import type { Reading } from "../model/value.ts";
import type { DeviceShare, TakenTime } from "./device-time.ts";
import { type BadReading, badReading, type FailureKind, type LearnedGroups } from "./learned-groups.ts";

/** What came of one request. */
export type Outcome =
  | { readonly type: "answered" }
  /** `points`: of the request, those that failed as one. */
  | {
      readonly type: "failed";
      readonly kind: FailureKind;
      readonly reading: BadReading;
      readonly points: readonly Point[];
      readonly costMs: number;
      /** The connection ended with it. */
      readonly isLoss?: true;
      /** The device asks not to be asked this again before; absent: it says nothing of that. */
      readonly restMs?: number;
    }
  /** Neither tells anything about what was asked. */
  | { readonly type: "busy" | "everything" | "program" };

const ANSWERED: Outcome = { type: "answered" };
/** A mistake of the driver. */
const LEFT_OUT: BadReading = { quality: "bad", fault: "no_answer", detail: "the driver gave no reading for it, although it was asked" };

/**
 * Asks one request at a time for a ReadPass, and keeps what came of all of them: the readings, what was counted, and how the connection ended. It
 * decides nothing of what is asked next.
 */
export class Asking {
  readonly readings: (Reading | undefined)[] = [];
  readonly #driver: AnyDriver;
  readonly #learned: LearnedGroups;
  readonly #share: DeviceShare;
  readonly #now: () => number;
  readonly #onItem: (points: readonly Point[], reading: BadReading) => void;
  #lost: ReasonError | undefined;
  #firstFailure: ReasonError | undefined;
  #isStale = false;
  #answersHere = 0;
  #isUnprepared = false;
  /** Once in a readout: a device that says so each time is not asked in a circle. */
  #hasPreparedAgain = false;
  #restMs = 0;
  #sent = 0;
  #answered = 0;
  #good = 0;
  #isDefinite = true;

  /** `onItem`: points of an answered request were refused together, besides those of its outcome. `now`: monotonic ms. */
  constructor(
    driver: AnyDriver,
    learned: LearnedGroups,
    share: DeviceShare,
    now: () => number,
    onItem: (points: readonly Point[], reading: BadReading) => void,
  ) {
    this.#driver = driver;
    this.#learned = learned;
    this.#share = share;
    this.#now = now;
    this.#onItem = onItem;
  }

  /** Why the connection is lost, or has to be thrown away; undefined: it stands. */
  get lost(): ReasonError | undefined {
    return this.#lost;
  }

  /** Why a request had no answer first; what a stale connection says of itself does not count. */
  get firstFailure(): ReasonError | undefined {
    return this.#firstFailure;
  }

  /** The connection was kept from an earlier readout, and has not been answered over since. */
  get isStale(): boolean {
    return this.#isStale;
  }

  /** Answers over this connection. */
  get answersHere(): number {
    return this.#answersHere;
  }

  /** The device has another program: addresses have to be looked up again. */
  get isUnprepared(): boolean {
    return this.#isUnprepared;
  }

  get sent(): number {
    return this.#sent;
  }

  /** Requests that were answered, be it with a refusal. */
  get answered(): number {
    return this.#answered;
  }

  /** Requests answered with a value at least. */
  get good(): number {
    return this.#good;
  }

  /** A planned request that has values in this readout, of another part if there is one. */
  goodBeside(part: string | undefined): Request | undefined {
    let good: Request | undefined;
    for (const { requests } of this.#learned.groups)
      for (const request of requests) {
        if (!request.points.every(({ index }) => this.readings[index]?.quality === "good")) continue;
        if (request.part !== part) return request;
        good = request;
      }
    return good;
  }

  /** The longest time for which something was asked not to be read again; of what it is about, this says nothing. */
  get restMs(): number {
    return this.#restMs;
  }

  /** See ReadResult.definite. */
  get isDefinite(): boolean {
    return this.#isDefinite;
  }

  /** Goes on over another connection; `isKept`: one that is from an earlier readout. */
  begin(isKept: boolean): void {
    this.#lost = undefined;
    this.#answersHere = 0;
    this.#isStale = isKept;
  }

  /** Addresses are looked up again now. */
  preparesAgain(): void {
    this.#isUnprepared = false;
    this.#hasPreparedAgain = true;
  }

  give(points: readonly Point[], reading: Reading): void {
    for (const { index } of points) this.readings[index] = reading;
  }

  /** Forgets what was read of these; what failed stays so in this readout. */
  drop(points: readonly Point[]): void {
    for (const { index } of points) if (this.readings[index]?.quality !== "bad") this.readings[index] = undefined;
  }

  /** `time`: what it takes of the device's time if it has no answer. Never throws what a device does. */
  async ask(session: AnySession, request: Request, ctx: DriverContext, timeoutMs: number, time: TakenTime): Promise<Outcome> {
    this.#sent++;
    const began = this.#now();
    const { habits } = this.#learned;
    const afterMs = habits ? began - habits.answeredMs : 0;
    const { timeouts } = ctx;
    const bounded = timeoutMs === timeouts.answerMs ? ctx : { ...ctx, timeouts: { ...timeouts, answerMs: timeoutMs } };
    try {
      const answer = await session.read(request, bounded);
      this.#share.answered(this.#now() - began);
      habits?.answered(request, afterMs, this.#now());
      this.#learned.notBusy(request);
      this.#noteAnswer();
      this.#good++;
      this.#take(request, answer, LEFT_OUT);
      return ANSWERED;
    } catch (error) {
      const known = ctx.signal.aborted ? toFailure(error) : toReadFailure(error);
      const tookMs = this.#now() - began;
      const isSilent = known instanceof FaultError ? known.scope === "silent" && !(known instanceof PartialRefusal) : !ctx.signal.aborted;
      if (isSilent) this.#share.probed(tookMs, time, request.part);
      else if (ctx.signal.aborted) this.#share.cut(tookMs, request.part);
      if (isSilent && (known instanceof FaultError || known.reason.type === "TIMEOUT")) habits?.lost(request, afterMs);
      else if (known instanceof FaultError) habits?.answered(request, afterMs, this.#now());
      return known instanceof FaultError ? this.#refused(request, known, tookMs) : this.#ended(request, known, tookMs);
    }
  }

  /** Asks for no reading. True: it was answered with values; undefined: the readout ended before. */
  async tryOut(session: AnySession, request: Request, ctx: DriverContext, timeoutMs: number): Promise<boolean | undefined> {
    this.#sent++;
    const began = this.#now();
    try {
      await session.read(request, { ...ctx, timeouts: { ...ctx.timeouts, answerMs: timeoutMs } });
      this.#share.answered(this.#now() - began);
      return true;
    } catch (error) {
      if (ctx.signal.aborted) return undefined;
      const known = toReadFailure(error);
      if (!(known instanceof FaultError) || known.scope === "silent") this.#share.probed(this.#now() - began, "share", request.part);
      return false;
    }
  }

  /** `missing`: for a point that the driver gives no reading for; undefined: another word for it follows. */
  #take({ points }: Request, given: readonly (Reading | undefined)[], missing?: BadReading): void {
    const { readings } = this;
    // Room for all at once: an array that grows leaves several times its size behind.
    if (readings.length === 0) readings.length = this.#learned.width;
    for (let i = 0; i < points.length; i++) {
      const point = points[i];
      const reading = given[i] ?? missing;
      if (point && reading !== undefined) readings[point.index] = reading;
    }
  }

  #refused(request: Request, refusal: FaultError, costMs: number): Outcome {
    this.#noteAnswer();
    this.#take(request, refusal instanceof PartialRefusal ? refusal.readings : []);
    if (refusal instanceof PartialRefusal) return this.#partlyRefused(request, refusal, costMs);
    const reading = badReading(refusal);
    switch (refusal.scope) {
      case "points":
        return { type: "failed", kind: "refused", reading, points: request.points, costMs };
      case "silent":
        this.#isDefinite = false;
        return { type: "failed", kind: "lost", reading, points: request.points, costMs };
      case "busy":
        this.#isDefinite = false;
        // Busy again and again with this alone, it is not what it says.
        if (this.#learned.isAlwaysBusy(request) && (this.#good > 0 || this.#learned.hadGood))
          return { type: "failed", kind: "refused", reading, points: request.points, costMs };
        this.give(request.points, reading);
        return { type: "busy" };
      case "everything":
        // Others were answered with values in this readout: it is about what was asked.
        if (this.#good > 0) return { type: "failed", kind: "refused", reading, points: request.points, costMs };
        this.#learned.shut = reading;
        return { type: "everything" };
      case "program":
        this.#isDefinite = false;
        if (this.#hasPreparedAgain) this.give(request.points, reading);
        else this.#isUnprepared = true;
        return { type: "program" };
    }
  }

  #partlyRefused({ points }: Request, { items: [first, ...others] }: PartialRefusal, costMs: number): Outcome {
    this.#good++;
    const pointsOf = (places: readonly number[]) => places.flatMap((place) => points[place] ?? []);
    for (const { places, refusal } of others) this.#onItem(pointsOf(places), badReading(refusal));
    return { type: "failed", kind: "refused", reading: badReading(first.refusal), points: pointsOf(first.places), costMs };
  }

  /** The connection ended, or has to be thrown away. */
  #ended(request: Request, failure: ReasonError, costMs: number): Outcome {
    this.#lost ??= failure;
    const restMs = restMsOf(failure);
    this.#restMs = Math.max(this.#restMs, restMs);
    // What a stale connection says of itself is no news.
    if (!(this.#isStale && this.#answersHere === 0 && failure.sessionLost)) this.#firstFailure ??= failure;
    const asked = this.#driver.describe?.(request);
    const what = asked === undefined || failure.message.includes(asked) ? "" : ` (asked for ${asked})`;
    const reading: BadReading = { quality: "bad", fault: "no_answer", detail: `${failure.reason.type}: ${failure.message}${what}` };
    return { type: "failed", kind: "lost", reading, points: request.points, costMs, isLoss: true, ...(restMs > 0 && { restMs }) };
  }

  #noteAnswer(): void {
    const learned = this.#learned;
    this.#answered++;
    this.#answersHere++;
    this.#isStale = false;
    learned.isHeard = true;
    if (learned.answersPerConnection !== undefined && this.#answersHere > learned.answersPerConnection)
      learned.answersPerConnection = undefined;
  }
}
