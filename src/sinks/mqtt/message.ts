import { clockStateOf } from "../../model/clock.ts";
import type { Layout } from "../../model/layout.ts";
import type { Reading, Readout } from "../../model/value.ts";
import type { BatchPart, PublishedLoss, SinkBatch } from "../sink.ts";
import { type NamedColumns, namedColumnsOf } from "./columns.ts";
import { JsonBytes } from "./json-bytes.ts";
import type { PayloadPool } from "./payload-pool.ts";
import { type Timestamps, writeRows } from "./rows.ts";
import { type Int64, isWritable, timeText, writeFault, writeValue } from "./value-json.ts";

/** One MQTT payload: an envelope of the format `v: 1`, or rows (README.md in this folder). */
export interface Message {
  /** JSON in UTF-8. */
  readonly payload: Buffer;
  /** Readings in it, good or faulted. */
  readonly values: number;
  /** The place where they are in the batch; absent: all of the batch is in this message. */
  readonly parts?: readonly BatchPart[];
}

export interface MessageOptions {
  /** How int64 and uint64 are written in an envelope. */
  readonly int64: Int64;
  /** Absent: envelopes. */
  readonly rows?: { readonly timestamps: Timestamps } | undefined;
  /** Envelopes whose values are arrays, along names that stand before them once. */
  readonly hasColumns?: boolean;
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
  /** `,"source":…,"source_id":…` */
  readonly head: string;
  readonly columns: Columns;
}

/** By place in the layout. In few large pieces: there may be tens of thousands. */
interface Columns {
  readonly length: number;
  /** `"name":` of one after the other; nothing of a variable that is not published. */
  readonly keys: Buffer;
  /** The place where the key of `place` ends; it begins where the one before ends. */
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
    head: `,"source":${JSON.stringify(layout.source.name)},"source_id":${JSON.stringify(layout.source.uuid)}`,
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
 * None where nothing in it is published. Their payloads are of the pool.
 */
export function writeBatch(batch: SinkBatch, options: MessageOptions, pool: PayloadPool): WrittenBatch {
  const packing = new Packing(batch, options, pool);
  let number = 0;
  for (const readout of batch.readouts) packing.add(readout, number++);
  return packing.end();
}

/** One message for each reading, with the place of its variable in the layout; ids `<batch>.<readout>.<place>`. */
export function* writeEach(
  batch: SinkBatch,
  options: MessageOptions,
): Generator<Message & { readonly place: number; readonly time: number; readonly fits: boolean }> {
  const form = formOf(batch, options);
  const { columns } = prepare(batch.layout);
  let number = 0;
  for (const readout of batch.readouts) {
    for (let place = 0; place < columns.length; place++) {
      if (readout.readings[place] === undefined || !isPublished(columns, place)) continue;
      out.start();
      out.text(form.open(`${batch.id}.${number}.${place}`));
      form.write(readout, place, place + 1);
      out.text(form.close);
      const parts = [{ readout: number, from: place, to: place + 1 }];
      yield { payload: out.copy(), values: 1, parts, place, time: readout.time, fits: out.length <= options.maxBytes };
    }
    number++;
  }
}

/** A loss, values that the broker will never get, as one payload. Pure. */
export const writeLoss = ({ id, reason, from, to, values, clock }: PublishedLoss): string =>
  `{"v":1,"id":${JSON.stringify(id)},"from":${timeText(from)},"to":${timeText(to)},"clock":"${clock ?? "synchronised"}","count":${values},"reason":"${reason}"}`;

const NO_COLUMNS: Partial<NamedColumns> = {};

/** Text around the readouts of a message, and how one of them is written to `out`. */
interface Form {
  readonly open: (id: string) => string;
  readonly close: string;
  /** The readings from <= place < to; returns how many. */
  readonly write: (readout: Readout, from: number, to: number) => number;
  /** A readout in which no value has changed is written, too: it says so. */
  readonly saysUnchanged: boolean;
}

function formOf(batch: SinkBatch, { int64, rows, hasColumns = false }: MessageOptions): Form {
  const { layout, backlog } = batch;
  if (rows) {
    const write: Form["write"] = (readout, from, to) => writeRows(out, layout, readout, rows.timestamps, { from, to });
    return { open: () => "[", close: "]", write, saysUnchanged: false };
  }
  const { head, columns } = prepare(layout);
  const { mask, names } = hasColumns ? namedColumnsOf(batch) : NO_COLUMNS;
  return {
    open: (id) => `{"v":1,"id":${JSON.stringify(id)}${head}${names === undefined ? "" : `,"names":${names}`},"readouts":[`,
    close: backlog ? '],"backlog":true}' : "]}",
    write: (readout, from, to) => writeReadout(readout, columns, int64, from, to, mask),
    saysUnchanged: true,
  };
}

/**
 * Writes a batch in messages of at most splitBytes each. What is read from the file is decoded each time that it is gone over: each readout
 * is written once, and once more only where it has to be split between its values.
 */
class Packing {
  readonly #batch: SinkBatch;
  readonly #options: MessageOptions;
  readonly #pool: PayloadPool;
  readonly #length: number;
  readonly #form: Form;
  /** Of a message without the number in its id, and without readouts. */
  readonly #frameBytes: number;
  readonly #messages: Message[] = [];
  #tooLarge = 0;
  /** It is not one message. */
  #isCut = false;
  /** Of the message that is being written: its readouts are in `out`. */
  #values = 0;
  #parts: BatchPart[] = [];

