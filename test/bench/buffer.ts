import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { createStoreClient } from "../../src/buffer/client.ts";
import type { FromStore } from "../../src/buffer/messages.ts";
import type { StoreOptions } from "../../src/buffer/store.ts";
import type { Layout } from "../../src/model/layout.ts";
import type { Readout } from "../../src/model/value.ts";

const VARIABLES = 1000;
const READOUTS = 6000;
/** Readouts offered in one turn of the event loop. */
const BURST = 50;

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

/**
 * Values per second through client, store worker and group commit under synchronous=FULL (until the last one is answered),
 * and bytes of file per value. The folder is COLLECTOR_BENCH_DIR, else the system's temporary one: a disk counts, a tmpfs does not.
 */
export async function benchBuffer(): Promise<void> {
  const folder = mkdtempSync(join(process.env["COLLECTOR_BENCH_DIR"] ?? tmpdir(), "collector-bench-"));
  const file = join(folder, "buffer.db");
  const options: StoreOptions = { file, run: "bench", maxBytes: 2 ** 33, maxAgeMs: Number.MAX_SAFE_INTEGER };
  const worker = new Worker(new URL("../../src/workers/store.ts", import.meta.url), { workerData: options });
  const ended = new Promise((resolve) => worker.once("exit", resolve));
  let isReady = (): void => {};
  const ready = new Promise<void>((resolve) => {
    isReady = resolve;
  });
  let bytes = 0;
  const client = createStoreClient({
    run: "bench",
    onLedger: (_, fileBytes) => {
      bytes = fileBytes;
    },
    onAlarm: (message) => console.error(message),
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
  } finally {
    await worker.terminate();
    rmSync(folder, { recursive: true, force: true });
  }
}
