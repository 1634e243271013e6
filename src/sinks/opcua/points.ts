import { DataValue, StatusCodes, Variant, VariantArrayType } from "node-opcua-client";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import type { DataType, Reading } from "../../model/value.ts";
import { contentOf, type VariantContent } from "./data-type.ts";
import { FAULT_STATUS, type Staleness, type StatusName } from "./quality.ts";

/** As much of node-opcua's variable as is used: the value that every read sees, and who waits for changes. */
export interface ServedVariable {
  $dataValue: DataValue;
  listenerCount(event: "value_changed"): number;
  emit(event: "value_changed", value: DataValue): boolean;
}

/** The value of a variable as it is served. */
export interface Point {
  readonly node: ServedVariable;
  /** Monotonic ms of the last good or uncertain reading; undefined: there was none, or a bad one since. */
  readAtMs: number | undefined;
  /** What has become of that reading. */
  staleness: Staleness;
  /** Any reading came. */
  isInitial: boolean;
}

const ARRAY_TYPE = { scalar: VariantArrayType.Scalar, array: VariantArrayType.Array, matrix: VariantArrayType.Matrix } as const;

export function createPoint(node: ServedVariable): Point {
  const point: Point = { node, readAtMs: undefined, staleness: "fresh", isInitial: true };
  node.$dataValue = dataValue(undefined, "BadWaitingForInitialData", null, new Date());
  return point;
}

/** When a reading was made. */
export interface ReadAt {
  readonly readoutTime: Date;
  /** Monotonic. */
  readonly readAtMs: number;
  /** Stale already when it comes. */
  readonly isOld: boolean;
}

/** What was read. `type` is that of the layout of the reading. `tooLarge`: bytes of a value that no answer may have. */
export function putReading(
  point: Point,
  reading: Reading,
  type: DataType,
  { readoutTime, readAtMs, isOld, tooLarge }: ReadAt & { readonly tooLarge: number | undefined },
  log: Log,
): void {
  const now = new Date();
  point.isInitial = false;
  point.readAtMs = undefined;
  if (reading.quality === "bad") {
    put(point.node, dataValue(undefined, FAULT_STATUS[reading.fault], readoutTime, now), log);
    return;
  }
  const time = reading.sourceTime === undefined ? readoutTime : new Date(reading.sourceTime);
  const content = contentOf(reading.value, type.scalar === "auto" ? (reading.type ?? type) : type);
  if (!content || isOld || tooLarge !== undefined) {
    const status = isOld ? "BadNoCommunication" : content ? "BadEncodingLimitsExceeded" : "BadTypeMismatch";
    put(point.node, dataValue(undefined, status, time, now), log);
    return;
  }
  point.readAtMs = readAtMs;
  point.staleness = "fresh";
  put(point.node, dataValue(content, reading.quality === "good" ? "Good" : "Uncertain", time, now), log);
}

/** The last reading is no longer what it was. Its value stays while it is usable, with the time it has. */
export function degrade(point: Point, staleness: Exclude<Staleness, "fresh">, now: Date, log: Log): void {
  if (point.staleness === staleness) return;
  point.staleness = staleness;
  if (staleness === "stale") {
    put(point.node, dataValue(undefined, "BadNoCommunication", now, now), log);
    return;
  }
  const last = point.node.$dataValue.clone();
  last.statusCode = StatusCodes.UncertainLastUsableValue;
  last.serverTimestamp = now;
  put(point.node, last, log);
}

/** Of what the server says of itself. */
export function putOwn(node: ServedVariable, content: VariantContent | undefined, status: StatusName, now: Date, log: Log): void {
  put(node, dataValue(content, status, now, now), log);
}

function dataValue(content: VariantContent | undefined, status: StatusName, sourceTime: Date | null, now: Date): DataValue {
  const made = new DataValue(null);
  if (content) {
    const variant = new Variant(null);
    variant.dataType = content.dataType;
    variant.arrayType = ARRAY_TYPE[content.kind];
    variant.value = content.value;
    variant.dimensions = content.dimensions;
    made.value = variant;
  }
  made.statusCode = StatusCodes[status];
  made.sourceTimestamp = sourceTime;
  made.serverTimestamp = now;
  return made;
}

/**
 * The types were checked, and a new object each time is what the library asks for: its own setter checks, clones and compares every value,
 * which costs more than all else. What a client's monitored item throws (a queue that overflows with a bad status) is its own loss.
 */
function put(node: ServedVariable, value: DataValue, log: Log): void {
  node.$dataValue = value;
  if (node.listenerCount("value_changed") === 0) return;
  try {
    node.emit("value_changed", value);
  } catch (error) {
    log.debug({ err: messageOf(error).slice(0, 300) }, "a monitored item could not take a value");
  }
}
