import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, expect, it } from "vitest";
import { type Misbehaviour, type PlantRequest, startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { temporaryFolder } from "../../src/api/server/testing.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import { type Api, apiOf } from "../support/api.ts";
import { startBroker, type TestBroker } from "../support/broker.ts";
import { startBuiltCollector } from "../support/built-collector.ts";
import type { CollectorProcess, ServiceStatusJson } from "../support/collector-process.ts";
import { freePort } from "../support/free-port.ts";

/**
 * Trouble of every kind at once on one gateway, one broker, one file of variables and the process itself; then all is well again. What is left
 * is compared with a fresh start.
 */

const UNITS = 6;
const REGISTERS = 200;
/** The longest read of holding registers, and the rest. */
const PLAN = [1, 2, 3, 4, 5, 6].flatMap((unit) => [`${unit}: 0+125`, `${unit}: 125+75`]);
const INTERVAL_MS = 1000;
const ANSWER_TIMEOUT_MS = 500;
const FROZEN_MS = 5000;
const TROUBLE_MS = 30_000;
/** Behavioural deadlines are asserted with this margin; what was measured is printed. */
const MARGIN = 3;
/** A unit that is back is read within a minute. */
const BACK_WITHIN_MS = 60_000;
/** What a healthy source gets of its readouts beside others that are not. */
const HEALTHY_SHARE = 0.9;

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of cleanUp.splice(0).reverse()) await end();
});

type Sources = ServiceStatusJson["sources"];
const stateOf = (sources: Sources, unit: number): string | undefined =>
  sources.find(({ name }) => name === `unit-${unit}`)?.status.state.type;
const faultsOf = (sources: Sources, unit: number) => sources.find(({ name }) => name === `unit-${unit}`)?.faults ?? [];

/** What keeps all from being well. */
const wrongIn = ({ sources, sinks, alarms }: ServiceStatusJson): readonly string[] => [
  ...(sources.length === UNITS && sinks.length === 1 ? [] : [`${sources.length} sources, ${sinks.length} sinks`]),
  ...sources
    .filter(({ status, faults }) => status.state.type !== "OK" || faults.length > 0)
    .map(({ name, status, faults }) => `${name}: ${status.state.type}, ${faults.length} faults`),
  ...sinks.filter(({ state }) => state !== "OK").map(({ name, state }) => `${name}: ${state}`),
  ...textsOf(alarms),
];

/** What of a status is the same after a fresh start: all but times, counts, and the captures that trouble has left. */
const essence = ({ sources, sinks, alarms, config }: ServiceStatusJson) => ({
  sources: sources.map((source) => ({
    ...source,
    since: "",
    warnings: textsOf(source.warnings),
    counters: undefined,
    capture: undefined,
    status: { ...source.status, last_readout_at: "" },
  })),
  sinks: sinks.map(({ name, state, warnings }) => ({ name, state, warnings: textsOf(warnings) })),
  alarms: textsOf(alarms),
  config: { ...config, since: "", taken_at: "" },
});

const csvOf = (unit: number): string =>
  `name;address;type\n${Array.from({ length: REGISTERS }, (_, n) => `r${n};${unit}/holding:${n};uint16`).join("\n")}\n`;

/** Each unit of the gateway in its own trouble; the last one has none. */
const TROUBLE: Readonly<Record<number, (request: PlantRequest) => Misbehaviour | undefined>> = {
  1: ({ start, count }) => (start <= 7 && 7 < start + count ? { silent: true } : undefined),
  2: () => ({ exception: 4 }),
  3: () => ({ silent: true }),
  4: ({ start, count }) => (start <= 50 && 50 < start + count ? { hangUp: "rst" } : undefined),
  5: ({ start, count }) => (start < 111 && 100 < start + count ? { exception: 2 } : undefined),
};

async function gateway() {
  const asked: string[] = [];
  const now = { isInTrouble: false };
  const plant = await startModbusPlant({
    units: new Map(
      Array.from({ length: UNITS }, (_, i) => [i + 1, { holding: new Map(Array.from({ length: REGISTERS }, (_, n) => [n, n] as const)) }]),
    ),
    misbehave(request) {
      asked.push(`${request.unit}: ${request.start}+${request.count}`);
      return now.isInTrouble ? TROUBLE[request.unit]?.(request) : undefined;
    },
  });
  cleanUp.push(() => plant.close());
  return {
    port: plant.port,
    trouble(on: boolean) {
      now.isInTrouble = on;
    },
    /** What is asked in so many readouts of each unit, each request once. */
    async plan(): Promise<readonly string[]> {
      asked.length = 0;
      await delay(4 * INTERVAL_MS);
      return [...new Set(asked)].sort();
    },
  };
}

/** When the values of a source at the broker were read, epoch ms, each readout once. */
const timesOf = (brokers: readonly TestBroker[], source: string): readonly number[] => {
  const readouts = brokers
    .flatMap(({ received }) => received)
    .filter(({ topic }) => topic === `plant/${source}`)
    .flatMap(({ payload }) => (JSON.parse(payload) as { readouts: readonly { ts: string }[] }).readouts);
  return [...new Set(readouts.map(({ ts }) => Date.parse(ts)))].sort((one, other) => one - other);
};

async function configure(api: Api, collector: string, gatewayPort: number, brokerPort: number): Promise<ReadonlyMap<number, string>> {
  await api.post("/v2/data-sinks", {
    name: "plant",
    collector,
    details: { type: "mqtt", host: "127.0.0.1", port: brokerPort, topic: "plant/{source}", publish_interval: 1 },
  });
  const uuids = new Map<number, string>();
  for (let unit = 1; unit <= UNITS; unit++) {
    const { uuid } = await api.post("/v2/data-sources", {
      name: `unit-${unit}`,
      collector,
      machine: "00000000-0000-4000-8000-000000000001",
      details: { type: "modbus_tcp", host: "127.0.0.1", port: gatewayPort, ephemeral_connections: false },
    });
    await api.patch(`/v2/data-sources/${uuid}`, { readout_interval: INTERVAL_MS / 1000 });
    uuids.set(unit, uuid);
  }
  return uuids;
}

