import type { Layout } from "../../model/layout.ts";
import type { Reading, Readout, Scalar, Value } from "../../model/value.ts";
import type { SinkBatch, SinkGap } from "../sink.ts";
import { float32Text } from "./number.ts";

/** One MQTT payload of the message format `v: 1` (README.md beside this file). */
export interface Message {
  readonly payload: string;
  /** Readings in it, good or faulted. */
  readonly values: number;
}

export interface MessageOptions {
  /** How int64 and uint64 are written: all digits as a JSON number, or in a string for readers that lose digits above 2^53. */
  readonly int64: "number" | "string";
  /** Bytes of UTF-8 that one payload may have; a value alone above it cannot be sent. */
  readonly maxBytes: number;
  /** Above this a readout is split between its values; maxBytes where that is less. */
  readonly partBytes: number;
  /** Above this a payload is split between its readouts; at most maxBytes. */
  readonly splitBytes: number;
}

export interface WrittenBatch {
  /** In the order of the readouts. */
  readonly messages: readonly Message[];
  /** Readings that alone are larger than maxBytes. */
  readonly tooLarge: number;
}

/** What a layout's messages have in common, written once. */
interface Prepared {
  /** `,"source":…,"source_id":…,` */
  readonly head: string;
  readonly columns: readonly Column[];
}

interface Column {
  /** `"name":`; undefined for a variable that is not published. */
  readonly key: string | undefined;
  readonly isFloat32: boolean;
}

const prepared = new WeakMap<Layout, Prepared>();

function prepare(layout: Layout): Prepared {
  const known = prepared.get(layout);
  if (known) return known;
  const made: Prepared = {
    head: `,"source":${JSON.stringify(layout.source.name)},"source_id":${JSON.stringify(layout.source.uuid)},`,
    columns: layout.variables.map(({ name, type, exploration }) => ({
      key: exploration ? undefined : `${JSON.stringify(name)}:`,
      isFloat32: type.scalar === "float32",
    })),
  };
  prepared.set(layout, made);
  return made;
}

/**
 * A batch as one message; as several, with ids `<batch>.1`, `<batch>.2`, …, where one would exceed splitBytes.
 * None where nothing in it is published. Pure.
 */
export function writeBatch(batch: SinkBatch, options: MessageOptions): WrittenBatch {
  const { head, columns } = prepare(batch.layout);
  const parts: Part[] = [];
  for (const readout of batch.readouts) {
    const part = writeReadout(readout, columns, options.int64);
    if (part.values > 0) parts.push({ ...part, readout });
  }
  const close = closing(batch);
  const whole = join(parts, open(batch.id, head), close);
  if (parts.length === 0 || fits(whole.payload, options.splitBytes)) return { messages: parts.length === 0 ? [] : [whole], tooLarge: 0 };
  return pack(parts, columns, (n) => open(`${batch.id}.${n}`, head), close, options);
}

interface Part extends Message {
  readonly readout: Readout;
}

/**
 * One message for each reading, with the place of its variable in the layout; ids `<batch>.<readout>.<place>`. Pure.
 */
export function* writeEach(
  batch: SinkBatch,
  { int64, maxBytes }: MessageOptions,
): Generator<Message & { readonly place: number; readonly fits: boolean }> {
  const { head, columns } = prepare(batch.layout);
  const close = closing(batch);
  for (const [number, readout] of batch.readouts.entries())
    for (let place = 0; place < columns.length; place++) {
      const reading = readout.readings[place];
      const column = columns[place];
      if (reading === undefined || column?.key === undefined) continue;
      const part = writeReadout({ ...readout, readings: [reading] }, [column], int64);
      const payload = `${open(`${batch.id}.${number}.${place}`, head)}${part.payload}${close}`;
      yield { payload, values: 1, place, fits: fits(payload, maxBytes) };
    }
}

/** What the far side will never get, as one payload. Pure. */
export const writeGap = ({ id, reason, from, to, values }: SinkGap): string =>
  `{"v":1,"id":${JSON.stringify(id)},"from":${timeText(from)},"to":${timeText(to)},"count":${values},"reason":"${reason}"}`;

const open = (id: string, head: string): string => `{"v":1,"id":${JSON.stringify(id)}${head}"readouts":[`;
const closing = ({ backlog }: SinkBatch): string => (backlog ? '],"backlog":true}' : "]}");

/** UTF-8 has at most three bytes for each UTF-16 unit: most payloads need not be measured. */
const fits = (text: string, maxBytes: number): boolean => text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes;

function join(parts: readonly Message[], head: string, close: string): Message {
  let payload = head;
  let values = 0;
  for (const [i, part] of parts.entries()) {
    payload += i === 0 ? part.payload : `,${part.payload}`;
    values += part.values;
  }
  return { payload: payload + close, values };
}

