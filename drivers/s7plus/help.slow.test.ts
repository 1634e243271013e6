import { afterEach, describe, expect, it, vi } from "vitest";
import { codesOf, textsOf } from "../../src/model/testing/warnings.ts";
import { driverContext as context, deviceMemory } from "../../test/support/driver-context.ts";
import type { AnySession, DriverContext, Point } from "../driver.ts";
import driver from "./driver.ts";
import type { PlusLimits } from "./plan.ts";
import { largeProgram, type S7PlusPlc, startS7PlusPlc, startSimulator } from "./simulator.ts";

/** Longer than the simulator takes, so short that a request without an answer costs little. */
const ANSWER_MS = 150;
const PLACE = "8A0E0001.A";

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const step of cleanUp.splice(0).reverse()) await step();
});

async function simulated(change: (plc: S7PlusPlc) => void = () => {}): Promise<S7PlusPlc> {
  const simulator = await startSimulator();
  cleanUp.push(() => simulator.close());
  change(simulator.plc);
  return simulator.plc;
}

interface How {
  readonly local?: object;
  readonly details?: object;
  readonly password?: string;
}

async function open({ port }: S7PlusPlc, ctx: DriverContext, { local = {}, details = {}, password }: How = {}): Promise<AnySession> {
  const session = await driver.connect(
    {
      details: driver.details.parse({ type: "s7plus", host: "127.0.0.1", port, password: { type: "none" }, ...details }),
      settings: driver.settings.parse(local),
      secrets: password === undefined ? {} : { password },
    },
    ctx,
  );
  cleanUp.push(() => session.close());
  return session;
}

/** Values by address, or the fault with which each was refused. */
async function read(session: AnySession, addresses: readonly string[], ctx: DriverContext): Promise<Record<string, unknown>> {
  const points = addresses.map((text, index) => ({ index, ...driver.parseAddress(text, undefined, driver.settings.parse({})) }));
  const [values, ready]: [Record<string, unknown>, Point[]] = [{}, []];
  for await (const batch of session.prepare?.(points, ctx) ?? [])
    for (const one of batch)
      if ("address" in one) ready.push({ index: one.point.index, address: one.address, type: one.type });
      else values[addresses[one.point.index] ?? ""] = one.refusal.fault;
  for (const request of driver.plan(ready, session.limits))
    for (const [i, reading] of (await session.read(request, ctx)).entries())
      values[addresses[request.points[i]?.index ?? -1] ?? ""] = reading.quality === "bad" ? reading.fault : reading.value;
  return values;
}

const maxItemsOf = ({ limits }: AnySession): number => (limits as PlusLimits).maxItems;
const HMI = { details: { destination_tsap: "SIMATIC-ROOT-HMI" } };

describe("a request that only helps and has no answer", () => {
  it("costs symbols alone where the list of the blocks is silent, and they come back with it", async () => {
    const ctx = context({ answerMs: ANSWER_MS, device: deviceMemory() });
    const plc = await simulated();
    const well = await read(await open(plc, context(), HMI), [PLACE, "Types.int"], context());
    expect(well["Types.int"]).toBe(-7);
    plc.misbehave = ({ name }) => (name === "explore" ? { silent: true } : undefined);
    const session = await open(plc, ctx, HMI);
    expect(await read(session, [PLACE, "Types.int"], ctx)).toEqual({ [PLACE]: well[PLACE], "Types.int": "no_answer" });
    expect(textsOf(session.warnings?.())).toEqual([expect.stringContaining("gives no answer to the look-up of symbols")]);
    expect(session.alive()).toBe(true);
    plc.misbehave = undefined;
    const now = performance.now.bind(performance);
    vi.spyOn(performance, "now").mockImplementation(() => now() + 61_000);
    expect(await read(session, [PLACE, "Types.int"], ctx)).toEqual(well);
    expect(session.warnings?.()).toEqual([]);
  });

  it("differs from a PLC that answers nothing at all", async () => {
    const ctx = context({ answerMs: ANSWER_MS, device: deviceMemory() });
    const plc = await simulated();
    const session = await open(plc, ctx, HMI);
    plc.misbehave = () => ({ silent: true });
    await expect(read(session, ["Types.int"], ctx)).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
    expect(session.alive()).toBe(false);
    plc.misbehave = undefined;
    expect(await read(await open(plc, ctx, HMI), ["Types.int"], ctx)).toEqual({ "Types.int": -7 });
  });

  it("leaves twenty variables at once where it is for the limits", async () => {
    const ctx = context({ answerMs: ANSWER_MS, device: deviceMemory() });
    const plc = await simulated();
    let silent = true;
    plc.misbehave = ({ name }) => (name === "getMultiVariables" && silent ? { silent: true } : undefined);
    const session = await open(plc, ctx, HMI);
    silent = false;
    expect(session.granted).toContain("20 variables in one request");
    expect(await read(session, ["Types.int"], ctx)).toEqual({ "Types.int": -7 });
    expect([codesOf(session.warnings?.()), maxItemsOf(session)]).toEqual([["help_silent"], 20]);
    const now = performance.now.bind(performance);
    vi.spyOn(performance, "now").mockImplementation(() => now() + 61_000);
    expect(await read(session, ["Types.int"], ctx)).toEqual({ "Types.int": -7 });
    expect([codesOf(session.warnings?.()), maxItemsOf(session)]).toEqual([[], expect.toSatisfy((items: number) => items > 20)]);
  });

  it("fails the source where it is the look-up of symbols and no variable is read, and is tried whenever that is", async () => {
    const ctx = context({ answerMs: ANSWER_MS, device: deviceMemory() });
    const plc = await simulated();
    plc.misbehave = ({ name }) => (name === "explore" ? { silent: true } : undefined);
    const session = await open(plc, ctx, HMI);
    await expect(read(session, ["Types.int"], ctx)).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
    expect(session.alive()).toBe(true);
    plc.misbehave = undefined;
    expect(await read(session, ["Types.int"], ctx)).toEqual({ "Types.int": -7 });
    plc.misbehave = ({ name }) => (name === "explore" ? { silent: true } : undefined);
    expect(await read(session, ["Motor_DB.main.speed"], ctx)).toEqual({ "Motor_DB.main.speed": "no_answer" });
  });
});

