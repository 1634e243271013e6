import { spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect } from "mqtt";
import { describe, expect, type TestContext, test, vi } from "vitest";
import { mqttSpec, RIG_START_MS, type Rig, startRig } from "../../../src/delivery/testing/rig.ts";
import { freePort } from "../../support/free-port.ts";
import { type Publish, type Refusal, type RefusingBroker, startRefusingBroker } from "../../support/refusing-broker.ts";

/** A message that the broker does not take, among others that it takes: it holds up nothing, and all is accounted for. */

vi.setConfig({ testTimeout: 240_000, maxConcurrency: 12 });

const MOSQUITTO = "/usr/sbin/mosquitto";
const hasMosquitto = spawnSync(MOSQUITTO, ["-h"]).error === undefined;
const VARIABLES = 4;

/** The tests mostly wait, and run beside each other. */
type Undo = (step: () => unknown) => void;
const undoOf = ({ onTestFinished }: TestContext): Undo => {
  const steps: (() => unknown)[] = [];
  onTestFinished(async () => {
    for (const step of steps.reverse()) await step();
  });
  return (step) => void steps.push(step);
};

const TOO_LARGE: Refusal = { how: "puback", code: 149 };

const until = (check: () => void, timeoutMs: number): Promise<void> => vi.waitFor(check, { timeout: timeoutMs, interval: 50 });

/** Readout `number` has the values number, number + 1, …: `v0` names it. */
const holdsReadout =
  (...numbers: readonly number[]) =>
  ({ payload }: Publish): boolean =>
    numbers.some((number) => new RegExp(`"v0":${number}[,}]`).test(payload));

const refusing =
  (is: (publish: Publish) => boolean, refusal: Refusal) =>
  (publish: Publish): Refusal | undefined =>
    is(publish) ? refusal : undefined;

async function brokerOf(undo: Undo, version: 4 | 5, refuse: (publish: Publish) => Refusal | undefined): Promise<RefusingBroker> {
  const broker = await startRefusingBroker(version, refuse);
  undo(() => broker.stop());
  return broker;
}

async function rigAt(undo: Undo, port: number, settings: object = {}, details: object = {}): Promise<Rig> {
  const rig = await startRig();
  undo(() => rig.stop());
  rig.start(mqttSpec(port, { settings }, details));
  return rig;
}

const keyOf = (number: number, variable: string, source = "press-1"): string => `${source}/${RIG_START_MS + number * 1000}/${variable}`;
const keysOf = (from: number, to: number, variables = VARIABLES, source = "press-1"): string[] =>
  Array.from({ length: (to - from) * variables }, (_, i) => keyOf(from + Math.floor(i / variables), `v${i % variables}`, source));
const missingOf = (broker: RefusingBroker, keys: readonly string[]): string[] => {
  const values = broker.values();
  return keys.filter((key) => !values.has(key));
};
/** accepted = delivered + unconfirmed + filtered + pending + Σ dropped at every look. */
const isExact = (rig: Rig): boolean => {
  const none = { accepted: 0, delivered: 0, unconfirmed: 0, filtered: 0, pending: 0, dropped: {} };
  const { accepted, delivered, unconfirmed, filtered, pending, dropped } = rig.sink() ?? none;
  return accepted === delivered + unconfirmed + filtered + pending + Object.values(dropped).reduce((sum, values) => sum + values, 0);
};
const logged = (rig: Rig, words: RegExp): number =>
  rig.told.filter((told) => told.type === "log" && told.level !== "debug" && words.test(told.message)).length;

/** The newest values arrive as soon as they would from a broker that refuses nothing. */
async function expectAllWell(rig: Rig, broker: RefusingBroker): Promise<void> {
  const from = rig.readouts();
  rig.append(50);
  await until(() => expect(missingOf(broker, keysOf(from, from + 50))).toEqual([]), 10_000);
  await until(() => expect(rig.sink()?.pending).toBe(0), 10_000);
  expect(isExact(rig)).toBe(true);
}

