import type { AnyDriver, AnySession, DriverContext, Request } from "../../drivers/driver.ts";
import { toFailure, toReadFailure } from "../model/failure.ts";
import { FaultError, PartialRefusal } from "../model/fault.ts";
import { type ReasonError, restMsOf } from "../model/reason.ts";
import type { Reading } from "../model/value.ts";
import { type Round, textOf } from "./in-flight.ts";
import { type BadReading, badReading } from "./learned-groups.ts";
import type { Outcome } from "./search/state.ts";

const ANSWERED: Outcome = { type: "answered" };
/** A mistake of the driver. */
const LEFT_OUT: BadReading = { quality: "bad", fault: "no_answer", detail: "the driver gave no reading for it, although it was asked" };

/** Asks one request at a time for a ReadPass, and keeps its readings and how the connection ended. It decides nothing of what is asked next. */
export class Asking {
  /** By `point.index`. */
  readonly readings: (Reading | undefined)[] = [];
  /** Why the connection was lost, or had to be thrown away, last. */
  lost: ReasonError | undefined;
  readonly #driver: AnyDriver;
  readonly #width: number;

  /** `width`: of the layout. */
  constructor(driver: AnyDriver, width: number) {
    this.#driver = driver;
    this.#width = width;
  }

  /** Forgets what was read of these; what failed stays so in this readout. */
  drop(points: Request["points"]): void {
    for (const { index } of points) if (this.readings[index]?.quality !== "bad") this.readings[index] = undefined;
  }

  /** Never throws what a device does. */
  async ask(session: AnySession, request: Request, ctx: DriverContext, timeoutMs: number): Promise<Outcome> {
    const { timeouts } = ctx;
    const bounded = timeoutMs === timeouts.answerMs ? ctx : { ...ctx, timeouts: { ...timeouts, answerMs: timeoutMs } };
    try {
      this.#take(request, await session.read(request, bounded), LEFT_OUT);
      return ANSWERED;
    } catch (error) {
      const known = ctx.signal.aborted ? toFailure(error) : toReadFailure(error);
      return known instanceof FaultError ? this.#refused(request, known) : this.#ended(request, known);
    }
  }

  /** Asks for no reading. Undefined: the readout ended before. Never throws what a device does. */
  async tryOut(
    session: AnySession,
    request: Request,
    ctx: DriverContext,
    timeoutMs: number,
  ): Promise<"answered" | "refused" | "silent" | undefined> {
    try {
      await session.read(request, { ...ctx, timeouts: { ...ctx.timeouts, answerMs: timeoutMs } });
      return "answered";
    } catch (error) {
      if (ctx.signal.aborted) return undefined;
      const known = toReadFailure(error);
      return known instanceof FaultError && known.scope !== "silent" ? "refused" : "silent";
    }
  }

  /**
   * Asks for no reading: these one after the other, at once, and one after the other again. "lost": at once they were not all answered.
   * Undefined: one after the other neither, or the readout ended. Never throws what a device does.
   */
  async tryTogether(
    session: AnySession,
    requests: readonly Request[],
    ctx: DriverContext,
    timeoutMs: number,
    now: () => number,
  ): Promise<Round | "lost" | undefined> {
    for (const request of requests) this.#own(request);
    const bounded = { ...ctx, timeouts: { ...ctx.timeouts, answerMs: timeoutMs } };
    const ask = async (request: Request) => (await session.read(request, bounded)).map(textOf);
    const oneByOne = async () => {
      const began = now();
      const brought: string[][] = [];
      for (const request of requests) brought.push(await ask(request));
      return { brought, tookMs: now() - began };
    };
    try {
      const before = await oneByOne();
      const began = now();
      // All of them have ended then: what is asked next finds none under way.
      const ended = await Promise.allSettled(requests.map(ask));
      const togetherMs = now() - began;
      const together = ended.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      if (together.length < requests.length) return ctx.signal.aborted ? undefined : "lost";
      const after = await oneByOne();
      const oneByOneMs = Math.max(before.tookMs, after.tookMs);
      return { before: before.brought, together, after: after.brought, oneByOneMs, togetherMs };
    } catch {
      return undefined;
    }
  }

  /** Copies what was read, because the driver uses its objects again. */
  #own({ points }: Request): void {
    for (const { index } of points) {
      const reading = this.readings[index];
      if (reading) this.readings[index] = { ...reading };
    }
  }

  /** `missing`: for a point that the driver gives no reading for; undefined: another word for it follows. */
  #take({ points }: Request, given: readonly (Reading | undefined)[], missing?: BadReading): void {
    const { readings } = this;
    // Room for all at once: an array that grows leaves several times its size behind.
    if (readings.length === 0) readings.length = this.#width;
    for (let i = 0; i < points.length; i++) {
      const point = points[i];
      const reading = given[i] ?? missing;
      if (point && reading !== undefined) readings[point.index] = reading;
    }
  }

  #refused(request: Request, refusal: FaultError): Outcome {
    const reading = badReading(refusal);
    const { points } = request;
    this.#take(request, refusal instanceof PartialRefusal ? refusal.readings : []);
    if (!(refusal instanceof PartialRefusal)) return { type: "refused", scope: refusal.scope, reading, items: [] };
    const items = refusal.items.map((item) => ({
      points: item.places.flatMap((place) => points[place] ?? []),
      reading: badReading(item.refusal),
    }));
    return { type: "refused", scope: "points", reading, items };
  }

  #ended(request: Request, failure: ReasonError): Outcome {
    this.lost ??= failure;
    const { type } = failure.reason;
    const asked = this.#driver.describe?.(request);
    const what = asked === undefined || failure.message.includes(asked) ? "" : ` (asked for ${asked})`;
    const reading: BadReading = { quality: "bad", fault: "no_answer", detail: `${type}: ${failure.message}${what}` };
    return {
      type: "ended",
      reading,
      loss: { isTimeout: type === "TIMEOUT", isSessionLost: failure.sessionLost },
      restMs: restMsOf(failure),
    };
  }
}
