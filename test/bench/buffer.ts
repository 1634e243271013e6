import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import Database from "better-sqlite3";
import { decodeReadout, encodeReadout, layoutKey } from "../../src/buffer/codec.ts";
import type { FromStore, StoreWorkerData } from "../../src/buffer/messages.ts";
import { openBuffer } from "../../src/buffer/open.ts";
import { openReader } from "../../src/buffer/reader.ts";
import type { Layout } from "../../src/model/layout.ts";
import type { Reading, Readout } from "../../src/model/value.ts";
import { StoreClient } from "../../src/threads/store/host.ts";
import { benchOutage } from "./buffer-outage.ts";

const VARIABLES = 1000;
const READOUTS = 6000;
/** Readouts offered in one turn of the event loop. */
const BURST = 50;
/** What is drained, and how many readouts in one step: read, decoded, acknowledged. */
const DRAINED_READOUTS = 1000;
const STEP_READOUTS = 50;

function layoutOf(count: number): Layout {
  return {
    source: { uuid: "bench", name: "bench" },
    variables: Array.from({ length: count }, (_, i) => ({
      uuid: `variable-${i}`,
      name: `v${i}`,
      address: `holding:${i}`,
      type: { scalar: "uint16" },
      unit: null,
      comment: null,
      exploration: false,
    })),
  };
}

const readoutOf = (n: number): Readout => ({
  time: 1_800_000_000_000 + n * 100,
  spanMs: 12,
  clockSynced: true,
  readings: Array.from({ length: VARIABLES }, (_, i) => ({ quality: "good", value: (n + i) % 65_536 })),
});

/** The same values as one row each, as it is often done: what the layout of one row per readout is compared with. */
function drainRows(file: string): number {
  const db = new Database(file);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.exec("CREATE TABLE value (id INTEGER PRIMARY KEY, readout INTEGER NOT NULL, variable INTEGER NOT NULL, ts REAL NOT NULL, v NUMERIC)");
  const insert = db.prepare("INSERT INTO value (readout, variable, ts, v) VALUES (?, ?, ?, ?)");
  for (let n = 0; n < DRAINED_READOUTS; n += STEP_READOUTS)
    db.transaction(() => {
      for (let i = n; i < n + STEP_READOUTS; i++) {
        const readout = readoutOf(i);
        for (const [variable, reading] of readout.readings.entries())
          insert.run(i, variable, readout.time, reading?.quality === "good" ? reading.value : null);
      }
    })();
  const read = db.prepare<[number], { id: number; readout: number; variable: number; ts: number; v: number }>(
    "SELECT id, readout, variable, ts, v FROM value ORDER BY id LIMIT ?",
  );
  const remove = db.prepare("DELETE FROM value WHERE id <= ?");
  const started = performance.now();
  let values = 0;
  for (;;) {
    const readouts = new Map<number, Readout & { readonly readings: Reading[] }>();
    let last = 0;
    for (const row of read.all(STEP_READOUTS * VARIABLES)) {
      const readout = readouts.get(row.readout) ?? { time: row.ts, spanMs: 0, clockSynced: true, readings: [] };
      readout.readings[row.variable] = { quality: "good", value: row.v };
      readouts.set(row.readout, readout);
      last = row.id;
      values++;
    }
    if (last === 0) break;
    db.transaction(() => remove.run(last))();
  }
  const ms = performance.now() - started;
  db.close();
  return values / (ms / 1000);
}

function drainReadouts(file: string): number {
  const layout = layoutOf(VARIABLES);
  const buffer = openBuffer(file, { maxBytes: 2 ** 33, maxAgeMs: Number.MAX_SAFE_INTEGER, onAlarm: ({ text }) => console.error(text) });
  buffer.setSinks([{ id: "bench", takesExploration: false }]);
  const layouts = [{ key: layoutKey(layout), layout }];
  for (let n = 0; n < DRAINED_READOUTS; n += STEP_READOUTS) {
    const batches = Array.from({ length: STEP_READOUTS }, (_, i) => {
      const readout = readoutOf(n + i);
      return { seq: n + i + 1, layoutKey: layoutKey(layout), time: readout.time, ...encodeReadout(layout, readout) };
    });
    buffer.commit({ run: "bench", layouts, batches, acknowledgements: [] });
  }
  const reader = openReader(file);
  const first = reader.read(0, Number.MAX_SAFE_INTEGER, 1)[0];
  const stepBytes = STEP_READOUTS * (first?.payload.byteLength ?? 1);
  const started = performance.now();
  let values = 0;
  for (let from = 0; ; ) {
    const rows = reader.read(from, Number.MAX_SAFE_INTEGER, stepBytes);
    const last = rows.at(-1);
    if (!last) break;
    for (const row of rows) values += decodeReadout(layout, row.payload).readings.length;
    const ids = rows.map(({ id }) => id);
    const acknowledgements = [{ sink: "bench", ids, delivered: rows.length * VARIABLES, dropped: {} }];
    buffer.commit({ run: "bench", layouts: [], batches: [], acknowledgements });
    from = last.id + 1;
  }
  const ms = performance.now() - started;
  reader.close();
  buffer.close();
  return values / (ms / 1000);
}

