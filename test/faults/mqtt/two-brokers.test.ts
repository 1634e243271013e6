import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, expect, test } from "vitest";
import { mqttSpec, type Rig, startRig } from "../../../src/delivery/testing/rig.ts";
import { startBroker, type TestBroker } from "../../support/broker.ts";
import { freePort } from "../../support/free-port.ts";
import { connack5, startRawBroker } from "../../support/raw-broker.ts";

const CONNECT = 1;
const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

async function brokerAt(port: number, more: Parameters<typeof startBroker>[0] = {}) {
  const broker = await startBroker({ port, ...more });
  const stop = once(() => broker.stop());
  undo.push(stop);
  return { ...broker, received: broker.received, stop };
}
const once = (work: () => Promise<void>): (() => Promise<void>) => {
  let done: Promise<void> | undefined;
  return () => (done ??= work());
};
const rigOf = async (first: number, second: number, settings: object = {}, secrets = {}): Promise<Rig> => {
  const rig = await startRig();
  undo.push(() => rig.stop());
  const options = { fallback: `127.0.0.1:${second}`, return_after: "1s", connect_timeout: "1s", ...settings };
  rig.start(mqttSpec(first, { settings: options, secrets }));
  return rig;
};
const secondInUse = (rig: Rig): string | undefined => rig.report()?.warnings.find(({ code }) => code === "second_broker_in_use")?.text;
/** Numbers of the readouts that a broker has got, in the order of their arrival. */
const numbersOf = ({ received }: Pick<TestBroker, "received">): readonly number[] =>
  received
    .filter(({ topic }) => topic === "plant/values")
    .flatMap(({ payload }) => (JSON.parse(payload) as { readouts: { values: { v0: number } }[] }).readouts.map(({ values }) => values.v0));

test("values go to the second broker while the first is away, and to the first again: none is missing, and the account is exact", async () => {
  const [first, second] = [await freePort(), await freePort()];
  const other = await brokerAt(second);
  const rig = await rigOf(first, second);
  const state = () => ({ state: rig.report()?.state, endpoint: rig.report()?.endpoint });
  const ticker = setInterval(() => rig.append(1), 20);
  undo.push(async () => clearInterval(ticker));
  await expect.poll(state).toEqual({ state: "OK", endpoint: `127.0.0.1:${second}` });
  await expect.poll(() => numbersOf(other).length).toBeGreaterThan(10);
  expect(secondInUse(rig)).toMatch(
    /^values go to the second broker .* because 127\.0\.0\.1:\d+ cannot be opened: .*ECONNREFUSED.*; it is tried again every 1 s$/,
  );
  expect(other.retained.get("plant/values/status")).toBe('{"state":"online"}');

  // The first comes: values go there, and the second is told that the collector has left.
  const one = await brokerAt(first);
  await expect.poll(() => numbersOf(one).length, { timeout: 10_000 }).toBeGreaterThan(10);
  await expect.poll(state).toEqual({ state: "OK", endpoint: `127.0.0.1:${first}` });
  expect(secondInUse(rig)).toBeUndefined();
  await expect.poll(() => other.retained.get("plant/values/status")).toBe('{"state":"offline"}');

  // And goes: the second has the rest.
  const before = numbersOf(other).length;
  await one.stop();
  await expect.poll(() => numbersOf(other).length, { timeout: 10_000 }).toBeGreaterThan(before + 10);
  clearInterval(ticker);
  const readouts = rig.readouts();
  await expect.poll(() => rig.sink()?.delivered, { timeout: 10_000 }).toBe(readouts * 4);
  const all = [...numbersOf(one), ...numbersOf(other)];
  expect(new Set(all).size).toBe(readouts);
  expect(rig.sink()?.accepted).toBe(readouts * 4);
  // At least once: only what was under way at one of the two changes may come twice.
  expect(all.length - readouts).toBeLessThanOrEqual(2 * 48);
}, 40_000);

test("the state names both brokers where neither can be opened; user and password go to both", async () => {
  const [first, second] = [await freePort(), await freePort()];
  const rig = await rigOf(first, second, { username: "line-3" }, { password: "canary" });
  await expect.poll(() => rig.report()?.error?.detail ?? "").toMatch(/ECONNREFUSED.*; the second broker 127\.0\.0\.1:\d+: .*ECONNREFUSED/);
  expect(JSON.stringify(rig.report())).not.toContain("canary");
  rig.append(3);
  const other = await brokerAt(second, { user: { name: "line-3", password: "canary" } });
  await expect.poll(() => numbersOf(other), { timeout: 10_000 }).toEqual([0, 1, 2]);
});

test("a first broker that can be reached and refuses costs the second few interruptions", async () => {
  const refusing = await startRawBroker((packet, socket) => packet.type === CONNECT && socket.end(connack5(135)));
  undo.push(() => refusing.stop());
  const second = await freePort();
  const other = await brokerAt(second);
  const rig = await rigOf(refusing.port, second);
  await expect.poll(() => rig.report()?.endpoint, { timeout: 10_000 }).toBe(`127.0.0.1:${second}`);
  const beganMs = performance.now();
  let number = 0;
  while (performance.now() - beganMs < 7000) {
    rig.append(1);
    number++;
    await new Promise((done) => setTimeout(done, 50));
  }
  await expect.poll(() => rig.sink()?.delivered, { timeout: 10_000 }).toBe(number * 4);
  // Looks after 1 s, then 2 s and 4 s, each of which a return follows; each opening of a broker of 3.1.1 has two connections.
  expect(other.connections()).toBeLessThanOrEqual(2 * 4);
  expect(secondInUse(rig)).toContain("(code 135)");
}, 30_000);

test("knowledge of one broker is kept apart from that of the other", async () => {
  const [first, second] = [await freePort(), await freePort()];
  const other = await brokerAt(second);
  const folder = await mkdtemp(path.join(tmpdir(), "two-brokers-"));
  undo.push(() => rm(folder, { recursive: true }));
  const rig = await startRig({}, { memoryDir: folder });
  undo.push(() => rig.stop());
  rig.start(mqttSpec(first, { settings: { fallback: `127.0.0.1:${second}`, return_after: "1s", connect_timeout: "1s" } }));
  rig.append(1);
  await expect.poll(() => numbersOf(other)).toEqual([0]);
  const one = await brokerAt(first);
  rig.append(1);
  await expect.poll(() => one.retained.get("plant/values/status"), { timeout: 10_000 }).toBe('{"state":"online"}');
  await expect.poll(() => readdirSync(folder).sort()).toEqual(["sink-1.json", "sink-1.second.json"]);
  const endpointIn = (name: string) => (JSON.parse(readFileSync(path.join(folder, name), "utf8")) as { endpoint: string }).endpoint;
  expect([endpointIn("sink-1.json"), endpointIn("sink-1.second.json")]).toEqual([`127.0.0.1:${first}`, `127.0.0.1:${second}`]);
});
