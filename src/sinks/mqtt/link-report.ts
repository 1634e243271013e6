import type { LinkReport } from "../../model/report.ts";
import type { LinkWindow } from "../lib/link-window.ts";
import type { PublishRate } from "../lib/publish-rate.ts";

/**
 * Writes for each publish that the broker takes at once: one is older, so that there is always one to send, and the others are newer, so that
 * where publishes are what there is too few of, a newer one waits for each that is answered.
 */
export const WRITES = 3;

/** The limits of link and broker as status shows them, in two digits. */
export function linkReport(link: LinkWindow, rate: PublishRate): LinkReport {
  const { perS } = rate.state() ?? {};
  const { bytesPerS, roundTripMs, windowBytes } = link.state();
  return {
    bytes_per_s: bytesPerS === undefined ? null : twoDigits(bytesPerS),
    round_trip_ms: roundTripMs === undefined ? null : twoDigits(Math.ceil(roundTripMs)),
    window_bytes: twoDigits(windowBytes),
    publishes_per_s: perS === undefined ? null : twoDigits(perS),
  };
}

/** A number as people are shown it. */
export const twoDigits = (number: number): number => Number(number.toPrecision(2));
