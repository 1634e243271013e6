import { expect, type TestContext, test, vi } from "vitest";
import { type Publish, type Refusal, type RefusingBroker, startRefusingBroker } from "../../test/support/refusing-broker.ts";
import { mqttSpec, RIG_START_MS, type Rig, startRig } from "./testing/rig.ts";

/** What a broker refuses for now is held, and nothing else waits for it. The tests mostly wait, and run beside each other. */

vi.setConfig({ testTimeout: 60_000, maxConcurrency: 10 });

const NO_RIGHT: Refusal = { how: "puback", code: 135 };
const TROUBLE: Refusal = { how: "puback", code: 128 };
const VARIABLES = 4;

const until = (check: () => void, timeoutMs = 20_000): Promise<void> => vi.waitFor(check, { timeout: timeoutMs, interval: 20 });
const of =
  (source: string, refusal: Refusal) =>
  ({ payload }: Publish): Refusal | undefined =>
    payload.includes(`"source":"${source}"`) ? refusal : undefined;

interface SetUp {
  readonly rig: Rig;
  readonly broker: RefusingBroker;
  /** Appends one readout of the source; returns the keys of its values. */
  readonly read: (source: string) => readonly string[];
  readonly missing: (keys: readonly string[]) => readonly string[];
}

async function setUp(
  { onTestFinished }: TestContext,
  refuse: (publish: Publish) => Refusal | undefined,
  hold: string,
  topic = "plant/{source}",
): Promise<SetUp> {
  const broker = await startRefusingBroker(5, refuse);
  const rig = await startRig();
  onTestFinished(async () => {
    await rig.stop();
    await broker.stop();
  });
  rig.start(mqttSpec(broker.port, { settings: { hold_refused: hold, publish_timeout: "2s" } }, { topic, publish_interval: 100 }));
  await until(() => expect(rig.report()?.state).toBe("OK"));
  return {
    rig,
    broker,
    read(source) {
      const time = RIG_START_MS + rig.readouts() * 1000;
      rig.append(1, { source });
      return Array.from({ length: VARIABLES }, (_, i) => `${source}/${time}/v${i}`);
    },
    missing(keys) {
      const values = broker.values();
      return keys.filter((key) => !values.has(key));
    },
  };
}

const sumOf = (rig: Rig): number => {
  const { delivered = 0, unconfirmed = 0, pending = 0, dropped = {} } = rig.sink() ?? {};
  return delivered + unconfirmed + pending + Object.values(dropped).reduce((sum, n) => sum + n, 0);
};

