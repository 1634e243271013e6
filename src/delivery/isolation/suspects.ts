import { takeOut } from "../../base/take-out.ts";
import { split, valuesIn } from "./pieces.ts";
import { endPieces, refusePieces } from "./row-accounts.ts";
import type { Attempt, Isolation, Part, Suspect, Turn } from "./state.ts";

/**
 * Finds poison batches: batches whose delivery the server refuses, or makes it close the connection or fall silent. A batch that was under
 * way at two losses in a row, or that was refused, becomes a suspect and is written alone, so that it does not hold up the batches behind
 * it. A suspect that fails again is retried in smaller messages, then in halves down to single values. A single value that fails alone
 * while others pass is dropped. While nothing passes nothing is dropped: the server is in trouble, not the value.
 */

/** By losses with the suspect alone under way. A server may close the connection, without a word, on a message that is too large for it. */
export const MESSAGE_BYTES = [undefined, 16_384, 1024] as const;
/** Losses in a row with the same job under way, after which it is a suspect. One may be chance. */
const LOSSES = 2;
/** A single value that failed so often alone, with other values passing between any two of them, is dropped. */
const FAILURES = 3;
/** Between two failures that count. */
const SPACING_MS = 1000;
/** Between two tries while nothing else passes, at most. */
const LONGEST_PAUSE_MS = 60_000;
/** Parts that one refused message may be taken into: beyond it a part counts as a single value. */
const MAX_SPLITS = 64;
/** A server that takes only small messages is tried with larger ones again after a minute, then after twice as long each time, at most. */
const LONGEST_LEARN_MS = 3_600_000;
/** Jobs whose losses are counted; the oldest are forgotten. */
const MAX_JOBS = 1000;
/** Suspects at once. */
const MAX_SUSPECTS = 1000;
/** Refusals in a row without one value that passed: the server refuses everything. */
const REFUSES_ALL = 64;

/** A normal job that is to be suspected instead of written. */
export const isSuspected = ({ losses, suspects }: Isolation, job: number): boolean =>
  (losses.get(job) ?? 0) >= LOSSES && suspects.length < MAX_SUSPECTS;

/** No more suspects can be kept, or nothing passes at all: the sink is to be closed for a while. */
export const isOverwhelmed = ({ suspects, refusedInARow }: Isolation): boolean =>
  suspects.length >= MAX_SUSPECTS || refusedInARow >= REFUSES_ALL;

/** Bytes that messages of any write may have; undefined: as the sink likes. */
export const maxMessageBytes = ({ learned }: Isolation, nowMs: number): number | undefined =>
  learned && nowMs < learned.untilMs ? learned.maxMessageBytes : undefined;

/** These normal jobs were under way at a loss. */
export function countLosses({ losses }: Isolation, jobs: readonly number[]): void {
  for (const job of jobs) {
    const before = losses.get(job) ?? 0;
    losses.delete(job);
    losses.set(job, before + 1);
  }
  for (const job of [...losses.keys()].slice(0, Math.max(0, losses.size - MAX_JOBS))) losses.delete(job);
}

/** A suspect has failed with all that was in it. `isLoss`: the sink was lost with it alone under way, else it was refused. */
export function failed(
  { state, nowMs, effects, settle }: Turn,
  { pieces, places, name }: Attempt,
  one: Suspect,
  isLoss: boolean,
  why: string,
): void {
  state.why = `${why}, with nothing but ${name}`;
  one.isUnderWay = false;
  if (!isLoss) refuse(state, nowMs);
  if (isLoss && one.rung + 1 < MESSAGE_BYTES.length) {
    replace(state, one, [{ ...one, needsQuiet: true, rung: one.rung + 1 }]);
    return;
  }
  const splits = state.splits.get(one.origin) ?? 0;
  const halves = splits < MAX_SPLITS ? split(pieces, places) : undefined;
  if (halves) {
    state.splits.set(one.origin, splits + 1);
    replace(
      state,
      one,
      halves.map((half) => ({ ...one, pieces: half, needsQuiet: isLoss })),
    );
    endPieces(state.rows, pieces, halves.flat(), settle);
    return;
  }
  const counts = one.failures === 0 || one.haveOthersPassed;
  if (counts) one.failures++;
  one.pauseMs = counts ? SPACING_MS : Math.min(one.pauseMs * 2, LONGEST_PAUSE_MS);
  one.dueMs = nowMs + one.pauseMs;
  one.haveOthersPassed = false;
  if (one.failures < FAILURES) return;
  const values = valuesIn(pieces);
  replace(state, one, []);
  refusePieces(state.rows, pieces, values);
  endPieces(state.rows, pieces, [], settle);
  const what = `${one.failures} times with nothing but ${name}, while others passed: ${values === 1 ? "it is" : "they are"} dropped`;
  effects.push({ what: "dropped", values, detail: `${why}, ${what}` });
}

/** Values have arrived: failures of others begin to count. */
export function passed(state: Isolation): void {
  state.passes++;
  state.refusedInARow = 0;
  for (const one of state.suspects) {
    if (one.failures === 0 || one.haveOthersPassed) continue;
    one.haveOthersPassed = true;
    one.dueMs += SPACING_MS - one.pauseMs;
  }
}

function refuse(state: Isolation, nowMs: number): void {
  state.refusedInARow++;
  state.refusedMs = nowMs;
}

/** A part that was refused is written apart from now on. */
export function suspect(state: Isolation, part: Part, nowMs: number): void {
  refuse(state, nowMs);
  add(state, part, false, nowMs);
}

const UNTRIED = { isUnderWay: false, failures: 0, haveOthersPassed: false, pauseMs: SPACING_MS, dueMs: 0 } as const;

export function add(state: Isolation, { layout, backlog, pieces }: Part, needsQuiet: boolean, nowMs: number): void {
  const rung = needsQuiet ? Math.max(0, (MESSAGE_BYTES as readonly unknown[]).indexOf(maxMessageBytes(state, nowMs))) : 0;
  state.suspects.push({ layout, backlog, pieces, needsQuiet, rung, origin: state.origins++, ...UNTRIED });
}

/** Its parts are tried next: what is learned from one, as how large a message may be, is good for those that wait. */
export function replace(state: Isolation, one: Suspect, parts: readonly Suspect[]): void {
  takeOut(state.suspects, one);
  state.suspects.unshift(...parts.map((part) => ({ ...part, ...UNTRIED })));
  if (!state.suspects.some(({ origin }) => origin === one.origin)) state.splits.delete(one.origin);
}

/** All of a suspect arrived in small messages. It may have been chance: a server that is silent for a while fails on any size. */
export function learn(state: Isolation, { rung, origin }: Suspect, nowMs: number): void {
  const bytes = MESSAGE_BYTES[rung];
  if (bytes === undefined || state.splits.has(origin)) return;
  const before = maxMessageBytes(state, nowMs);
  state.learned = { maxMessageBytes: Math.min(bytes, before ?? bytes), untilMs: nowMs + state.learnMs };
  if (before === undefined) state.learnMs = Math.min(state.learnMs * 2, LONGEST_LEARN_MS);
}
