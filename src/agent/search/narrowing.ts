import type { Point } from "../../../drivers/driver.ts";

/** The place where the search ended: the one point that fails by itself, or the first point that the device lacks something before. */
export type Found = { readonly culprit: Point } | { readonly cutBefore: Point };

/**
 * How a run is divided: where each ask costs the same, in halves, which takes the fewest; where one that fails takes a whole time-out and
 * one that is answered next to none, in as many small pieces as each has points: nearly all of the run is well after the first that fails.
 * There the one that is left has to fail twice.
 */
export type Division = "halves" | "pieces";

/**
 * A run of points that failed together, divided until one is left. Where all parts but the last one answer, the fault lies in that, which is
 * not asked as a whole. Where the last point answers too, every part is well by itself and something that lies between two of them is not.
 */
export interface Narrowing {
  readonly division: Division;
  /** Fewest points that were asked as one and failed. */
  failed: readonly Point[];
  /** Points of it before this place have answered. */
  from: number;
  found: Found | null;
  /** A part of the run has answered. */
  hasAnswer: boolean;
  /** One point is left, which has failed once by itself: a device that is slow now and then loses any answer. */
  isDoubtful: boolean;
}

/** Points that are asked one by one: what is answered takes next to no time, and one more that fails a whole time-out. */
const SINGLY = 12;

/** `failed`: one point at least. */
export function newNarrowing(failed: readonly Point[], division: Division): Narrowing {
  const narrowing: Narrowing = { division, failed: [], from: 0, found: null, hasAnswer: false, isDoubtful: false };
  partFailed(narrowing, failed);
  return narrowing;
}

/** The points that may hold the fault; all others of the run are either well or not yet looked at. Pure. */
export const windowOf = ({ failed, from }: Narrowing): readonly Point[] => (from === 0 ? failed : failed.slice(from));

/** The points to ask next; nothing once it is found. Pure. */
export function nextOf(narrowing: Narrowing): readonly Point[] {
  const window = windowOf(narrowing);
  if (narrowing.found) return [];
  return window.length === 1 ? window : window.slice(0, partOf(narrowing, window.length));
}

/** The points that `nextOf` named were answered. */
export function partAnswered(narrowing: Narrowing): void {
  narrowing.hasAnswer = true;
  const { length } = windowOf(narrowing);
  const cutBefore = narrowing.failed[narrowing.failed.length >> 1];
  if (length > 1) narrowing.from += partOf(narrowing, length);
  else if (cutBefore) end(narrowing, { cutBefore });
}

/** These points, a part of what `nextOf` named, failed as one. */
export function partFailed(narrowing: Narrowing, points: readonly Point[]): void {
  narrowing.failed = points;
  narrowing.from = 0;
  const [culprit] = points;
  if (!culprit || points.length > 1) return;
  if (narrowing.division === "halves" || narrowing.isDoubtful) end(narrowing, { culprit });
  else narrowing.isDoubtful = true;
}

function end(narrowing: Narrowing, found: Found): void {
  narrowing.found = found;
  narrowing.isDoubtful = false;
}

/** How many of `length` (2 at least) are asked next. */
function partOf({ division, failed }: Narrowing, length: number): number {
  if (division === "halves") return length >> 1;
  const piece = pieceOf(failed.length);
  return length > piece ? piece : pieceOf(length);
}

const pieceOf = (length: number): number => (length <= SINGLY ? 1 : Math.floor(Math.sqrt(length)));

/** Which of `count` places is looked at in the try `at`: each once in `count` tries, from the first, and each far from the last ones. Pure. */
export function spreadPlace(at: number, count: number): number {
  // Multiples of the golden section lie far from each other around a circle, however many there are.
  let step = Math.max(1, Math.round((count * (Math.sqrt(5) - 1)) / 2));
  while (divisorOf(step, count) > 1) step++;
  return (at * step) % Math.max(1, count);
}

const divisorOf = (one: number, other: number): number => (other === 0 ? one : divisorOf(other, one % other));

/** Up to `most` (2 at least) of the list, spread evenly over it, its ends among them. Pure. */
export function spread<T>(list: readonly T[], most: number): readonly T[] {
  if (list.length <= most) return list;
  return Array.from({ length: most }, (_, i) => list[Math.round((i * (list.length - 1)) / (most - 1))]).filter((one) => one !== undefined);
}
