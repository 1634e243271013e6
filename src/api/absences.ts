import { LargeMap } from "../base/large-map.ts";
import type { Steps } from "../base/timer.ts";

/** By uuid: in how many pulls in a row an entry was missing without a proof that it is gone. */
export type Missed = Pick<LargeMap<number>, "get" | "size">;

/** Pulls in a row that must miss an entry where nothing proves that it is gone. */
const PULLS = 2;
/** The same where one pull would remove much of what runs. */
const PULLS_OF_MANY = 3;
/** Entries that are much where they are more than a fifth of what runs. */
const MANY = 5;
const MANY_PART = 1 / 5;

export interface AbsenceInput {
  /** Entries that run. */
  readonly known: number;
  /** Uuids of entries that run and that this pull did not find. */
  readonly missing: readonly string[];
  /** The API's own filter was asked for them and is known to work: they are gone. */
  readonly isProven: boolean;
  /** Of the pull before. */
  readonly before: Missed;
}

export interface JudgedAbsences {
  /** Those that stay for now. */
  readonly waiting: Missed;
  /** Pulls in a row that have to miss those that wait. */
  readonly pulls: number;
}

/** Entries in one step. */
const AT_ONCE = 250;

/**
 * Decides which of the missing entries stay. A list that changes while it is read leaves out entries that exist, so that one absence
 * proves nothing. Pure.
 */
export function* judgeAbsences({ known, missing, isProven, before }: AbsenceInput): Steps<JudgedAbsences> {
  const waiting = new LargeMap<number>();
  if (isProven) return { waiting, pulls: PULLS };
  const timesOf = (uuid: string): number => (before.get(uuid) ?? 0) + 1;
  let due = 0;
  for (const [i, uuid] of missing.entries()) {
    if (timesOf(uuid) >= PULLS) due++;
    if (i % AT_ONCE === 0) yield;
  }
  const pulls = due >= MANY && due > known * MANY_PART ? PULLS_OF_MANY : PULLS;
  for (const [i, uuid] of missing.entries()) {
    const times = timesOf(uuid);
    if (times < pulls) waiting.set(uuid, times);
    if (i % AT_ONCE === 0) yield;
  }
  return { waiting, pulls };
}
