import type { Steps } from "../../src/base/timer.ts";
import type { Point } from "../driver.ts";
import { sortSteps } from "./sort.ts";

/** Points in one step. */
const AT_ONCE = 1000;

/** Requests in the order of the layout, of `maxPoints` at most, for devices that are asked for any points together; one of `apart` begins one. */
export function* inOrderSteps<P extends Point>(
  points: readonly P[],
  maxPoints: number,
  apart?: ReadonlySet<Point>,
): Steps<{ readonly points: readonly P[] }[]> {
  const ordered = yield* sortSteps(points, (a, b) => a.index - b.index);
  const size = Math.max(1, maxPoints);
  const requests: { readonly points: readonly P[] }[] = [];
  let begin = 0;
  for (let at = 1; at <= ordered.length; at++) {
    if (at % AT_ONCE === 0) yield;
    const next = ordered[at];
    if (next && at - begin < size && !apart?.has(next)) continue;
    requests.push({ points: ordered.slice(begin, at) });
    begin = at;
  }
  return requests;
}
