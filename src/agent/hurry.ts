/** A request that was sent within this of an answer, ms, and had none itself, may have come too soon. */
const HURRIED_MS = 20;
/** Answers to such a request after a longer time, by which it was too soon. */
const PROOFS = 2;
/** Answers for each loss, by which the losses are forgotten. */
const MANY_ANSWERS = 20;
/** Suspected at once, at most. */
const MAX_SUSPECTS = 16;
/** Pauses that are tried, ms: a serial line's turnaround, a slow gateway, a slower one. */
const PAUSES_MS = [100, 300, 1000] as const;

/** Requests that came right after an answer, as plain data. */
export interface Hurry {
  /** Those that had no answer. */
  readonly suspects: readonly string[];
  /** How often one of them was answered after a longer time. */
  readonly proofs: number;
  /** Requests right after an answer since the first of them was lost: lost, and answered. */
  readonly lost: number;
  readonly answered: number;
}

export const NO_HURRY: Hurry = { suspects: [], proofs: 0, lost: 0, answered: 0 };

/** True: it was sent so soon after an answer, ms, that a device which needs a longer pause than `pauseMs` loses it. */
export const isHurried = (afterMs: number, pauseMs: number): boolean => afterMs <= HURRIED_MS + pauseMs;

/** After an answer; one to a suspect that came right after another says that it was lost for another reason. Pure. */
export function hurryAnswered(hurry: Hurry, what: string, afterMs: number, pauseMs: number): Hurry {
  if (hurry.lost === 0) return hurry;
  const { suspects, proofs, lost, answered } = hurry;
  const isSuspect = suspects.includes(what);
  const others = isSuspect ? suspects.filter((one) => one !== what) : suspects;
  if (!isHurried(afterMs, pauseMs)) return isSuspect ? { ...hurry, suspects: others, proofs: proofs + 1 } : hurry;
  return answered < MANY_ANSWERS * lost ? { ...hurry, suspects: others, answered: answered + 1 } : NO_HURRY;
}

/** After a time-out; that of a request which did not come right after an answer has another reason. Pure. */
export function hurryLost(hurry: Hurry, what: string, afterMs: number, pauseMs: number): Hurry {
  const others = hurry.suspects.filter((one) => one !== what);
  if (!isHurried(afterMs, pauseMs)) return others.length < hurry.suspects.length ? { ...hurry, suspects: others } : hurry;
  return { ...hurry, suspects: [...others, what].slice(-MAX_SUSPECTS), lost: hurry.lost + 1 };
}

/**
 * The pause that the device needs, ms, where `pauseMs` is too short; undefined: none is proven. A network that loses a request now and then
 * loses few of those that come right after an answer, and one that needs a pause most of them. 0: no pause helps. Pure.
 */
export function provenPauseMs({ proofs, lost, answered }: Hurry, pauseMs: number): number | undefined {
  if (proofs < PROOFS || lost < answered) return undefined;
  return PAUSES_MS.find((one) => one > pauseMs) ?? 0;
}
