import { durationProblem, parseDuration } from "../../base/duration.ts";
import type { Settings } from "../../model/settings.ts";
import { UsageError } from "../io.ts";

/**
 * A field of a data source in plain data, for options, requests and forms: its option as people type it, its name in the API, and the kind of
 * its text: `n` is a whole number or `none`, `name` the name or uuid of a machine.
 */
export interface FieldDescription {
  readonly option: keyof SourceTexts;
  readonly field: string;
  readonly kind: "text" | "duration" | "n" | "name";
  readonly description: string;
}

/** Texts of the options that were given. */
export type SourceTexts = { readonly [option in "machine" | "interval" | "limit" | "manufacturer" | "model" | "note"]?: string };

const MACHINE_WORDS = "machine of the source; created if it does not exist (default: the source's name)";

export const SOURCE_FIELDS: readonly FieldDescription[] = [
  { option: "machine", field: "machine", kind: "name", description: MACHINE_WORDS },
  { option: "interval", field: "readout_interval", kind: "duration", description: "time between two readouts, such as 5s" },
  { option: "limit", field: "readout_limit", kind: "n", description: "at most this many variables per readout, or none" },
  { option: "manufacturer", field: "manufacturer", kind: "text", description: "manufacturer of the device" },
  { option: "model", field: "device_model", kind: "text", description: "model of the device" },
  { option: "note", field: "note", kind: "text", description: "remarks" },
];

/** `later`: fields that a creation request lacks and a PATCH takes (API-V2, 2.4). The machine is the caller's. Pure. Throws UsageError. */
export function sourceValues(texts: SourceTexts, unit: Settings["readout_interval_unit"]) {
  const fields: Record<string, string | null> = {};
  const later: Record<string, number | null> = {};
  for (const { option, field, kind } of SOURCE_FIELDS) {
    const text = texts[option];
    if (text === undefined) continue;
    if (kind === "text") fields[field] = text === "" ? null : text;
    else if (kind === "duration") later[field] = intervalOf(text, unit);
    else if (kind === "n") later[field] = limitOf(text);
  }
  return { fields, later };
}

/** A duration in the API's unit. Throws UsageError. */
function intervalOf(text: string, unit: Settings["readout_interval_unit"]): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms <= 0) throw new UsageError(`--interval ${text}: ${durationProblem(text)}`);
  if (unit === "milliseconds") return ms;
  if (ms % 1000 === 0) return ms / 1000;
  throw new UsageError(
    `--interval ${text}: the API counts whole seconds; set interval: ${text} for this source in the settings file, or readout_interval_unit: milliseconds`,
  );
}

function limitOf(text: string): number | null {
  if (text === "none") return null;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new UsageError(`--limit ${text}: expected a number of variables, or none`);
}
