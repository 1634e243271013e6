import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterEach, expect, test } from "vitest";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { openReader } from "../../src/buffer/reader.ts";
import { type Api, addModbusSource, apiOf } from "../support/api.ts";
import { startBroker } from "../support/broker.ts";
import { startBuiltCollector } from "../support/built-collector.ts";
import { freePort } from "../support/free-port.ts";

/** The unit's own limit: whoever is asked to end has ended by then. */
const STOP_WITHIN_MS = 10_000;
const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** With a source that is read, and a sink at `port`. */
async function running(port: number) {
  const dir = await mkdtemp(path.join(os.tmpdir(), "collector-stop-"));
  open.push(() => rm(dir, { recursive: true, force: true }));
  const plant = await startModbusPlant({
    port: 0,
    units: new Map([[1, { holding: new Map([[0, (ms: number) => Math.floor(ms) & 0xffff]]) }]]),
  });
  open.push(plant.close);
  const collector = await startBuiltCollector({ dir, settings: { readout_interval_unit: "milliseconds" } });
  open.push(async () => collector.child.kill("SIGKILL"));
  const api: Api = apiOf(collector.apiUrl, await collector.adminKey());
  const { collector: uuid } = await collector.status();
  await api.post("/v2/data-sinks", { name: "broker", collector: uuid, details: { type: "mqtt", host: "127.0.0.1", port, topic: "t" } });
  await addModbusSource(api, uuid, { name: "press-1", port: plant.port, readout_interval: 50, variables: { v: "holding:0" } });
  open.push(async () => {
    if (collector.child.exitCode !== null && collector.child.exitCode !== 0 && collector.child.exitCode !== 143)
      console.log(collector.log.slice(-20).join("\n"));
  });
  const ledger = async () => (await collector.status()).sinks[0]?.ledger;
  await expect.poll(async () => (await ledger())?.pending ?? 0, { timeout: 60_000, interval: 500 }).toBeGreaterThan(20);
  return { collector, ledger };
}

test("SIGTERM while the broker is away: all that was accepted is in the file, and the process ends in time", async () => {
  const { collector, ledger } = await running(await freePort());
  const before = (await ledger())?.accepted ?? 0;
  const startMs = performance.now();
  const code = await collector.stop();
  const tookMs = performance.now() - startMs;
  console.log(`ended ${Math.round(tookMs)} ms after SIGTERM, offline`);
  expect(code).toBe(0);
  expect(tookMs).toBeLessThan(STOP_WITHIN_MS);
  const reader = openReader(path.join(collector.stateDir, "buffer.db"));
  open.push(async () => reader.close());
  const values = reader.read(0, Number.MAX_SAFE_INTEGER, 2 ** 30).reduce((sum, { count }) => sum + count, 0);
  expect(values).toBeGreaterThanOrEqual(before);
  expect(collector.log.some((line) => line.includes("stopped"))).toBe(true);
}, 180_000);

test("a second signal ends it at once, with the signal's code", async () => {
  // Ending waits for the acknowledgements of a broker that takes nothing.
  const broker = await startBroker();
  open.push(() => broker.stop());
  broker.hold(true);
  const { collector } = await running(broker.port);
  const ended = new Promise<number | null>((done) => collector.child.once("exit", done));
  collector.child.kill("SIGTERM");
  await expect.poll(() => collector.log.some((line) => line.includes("stopping")), { interval: 1, timeout: 10_000 }).toBe(true);
  collector.child.kill("SIGTERM");
  expect(await ended).toBe(143);
}, 180_000);
