import type { Hold } from "../sinks/sink.ts";
import type { Piece } from "./suspects.ts";

/** What was in one refused message. */
export interface HeldPart {
  /** Of all its rows. */
  readonly layout: number;
  /** By rising row and place. */
  readonly pieces: readonly Piece[];
  /** Values by row. */
  readonly values: ReadonlyMap<number, number>;
}

/** Parts whose time is over. */
export interface Expired {
  readonly source: string;
  readonly parts: readonly HeldPart[];
  readonly next: Hold["next"];
  readonly detail: string;
}

interface Held {
  /** Oldest first. */
  parts: HeldPart[];
  /** Those that are being tried. */
  underWay: readonly HeldPart[];
  readonly untilMs: number;
  readonly next: Hold["next"];
  /** Of the last refusal. */
  detail: string;
  dueMs: number;
  pauseMs: number;
  /** The newest is tried next: the oldest alone may be at fault. */
  isNewestNext: boolean;
}

/** After a refusal, and at most. */
const PAUSE_MS = { least: 1000, most: 30_000 } as const;
/** Pieces at once: beyond it nothing else is written, so that memory has a bound. */
const MAX_PIECES = 20_000;
/** Pieces of one try. */
const MAX_TRY_PIECES = 100;

/**
 * Holds by source what the server refuses for now. One try at a time looks whether it is over: after the first value that passes, the rest
 * follows at once. What is held for as long as the sink says is given out as expired; what is refused later is not held any more, until
 * something of the source passes. Has no timer and no clock of its own.
 */
export class Holds {
  readonly #held = new Map<string, Held>();
  #pieces = 0;

  /** Sources of which something is held. */
  get size(): number {
    return [...this.#held.values()].filter(hasParts).length;
  }

  /** Nothing else should be written. */
  isFull(): boolean {
    return this.#pieces >= MAX_PIECES;
  }

  /** Why, of those that are held first. */
  detail(): string | undefined {
    return [...this.#held.values()].find(hasParts)?.detail;
  }

  /** What is refused of the source is dropped at once. */
  isOver(source: string, nowMs: number): boolean {
    const held = this.#held.get(source);
    return held !== undefined && nowMs >= held.untilMs;
  }

  /** False: its time was over before; the part is not held. */
  add(source: string, part: HeldPart, { forMs, next }: Hold, detail: string, nowMs: number): boolean {
    const known = this.#held.get(source);
    const held: Held = known ?? {
      parts: [],
      underWay: [],
      untilMs: nowMs + forMs,
      next,
      detail,
      dueMs: nowMs + PAUSE_MS.least,
      pauseMs: PAUSE_MS.least,
      isNewestNext: false,
    };
    if (!known) this.#held.set(source, held);
    if (nowMs >= held.untilMs) return false;
    held.parts.push(part);
    this.#pieces += part.pieces.length;
    return true;
  }

  /** The parts to try now, of one source and one layout, and nothing while others of it are under way; undefined: none is due. */
  take(nowMs: number): { readonly source: string; readonly parts: readonly [HeldPart, ...HeldPart[]] } | undefined {
    for (const [source, held] of this.#held) {
      if (held.underWay.length > 0 || held.dueMs > nowMs) continue;
      const first = held.isNewestNext ? held.parts.at(-1) : held.parts[0];
      if (!first) continue;
      const parts: [HeldPart, ...HeldPart[]] = [first];
      // Only after one has passed: what is tried while all is refused is one message.
      if (!held.isNewestNext && held.pauseMs === 0) parts.push(...followers(held.parts));
      const taken = new Set<HeldPart>(parts);
      held.parts = held.parts.filter((part) => !taken.has(part));
      held.underWay = parts;
      return { source, parts };
    }
    return undefined;
  }

  /** What was under way is tried again: nothing was learnt of it, but for a loss of the sink, after which it waits longer. */
  giveBack(source: string, nowMs: number): void {
    const held = this.#held.get(source);
    if (!held) return;
    held.parts = [...held.underWay, ...held.parts];
    held.underWay = [];
    waitLonger(held, nowMs);
  }

  /** A try has ended: `rest` of it was refused once more, with `detail`. `hasPassed`: the server took values of the source. */
  tried(source: string, rest: HeldPart | undefined, hasPassed: boolean, nowMs: number, detail?: string): void {
    const held = this.#held.get(source);
    if (!held) return;
    if (rest && detail !== undefined) held.detail = detail;
    this.#pieces -= piecesIn(held.underWay);
    held.underWay = [];
    if (rest) {
      if (held.isNewestNext && !hasPassed) held.parts.push(rest);
      else held.parts.unshift(rest);
      this.#pieces += rest.pieces.length;
    }
    // Something else is tried next: what was refused alone may be at fault.
    held.isNewestNext = rest !== undefined && !held.isNewestNext && held.parts.length > 1;
    if (hasPassed) Object.assign(held, { pauseMs: 0, dueMs: nowMs });
    else if (rest) waitLonger(held, nowMs);
    if (!hasParts(held) && (hasPassed || nowMs < held.untilMs)) this.#held.delete(source);
  }

  /** The server took values of the source that were not held: a later refusal is held again. */
  passed(source: string, nowMs: number): void {
    const held = this.#held.get(source);
    if (!held) return;
    if (!hasParts(held)) this.#held.delete(source);
    else Object.assign(held, { pauseMs: 0, dueMs: Math.min(held.dueMs, nowMs) });
  }

  /** Takes out what was held for long enough; what is under way is left. */
  expire(nowMs: number): readonly Expired[] {
    const expired: Expired[] = [];
    for (const [source, held] of this.#held) {
      if (nowMs < held.untilMs || held.parts.length === 0) continue;
      const { parts, next, detail } = held;
      expired.push({ source, parts, next, detail });
      held.parts = [];
      this.#pieces -= piecesIn(parts);
    }
    return expired;
  }

  /** When take or expire may give something. */
  nextDueMs(): number | undefined {
    let next: number | undefined;
    for (const held of this.#held.values()) {
      if (held.parts.length === 0) continue;
      const atMs = held.underWay.length > 0 ? held.untilMs : Math.min(held.untilMs, held.dueMs);
      next = Math.min(next ?? Number.POSITIVE_INFINITY, atMs);
    }
    return next;
  }

  clear(): void {
    this.#held.clear();
    this.#pieces = 0;
  }
}

const hasParts = ({ parts, underWay }: Held): boolean => parts.length > 0 || underWay.length > 0;

const piecesIn = (parts: readonly HeldPart[]): number => parts.reduce((sum, { pieces }) => sum + pieces.length, 0);

function waitLonger(held: Held, nowMs: number): void {
  held.pauseMs = Math.min(Math.max(PAUSE_MS.least, held.pauseMs * 2), PAUSE_MS.most);
  held.dueMs = nowMs + held.pauseMs;
}

/** Those behind the first one that can be written with it. */
function followers([first, ...others]: readonly HeldPart[]): readonly HeldPart[] {
  const found: HeldPart[] = [];
  let count = first?.pieces.length ?? 0;
  for (const part of others) {
    count += part.pieces.length;
    if (part.layout !== first?.layout || count > MAX_TRY_PIECES) break;
    found.push(part);
  }
  return found;
}
