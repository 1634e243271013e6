import type { Fault } from "../../model/fault.ts";

/** Names of the status codes that a client sees (OPC 10000-4, 7.38; OPC 10000-8, 6.3). */
export type StatusName =
  | "Good"
  | "Uncertain"
  | "UncertainLastUsableValue"
  | "BadConfigurationError"
  | "BadDataUnavailable"
  | "BadDeviceFailure"
  | "BadEncodingLimitsExceeded"
  | "BadInternalError"
  | "BadNoCommunication"
  | "BadNotReadable"
  | "BadOutOfRange"
  | "BadTypeMismatch"
  | "BadWaitingForInitialData";

/** The status of a variable that cannot be read while its source answers. */
export const FAULT_STATUS: { readonly [F in Fault]: StatusName } = {
  address_invalid: "BadConfigurationError",
  not_found: "BadConfigurationError",
  access_denied: "BadNotReadable",
  type_mismatch: "BadTypeMismatch",
  out_of_range: "BadOutOfRange",
  not_a_number: "BadDataUnavailable",
  device_error: "BadDeviceFailure",
  stale: "BadNoCommunication",
  no_answer: "BadNoCommunication",
  collector_error: "BadInternalError",
  program_changed: "BadDataUnavailable",
  values_lost: "BadDataUnavailable",
};

/** A value is the last usable one for so many of its source's intervals. */
const USABLE_INTERVALS = 3;
/** The values of a silent source, neither good nor bad, become stale after this time at the earliest: a readout has up to 10 s. */
const SILENCE_MS = 15_000;

export interface SourceHealth {
  /** The source's own status is ERROR. */
  readonly failed: boolean;
  readonly intervalMs: number;
}

/** fresh: the quality holds as it was read. last_usable: the last value is shown as uncertain. stale: no value is shown. */
export type Staleness = "fresh" | "last_usable" | "stale";

/** The staleness of a good or uncertain reading of `ageMs`. Pure; ages in ms on a monotonic clock. */
export function stalenessOf(ageMs: number, { failed, intervalMs }: SourceHealth): Staleness {
  const usableMs = USABLE_INTERVALS * intervalMs;
  if (failed) return ageMs < usableMs ? "last_usable" : "stale";
  return ageMs < Math.max(usableMs, SILENCE_MS) ? "fresh" : "stale";
}
