import type { Hold } from "../../sinks/sink.ts";
import type { Held, Isolation, Part } from "./state.ts";

/**
 * Values that the server refuses for now are held by source. One try at a time looks whether it is over: after the first value that passes, the rest
 * follows at once. After the time that the sink names it is given up; what is refused later is not held, until something of the source passes.
 */

/** The pause after a refusal: it doubles from the least to the most. */
const PAUSE_MS = { least: 1000, most: 30_000 } as const;
/** Pieces at once: beyond it nothing else is written, so that memory has a bound. */
const MAX_PIECES = 20_000;
/** Pieces of one try: about as many rows as a message has. */
const MAX_TRY_PIECES = 100;

type State = Pick<Isolation, "holds" | "heldPieces">;

/** Parts that are given up. */
export interface Expired {
  readonly source: string;
  readonly parts: readonly Part[];
  readonly next: Hold["next"];
  readonly detail: string;
}

/** Nothing else should be written. */
export const isFull = ({ heldPieces }: State): boolean => heldPieces >= MAX_PIECES;

/** Why, of those that are held first. */
export const heldDetail = ({ holds }: State): string | undefined => [...holds.values()].find(hasParts)?.detail;

/** A refusal of the source gives its values up at once. */
export function isHoldOver({ holds }: State, source: string, nowMs: number): boolean {
  const held = holds.get(source);
  return held !== undefined && nowMs >= held.untilMs;
}

/** False: its time was over before; the part is not held. */
export function hold(state: State, source: string, part: Part, { forMs, next }: Hold, detail: string, nowMs: number): boolean {
  const held = state.holds.get(source) ?? newHeld(nowMs + forMs, next, detail, nowMs);
  state.holds.set(source, held);
  if (nowMs >= held.untilMs) return false;
  held.parts.push(part);
  state.heldPieces += part.pieces.length;
  return true;
}

const newHeld = (untilMs: number, next: Hold["next"], detail: string, nowMs: number): Held => ({
  parts: [],
  underWay: [],
  untilMs,
  next,
  detail,
  dueMs: nowMs + PAUSE_MS.least,
  pauseMs: PAUSE_MS.least,
  isNewestNext: false,
});

/** The parts to try now, of one source and one layout, and none while others of it are under way; undefined: none is due. */
export function dueHeld(
  { holds }: State,
  nowMs: number,
): { readonly source: string; readonly parts: readonly [Part, ...Part[]] } | undefined {
  for (const [source, { parts, underWay, dueMs, isNewestNext, pauseMs }] of holds) {
    const first = isNewestNext ? parts.at(-1) : parts[0];
    if (underWay.length > 0 || dueMs > nowMs || !first) continue;
    // Only after one has passed: what is tried while all is refused is one message.
    return { source, parts: [first, ...(!isNewestNext && pauseMs === 0 ? followers(parts) : [])] };
  }
  return undefined;
}

export function beginHeld({ holds }: State, source: string, parts: readonly Part[]): void {
  const held = holds.get(source);
  if (!held) return;
  const begun = new Set(parts);
  held.parts = held.parts.filter((part) => !begun.has(part));
  held.underWay = parts;
}

/** The parts under way are tried again after a longer pause: their try ended without an answer. */
export function giveBackHeld({ holds }: State, source: string, nowMs: number): void {
  const held = holds.get(source);
  if (!held) return;
  held.parts = [...held.underWay, ...held.parts];
  held.underWay = [];
  waitLonger(held, nowMs);
}

/** A try has ended: `rest` of it was refused once more, with `detail`. `hasPassed`: the server took values of the source. */
export function endHeld(state: State, source: string, rest: Part | undefined, hasPassed: boolean, nowMs: number, detail?: string): void {
  const held = state.holds.get(source);
  if (!held) return;
  if (rest && detail !== undefined) held.detail = detail;
  state.heldPieces -= piecesIn(held.underWay);
  held.underWay = [];
  if (rest) {
    if (held.isNewestNext && !hasPassed) held.parts.push(rest);
    else held.parts.unshift(rest);
    state.heldPieces += rest.pieces.length;
  }
  // Something else is tried next: what was refused alone may be at fault.
  held.isNewestNext = rest !== undefined && !held.isNewestNext && held.parts.length > 1;
  if (hasPassed) Object.assign(held, { pauseMs: 0, dueMs: nowMs });
  else if (rest) waitLonger(held, nowMs);
  if (!hasParts(held) && (hasPassed || nowMs < held.untilMs)) state.holds.delete(source);
}

/** The server took values of the source that were not held: a later refusal is held again. */
export function passHeld({ holds }: State, source: string, nowMs: number): void {
  const held = holds.get(source);
  if (!held) return;
  if (!hasParts(held)) holds.delete(source);
  else Object.assign(held, { pauseMs: 0, dueMs: Math.min(held.dueMs, nowMs) });
}

/** Takes out what was held for long enough; what is under way is left. */
export function expireHeld(state: State, nowMs: number): readonly Expired[] {
  const expired: Expired[] = [];
  for (const [source, held] of state.holds) {
    if (nowMs < held.untilMs || held.parts.length === 0) continue;
    const { parts, next, detail } = held;
    expired.push({ source, parts, next, detail });
    held.parts = [];
    state.heldPieces -= piecesIn(parts);
  }
  return expired;
}

/** When something may be due or given up. */
export function heldDueMs({ holds }: State): number {
  const waiting = [...holds.values()].filter(({ parts }) => parts.length > 0);
  return Math.min(...waiting.map(({ underWay, untilMs, dueMs }) => (underWay.length > 0 ? untilMs : Math.min(untilMs, dueMs))));
}

const hasParts = ({ parts, underWay }: Held): boolean => parts.length > 0 || underWay.length > 0;

const piecesIn = (parts: readonly Part[]): number => parts.reduce((sum, { pieces }) => sum + pieces.length, 0);

function waitLonger(held: Held, nowMs: number): void {
  held.pauseMs = Math.min(Math.max(PAUSE_MS.least, held.pauseMs * 2), PAUSE_MS.most);
  held.dueMs = nowMs + held.pauseMs;
}

/** Those behind the first one that can be written with it. */
function followers([first, ...others]: readonly Part[]): readonly Part[] {
  let count = first?.pieces.length ?? 0;
  const end = others.findIndex(({ layout, pieces }) => {
    count += pieces.length;
    return layout !== first?.layout || count > MAX_TRY_PIECES;
  });
  return end < 0 ? others : others.slice(0, end);
}
