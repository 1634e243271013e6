import type { CommitWork, StoredBatch } from "./buffer.ts";
import { type IdRange, rangesOf, without } from "./position.ts";

/** Batches stamped by a clock that was not synchronised, as long as their stamps may still be corrected, or are. */
export interface StampRange extends IdRange {
  /** Of the machine: stamps of two starts have nothing in common. */
  readonly boot: string;
  /** When the machine was started by the clock that stamped them, epoch ms. */
  readonly bootTimeMs: number;
  /** What is added to their stamps, ms; null: not known yet. */
  readonly correctionMs: number | null;
}

/** A range in the file. */
export interface StampRow {
  readonly from_id: number;
  readonly to_id: number;
  readonly boot: string;
  readonly boot_time: number;
  readonly correction: number | null;
}

export const stampRange = ({ from_id, to_id, boot, boot_time, correction }: StampRow): StampRange => ({
  from: from_id,
  to: to_id,
  boot,
  bootTimeMs: boot_time,
  correctionMs: correction,
});

/** What stamped a batch. */
export interface Stamp {
  readonly clockSynced: boolean;
  /** As that of the range. */
  readonly bootTimeMs: number;
}

/** The end of a range that still grows. */
export const OPEN_END = Number.MAX_SAFE_INTEGER;
/** Clocks closer than this are one: times of the machine's start are measured this well, and small steps need no correction. */
const SAME_CLOCK_MS = 1000;
/** With more ranges some are given up: their stamps stay as they are. What is sent of one source and waits of another makes many of one. */
const MAX_RANGES = 1024;

export const isSameClock = (a: number, b: number): boolean => Math.abs(a - b) < SAME_CLOCK_MS;

/** The ranges after a batch with this id, which is above all before it. The same array where nothing changes. */
export function withStamp(
  ranges: readonly StampRange[],
  id: number,
  { clockSynced, bootTimeMs }: Stamp,
  boot: string,
): readonly StampRange[] {
  const last = ranges.at(-1);
  const open = last?.to === OPEN_END ? last : undefined;
  if (!clockSynced && open && open.boot === boot && isSameClock(open.bootTimeMs, bootTimeMs)) return ranges;
  const closed = open ? closedAt(ranges.slice(0, -1), open, id) : ranges;
  if (clockSynced) return closed;
  return bounded([...closed, { from: id, to: OPEN_END, boot, bootTimeMs, correctionMs: null }]);
}

/** Gives up the oldest, those that are corrected last: they may have been sent so, and would come again with another stamp. */
function bounded(ranges: readonly StampRange[]): readonly StampRange[] {
  const excess = ranges.length - MAX_RANGES;
  if (excess <= 0) return ranges;
  const isUnknown = ({ correctionMs, to }: StampRange): boolean => correctionMs === null && to !== OPEN_END;
  const isCorrected = ({ correctionMs }: StampRange): boolean => correctionMs !== null;
  const givenUp = new Set([...ranges.filter(isUnknown), ...ranges.filter(isCorrected)].slice(0, excess));
  return ranges.filter((range) => !givenUp.has(range));
}

/** With the range ended at the id; without it where nothing is in it, because all that was has been sent. */
const closedAt = (ranges: readonly StampRange[], open: StampRange, id: number): readonly StampRange[] =>
  open.from < id ? [...ranges, { ...open, to: id }] : ranges;

/** The ranges once it is known that a clock with this time of the machine's start is right. The same array where nothing changes. */
export function corrected(ranges: readonly StampRange[], boot: string, bootTimeMs: number): readonly StampRange[] {
  const isMeant = (range: StampRange): boolean => range.correctionMs === null && range.boot === boot && range.to !== OPEN_END;
  if (!ranges.some(isMeant)) return ranges;
  return ranges.map((range) => {
    if (!isMeant(range)) return range;
    return { ...range, correctionMs: isSameClock(range.bootTimeMs, bootTimeMs) ? 0 : bootTimeMs - range.bootTimeMs };
  });
}

/** The ranges without ids (rising, apart) that were sent with the stamps they have. The same array where nothing changes. */
export function withoutUsed(ranges: readonly StampRange[], used: readonly IdRange[]): readonly StampRange[] {
  if (!ranges.some((range) => used.some(({ from, to }) => from < range.to && to > range.from))) return ranges;
  return bounded(ranges.flatMap((range) => without([range], used).map((rest) => ({ ...range, ...rest }))));
}

/** A clock that was set is taken for right after this, although nobody says that it is synchronised. */
const STEADY_MS = 60_000;

/** Keeps the stamps of one opening of a file: which may be corrected, and from when on by how much. */
export class StampBook {
  readonly #boot: string;
  readonly #monotonicMs: () => number;
  /** The clock that stamped last, and since when, monotonic ms. */
  #clock: (Stamp & { readonly sinceMs: number }) | undefined;

  constructor(boot: string, monotonicMs: () => number) {
    this.#boot = boot;
    this.#monotonicMs = monotonicMs;
  }

  /** The stamps of the file after these batches and this work. */
  after<S extends { readonly stamps: readonly StampRange[] }>(
    before: S,
    batches: readonly StoredBatch[],
    stamps: readonly (Stamp | undefined)[],
    { stampsUsed = [] }: CommitWork,
  ): S {
    let ranges = before.stamps;
    for (const [i, { id }] of batches.entries()) {
      const stamp = stamps[i];
      if (!stamp) continue;
      this.#see(stamp);
      ranges = withStamp(ranges, id, stamp, this.#boot);
    }
    // First, since those were sent before anything of this was known.
    if (stampsUsed.length > 0) ranges = withoutUsed(ranges, rangesOf(stampsUsed));
    if (this.#isRight()) ranges = corrected(ranges, this.#boot, this.#clock?.bootTimeMs ?? 0);
    return ranges === before.stamps ? before : { ...before, stamps: ranges };
  }

  #see(stamp: Stamp): void {
    const isSame = this.#clock !== undefined && isSameClock(this.#clock.bootTimeMs, stamp.bootTimeMs);
    if (isSame && this.#clock?.clockSynced === stamp.clockSynced) return;
    this.#clock = { ...stamp, sinceMs: isSame ? (this.#clock?.sinceMs ?? 0) : this.#monotonicMs() };
  }

  /** When the machine was started by its clock, and whether that is said to be synchronised; undefined: nothing is known of it yet. */
  right(): Stamp | undefined {
    return this.#isRight() ? this.#clock : undefined;
  }

  #isRight(): boolean {
    return this.#clock !== undefined && (this.#clock.clockSynced || this.#monotonicMs() - this.#clock.sinceMs >= STEADY_MS);
  }
}

/** The ranges without those of which no batch is left. The same array where nothing changes. */
export const stampsFrom = (ranges: readonly StampRange[], firstId: number): readonly StampRange[] =>
  ranges.some(({ to }) => to <= firstId) ? ranges.filter(({ to }) => to > firstId) : ranges;
