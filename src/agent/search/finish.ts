import type { Point } from "../../../drivers/driver.ts";
import type { BadReading } from "../learned-groups.ts";
import { isRead } from "./facts.ts";
import { finishParts } from "./parts.ts";
import { finishRuns, isSuspect, takeTime } from "./runs.ts";
import type { State } from "./state.ts";

const noAnswer = (detail: string): BadReading => ({ quality: "bad", fault: "no_answer", detail });
/** The readings of what was not asked: of a source, and for a person who reads once. */
const NOT_REACHED = [
  noAnswer("not reached: the readout's time was up before; the next readout continues here"),
  noAnswer("not reached: reading ended before"),
] as const;
const NOT_ASKED = [
  noAnswer("not asked: the readout searched for what has no answer until its time was up; the next one asks it"),
  noAnswer("not asked: what has no answer was searched for, and reading ended before"),
] as const;
const TOGETHER = ["which one it is will be found in the next readouts", "reading ended before it was found which one it is"] as const;

/** The end of a readout. */
export interface Finished {
  /** Nothing had an answer: what failed is the device, and nothing is learned of its parts. */
  readonly isUnanswered: boolean;
  /** Points that were not asked for lack of time. */
  readonly unreached: number;
}

/**
 * Ends a readout: what continues in the next one is kept, and every point that was answered or is accounted for has its reading. `hasRefused`: no
 * connection could be opened.
 */
export function finish(state: State, hasRefused: boolean, nowMs: number): Finished {
  const { plan, user, readout } = state;
  const { known } = plan;
  const { readings, answered, hasFailure, cut, again, busyNow, main, at, pending } = readout;
  const isUnanswered = answered === 0 && (hasRefused || hasFailure);
  known.unanswered = isUnanswered ? known.unanswered + 1 : 0;
  known.hadGood = readout.good > 0;
  if (isUnanswered || hasRefused) {
    user.isUnanswered = true;
    user.hasFailed = !user.isShadowed;
  }
  const left = [...cut, ...again, ...busyNow, ...main.slice(at)].filter(({ request }) => !isRead(state, request));
  // Points that a device, which refuses everything, was not asked for did not lack time.
  const unreached = isUnanswered || hasRefused || known.shut ? 0 : left.reduce((sum, { request }) => sum + request.points.length, 0);
  const [first] = left;
  known.resumeAt =
    unreached > 0 && first
      ? Math.max(
          0,
          plan.planAgain().findIndex(({ request }) => request.points[0] === first.request.points[0]),
        )
      : 0;
  if (pending?.what === "step") pending.search.step.unshift(pending.request.points);
  if (pending?.what === "sample") pending.search.samples?.unshift(pending.point);
  finishParts(state, isUnanswered, nowMs);
  finishRuns(state, isUnanswered);
  user.isSearching = takeTime(state);
  readings.length = isUnanswered ? 0 : hasRefused ? readings.length : plan.width;
  if (readings.length === 0) return { isUnanswered, unreached };
  const once = readout.bounds.isThorough ? 1 : 0;
  fill(state, once);
  if (unreached > 0) for (const { request } of left) give(readings, request.points, NOT_REACHED[once]);
  // A search has opened them, and this readout had neither time nor requests for them.
  if (!hasRefused && (readout.hasFailed || readout.extras > 0)) give(readings, plan.points, NOT_ASKED[once]);
  return { isUnanswered, unreached };
}

/** Gives every point that was not answered the reading that says why. */
function fill({ plan, readout }: State, once: 0 | 1): void {
  const { known, points, unplanned } = plan;
  const { readings } = readout;
  const isGood = ({ index }: Point) => readings[index]?.quality === "good";
  if (!known.answering || !isGood(known.answering)) known.answering = points.find(isGood) ?? known.answering;
  for (const [point, reading] of unplanned) give(readings, [point], reading);
  for (const [point, { reading }] of known.closed) give(readings, [point], reading);
  for (const search of known.searches) {
    const { detail, fault } = search.reading;
    const together = noAnswer(`failed together with others; ${TOGETHER[once]}: ${detail ?? fault}`);
    give(readings, search.points, isSuspect(search) ? search.reading : together);
  }
  for (const { points: silent, reading } of known.silent.values()) give(readings, silent, reading);
  if (known.shut) give(readings, points, known.shut);
}

function give(readings: State["readout"]["readings"], points: readonly Point[], reading: BadReading): void {
  for (const { index } of points) readings[index] ??= reading;
}
