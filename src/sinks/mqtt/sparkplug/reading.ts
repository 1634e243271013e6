import type { Reading, Value } from "../../../model/value.ts";
import { faultOf, isWritable } from "../value-json.ts";
import { type SparkplugType, valueProblem } from "./datatypes.ts";
import type { Properties } from "./payload.ts";

/** Quality codes of Sparkplug 3.0, 6.4.9.1; there are no others. */
export const GOOD = 192;
export const BAD = 0;
/** The value is not current: none was read yet, or its source is not read now. */
export const STALE = 500;

/** One reading as a metric has it. */
export interface MetricState {
  /** Undefined: null. */
  readonly value: Value | undefined;
  readonly quality: number;
  /** Why the quality is not good; undefined: nothing is to be said. */
  readonly why: Properties | undefined;
}

/**
 * A reading as a metric of this type has it. A fault is null with its word and the device's own, so that the reason reaches the data team; a value
 * that the device itself doubts keeps its value and is not good: Sparkplug has no word between. Pure.
 */
export function stateOf(type: SparkplugType, reading: Reading): MetricState {
  if (!isWritable(reading)) return { value: undefined, quality: BAD, why: whyOf(faultOf(reading)) };
  const { value, quality, doubt } = reading;
  const problem = valueProblem(type, value);
  if (problem !== undefined) return { value: undefined, quality: BAD, why: { Fault: "type_mismatch", Detail: problem } };
  if (quality === "good") return { value, quality: GOOD, why: undefined };
  return { value, quality: BAD, why: { Uncertain: true, ...(doubt && whyOf(doubt)) } };
}

const whyOf = ({ fault, detail }: { readonly fault: string; readonly detail?: string | undefined }): Properties => ({
  Fault: fault,
  ...(detail !== undefined && { Detail: detail }),
});