const HOW: readonly (readonly [string, 4 | 5, Refusal])[] = [
  ["PUBACK 149 (Packet too large)", 5, TOO_LARGE],
  ["PUBACK 153 (Payload format invalid)", 5, { how: "puback", code: 153 }],
  ["PUBACK 0x42, which MQTT does not know", 5, { how: "puback", code: 0x42 }],
  ["PUBACK 0x96, which is no code of a PUBACK", 5, { how: "puback", code: 0x96 }],
  ["PUBACK 0xFF, which MQTT does not know", 5, { how: "puback", code: 0xff }],
  ["PUBACK 149 and a FIN", 5, { how: "puback", code: 149, closes: true }],
  ["DISCONNECT 149", 5, { how: "disconnect", code: 149 }],
  ["DISCONNECT 0x99, payload format invalid", 5, { how: "disconnect", code: 0x99 }],
  ["DISCONNECT 0x42, which MQTT does not know", 5, { how: "disconnect", code: 0x42 }],
  ["a FIN", 5, { how: "fin" }],
  ["a reset", 5, { how: "reset" }],
  ["a FIN", 4, { how: "fin" }],
  ["a reset", 4, { how: "reset" }],
  ["no answer", 5, { how: "silence" }],
  ["no answer", 4, { how: "silence" }],
];

describe.concurrent.for(HOW)("a broker that answers one value with %s, MQTT version %i", ([_how, version, refusal]) => {
  test.concurrent.for([
    ["at the head", 0],
    ["in the middle of the window", 7],
  ] as const)("%s: that value is dropped and counted, all others arrive, and all is well again", async ([_where, number], context) => {
    const undo = undoOf(context);
    const broker = await brokerOf(undo, version, refusing(holdsReadout(number), refusal));
    const rig = await rigAt(undo, broker.port, { publish_timeout: "500ms" });
    rig.append(20);
    const live = setInterval(() => rig.append(1, { source: "press-2" }), 200);
    undo(() => clearInterval(live));
    await until(() => expect(rig.sink()?.dropped).toEqual({ refused: 1 }), 90_000);
    clearInterval(live);
    await until(() => expect(rig.sink()?.pending).toBe(0), 20_000);
    const keys = keysOf(0, 20);
    expect(missingOf(broker, keys)).toEqual([keyOf(number, "v0")]);
    expect(rig.report()).toMatchObject({ state: "ERROR", error: { detail: expect.stringContaining("press-1") } });
    expect(logged(rig, /refuse|dropped/)).toBeGreaterThanOrEqual(1);
    await expectAllWell(rig, broker);
    expect(rig.sink()?.dropped).toEqual({ refused: 1 });
  });
});

test.concurrent.for([
  ["PUBACK 149", 5, TOO_LARGE],
  ["PUBACK 0x42", 5, { how: "puback", code: 0x42 }],
  ["a FIN", 4, { how: "fin" }],
] as const)(
  "several poison messages at once, answered with %s: each is found, the others arrive",
  async ([_how, version, refusal], context) => {
    const undo = undoOf(context);
    const poison = [0, 3, 4, 11];
    const broker = await brokerOf(undo, version, refusing(holdsReadout(...poison), refusal));
    const rig = await rigAt(undo, broker.port);
    rig.append(20);
    const live = setInterval(() => rig.append(1, { source: "press-2" }), 200);
    undo(() => clearInterval(live));
    await until(() => expect(rig.sink()?.dropped).toEqual({ refused: poison.length }), 150_000);
    clearInterval(live);
    await until(() => expect(rig.sink()?.pending).toBe(0), 20_000);
    expect(missingOf(broker, keysOf(0, 20))).toEqual(poison.map((number) => keyOf(number, "v0")));
    await expectAllWell(rig, broker);
  },
);

