import type { AnySession, DriverContext, Point, Prepared } from "../../drivers/driver.ts";
import { FaultError } from "../model/fault.ts";
import type { Reading } from "../model/value.ts";
import { badReading } from "./learned-groups.ts";

/**
 * Where the points of a source are, for drivers that have to look that up first. It outlives readouts and connections: a look-up
 * that takes longer than one readout goes on in the next.
 */
export class Preparation {
  readonly #points: readonly Point[];
  readonly #known = new Map<Point, Point | Reading>();
  #epoch: string | undefined;
  #isNeeded = false;
  #ready: readonly Point[];
  #refusal: Reading | undefined;

  constructor(points: readonly Point[]) {
    this.#points = points;
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

  /** What was found holds no longer: the device has another program. */
  forget(): void {
    this.#known.clear();
    this.#ready = this.#isNeeded ? [] : this.#points;
  }

  /**
   * Looks up what is missing for this session, until `ctx.signal` aborts; what was found is kept. Throws ReasonError: the source
   * failed.
   */
  async run(session: AnySession, ctx: DriverContext): Promise<void> {
    if (!session.prepare) return;
    if (!this.#isNeeded || session.epoch !== this.#epoch) {
      this.#isNeeded = true;
      this.#epoch = session.epoch;
      this.forget();
    }
    this.#refusal = undefined;
    const missing = this.#points.filter((point) => !this.#known.has(point));
    if (missing.length === 0) return;
    try {
      for await (const batch of session.prepare(missing, ctx)) {
        for (const one of batch) this.#take(one);
        ctx.progress?.(this.#known.size, this.#points.length);
        if (ctx.signal.aborted) break;
      }
    } catch (error) {
      if (!(error instanceof FaultError)) throw error;
      this.#refusal = badReading(error);
    } finally {
      this.#ready = this.#points.flatMap((point) => {
        const known = this.#known.get(point);
        return known && "address" in known ? [known] : [];
      });
    }
  }

  #take(one: Prepared): void {
    const { point } = one;
    if ("refusal" in one) this.#known.set(point, badReading(one.refusal));
    else this.#known.set(point, { index: point.index, address: one.address, type: one.type });
  }

  /** Gives every point that cannot be planned the reading that says why. */
  fill(readings: (Reading | undefined)[]): void {
    if (!this.#isNeeded) return;
    const waiting: Reading = this.#refusal ?? {
      quality: "bad",
      fault: "no_answer",
      detail: `its address is being looked up: ${this.#known.size} of ${this.#points.length} are known`,
    };
    for (const point of this.#points) {
      const known = this.#known.get(point);
      if (!known) readings[point.index] ??= waiting;
      else if (!("address" in known)) readings[point.index] ??= known;
    }
  }
}