const within = (ms: number) => ({ timeout: MARGIN * ms, interval: 500 });

it("trouble of every kind at once, then none: all is as after a fresh start, and what was read has come", {
  timeout: 420_000,
}, async () => {
  const dir = temporaryFolder();
  const variables = path.join(dir, "variables");
  mkdirSync(variables);
  for (let unit = 1; unit <= UNITS; unit++) writeFileSync(path.join(variables, `unit-${unit}.csv`), csvOf(unit));
  const device = await gateway();
  const brokers = [await startBroker()];
  const [first] = brokers;
  const brokerPort = first?.port ?? 0;
  cleanUp.push(() => brokers.at(-1)?.stop());
  const settings = {
    sources: Object.fromEntries(
      Array.from({ length: UNITS }, (_, i) => [`unit-${i + 1}`, { connect_timeout: "1s", answer_timeout: `${ANSWER_TIMEOUT_MS}ms` }]),
    ),
  };
  const ports = { api: await freePort(), http: await freePort() };
  const start = async (): Promise<CollectorProcess> => {
    const started = await startBuiltCollector({ dir, ports, settings });
    cleanUp.push(() => started.kill());
    return started;
  };
  let collector = await start();
  const api = apiOf(collector.apiUrl, await collector.adminKey());
  const uuids = await configure(api, (await collector.status()).collector, device.port, brokerPort);
  await expect.poll(async () => wrongIn(await collector.status()), within(20_000)).toEqual([]);

  const beganMs = Date.now();
  device.trouble(true);
  first?.hold(true);
  // A file that is being written, and then is empty: its source keeps the variables that it had.
  for (let part = 1; part <= 4; part++) {
    writeFileSync(path.join(variables, "unit-6.csv"), csvOf(6).slice(0, part * 1000));
    await delay(500);
  }
  writeFileSync(path.join(variables, "unit-6.csv"), "");
  // A source in trouble is changed, and changed back.
  await api.patch(`/v2/data-sources/${uuids.get(2)}`, { readout_interval: 2 });
  await first?.stop();
  first?.hold(false);
  await delay(3000);
  // A frozen virtual machine.
  collector.child.kill("SIGSTOP");
  await delay(FROZEN_MS);
  collector.child.kill("SIGCONT");
  await api.patch(`/v2/data-sources/${uuids.get(2)}`, { readout_interval: 1 });
  await expect
    .poll(async () => {
      const { sources } = await collector.status();
      return [...[2, 3, 6].map((unit) => stateOf(sources, unit)), ...[4, 5, 6].map((unit) => faultsOf(sources, unit).length)];
    }, within(20_000))
    .toEqual(["ERROR", "ERROR", "OK", 1, 11, 0]);
  const { sources } = await collector.status();
  expect(faultsOf(sources, 5).map(({ variable }) => variable)).toEqual(Array.from({ length: 11 }, (_, n) => `r${100 + n}`));

  await delay(Math.max(0, beganMs + TROUBLE_MS - Date.now()));

  const endedMs = Date.now();
  device.trouble(false);
  writeFileSync(path.join(variables, "unit-6.csv"), csvOf(6));
  brokers.push(await startBroker({ port: brokerPort }));
  const wrong = new Map<string, number>();
  await expect
    .poll(async () => {
      const found = wrongIn(await collector.status());
      for (const one of found) wrong.set(one, Date.now() - endedMs);
      return found;
    }, within(BACK_WITHIN_MS))
    .toEqual([]);
  await expect.poll(device.plan, within(20_000)).toEqual(PLAN);

  // What was accepted is delivered to the value, but for what has just been read.
  const drained = async () => {
    const { pending = 1, dropped } = (await collector.status()).sinks[0]?.ledger ?? {};
    return [pending <= 3 * UNITS * REGISTERS, dropped];
  };
  await expect.poll(drained, within(20_000)).toEqual([true, {}]);
  const healed = await collector.status();
  const ledger = healed.sinks[0]?.ledger;
  expect(ledger?.accepted).toBe((ledger?.delivered ?? 0) + (ledger?.unconfirmed ?? 0) + (ledger?.pending ?? 0));
  expect(healed.buffer.rejected).toEqual({});

  // The unit without trouble was read all the time, and accused of nothing.
  const times = timesOf(brokers, "unit-6").filter((time) => time >= beganMs && time <= endedMs);
  const expected = (endedMs - beganMs - FROZEN_MS) / INTERVAL_MS;
  console.log(
    `trouble of ${endedMs - beganMs} ms: the healthy unit got ${times.length} of ${expected.toFixed(0)} readouts; after its end was wrong: ${[...wrong].map(([what, ms]) => `${what} for ${ms} ms`).join("; ")}`,
  );
  expect(times.length).toBeGreaterThan(expected * (1 - MARGIN * (1 - HEALTHY_SHARE)));
  expect(collector.log.filter((line) => /^\S+ +[A-Z]+ +unit-6 .*(?:TIMEOUT|CONNECTION_|UNKNOWN)/.test(line))).toEqual([]);

  await collector.stop();
  collector = await start();
  await expect.poll(async () => wrongIn(await collector.status()), within(20_000)).toEqual([]);
  expect(await device.plan()).toEqual(PLAN);
  expect(essence(healed)).toEqual(essence(await collector.status()));
});
