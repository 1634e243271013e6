import type { LinkReport } from "../../model/report.ts";
import type { LinkWindow } from "../lib/link-window.ts";

/**
 * Writes for each publish that the broker takes at once: one is older, so that there is always one to send, and the others are newer, so that
 * where publishes are what there is too few of, a newer one waits for each that is answered.
 */
export const WRITES = 3;

/** The link as status shows it, in two digits. */
export function linkReport(link: LinkWindow): LinkReport {
  const { bytesPerS, roundTripMs, windowBytes } = link.state();
  return {
    bytes_per_s: bytesPerS === undefined ? null : twoDigits(bytesPerS),
    round_trip_ms: roundTripMs === undefined ? null : twoDigits(Math.ceil(roundTripMs)),
    window_bytes: twoDigits(windowBytes),
  };
}

const twoDigits = (number: number): number => Number(number.toPrecision(2));
