/** A rate that was learned, as it outlasts the process. Publishes a second. */
export interface LearnedRate {
  readonly perS: number;
  /** The server refused at this rate; undefined: that is not known. */
  readonly ceilingPerS?: number | undefined;
}

interface Learned extends LearnedRate {
  /** Monotonic ms of the last change of `perS`. */
  readonly changedMs: number;
  /** From then on the ceiling does not count any more. */
  readonly ceilingUntilMs: number;
}

/** Part of the rate that was accepted last that is sent from then on: a window of the server may begin between two of ours. */
const KEPT_PART = 0.8;
/** Part that is sent where the rate was lowered just before: the acknowledgements of then say too much. */
const KEPT_PART_AGAIN = 0.5;
const AGAIN_MS = 10_000;
/** Fewer refusals within so many ms, or a smaller part of what is sent, are a message's own, or chance. */
const REFUSALS = { least: 2, part: 0.05, withinMs: 3000 } as const;
/** The rate grows up to this part of the one that was refused: a burst after a stall of this thread still fits. */
const CEILING_PART = 0.85;
/** A limit may have been raised: after so long the ceiling is tried again. Each time that it holds, twice as long, up to a day. */
const CEILING_MS = { first: 3_600_000, most: 86_400_000 } as const;
/** A refusal below the ceiling shows that the limit is lower now where another one came within this time; else it passes. */
const LOWER_WITHIN_MS = 600_000;
/** Growth: fast up to a known ceiling, slower where none is known, and in small steps above one that is forgotten. */
const GROWTH = {
  known: { factor: 2, everyMs: 10_000 },
  unknown: { factor: 1.25, everyMs: 10_000 },
  past: { factor: 1.1, everyMs: 60_000 },
} as const;
const LEAST_PER_S = 1;
/** Above it a limit limits nothing: one connection carries no more. */
const MOST_PER_S = 50_000;
/** Servers count by the second: after a refusal the rest of one passes unused. */
const PAUSE_MS = 1000;
/** Publishes of so many ms may be sent at once after this thread stood still. */
const BURST_MS = 100;
const SECOND_MS = 1000;
/** Acknowledgements are counted in slices, for as long as a missing one may take to be noticed. */
const SLICE = { ms: 50, count: 1200 } as const;

const isRate = (perS: number): boolean => perS >= LEAST_PER_S && perS <= MOST_PER_S;

/**
 * Bounds the publishes a second to one server, by what the server accepts: it is lowered below what was acknowledged in the last second where
 * the server refuses more, and grows while publishes wait for it. Outlasts connections. Has no timer and no clock of its own: times are
 * monotonic ms.
 */
export class PublishRate {
  readonly #save: (learned: LearnedRate | undefined) => void;
  #changed: () => void = () => {};
  #mostPerS: number | undefined;
  #learned: Learned | undefined;
  /** Before the first change of those that followed each other soon, if there was one. */
  #before: { readonly learned: Learned | undefined } | undefined;
  #ceilingMs: number = CEILING_MS.first;
  /** Earliest time of the next publish. */
  #nextMs = 0;
  /** Nothing was sent since a pause or an opening before then. */
  #startedMs = Number.NEGATIVE_INFINITY;
  /** When a publish last waited for the rate. */
  #waitedMs = Number.NEGATIVE_INFINITY;
  /** When the server was found to take less last. */
  #loweredMs = Number.NEGATIVE_INFINITY;
  /** When it refused some below the ceiling last, not soon after others. */
  #belowMs = Number.NEGATIVE_INFINITY;
  readonly #accepted = new Uint32Array(SLICE.count);
  readonly #refused = new Uint32Array(SLICE.count);
  #slice = 0;

