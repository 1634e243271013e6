import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { AnyDriver, AnySession, DriverContext, Point } from "../../drivers/driver.ts";
import { DRIVERS } from "../../drivers/index.ts";
import type { Simulator, StartSimulator } from "../../drivers/simulator.ts";
import { silentLog } from "../../src/model/context.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type DataType, parseDataType, type Reading, SCALAR_TYPES } from "../../src/model/value.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";
import { freePort } from "../support/free-port.ts";
import { ALLOWED } from "./allowed.ts";
import { readAll } from "./support/read-all.ts";

const ROUNDS_OF_FLIPPED_BITS = 60;

/** A deadline for the whole, and time-outs well below it. */
const within = (ms: number, answerMs = ms): DriverContext => ({
  signal: AbortSignal.timeout(ms),
  log: silentLog,
  timeouts: { nameMs: ms, connectMs: ms, answerMs },
});

const typeOf = (text: string): DataType => {
  const type = parseDataType(text);
  if (!type) throw new Error(`the simulator has the type ${text}, which is none`);
  return type;
};

describe.each(Object.keys(DRIVERS))("%s", (type) => {
  let driver: AnyDriver;
  let simulator: Simulator;
  let proxy: FaultProxy;
  let settings: unknown;

  const pointsOf = (list: readonly { readonly address: string; readonly type: string }[]): Point[] =>
    list.map((variable, index) => ({ index, ...driver.parseAddress(variable.address, typeOf(variable.type), settings) }));
  const detailsFor = (port: number) => driver.details.parse(simulator.details("127.0.0.1", port));
  const connect = (ctx = within(5000), port = proxy.port): Promise<AnySession> =>
    driver.connect({ details: detailsFor(port), settings, secrets: {} }, ctx);
  const reasonOf = async (work: Promise<unknown>): Promise<string> => {
    try {
      await work;
      return "ok";
    } catch (error) {
      return error instanceof ReasonError ? error.reason.type : `not a ReasonError: ${error}`;
    }
  };
  const expectAllGood = (readings: ReadonlyMap<number, Reading>) => {
    for (const [index, variable] of simulator.variables.entries())
      expect(readings.get(index), `${variable.address} ${variable.type}`).toMatchObject({ quality: "good", value: variable.value });
  };

  beforeAll(async () => {
    const entry = DRIVERS[type];
    if (!entry) throw new Error(`${type} is not in the registry`);
    driver = (await entry.driver()).default;
    settings = driver.settings.parse({});
    const { startSimulator } = (await import(`../../drivers/${type}/simulator.ts`)) as { startSimulator: StartSimulator };
    simulator = await startSimulator();
    proxy = await startFaultProxy(simulator.port);
  });
  afterAll(async () => {
    await proxy.close();
    await simulator.close();
  });

  it("is registered under its own name", () => {
    expect(driver.type).toBe(type);
    expect(driver.title).not.toBe("");
    expect(driver.endpoint(detailsFor(4711))).toMatchObject({ host: "127.0.0.1", port: 4711 });
  });

  it("describes every setting, has a default for each, and refuses unknown ones", () => {
    const schema = z.toJSONSchema(driver.settings, { io: "input" });
    for (const [name, field] of Object.entries(schema.properties ?? {})) expect(field, name).toHaveProperty("description");
    expect(driver.settings.safeParse({ surprise: 1 }).success).toBe(false);
  });

  it("refuses malformed addresses with address_invalid, names the text, and never fails otherwise", () => {
    const refusal = (text: string, wanted: DataType | undefined): unknown => {
      try {
        driver.parseAddress(text, wanted, settings);
        return undefined;
      } catch (error) {
        return error;
      }
    };
    for (const text of simulator.malformed) {
      const error = refusal(text, typeOf(simulator.missing.type));
      expect(error, text).toMatchObject({ fault: "address_invalid" });
      expect((error as Error).message).toContain(JSON.stringify(text));
    }
    const addresses = simulator.variables.map((variable) => variable.address);
    const near = fc.oneof(
      fc.string(),
      fc
        .tuple(fc.constantFrom(...addresses), fc.nat(40), fc.constantFrom("9", "-", ".", "[", "]", ":", "/", "@", " ", "\0", "ü", ""))
        .map(([address, at, inserted]) => address.slice(0, at) + inserted + address.slice(at + 1)),
    );
    const anyType = fc.option(fc.record({ scalar: fc.constantFrom(...SCALAR_TYPES) }, { requiredKeys: ["scalar"] }), { nil: undefined });
    fc.assert(
      fc.property(near, anyType, (text, wanted) => {
        const error = refusal(text, wanted);
        if (error === undefined) return;
        expect(error).toBeInstanceOf(FaultError);
        expect(["address_invalid", "type_mismatch"]).toContain((error as FaultError).fault);
      }),
      { numRuns: 500 },
    );
  });

  it("plans every point exactly once, within the limits, whatever the order", async () => {
    const session = await connect();
    const { limits } = session;
    await session.close();
    const points = pointsOf(simulator.variables);
    const shape = (subset: readonly Point[], maxPoints: number) =>
      driver.plan(subset, { ...limits, maxPoints }).map((request) => request.points.map((point) => point.index));
    fc.assert(
      fc.property(fc.shuffledSubarray(points), fc.integer({ min: 1, max: 5 }), (subset, maxPoints) => {
        const requests = shape(subset, maxPoints);
        expect(requests.flat().sort((a, b) => a - b)).toEqual(subset.map((point) => point.index).sort((a, b) => a - b));
        for (const request of requests) expect(request.length).toBeLessThanOrEqual(maxPoints);
        expect(
          shape(
            [...subset].sort((a, b) => a.index - b.index),
            maxPoints,
          ),
        ).toEqual(requests);
      }),
    );
  });

  it("reads what the device holds; one missing variable does not hurt its neighbours", async () => {
    const session = await connect();
    const points = pointsOf([...simulator.variables, simulator.missing]);
    const { readings, failure } = await readAll(driver, session, points, within(5000));
    await session.close();
    expect(failure).toBeUndefined();
    expectAllGood(readings);
    expect(readings.get(simulator.variables.length)).toMatchObject({ quality: "bad", fault: "not_found" });
  });

  it("reads the same when every byte comes by itself", async () => {
    const session = await connect();
    proxy.fault = "split";
    const { readings, failure } = await readAll(driver, session, pointsOf(simulator.variables), within(10_000));
    proxy.fault = "none";
    await session.close();
    expect(failure).toBeUndefined();
    expectAllGood(readings);
  });

  it("names a refused connection", async () => {
    expect(await reasonOf(connect(within(5000), await freePort()))).toBe("CONNECTION_REFUSED");
  });

  it.each([
    ["silent", "TIMEOUT"],
    ["cut", "CONNECTION_CLOSED"],
    ["reset", "CONNECTION_RESET"],
  ] as const)("names a device that goes %s: %s", async (fault, reason) => {
    const session = await connect();
    proxy.fault = fault;
    const started = performance.now();
    // Only a silent device may use up its time.
    const { failure } = await readAll(driver, session, pointsOf(simulator.variables), within(6000, fault === "silent" ? 300 : 6000));
    proxy.fault = "none";
    expect(failure).toBeInstanceOf(ReasonError);
    expect(failure?.reason.type).toBe(reason);
    expect(performance.now() - started).toBeLessThan(1500);
    expect(session.alive()).toBe(false);
    await session.close();
  });

  it("names a device that hangs up at once", async () => {
    proxy.fault = "close-now";
    const outcome = async () => {
      const session = await connect();
      const { failure } = await readAll(driver, session, pointsOf(simulator.variables), within(5000));
      await session.close();
      throw failure ?? new Error("it read values from nobody");
    };
    expect(["CONNECTION_CLOSED", "CONNECTION_RESET"]).toContain(await reasonOf(outcome()));
    proxy.fault = "none";
  });

  it("notices between readouts that the far side has gone", async () => {
    const session = await connect();
    expect(session.alive()).toBe(true);
    proxy.fault = "cut";
    await readAll(driver, session, pointsOf(simulator.variables), within(5000));
    proxy.fault = "none";
    await expect.poll(() => session.alive()).toBe(false);
    await session.close();
  });

  it("answers flipped bits with readings, a fault or a reason, and never anything else", async () => {
    const points = pointsOf(simulator.variables);
    for (let round = 0; round < ROUNDS_OF_FLIPPED_BITS; round++) {
      const session = await connect().catch((error: unknown) => {
        expect(error, `seed ${proxy.seed}`).toBeInstanceOf(ReasonError);
        return undefined;
      });
      proxy.fault = "flip";
      if (session) {
        const { readings, failure } = await readAll(driver, session, points, within(2000, 60));
        if (failure) expect(failure, `seed ${proxy.seed}, round ${round}`).toBeInstanceOf(ReasonError);
        else expect(readings.size, `seed ${proxy.seed}, round ${round}`).toBe(points.length);
      }
      proxy.fault = "none";
      await session?.close();
    }
  });

  it("stops a read at once when the signal aborts", async () => {
    const session = await connect();
    proxy.fault = "silent";
    const stop = new AbortController();
    const ctx = { ...within(10_000), signal: stop.signal };
    const started = performance.now();
    const reading = readAll(driver, session, pointsOf(simulator.variables), ctx);
    setTimeout(() => stop.abort(), 50);
    const { failure } = await reading;
    proxy.fault = "none";
    expect(failure).toBeInstanceOf(ReasonError);
    expect(performance.now() - started).toBeLessThan(1000);
    await session.close();
  });

  it("lets go of every socket: after close, after abort, after many reconnects", async () => {
    for (let i = 0; i < 20; i++) {
      const session = await connect();
      await session.close();
      await session.close();
      expect(session.alive()).toBe(false);
    }
    const stop = new AbortController();
    stop.abort();
    expect(await reasonOf(connect({ ...within(5000), signal: stop.signal }))).toBe("TIMEOUT");
    await expect.poll(() => proxy.connections()).toBe(0);
    await expect.poll(() => simulator.connections()).toBe(0);
  });

  it("gives every frame to the tap, in both directions", async () => {
    const out: Uint8Array[] = [];
    const inward: Uint8Array[] = [];
    const session = await connect({ ...within(5000), tap: (direction, frame) => (direction === "out" ? out : inward).push(frame) });
    const before = proxy.sent().length - 1;
    await readAll(driver, session, pointsOf(simulator.variables), within(5000));
    await session.close();
    expect(Buffer.concat(out)).toEqual(proxy.sent()[before]);
    expect(inward.length).toBeGreaterThan(0);
  });

  it("has sent nothing but requests that read", () => {
    const check = ALLOWED[type];
    if (!check) throw new Error(`test/conformance/allowed.ts has no entry for ${type}`);
    const sent = proxy.sent();
    expect(sent.reduce((bytes, one) => bytes + one.length, 0)).toBeGreaterThan(0);
    for (const bytes of sent) expect(check(bytes)).toEqual([]);
  });
});
