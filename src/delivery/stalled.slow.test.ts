import { afterEach, expect, test, vi } from "vitest";
import { ReasonError } from "../model/reason.ts";
import { explainReason } from "../model/words/catalogue.ts";
import { House, type HouseOptions, START_MS } from "./testing/house.ts";
import { mqttSpec } from "./testing/rig.ts";

/** A sink that says OK and gets nothing, for whatever reason, does not stay so; one that waits on purpose is left alone. */

const UUID = "a";
let house: House | undefined;
afterEach(async () => {
  await house?.end();
  house = undefined;
  vi.useRealTimers();
});

/** A house with one sink, which has got its first readout. */
async function setUp(options: HouseOptions = {}, details: object = {}): Promise<House> {
  vi.useFakeTimers({ now: START_MS });
  house = new House(options);
  house.setSinks([mqttSpec(1, { uuid: UUID, name: "broker" }, { publish_interval: 100, ...details })]);
  await house.pass(1000);
  return house;
}

/** One readout a second. */
async function read(one: House, seconds: number): Promise<void> {
  for (let i = 0; i < seconds; i++) {
    one.append(1);
    await one.pass(1000);
  }
}

const warnings = (one: House) => one.lines.filter(({ level }) => level === "warn" || level === "error").map(({ message }) => message);

/** From the first readout on, what the store commits is not heard of: the delivery's own idea of it is wrong. */
function deafening() {
  let isDeaf = false;
  return {
    loses: ({ type }: { readonly type: string }) => isDeaf && type === "committed",
    deafen: (is: boolean) => {
      isDeaf = is;
    },
  };
}

test("a sink that says OK and gets nothing is attached again, with one line", async () => {
  const { loses, deafen } = deafening();
  const one = await setUp({ loses });
  await read(one, 2);
  deafen(true);
  await read(one, 9);
  expect(one.report(UUID)).toMatchObject({ state: "OK" });
  expect(one.got(UUID)).toBe(2);
  await read(one, 3);
  deafen(false);
  await read(one, 3);
  expect(one.got(UUID)).toBe(17);
  expect(one.account(UUID)).toMatchObject({ pending: 0 });
  expect(one.report(UUID)).toMatchObject({ state: "OK", error: null });
  expect(warnings(one)).toEqual([
    "nothing was delivered for 10 s, although the sink is connected and values wait: it is attached to the buffer again",
  ]);
});

test("the second time within ten minutes is an ERROR with a sentence of its own, which ends ten minutes after the last", async () => {
  const { loses, deafen } = deafening();
  const one = await setUp({ loses });
  deafen(true);
  await read(one, 26);
  // What could be delivered by then is.
  expect(one.got(UUID)).toBeGreaterThanOrEqual(20);
  const { state, error } = one.report(UUID) ?? {};
  expect(state).toBe("ERROR");
  expect(error).toEqual({
    reason: { type: "UNKNOWN" },
    condition: "delivery_stalled",
    detail: "nothing was delivered for 10 s, although the sink is connected and values wait, and attaching it again did not help",
  });
  expect(explainReason({ type: "UNKNOWN" }, error?.condition, { source: "broker" }).sentence).toMatch(/does not deliver what waits for/);
  await read(one, 24);
  expect(warnings(one)).toHaveLength(2);
  deafen(false);
  await vi.advanceTimersByTimeAsync(620_000);
  await read(one, 2);
  expect(one.missing()).toEqual([]);
  expect(one.report(UUID)).toMatchObject({ state: "OK", error: null });
});

/** Long enough for any of them to be noticed, with values that are read all the time. */
const LONG_S = 40;

test("keeps still where the server has the write and does not answer: a bound of the link", async () => {
  const waiting: (() => void)[] = [];
  const one = await setUp({ sinks: { writing: () => new Promise((done) => waiting.push(() => done(undefined))) } });
  await read(one, LONG_S);
  expect(one.got(UUID)).toBe(0);
  expect(warnings(one)).toEqual([]);
  expect(one.report(UUID)).toMatchObject({ state: "OK" });
});

test("keeps still where the server refuses values for now, which are held", async () => {
  let isHeld = true;
  const one = await setUp({
    sinks: {
      async writing(_uuid, batch) {
        if (!isHeld) return undefined;
        const parts = [...batch.readouts].map((_, readout) => ({ readout, from: 0, to: 2 }));
        return { refused: 0, refusals: [{ parts, detail: "no right", hold: { forMs: 1e9, next: "drop" } }] };
      },
    },
  });
  await read(one, LONG_S);
  expect(one.got(UUID)).toBe(0);
  expect(warnings(one)).toEqual(["the sink fails on some values; they are kept and tried again in messages of their own"]);
  isHeld = false;
  await one.pass(60_000, () => one.missing().length === 0);
  expect(one.missing()).toEqual([]);
});

test("keeps still while the server asks for a pause", async () => {
  let asks = true;
  const one = await setUp({
    sinks: {
      async writing() {
        if (!asks) return undefined;
        asks = false;
        throw new ReasonError("UNKNOWN", "429: later", { retryAfterMs: 60_000, condition: "server_refuses" });
      },
    },
  });
  await read(one, 55);
  expect(one.got(UUID)).toBe(0);
  expect(warnings(one)).toEqual(["the sink cannot be reached; values wait in the buffer"]);
  await one.pass(20_000, () => one.missing().length === 0);
  expect(one.missing()).toEqual([]);
  expect(warnings(one)).toHaveLength(1);
});

test("keeps still while a publish interval lasts", async () => {
  const one = await setUp({}, { publish_interval: 30_000 });
  await read(one, LONG_S);
  expect(warnings(one)).toEqual([]);
});

test("keeps still where values come one by one and late, and where none come", async () => {
  const one = await setUp();
  for (let i = 0; i < 3; i++) {
    one.append(1);
    await one.pass(30_000);
  }
  expect(one.got(UUID)).toBe(3);
  expect(warnings(one)).toEqual([]);
});