  constructor(batch: SinkBatch, options: MessageOptions, pool: PayloadPool) {
    this.#batch = batch;
    this.#options = options;
    this.#pool = pool;
    this.#length = batch.layout.variables.length;
    this.#form = formOf(batch, options);
    this.#frameBytes = Buffer.byteLength(this.#form.open(batch.id)) + this.#form.close.length;
    out.start();
  }

  /** The readings from <= place < to of a readout; where they are too many, by halves. */
  add(readout: Readout, number: number, from = 0, to = this.#length): void {
    const { maxBytes, partBytes, splitBytes } = this.#options;
    const before = out.length;
    if (before > 0) out.byte(COMMA);
    const begin = out.length;
    const values = this.#form.write(readout, from, to);
    const saysUnchanged = this.#form.saysUnchanged && readout.unchanged !== undefined && from === 0 && to === this.#length;
    if (values === 0 && !saysUnchanged) {
      out.rewind(before);
      return;
    }
    const isOne = to - from === 1;
    // The only one of the batch has no number in its id: what is too large by these bytes may still go.
    const isFirst = before === 0 && !this.#isCut;
    const size = this.#sizeOf(out.length - begin) - (isOne && isFirst ? this.#numberBytes() : 0);
    if (size > (isOne ? maxBytes : Math.min(partBytes, maxBytes))) {
      out.rewind(before);
      this.#isCut = true;
      if (isOne) this.#tooLarge += values;
      else this.#addHalves(readout, number, from, to);
      return;
    }
    if (before > 0 && this.#sizeOf(out.length) > splitBytes) {
      this.#isCut = true;
      this.#flush(before);
      out.dropFirst(begin);
    }
    this.#values += values;
    this.#parts.push({ readout: number, from, to });
  }