  /** `save` gets each change of what is learned; undefined: no limit is known any more. */
  constructor(known?: LearnedRate, save: (learned: LearnedRate | undefined) => void = () => {}) {
    this.#save = save;
    if (!known || !isRate(known.perS)) return;
    const ceilingPerS = known.ceilingPerS !== undefined && isRate(known.ceilingPerS) ? known.ceilingPerS : undefined;
    this.#learned = { perS: known.perS, ceilingPerS, changedMs: Number.NEGATIVE_INFINITY, ceilingUntilMs: 0 };
  }

  /** Called when what is learned has changed. */
  watch(changed: () => void): void {
    this.#changed = changed;
  }

  /** Publishes a second, whatever the server would accept; undefined: as many as it accepts. */
  limitTo(mostPerS: number | undefined): void {
    this.#mostPerS = mostPerS;
  }

  /** A new connection. */
  opened(nowMs: number): void {
    this.#startedMs = Math.max(nowMs, this.#nextMs);
    if (this.#learned?.changedMs !== Number.NEGATIVE_INFINITY) return;
    // A time of another process says nothing here.
    this.#learned = { ...this.#learned, changedMs: nowMs, ceilingUntilMs: nowMs + this.#ceilingMs };
  }

  /** The rate in force and whether the server taught it; undefined: no limit is known. */
  state(): { readonly perS: number; readonly isLearned: boolean } | undefined {
    const learnedPerS = this.#learned?.perS ?? Number.POSITIVE_INFINITY;
    const perS = Math.min(learnedPerS, this.#mostPerS ?? Number.POSITIVE_INFINITY);
    return Number.isFinite(perS) ? { perS, isLearned: learnedPerS === perS } : undefined;
  }

  /** Ms until the next publish may be sent; 0: now. */
  waitMs(nowMs: number): number {
    if (this.#nextMs > nowMs) {
      this.#waitedMs = nowMs;
      this.#grow(nowMs);
    }
    return Math.max(0, this.#nextMs - nowMs);
  }

  sent(nowMs: number): void {
    const rate = this.state();
    if (rate) this.#nextMs = Math.max(this.#nextMs, nowMs - BURST_MS) + SECOND_MS / rate.perS;
  }

  accepted(nowMs: number): void {
    this.#count(this.#accepted, nowMs);
  }

  /**
   * The server did not take one that was sent at `sentMs`, because it was too much. `isCertain`: it said so of the whole connection, or had
   * dropped all that was under way; else one refusal among many changes nothing. True: the rate is lower now. Nothing that was sent before the
   * last change lowers it.
   */
  exceeded(sentMs: number, nowMs: number, isCertain = false): boolean {
    const { perS, ceilingPerS: before, changedMs = Number.NEGATIVE_INFINITY } = this.#learned ?? {};
    if (sentMs <= changedMs) return false;
    this.#count(this.#refused, nowMs);
    if (!isCertain && !this.#isMuchRefused()) return false;
    const isSoon = nowMs - this.#loweredMs < AGAIN_MS;
    const seen = this.#acceptedBefore(sentMs, nowMs);
    // A second that has hardly begun shows less than the server takes.
    const isShort = sentMs - this.#startedMs < SECOND_MS;
    const most = perS === undefined ? seen : isShort ? perS : Math.min(perS, Math.max(seen, LEAST_PER_S));
    const isBelow = !isSoon && before !== undefined && perS !== undefined && perS < before;
    const isPassing = isBelow && nowMs - this.#belowMs >= LOWER_WITHIN_MS;
    if (isBelow) this.#belowMs = nowMs;
    const found = perS === undefined && isShort ? undefined : Math.max(LEAST_PER_S, most);
    const ceilingPerS = isSoon || isPassing ? before : found;
    if (!isSoon) this.#before = { learned: this.#learned };
    if (before !== undefined && nowMs >= (this.#learned?.ceilingUntilMs ?? nowMs))
      this.#ceilingMs = Math.min(CEILING_MS.most, this.#ceilingMs * 2);
    const part = isSoon && perS !== undefined ? KEPT_PART_AGAIN : KEPT_PART;
    this.#loweredMs = nowMs;
    this.#set({ perS: Math.max(LEAST_PER_S, most * part), ...(ceilingPerS !== undefined && { ceilingPerS }) }, nowMs);
    this.#nextMs = this.#startedMs = nowMs + PAUSE_MS;
    return true;
  }

  /** The last changes had another cause than the rate. */
  undo(): void {
    if (!this.#before) return;
    this.#learned = this.#before.learned;
    this.#before = undefined;
    this.#loweredMs = this.#belowMs = Number.NEGATIVE_INFINITY;
    this.#tell();
  }

  #grow(nowMs: number): void {
    const learned = this.#learned;
    if (!learned || this.#waitedMs <= learned.changedMs) return;
    const isPast = nowMs >= learned.ceilingUntilMs;
    const ceiling = isPast ? undefined : learned.ceilingPerS;
    const { factor, everyMs } = ceiling !== undefined ? GROWTH.known : learned.ceilingPerS === undefined ? GROWTH.unknown : GROWTH.past;
    if (nowMs - learned.changedMs < everyMs) return;
    const perS = Math.min(learned.perS * factor, ceiling === undefined ? Number.POSITIVE_INFINITY : ceiling * CEILING_PART);
    if (perS <= learned.perS) return;
    if (perS > MOST_PER_S) {
      this.#learned = undefined;
      this.#tell();
    } else this.#set({ perS, ceilingPerS: learned.ceilingPerS }, nowMs, learned.ceilingUntilMs);
  }

  #set(rate: LearnedRate, changedMs: number, ceilingUntilMs = changedMs + this.#ceilingMs): void {
    this.#learned = { ...rate, changedMs, ceilingUntilMs };
    this.#tell();
  }

  #tell(): void {
    const learned = this.#learned;
    this.#save(learned && { perS: learned.perS, ...(learned.ceilingPerS !== undefined && { ceilingPerS: learned.ceilingPerS }) });
    this.#changed();
  }

  #count(slices: Uint32Array, nowMs: number): void {
    this.#turnTo(nowMs);
    slices[this.#slice % SLICE.count] = (slices[this.#slice % SLICE.count] ?? 0) + 1;
  }

  #isMuchRefused(): boolean {
    const refused = this.#sumOf(this.#refused, this.#slice, REFUSALS.withinMs);
    const all = refused + this.#sumOf(this.#accepted, this.#slice, REFUSALS.withinMs);
    return refused >= REFUSALS.least && refused >= REFUSALS.part * all;
  }

  /** Acknowledged in the best second of the last ones before too much was sent. */
  #acceptedBefore(sentMs: number, nowMs: number): number {
    this.#turnTo(nowMs);
    const last = Math.min(this.#slice, Math.floor((sentMs + BURST_MS) / SLICE.ms));
    let most = 0;
    for (let end = last; end > last - (REFUSALS.withinMs - SECOND_MS) / SLICE.ms; end--)
      most = Math.max(most, this.#sumOf(this.#accepted, end, SECOND_MS));
    return most;
  }

  /** In the slices up to `last`, over so many ms. */
  #sumOf(slices: Uint32Array, last: number, ms: number): number {
    let sum = 0;
    for (let slice = last; slice > last - ms / SLICE.ms; slice--)
      if (slice > this.#slice - SLICE.count && slice >= 0) sum += slices[slice % SLICE.count] ?? 0;
    return sum;
  }

  /** Empties the slices that have passed without an answer. */
  #turnTo(nowMs: number): void {
    const slice = Math.max(this.#slice, Math.floor(nowMs / SLICE.ms));
    for (let one = Math.max(this.#slice + 1, slice - SLICE.count + 1); one <= slice; one++) {
      this.#accepted[one % SLICE.count] = 0;
      this.#refused[one % SLICE.count] = 0;
    }
    this.#slice = slice;
  }
}
