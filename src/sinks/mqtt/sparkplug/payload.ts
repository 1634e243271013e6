import type { Buffer } from "node:buffer";
import type { Value } from "../../../model/value.ts";
import { DATATYPES, packArray, type SparkplugType } from "./datatypes.ts";
import { ProtoBytes } from "./proto-bytes.ts";

/** A property of a metric, with the type that its value has. A number is a whole one of 32 bits. */
export type Properties = Readonly<Record<string, number | string | boolean>>;

/** One metric (Sparkplug 3.0, 6.4.6). `type` says how the value is written; `hasDatatype` whether the type is written too, as in a birth. */
export interface Metric {
  readonly name?: string | undefined;
  readonly alias?: number | undefined;
  /** Epoch ms. */
  readonly timestamp?: number | undefined;
  readonly type: SparkplugType;
  readonly hasDatatype?: boolean;
  readonly isHistorical?: boolean;
  readonly properties?: Properties | undefined;
  /** Undefined: it has none, and is null. Of the type (`valueProblem`). */
  readonly value: Value | undefined;
}

/** Fields of the messages, by the schema of Sparkplug B (sparkplug_b.proto, 3.0). */
const PAYLOAD = { timestamp: 1, metrics: 2, seq: 3 } as const;
const METRIC = { name: 1, alias: 2, timestamp: 3, datatype: 4, isHistorical: 5, isNull: 7, properties: 9 } as const;
const VALUE = { int: 10, long: 11, float: 12, double: 13, boolean: 14, string: 15, bytes: 16 } as const;
const PROPERTY_SET = { keys: 1, values: 2 } as const;
const PROPERTY = { type: 1, int: 3, boolean: 7, string: 8 } as const;

/** Most bytes that time and sequence number add to a message. */
export const HEAD_BYTES = 16;
const MAX_TIME_MS = Number.MAX_SAFE_INTEGER;

/** Used within one call. */
const SCRATCH = new ProtoBytes();

/** Epoch ms as Sparkplug has it: whole, and not before 1970. */
const wholeTime = (epochMs: number): number => Math.min(MAX_TIME_MS, Math.max(0, Math.round(epochMs)));

/** Adds a metric. Pure but for `out`. */
export function writeMetric(out: ProtoBytes, metric: Metric): void {
  const { name, alias, timestamp, type, hasDatatype, isHistorical, properties, value } = metric;
  const at = out.open(PAYLOAD.metrics);
  if (name !== undefined) out.text(METRIC.name, name);
  if (alias !== undefined) out.number(METRIC.alias, alias);
  if (timestamp !== undefined) out.number(METRIC.timestamp, wholeTime(timestamp));
  if (hasDatatype) out.number(METRIC.datatype, type.datatype);
  if (isHistorical) out.number(METRIC.isHistorical, 1);
  if (value === undefined) out.number(METRIC.isNull, 1);
  if (properties) writeProperties(out, properties);
  if (value !== undefined) writeValue(out, type, value);
  out.close(at);
}

/** A payload of metrics that are written already. `seq` undefined: it has none, as NDEATH. */
export function payloadOf(metrics: Uint8Array, epochMs: number, seq: number | undefined): Buffer {
  const out = SCRATCH;
  out.start();
  out.number(PAYLOAD.timestamp, wholeTime(epochMs));
  out.raw(metrics);
  if (seq !== undefined) out.number(PAYLOAD.seq, seq);
  return out.copy();
}

function writeProperties(out: ProtoBytes, properties: Properties): void {
  const set = out.open(METRIC.properties);
  const entries = Object.entries(properties);
  for (const [key] of entries) out.text(PROPERTY_SET.keys, key);
  for (const [, value] of entries) {
    const at = out.open(PROPERTY_SET.values);
    if (typeof value === "number") {
      out.number(PROPERTY.type, DATATYPES.int32);
      out.number(PROPERTY.int, value >>> 0);
    } else if (typeof value === "boolean") {
      out.number(PROPERTY.type, DATATYPES.bool);
      out.number(PROPERTY.boolean, Number(value));
    } else {
      out.number(PROPERTY.type, DATATYPES.string);
      out.text(PROPERTY.string, value);
    }
    out.close(at);
  }
  out.close(set);
}

function writeValue(out: ProtoBytes, { scalar, isArray }: SparkplugType, value: Value): void {
  if (isArray || typeof value === "object") {
    if (typeof value === "object") out.bytes(VALUE.bytes, packArray(scalar, value));
    return;
  }
  switch (typeof value) {
    case "bigint":
      out.bits64(VALUE.long, value);
      break;
    case "boolean":
      out.number(VALUE.boolean, Number(value));
      break;
    case "string":
      out.text(VALUE.string, value);
      break;
    case "number":
      if (scalar === "float32") out.float(VALUE.float, value);
      else if (scalar === "float64") out.double(VALUE.double, value);
      // Eclipse Tahu, from which most receivers come, has an unsigned 32-bit number in the 64-bit field.
      else if (scalar === "uint32") out.number(VALUE.long, value >>> 0);
      // Two's complement of 32 bits, of the shorter ones too.
      else out.number(VALUE.int, value >>> 0);
      break;
  }
}