describe("the log-in that a PLC knows", () => {
  const lock =
    (legitimation: "legacy" | "new", firmware: string) =>
    (plc: S7PlusPlc): void => {
      [plc.level, plc.password, plc.legitimation] = [4, "secret", legitimation];
      plc.device = `1;6ES7 511-1AK02-0AB0;${firmware}`;
      plc.unknownLoginCode = -95;
    };
  const asks = (plc: S7PlusPlc) => plc.counts.created;

  it.each([
    ["new", "V2.9"],
    ["legacy", "V3.1"],
  ] as const)("is found and kept where it is not the firmware's: %s with %s", async (legitimation, firmware) => {
    const ctx = context({ device: deviceMemory() });
    const plc = await simulated(lock(legitimation, firmware));
    const challenges = () => plc.lastRequests.filter(({ name, object }) => name === "getVarSubStreamed" && object === 303).length;
    expect(await read(await open(plc, ctx, { password: "secret" }), ["Types.int"], ctx)).toEqual({ "Types.int": -7 });
    expect(challenges()).toBe(2);
    expect(await read(await open(plc, ctx, { password: "secret" }), ["Types.int"], ctx)).toEqual({ "Types.int": -7 });
    expect(challenges()).toBe(3);
    expect([asks(plc), plc.counts.logins, plc.counts.wrongPasswords]).toEqual([2, 2, 0]);
  });

  it("leaves out the password of a level where a user is set", async () => {
    const plc = await simulated(lock("legacy", "V3.1"));
    await expect(open(plc, context(), { local: { user: "otto" }, password: "secret" })).rejects.toMatchObject({
      reason: { category: "AUTHENTICATION" },
    });
    expect(plc.counts.wrongPasswords).toBe(0);
  });
});

describe("the size of a request", () => {
  it("is kept over sessions for ten minutes", async () => {
    const ctx = context({ device: deviceMemory() });
    const plc = await startS7PlusPlc({ program: largeProgram(60) });
    cleanUp.push(() => plc.close());
    [plc.toldReadItems, plc.maxReadItems] = [100, 9];
    const names = Array.from({ length: 40 }, (_, i) => `Block_1.value_${i}`);
    const first = await open(plc, ctx, HMI);
    const values = await read(first, names, ctx);
    const learned = maxItemsOf(first);
    expect(learned).toBeLessThan(10);
    const next = await open(plc, ctx, HMI);
    expect(maxItemsOf(next)).toBe(learned);
    expect(codesOf(next.warnings?.() ?? [])).toEqual(["device_limited"]);
    expect(await read(next, names, ctx)).toEqual(values);
    const now = performance.now.bind(performance);
    vi.spyOn(performance, "now").mockImplementation(() => now() + 601_000);
    expect(maxItemsOf(await open(plc, ctx, HMI))).toBe(100);
  });
});

describe("the kind of connection", () => {
  it.each([
    ["SIMATIC-ROOT-ES", "an engineering station's connection", ["engineering_connection_held"]],
    ["SIMATIC-ROOT-HMI", "a panel's connection", []],
  ] as const)("is said: %s", async (tsap, words, codes) => {
    const session = await open(await simulated(), context(), { details: { destination_tsap: tsap } });
    expect(session.granted).toContain(words);
    expect(codesOf(session.warnings?.() ?? [])).toEqual(codes);
  });
});
