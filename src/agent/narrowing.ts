import type { Point } from "../../drivers/driver.ts";

/** Where the search ended: the one point that fails by itself, or the first point that the device lacks something before. */
export type Found = { readonly culprit: Point } | { readonly cutBefore: Point };

/**
 * Halves a run of points that failed together until one is left. It is told how each ask went and does no input or output. Where
 * the left half answers, the fault lies in the right one, which is not asked as a whole: one ask a level. Where the last point
 * answers too, every part is well by itself and something that lies between two of them is not.
 */
export class Narrowing {
  /** Fewest points that were asked as one and failed. */
  #failed: readonly Point[];
  /** What of it before this place has answered. */
  #from = 0;
  #found: Found | undefined;
  #hasAnswer = false;

  /** `failed`: one point at least. */
  constructor(failed: readonly Point[]) {
    this.#failed = failed;
    this.#settle();
  }

  /** The points that may hold the fault; all others of the run are either well or not yet looked at. */
  get window(): readonly Point[] {
    return this.#from === 0 ? this.#failed : this.#failed.slice(this.#from);
  }

  /** The run that was last seen to fail. */
  get failedRun(): readonly Point[] {
    return this.#failed;
  }

  get found(): Found | undefined {
    return this.#found;
  }

  /** Whether a part of the run has answered. */
  get hasAnswer(): boolean {
    return this.#hasAnswer;
  }

  /** What to ask next; nothing once it is found. */
  next(): readonly Point[] {
    const { window } = this;
    return this.#found ? [] : window.length === 1 ? window : window.slice(0, window.length >> 1);
  }

  /** What `next` named was answered. */
  answered(): void {
    this.#hasAnswer = true;
    const { window } = this;
    if (window.length > 1) this.#from += window.length >> 1;
    else {
      const cutBefore = this.#failed[this.#failed.length >> 1];
      if (cutBefore) this.#found = { cutBefore };
    }
  }

  /** These points, a part of what `next` named, failed as one. */
  failed(points: readonly Point[]): void {
    this.#failed = points;
    this.#from = 0;
    this.#settle();
  }

  #settle(): void {
    const [only, ...others] = this.#failed.length > 1 ? [] : this.#failed;
    if (only && others.length === 0) this.#found = { culprit: only };
  }
}

/** Up to `most` (2 at least) of the list, spread evenly over it, its ends among them. Pure. */
export function spread<T>(list: readonly T[], most: number): readonly T[] {
  if (list.length <= most) return list;
  return Array.from({ length: most }, (_, i) => list[Math.round((i * (list.length - 1)) / (most - 1))]).filter((one) => one !== undefined);
}
