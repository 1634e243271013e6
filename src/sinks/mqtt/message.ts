import { clockStateOf } from "../../model/clock.ts";
import type { Layout } from "../../model/layout.ts";
import type { Readout } from "../../model/value.ts";
import type { BatchPart, PublishedLoss, SinkBatch } from "../sink.ts";
import { JsonBytes } from "./json-bytes.ts";
import { type Int64, isWritable, timeText, writeFault, writeValue } from "./value-json.ts";

/** One MQTT payload of the message format `v: 1` (README.md in this folder). */
export interface Message {
  /** JSON in UTF-8. */
  readonly payload: Buffer;
  /** Readings in it, good or faulted. */
  readonly values: number;
  /** Where they are in the batch; absent: all of the batch is in this message. */
  readonly parts?: readonly BatchPart[];
}

export interface MessageOptions {
  /** How int64 and uint64 are written. */
  readonly int64: Int64;
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
  /** `,"source":…,"source_id":…,"readouts":[` */
  readonly head: string;
  readonly columns: Columns;
}

/** By place in the layout. In few large pieces: there may be tens of thousands. */
interface Columns {
  readonly length: number;
  /** `"name":` of one after the other; nothing of a variable that is not published. */
  readonly keys: Buffer;
  /** Where the key of `place` ends; it begins where the one before ends. */
  readonly keyEnds: Uint32Array;
  readonly isFloat32: Uint8Array;
}

/** Used by one call at a time: nothing here waits. */
const out = new JsonBytes();
const COMMA = 0x2c;

const prepared = new WeakMap<Layout, Prepared>();

function prepare(layout: Layout): Prepared {
  const known = prepared.get(layout);
  if (known) return known;
  const made: Prepared = {
    head: `,"source":${JSON.stringify(layout.source.name)},"source_id":${JSON.stringify(layout.source.uuid)},"readouts":[`,
    columns: columnsOf(layout),
  };
  prepared.set(layout, made);
  return made;
}

function columnsOf({ variables }: Layout): Columns {
  const keyEnds = new Uint32Array(variables.length);
  const isFloat32 = new Uint8Array(variables.length);
  out.start();
  for (const [place, { name, type, exploration }] of variables.entries()) {
    if (!exploration) out.text(`${JSON.stringify(name)}:`);
    keyEnds[place] = out.length;
    if (type.scalar === "float32") isFloat32[place] = 1;
  }
  return { length: variables.length, keys: out.copy(), keyEnds, isFloat32 };
}

const keyStart = ({ keyEnds }: Columns, place: number): number => (place === 0 ? 0 : (keyEnds[place - 1] ?? 0));
const isPublished = (columns: Columns, place: number): boolean => (columns.keyEnds[place] ?? 0) > keyStart(columns, place);
const writeKey = (columns: Columns, place: number): void => out.raw(columns.keys, keyStart(columns, place), columns.keyEnds[place]);

/**
 * A batch as one message; as several, with ids `<batch>.1`, `<batch>.2`, …, where one would exceed splitBytes.
 * None where nothing in it is published.
 */
export function writeBatch(batch: SinkBatch, options: MessageOptions): WrittenBatch {
  const { head, columns } = prepare(batch.layout);
  out.start();
  out.text(open(batch.id, head));
  let values = 0;
  for (const readout of batch.readouts) {
    const before = out.length;
    if (values > 0) out.byte(COMMA);
    const written = writeReadout(readout, columns, options.int64);
    values += written;
    if (written === 0) out.rewind(before);
  }
  if (values === 0) return { messages: [], tooLarge: 0 };
  out.text(closing(batch));
  if (out.length <= options.splitBytes) return { messages: [{ payload: out.copy(), values }], tooLarge: 0 };
  return pack(batch, columns, (n) => open(`${batch.id}.${n}`, head), options);
}

/** One message for each reading, with the place of its variable in the layout; ids `<batch>.<readout>.<place>`. */
export function* writeEach(
  batch: SinkBatch,
  { int64, maxBytes }: MessageOptions,
): Generator<Message & { readonly place: number; readonly time: number; readonly fits: boolean }> {
  const { head, columns } = prepare(batch.layout);
  const close = closing(batch);
  let number = 0;
  for (const readout of batch.readouts) {
    for (let place = 0; place < columns.length; place++) {
      if (readout.readings[place] === undefined || !isPublished(columns, place)) continue;
      out.start();
      out.text(open(`${batch.id}.${number}.${place}`, head));
      writeReadout(readout, columns, int64, place, place + 1);
      out.text(close);
      const parts = [{ readout: number, from: place, to: place + 1 }];
      yield { payload: out.copy(), values: 1, parts, place, time: readout.time, fits: out.length <= maxBytes };
    }
    number++;
  }
}

/** A loss, values that the broker will never get, as one payload. Pure. */
export const writeLoss = ({ id, reason, from, to, values, clock }: PublishedLoss): string =>
  `{"v":1,"id":${JSON.stringify(id)},"from":${timeText(from)},"to":${timeText(to)},"clock":"${clock ?? "synchronised"}","count":${values},"reason":"${reason}"}`;

