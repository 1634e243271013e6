import type { Reading } from "../model/value.ts";

/** Requests under way at once that are tried, one step after the other. */
const STEPS = [2, 4, 8] as const;
/** Rounds of a step without a difference, before it counts. */
const ROUNDS = 3;
/** Rounds of a step at most: after them it is not tried for a day. */
const MOST_ROUNDS = 20;
/** Between two rounds, ms: what changes together with a round's own requests is not taken for what they did. */
const ROUND_EACH_MS = 1000;
/** Readouts in a row that are whole, before a device is tried. */
const WELL_READOUTS = 10;
/** More than this part of the places that stand still, with another value, is another request's answer, or no answer. */
const ODD_PART = 1 / 4;
/** Requests of a round whose answer is not that of any other one: where all hold the same, nothing shows that a device mixes them up. */
const LEAST_TOLD = 2;
/** Requests under way at once may take so many times as long as one after the other, and the ms of a timer. */
const SLOWER = 1.25;
const SLOWER_MS = 5;
/** Rounds that are slower, before a step is not tried for a day: the collector's own machine may be what was busy. */
const SLOWER_ROUNDS = 3;
/** After an oddity: a minute, then four times as long with each further one. */
const FIRST_PAUSE_MS = 60_000;
const PAUSE_GROWTH = 4;
const DAY_MS = 86_400_000;

/** Values of each request, by place, with their quality as text: a driver may use its objects again. */
export type Brought = readonly (readonly string[])[];

/** Answers to some requests, sent one after the other, at once, and one after the other again. */
export interface Round {
  readonly before: Brought;
  readonly together: Brought;
  readonly after: Brought;
  /** The longer time of the two one after the other, and that of those at once, ms. */
  readonly oneByOneMs: number;
  readonly togetherMs: number;
}

/** `unclear`: nothing stood still in one of the requests, or too few of them can be told from the others by what did. */
export type Verdict = "same" | "other" | "slower" | "unclear";

export const textOf = (reading: Reading): string =>
  reading.quality === "bad" ? `bad ${reading.fault}` : `${reading.quality} ${String(reading.value)}`;

/** `changing`: places (`request place`) that were seen to change, which prove nothing; grows. */
export function judge({ before, together, after, oneByOneMs, togetherMs }: Round, changing: Set<string>): Verdict {
  if (togetherMs > oneByOneMs * SLOWER + SLOWER_MS) return "slower";
  let isUnclear = false;
  /** Values of each request that stood still, by place; undefined: it moved. */
  const stood: (readonly (string | undefined)[])[] = [];
  for (const [at, brought] of together.entries()) {
    const [own, ownAfter] = [before[at] ?? [], after[at] ?? []];
    if (brought.length !== own.length) return "other";
    for (const place of own.keys()) if (own[place] !== ownAfter[place]) changing.add(`${at} ${place}`);
    const still = [...own.keys()].filter((place) => !changing.has(`${at} ${place}`));
    const differing = still.filter((place) => brought[place] !== own[place]);
    if (differing.length > still.length * ODD_PART) return "other";
    const isOfAnother = before.some((other, i) => i !== at && differing.every((place) => brought[place] === other[place]));
    if (differing.length > 0 && isOfAnother) return "other";
    // A value that moves may have moved just then, and back.
    for (const place of differing) changing.add(`${at} ${place}`);
    isUnclear ||= still.length === 0;
    stood.push(own.map((text, place) => (changing.has(`${at} ${place}`) ? undefined : text)));
  }
  const told = stood.filter((own) => stood.every((other) => other === own || differs(own, other)));
  return isUnclear || told.length < LEAST_TOLD ? "unclear" : "same";
}

/** True: the answer to the other request in place of the own one would be noticed. Their places may lie otherwise where one has more of them. */
function differs(own: readonly (string | undefined)[], other: readonly (string | undefined)[]): boolean {
  const isAlike = own.length === other.length;
  return own.some(
    (text, place) => text !== undefined && (isAlike ? other[place] !== undefined && other[place] !== text : !other.includes(text)),
  );
}

/** Requests that a device is known to answer at once; 1: it was seen to do worse. `seenMs`: when, epoch ms. */
export interface KnownInFlight {
  readonly value: number;
  readonly seenMs: number;
}

/**
 * How many requests a device answers at once, as one of its sources finds out: in rounds while all is well, and back at the first oddity. Times
 * are epoch ms.
 */
export class InFlight {
  #well = 0;
  #roundMs = Number.NEGATIVE_INFINITY;
  #step = 0;
  #rounds = 0;
  #passed = 0;
  #slower = 0;
  #changing = new Set<string>();
  #oddities = 0;
  /** A higher step is not tried before. */
  #higherFromMs = Number.NEGATIVE_INFINITY;

  /** After each readout. */
  readout(isWhole: boolean): void {
    this.#well = isWhole ? this.#well + 1 : 0;
  }

  /** The step that a round is due for; undefined: none is. `own`: how many are asked at once now; `most`: how many may be. */
  due(known: KnownInFlight | undefined, own: number, most: number, nowMs: number): number | undefined {
    if (this.#well < WELL_READOUTS || Math.abs(nowMs - this.#roundMs) < ROUND_EACH_MS) return undefined;
    const step = this.#dueStep(known, own, most, nowMs);
    if (step !== undefined && step !== this.#step) this.#begin(step);
    return step;
  }

  /** After a round of the step that was due. Gives the number that is known from now on; undefined: as before. */
  round(judged: Verdict | ((changing: Set<string>) => Verdict), nowMs: number): number | undefined {
    const verdict = typeof judged === "string" ? judged : judged(this.#changing);
    this.#roundMs = nowMs;
    this.#rounds++;
    if (verdict === "same") this.#passed++;
    else if (verdict !== "unclear") this.#passed = 0;
    if (verdict === "slower") this.#slower++;
    const step = this.#step;
    if (this.#passed >= ROUNDS) {
      this.#begin(0);
      return step;
    }
    const isRefused = verdict === "other" || this.#slower >= SLOWER_ROUNDS || this.#rounds >= MOST_ROUNDS;
    if (!isRefused) return undefined;
    this.#begin(0);
    this.#higherFromMs = nowMs + DAY_MS;
    return verdict === "other" ? 1 : (STEPS.findLast((lower) => lower < step) ?? 1);
  }

  /** A request was lost, or the device was busy, with several under way. */
  odd(nowMs: number): void {
    this.#begin(0);
    this.#well = 0;
    this.#higherFromMs = nowMs + Math.min(DAY_MS, FIRST_PAUSE_MS * PAUSE_GROWTH ** this.#oddities++);
  }

  #dueStep(known: KnownInFlight | undefined, own: number, most: number, nowMs: number): number | undefined {
    const isBack = known?.value === 1;
    // After a restart nothing else says when it was.
    const isEarly = isBack && Math.abs(nowMs - known.seenMs) < FIRST_PAUSE_MS;
    if (known && !isBack && Math.abs(nowMs - known.seenMs) >= DAY_MS) return Math.min(known.value, most);
    const higher = STEPS.find((step) => step > own);
    return higher === undefined || higher > most || isEarly || nowMs < this.#higherFromMs ? undefined : higher;
  }

  #begin(step: number): void {
    this.#step = step;
    this.#rounds = 0;
    this.#passed = 0;
    this.#slower = 0;
    this.#changing = new Set();
  }
}
