import type { Steps } from "../../base/timer.ts";
import { decodeReadout } from "../../buffer/codec.ts";
import type { BufferFileReader } from "../../buffer/reader.ts";
import type { Layout } from "../../model/layout.ts";
import { hasTrend } from "./trend-choice.ts";
import { type TrendFigures, toFloat32 } from "./trend-memory.ts";

export interface BufferQuestion {
  /** Uuid. */
  readonly source: string;
  /** Uuid or name. */
  readonly variable: string;
  /** Epoch ms; undefined: as far as the buffer goes. */
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
}

/** Least, greatest and last number of a variable in each step, from the buffer. Times are epoch ms. */
export interface BufferTrend {
  /** Times of its first and last readout, of whichever source. */
  readonly span: { readonly fromMs: number; readonly toMs: number };
  readonly stepMs: number;
  /** When the first step begins. */
  readonly fromMs: number;
  readonly figures: Omit<TrendFigures, "faults">;
  /** Time was up: the rest is of another question, from here on. Undefined: all was read. */
  readonly nextMs: number | undefined;
}

/** Steps of one answer. */
const STEPS = 1440;
const LEAST_STEP_MS = 60_000;
/** One read: a few milliseconds, in which the file's writer may have to keep its log. */
const READ_BYTES = 256 * 1024;

/**
 * Reads what the buffer still has of a variable, through a connection that cannot write, in steps of one short read each, until `isOver` says that
 * time is up. Undefined: the buffer is empty. Throws what SQLite throws.
 */
export function* bufferTrend(reader: BufferFileReader, question: BufferQuestion, isOver: () => boolean): Steps<BufferTrend | undefined> {
  const ids = reader.ids();
  const span = ids && { fromMs: timeAt(reader, ids.first), toMs: timeAt(reader, ids.last) };
  if (!ids || span?.fromMs === undefined) return undefined;
  const whole = { fromMs: span.fromMs, toMs: Math.max(span.fromMs, span.toMs ?? span.fromMs) };
  const fromMs = Math.max(question.fromMs ?? whole.fromMs, whole.fromMs);
  const toMs = Math.min(question.toMs ?? whole.toMs, whole.toMs);
  const stepMs = Math.max(1, Math.ceil((toMs - fromMs) / STEPS / LEAST_STEP_MS)) * LEAST_STEP_MS;
  const count = Math.max(0, Math.floor((toMs - fromMs) / stepMs) + 1);
  const steps = new Steppings(count, fromMs, stepMs);
  const meant = new Map<number, Meant | undefined>();
  const begin = yield* firstFrom(reader, ids, fromMs);
  for (let at = begin; at <= ids.last; ) {
    const batches = reader.read(at, ids.last + 1, READ_BYTES);
    const last = batches.at(-1);
    if (!last) break;
    for (const { layout: id, time, payload } of batches) {
      if (!meant.has(id)) meant.set(id, meantIn(reader.layout(id), question));
      const found = meant.get(id);
      if (found && time >= fromMs && time <= toMs) steps.take(time, numberAt(found, payload));
    }
    if (last.time > toMs) break;
    at = last.id + 1;
    if (at <= ids.last && isOver()) return { span: whole, stepMs, fromMs, figures: steps, nextMs: Math.max(fromMs, last.time) };
    yield;
  }
  return { span: whole, stepMs, fromMs, figures: steps, nextMs: undefined };
}

class Steppings {
  readonly min: Float32Array<ArrayBuffer>;
  readonly max: Float32Array<ArrayBuffer>;
  readonly last: Float32Array<ArrayBuffer>;
  readonly #fromMs: number;
  readonly #stepMs: number;

  constructor(count: number, fromMs: number, stepMs: number) {
    this.min = new Float32Array(count).fill(Number.NaN);
    this.max = new Float32Array(count).fill(Number.NaN);
    this.last = new Float32Array(count).fill(Number.NaN);
    this.#fromMs = fromMs;
    this.#stepMs = stepMs;
  }

  take(timeMs: number, value: number | undefined): void {
    if (value === undefined) return;
    const step = Math.floor((timeMs - this.#fromMs) / this.#stepMs);
    const least = this.min[step] ?? Number.NaN;
    this.min[step] = Number.isNaN(least) ? value : Math.min(least, value);
    const greatest = this.max[step] ?? Number.NaN;
    this.max[step] = Number.isNaN(greatest) ? value : Math.max(greatest, value);
    this.last[step] = value;
  }
}

/** The id from which on batches are of this time or later: ids rise with time, but for a clock that was set. */
function* firstFrom(
  reader: BufferFileReader,
  { first, last }: { readonly first: number; readonly last: number },
  fromMs: number,
): Steps<number> {
  let [low, high] = [first, last];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const time = timeAt(reader, middle);
    if (time !== undefined && time < fromMs) low = middle + 1;
    else high = middle;
    yield;
  }
  return low;
}

/** Time of the first batch from an id on; undefined: there is none. */
const timeAt = (reader: BufferFileReader, id: number): number | undefined => reader.read(id, Number.MAX_SAFE_INTEGER, 1)[0]?.time;

/** The place of the variable in a layout. */
interface Meant {
  readonly layout: Layout;
  readonly place: number;
}

/** Undefined: the layout is of another source, or has no such number. */
function meantIn(layout: Layout | undefined, { source, variable }: BufferQuestion): Meant | undefined {
  if (layout?.source.uuid !== source) return undefined;
  const byUuid = layout.variables.findIndex((one) => one.uuid === variable);
  const place = byUuid >= 0 ? byUuid : layout.variables.findIndex((one) => one.name === variable);
  const found = layout.variables[place];
  return found && hasTrend(found) ? { layout, place } : undefined;
}

/** Undefined: it was bad, or not reported. */
function numberAt({ layout, place }: Meant, payload: Uint8Array): number | undefined {
  const reading = readout(layout, payload)?.readings[place];
  if (!reading || reading.quality === "bad") return undefined;
  const { value } = reading;
  const number = typeof value === "number" ? value : typeof value === "bigint" || typeof value === "boolean" ? Number(value) : Number.NaN;
  return Number.isFinite(number) ? toFloat32(number) : undefined;
}

/** Undefined: the batch is damaged. */
function readout(layout: Layout, payload: Uint8Array): ReturnType<typeof decodeReadout> | undefined {
  try {
    return decodeReadout(layout, payload);
  } catch {
    return undefined;
  }
}
