import type { Point, Request } from "../../../drivers/driver.ts";
import type { HabitName } from "../../model/habit.ts";
import type { Reading } from "../../model/value.ts";
import type { Charge, Device, User } from "../device-time.ts";
import type { BadReading, Group, LearnedGroups, Planned } from "../learned-groups.ts";
import type { Narrowing } from "./narrowing.ts";

/** How points fail: the device refuses them, or gives them no answer (it is silent, or the connection ends on them). */
export type FailureKind = "refused" | "lost";

/** The record of one thing that is not read as planned: a point, a run of points, a part. */
export interface Trouble {
  readonly kind: FailureKind;
  /** Those that failed as one. */
  readonly points: readonly Point[];
  /** The reading of each of them. */
  reading: BadReading;
  /** Tries in a row that failed; of these, those since one was waited for as long as any request. */
  attempts: number;
  hasty: number;
  /** Number of the readout in which it was asked last. */
  askedIn: number;
  /** Monotonic ms before which it is not asked again. */
  dueMs: number;
}

/** A habit of the device, as it was found: see Habit. */
export interface FoundHabit {
  readonly name: HabitName;
  readonly part: string | undefined;
  readonly value: number;
}

/** A part that does not answer. */
export interface SilentPart extends Trouble {
  /** The request that failed first, in this readout: it is to blame itself if the part answers. Null: the part is known to be silent. */
  planned: Planned | null;
  isQuick: boolean;
  /** Points that are asked in this readout, before the part is held to be silent. */
  samples: Point[];
  costMs: number;
}

/** A run of points of a group that failed as one, and how far the search for the one to blame has come. */
export interface Search extends Trouble {
  readonly group: Group;
  readonly narrowing: Narrowing;
  /** Single points that are asked to learn whether every part of the run fails; null: not begun. */
  samples: Point[] | null;
  /** Points of the requests of the present step that have not been asked. */
  step: (readonly Point[])[];
  /** The run is asked as a whole once more: each part of it has answered, or it may be well again. */
  isChecking: boolean;
  hasBeenChecked: boolean;
  hasBegun: boolean;
  /** The connection ended at once when part of it was asked last: to look closer takes no time-out. */
  isQuick: boolean;
}

/** Knowledge of a source's device that outlives readouts and connections. Plain data; times are monotonic ms. */
export const newKnown = () => ({
  /** Points that are not asked with the others, each with the run in which it failed. */
  closed: new Map<Point, Trouble>(),
  /** Points that no request holds together with points before them: the device lacks something in between. */
  cuts: new Set<Point>(),
  /** Habits that the device was found to have, until they are kept. */
  habits: [] as FoundHabit[],
  /** When it was tried last to do without a cut. */
  bridgedMs: new Map<Point, number>(),
  /** Parts (units) that do not answer. */
  silent: new Map<string, SilentPart>(),
  /** In order of their turns. */
  searches: [] as Search[],
  /** Number of the readout in which a group's fresh request was tried last. */
  tried: new Map<Group, number>(),
  /** How often in a row the device was busy with what holds the point. */
  busy: new Map<Point, { readonly times: number; readonly readout: number }>(),
  /** The device refuses everything: its words. */
  shut: null as BadReading | null,
  /** Readouts in a row without any answer. */
  unanswered: 0,
  /** A point that had a value in the last readout with any. */
  answering: null as Point | null,
  /** True: anything was ever answered. */
  isHeard: false,
  /** True: anything was answered with values in the last readout. */
  hadGood: false,
  /** Parts that have answered. */
  heard: new Set<string>(),
  /** The answers after which the device has closed each connection; null: it does not. */
  answersPerConnection: null as number | null,
  readouts: 0,
  /** Place in the plan at which the next readout begins: where the last one ran out of time. */
  resumeAt: 0,
  /** Points that were asked to see whether anything answers. */
  rotation: 0,
});
export type Known = ReturnType<typeof newKnown>;

/** The bounds of a readout; all times are monotonic ms. */
export interface Bounds {
  readonly intervalMs: number;
  /**
   * For a person who reads once: everything is looked for in this readout, whatever it costs, and a part is looked at closely before
   * it is held to be silent.
   */
  readonly isThorough: boolean;
  /** After this, at most two requests more look for what failed; and the same for a source of several parts, of which others wait. */
  readonly searchUntilMs: number;
  readonly shortUntilMs: number;
  /** When the next readout is due. */
  readonly idleUntilMs: number;
}

/** A connection that ended, as far as decisions depend on it. */
export interface Loss {
  readonly isTimeout: boolean;
  /** The device or the way to it ended it. */
  readonly isSessionLost: boolean;
}

