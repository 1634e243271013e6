import type { Readout } from "./value.ts";

/** Two clocks: a monotonic one for schedules, and the wall clock for time stamps, carried by the monotonic one between steps. */
export interface Clock {
  /** Ms on a scale that was the epoch's when the process started and that no step of the wall clock moves. */
  monotonicMs(): number;
  /** Epoch ms, UTC. */
  epochMs(): number;
  /** True when the system says that its clock is synchronised. */
  synced(): boolean;
  /** When the machine was started, on the scale of `monotonicMs`; a suspended machine counts as running. */
  bootedAtMs(): number;
  /** The last time that it was set by half a second or more while the process ran; undefined, or absent: it was not. */
  lastJump?(): ClockJump | undefined;
}

/** A wall clock that was set. */
export interface ClockJump {
  /** Epoch ms by the clock as it was set. */
  readonly atMs: number;
  /** Above zero: forward. */
  readonly byMs: number;
}

/** When the machine was started by this clock, epoch ms: another number once the clock was set. */
export const bootTimeOf = (clock: Clock): number => Math.round(clock.epochMs() - clock.monotonicMs() + clock.bootedAtMs());

/**
 * Ms since the machine's start, suspended times included. What is shown as a time, or as a duration up to now, is kept so: the wall clock
 * may be set in between.
 */
export const upMsOf = (clock: Clock): number => clock.monotonicMs() - clock.bootedAtMs();

/** When `upMs` was, epoch ms by the clock as it is set now. */
export const timeAt = (clock: Clock, upMs: number): number => bootTimeOf(clock) + upMs;

/** The result of timeAt in ISO 8601, UTC. */
export const isoTimeAt = (clock: Clock, upMs: number): string => new Date(timeAt(clock, upMs)).toISOString();

/**
 * How far the time stamp of a readout can be relied on. corrected: the clock was wrong, was set while the machine ran, and the stamp was
 * moved by as much; unsynchronised: nobody has said that the clock was right, and it was not set since.
 */
export const CLOCK_STATES = ["synchronised", "corrected", "unsynchronised"] as const;
export type ClockState = (typeof CLOCK_STATES)[number];

export function clockStateOf({ clockSynced, clockCorrectionMs }: Pick<Readout, "clockSynced" | "clockCorrectionMs">): ClockState {
  if (clockSynced || clockCorrectionMs === 0) return "synchronised";
  return clockCorrectionMs === undefined ? "unsynchronised" : "corrected";
}
