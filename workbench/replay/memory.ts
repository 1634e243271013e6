import type { MadeAnswer, MemoryForm } from "../../drivers/replay.ts";
import { Areas, type MemoryRange } from "./areas.ts";
import type { Asked } from "./script.ts";

/** Different reads of one moment; beyond them, one that comes again is not noticed once. */
const MAX_READS = 1000;

/**
 * The reads of a recording as the memory of a device. All of it is as at one moment of the recording, which moves on when a client reads the same
 * again, to the next moment at which that was read.
 */
export class DeviceMemory {
  readonly #form: MemoryForm;
  readonly #areas = new Areas();
  /** Reads that were served at this moment. */
  readonly #reads = new Set<string>();
  #moment = 0;

  constructor(form: MemoryForm, asked: Iterable<Asked>) {
    this.#form = form;
    let requests = 0;
    for (const { request, answers } of asked) {
      requests++;
      for (const { parts, moments } of answers)
        for (const part of parts) for (const bits of form.told(request, part)) this.#areas.add(requests, bits, moments);
    }
  }

  /** Different ranges that the recording reads, and those of answers for which there was no room. */
  get facts(): { readonly ranges: number; readonly leftOut: number } {
    return { ranges: this.#areas.ranges, leftOut: this.#areas.leftOut };
  }

  /** A client was given what the recording has of a later moment. */
  moveTo(moment: number): void {
    if (moment <= this.#moment) return;
    this.#moment = moment;
    this.#reads.clear();
  }

  /** The answer to a request that the recording has not. Undefined: it gets none. */
  answer(request: Buffer): MadeAnswer | undefined {
    const now = this.#answerNow(request);
    const key = now.ranges.map(({ area, from, count }) => `${area} ${from} ${count}`).join(";");
    const next = this.#reads.has(key) ? this.#areas.nextAfter(now.ranges, this.#moment) : undefined;
    if (next !== undefined) this.moveTo(next);
    if (this.#reads.size >= MAX_READS) this.#reads.clear();
    if (now.ranges.length > 0) this.#reads.add(key);
    return next === undefined ? now.made : this.#answerNow(request).made;
  }

  #answerNow(request: Buffer): { readonly made: MadeAnswer | undefined; readonly ranges: readonly MemoryRange[] } {
    const ranges: MemoryRange[] = [];
    const bits = (area: string, from: number, count: number): Buffer | undefined => {
      const found = this.#areas.at({ area, from, count }, this.#moment);
      if (found) ranges.push({ area, from, count });
      return found;
    };
    const whole = (area: string): Buffer | undefined => {
      const found = this.#areas.whole(area, this.#moment);
      if (found) ranges.push(found.range);
      return found?.bytes;
    };
    return { made: this.#form.answer(request, { bits, whole, has: (area) => this.#areas.has(area) }), ranges };
  }
}
