import { formatDuration } from "../base/duration.ts";
import type { Steps } from "../base/timer.ts";
import type { Reading } from "../model/value.ts";
import { type Warning, warning } from "../model/warning.ts";
import { READINGS_AT_ONCE } from "./readings.ts";

/** Looked at this seldom: most readings have no time stamp of the device, and those that have are many. */
const LOOK_EVERY_MS = 10_000;
/** A stamp ahead of this machine by less says nothing: both clocks may be synchronised that badly. */
const AHEAD_MS = 2000;
/** A stamp that moves, and is behind by more than this and two intervals, is of a clock that is behind. */
const BEHIND_MS = 10_000;
/** Looks in a row that must say the same. */
const IN_A_ROW = 3;

type Skew = "ahead" | "behind" | "none";

/**
 * True: the clock of a device is another one than this machine's, by the newest time stamp among its readings. One that stands still says
 * nothing of being behind: the value may not have changed since.
 */
export class DeviceClock {
  readonly #intervalMs: number;
  #nextLookMs = Number.NEGATIVE_INFINITY;
  #newestMs: number | undefined;
  #seen: { readonly skew: Skew; readonly times: number } = { skew: "none", times: 0 };
  #warning: Warning | undefined;

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs;
  }

  /** One sentence; undefined: no difference is known. */
  get warning(): Warning | undefined {
    return this.#warning;
  }

  /** After a readout that ended at `endMs`, epoch ms, in steps; `nowMs` is monotonic. */
  *watch(readings: readonly (Reading | undefined)[], endMs: number, nowMs: number): Steps<void> {
    if (nowMs < this.#nextLookMs) return;
    this.#nextLookMs = nowMs + LOOK_EVERY_MS;
    const newestMs = yield* newestOf(readings);
    if (newestMs === undefined) return;
    const hasMoved = this.#newestMs !== undefined && newestMs !== this.#newestMs;
    this.#newestMs = newestMs;
    const aheadMs = newestMs - endMs;
    const skew = this.#skewOf(aheadMs, hasMoved);
    if (skew === undefined) return;
    this.#seen = { skew, times: this.#seen.skew === skew ? this.#seen.times + 1 : 1 };
    if (this.#seen.times >= IN_A_ROW)
      this.#warning = skew === "none" ? undefined : warning("device_clock_differs", words(skew, Math.abs(aheadMs)));
  }

  /** Undefined: this look says nothing. */
  #skewOf(aheadMs: number, hasMoved: boolean): Skew | undefined {
    if (aheadMs > AHEAD_MS) return "ahead";
    // What was ahead and stands still is caught up with.
    if (!hasMoved) return this.#seen.skew === "behind" ? undefined : "none";
    return -aheadMs > BEHIND_MS + 2 * this.#intervalMs ? "behind" : "none";
  }
}

const words = (skew: Exclude<Skew, "none">, byMs: number): string =>
  `the device's clock is about ${formatDuration(Math.round(byMs / 1000) * 1000)} ${skew === "ahead" ? "ahead of" : "behind"} this machine's; its time stamps are passed on as they are`;

function* newestOf(readings: readonly (Reading | undefined)[]): Steps<number | undefined> {
  let newestMs: number | undefined;
  for (const [i, reading] of readings.entries()) {
    if (i > 0 && i % READINGS_AT_ONCE === 0) yield;
    if (!reading || reading.quality === "bad" || reading.sourceTime === undefined) continue;
    if (newestMs === undefined || reading.sourceTime > newestMs) newestMs = reading.sourceTime;
  }
  return newestMs;
}