test.concurrent.for<[string, Refusal]>([
  ["missing rights", NO_RIGHT],
  ["trouble of the broker", TROUBLE],
])("%s: that topic's values wait under ERROR, other topics go on, and all arrive once it is over", async ([, refusal], context) => {
  const { rig, broker, read, missing } = await setUp(context, of("saw-1", refusal), "1min");
  const held: string[] = [];
  const live: string[] = [];
  for (let i = 0; i < 12; i++) {
    held.push(...read("saw-1"));
    live.push(...read("press-1"));
    await new Promise((done) => setTimeout(done, 50));
  }
  await until(() => expect(missing(live)).toEqual([]), 9000);
  await until(() =>
    expect(rig.report()).toMatchObject({ state: "ERROR", error: { detail: expect.stringMatching(/plant\/saw-1: .*\(code 1/) } }),
  );
  expect(missing(held)).toEqual(held);
  expect(rig.sink()?.dropped).toEqual({});
  // Not each of them is asked for: the broker has other work.
  expect(broker.refused.length).toBeLessThan(6);
  broker.refuse(() => undefined);
  await until(() => expect(missing(held)).toEqual([]));
  await until(() => expect(rig.sink()).toMatchObject({ delivered: held.length + live.length, pending: 0, dropped: {} }));
  await until(() => expect(rig.report()?.state).toBe("OK"));
  const fresh = read("saw-1");
  await until(() => expect(missing(fresh)).toEqual([]), 9000);
});

test.concurrent("a right that is not given in time: what was held is dropped and counted, later values at once; with the right they arrive", async (context) => {
  const { rig, broker, read, missing } = await setUp(context, of("saw-1", NO_RIGHT), "5s");
  const lost = [...read("saw-1"), ...read("saw-1")];
  const live = read("press-1");
  await until(() => expect(missing(live)).toEqual([]), 9000);
  expect(rig.sink()?.dropped).toEqual({});
  await until(() => expect(rig.sink()?.dropped).toEqual({ refused: lost.length }));
  lost.push(...read("saw-1"));
  await until(() => expect(rig.sink()).toMatchObject({ dropped: { refused: lost.length }, pending: 0 }), 9000);
  expect(rig.report()).toMatchObject({ state: "ERROR", error: { detail: expect.stringContaining("Not authorized (code 135)") } });
  broker.refuse(() => undefined);
  const fresh = read("saw-1");
  await until(() => expect(missing(fresh)).toEqual([]), 9000);
  broker.refuse(of("saw-1", NO_RIGHT));
  const again = read("saw-1");
  await new Promise((done) => setTimeout(done, 500));
  broker.refuse(() => undefined);
  await until(() => expect(missing(again)).toEqual([]));
  await until(() => expect(rig.sink()).toMatchObject({ dropped: { refused: lost.length }, pending: 0 }));
  expect(sumOf(rig)).toBe(rig.sink()?.accepted);
});

test.concurrent("rights of a source's topics that are lost at different times: once its time is over each is tried again, and the state is well with the next write", async (context) => {
  const lacking = new Set(["v0"]);
  const { rig, broker, read, missing } = await setUp(
    context,
    ({ topic }) => (lacking.has(topic.split("/")[2] ?? "") ? NO_RIGHT : undefined),
    "2s",
    "plant/{source}/{variable}",
  );
  read("saw-1");
  await until(() => expect(rig.report()?.error?.detail).toContain("plant/saw-1/v0"));
  const heldMs = performance.now();
  lacking.add("v1");
  // Refused later than v0, and so held for longer by itself.
  while (performance.now() - heldMs < 1000) {
    read("saw-1");
    await new Promise((done) => setTimeout(done, 200));
  }
  await until(() => expect(rig.sink()?.dropped["refused"]).toBeGreaterThan(0));
  lacking.clear();
  const fresh = read("saw-1");
  await until(() => expect(missing(fresh)).toEqual([]), 9000);
  await until(() => expect(rig.report()).toMatchObject({ state: "OK", error: null }), 9000);
  expect(broker.sockets).toHaveLength(1);
  expect(sumOf(rig)).toBe(rig.sink()?.accepted);
});

test.concurrent("with hold_refused 0s it is dropped at once", async (context) => {
  const { rig, read } = await setUp(context, of("saw-1", NO_RIGHT), "0s");
  const lost = read("saw-1");
  await until(() => expect(rig.sink()).toMatchObject({ dropped: { refused: lost.length }, pending: 0 }), 9000);
});

test.concurrent("one topic for all: everything waits, and all of it arrives", async (context) => {
  const { rig, broker, read, missing } = await setUp(context, () => NO_RIGHT, "1min", "plant/values");
  const all: string[] = [];
  for (let i = 0; i < 10; i++) {
    all.push(...read("saw-1"), ...read("press-1"));
    await new Promise((done) => setTimeout(done, 30));
  }
  await until(() => expect(rig.report()?.state).toBe("ERROR"));
  expect(rig.sink()?.dropped).toEqual({});
  broker.refuse(() => undefined);
  await until(() => expect(missing(all)).toEqual([]));
  await until(() => expect(rig.sink()).toMatchObject({ delivered: all.length, pending: 0, dropped: {} }));
});

test.concurrent("one value at which the broker has trouble each time holds up its topic for a moment, and alone is dropped in the end", async (context) => {
  const isPoison = ({ payload }: Publish) => (/"v0":1[,}]/.test(payload) ? TROUBLE : undefined);
  const { rig, read, missing } = await setUp(context, isPoison, "2s");
  const all: string[] = [];
  for (let i = 0; i < 40; i++) {
    all.push(...read("saw-1"));
    await new Promise((done) => setTimeout(done, 100));
  }
  const [, , , , poison] = all;
  await until(() => expect(missing(all).filter((key) => key.endsWith("/v0"))).toEqual([poison]));
  const timer = setInterval(() => read("saw-1"), 200);
  context.onTestFinished(() => clearInterval(timer));
  await until(() => expect(rig.sink()?.dropped).toEqual({ refused: 1 }), 30_000);
  clearInterval(timer);
  expect(missing(all)).toEqual([poison]);
  await until(() => expect(rig.sink()?.pending).toBe(0));
  expect(sumOf(rig)).toBe(rig.sink()?.accepted);
});

