import { afterEach, expect, test } from "vitest";
import { startBroker } from "../../test/support/broker.ts";
import { freePort } from "../../test/support/free-port.ts";
import { SINKS } from "../sinks/index.ts";
import { prepareSink } from "./prepare-sink.ts";
import { mqttSpec, startRig } from "./testing/rig.ts";

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

interface Message {
  readonly backlog?: boolean;
  readonly readouts: readonly { readonly values: { readonly v0: number } }[];
}

test("backlog: in_order: after an outage nothing overtakes, whatever is read meanwhile, and live values follow", async () => {
  const rig = await startRig();
  undo.push(() => rig.stop());
  const port = await freePort();
  rig.start(mqttSpec(port, { settings: { backlog: "in_order" } }));
  for (let i = 0; i < 30; i++) rig.append(100);
  await expect.poll(() => rig.sink()?.pending, { timeout: 10_000 }).toBe(3000 * 4);
  const broker = await startBroker({ port });
  undo.push(() => broker.stop());
  await expect.poll(() => rig.report()?.state, { timeout: 10_000 }).toBe("OK");
  // Enough to be committed while the older ones are on their way.
  for (let i = 0; i < 20; i++) {
    rig.append(100);
    await new Promise((done) => setTimeout(done, 10));
  }
  await expect.poll(() => rig.sink(), { timeout: 20_000 }).toMatchObject({ delivered: 5000 * 4, pending: 0, dropped: {} });
  rig.append(1);
  await expect.poll(() => rig.sink()).toMatchObject({ delivered: 5001 * 4, pending: 0 });
  const messages = broker.received.filter(({ topic }) => topic === "plant/values").map(({ payload }): Message => JSON.parse(payload));
  const numbers = messages.flatMap(({ readouts }) => readouts.map(({ values }) => values.v0));
  expect(numbers).toEqual(Array.from({ length: 5001 }, (_, i) => i));
  expect(messages.at(0)?.backlog).toBe(true);
  expect(messages.at(-1)?.backlog).toBeUndefined();
}, 60_000);

test("the option stands beside those of the kind, and a wrong one is refused by name", async () => {
  const prepared = await prepareSink(mqttSpec(1883, { settings: { backlog: "in_order", in_flight: 3 } }), SINKS);
  expect(prepared).toMatchObject({ backlog: "in_order", settings: { in_flight: 3 } });
  expect(prepared.settings).not.toHaveProperty("backlog");
  expect(await prepareSink(mqttSpec(1883), SINKS)).toMatchObject({ backlog: "live_first" });
  await expect(prepareSink(mqttSpec(1883, { settings: { backlog: "newest" } }), SINKS)).rejects.toThrow(
    /sinks\.broker\.backlog: .*live_first.*in_order/,
  );
});

test("backlog: in_order: a live batch waits for an older one of its source that is many messages", async () => {
  const rig = await startRig();
  undo.push(() => rig.stop());
  const port = await freePort();
  rig.start(mqttSpec(port, { settings: { backlog: "in_order" } }, { topic: "plant/{source}/{variable}" }));
  rig.append(90, { variables: 100, timeOf: (number) => 1_800_000_000_000 + number });
  await expect.poll(() => rig.sink()?.pending, { timeout: 10_000 }).toBe(9000);
  const broker = await startBroker({ port });
  undo.push(() => broker.stop());
  const values = () => broker.received.filter(({ topic }) => topic.startsWith("plant/press-1/v"));
  await expect.poll(() => values().length, { timeout: 10_000, interval: 1 }).toBeGreaterThan(100);
  // The older batch is under way, and nothing else waits in the file.
  expect(values().length).toBeLessThan(2000);
  rig.append(1, { variables: 100, timeOf: () => 1_800_000_000_100 });
  await expect.poll(() => rig.sink(), { timeout: 10_000 }).toMatchObject({ delivered: 9100, pending: 0, dropped: {} });
  const times = values().map(({ payload }): string => JSON.parse(payload).readouts[0].ts);
  expect(times.slice(-100).every((time) => time === new Date(1_800_000_000_100).toISOString())).toBe(true);
}, 30_000);
