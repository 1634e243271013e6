import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connect } from "mqtt";
import { afterEach, describe, expect, test } from "vitest";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { apiOf } from "../support/api.ts";
import { startBuiltCollector } from "../support/built-collector.ts";
import type { CollectorProcess, ServiceStatusJson } from "../support/collector-process.ts";
import { freePort } from "../support/free-port.ts";
import { startGate } from "../support/gate.ts";
import { INSPECTABLE, killWorker } from "../support/kill-worker.ts";

const MOSQUITTO = "/usr/sbin/mosquitto";
const hasMosquitto = spawnSync(MOSQUITTO, ["-h"]).error === undefined;
const INTERVAL_MS = 100;
const SOURCES = ["press-1", "oven-2"];
const VARIABLES = 4;
const BACK_WITHIN_MS = 30_000;
const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** What an ordinary client got. */
interface Subscriber {
  /** Values and errors, each of one source, time and variable once. */
  readonly distinct: Set<string>;
  readonly all: () => number;
  /** Epoch ms of all readouts of a source, rising. */
  readonly times: (source: string) => readonly number[];
  /** Since the broker that runs now was started. */
  readonly subscribed: () => Promise<void>;
}

/** QoS 0: mosquitto hands on what it takes before it acknowledges that, and keeps nothing back that a kill could take along. */
function subscribe(port: number): Subscriber {
  const distinct = new Set<string>();
  const times = new Map<string, Set<number>>();
  let all = 0;
  let isSubscribed = false;
  // With its own resubscribing subscribeAsync would return before the broker has acknowledged it.
  const client = connect({ host: "127.0.0.1", port, reconnectPeriod: 20, resubscribe: false });
  open.push(() => client.endAsync(true));
  client.on("error", () => {});
  client.on("close", () => {
    isSubscribed = false;
  });
  client.on(
    "connect",
    () =>
      void client.subscribeAsync("plant/+", { qos: 0 }).then(() => {
        isSubscribed = true;
      }),
  );
  client.on("message", (topic, payload) => {
    if (topic === "plant/status") return;
    const { source, readouts } = JSON.parse(payload.toString()) as {
      source: string;
      readouts: { ts: string; values?: object; errors?: object }[];
    };
    const own = times.get(source) ?? new Set();
    times.set(source, own);
    for (const { ts, values = {}, errors = {} } of readouts) {
      own.add(Date.parse(ts));
      for (const name of [...Object.keys(values), ...Object.keys(errors)]) {
        all++;
        distinct.add(`${source} ${ts} ${name}`);
      }
    }
  });
  return {
    distinct,
    all: () => all,
    times: (source) => [...(times.get(source) ?? [])].sort((a, b) => a - b),
    async subscribed() {
      await expect.poll(() => isSubscribed, { timeout: BACK_WITHIN_MS }).toBe(true);
    },
  };
}

const ledgerOf = ({ sinks }: ServiceStatusJson) => {
  const ledger = sinks[0]?.ledger;
  if (!ledger) throw new Error("the store has not told its account yet");
  return ledger;
};