/** Both layouts read, decoded and acknowledged under synchronous=FULL, in turns, the better of three each. */
function benchDrain(folder: string): void {
  const readouts: number[] = [];
  const rows: number[] = [];
  for (let n = 0; n < 3; n++) {
    readouts.push(drainReadouts(join(folder, `readouts-${n}.db`)));
    rows.push(drainRows(join(folder, `rows-${n}.db`)));
  }
  const [ours, theirs] = [Math.max(...readouts), Math.max(...rows)];
  console.log(
    `  drain: ${Math.round(ours).toLocaleString("en")} values/s, one row per value ${Math.round(theirs).toLocaleString("en")}: ${(ours / theirs).toFixed(1)} times`,
  );
}

/**
 * Values per second through client, store worker and group commit under synchronous=FULL (until the last one is answered),
 * and bytes of file per value. The folder is COLLECTOR_BENCH_DIR, else the system's temporary one: a disk counts, a tmpfs does not.
 */
export async function benchBuffer(): Promise<void> {
  const folder = mkdtempSync(join(process.env["COLLECTOR_BENCH_DIR"] ?? tmpdir(), "collector-bench-"));
  const file = join(folder, "buffer.db");
  const options: StoreWorkerData = { file, run: "bench", maxBytes: 2 ** 33, maxAgeMs: Number.MAX_SAFE_INTEGER };
  const worker = new Worker(new URL("../../src/threads/store/worker.ts", import.meta.url), { workerData: options });
  const ended = new Promise((resolve) => worker.once("exit", resolve));
  let isReady = (): void => {};
  const ready = new Promise<void>((resolve) => {
    isReady = resolve;
  });
  let bytes = 0;
  const client = new StoreClient({
    run: "bench",
    onLedger: (_, fileBytes) => {
      bytes = fileBytes;
    },
    onAlarm: ({ text }) => console.error(text),
  });
  worker.on("message", (message: FromStore) => {
    client.onMessage(message);
    if (message.type === "ready") isReady();
  });
  client.setSinks([{ id: "bench", takesExploration: false }]);
  client.attach((message) => worker.postMessage(message));
  try {
    await ready;
    const layout = layoutOf(VARIABLES);
    const readouts = Array.from({ length: 16 }, (_, n) => readoutOf(n));
    const started = performance.now();
    const cpu = process.cpuUsage();
    let offered = 0;
    while (offered < READOUTS) {
      for (let i = 0; i < BURST && offered < READOUTS; i++) {
        const readout = readouts[offered % readouts.length];
        if (readout && !client.append(layout, readout)) break;
        offered++;
      }
      await new Promise(setImmediate);
    }
    const done = await client.close(60_000);
    const seconds = (performance.now() - started) / 1000;
    const { user, system } = process.cpuUsage(cpu);
    worker.postMessage({ type: "stop" });
    await ended;
    const values = READOUTS * VARIABLES;
    console.log(`buffer: ${values} values in readouts of ${VARIABLES}, synchronous=FULL, group commit${done ? "" : " (not all answered)"}`);
    console.log(
      `  ${Math.round(values / seconds).toLocaleString("en")} values/s, ${((user + system) / 1000 / (values / 1e6)).toFixed(0)} ms of CPU per million`,
    );
    console.log(
      `  ${(statSync(file).size / values).toFixed(2)} bytes of file per value (${(bytes / values).toFixed(2)} with the WAL before closing)`,
    );
    benchDrain(folder);
    benchOutage(folder);
  } finally {
    await worker.terminate();
    rmSync(folder, { recursive: true, force: true });
  }
}
