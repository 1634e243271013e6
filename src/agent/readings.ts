import type { Layout } from "../model/layout.ts";
import type { ReasonError } from "../model/reason.ts";
import type { SourceReport } from "../model/report.ts";
import { scale } from "../model/scaling.ts";
import type { Reading } from "../model/value.ts";
import type { SourceSpec } from "./source-spec.ts";

const NAMED_FAULTS = 100;

export const NO_FAULTS: SourceReport["faults"] = [];

/**
 * One reading per variable of the layout: scaled, the refused ones filled in, and where the source failed half-way, `no_answer` for the
 * rest.
 */
export function complete(
  spec: SourceSpec,
  readings: readonly (Reading | undefined)[],
  failure: ReasonError | undefined,
): readonly (Reading | undefined)[] {
  if (spec.refused.size === 0 && spec.scalings.size === 0 && !failure) return readings;
  return spec.layout.variables.map((_, index) => {
    const refused = spec.refused.get(index);
    if (refused) return refused;
    const reading = readings[index];
    if (!reading) return failure && { quality: "bad", fault: "no_answer", detail: `${failure.reason.type}: ${failure.message}` };
    const scaling = spec.scalings.get(index);
    return scaling ? scale(reading, scaling, spec.float32s.has(index)) : reading;
  });
}

/** Pure. */
export function countReadings(readings: readonly (Reading | undefined)[]): { readonly read: number; readonly faulted: number } {
  let read = 0;
  let faulted = 0;
  for (const reading of readings)
    if (reading?.quality === "bad") faulted++;
    else if (reading) read++;
  return { read, faulted };
}

/** The first of them, by name. Pure. */
export function faultsOf(layout: Layout, readings: readonly (Reading | undefined)[]): SourceReport["faults"] {
  const faults: SourceReport["faults"][number][] = [];
  for (let i = 0; i < readings.length && faults.length < NAMED_FAULTS; i++) {
    const reading = readings[i];
    if (reading?.quality === "bad")
      faults.push({ variable: layout.variables[i]?.name ?? String(i), fault: reading.fault, detail: reading.detail ?? null });
  }
  return faults;
}
