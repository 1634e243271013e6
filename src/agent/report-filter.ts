import type { Steps } from "../base/timer.ts";
import { fitsType } from "../model/fits.ts";
import type { Layout } from "../model/layout.ts";
import type { Reading, Readout, Scalar, Value } from "../model/value.ts";
import { READINGS_AT_ONCE } from "./readings.ts";
import { type ReportRule, type ReportRules, ruleOf } from "./report-rules.ts";

/** Qualities as they are kept by place; `NONE`: the next one is reported. Bools are kept apart from the numbers 0 and 1. */
const NONE = 0;
const QUALITY = { good: 1, uncertain: 2 } as const;
const IS_BOOL = 4;
const stateOf = ({ quality, value }: Exclude<Reading, { quality: "bad" }>): number =>
  QUALITY[quality] | (typeof value === "boolean" ? IS_BOOL : 0);

/** Values of one layout as they were reported last, by place. */
interface Reported {
  readonly layout: Layout;
  readonly rules: readonly (ReportRule | null)[];
  readonly states: Uint8Array;
  /** Numbers and bools; all others are in `others`. */
  readonly numbers: Float64Array;
  readonly others: Map<number, Value>;
  /** When each was reported, monotonic ms. */
  readonly atMs: Float64Array;
}

/**
 * Report by exception of one source: finds the values of a readout that need not be reported, because they are as they were reported last, but
 * for less than their deadband. Bad readings, those that follow a bad one, and those with parts that are in doubt are always reported, and all
 * values of a key readout: the first, the first after an outage, the first after `reportAll`, and one in a while.
 */
export class ReportFilter {
  readonly #rules: ReportRules;
  #reported: Reported | undefined;
  /** When all values were reported last, monotonic ms. */
  #keyMs = Number.NEGATIVE_INFINITY;
  #isKeyDue = true;
  #count = 0;
  /** Filled again for each readout. */
  #unchanged = new Uint8Array(0);

  constructor(rules: ReportRules) {
    this.#rules = rules;
  }

  /** Readings of the last readout that are not to be reported. */
  get count(): number {
    return this.#count;
  }

  /** The next readout has all values: a sink is new, values were lost, or the device was away. */
  reportAll(): void {
    this.#isKeyDue = true;
  }

  /**
   * By place 1 for each reading that is not to be reported, else 0; undefined: all are. In steps; valid until the next call. `nowMs`: monotonic.
   * `isPart`: it holds only some readings, and is no key readout.
   */
  *unchanged(layout: Layout, { readings }: Readout, nowMs: number, isPart = false): Steps<Uint8Array | undefined> {
    const isNew = this.#reported?.layout !== layout;
    const reported = isNew ? yield* begin(layout, this.#rules) : (this.#reported as Reported);
    this.#reported = reported;
    this.#isKeyDue ||= isNew || nowMs - this.#keyMs >= this.#rules.keyEveryMs;
    const isKey = this.#isKeyDue && !isPart;
    if (isKey) {
      this.#isKeyDue = false;
      this.#keyMs = nowMs;
    }
    if (this.#unchanged.length !== readings.length) this.#unchanged = new Uint8Array(readings.length);
    let count = 0;
    for (let place = 0; place < readings.length; place++) {
      if (place > 0 && place % READINGS_AT_ONCE === 0) yield;
      const reading = readings[place];
      const isUnchanged = !isKey && reading !== undefined && isAsReported(reported, place, reading, nowMs);
      this.#unchanged[place] = isUnchanged ? 1 : 0;
      if (isUnchanged) count++;
      else if (reading) keep(reported, place, reading, nowMs);
      // Not all sinks know what was reported of it: the next reading is.
      else if (isKey) reported.states[place] = NONE;
    }
    this.#count = count;
    return count > 0 ? this.#unchanged : undefined;
  }
}

function* begin(layout: Layout, rules: ReportRules): Steps<Reported> {
  const { length } = layout.variables;
  const own: (ReportRule | null)[] = [];
  // Most variables have the rule of the source: they share it.
  const common = ruleOf({ ...rules, variables: [] }, "");
  for (const [place, { name }] of layout.variables.entries()) {
    if (place > 0 && place % READINGS_AT_ONCE === 0) yield;
    own.push(rules.variables.length === 0 ? common : ruleOf(rules, name));
  }
  return {
    layout,
    rules: own,
    states: new Uint8Array(length),
    numbers: new Float64Array(length),
    others: new Map(),
    atMs: new Float64Array(length),
  };
}

function isAsReported({ layout, rules, states, numbers, others, atMs }: Reported, place: number, reading: Reading, nowMs: number): boolean {
  const rule = rules[place];
  if (!rule || reading.quality === "bad" || reading.doubt) return false;
  if (states[place] !== stateOf(reading) || nowMs - (atMs[place] ?? 0) >= rule.heartbeatMs) return false;
  const { value } = reading;
  if (!fits(layout, place, value)) return false;
  if (typeof value === "boolean") return !others.has(place) && numbers[place] === Number(value);
  if (typeof value === "number") return !others.has(place) && isWithin(rule, numbers[place] ?? 0, value);
  const before = others.get(place);
  if (typeof value === "bigint" && typeof before === "bigint") return value === before || isNear(rule, before, value);
  if (typeof value === "object" && typeof before === "object") return areSame(before, value);
  return value === before;
}

/** False: the value becomes a bad one where it is encoded. */
function fits({ variables }: Layout, place: number, value: Value): boolean {
  const variable = variables[place];
  return variable !== undefined && fitsType(value, variable.type);
}

const isWithin = ({ deadband, deadbandPart }: ReportRule, before: number, now: number): boolean =>
  before === now || Math.abs(now - before) <= Math.max(deadband, deadbandPart * Math.abs(before));

/** Differences of 64-bit integers are exact below 2^53, and above that far beyond any deadband. */
const isNear = ({ deadband, deadbandPart }: ReportRule, before: bigint, now: bigint): boolean =>
  Math.abs(Number(now - before)) <= Math.max(deadband, deadbandPart * Math.abs(Number(before)));

const areSame = (before: readonly Scalar[], now: readonly Scalar[]): boolean =>
  before.length === now.length && now.every((element, i) => Object.is(element, before[i]));

function keep({ layout, states, numbers, others, atMs }: Reported, place: number, reading: Reading, nowMs: number): void {
  const isBad = reading.quality === "bad" || reading.doubt || !fits(layout, place, reading.value);
  states[place] = isBad ? NONE : stateOf(reading);
  atMs[place] = nowMs;
  if (reading.quality === "bad") return;
  const { value } = reading;
  if (typeof value === "number" || typeof value === "boolean") {
    numbers[place] = Number(value);
    if (others.size > 0) others.delete(place);
    // Drivers use their arrays again.
  } else others.set(place, typeof value === "object" ? [...value] : value);
}
