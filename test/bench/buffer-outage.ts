import { mkdtempSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import type { NewBatch } from "../../src/buffer/buffer.ts";
import { encodeReadout, layoutKey } from "../../src/buffer/codec.ts";
import { openBuffer } from "../../src/buffer/open.ts";
import type { Layout } from "../../src/model/layout.ts";

/** Readouts of each source come once a second for so long. */
const SECONDS = Number(process.env["COLLECTOR_BENCH_SECONDS"] ?? 3600);
/** The CPU without packing is measured over a part of it: it is the same in each second. */
const PLAIN_PART = 6;
/** The store makes so many of what comes in a second. */
const COMMITS = 6;
const START = 1_800_000_000_000;

interface Case {
  readonly what: string;
  readonly scalar: "float32" | "float64";
  /** Bytes a value in the file, at most; one value a readout has its own. */
  readonly budget: number;
  /** The value after this one. */
  readonly next: (before: number, random: () => number) => number;
}

const hundredths = (value: number): number => Math.round(value * 100) / 100;
const CASES: readonly Case[] = [
  {
    what: "slowly changing (a step of up to 0.03 in 64 bits)",
    scalar: "float64",
    budget: 1.5,
    next: (before, random) => hundredths(before + (Math.floor(random() * 7) - 3) / 100),
  },
  { what: "unchanged", scalar: "float32", budget: 0.3, next: (before) => before },
  { what: "noise in 32 bits", scalar: "float32", budget: 4, next: (_, random) => Math.fround(20 + random()) },
  { what: "noise in 64 bits", scalar: "float64", budget: 8.5, next: (_, random) => 20 + random() },
];
const SHAPES = [
  { sources: 1000, values: 10 },
  { sources: 10, values: 1000 },
] as const;
const ONE_VALUE = { sources: 1000, values: 1, budget: 5 } as const;
const CPU_BUDGET = 1.5;

/** Measures the bytes that an outage puts into the file, and the store's CPU. Prints one line for each figure. */
export function benchOutage(folder: string): void {
  for (const { sources, values } of SHAPES) for (const one of CASES) printCase(folder, one, sources, values, one.budget);
  const [slow] = CASES;
  if (slow) printCase(folder, slow, ONE_VALUE.sources, ONE_VALUE.values, ONE_VALUE.budget);
}

function printCase(folder: string, one: Case, sources: number, values: number, budget: number): void {
  const name = `an outage of ${Math.round(SECONDS / 60)} min, ${sources} sources of ${values}, ${one.what}`;
  const packed = outage(folder, one, sources, values, SECONDS, undefined);
  const plain = outage(folder, one, sources, values, Math.ceil(SECONDS / PLAIN_PART), Number.POSITIVE_INFINITY);
  console.log(
    `${name}: ${packed.bytes.toFixed(2)} bytes of file per value (budget ${budget}), ${packed.packed.toFixed(2)} in packs, ${plain.bytes.toFixed(1)} without packing`,
  );
  console.log(
    `${name}: CPU of the store ${(packed.cpuNs / plain.cpuNs).toFixed(2)} times that without packing (budget ${CPU_BUDGET}), ${Math.round(packed.cpuNs)} ns per value; longest turn of packing ${packed.longestMs.toFixed(0)} ms`,
  );
}

/** `blockBytes`: infinite, so that nothing is packed; undefined: as the product has it. */
function outage(parent: string, one: Case, sources: number, values: number, seconds: number, blockBytes: number | undefined) {
  let nowMs = 0;
  const folder = mkdtempSync(join(parent, "outage-"));
  const file = join(folder, "buffer.db");
  const buffer = openBuffer(file, {
    maxBytes: 2 ** 34,
    maxAgeMs: Number.MAX_SAFE_INTEGER,
    monotonicMs: () => nowMs,
    packing: { ...(blockBytes !== undefined && { blockBytes }) },
    onAlarm: ({ text }) => console.error(text),
  });
  buffer.setSinks([{ id: "bench", takesExploration: false }]);
  const random = randomOf(7);
  const layouts = Array.from({ length: sources }, (_, source) => layoutOf(source, values, one.scalar)).map((layout) => ({
    key: layoutKey(layout),
    layout,
  }));
  buffer.commit({ run: "bench", layouts, batches: [], acknowledgements: [] });
  const state = Array.from({ length: sources * values }, () => asStored(one.scalar, hundredths(10 + random() * 40)));
  let seq = 0;
  let cpuUs = 0;
  let longestMs = 0;
  const measured = (work: () => void): void => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    cpuUs += user + system;
  };
  for (let second = 0; second < seconds; second++, nowMs += 1000) {
    const batches = layouts.map(({ key, layout }, source): NewBatch => {
      const readings = Array.from({ length: values }, (_, i) => {
        const at = source * values + i;
        state[at] = asStored(one.scalar, one.next(state[at] ?? 0, random));
        return { quality: "good" as const, value: state[at] };
      });
      // A tick comes up to 2 ms late; a device answers within 12 to 13 ms, in whole microseconds.
      const time = START + second * 1000 + Math.floor((source * 1000) / sources) + Math.floor(random() * 3);
      const spanMs = Math.round(12_000 + random() * 1000) / 1000;
      return { seq: ++seq, layoutKey: key, time, ...encodeReadout(layout, { time, spanMs, clockSynced: true, readings }) };
    });
    const size = Math.ceil(batches.length / COMMITS);
    measured(() => {
      for (let at = 0; at < batches.length; at += size)
        buffer.commit({ run: "bench", layouts: [], batches: batches.slice(at, at + size), acknowledgements: [] });
      while (buffer.maintain());
      for (let isMore = true; isMore; ) {
        const began = performance.now();
        isMore = buffer.pack();
        longestMs = Math.max(longestMs, performance.now() - began);
      }
    });
  }
  measured(() => buffer.close());
  const packed = packedBytes(file);
  const { size } = statSync(file);
  rmSync(folder, { recursive: true });
  const all = seq * values;
  return { bytes: size / all, packed, cpuNs: (cpuUs * 1000) / all, longestMs };
}

/** Bytes of a value that is packed, without what still waits to be and what the file has once. */
function packedBytes(file: string): number {
  const db = new Database(file, { readonly: true });
  const sql = "SELECT total(length(head) + length(body)) / total(n) FROM pack JOIN pack_data USING (id)";
  const bytes = db.prepare<[], number | null>(sql).pluck().get() ?? 0;
  db.close();
  return bytes;
}

const asStored = (scalar: Case["scalar"], value: number): number => (scalar === "float32" ? Math.fround(value) : value);

const layoutOf = (source: number, values: number, scalar: Case["scalar"]): Layout => ({
  source: { uuid: `bench-${source}`, name: `bench-${source}` },
  variables: Array.from({ length: values }, (_, i) => ({
    uuid: `variable-${source}-${i}`,
    name: `v${i}`,
    address: `holding:${2 * i}`,
    type: { scalar },
    unit: null,
    comment: null,
    exploration: false,
  })),
});

/** From 0 to 1, with all bits of a double. */
function randomOf(seed: number): () => number {
  let state = seed;
  const word = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  return () => ((word() >>> 6) * 2 ** 27 + (word() >>> 5)) / 2 ** 53;
}