/** The state of one readout. Plain data; what is null or 0 at first stays so where all is well. */
export const newReadout = (bounds: Bounds, readings: (Reading | undefined)[]) => ({
  bounds,
  readings,
  /** How long a request is waited for as a rule, and the one that was named last, ms. */
  fullMs: 0,
  waitMs: 0,
  /** Facts from outside that are renewed with each outcome: the readout's signal has aborted; others of the device are due. */
  isAborted: false,
  isTurnOver: false,
  /** Requests under way; how many were sent, answered (be it with a refusal), and answered with a value at least. */
  underWay: [] as Ask[],
  sent: 0,
  answered: 0,
  good: 0,
  /** Answers over this connection, which is from an earlier readout and was not answered over since, or is lost. */
  answersHere: 0,
  isStale: false,
  lost: null as Loss | null,
  /** The first look had no answer; or the connections have brought nothing for too long. */
  isFirstLost: false,
  isGivenUp: false,
  /** A request had no answer, and not because its connection was stale. */
  hasFailure: false,
  isDefinite: true,
  /** The longest time for which something was asked not to be read again, ms. */
  restMs: 0,
  /** First points of planned requests that the device refused with a pause, since one was answered. */
  resting: null as Set<Point | undefined> | null,
  /** The device has another program: addresses have to be looked up again, once in a readout. */
  isUnprepared: false,
  hasPreparedAgain: false,
  /** Connections so far; of these in a row without any answer; in a row closed by the device after an answer, and after how many. */
  connections: 0,
  barren: 0,
  quickLosses: 0,
  lastAnswers: 0,
  /** The groups of the plan, its requests, and how far the readout has come in them. */
  groups: null as readonly Group[] | null,
  main: [] as readonly Planned[],
  at: 0,
  /** Lost with a connection that had answered before, or not begun: first on the next one; and the first points of those that were so once. */
  again: [] as Planned[],
  againOnce: null as Set<Point | undefined> | null,
  isSequential: false,
  /** A request was lost with others under way. */
  hasLostTogether: false,
  /** Planned requests whose answers the deadline cut off. */
  cut: [] as Planned[],
  /** Requests that the device was too busy for, those that are asked again now, and how often that was. */
  busy: [] as Planned[],
  busyNow: [] as Planned[],
  busyRounds: 0,
  /** One point is asked before all. */
  isToLookFirst: false,
  /** A request beside the plan that waits for its turn; and something well was asked before it to have the gateway free. */
  pending: null as Ask | null,
  isSettled: false,
  canSettle: true,
  /** A point that was answered in this readout is not any more, and there is no other part: the next one tells whether anything is. */
  isSilentNow: false,
  maxRequests: 0,
  /** Requests beside the plan; of these without an answer; and those sent for a sign of life. */
  extras: 0,
  vain: 0,
  signsOfLife: 0,
  hasFailed: false,
  /** Parts that have answered in this readout, were waited for in full, and had searches in vain. */
  answeredParts: new Set<string>(),
  waitedInFull: null as Set<string> | null,
  vainByPart: null as Map<string, number> | null,
  areSeveral: null as boolean | null,
  partProbes: 0,
  followUps: [] as Planned[],
  survey: [] as Group[],
  hasSurveyed: false,
  /** Groups whose fresh request is tried, with the point that has answered. */
  tries: [] as { readonly group: Group; readonly reopened: Point | null }[],
  hasProbed: false,
  isHealing: false,
});
export type Readout = ReturnType<typeof newReadout>;

/** The whole state that decisions depend on. */
export interface State {
  readonly plan: LearnedGroups;
  readonly device: Device;
  readonly user: User;
  readonly readout: Readout;
}

/** The purpose of a request beside the plan. */
export type Purpose =
  /** A point is asked before all, to learn whether the source answers. */
  | { readonly what: "first" }
  /** Something that was answered is asked again, so that a gateway that may be busy is free. */
  | { readonly what: "settle"; readonly part: string | undefined }
  /** A planned request that has no reading yet. */
  | { readonly what: "left"; readonly planned: Planned }
  /** Does the part answer at all? */
  | { readonly what: "part"; readonly part: string }
  /** Does the device answer at all? */
  | { readonly what: "life" }
  /** A part of a run that failed, or all of it once more. */
  | { readonly what: "step" | "check"; readonly search: Search }
  /** Does each part of a run fail? */
  | { readonly what: "sample"; readonly search: Search; readonly point: Point }
  /** Does everything fail? */
  | { readonly what: "survey" }
  /** Is a closed point well again? */
  | { readonly what: "probe"; readonly group: Group; readonly point: Point }
  /** Can a group be asked as freshly planned again? */
  | { readonly what: "fresh"; readonly group: Group; readonly reopened: Point | null }
  /** May points on both sides of a closed one share a request? */
  | { readonly what: "bridge"; readonly group: Group; readonly cut: Point };

/** A request beside the plan. */
export type Extra = Purpose & {
  readonly request: Request;
  /** It may stay without an answer: it is waited for as long as the device takes as a rule. */
  readonly isRisky: boolean;
  /** It is waited for as long as any request all the same. */
  readonly isPatient?: boolean;
  /** The account that it is charged to if it has no answer. */
  readonly charge: Charge;
};
export type Ask = Planned | Extra;

/** A failure of a request: `points` of it as one. */
export interface Failure {
  readonly kind: FailureKind;
  readonly reading: BadReading;
  readonly points: readonly Point[];
  readonly costMs: number;
  /** The device asks not to be asked this again before, ms; 0: it says nothing of that. */
  readonly restMs: number;
}

/** A device's answer, or why there is none, as data. */
export type Outcome =
  | { readonly type: "answered" }
  /** The device refuses the request, or `items` of it each as one while it gives the rest; `scope` says what that is about. */
  | {
      readonly type: "refused";
      readonly scope: "points" | "silent" | "busy" | "everything" | "program";
      readonly reading: BadReading;
      readonly items: readonly { readonly points: readonly Point[]; readonly reading: BadReading }[];
    }
  /** The connection ended, or has to be thrown away. */
  | { readonly type: "ended"; readonly reading: BadReading; readonly loss: Loss; readonly restMs: number };

/** An end of the pass over this connection: see ReadPass. */
export type PassEnd = "done" | "lost" | "renew" | "failed" | "stopped" | "unprepared" | "turn";
/** The next step of a pass. */
export type Next = Ask | { readonly what: "pause"; readonly ms: number } | { readonly what: "end"; readonly end: PassEnd };
