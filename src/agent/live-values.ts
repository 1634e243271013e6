import { toJson } from "../base/json.ts";
import { LargeList } from "../base/large-list.ts";
import { shortFloat32 } from "../base/number.ts";
import type { Steps } from "../base/timer.ts";
import type { Layout } from "../model/layout.ts";
import { type LiveReadout, type LiveValue, MAX_LIVE_VALUES } from "../model/source-insight.ts";
import { type DataType, formatDataType, type Reading, type Readout, type Scalar, type Value } from "../model/value.ts";
import { READINGS_AT_ONCE } from "./readings.ts";

/** A look at the values keeps them for so long. */
const LOOKED_AT_MS = 60_000;
/** Of a source that is read this seldom, and has not many variables, the last readout is kept anyhow: nobody wants to wait for the next one. */
const SELDOM_MS = 5000;
const FEW_VARIABLES = 1000;

/** The last value of one variable of a source, for a glance at it. */
export interface Sample {
  readonly variable: string;
  readonly unit: string | null;
  /** When its readout began, epoch ms. */
  readonly at: number;
  /** As text; null: the reading is bad. */
  readonly value: string | null;
}

/** Those of a readout that a person means. */
export type IsMeant = (variable: { readonly name: string; readonly address: string; readonly uuid: string }) => boolean;

/**
 * The last readout of a source, copied while somebody looks at it: the driver reuses its readings, and many values that are kept for nobody
 * would outlive the youngest generation of the heap.
 */
export class LiveValues {
  /** Monotonic ms. */
  readonly #now: () => number;
  readonly #isAlwaysKept: boolean;
  #untilMs = Number.NEGATIVE_INFINITY;
  /** Of the variable that `sample` shows. */
  #shown: { readonly layout: Layout; readonly index: number } | undefined;
  #sample: { readonly at: number; readonly value: Value | undefined } | undefined;
  #last: { readonly layout: Layout; readonly readout: Readout; readonly raw: ReadonlyMap<number, Value> } | undefined;

  constructor(now: () => number, intervalMs: number, variables: number) {
    this.#now = now;
    this.#isAlwaysKept = intervalMs >= SELDOM_MS && variables <= FEW_VARIABLES;
  }

  /** In steps. `raw`: the readings before scaling, of the variables at `scaled`. */
  *take(layout: Layout, readout: Readout, raw: readonly (Reading | undefined)[], scaled: Iterable<number>): Steps<void> {
    this.#takeSample(layout, readout);
    if (!this.#isAlwaysKept && this.#now() > this.#untilMs) {
      this.#last = undefined;
      return;
    }
    const rawValues = new Map<number, Value>();
    for (const index of scaled) {
      const reading = raw[index];
      if (reading && reading.quality !== "bad") rawValues.set(index, copyOf(reading.value));
    }
    const readings = new LargeList<Reading | undefined>();
    for (const [i, reading] of readout.readings.entries()) {
      if (i > 0 && i % READINGS_AT_ONCE === 0) yield;
      readings.push(reading && reading.quality !== "bad" ? { ...reading, value: copyOf(reading.value) } : reading && { ...reading });
    }
    this.#last = { layout, readout: { ...readout, readings: readings.whole() }, raw: rawValues };
  }

  /** The first number of the source as it was read last, else its first variable; undefined: it was not read. */
  sample(): Sample | undefined {
    const variable = this.#shown?.layout.variables[this.#shown.index];
    if (!variable || !this.#sample) return undefined;
    const { at, value } = this.#sample;
    return { variable: variable.name, unit: variable.unit, at, value: value === undefined ? null : valueText(value, variable.type) };
  }

  #takeSample(layout: Layout, { time, readings }: Readout): void {
    if (this.#shown?.layout !== layout) this.#shown = { layout, index: shownOf(layout) };
    const reading = readings[this.#shown.index];
    // Lists may be long, and this is done with each readout.
    if (!reading || (reading.quality !== "bad" && typeof reading.value === "object")) return;
    this.#sample = { at: time, value: reading.quality === "bad" ? undefined : reading.value };
  }

  /** Keeps what is read from now on for a while; null: nothing has been read since somebody looks. */
  look(isMeant: IsMeant): LiveReadout | null {
    this.#untilMs = this.#now() + LOOKED_AT_MS;
    if (!this.#last) return null;
    const { layout, readout, raw } = this.#last;
    const values: LiveValue[] = [];
    let more = 0;
    for (const [index, variable] of layout.variables.entries()) {
      if (!isMeant(variable)) continue;
      if (values.length < MAX_LIVE_VALUES) values.push(liveValue(variable, readout.readings[index], raw.get(index)));
      else more++;
    }
    return { time: iso(readout.time), span_ms: readout.spanMs, clock_synced: readout.clockSynced, values, more };
  }
}

function liveValue(
  { uuid, name, address, type, unit, exploration }: Layout["variables"][number],
  reading: Reading | undefined,
  raw: Value | undefined,
): LiveValue {
  const base = { uuid, name, address, type: formatDataType(type), unit, exploration, raw: raw === undefined ? null : toJson(raw) };
  const none = { value: null, fault: null, detail: null, source_time: null };
  if (!reading) return { ...base, ...none, quality: "none" };
  if (reading.quality === "bad")
    return { ...base, ...none, raw: null, quality: "bad", fault: reading.fault, detail: reading.detail ?? null };
  const { quality, value, sourceTime, isSent } = reading;
  const sourceIso = sourceTime === undefined ? null : iso(sourceTime);
  return { ...base, ...none, quality, value: valueText(value, type), source_time: sourceIso, ...(isSent && { sent: true }) };
}

/** As JSON text, a float32 with its shortest digits. */
export function valueText(value: Value, { scalar }: DataType): string {
  const one = (item: Scalar): Scalar => (scalar === "float32" && typeof item === "number" ? shortFloat32(item) : item);
  return toJson(typeof value === "object" ? value.map(one) : one(value));
}

/** The first number, else the first variable. */
const shownOf = ({ variables }: Layout): number =>
  Math.max(
    0,
    variables.findIndex(({ type, exploration }) => !exploration && isNumber(type)),
  );

const isNumber = ({ scalar, count }: DataType): boolean => count === undefined && /^(u?int|float)/.test(scalar);

const copyOf = (value: Value): Value => (typeof value === "object" ? [...value] : value);
const iso = (ms: number): string => new Date(ms).toISOString();
