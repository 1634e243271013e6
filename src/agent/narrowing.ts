import type { Point } from "../../drivers/driver.ts";

/** The place where the search ended: the one point that fails by itself, or the first point that the device lacks something before. */
export type Found = { readonly culprit: Point } | { readonly cutBefore: Point };

/**
 * How a run is divided: where each ask costs the same, in halves, which takes the fewest; where one that fails takes a whole time-out and
 * one that is answered next to none, in as many small pieces as each has points: nearly all of the run is well after the first that fails.
 * There the one that is left has to fail twice.
 */
export type Division = "halves" | "pieces";

/**
 * Divides a run of points that failed together until one is left. It is told how each ask went and does no input or output. Where
 * all parts but the last one answer, the fault lies in that, which is not asked as a whole. Where the last point
 * answers too, every part is well by itself and something that lies between two of them is not.
 */
export class Narrowing {
  /** Fewest points that were asked as one and failed. */
  #failed: readonly Point[];
  /** What of it before this place has answered. */
  #from = 0;
  #found: Found | undefined;
  #hasAnswer = false;
  /** The last point that is left has failed once, by itself. */
  #isDoubtful = false;
  readonly #division: Division;

  /** `failed`: one point at least. */
  constructor(failed: readonly Point[], division: Division = "halves") {
    this.#failed = failed;
    this.#division = division;
    if (failed.length === 1) this.#settle();
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

  /** True: one point is left, which has failed once by itself: a device that is slow now and then loses any answer. */
  get isDoubtful(): boolean {
    return this.#isDoubtful && this.#found === undefined;
  }

  /** True: a part of the run has answered. */
  get hasAnswer(): boolean {
    return this.#hasAnswer;
  }

  /** What to ask next; nothing once it is found. */
  next(): readonly Point[] {
    const { window } = this;
    return this.#found ? [] : window.length === 1 ? window : window.slice(0, this.#partOf(window.length));
  }

  /** What `next` named was answered. */
  answered(): void {
    this.#hasAnswer = true;
    const { window } = this;
    if (window.length > 1) this.#from += this.#partOf(window.length);
    else {
      const cutBefore = this.#failed[this.#failed.length >> 1];
      if (cutBefore) this.#found = { cutBefore };
    }
  }

  /** These points, a part of what `next` named, failed as one. */
  failed(points: readonly Point[]): void {
    this.#failed = points;
    this.#from = 0;
    if (points.length === 1) this.#settle();
  }

  /** How many of `length` (2 at least) are asked next. */
  #partOf(length: number): number {
    if (this.#division === "halves") return length >> 1;
    const piece = pieceOf(this.#failed.length);
    return length > piece ? piece : pieceOf(length);
  }

  #settle(): void {
    const [culprit] = this.#failed;
    if (culprit && (this.#division === "halves" || this.#isDoubtful)) this.#found = { culprit };
    this.#isDoubtful = true;
  }
}

/** This many are asked one by one: what is answered takes next to no time, and one more that fails a whole time-out. */
const SINGLY = 12;

const pieceOf = (length: number): number => (length <= SINGLY ? 1 : Math.floor(Math.sqrt(length)));

/** Which of `count` places is looked at in the try `at`: each once in `count` tries, from the first, and each far from the last ones. Pure. */
export function spreadPlace(at: number, count: number): number {
  let step = Math.max(1, Math.round(count * GOLDEN_PART));
  while (divisorOf(step, count) > 1) step++;
  return (at * step) % Math.max(1, count);
}

/** Multiples of it lie far from each other around a circle, however many there are. */
const GOLDEN_PART = (Math.sqrt(5) - 1) / 2;

const divisorOf = (one: number, other: number): number => (other === 0 ? one : divisorOf(other, one % other));

/** Up to `most` (2 at least) of the list, spread evenly over it, its ends among them. Pure. */
export function spread<T>(list: readonly T[], most: number): readonly T[] {
  if (list.length <= most) return list;
  return Array.from({ length: most }, (_, i) => list[Math.round((i * (list.length - 1)) / (most - 1))]).filter((one) => one !== undefined);
}
