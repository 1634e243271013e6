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

/** Part of what the server accepted last that is sent from then on: a window of the server may begin between two of ours. */
const KEPT_PART = 0.8;
/** Part that is sent where the rate was lowered just before: the acknowledgements of then say too much. */
const KEPT_PART_AGAIN = 0.5;
const AGAIN_MS = 10_000;
/** The rate grows up to this part of the one that was refused: a burst after a stall of this thread still fits. */
const CEILING_PART = 0.85;
/** A limit may have been raised: after so long the ceiling is tried again. Each time that it holds, twice as long, up to a day. */
const CEILING_MS = { first: 3_600_000, most: 86_400_000 } as const;
/** Growth: fast where nothing shows a ceiling, or well below it; above a ceiling that is forgotten, in small steps. */
const GROWTH = { fast: { factor: 2, everyMs: 10_000 }, slow: { factor: 1.1, everyMs: 60_000 } } as const;
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
  readonly #accepted = new Uint32Array(SLICE.count);
  #slice = 0;

  /** `save` gets each change of what is learned; undefined: no limit is known any more. */
  constructor(known?: LearnedRate, save: (learned: LearnedRate | undefined) => void = () => {}) {
    this.#save = save;
    if (known && known.perS >= LEAST_PER_S && known.perS <= MOST_PER_S)
      this.#learned = { ...known, changedMs: Number.NEGATIVE_INFINITY, ceilingUntilMs: 0 };
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
    this.#turnTo(nowMs);
    this.#accepted[this.#slice % SLICE.count] = (this.#accepted[this.#slice % SLICE.count] ?? 0) + 1;
  }

  /**
   * The server did not take what was sent at `sentMs`, because it was too much. True: that is new; false: it was sent before the last change of
   * the rate.
   */
  exceeded(sentMs: number, nowMs: number): boolean {
    const { perS, changedMs = Number.NEGATIVE_INFINITY } = this.#learned ?? {};
    if (sentMs <= changedMs) return false;
    const isSoon = nowMs - changedMs < AGAIN_MS;
    const seen = this.#acceptedBefore(sentMs, nowMs);
    // A second that has hardly begun shows less than the server takes.
    const most = perS === undefined ? seen : Math.min(perS, sentMs - this.#startedMs < SECOND_MS ? perS : Math.max(seen, LEAST_PER_S));
    if (!isSoon) this.#before = { learned: this.#learned };
    if (this.#learned?.ceilingPerS !== undefined && nowMs >= this.#learned.ceilingUntilMs)
      this.#ceilingMs = Math.min(CEILING_MS.most, this.#ceilingMs * 2);
    this.#set(
      {
        perS: Math.max(LEAST_PER_S, most * (isSoon && perS !== undefined ? KEPT_PART_AGAIN : KEPT_PART)),
        ...(most >= LEAST_PER_S && { ceilingPerS: most }),
      },
      nowMs,
    );
    this.#nextMs = this.#startedMs = nowMs + PAUSE_MS;
    return true;
  }

  /** The last changes had another cause than the rate. */
  undo(): void {
    if (!this.#before) return;
    this.#learned = this.#before.learned;
    this.#before = undefined;
    this.#tell();
  }

  #grow(nowMs: number): void {
    const learned = this.#learned;
    if (!learned || this.#waitedMs <= learned.changedMs) return;
    const ceiling = nowMs < learned.ceilingUntilMs ? learned.ceilingPerS : undefined;
    const isPast = ceiling === undefined && learned.ceilingPerS !== undefined;
    const { factor, everyMs } = isPast ? GROWTH.slow : GROWTH.fast;
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

  /** Acknowledged in the second in which too much was sent. */
  #acceptedBefore(sentMs: number, nowMs: number): number {
    this.#turnTo(nowMs);
    const last = Math.min(this.#slice, Math.floor((sentMs + BURST_MS) / SLICE.ms));
    let count = 0;
    for (let slice = last; slice > last - SECOND_MS / SLICE.ms; slice--)
      if (slice > this.#slice - SLICE.count && slice >= 0) count += this.#accepted[slice % SLICE.count] ?? 0;
    return count;
  }

  /** Empties the slices that have passed without an acknowledgement. */
  #turnTo(nowMs: number): void {
    const slice = Math.max(this.#slice, Math.floor(nowMs / SLICE.ms));
    for (let one = Math.max(this.#slice + 1, slice - SLICE.count + 1); one <= slice; one++) this.#accepted[one % SLICE.count] = 0;
    this.#slice = slice;
  }
}
