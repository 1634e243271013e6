import { shellWord } from "../base/shell-word.ts";
import type { Condition } from "../model/condition.ts";
import { ReasonError } from "../model/reason.ts";

/** Evidence about a device that did not answer a source in time. */
export interface Evidence {
  /** The device took a TCP connection in this readout: one that was open before says nothing, and a datagram is taken by nobody. */
  readonly hasConnected: boolean;
  /** The source was answered since it began. */
  readonly isHeard: boolean;
  /** Another source of the device was answered after this one's first request in vain. */
  readonly hasAnsweredOthers: boolean;
  /** The slowest of the last answers, and how long one is waited for, ms. */
  readonly slowestMs: number;
  readonly answerMs: number;
}

/** An answer that took this part of the time-out says that the next one may take more. */
const SLOW = 0.5;

/** The kind of silence behind a TIMEOUT, by what is known beside it; null: it is not known better. Pure. */
export function silenceOf({ hasConnected, isHeard, hasAnsweredOthers, slowestMs, answerMs }: Evidence): Condition | null {
  if (hasAnsweredOthers) return slowestMs > SLOW * answerMs ? "answers_too_slow" : "unit_silent";
  if (!hasConnected) return null;
  if (slowestMs > SLOW * answerMs) return "answers_too_slow";
  return isHeard ? "answers_no_more" : "never_answered";
}

/** Longest answer_timeout that is advised, ms: a device that is slower is asked for too much. */
const MOST_ADVISED_MS = 60_000;

/** A failure with the condition that says it better, where it is a time-out without one. Pure. */
export function namedSilence(failure: ReasonError, evidence: Evidence, source: string): ReasonError {
  const condition = failure.reason.type === "TIMEOUT" && failure.condition === undefined ? silenceOf(evidence) : null;
  if (!condition) return failure;
  const nextStep = condition === "answers_too_slow" ? slowStep(evidence.answerMs, source) : undefined;
  return new ReasonError("TIMEOUT", failure.message, { condition, cause: failure, nextStep });
}

/** Undefined: to wait longer is no advice. */
function slowStep(answerMs: number, source: string): string | undefined {
  const longerMs = 2 * answerMs;
  if (longerMs > MOST_ADVISED_MS) return undefined;
  const longer = `answer_timeout=${Math.ceil(longerMs / 1000)}s`;
  return `Wait longer for it: \`collector source set ${shellWord(source, "SOURCE")} ${longer}\`; or ask it for less or more seldom.`;
}
