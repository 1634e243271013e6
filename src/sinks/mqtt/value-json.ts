import { float32Text } from "../../base/number.ts";
import type { Reading, Scalar, Value } from "../../model/value.ts";
import type { JsonBytes } from "./json-bytes.ts";

/** How int64 and uint64 are written: all digits as a JSON number, or in a string for readers that lose digits above 2^53. */
export type Int64 = "number" | "string";

export type WritableReading = Extract<Reading, { readonly value: Value }>;

/** What JSON has no word for (NaN, infinities) is a fault, not a value; an element of an array is null. */
export function isWritable(reading: Reading): reading is WritableReading {
  if (reading.quality === "bad") return false;
  const { value } = reading;
  return typeof value !== "number" || Number.isFinite(value);
}

/** The fault of a reading that is not writable or in doubt, and the words for it. */
export const faultOf = (reading: Reading): { readonly fault: string; readonly detail?: string | undefined } =>
  reading.quality === "bad" ? reading : (reading.doubt ?? { fault: "not_a_number" });

/** `"fault":…,"detail":…` of a reading that is not writable or in doubt. */
export function writeFault(out: JsonBytes, reading: Reading): void {
  const { fault, detail } = faultOf(reading);
  out.text(`"fault":"${fault}"`);
  if (detail !== undefined) out.text(`,"detail":${JSON.stringify(detail)}`);
}

const MAX_TIME_MS = 8.64e15;

/** ISO 8601 UTC; undefined: no calendar has this time. */
export const isoTime = (epochMs: number): string | undefined =>
  Math.abs(epochMs) <= MAX_TIME_MS ? new Date(epochMs).toISOString() : undefined;

/** As JSON: a string, or null where no calendar has this time. */
export function timeText(epochMs: number): string {
  const text = isoTime(epochMs);
  return text === undefined ? "null" : `"${text}"`;
}

/** A writable value as JSON; arrays and matrices element by element, a matrix row by row. */
export function writeValue(out: JsonBytes, value: Value, isFloat32: boolean, int64: Int64): void {
  if (typeof value !== "object") {
    writeScalar(out, value, isFloat32, int64);
    return;
  }
  out.text("[");
  for (let i = 0; i < value.length; i++) {
    if (i > 0) out.text(",");
    writeScalar(out, value[i] as Scalar, isFloat32, int64);
  }
  out.text("]");
}

function writeScalar(out: JsonBytes, value: Scalar, isFloat32: boolean, int64: Int64): void {
  switch (typeof value) {
    case "number":
      if (!Number.isFinite(value)) out.text("null");
      else if (isFloat32 && (value | 0) !== value) out.text(float32Text(value));
      else out.number(value);
      break;
    case "bigint":
      out.text(int64 === "string" ? `"${value}"` : `${value}`);
      break;
    case "string":
      out.text(JSON.stringify(value));
      break;
    case "boolean":
      out.text(value ? "true" : "false");
      break;
  }
}
