import { takeOut } from "../../base/take-out.ts";
import type { Hold } from "../../sinks/sink.ts";
import type { Outcome } from "../acknowledgements.ts";
import {
  beginHeld,
  dueHeld,
  endHeld,
  expireHeld,
  giveBackHeld,
  heldDetail,
  heldDueMs,
  hold,
  isFull,
  isHoldOver,
  passHeld,
} from "./holds.ts";
import { type Counted, valuesIn } from "./pieces.ts";
import { endPieces, openPieces, refusePieces } from "./row-accounts.ts";
import { type Attempt, type Due, type Effect, forgotten, type Isolation, type Part, type Turn } from "./state.ts";
import { add, countLosses, failed, learn, MESSAGE_BYTES, maxMessageBytes, passed, replace, suspect } from "./suspects.ts";

/** An open connection that lasts so long, and so long after a refusal, is not closed for another reason than the next write. */
const PROOF_MS = 500;

/** The contents of one refused message; with `hold`, of all that the server refuses for now. */
export interface Refused {
  readonly pieces: readonly Counted[];
  readonly detail: string;
  readonly hold?: Hold;
}

/** The server's answer to a write. `refused`: values that are dropped. */
export interface Answer {
  readonly refused: number;
  readonly detail?: string | undefined;
  readonly refusals: readonly Refused[];
}

/** Events of a writer. A normal job is named by its first row. */
interface Events {
  readonly opened: unknown;
  /** A job is held by the queue from now on. */
  readonly suspected: Part & { readonly job: number };
  /** A normal job is written now. */
  readonly writing: unknown;
  /** A normal job was answered. `taken`: values that have arrived. `outcomes`: by row that is held from now on, as if all had arrived. */
  readonly written: Answer &
    Omit<Part, "pieces"> & {
      readonly job: number;
      readonly source: string;
      readonly taken: number;
      readonly outcomes: ReadonlyMap<number, Outcome>;
    };
  /** `gone`: rows that have left the file; `damaged`: rows that cannot be decoded; `filtered`: by row, values that the filter leaves out. */
  readonly begun: {
    readonly attempt: Attempt;
    readonly gone: readonly number[];
    readonly damaged: readonly number[];
    readonly filtered: ReadonlyMap<number, number>;
  };
  readonly tried: Answer & { readonly attempt: Attempt };
  /** The sink was lost, with these normal jobs under way. `isPublishing`: notices were, too. */
  readonly lost: { readonly jobs: readonly number[]; readonly why: string; readonly isPublishing: boolean };
  /** This opening ends, and not because of what is written. */
  readonly given_up: unknown;
  /** Nothing is read for this long. */
  readonly unreadable: { readonly pauseMs: number };
  readonly time: unknown;
  /** The file is another one: its rows come again. */
  readonly left: unknown;
}
export type Event = { [What in keyof Events]: { readonly what: What } & Events[What] }[keyof Events];

/** The lesson of each event. */
const LESSONS: { readonly [What in keyof Events]: (turn: Turn, event: Events[What]) => void } = {
  opened,
  suspected,
  writing: ({ state }) => void Object.assign(state, { wasApart: false }),
  written,
  begun,
  tried,
  lost,
  given_up: ({ state }) => void Object.assign(state, { isGivenUp: true }),
  unreadable: ({ state, nowMs }, { pauseMs }) => void Object.assign(state, { notBeforeMs: nowMs + pauseMs }),
  time: expire,
  left: ({ state }) => void Object.assign(state, forgotten()),
};

/** The one decision. Depends on the state, the event and the time alone; `state` is changed in place. */
export function step(state: Isolation, { what, ...event }: Event, nowMs: number): readonly Effect[] {
  const effects: Effect[] = [];
  const lesson = LESSONS[what] as (turn: Turn, more: object) => void;
  lesson({ state, nowMs, effects, settle: (row, outcome) => effects.push({ what: "settled", row, outcome }) }, event);
  return effects;
}

/** Values pass over this opening, while suspects are being isolated. */
export const isIsolating = ({ suspects, passes, passesBefore }: Isolation): boolean => suspects.length > 0 && passes > passesBefore;

/** A suspect is under way that must be the only write. */
export const isQuiet = ({ underWay }: Isolation): boolean => underWay.some(({ due }) => due.what === "suspect" && due.suspect.needsQuiet);

/** Why values are kept; undefined: none are. */
export function keeping(state: Isolation): string | undefined {
  if (state.suspects.length > 0) return state.why ?? undefined;
  const detail = heldDetail(state);
  return detail === undefined || !isFull(state) ? detail : `${detail}; so much is held that everything else waits`;
}