function pack(
  parts: readonly Part[],
  columns: readonly Column[],
  head: (n: number) => string,
  close: string,
  { maxBytes, splitBytes, partBytes, int64 }: MessageOptions,
): WrittenBatch {
  const messages: Message[] = [];
  let tooLarge = 0;
  let group: Message[] = [];
  let bytes = 0;
  const flush = () => {
    if (group.length > 0) messages.push(join(group, head(messages.length + 1), close));
    group = [];
    bytes = 0;
  };
  const frame = (): number => Buffer.byteLength(head(messages.length + 2)) + close.length;
  const add = (part: Message, size: number): void => {
    if (frame() + bytes + size > splitBytes) flush();
    group.push(part);
    bytes += size + 1;
  };
  /** The readings from <= place < to of a readout that is too large, by halves. */
  const addHalves = (readout: Readout, from: number, to: number): void => {
    const middle = (from + to) >> 1;
    for (const [start, end] of [
      [from, middle],
      [middle, to],
    ] as const) {
      const half = writeReadout(readout, columns, int64, start, end);
      if (half.values === 0) continue;
      const size = Buffer.byteLength(half.payload);
      if (frame() + size <= Math.min(partBytes, maxBytes)) add(half, size);
      else if (end - start > 1) addHalves(readout, start, end);
      else if (frame() + size <= maxBytes) add(half, size);
      else tooLarge += half.values;
    }
  };
  for (const part of parts) {
    const size = Buffer.byteLength(part.payload);
    if (frame() + size <= Math.min(partBytes, maxBytes)) add(part, size);
    else addHalves(part.readout, 0, columns.length);
  }
  flush();
  return { messages, tooLarge };
}

function writeReadout(readout: Readout, columns: readonly Column[], int64: "number" | "string", from = 0, to = columns.length): Message {
  const { readings, time } = readout;
  let values = "";
  let errors = "";
  let sourceTimes = "";
  let count = 0;
  for (let i = from; i < to; i++) {
    const reading = readings[i];
    const column = columns[i];
    if (reading === undefined || column?.key === undefined) continue;
    count++;
    const text = reading.quality === "bad" ? undefined : valueText(reading.value, column.isFloat32, int64);
    if (text === undefined) {
      errors += `${errors === "" ? "" : ","}${column.key}${faultText(reading)}`;
      continue;
    }
    values += values === "" ? column.key + text : `,${column.key}${text}`;
    if (reading.quality !== "bad" && reading.sourceTime !== undefined && reading.sourceTime !== time)
      sourceTimes += `${sourceTimes === "" ? "" : ","}${column.key}${timeText(reading.sourceTime)}`;
  }
  const payload = `{"ts":${timeText(time)},"span_ms":${numberText(readout.spanMs) ?? "0"},"values":{${values}}${
    errors === "" ? "" : `,"errors":{${errors}}`
  }${sourceTimes === "" ? "" : `,"source_ts":{${sourceTimes}}`}}`;
  return { payload, values: count };
}

/** What JSON has no word for (NaN, infinities) is a fault, not a value. */
function faultText(reading: Reading): string {
  if (reading.quality !== "bad") return '{"fault":"not_a_number"}';
  const detail = reading.detail === undefined ? "" : `,"detail":${JSON.stringify(reading.detail)}`;
  return `{"fault":"${reading.fault}"${detail}}`;
}

const MAX_TIME_MS = 8.64e15;
const timeText = (epochMs: number): string => (Math.abs(epochMs) <= MAX_TIME_MS ? `"${new Date(epochMs).toISOString()}"` : "null");

function valueText(value: Value, isFloat32: boolean, int64: "number" | "string"): string | undefined {
  if (typeof value !== "object") return scalarText(value, isFloat32, int64);
  let text = "[";
  for (let i = 0; i < value.length; i++) {
    const element = value[i];
    const one = element === undefined ? undefined : scalarText(element, isFloat32, int64);
    if (one === undefined) return undefined;
    text += i === 0 ? one : `,${one}`;
  }
  return `${text}]`;
}

function scalarText(value: Scalar, isFloat32: boolean, int64: "number" | "string"): string | undefined {
  switch (typeof value) {
    case "number":
      return isFloat32 && Number.isFinite(value) ? float32Text(value) : numberText(value);
    case "bigint":
      return int64 === "string" ? `"${value}"` : `${value}`;
    case "string":
      return JSON.stringify(value);
    case "boolean":
      return value ? "true" : "false";
  }
}

const numberText = (value: number): string | undefined => (Number.isFinite(value) ? String(value) : undefined);