describe.skipIf(!hasMosquitto && process.env["COLLECTOR_REQUIRE_PARTS"] !== "1")("kill -9", () => {
  test("of the broker, of both workers and of the collector, one after the other: the ledger is exact and nothing is lost", async () => {
    const dir = await mkdtemp(path.join(os.tmpdir(), "collector-kills-"));
    open.push(() => rm(dir, { recursive: true, force: true }));
    const brokerPort = await freePort();
    const startBroker = async (): Promise<ChildProcess> => {
      const file = path.join(dir, "mosquitto.conf");
      await writeFile(file, `user root\nlistener ${brokerPort} 127.0.0.1\nallow_anonymous true\n`);
      const child = spawn(MOSQUITTO, ["-c", file], { stdio: "ignore" });
      open.push(() => child.kill("SIGKILL"));
      return child;
    };
    let broker = await startBroker();
    const subscriber = subscribe(brokerPort);
    // The collector comes to a new broker only after the subscriber: what nobody subscribes to, no broker keeps.
    const gate = await startGate(brokerPort);
    open.push(() => gate.shut());
    await subscriber.subscribed();
    await gate.open();

    const plant = await startModbusPlant({
      units: new Map([
        [1, { holding: new Map(Array.from({ length: VARIABLES }, (_, n) => [n, (ms: number) => (n + Math.floor(ms)) & 0xffff])) }],
      ]),
    });
    open.push(plant.close);
    const start = async (): Promise<CollectorProcess> => {
      const started = await startBuiltCollector({ dir, settings: { readout_interval_unit: "milliseconds" }, env: INSPECTABLE });
      open.push(() => started.child.kill("SIGKILL"));
      return started;
    };
    let collector = await start();
    const api = apiOf(collector.apiUrl, await collector.adminKey());
    const { collector: uuid } = await collector.status();
    await api.post("/v2/data-sinks", {
      name: "broker",
      collector: uuid,
      details: { type: "mqtt", host: "127.0.0.1", port: gate.port, topic: "plant/{source}" },
    });
    for (const name of SOURCES) {
      const { uuid: source } = await api.post("/v2/data-sources", {
        name,
        collector: uuid,
        machine: "00000000-0000-4000-8000-000000000001",
        details: { type: "modbus_tcp", host: "127.0.0.1", port: plant.port },
      });
      await api.patch(`/v2/data-sources/${source}`, { readout_interval: INTERVAL_MS });
      for (let n = 0; n < VARIABLES; n++)
        await api.post("/ext/v1/variables", { data_source: source, name: `v${n}`, address: `holding:${n}` });
    }
    /** Values of every source that were read after this moment have come. */
    const flows = async (what: string): Promise<void> => {
      const sinceMs = Date.now();
      const began = performance.now();
      await expect
        .poll(() => SOURCES.every((source) => (subscriber.times(source).at(-1) ?? 0) > sinceMs), { timeout: BACK_WITHIN_MS })
        .toBe(true);
      console.log(`${what}: values read after it arrive ${Math.round(performance.now() - began)} ms later`);
    };
    await flows("start");

    broker.kill("SIGKILL");
    await once(broker, "exit");
    await gate.shut();
    await expect.poll(async () => ledgerOf(await collector.status()).pending, { timeout: BACK_WITHIN_MS }).toBeGreaterThan(50);
    broker = await startBroker();
    await subscriber.subscribed();
    await gate.open();
    await flows("broker killed and back");

    for (const worker of ["delivery", "store"] as const) {
      await killWorker(collector, worker);
      await expect.poll(() => collector.log.some((line) => line.includes(`the ${worker} worker died`))).toBe(true);
      await flows(`${worker} worker killed`);
    }

    collector.child.kill("SIGKILL");
    await once(collector.child, "exit");
    collector = await start();
    await flows("collector killed and started");

    // All at once, with the broker away: whatever was read waits in the file.
    broker.kill("SIGKILL");
    await once(broker, "exit");
    await gate.shut();
    await expect.poll(async () => ledgerOf(await collector.status()).pending, { timeout: BACK_WITHIN_MS }).toBeGreaterThan(50);
    await killWorker(collector, "store");
    await killWorker(collector, "delivery");
    await delay(500);
    collector.child.kill("SIGKILL");
    await once(collector.child, "exit");
    await startBroker();
    await subscriber.subscribed();
    await gate.open();
    collector = await start();
    await flows("all of them killed");

    await plant.close();
    let last = await collector.status();
    await expect
      .poll(
        async () => {
          const before = last.sinks[0]?.ledger?.accepted;
          last = await collector.status();
          const { accepted, delivered, pending } = ledgerOf(last);
          return accepted === before && pending === 0 && delivered === accepted;
        },
        { timeout: BACK_WITHIN_MS, interval: 1000 },
      )
      .toBe(true);
    const ledger = ledgerOf(last);
    const gapsMs = SOURCES.map((source) => Math.max(...subscriber.times(source).map((ms, i, all) => ms - (all[i - 1] ?? ms))));
    console.log(
      `accepted ${ledger.accepted} = delivered ${ledger.delivered} + unconfirmed ${ledger.unconfirmed} + pending ${ledger.pending} + dropped ${JSON.stringify(ledger.dropped)}; the subscriber has ${subscriber.distinct.size}, ${subscriber.all() - subscriber.distinct.size} came twice; longest time without a readout ${Math.max(...gapsMs)} ms`,
    );
    expect(ledger).toMatchObject({ dropped: {}, delivered_unstored: 0 });
    expect(last.buffer).toMatchObject({ rejected: {}, lost: null });
    expect(ledger.accepted).toBeGreaterThan(200);
    // Lost: 0, and nothing that was never accepted.
    expect(subscriber.distinct.size).toBe(ledger.accepted);
    expect(await collector.stop()).toBe(0);
  }, 240_000);
});