test.concurrent("several at once (no right, trouble, resets, a message too large), then all well: everything arrives, and as after a fresh start", async (context) => {
  const refusals: Readonly<Record<string, Refusal>> = { "saw-1": NO_RIGHT, "mill-1": TROUBLE, "oven-1": { how: "puback", code: 149 } };
  // A single value fits: one that is refused alone again and again is dropped.
  const isSmall = (payload: string): boolean => (payload.match(/"v\d"/g) ?? []).length === 1;
  let publishes = 0;
  const { rig, broker, read, missing } = await setUp(
    context,
    ({ payload }) => {
      if (++publishes % 15 === 0) return { how: "reset" };
      const [source, refusal] = Object.entries(refusals).find(([name]) => payload.includes(`"source":"${name}"`)) ?? [];
      return source === "oven-1" && isSmall(payload) ? undefined : refusal;
    },
    "1min",
  );
  const all: string[] = [];
  for (let i = 0; i < 20; i++) {
    for (const source of ["saw-1", "mill-1", "press-1"]) all.push(...read(source));
    if (i % 5 === 0) all.push(...read("oven-1"));
    await new Promise((done) => setTimeout(done, 100));
  }
  expect(rig.sink()?.dropped).toEqual({});
  expect(sumOf(rig)).toBe(rig.sink()?.accepted);
  broker.refuse(() => undefined);
  await until(() => expect(missing(all)).toEqual([]), 40_000);
  await until(() => expect(rig.sink()).toMatchObject({ accepted: all.length, delivered: all.length, pending: 0, dropped: {} }));
  await until(() => expect(rig.report()?.state).toBe("OK"));
  const before = broker.taken.length;
  const fresh = ["saw-1", "mill-1", "press-1", "oven-1"].flatMap((source) => read(source));
  await until(() => expect(missing(fresh)).toEqual([]), 9000);
  expect(broker.taken.length).toBe(before + 4);
});

test.concurrent.for<[string, string, (publish: Publish) => string]>([
  ["a topic for each source", "plant/{source}", ({ topic }) => topic.split("/")[1] ?? ""],
  ["a topic for each variable", "plant/{source}/{variable}", ({ topic }) => topic.split("/").slice(1).join("/")],
])(
  "%s: rights that come back one after the other, the state is well with the last of them, stays so, and nothing is held any more",
  async ([, template, nameOf], context) => {
    const perVariable = template.includes("{variable}");
    const lacking = new Set(perVariable ? ["saw-1/v0", "saw-1/v2", "mill-1/v1"] : ["saw-1", "mill-1"]);
    const { rig, broker, read, missing } = await setUp(
      context,
      (publish) => (lacking.has(nameOf(publish)) ? NO_RIGHT : undefined),
      "1min",
      template,
    );
    const all: string[] = [];
    const readAll = () => all.push(...["saw-1", "mill-1", "press-1"].flatMap(read));
    readAll();
    await until(() => expect(rig.report()?.state).toBe("ERROR"));
    readAll();
    for (const name of [...lacking]) {
      expect(rig.report()?.state).toBe("ERROR");
      lacking.delete(name);
      readAll();
      await until(() => expect(missing(all.filter((key) => isOf(key, name)))).toEqual([]));
    }
    await until(() => expect(rig.report()?.state).toBe("OK"));
    const toldBefore = rig.told.length;
    const takenBefore = broker.taken.length;
    for (let i = 0; i < 5; i++) {
      readAll();
      await until(() => expect(missing(all)).toEqual([]), 9000);
    }
    const states = rig.told.slice(toldBefore).flatMap((told) => (told.type === "report" ? told.sinks.map(({ state }) => state) : []));
    expect(new Set(states)).toEqual(new Set(states.length > 0 ? ["OK"] : []));
    expect(broker.taken.slice(takenBefore).filter(({ payload }) => payload.includes('"backlog":true'))).toEqual([]);
    expect(broker.sockets).toHaveLength(1);
    expect(rig.sink()?.dropped).toEqual({});
  },
);

/** True: a key is of a source, or of a variable of one. */
function isOf(key: string, name: string): boolean {
  const [source = "", , variable = ""] = key.split("/");
  return name === source || name === `${source}/${variable}`;
}

test.concurrent("a restart while values are held: none is lost", async (context) => {
  const { rig, broker, read, missing } = await setUp(context, of("saw-1", NO_RIGHT), "1min");
  const all = [...read("saw-1"), ...read("press-1"), ...read("saw-1")];
  await until(() => expect(rig.report()?.state).toBe("ERROR"));
  rig.relink();
  all.push(...read("saw-1"), ...read("press-1"));
  await new Promise((done) => setTimeout(done, 300));
  broker.refuse(() => undefined);
  await until(() => expect(missing(all)).toEqual([]));
  await until(() => expect(rig.sink()).toMatchObject({ delivered: all.length, pending: 0, dropped: {} }));
});
