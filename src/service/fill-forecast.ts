import { formatBytes } from "../base/bytes.ts";
import type { Log } from "../model/context.ts";
import { type Warning, warning } from "../model/warning.ts";

/** How full the disk is at one moment. */
export interface FillSample {
  /** Monotonic ms. */
  readonly atMs: number;
  /** That the collector may still write where its state folder is; undefined: nobody knows. */
  readonly freeBytes: number | undefined;
}

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * HOUR_MS;
/** Samples older than an hour are kept so far apart. */
const OLD_APART_MS = 10 * MINUTE_MS;
const LONGEST_MS = DAY_MS;

interface Rate {
  /** In words: over what it was measured. */
  readonly of: string;
  readonly windowMs: number;
  /** A shorter time says nothing. */
  readonly leastMs: number;
  /** Nearer than that, it is worth a warning. */
  readonly warnMs: number;
}

/** What fills slowly shows over a day, what fills fast in the last hour. */
const RATES: readonly Rate[] = [
  { of: "the last hour", windowMs: HOUR_MS, leastMs: 10 * MINUTE_MS, warnMs: 12 * HOUR_MS },
  { of: "the last day", windowMs: DAY_MS, leastMs: 3 * HOUR_MS, warnMs: 48 * HOUR_MS },
];
/** A warning lasts until the end is so much farther away. */
const CALM = 1.5;

/** When it is full, and at which rate. */
interface Forecast {
  readonly leftMs: number;
  readonly bytesPerHour: number;
  readonly of: string;
  readonly isNear: boolean;
  /** So far away that a warning ends. */
  readonly isFar: boolean;
}

/** Warns of a disk that fills up, hours before it is full, and says when that is over. */
export class FillForecast {
  readonly #stateDir: string;
  readonly #log: Log;
  /** Oldest first. */
  #samples: readonly FillSample[] = [];
  #warned: string | undefined;

  constructor(stateDir: string, log: Log) {
    this.#stateDir = stateDir;
    this.#log = log;
  }

  /** To be called about once a minute. */
  add(sample: FillSample): void {
    this.#samples = thinned([...this.#samples, sample]);
    const forecast = soonest(this.#samples);
    if (forecast?.isNear || (forecast && this.#warned !== undefined && !forecast.isFar)) {
      const words = this.#words(sample, forecast);
      if (this.#warned === undefined) this.#log.warn({}, words);
      this.#warned = words;
      return;
    }
    if (this.#warned === undefined) return;
    this.#warned = undefined;
    this.#log.info({}, "the disk does not fill up any more");
  }

  /** For status. */
  notes(): readonly Warning[] {
    return this.#warned === undefined ? [] : [warning("disk_fills", this.#warned)];
  }

  #words({ freeBytes = 0 }: FillSample, { leftMs, bytesPerHour, of }: Forecast): string {
    return `the disk of ${this.#stateDir} is full in about ${hoursWords(leftMs)} at the rate of ${of} (${formatBytes(freeBytes)} free, ${formatBytes(bytesPerHour)} less each hour): make room (df -h, du -xh --max-depth=2 /); on a full disk nothing is stored`;
  }
}

/** The forecast that is nearest to its warning; undefined: nothing fills up. Pure. */
function soonest(samples: readonly FillSample[]): Forecast | undefined {
  const last = samples.at(-1);
  const left = last?.freeBytes;
  if (!last || left === undefined) return undefined;
  let best: (Forecast & { readonly part: number }) | undefined;
  for (const { of, windowMs, leastMs, warnMs } of RATES) {
    const first = samples.find((one) => last.atMs - one.atMs <= windowMs && one.freeBytes !== undefined);
    const before = first?.freeBytes;
    if (!first || before === undefined || last.atMs - first.atMs < leastMs || before <= left) continue;
    const perMs = (before - left) / (last.atMs - first.atMs);
    const leftMs = left / perMs;
    const part = leftMs / warnMs;
    if (best === undefined || part < best.part)
      best = { leftMs, bytesPerHour: Math.round(perMs * HOUR_MS), of, isNear: part < 1, isFar: part > CALM, part };
  }
  return best;
}

/** Of the last hour all, of the time before one in ten minutes. Pure. */
function thinned(samples: readonly FillSample[]): readonly FillSample[] {
  const nowMs = samples.at(-1)?.atMs ?? 0;
  let keptMs = Number.NEGATIVE_INFINITY;
  return samples.filter(({ atMs }) => {
    if (nowMs - atMs > LONGEST_MS) return false;
    if (nowMs - atMs > HOUR_MS && atMs - keptMs < OLD_APART_MS) return false;
    keptMs = atMs;
    return true;
  });
}

const hoursWords = (ms: number): string =>
  ms < HOUR_MS ? `${Math.max(1, Math.round(ms / MINUTE_MS))} min` : `${Math.round(ms / HOUR_MS)} h`;
