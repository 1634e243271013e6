import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../../src/buffer/testing/folder.ts";
import { policySchema } from "../../src/model/policy.ts";
import { createLogger } from "../../src/os/log.ts";
import { Pipeline } from "../../src/pipeline.ts";
import { startPlatform } from "../support/platform.ts";

const VARIABLES = 3;
const READOUTS = 20;
const START_MS = 1_800_000_000_000;
const SINK = "7e0d3c5a-0000-4000-8000-00000000000b";

test("a state folder that is put back to a copy: what is read from then on reaches the platform, which knows the identifiers of before", async () => {
  const received = new Set<unknown>();
  const platform = await startPlatform({
    onTaken({ values }) {
      for (const { value } of values) received.add(value);
    },
  });
  onTestFinished(() => platform.stop());
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const [state, copy] = [join(folder.path, "state"), join(folder.path, "copy")];
  mkdirSync(state);
  const layout = platform.layout(VARIABLES);

  /** One life of the collector: it reads numbers from `first` on, and ends once the platform has them. */
  const life = async (run: string, first: number): Promise<void> => {
    const pipeline = new Pipeline({
      run,
      bufferFile: join(state, "buffer.db"),
      bounds: { maxBytes: 2 ** 30, maxAgeMs: 1e12, keepRemovedMs: 1e12 },
      log: createLogger({ level: "error", format: "json", stream: process.stderr, journald: false }),
      workerUrl: (name) => new URL(`../../src/threads/${name}/worker.ts`, import.meta.url),
      policy: policySchema.parse({ sinks: { networks: ["127.0.0.0/8"] } }),
      pki: { dir: join(folder.path, "pki"), installation: "00000000-0000-4000-8000-000000000001" },
      onAlarm: ({ text }) => expect.fail(text),
    });
    const api = { url: platform.url, keyFile: platform.keyFile, insecure: false, embedded: false };
    const details = { type: "platform" as const, publish_interval: 100, api };
    const sink = { uuid: SINK, name: "platform", type: "platform", details, settings: {}, secrets: {} };
    pipeline.setSinks([{ ...sink, publishIntervalUnit: "milliseconds" }]);
    const numbers = Array.from({ length: READOUTS * VARIABLES }, (_, i) => first + i);
    for (let n = 0; n < READOUTS; n++) {
      const readings = layout.variables.map((_, place) => ({ quality: "good" as const, value: first + n * VARIABLES + place }));
      pipeline.append(layout, { time: START_MS + first * 1000 + n, spanMs: 1, clockSynced: true, readings });
    }
    await expect.poll(() => numbers.filter((number) => !received.has(number)), { timeout: 15_000 }).toEqual([]);
    await expect.poll(() => pipeline.sinks()[0]?.ledger, { timeout: 15_000 }).toMatchObject({ pending: 0, dropped: {} });
    await pipeline.stop();
  };

  await life("run-1", 1000);
  cpSync(state, copy, { recursive: true });
  await life("run-2", 2000);
  rmSync(state, { recursive: true });
  cpSync(copy, state, { recursive: true });
  await life("run-3", 3000);
}, 60_000);