/**
 * Names the parts that are to be written apart now. One that needs quiet waits until the connection has proved that it lasts, then until nothing else is under
 * way (`isIdle`), and until the server has not closed the connection for a refusal. `untilMs`: all else waits so long; infinite: until a write ends.
 */
export function nextApart(state: Isolation, nowMs: number, isIdle: boolean): Due | { readonly untilMs: number } | undefined {
  const isProved = nowMs - state.openedMs >= PROOF_MS;
  const learned = maxMessageBytes(state, nowMs);
  const suspect = state.suspects.find((one) => !one.isUnderWay && one.dueMs <= nowMs && (isProved || !one.needsQuiet));
  if (suspect) {
    const { layout, backlog, pieces, rung, needsQuiet } = suspect;
    if (needsQuiet && !isIdle) return { untilMs: Number.POSITIVE_INFINITY };
    if (needsQuiet && nowMs < state.refusedMs + PROOF_MS) return { untilMs: state.refusedMs + PROOF_MS };
    const bytes = Math.min(MESSAGE_BYTES[rung] ?? Number.POSITIVE_INFINITY, learned ?? Number.POSITIVE_INFINITY);
    return { what: "suspect", suspect, layout, backlog, pieces, maxMessageBytes: Number.isFinite(bytes) ? bytes : undefined };
  }
  const held = dueHeld(state, nowMs);
  if (!held) return undefined;
  const [{ layout }] = held.parts;
  const pieces = held.parts.flatMap((part) => part.pieces).sort((a, b) => a.row - b.row || a.from - b.from);
  return { what: "held", ...held, layout, backlog: true, pieces, maxMessageBytes: learned };
}

/** When something apart may be due without anything else happening; infinite: nothing waits. */
export function apartDueMs(state: Isolation, nowMs: number): number {
  const provedMs = state.openedMs + PROOF_MS;
  const suspectMs = Math.min(...state.suspects.filter(({ isUnderWay }) => !isUnderWay).map(({ dueMs }) => dueMs));
  return Math.min(nowMs < provedMs ? Math.max(suspectMs, provedMs) : suspectMs, heldDueMs(state));
}

function opened({ state, nowMs }: Turn): void {
  Object.assign(state, {
    openedMs: nowMs,
    passesBefore: state.passes,
    isGivenUp: false,
    refusedInARow: 0,
    wasApart: !state.isApartFirst,
    notBeforeMs: state.isInDoubt || state.isApartFirst ? nowMs + PROOF_MS : state.notBeforeMs,
  });
}

function suspected({ state, nowMs }: Turn, { job, ...part }: Events["suspected"]): void {
  state.losses.delete(job);
  const values = new Map(part.pieces.map((piece) => [piece.row, piece.values]));
  openPieces(state.rows, part.pieces, (row) => ({ delivered: values.get(row) ?? 0, dropped: {} }));
  add(state, part, true, nowMs);
}

function written(turn: Turn, { job, source, layout, backlog, taken, refused, detail, refusals, outcomes }: Events["written"]): void {
  const { state, nowMs, effects } = turn;
  if (taken > 0) {
    state.losses.delete(job);
    passed(state);
  }
  if (taken > 0 && refusals.length === 0) {
    const wasOver = isHoldOver(state, source, nowMs);
    passHeld(state, source, nowMs);
    if (wasOver) effects.push({ what: "recovered", source });
  }
  if (refused > 0) state.refusedMs = nowMs;
  let dropped = refused;
  for (const { pieces, ...refusal } of refusals) {
    openPieces(state.rows, pieces, (row) => outcomes.get(row));
    const part = { layout, backlog, pieces };
    if (!note(turn, part, refusal) || pieces.length === 0 || !refusal.hold) continue;
    if (!hold(state, source, part, refusal.hold, refusal.detail, nowMs)) dropped += giveUp(turn, [part], refusal.hold.next, refusal.detail);
  }
  effects.push({ what: "wrote", source, refused: dropped, detail });
}

/** The server may close the connection because of a refusal. True: the part is to be held; false: it is a suspect now. */
function note({ state, nowMs, effects }: Turn, part: Part, { detail, hold: holding }: Omit<Refused, "pieces">): boolean {
  if (holding) {
    state.refusedMs = nowMs;
    effects.push({ what: "held", detail });
    return true;
  }
  state.why = detail;
  if (part.pieces.length > 0) suspect(state, part, nowMs);
  return false;
}

