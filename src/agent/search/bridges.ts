import type { AnyDriver, Point, Request } from "../../../drivers/driver.ts";
import type { LearnedGroups } from "../learned-groups.ts";
import { learnBlocks } from "./blocks.ts";

/** Points of a source that learns each gap by itself: to look at all takes a plan for each pair. */
const MANY_POINTS = 5000;

/** The points of a request that lie behind a gap: what it reads holds more than its points. Pure, but for the plans it asks for. */
function behindGaps(driver: AnyDriver, learned: LearnedGroups, points: readonly Point[]): readonly Point[] {
  const { answerBytes } = driver;
  if (!answerBytes) return [];
  const bytesOf = (some: readonly Point[]): number =>
    learned.requestsFor(some).reduce((sum, request) => sum + answerBytes.call(driver, request), 0);
  return points.filter((point, at) => {
    const before = points[at - 1];
    if (!before || learned.known.cuts.has(point) || learned.requestsFor([before, point]).length > 1) return false;
    return bytesOf([before, point]) > bytesOf([before]) + bytesOf([point]);
  });
}

/**
 * A cut was found where every part is well by itself. Where the device has refused more than one gap and bridged none, all others are cut too:
 * each would take a search of its own. `isGood`: the request had values in this readout. True: there was something to cut.
 */
export function cutAllGaps(learned: LearnedGroups, isGood: (request: Request) => boolean): boolean {
  const { driver } = learned;
  if (!driver || learned.known.cuts.size < 2 || learned.points.length > MANY_POINTS) return false;
  const gaps: Point[] = [];
  for (const { requests, fresh } of learned.groups) {
    for (const { request } of requests) if (isGood(request) && behindGaps(driver, learned, request.points).length > 0) return false;
    gaps.push(...behindGaps(driver, learned, fresh.points));
  }
  for (const gap of gaps) learned.known.cuts.add(gap);
  const cutIn = learned.groups.filter(({ fresh }) => fresh.points.some((point) => gaps.includes(point)));
  for (const part of new Set(cutIn.map(({ fresh }) => fresh.part))) learned.known.habits.push({ name: "no_gaps", part, value: 1 });
  if (gaps.length === 0) learnBlocks(learned, isGood);
  return gaps.length > 0;
}