const open = (id: string, head: string): string => `{"v":1,"id":${JSON.stringify(id)}${head}`;
const closing = ({ backlog }: SinkBatch): string => (backlog ? '],"backlog":true}' : "]}");

/** The batch in messages of at most splitBytes each. */
function pack(
  batch: SinkBatch,
  columns: Columns,
  head: (n: number) => string,
  { maxBytes, splitBytes, partBytes, int64 }: MessageOptions,
): WrittenBatch {
  const close = closing(batch);
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
  const add = (part: Message): void => {
    if (frame() + bytes + part.payload.length > splitBytes) flush();
    group.push(part);
    bytes += part.payload.length + 1;
  };
  /** The readings from <= place < to of a readout; where they are too many, by halves. */
  const addPart = (readout: Readout, number: number, from: number, to: number): void => {
    out.start();
    const values = writeReadout(readout, columns, int64, from, to);
    if (values === 0) return;
    const size = frame() + out.length;
    const parts = [{ readout: number, from, to }];
    if (size <= Math.min(partBytes, maxBytes) || (to - from === 1 && size <= maxBytes)) {
      // Large, and a message of its own: copied once.
      if (size > splitBytes && group.length === 0)
        messages.push({ payload: out.copyBetween(head(messages.length + 1), close), values, parts });
      else add({ payload: out.copy(), values, parts });
    } else if (to - from === 1) tooLarge += values;
    else {
      const middle = (from + to) >> 1;
      addPart(readout, number, from, middle);
      addPart(readout, number, middle, to);
    }
  };
  let number = 0;
  for (const readout of batch.readouts) addPart(readout, number++, 0, columns.length);
  flush();
  return { messages, tooLarge };
}

function join(parts: readonly Message[], head: string, close: string): Message {
  out.start();
  out.text(head);
  let values = 0;
  for (const [i, part] of parts.entries()) {
    if (i > 0) out.byte(COMMA);
    out.raw(part.payload);
    values += part.values;
  }
  out.text(close);
  return { payload: out.copy(), values, parts: parts.flatMap((part) => part.parts ?? []) };
}

/** Writes the readings from <= place < to; returns how many. */
function writeReadout(readout: Readout, columns: Columns, int64: Int64, from = 0, to = columns.length): number {
  const { readings, time } = readout;
  let count = 0;
  let good = 0;
  let hasSourceTimes = false;
  let isUncertain = false;
  const spanMs = Number.isFinite(readout.spanMs) ? readout.spanMs : 0;
  out.text(`{"ts":${timeText(time)},"span_ms":${spanMs},"clock":"${clockStateOf(readout)}","values":{`);
  for (let i = from; i < to; i++) {
    const reading = readings[i];
    if (reading === undefined || !isPublished(columns, i)) continue;
    count++;
    if (!isWritable(reading)) continue;
    if (good++ > 0) out.byte(COMMA);
    writeKey(columns, i);
    writeValue(out, reading.value, columns.isFloat32[i] === 1, int64);
    if (reading.quality === "uncertain") isUncertain = true;
    if (reading.sourceTime !== undefined && reading.sourceTime !== time) hasSourceTimes = true;
  }
  out.text("}");
  if (isUncertain) writeUncertain(readings, columns, from, to);
  if (good < count) writeErrors(readings, columns, from, to);
  if (hasSourceTimes) writeSourceTimes(readout, columns, from, to);
  out.text("}");
  return count;
}

/** The names of the values of uncertain quality. */
function writeUncertain(readings: Readout["readings"], columns: Columns, from: number, to: number): void {
  let separator = ',"uncertain":[';
  for (let i = from; i < to; i++) {
    const reading = readings[i];
    if (reading?.quality !== "uncertain" || !isPublished(columns, i) || !isWritable(reading)) continue;
    out.text(separator);
    separator = ",";
    // The key without its colon.
    out.raw(columns.keys, keyStart(columns, i), (columns.keyEnds[i] ?? 0) - 1);
  }
  out.text("]");
}

function writeErrors(readings: Readout["readings"], columns: Columns, from: number, to: number): void {
  let separator = ',"errors":{';
  for (let i = from; i < to; i++) {
    const reading = readings[i];
    if (reading === undefined || !isPublished(columns, i) || isWritable(reading)) continue;
    out.text(separator);
    separator = ",";
    writeKey(columns, i);
    out.text("{");
    writeFault(out, reading);
    out.text("}");
  }
  out.text("}");
}

function writeSourceTimes({ readings, time }: Readout, columns: Columns, from: number, to: number): void {
  let separator = ',"source_ts":{';
  for (let i = from; i < to; i++) {
    const reading = readings[i];
    if (reading === undefined || !isPublished(columns, i) || !isWritable(reading)) continue;
    if (reading.sourceTime === undefined || reading.sourceTime === time) continue;
    out.text(separator);
    separator = ",";
    writeKey(columns, i);
    out.text(timeText(reading.sourceTime));
  }
  out.text("}");
}
