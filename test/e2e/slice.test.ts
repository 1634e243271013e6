import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type ModbusPlant, startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { type Api, addModbusSource, apiOf } from "../support/api.ts";
import { startBroker, type TestBroker } from "../support/broker.ts";
import { startBuiltCollector } from "../support/built-collector.ts";
import type { CollectorProcess, ServiceStatusJson } from "../support/collector-process.ts";
import { freePort } from "../support/free-port.ts";

/** Behavioural deadlines are asserted with this margin; what was measured is printed. */
const MARGIN = 3;
const open: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function collectorOf(options?: Parameters<typeof startBuiltCollector>[0]): Promise<CollectorProcess & { readonly api: Api }> {
  const collector = await startBuiltCollector(options);
  open.unshift(() => collector.stop());
  return Object.assign(collector, { api: apiOf(collector.apiUrl, await collector.adminKey()) });
}

async function plantOf(port?: number): Promise<ModbusPlant> {
  const plant = await startModbusPlant({
    port: port ?? (await freePort()),
    units: new Map([[1, { holding: new Map([0, 1, 2, 3].map((n) => [n, (ms: number) => (n + Math.floor(ms)) & 0xffff])) }]]),
  });
  open.push(plant.close);
  return plant;
}

async function brokerOf(port?: number): Promise<TestBroker> {
  const broker = await startBroker(port === undefined ? {} : { port });
  open.push(() => broker.stop().catch(() => undefined));
  return broker;
}

const addSource = (api: Api, collector: string, name: string, port: number, intervalS: number): Promise<string> =>
  addModbusSource(api, collector, {
    name,
    port,
    readout_interval: intervalS,
    variables: { v0: "holding:0", v1: "holding:1", v2: "holding:2", v3: "holding:3" },
  });

const addSink = (api: Api, collector: string, port: number) =>
  api.post("/v2/data-sinks", { name: "broker", collector, details: { type: "mqtt", host: "127.0.0.1", port, topic: "plant/{source}" } });

const valuesOf = (broker: TestBroker, source: string) =>
  broker.received
    .filter(({ topic }) => topic === `plant/${source}`)
    .flatMap(({ payload }) => (JSON.parse(payload) as { readouts: { ts: string; values: Record<string, number> }[] }).readouts);