test.concurrent.for([
  ["PUBACK 149", 5, TOO_LARGE],
  ["PUBACK 0x42", 5, { how: "puback", code: 0x42 }],
  ["DISCONNECT 149", 5, { how: "disconnect", code: 149 }],
  ["a FIN", 4, { how: "fin" }],
  ["a reset", 5, { how: "reset" }],
  ["silence", 5, { how: "silence" }],
] as const)(
  "a broker that answers every publish of values with %s gets each of them when it is well again: nothing is dropped",
  async ([_how, version, refusal], context) => {
    const undo = undoOf(context);
    const broker = await brokerOf(undo, version, () => refusal);
    const rig = await rigAt(undo, broker.port, { publish_timeout: "300ms" });
    rig.append(20);
    await until(() => expect(rig.report()?.state).toBe("ERROR"), 20_000);
    await new Promise((done) => setTimeout(done, 12_000));
    rig.append(5);
    const pending = { accepted: 25 * VARIABLES, delivered: 0, pending: 25 * VARIABLES, dropped: {} };
    await until(() => expect(rig.sink()).toMatchObject(pending), 5000);
    broker.refuse(() => undefined);
    await until(() => expect(rig.sink()).toMatchObject({ delivered: 25 * VARIABLES, pending: 0, dropped: {} }), 90_000);
    expect(missingOf(broker, keysOf(0, 25))).toEqual([]);
    await until(() => expect(rig.report()?.state).toBe("OK"), 90_000);
    await expectAllWell(rig, broker);
  },
);

test.concurrent("a broker that closes 100 ms after it refused a value: what is under way by then is not blamed for it", async (context) => {
  const undo = undoOf(context);
  const poison = holdsReadout(0, 6);
  const broker = await brokerOf(undo, 5, refusing(poison, { how: "puback", code: 0x99, closes: true, afterMs: 100 }));
  const rig = await rigAt(undo, broker.port);
  rig.append(20);
  const live = setInterval(() => rig.append(1, { source: "press-2" }), 50);
  undo(() => clearInterval(live));
  await until(() => expect(rig.sink()?.dropped).toEqual({ refused: 2 }), 90_000);
  clearInterval(live);
  await until(() => expect(rig.sink()?.pending).toBe(0), 20_000);
  expect(rig.sink()?.dropped).toEqual({ refused: 2 });
  expect(missingOf(broker, keysOf(0, 20))).toEqual([keyOf(0, "v0"), keyOf(6, "v0")]);
});

describe("a broker that takes no message above 1,200 bytes", () => {
  const tooLarge = ({ bytes }: Publish): boolean => bytes > 1200;
  test.concurrent.for([
    ["PUBACK 149", 5, TOO_LARGE],
    ["DISCONNECT 149", 5, { how: "disconnect", code: 149 }],
    ["a FIN", 4, { how: "fin" }],
    ["a reset", 4, { how: "reset" }],
  ] as const)(
    "and answers a larger one with %s, gets smaller ones and every value, and few larger ones later",
    async ([_how, version, refusal], context) => {
      const undo = undoOf(context);
      const broker = await brokerOf(undo, version, refusing(tooLarge, refusal));
      const rig = await rigAt(undo, broker.port);
      rig.append(20, { variables: 200 });
      await until(() => expect(rig.sink()).toMatchObject({ delivered: 4000, pending: 0, dropped: {} }), 60_000);
      expect(missingOf(broker, keysOf(0, 20, 200))).toEqual([]);
      const learnt = broker.refused.length;
      rig.append(50, { variables: 200 });
      await until(() => expect(rig.sink()).toMatchObject({ delivered: 14_000, pending: 0, dropped: {} }), 20_000);
      expect(missingOf(broker, keysOf(0, 70, 200))).toEqual([]);
      expect(broker.refused.length - learnt).toBeLessThanOrEqual(2);
      expect(rig.report()).toMatchObject({ state: "OK" });
    },
  );

  test.concurrent.for([
    ["PUBACK 149", 5, TOO_LARGE],
    ["DISCONNECT 149", 5, { how: "disconnect", code: 149 }],
    ["a FIN", 4, { how: "fin" }],
  ] as const)(
    "and answers with %s: a single text above it is dropped and counted, its neighbours arrive",
    async ([_how, version, refusal], context) => {
      const undo = undoOf(context);
      const broker = await brokerOf(undo, version, refusing(tooLarge, refusal));
      const rig = await rigAt(undo, broker.port);
      rig.append(10, { textsOf: (number) => ["a", number === 4 ? "x".repeat(2000) : "b", "c", "d"] });
      const live = setInterval(() => rig.append(1, { source: "press-2" }), 200);
      undo(() => clearInterval(live));
      await until(() => expect(rig.sink()?.dropped).toEqual({ refused: 1 }), 90_000);
      clearInterval(live);
      await until(() => expect(rig.sink()?.pending).toBe(0), 20_000);
      expect(missingOf(broker, keysOf(0, 10))).toEqual([keyOf(4, "v1")]);
      expect(isExact(rig)).toBe(true);
    },
  );
});

