import type { Point, Request } from "../../drivers/driver.ts";
import type { Reading } from "../model/value.ts";
import type { DeviceShare, ProbeTime, SearchTime, TakenTime } from "./device-time.ts";
import type { BadReading, FailureKind, Group, LearnedGroups, Planned, Search } from "./learned-groups.ts";

/** What an extra request is for. */
export type Purpose =
  /** What was planned and has no reading yet. */
  | { readonly what: "planned"; readonly planned: Planned }
  /** True: the part answers at all. */
  | { readonly what: "part"; readonly part: string }
  /** True: the device answers at all. */
  | { readonly what: "life" }
  /** A part of what failed, or all of it once more. */
  | { readonly what: "step" | "check"; readonly search: Search }
  /** True: each part of what failed fails. */
  | { readonly what: "sample"; readonly search: Search; readonly point: Point }
  /** True: everything fails. */
  | { readonly what: "survey" }
  /** True: a closed point is well again. */
  | { readonly what: "probe"; readonly group: Group; readonly point: Point }
  /** True: a group can be asked as freshly planned again. */
  | { readonly what: "fresh"; readonly group: Group }
  /** True: points on both sides of a closed one may share a request. */
  | { readonly what: "bridge"; readonly group: Group; readonly cut: Point };

/** A request beside the plan: it looks for what failed, or whether what failed is well again. */
export type Extra = {
  readonly request: Request;
  /** It may stay without an answer: it is waited for as long as the device takes as a rule. */
  readonly isRisky: boolean;
  /** It is waited for as long as any request all the same. */
  readonly isPatient?: boolean;
  /** The time that it takes if it has no answer; absent: its share. */
  readonly time?: TakenTime;
} & Purpose;

/** How an extra request failed: `points` of it as one. */
export interface ExtraFailure {
  readonly kind: FailureKind;
  readonly reading: BadReading;
  readonly points: readonly Point[];
  readonly costMs: number;
  /** The device asks not to be asked this again before; absent: it says nothing of that. */
  readonly restMs?: number;
}

/** A planned request that had no answer once: it may be to blame, or nothing of it. */
export interface Suspect {
  readonly planned: Planned;
  readonly reading: BadReading;
  /** The connection ended on it at once: see tookNoTime. */
  readonly isQuick: boolean;
}

/** What the parts of a readout's search know of its pass and of its time. */
export interface SearchContext {
  readonly learned: LearnedGroups;
  readonly share: DeviceShare;
  /** Monotonic ms. */
  readonly now: () => number;
  /** Between two readouts. */
  readonly intervalMs: number;
  /**
   * For a person who reads once: everything is looked for in this readout, whatever it costs, and a part is looked at closely before
   * it is held to be silent.
   */
  readonly isThorough: boolean;
  /** The time that what is searched for once takes, though it may stay without an answer, if there is any for it now. */
  searchTime(): SearchTime | undefined;
  /** The time that what is asked again and again takes, if there is any for it now. */
  probeTime(): ProbeTime | undefined;
  readonly pass: PassView;
}

/** The pass, as far as it is looked at and told something. */
export interface PassView {
  readonly sent: number;
  readonly answered: number;
  /** Requests answered with a value at least. */
  readonly good: number;
  hasReading(index: number): boolean;
  isRead(request: Request): boolean;
  /** True: all of it has values in this readout. */
  isGood(request: Request): boolean;
  give(points: readonly Point[], reading: Reading): void;
  /** Asks these as planned before anything else is looked for. */
  queue(planned: readonly Planned[]): void;
  /** Begins again with the plan as it is now: what was learned is forgotten. */
  restart(): void;
}

/** What has no answer takes at most one part in so many of the time. */
const COST_SHARE = 10;
/** After so many tries without an answer, a minute lies between two. */
const MANY_TRIES = 30;
const LONG_PAUSE_MS = 60_000;
/** After so many tries of what has no answer, one is waited for as long as any request. */
const TRIES_BEFORE_PATIENCE = 4;
/** Tries before that of a part whose pace is known: it costs the others readouts, and comes about once a minute. */
const HEARD_TRIES_BEFORE_PATIENCE = 10;

/** Until what has no answer is asked again: a tenth of the time is its, and it is not asked in each readout. Pure. */
export function pauseMs(costMs: number, failures: number, intervalMs: number): number {
  if (failures >= MANY_TRIES) return LONG_PAUSE_MS;
  return Math.min(LONG_PAUSE_MS, Math.max(COST_SHARE * costMs, intervalMs / 2));
}

/** Until a culprit is asked again after a probe: as long as the device asks for, unless that is longer than any pause. Pure. */
export const culpritPauseMs = ({ costMs, restMs = 0 }: ExtraFailure, failures: number, intervalMs: number): number =>
  Math.max(pauseMs(costMs, failures, intervalMs), Math.min(restMs, LONG_PAUSE_MS));

/** True: the next try is waited for as long as any request, after so many that were not; never in idle time, which it would exceed. Pure. */
export const isPatient = (hasty: number, time: ProbeTime, isHeard = false): boolean =>
  hasty >= (isHeard ? HEARD_TRIES_BEFORE_PATIENCE : TRIES_BEFORE_PATIENCE) && time === "share";
