import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import type { ApiWorkerData, FromApi, ToApi } from "../embedded.ts";
import { COLLECTOR, temporaryFolder } from "./testing.ts";

function start(data: Partial<ApiWorkerData>) {
  const folder = temporaryFolder();
  const workerData: ApiWorkerData = {
    databaseFile: join(folder, "api.db"),
    keysDir: join(folder, "keys"),
    listen: "127.0.0.1:0",
    values: { maxBytes: 2 ** 30, maxAgeMs: 2 ** 40 },
    collector: COLLECTOR,
    readoutIntervalUnit: "seconds",
    publishIntervalUnit: "seconds",
    version: "0",
    ...data,
  };
  const worker = new Worker(new URL("../../threads/api/worker.ts", import.meta.url), { workerData });
  const received: FromApi[] = [];
  worker.on("message", (message: FromApi) => received.push(message));
  const exited = new Promise<number>((resolve) => worker.on("exit", resolve));
  return { worker, received, exited };
}

test("it says where it listens, serves, and ends when it is told to", async () => {
  const { worker, received, exited } = start({});
  await expect.poll(() => received[0]?.type, { timeout: 10_000 }).toBe("listening");
  const listening = received[0];
  if (listening?.type !== "listening") throw new Error("not listening");
  const authorization = readFileSync(listening.keyFiles.collector, "utf8").trim();
  expect((await fetch(`${listening.url}/api/v2/data-sources`, { headers: { authorization } })).status).toBe(200);
  const stop: ToApi = { type: "stop" };
  worker.postMessage(stop);
  expect(await exited).toBe(0);
  expect(received.at(-1)).toEqual({ type: "stopped" });
});

test("it says why it does not start, and ends", async () => {
  const { received, exited } = start({ listen: "0.0.0.0:0" });
  expect(await exited).toBe(0);
  expect(received).toEqual([{ type: "failed", message: expect.stringContaining('embedded_api.listen: "0.0.0.0:0"') }]);
});
