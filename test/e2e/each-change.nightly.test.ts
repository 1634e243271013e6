import mqtt from "mqtt";
import { afterEach, expect, it } from "vitest";
import { startBrokerProcess } from "../plant/broker.ts";
import { apiOf } from "../support/api.ts";
import { startCollector } from "../support/collector-process.ts";
import { startCounter } from "../support/opcua-wire/counter.ts";

/** The server counts from here on once it is started again. */
const AGAIN_FROM = 1_000_000;
const poll = <T>(look: () => T) => expect.poll(look, { timeout: 60_000, interval: 100 });

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

interface Readout {
  readonly ts: string;
  readonly values: { readonly counter?: number };
  readonly errors?: { readonly counter?: { readonly fault: string; readonly detail?: string } };
}

/** Readouts that reached an ordinary client of the broker, by time. */
async function createReader(port: number) {
  const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${port}`, { protocolVersion: 4, reconnectPeriod: 50, resubscribe: false });
  client.on("error", () => {});
  const readouts = new Map<string, Readout>();
  client.on("message", (topic, payload) => {
    if (topic !== "plant/press") return;
    for (const one of (JSON.parse(payload.toString()) as { readonly readouts: readonly Readout[] }).readouts) readouts.set(one.ts, one);
  });
  let subscriptions = 0;
  const subscribe = () => client.subscribeAsync("plant/#", { qos: 0 }).then(() => void subscriptions++);
  await subscribe();
  client.on("connect", () => void subscribe().catch(() => {}));
  open.push(() => client.endAsync(true));
  const sorted = () => [...readouts.values()].sort((a, b) => Date.parse(a.ts) - Date.parse(b.ts));
  return {
    subscriptions: () => subscriptions,
    newest: () => sorted().at(-1)?.values.counter ?? 0,
    /** Numbers and faults, one after the other; what a readout repeats is once. */
    told(): readonly (number | string)[] {
      const all = sorted().map(({ values, errors }) => values.counter ?? errors?.counter?.fault ?? "");
      return all.filter((one, i) => one !== "" && one !== all[i - 1]);
    },
    details: () => sorted().flatMap(({ errors }) => errors?.counter?.detail ?? []),
  };
}

/** Places where a number does not follow on the one before. */
const holesIn = (told: readonly (number | string)[]): readonly (readonly (number | string | undefined)[])[] =>
  told.flatMap((one, i) => (i === 0 || one === Number(told[i - 1]) + 1 ? [] : [[told[i - 1], one]]));

async function start(queueSize: number | undefined) {
  const counter = await startCounter(0, 1);
  open.push(counter.kill);
  let broker = await startBrokerProcess(0);
  open.push(() => broker.kill());
  const reader = await createReader(broker.port);
  broker.take();
  const own = { read_mode: "subscribe", sampling_interval: 0, publishing_interval: 200, ...(queueSize && { queue_size: queueSize }) };
  const collector = await startCollector({ settings: { sources: { press: own } } });
  open.push(() => collector.stop());
  const api = apiOf(collector.apiUrl, await collector.adminKey());
  const { collector: uuid } = await collector.status();
  const sink = { type: "mqtt", host: "127.0.0.1", port: broker.port, topic: "plant/{source}" };
  await api.post("/v2/data-sinks", { name: "broker", collector: uuid, details: sink });
  const details = {
    type: "opcua",
    host: "127.0.0.1",
    port: counter.port,
    endpoint_url: `opc.tcp://127.0.0.1:${counter.port}`,
    security_settings: { security_mode: "None", endpoint_security_policy: "None", token_security_policy: "None" },
    user_identity: { type: "Anonymous" },
  };
  const machine = "00000000-0000-4000-8000-000000000001";
  const { uuid: source } = await api.post("/v2/data-sources", { name: "press", collector: uuid, machine, details });
  await api.patch(`/v2/data-sources/${source}`, { readout_interval: 1 });
  await api.post("/ext/v1/variables", { data_source: source, name: "counter", address: "ns=2;s=counter" });
  return {
    counter,
    reader,
    killBroker: async () => {
      const { port } = broker;
      await broker.kill();
      broker = await startBrokerProcess(port);
      const before = reader.subscriptions();
      await poll(reader.subscriptions).toBeGreaterThan(before);
      broker.take();
    },
  };
}

it("reaches the broker over a kill -9 of it, and names the hole of a kill -9 of the server", { timeout: 180_000 }, async () => {
  const { counter, reader, killBroker } = await start(500);
  await poll(() => reader.told().length).toBeGreaterThan(600);
  await killBroker();
  const after = reader.told().length;
  await poll(() => reader.told().length).toBeGreaterThan(after + 800);
  expect(holesIn(reader.told())).toEqual([]);
  await counter.kill();
  const again = await startCounter(counter.port, AGAIN_FROM);
  open.push(again.kill);
  await poll(reader.newest).toBeGreaterThan(AGAIN_FROM + 600);
  const told = reader.told();
  const lost = told.indexOf("values_lost");
  expect(holesIn(told)).toEqual([
    [told[lost - 1], "values_lost"],
    ["values_lost", told[lost + 1]],
  ]);
  expect([Number(told[lost - 1]) < AGAIN_FROM, Number(told[lost + 1]) >= AGAIN_FROM]).toEqual([true, true]);
});

it("that the default queue does not hold is named as lost, each time", { timeout: 120_000 }, async () => {
  const { reader } = await start(undefined);
  await poll(() => reader.told().length).toBeGreaterThan(100);
  const told = reader.told();
  const [, ...holes] = holesIn(told);
  expect(holes.length).toBeGreaterThan(4);
  for (const [before, after] of holes) expect([before, after]).toContain("values_lost");
  const details = reader.details();
  expect(details[0]).toContain("the server's queue of 10 values overflowed");
  expect(details).toContainEqual(expect.stringMatching(/the server counts \d+\)$/));
});
