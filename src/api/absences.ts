/** By uuid: in how many pulls in a row an entry was missing without a proof that it is gone. */
export type Missed = ReadonlyMap<string, number>;

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

/**
 * Decides which of the missing entries stay. A list that changes while it is read leaves out entries that exist, so that one absence
 * proves nothing. Pure.
 */
export function judgeAbsences({ known, missing, isProven, before }: AbsenceInput): JudgedAbsences {
  if (isProven) return { waiting: new Map(), pulls: PULLS };
  const missed = missing.map((uuid) => [uuid, (before.get(uuid) ?? 0) + 1] as const);
  const due = missed.filter(([, times]) => times >= PULLS).length;
  const pulls = due >= MANY && due > known * MANY_PART ? PULLS_OF_MANY : PULLS;
  return { waiting: new Map(missed.filter(([, times]) => times < pulls)), pulls };
}