async function until(what: string, check: () => boolean | Promise<boolean>, withinMs: number): Promise<number> {
  const began = performance.now();
  for (;;) {
    if (await check()) return performance.now() - began;
    if (performance.now() - began > withinMs) throw new Error(`${what}: not within ${withinMs} ms`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

const stateOf = (status: ServiceStatusJson, name: string) => status.sources.find((s) => s.name === name)?.status.state;

describe("the collector as its own process", () => {
  it("reads a source that is posted while it runs, names a refused connection once, and goes on by itself", async () => {
    const collector = await collectorOf();
    const { collector: uuid } = await collector.status();
    const broker = await brokerOf();
    let plant = await plantOf();
    const { port } = plant;
    await addSink(collector.api, uuid, broker.port);
    await addSource(collector.api, uuid, "press-1", port, 1);
    const toRead = await until("the first read", () => plant.requests() > 0, MARGIN * 1500);
    const toBroker = await until(
      "a value at the broker",
      () => valuesOf(broker, "press-1").some((r) => Object.keys(r.values).length === 4),
      10_000,
    );

    await plant.close();
    const toRefused = await until(
      "CONNECTION_REFUSED in status",
      async () => stateOf(await collector.status(), "press-1")?.reason?.type === "CONNECTION_REFUSED",
      MARGIN * (1000 + 5000),
    );
    const lines = () => collector.log.filter((line) => line.includes("press-1") && line.includes("CONNECTION_REFUSED"));
    await new Promise((done) => setTimeout(done, 2500));
    expect(lines()).toHaveLength(1);
    expect(lines()[0]).toMatch(/since/);

    const before = valuesOf(broker, "press-1").length;
    plant = await plantOf(port);
    const toGood = await until("a read after the device is back", () => plant.requests() > 0, MARGIN * 2000);
    await until("OK in status", async () => stateOf(await collector.status(), "press-1")?.type === "OK", 5000);
    await until("values at the broker again", () => valuesOf(broker, "press-1").length > before, 5000);
    console.log(
      `posted → first read ${toRead.toFixed(0)} ms (poll 500 ms), → broker ${toBroker.toFixed(0)} ms; device off → CONNECTION_REFUSED ${toRefused.toFixed(0)} ms; device on → read ${toGood.toFixed(0)} ms (interval 1000 ms)`,
    );

    const status = await collector.status();
    const ledger = status.sinks[0]?.ledger;
    expect(ledger?.dropped).toEqual({});
    expect(ledger?.delivered).toBeGreaterThan(0);
    const source = (await collector.api.get("/v2/data-sources")) as {
      data: { readout_status: { state: { type: string }; configured_variables: number } }[];
    };
    expect(source.data[0]?.readout_status.configured_variables).toBe(4);
    await until(
      "the API knows that it is OK",
      async () => {
        const { data } = (await collector.api.get("/v2/data-sources")) as { data: { readout_status: { state: { type: string } } }[] };
        return data[0]?.readout_status.state.type === "OK";
      },
      10_000,
    );
  }, 90_000);

  it("is ready with API, broker and device down, runs on the last good configuration, and delivers when they are back", async () => {
    const dir = await mkdtemp(path.join(os.tmpdir(), "collector-e2e-"));
    open.push(() => rm(dir, { recursive: true, force: true }));
    const site = await collectorOf({ dir });
    const { collector: uuid } = await site.status();
    const broker = await brokerOf();
    let plant = await plantOf();
    await addSink(site.api, uuid, broker.port);
    await addSource(site.api, uuid, "press-1", plant.port, 1);
    await until("the first value", () => valuesOf(broker, "press-1").some((r) => Object.keys(r.values).length === 4), 15_000);
    await site.stop("SIGKILL");
    await broker.stop();
    await plant.close();

    // The same state folder, but its API is an address where nobody answers.
    const alone = await startBuiltCollector({
      dir,
      settings: { collector: uuid, api: { url: "http://127.0.0.1:9", key_file: `${site.stateDir}/keys/collector.key` } },
    });
    open.unshift(() => alone.stop());
    await until(
      "the refused device in status",
      async () => stateOf(await alone.status(), "press-1")?.reason?.type === "CONNECTION_REFUSED",
      15_000,
    );
    expect((await alone.status()).config).toMatchObject({ ok: false, origin: "last_good" });

    plant = await plantOf(plant.port);
    await until("values in the buffer", async () => ((await alone.status()).sinks[0]?.ledger?.pending ?? 0) > 0, 15_000);
    const back = await brokerOf(broker.port);
    await until(
      "everything delivered",
      async () => {
        const ledger = (await alone.status()).sinks[0]?.ledger;
        return valuesOf(back, "press-1").length > 2 && ledger !== undefined && ledger !== null && ledger.pending <= 8;
      },
      30_000,
    );
    const ledger = (await alone.status()).sinks[0]?.ledger;
    expect(ledger?.dropped).toEqual({});
    expect(ledger?.accepted).toBe((ledger?.delivered ?? 0) + (ledger?.unconfirmed ?? 0) + (ledger?.pending ?? 0));
    const times = valuesOf(back, "press-1").map((r) => r.ts);
    expect([...times].sort()).toEqual(times);
    expect(await alone.stop()).toBe(0);
  }, 120_000);

  it("refuses to run twice on one state folder, and says so", async () => {
    const first = await collectorOf();
    const second = await startBuiltCollector({ dir: first.stateDir.replace(/\/state$/, ""), waitForReady: false });
    const code = await new Promise((done) => second.child.once("exit", done));
    expect(code).toBe(4);
    expect(second.log.join("\n")).toMatch(/another collector is running/);
    expect((await first.status()).collector).toMatch(/^[0-9a-f-]{36}$/);
  }, 60_000);
});