describe.skipIf(!hasMosquitto && process.env["COLLECTOR_REQUIRE_PARTS"] !== "1")("mosquitto with message_size_limit", () => {
  const LIMIT = 1000;
  async function mosquitto(undo: Undo, port: number): Promise<void> {
    const folder = await mkdtemp(path.join(tmpdir(), "mosquitto-"));
    undo(() => rm(folder, { recursive: true, force: true }));
    const file = path.join(folder, "mosquitto.conf");
    await writeFile(file, ["user root", `listener ${port} 127.0.0.1`, "allow_anonymous true", `message_size_limit ${LIMIT}`].join("\n"));
    const child = spawn(MOSQUITTO, ["-c", file], { stdio: "ignore" });
    undo(() => child.kill("SIGKILL"));
  }

  test.concurrent("takes a large readout in smaller messages; a single value above the limit is dropped and counted, its neighbours arrive", async (context) => {
    const undo = undoOf(context);
    const port = await freePort();
    await mosquitto(undo, port);
    const arrived = new Set<string>();
    const client = connect({ host: "127.0.0.1", port, reconnectPeriod: 20 });
    undo(() => client.endAsync(true));
    client.on("error", () => {});
    client.on("connect", () => void client.subscribeAsync("plant/values", { qos: 1 }).catch(() => {}));
    client.on("message", (_topic, payload) => {
      const { source, readouts } = JSON.parse(payload.toString()) as {
        source: string;
        readouts: { ts: string; values: Record<string, unknown> }[];
      };
      for (const { ts, values } of readouts) for (const name of Object.keys(values)) arrived.add(`${source}/${Date.parse(ts)}/${name}`);
    });
    await new Promise<void>((done) => client.once("connect", () => done()));
    const rig = await rigAt(undo, port);
    rig.append(5);
    rig.append(5, { variables: 300 });
    rig.append(1, { textsOf: () => ["a", "x".repeat(2 * LIMIT), "c", "d"] });
    rig.append(9);
    const live = setInterval(() => rig.append(1, { source: "press-2" }), 200);
    undo(() => clearInterval(live));
    await until(() => expect(rig.sink()?.dropped).toEqual({ refused: 1 }), 30_000);
    clearInterval(live);
    await until(() => expect(rig.sink()?.pending).toBe(0), 10_000);
    expect(isExact(rig)).toBe(true);
    expect(rig.report()).toMatchObject({ state: "ERROR", error: { detail: expect.stringMatching(/code 149/) } });
    const wanted = [...keysOf(0, 5), ...keysOf(5, 10, 300), ...keysOf(10, 20)].filter((key) => key !== keyOf(10, "v1"));
    await until(() => expect(wanted.filter((key) => !arrived.has(key))).toEqual([]), 10_000);
  });
});
