import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import { readBoundedFile } from "../../lib/bounded-file.ts";
import { errorCode } from "../../model/failure.ts";
import { hashOf, parseExact } from "../lib/proof.ts";
import type { MemoryLocation, SinkBatch } from "../sink.ts";

/** Values of one readout: how many, and the sum of their hashes; null: it is not certain which of them the platform took. */
export interface Content {
  readonly values: number;
  readonly hash: number | null;
}

const readoutSchema = z.tuple([z.number(), z.number().nullable(), z.number()]);
const lineSchema = z.object({ s: z.string(), n: z.string(), id: z.string(), r: z.array(readoutSchema) });
const headSchema = z.object({ endpoint: z.string(), since: z.number() });

/** A value as the API writes it. */
export interface SentValue {
  readonly time: string;
  readonly variable: string;
  readonly value?: unknown;
  readonly quality: string;
}

/** A batch that the platform has acknowledged: its source, and time (epoch ms), hash and number of values of each of its readouts. */
type Line = z.infer<typeof lineSchema>;

/** Two of them hold the last 8 to 16 MiB: at 125 bytes a batch, the last hour of 18 to 37 sources that publish each second. */
const MAX_FILE_BYTES = 8 * 2 ** 20;
/** Longer than any file that was written: its last line is one batch. */
const MAX_READ_BYTES = 64 * 2 ** 20;

const fileOf = (folder: string, uuid: string): string => path.join(folder, `${encodeURIComponent(uuid)}.delivered.jsonl`);
const olderOf = (file: string): string => `${file}.1`;

/** Adds the values of one request to the contents of a batch, by time (epoch ms). */
export function addSent(contents: Map<number, Content>, samples: readonly string[], isCertain: boolean): void {
  for (const value of parseExact(`[${samples.join(",")}]`) as readonly SentValue[]) {
    const ms = Date.parse(value.time);
    contents.set(ms, withValue(contents.get(ms), isCertain ? hashOfValue(value) : null));
  }
}

/** Pure. */
export const hashOfValue = ({ variable, quality, value }: SentValue): number => hashOf(variable.toLowerCase(), quality, value);

/** Pure. */
export function withValue({ values, hash }: Content = { values: 0, hash: 0 }, added: number | null): Content {
  return { values: values + 1, hash: hash === null || added === null ? null : (hash + added) >>> 0 };
}

/**
 * Keeps what the platform has acknowledged, a line a batch, in two files that outlast a kill of the process: the line is there before the
 * buffer hears that the batch is delivered. After a loss of power the last seconds may be missing. A file that fails is logged once, and has
 * no other consequence.
 */
export class DeliveredLog {
  readonly #location: MemoryLocation;
  readonly #maxBytes: number;
  #bytes: number | undefined;
  #hasFailed = false;

  constructor(location: MemoryLocation, maxBytes = MAX_FILE_BYTES) {
    this.#location = location;
    this.#maxBytes = maxBytes;
  }

  append({ id, layout: { source } }: Pick<SinkBatch, "id" | "layout">, contents: ReadonlyMap<number, Content>): void {
    if (contents.size === 0) return;
    const r = [...contents].map(([time, { hash, values }]): Line["r"][number] => [time, hash, values]);
    const line = `${JSON.stringify({ s: source.uuid, n: source.name, id, r } satisfies Line)}\n`;
    this.#attempt((file) => {
      this.#bytes ??= this.#open(file);
      if (this.#bytes > this.#maxBytes) {
        renameSync(file, olderOf(file));
        this.#bytes = this.#begin(file);
      }
      appendFileSync(file, line);
      this.#bytes += Buffer.byteLength(line);
    });
  }

  /** Nothing is kept from here on: what is there would have gaps. */
  remove(): void {
    this.#bytes = undefined;
    this.#attempt((file) => {
      rmSync(file, { force: true });
      rmSync(olderOf(file), { force: true });
    });
  }

  /** Continues the file of an earlier process where it is about the same platform. Returns its bytes. */
  #open(file: string): number {
    const { endpoint, folder = "" } = this.#location;
    mkdirSync(folder, { recursive: true, mode: 0o750 });
    const text = textOf(file) ?? "";
    if (headOf(text)?.endpoint !== endpoint) {
      rmSync(olderOf(file), { force: true });
      return this.#begin(file);
    }
    // The end of a line that a loss of power has cut.
    appendFileSync(file, "\n");
    return Buffer.byteLength(text) + 1;
  }

  #begin(file: string): number {
    const head = `${JSON.stringify({ endpoint: this.#location.endpoint, since: Date.now() })}\n`;
    writeFileSync(file, head);
    return head.length;
  }

  #attempt(work: (file: string) => void): void {
    const { folder, uuid, log } = this.#location;
    if (folder === undefined) return;
    try {
      work(fileOf(folder, uuid));
    } catch (error) {
      this.#bytes = undefined;
      if (!this.#hasFailed)
        log.warn({ err: error, folder }, "the file of the manifest fails; what the platform takes meanwhile is not in the manifest");
      this.#hasFailed = true;
    }
  }
}

/** Acknowledged readouts of one source, by time (epoch ms). */
export interface DeliveredSource {
  name: string;
  readonly readouts: Map<number, Content & { readonly id: string }>;
}

/** Content of the files of a sink. `sinceMs`: they have each readout from that time on. */
export interface Delivered {
  readonly sinceMs: number;
  /** By uuid. */
  readonly sources: ReadonlyMap<string, DeliveredSource>;
}

/**
 * Reads what a sink's platform has acknowledged, of the readouts in a time; undefined: there are no files. Throws what the file system throws.
 */
export function readDelivered(folder: string, uuid: string, isIn: (time: number) => boolean): Delivered | undefined {
  const file = fileOf(folder, uuid);
  // The newer one first: one that is renamed meanwhile is read twice, and none is left out.
  const newer = textOf(file);
  const texts = [textOf(olderOf(file)), newer].filter((text) => text !== undefined);
  if (texts.length === 0) return undefined;
  const sources = new Map<string, DeliveredSource>();
  for (const text of texts)
    for (const { s, n, id, r } of linesIn(text)) {
      const source: DeliveredSource = sources.get(s) ?? { name: n, readouts: new Map() };
      sources.set(s, source);
      source.name = n;
      for (const [time, hash, values] of r) if (isIn(time)) addReadout(source.readouts, time, { id, hash, values });
    }
  const sinceMs = headOf(texts[0] ?? "")?.since ?? Number.POSITIVE_INFINITY;
  return { sinceMs, sources };
}

function addReadout(readouts: DeliveredSource["readouts"], time: number, one: Content & { readonly id: string }): void {
  const before = readouts.get(time);
  const isSame = before === undefined || (before.hash === one.hash && before.values === one.values);
  // Another content at its time: the platform has some of its values, and may have others.
  readouts.set(time, isSame ? one : { ...one, values: Math.max(before.values, one.values), hash: null });
}

function* linesIn(text: string): Generator<Line> {
  for (const line of text.split("\n")) {
    const parsed = lineSchema.safeParse(jsonIn(line));
    if (parsed.success) yield parsed.data;
  }
}

const headOf = (text: string): z.infer<typeof headSchema> | undefined => headSchema.safeParse(jsonIn(text.split("\n", 1)[0] ?? "")).data;

function jsonIn(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** Undefined: it is not there. */
function textOf(file: string): string | undefined {
  try {
    return readBoundedFile(file, MAX_READ_BYTES).toString("utf8");
  } catch (error) {
    if (error instanceof Error && errorCode(error.cause) === "ENOENT") return undefined;
    throw error;
  }
}