  end(): WrittenBatch {
    if (!this.#isCut && this.#parts.length > 0) {
      const payload = out.copyBetween(this.#form.open(this.#batch.id), this.#form.close, this.#pool);
      return { messages: [{ payload, values: this.#values }], tooLarge: 0 };
    }
    this.#flush(out.length);
    return { messages: this.#messages, tooLarge: this.#tooLarge };
  }

  #addHalves(readout: Readout, number: number, from: number, to: number): void {
    const middle = (from + to) >> 1;
    this.add(readout, number, from, middle);
    this.add(readout, number, middle, to);
  }

  /** Of a message with so many bytes of readouts, and a number in its id. */
  #sizeOf(bytes: number): number {
    return this.#frameBytes + bytes + this.#numberBytes();
  }

  #numberBytes(): number {
    return 1 + String(this.#messages.length + 2).length;
  }

  /** The first bytes of what is written become a message. */
  #flush(bytes: number): void {
    if (this.#parts.length === 0) return;
    if (this.#sizeOf(bytes) > this.#options.maxBytes) this.#tooLarge += this.#values;
    else {
      const payload = out.copyBetween(
        this.#form.open(`${this.#batch.id}.${this.#messages.length + 1}`),
        this.#form.close,
        this.#pool,
        bytes,
      );
      this.#messages.push({ payload, values: this.#values, parts: this.#parts });
    }
    this.#values = 0;
    this.#parts = [];
  }
}

/** Writes the readings from <= place < to; returns how many. `mask`: of the columns, whose values are then an array. */
function writeReadout(readout: Readout, columns: Columns, int64: Int64, from: number, to: number, mask: Uint8Array | undefined): number {
  const { readings, time } = readout;
  let count = 0;
  let good = 0;
  let hasSourceTimes = false;
  let isUncertain = false;
  let isDoubted = false;
  const spanMs = Number.isFinite(readout.spanMs) ? readout.spanMs : 0;
  out.text(`{"ts":${timeText(time)},"span_ms":${spanMs},"clock":"${clockStateOf(readout)}","values":${mask ? "[" : "{"}`);
  const begin = out.length;
  if (mask && from > 0) writeNulls(mask, 0, from, true);
  for (let i = from; i < to; i++) {
    const reading = readings[i];
    const isColumn = mask?.[i] === 1;
    if (isColumn && out.length > begin) out.byte(COMMA);
    if (reading === undefined || !isPublished(columns, i)) {
      if (isColumn) out.text("null");
      continue;
    }
    count++;
    if (!isWritable(reading)) {
      if (isColumn) out.text("null");
      continue;
    }
    if (!mask) {
      if (good > 0) out.byte(COMMA);
      writeKey(columns, i);
    }
    good++;
    writeValue(out, reading.value, columns.isFloat32[i] === 1, int64);
    if (reading.quality === "uncertain") isUncertain = true;
    if (reading.doubt) isDoubted = true;
    if (reading.sourceTime !== undefined && reading.sourceTime !== time) hasSourceTimes = true;
  }
  if (mask && to < mask.length) writeNulls(mask, to, mask.length, out.length === begin);
  out.text(mask ? "]" : "}");
  if (isUncertain) writeUncertain(readings, columns, from, to);
  if (isDoubted) writeFaults("doubts", readings, columns, from, to, (reading) => isWritable(reading) && reading.doubt !== undefined);
  if (good < count) writeFaults("errors", readings, columns, from, to, (reading) => !isWritable(reading));
  if (hasSourceTimes) writeSourceTimes(readout, columns, from, to);
  const unchanged = unchangedIn(readout, columns, from, to);
  if (unchanged > 0) out.text(`,"unchanged":${unchanged}`);
  out.text("}");
  return count;
}

/** Columns of a readout whose values are in another part. */
function writeNulls(mask: Uint8Array, from: number, to: number, isFirst: boolean): void {
  let separator = isFirst ? "null" : ",null";
  for (let i = from; i < to; i++) {
    if (mask[i] !== 1) continue;
    out.text(separator);
    separator = ",null";
  }
}

/** Variables that were read, and are as they were reported last. */
function unchangedIn({ unchanged }: Readout, columns: Columns, from: number, to: number): number {
  if (!unchanged) return 0;
  let count = 0;
  for (let i = from; i < to; i++) if (unchanged[i] === 1 && isPublished(columns, i)) count++;
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

/** `doubts`: parts of the value have none. `errors`: it has no value. */
function writeFaults(
  key: "doubts" | "errors",
  readings: Readout["readings"],
  columns: Columns,
  from: number,
  to: number,
  isMeant: (reading: Reading) => boolean,
): void {
  let separator = `,"${key}":{`;
  for (let i = from; i < to; i++) {
    const reading = readings[i];
    if (reading === undefined || !isPublished(columns, i) || !isMeant(reading)) continue;
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
