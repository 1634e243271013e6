import type { Steps } from "../base/timer.ts";
import { clip, MAX_WORDS } from "../model/bounded-failure.ts";
import { doubted } from "../model/doubt.ts";
import { ownFault } from "../model/failure.ts";
import type { Layout } from "../model/layout.ts";
import type { ReasonError } from "../model/reason.ts";
import type { SourceReport } from "../model/report.ts";
import { type Scaling, scale } from "../model/scaling.ts";
import { withSourceTime } from "../model/source-time.ts";
import type { Reading } from "../model/value.ts";
import { badReading } from "./learned-groups.ts";
import { fitSettledSteps } from "./settle-types.ts";
import type { SourceSpec } from "./source-spec.ts";

const NAMED_FAULTS = 100;
/** ECMA-262, 21.4.1.1: what a Date holds on both sides of 1970. */
const MAX_DATE_MS = 8.64e15;

/** Readings in one step. */
export const READINGS_AT_ONCE = 2000;

export const NO_FAULTS: SourceReport["faults"] = [];

/** Readings as they are passed on, and how many of them are good and bad. */
export interface Looked {
  readonly all: readonly (Reading | undefined)[];
  readonly read: number;
  readonly faulted: number;
  /** Of these, for mistakes of the collector itself. */
  readonly own: number;
  /** Uncertain because parts of them have no value. */
  readonly doubted: number;
  /** Undefined: all times of the device are times. */
  readonly noTimes: NoTimes | undefined;
}

/** Readings that came with a time of the device that is none, and are passed on without it. */
interface NoTimes {
  readonly count: number;
  /** Place of the first in the layout, and its time, epoch ms. */
  readonly first: number;
  readonly firstMs: number;
}

/** What was read, with everything that the source knows of it; `layout` has the types that were settled with it. Pure, in steps. */
export function* lookAt(
  spec: SourceSpec,
  readings: readonly (Reading | undefined)[],
  failure: ReasonError | undefined,
  layout: Layout,
): Steps<Looked> {
  return yield* count(layout, yield* fitSettledSteps(layout, yield* complete(spec, readings, failure), spec.auto));
}

/** lookAt of a readout that holds only some readings: what it does not have stays out. */
export function* lookAtPart(spec: SourceSpec, readings: readonly (Reading | undefined)[], layout: Layout): Steps<Looked> {
  const scaled: (Reading | undefined)[] = [];
  for (let index = 0; index < readings.length; index++) {
    if (index > 0 && index % READINGS_AT_ONCE === 0) yield;
    const reading = readings[index];
    scaled.push(reading && completeOne(spec, index, reading, undefined));
  }
  return yield* count(layout, yield* fitSettledSteps(layout, scaled, spec.auto));
}

/**
 * One reading per variable of the layout: scaled, the refused ones filled in, and where the source failed half-way, `no_answer` for the
 * rest.
 */
function* complete(
  spec: SourceSpec,
  readings: readonly (Reading | undefined)[],
  failure: ReasonError | undefined,
): Steps<readonly (Reading | undefined)[]> {
  if (spec.refused.size === 0 && spec.scalings.size === 0 && !failure) return readings;
  const all: (Reading | undefined)[] = [];
  for (let index = 0; index < spec.layout.variables.length; index++) {
    if (index > 0 && index % READINGS_AT_ONCE === 0) yield;
    all.push(completeOne(spec, index, readings[index], failure));
  }
  return all;
}

function completeOne(
  { refused, scalings, float32s }: SourceSpec,
  index: number,
  reading: Reading | undefined,
  failure: ReasonError | undefined,
): Reading | undefined {
  const refusal = refused.get(index);
  if (refusal) return refusal;
  if (!reading) return failure && { quality: "bad", fault: "no_answer", detail: `${failure.reason.type}: ${failure.message}` };
  const scaling = scalings.get(index);
  return scaling ? scaledOrFault(reading, scaling, float32s.has(index)) : reading;
}

/** What the driver gives may be no value: that is its mistake over this variable. */
function scaledOrFault(reading: Reading, scaling: Scaling, isFloat32: boolean): Reading {
  try {
    return scale(reading, scaling, isFloat32);
  } catch (error) {
    return badReading(ownFault(error));
  }
}

/**
 * The last look at each, for every driver and sink: elements that are no numbers make a value uncertain, and a time of nothing is left out.
 * Of the bad ones the details have an end: status, log and sinks keep them.
 */
function* count({ variables }: Layout, readings: Looked["all"]): Steps<Looked> {
  let read = 0;
  let faulted = 0;
  let own = 0;
  let inDoubt = 0;
  let noTimes: NoTimes | undefined;
  let changed: (Reading | undefined)[] | undefined;
  for (let i = 0; i < readings.length; i++) {
    if (i > 0 && i % READINGS_AT_ONCE === 0) yield;
    const reading = readings[i];
    if (reading?.quality === "bad") {
      faulted++;
      const { fault, detail = "" } = reading;
      if (fault === "collector_error") own++;
      if (detail.length > MAX_WORDS) {
        changed ??= [...readings];
        changed[i] = { quality: "bad", fault, detail: clip(detail) };
      }
    } else if (reading) {
      read++;
      const timed = withSourceTime(reading);
      if (timed !== reading)
        noTimes = { first: i, firstMs: reading.sourceTime ?? Number.NaN, ...noTimes, count: (noTimes?.count ?? 0) + 1 };
      const seen = doubted(timed, (reading.type ?? variables[i]?.type)?.dimensions);
      if (seen.quality !== "bad" && seen.doubt) inDoubt++;
      if (seen === reading) continue;
      changed ??= [...readings];
      changed[i] = seen;
    }
  }
  return { all: changed ?? readings, read, faulted, own, doubted: inDoubt, noTimes };
}

/** One sentence. Pure. */
export function noTimeWords({ variables }: Layout, { count, first, firstMs }: NoTimes): string {
  const [isoDay] = Math.abs(firstMs) <= MAX_DATE_MS ? new Date(firstMs).toISOString().split("T") : [String(firstMs)];
  const name = variables[first]?.name ?? String(first);
  const who = count === 1 ? `${name} comes` : `${count} variables come`;
  const which = count === 1 ? "" : ` (${name}, for one)`;
  return `${who} with the device time ${isoDay}${which}, which is not a time: the time of the readout is used`;
}

/** The first that are bad, or have parts without a value, by name. Pure. */
export function faultsOf(layout: Layout, readings: readonly (Reading | undefined)[]): SourceReport["faults"] {
  const faults: SourceReport["faults"][number][] = [];
  for (let i = 0; i < readings.length && faults.length < NAMED_FAULTS; i++) {
    const reading = readings[i];
    const problem = reading?.quality === "bad" ? reading : reading?.doubt;
    if (problem) faults.push({ variable: layout.variables[i]?.name ?? String(i), fault: problem.fault, detail: problem.detail ?? null });
  }
  return faults;
}