function begun({ state, nowMs, settle }: Turn, { attempt, gone, damaged, filtered }: Events["begun"]): void {
  const { due, pieces } = attempt;
  for (const row of gone) {
    state.rows.delete(row);
    settle(row, undefined);
  }
  for (const row of damaged) {
    const account = state.rows.get(row);
    if (account) account.isDamaged = true;
  }
  for (const [row, values] of filtered) {
    const account = state.rows.get(row);
    if (account) account.filtered = values;
  }
  const isEmpty = valuesIn(pieces) === 0;
  if (due.what === "held") beginHeld(state, due.source, due.parts);
  else due.suspect.isUnderWay = true;
  state.wasApart = true;
  if (!isEmpty) {
    state.underWay.push(attempt);
    return;
  }
  // Nothing of it is left to write.
  if (due.what === "held") endHeld(state, due.source, undefined, false, nowMs);
  else replace(state, due.suspect, []);
  endPieces(state.rows, pieces, [], settle);
}

function tried(turn: Turn, { attempt, ...answer }: Events["tried"]): void {
  const { state, nowMs, effects, settle } = turn;
  const { due, pieces } = attempt;
  const { refused, detail, refusals } = answer;
  // The file was left meanwhile, or the sink was lost.
  if (!takeOut(state.underWay, attempt)) return;
  const rest = refusals.flatMap((one) => one.pieces);
  if (refused > 0) refusePieces(state.rows, pieces, refused);
  if (refused > 0 && detail !== undefined) effects.push({ what: "dropped", values: refused, detail });
  const left = valuesIn(rest) + refused;
  if (due.what === "held") heldTried(turn, attempt, due.source, answer, left);
  else {
    if (refused > 0) state.refusedMs = nowMs;
    const hasPassed = left < valuesIn(pieces);
    if (rest.length > 0 && refused === 0 && !hasPassed) {
      failed(turn, attempt, due.suspect, false, refusals[0]?.detail ?? "");
      return;
    }
    if (rest.length > 0) state.refusedMs = nowMs;
    else learn(state, due.suspect, nowMs);
    if (hasPassed || rest.length === 0) passed(state);
    replace(
      state,
      due.suspect,
      refusals.map((refusal) => ({ ...due.suspect, pieces: refusal.pieces, needsQuiet: false })),
    );
  }
  endPieces(state.rows, pieces, rest, settle);
}

function heldTried(turn: Turn, { due: { layout }, pieces }: Attempt, source: string, { refusals }: Answer, left: number): void {
  const { state, nowMs, effects } = turn;
  const hasPassed = left < valuesIn(pieces);
  if (hasPassed) passed(state);
  const again = refusals.filter((refusal) => note(turn, { layout, backlog: true, pieces: refusal.pieces }, refusal)).at(0);
  if (hasPassed && left === 0 && isHoldOver(state, source, nowMs)) effects.push({ what: "recovered", source });
  const rest = again && again.pieces.length > 0 ? { layout, backlog: true, pieces: again.pieces } : undefined;
  endHeld(state, source, rest, hasPassed, nowMs, again?.detail);
}

/** Several writes that were under way when the sink was lost may each be the cause; a suspect that was alone is. */
function lost(turn: Turn, { jobs, why, isPublishing }: Events["lost"]): void {
  const { state, nowMs } = turn;
  const attempts = state.underWay;
  state.underWay = [];
  state.isApartFirst = jobs.length > 0 && state.suspects.length > 0 && state.passes === state.passesBefore;
  for (const { due } of attempts)
    if (due.what === "held") giveBackHeld(state, due.source, nowMs);
    else due.suspect.isUnderWay = false;
  if (state.isGivenUp) return;
  const writes = jobs.length + attempts.length;
  state.isInDoubt = isPublishing && writes > 0 !== state.isInDoubt;
  if (writes === 0 || state.isInDoubt) return;
  const [first] = attempts;
  if (first?.due.what === "suspect" && writes === 1) {
    failed(turn, first, first.due.suspect, true, why);
    return;
  }
  for (const { due } of attempts)
    if (due.what === "suspect") {
      takeOut(state.suspects, due.suspect);
      due.suspect.needsQuiet = true;
      state.suspects.push(due.suspect);
    }
  countLosses(state, jobs);
}

function expire(turn: Turn): void {
  for (const { source, parts, next, detail } of expireHeld(turn.state, turn.nowMs)) {
    const values = giveUp(turn, parts, next, detail);
    const why = `${detail}; the time for which they are held (hold_refused) is over`;
    if (values > 0) turn.effects.push({ what: "dropped", values, detail: why, source });
  }
}

/** Gives up parts that were held; returns how many values it drops. */
function giveUp({ state, nowMs, settle }: Turn, parts: readonly Part[], next: Hold["next"], detail: string): number {
  if (next === "isolate") {
    state.why = detail;
    for (const part of parts) suspect(state, part, nowMs);
    return 0;
  }
  const pieces = parts.flatMap((part) => part.pieces);
  refusePieces(state.rows, pieces, Number.POSITIVE_INFINITY);
  endPieces(state.rows, pieces, [], settle);
  return valuesIn(pieces);
}
