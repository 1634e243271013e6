import type { ReportedLoss } from "../../api/routes/losses.ts";
import { float32Text, numberText } from "../../base/number.ts";
import { clockStateOf } from "../../model/clock.ts";
import type { Layout } from "../../model/layout.ts";
import type { Reading, Scalar, Value } from "../../model/value.ts";
import type { SinkBatch } from "../sink.ts";

/** Readings of a batch that go into one request, in the order of the readouts. */
export interface Part {
  /** Place of the first one among the readings of the batch that can be written at all. */
  readonly from: number;
  /** One JSON object each. */
  readonly samples: readonly string[];
  /** Of the samples in UTF-8, with their commas. */
  readonly bytes: number;
  /** It is all that there is to write of the batch. */
  readonly whole: boolean;
}

/** What a layout's samples have in common, written once. */
interface Column {
  readonly head: string;
  readonly isFloat32: boolean;
}

/** What the API can say as a time: years have four digits (RFC 3339, 5.6). */
const FIRST_MS = Date.parse("0000-01-01T00:00:00.000Z");
const LAST_MS = Date.parse("9999-12-31T23:59:59.999Z");
const isTimely = (ms: number): boolean => ms >= FIRST_MS && ms <= LAST_MS;

const prepared = new WeakMap<Layout, readonly Column[]>();

function columnsOf(layout: Layout): readonly Column[] {
  const known = prepared.get(layout);
  if (known) return known;
  const made = layout.variables.map(({ uuid, type }) => ({
    head: `","variable":${JSON.stringify(uuid)},"value":`,
    isFloat32: type.scalar === "float32",
  }));
  prepared.set(layout, made);
  return made;
}

export interface PartsOptions {
  readonly maxBytes: () => number;
  readonly leftOut: (values: number) => void;
  /** The API takes what is said of the clock. */
  readonly takesClock: boolean;
  /** It takes arrays with elements that are null; else an array with one is bad. */
  readonly takesNulls: boolean;
}

/**
 * A batch in parts whose samples have at most `maxBytes` together, as it is at that moment; a sample alone may exceed it. None where there
 * is nothing to write. Readings at a time that the API cannot express are left out and counted. Made as they are taken.
 */
export function* partsOf({ layout, readouts }: SinkBatch, { maxBytes, leftOut, takesClock, takesNulls }: PartsOptions): Generator<Part> {
  const columns = columnsOf(layout);
  let from = 0;
  let samples: string[] = [];
  let bytes = 0;
  for (const readout of readouts) {
    const { time, readings } = readout;
    if (!isTimely(time)) {
      leftOut(readings.reduce((count, reading) => (reading === undefined ? count : count + 1), 0));
      continue;
    }
    const start = `{"time":"${new Date(time).toISOString()}`;
    const state = takesClock ? clockStateOf(readout) : "synchronised";
    const end = state === "synchronised" ? "}" : `,"clock":"${state}"}`;
    for (let place = 0; place < columns.length; place++) {
      const reading = readings[place];
      const column = columns[place];
      if (reading === undefined || column === undefined) continue;
      const sample = `${start}${column.head}${outcomeText(reading, column.isFloat32, takesNulls)}${end}`;
      const size = Buffer.byteLength(sample) + 1;
      if (samples.length > 0 && bytes + size > maxBytes()) {
        yield { from, samples, bytes, whole: false };
        from += samples.length;
        samples = [];
        bytes = 0;
      }
      samples.push(sample);
      bytes += size;
    }
  }
  if (samples.length > 0) yield { from, samples, bytes, whole: from === 0 };
}

/** The two halves of a part of two samples or more. Pure. */
export function halvesOf(part: Part): readonly [Part, Part] {
  const middle = part.samples.length >> 1;
  return [slice(part, 0, middle), slice(part, middle, part.samples.length)];
}

/** What is left of a part without the samples at `places`, in runs that lie together. Pure. */
export function without(part: Part, places: ReadonlySet<number>): readonly Part[] {
  const runs: Part[] = [];
  let start = 0;
  for (let place = 0; place <= part.samples.length; place++) {
    if (place < part.samples.length && !places.has(place)) continue;
    if (place > start) runs.push(slice(part, start, place));
    start = place + 1;
  }
  return runs;
}

function slice({ from, samples }: Part, start: number, end: number): Part {
  const taken = samples.slice(start, end);
  return { from: from + start, samples: taken, bytes: taken.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0), whole: false };
}

/**
 * The body of `POST /ext/v1/values`. A part's identifier names its place in the batch, and so its content however the batch is split when
 * it is sent again: a server that holds one part never takes another one for it. Pure.
 */
export function bodyOf({ id, layout }: Pick<SinkBatch, "id" | "layout">, { from, samples, whole }: Part): string {
  const name = whole ? id : `${id}.${from}-${from + samples.length}`;
  return `{"id":${JSON.stringify(name)},"data_source":${JSON.stringify(layout.source.uuid)},"values":[${samples.join(",")}]}`;
}

/** `value` and `quality`. Numbers that JSON cannot express (NaN, infinities) have no value. */
function outcomeText(reading: Reading, isFloat32: boolean, takesNulls: boolean): string {
  const text = reading.quality === "bad" ? undefined : valueText(reading.value, isFloat32, takesNulls);
  return text === undefined ? 'null,"quality":"bad"' : `${text},"quality":"${reading.quality}"`;
}

function valueText(value: Value, isFloat32: boolean, takesNulls: boolean): string | undefined {
  if (typeof value !== "object") return scalarText(value, isFloat32);
  const elements = value.map((element) => scalarText(element, isFloat32));
  if (!takesNulls && elements.includes(undefined)) return undefined;
  return `[${elements.map((text) => text ?? "null").join(",")}]`;
}

function scalarText(value: Scalar, isFloat32: boolean): string | undefined {
  switch (typeof value) {
    case "number":
      if (!Number.isFinite(value)) return undefined;
      return isFloat32 ? float32Text(value) : numberText(value);
    case "bigint":
      return value.toString();
    case "string":
      return JSON.stringify(value);
    case "boolean":
      return value ? "true" : "false";
  }
}

/** The body of `PUT /ext/v1/losses`. A time that the API cannot express is the nearest that it can. Pure. */
export function lossText({
  from,
  to,
  ...loss
}: Omit<ReportedLoss, "from" | "to"> & { readonly from: number; readonly to: number }): string {
  const timeText = (ms: number): string => new Date(Math.min(Math.max(ms, FIRST_MS), LAST_MS)).toISOString();
  return JSON.stringify({ ...loss, from: timeText(from), to: timeText(to) });
}
