import fc from "fast-check";
import { expect } from "vitest";
import { z } from "zod";
import type { AnySession, Point, Request } from "../../drivers/driver.ts";
import { atOnce } from "../../src/base/timer.ts";
import type { Log } from "../../src/model/context.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type DataType, SCALAR_TYPES } from "../../src/model/value.ts";
import { collectGarbage } from "../support/collect-garbage.ts";
import { freePort } from "../support/free-port.ts";
import { ALLOWED, ALLOWED_INSIDE_TLS } from "./allowed.ts";
import { type Check, expectAllGood, misbehaving } from "./check.ts";
import { CONTRACT_CHECKS } from "./contract-checks.ts";
import { DATAGRAM_CHECKS } from "./datagram-checks.ts";
import { MISTAKE_CHECKS } from "./mistake-checks.ts";
import { PREPARE_CHECKS } from "./prepare-checks.ts";
import { type Fault, reasonOf, SECRET, within } from "./rig.ts";
import { prepareAll, readAll, readPrepared } from "./support/read-all.ts";

export type { Check } from "./check.ts";

/** What came too late is released within this, whatever the driver has to tell the device first. */
const RELEASE_MS = 20_000;
const ROUNDS_OF_FLIPPED_BITS = 60;
/** Each run has other ones; fuzz.nightly.test.ts has thirty times as many. */
const FUZZED_ANSWERS = 1000;
/** A datagram that is no answer is dropped, and its request waits: more lanes, so that this takes no longer than over streams. */
const FUZZ_LANES = { tcp: 24, udp: 96 } as const;
const PREPARED_EVERY = 10;
/** They show what is kept from 32 KiB a connection on; fuzz.nightly.test.ts has four times as many. */
const CYCLES = 250;
/** What a process may keep after many connections and answers: caches and code, never one thing for each. */
const MAX_GROWTH_BYTES = 8 * 2 ** 20;

async function usedBytes(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    collectGarbage();
    await new Promise(setImmediate);
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
const openSockets = () => process.getActiveResourcesInfo().filter((name) => /TCP|UDP/.test(name)).length;

/** The check with so many connections. */
export const connectionsCheck = (cycles: number): Check => ({
  name: `keeps nothing of ${cycles} connections`,
  timeoutMs: 300_000,
  async run(rig) {
    const { driver, connect, connections, pointsOf, simulator } = rig;
    const points = pointsOf(simulator.variables.slice(0, 3));
    const cycle = async () => {
      // Straight to the simulator: the proxy records what passes.
      const session = await connect(within(5000), simulator.port);
      await readAll(driver, session, points, within(5000));
      await session.close();
    };
    for (let i = 0; i < cycles / 10; i++) await cycle();
    await expect.poll(connections).toBe(0);
    const [bytes, sockets] = [await usedBytes(), openSockets()];
    for (let i = 0; i < cycles; i++) await cycle();
    await expect.poll(connections).toBe(0);
    await expect.poll(openSockets).toBeLessThanOrEqual(sockets);
    expect((await usedBytes()) - bytes).toBeLessThan(MAX_GROWTH_BYTES);
  },
});

/** The check with so many answers. */
export const fuzzCheck = (answers: number): Check => ({
  name: `takes ${answers} fuzzed answers with readings, a fault or a reason, in bounded memory`,
  timeoutMs: 300_000,
  async run(rig) {
    const { driver, connect, pointsOf, simulator, proxy } = rig;
    const unprepared = pointsOf(simulator.variables);
    const first = await connect();
    const { ready: points } = await prepareAll(first, unprepared, within(5000));
    await first.close();
    const before = await usedBytes();
    let left = answers;
    const lane = async (): Promise<void> => {
      let session: AnySession | undefined;
      while (left > 0) {
        // Connecting may need answers too: those are fuzzed like all others.
        session = session?.alive()
          ? session
          : await connect(within(10_000, 20)).catch((error: unknown) => {
              expect(error, `seed ${proxy.seed}`).toBeInstanceOf(ReasonError);
              left--;
              return undefined;
            });
        if (!session) continue;
        const requests = driver.plan(points, session.limits);
        const request = requests[left % requests.length];
        left--;
        if (!request) continue;
        try {
          if (session.prepare && left % PREPARED_EVERY === 0) await prepareAll(session, unprepared, within(10_000, 20));
          const readings = await session.read(request, within(10_000, 20));
          expect(readings.length).toBe(request.points.length);
          for (const reading of readings) expect(["good", "uncertain", "bad"]).toContain(reading.quality);
        } catch (error) {
          expect(error instanceof ReasonError || error instanceof FaultError, `seed ${proxy.seed}: ${error}`).toBe(true);
          if (error instanceof FaultError) expect(error.fault, `seed ${proxy.seed}: ${error.message}`).not.toBe("collector_error");
          if (error instanceof ReasonError) {
            expect(error.condition, `seed ${proxy.seed}: ${error.message}`).not.toBe("internal_error");
            void session.close();
            session = undefined;
          }
        }
      }
      await session?.close();
    };
    await misbehaving(rig, "fuzz", () => Promise.all(Array.from({ length: FUZZ_LANES[rig.transport] }, lane)));
    // A driver may end in the background what came too late for a deadline; that is bounded too.
    await expect.poll(() => proxy.connections(), { timeout: RELEASE_MS }).toBe(0);
    // What the proxy itself has recorded is not the driver's.
    const recorded = proxy.sent().reduce((bytes, one) => bytes + one.length + 512, 0);
    expect((await usedBytes()) - before - recorded).toBeLessThan(4 * MAX_GROWTH_BYTES);
  },
});

export const CHECKS: readonly Check[] = [
  {
    name: "is registered under its own name",
    async run({ driver, type, detailsFor, settings }) {
      expect(driver.type).toBe(type);
      expect(driver.title).not.toBe("");
      expect(driver.endpoint(detailsFor(4711), settings)).toMatchObject({ host: "127.0.0.1", port: 4711 });
    },
  },
  {
    name: "says of its type what its sessions can do",
    async run({ driver, connect }) {
      const session = await connect();
      await session.close();
      expect(session.discover !== undefined).toBe(driver.canDiscover === true);
    },
  },
  {
    name: "describes every setting, has a default for each, and refuses unknown ones",
    async run({ driver }) {
      const schema = z.toJSONSchema(driver.settings, { io: "input" });
      for (const [name, field] of Object.entries(schema.properties ?? {})) expect(field, name).toHaveProperty("description");
      expect(driver.settings.safeParse({ surprise: 1 }).success).toBe(false);
    },
  },
  {
    name: "refuses malformed addresses with address_invalid, names the text, and never fails otherwise",
    async run({ driver, settings, simulator, typeOf }) {
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
    },
  },
  {
    name: "plans every point exactly once, within the limits, whatever the order",
    async run({ driver, connect, pointsOf, simulator }) {
      const session = await connect();
      const { limits } = session;
      const { ready: points } = await prepareAll(session, pointsOf(simulator.variables), within(5000));
      await session.close();
      const placesOf = (requests: readonly Request[]) => requests.map((request) => request.points.map((point) => point.index));
      const shape = (subset: readonly Point[], maxPoints: number) => {
        const places = placesOf(driver.plan(subset, { ...limits, maxPoints }));
        if (driver.planSteps) expect(placesOf(atOnce(driver.planSteps(subset, { ...limits, maxPoints })))).toEqual(places);
        return places;
      };
      const inOrder = (subset: readonly Point[]) => [...subset].sort((a, b) => a.index - b.index);
      fc.assert(
        fc.property(fc.shuffledSubarray(points), fc.integer({ min: 1, max: 5 }), (subset, maxPoints) => {
          const requests = shape(subset, maxPoints);
          expect(requests.flat().sort((a, b) => a - b)).toEqual(inOrder(subset).map((point) => point.index));
          for (const request of requests) expect(request.length).toBeLessThanOrEqual(maxPoints);
          expect(shape(inOrder(subset), maxPoints)).toEqual(requests);
        }),
      );
    },
  },
  {
    name: "reads what the device holds; one missing variable does not hurt its neighbours",
    async run(rig) {
      const { driver, connect, pointsOf, simulator } = rig;
      const session = await connect();
      const points = pointsOf([...simulator.variables, simulator.missing]);
      const { readings, failure } = await readAll(driver, session, points, within(5000));
      await session.close();
      expect(failure).toBeUndefined();
      expectAllGood(rig, readings);
      expect(readings.get(simulator.variables.length)).toMatchObject({ quality: "bad", fault: "not_found" });
    },
  },
  {
    name: "reads the same when every byte comes in a packet of its own",
    only: { transport: "tcp", why: "a datagram comes whole" },
    async run(rig) {
      const { driver, connect, pointsOf, simulator } = rig;
      const session = await connect();
      const { readings, failure } = await misbehaving(rig, "split", () =>
        readAll(driver, session, pointsOf(simulator.variables), within(10_000)),
      );
      await session.close();
      expect(failure).toBeUndefined();
      expectAllGood(rig, readings);
    },
  },
  {
    name: "names a refused connection",
    async run({ driver, connect, pointsOf, simulator }) {
      const read = async () => {
        const session = await connect(within(5000), await freePort());
        const { failure } = await readAll(driver, session, pointsOf(simulator.variables), within(5000));
        await session.close();
        throw failure ?? new Error("it read values without a device");
      };
      expect(await reasonOf(read())).toBe("CONNECTION_REFUSED");
    },
  },
  ...(
    [
      ["silent", "TIMEOUT"],
      ["cut", "CONNECTION_CLOSED"],
      ["reset", "CONNECTION_RESET"],
    ] as const
  ).map(
    ([fault, reason]): Check => ({
      name: `names a device that goes ${fault}: ${reason}`,
      ...(fault !== "silent" && { only: { transport: "tcp" as const, why: "a datagram is never half, and nothing ends" } }),
      async run(rig) {
        const { driver, connect, pointsOf, simulator } = rig;
        const session = await connect();
        const { ready } = await prepareAll(session, pointsOf(simulator.variables), within(5000));
        const started = performance.now();
        // Only a silent device may use up its time.
        const answerMs = fault === "silent" ? 300 : 6000;
        const { failure } = await misbehaving(rig, fault, () => readPrepared(driver, session, ready, within(6000, answerMs)));
        expect(failure).toBeInstanceOf(ReasonError);
        expect(failure?.reason.type).toBe(reason);
        expect(performance.now() - started).toBeLessThan(1500);
        // A late answer cannot be told from the next one on a stream; datagrams have ids that rest.
        if (rig.transport === "tcp") expect(session.alive()).toBe(false);
        await session.close();
      },
    }),
  ),
  {
    name: "names a device that hangs up at once",
    only: { transport: "tcp", why: "a datagram socket opens without the device" },
    async run(rig) {
      const { driver, connect, pointsOf, simulator } = rig;
      const outcome = async () => {
        const session = await connect();
        const { failure } = await readAll(driver, session, pointsOf(simulator.variables), within(5000));
        await session.close();
        throw failure ?? new Error("it read values without a device");
      };
      expect(["CONNECTION_CLOSED", "CONNECTION_RESET"]).toContain(await misbehaving(rig, "close-now", () => reasonOf(outcome())));
    },
  },
  {
    name: "notices between readouts that the device has gone",
    only: { transport: "tcp", why: "nothing tells a datagram socket that the device has gone until it sends" },
    async run(rig) {
      const { driver, connect, pointsOf, simulator } = rig;
      const session = await connect();
      expect(session.alive()).toBe(true);
      await misbehaving(rig, "cut", () => readAll(driver, session, pointsOf(simulator.variables), within(5000)));
      await expect.poll(() => session.alive()).toBe(false);
      await session.close();
    },
  },
  {
    name: "never takes a late answer for the answer to another request",
    async run(rig) {
      const { driver, connect, pointsOf, simulator, proxy } = rig;
      const session = await connect();
      const { ready } = await prepareAll(session, pointsOf(simulator.variables), within(5000));
      proxy.delayMs = 250;
      const { failure } = await misbehaving(rig, "delay", () => readPrepared(driver, session, ready, within(5000, 100)));
      expect(failure?.reason.type).toBe("TIMEOUT");
      // The late answers arrive while the next readout is under way, on this session or on a new one.
      const next = session.alive() ? session : await connect();
      await new Promise((done) => setTimeout(done, 200));
      const { readings } = await readAll(driver, next, pointsOf(simulator.variables), within(5000));
      expectAllGood(rig, readings);
      await session.close();
      await next.close();
    },
  },
  {
    name: "answers flipped bits with readings, a fault or a reason, and never anything else",
    async run(rig) {
      const { driver, connect, pointsOf, simulator, proxy } = rig;
      const points = pointsOf(simulator.variables);
      for (let round = 0; round < ROUNDS_OF_FLIPPED_BITS; round++) {
        const session = await connect().catch((error: unknown) => {
          expect(error, `seed ${proxy.seed}`).toBeInstanceOf(ReasonError);
          return undefined;
        });
        if (!session) continue;
        const { readings, failure } = await misbehaving(rig, "flip", () => readAll(driver, session, points, within(2000, 60)));
        if (failure) expect(failure, `seed ${proxy.seed}, round ${round}`).toBeInstanceOf(ReasonError);
        else expect(readings.size, `seed ${proxy.seed}, round ${round}`).toBe(points.length);
        for (const reading of readings.values())
          expect(reading, `seed ${proxy.seed}, round ${round}`).not.toMatchObject({ fault: "collector_error" });
        await session.close();
      }
    },
  },
  fuzzCheck(FUZZED_ANSWERS),
  {
    name: "stops a read at once when the signal aborts",
    async run(rig) {
      const { driver, connect, pointsOf, simulator } = rig;
      const session = await connect();
      const { ready } = await prepareAll(session, pointsOf(simulator.variables), within(5000));
      const stop = new AbortController();
      const ctx = { ...within(10_000), signal: stop.signal };
      const started = performance.now();
      const { failure } = await misbehaving(rig, "silent", async () => {
        const reading = readPrepared(driver, session, ready, ctx);
        setTimeout(() => stop.abort(), 50);
        return reading;
      });
      expect(failure).toBeInstanceOf(ReasonError);
      expect(performance.now() - started).toBeLessThan(1000);
      await session.close();
    },
  },
  {
    name: "releases every socket: after close, after abort, after many reconnects",
    async run({ connect, connections, proxy }) {
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
      await expect.poll(connections).toBe(0);
    },
  },
  connectionsCheck(CYCLES),
  {
    name: "gives every frame to the tap, in both directions",
    async run({ driver, connect, pointsOf, simulator, proxy }) {
      const out: Uint8Array[] = [];
      const inward: Uint8Array[] = [];
      const heard = simulator.hear?.();
      // Connecting may send nothing: over datagrams the proxy knows a socket from its first one on.
      const before = proxy.sent().length;
      const session = await connect({ ...within(5000), tap: (direction, frame) => (direction === "out" ? out : inward).push(frame) });
      await readAll(driver, session, pointsOf(simulator.variables), within(5000));
      await session.close();
      // What is sent in the clear is on the wire as it was tapped; what is encrypted is so with the device.
      const [tapped, wire, inside] = [Buffer.concat(out), Buffer.concat(proxy.sent().slice(before)), heard?.() ?? Buffer.alloc(0)];
      const clear = tapped.length - inside.length;
      expect(tapped.subarray(0, clear)).toEqual(heard ? wire.subarray(0, clear) : wire);
      expect(tapped.subarray(clear)).toEqual(inside);
      expect(inward.length).toBeGreaterThan(0);
    },
  },
  {
    name: "shows no secret in any log line or error",
    async run(rig) {
      const { driver, connect, pointsOf, simulator } = rig;
      const seen: string[] = [];
      const keep = (error: unknown) => void seen.push(String(error), error instanceof Error ? `${error.stack} ${String(error.cause)}` : "");
      const take = (fields: object, message: string) => void seen.push(JSON.stringify(fields), message);
      const log: Log = { debug: take, info: take, warn: take, error: take };
      const faults: readonly Fault[] =
        rig.transport === "tcp" ? ["none", "close-now", "cut", "reset", "silent", "flip"] : ["none", "gone", "silent", "flip", "garbage"];
      for (const fault of faults)
        await misbehaving(rig, fault, async () => {
          const session = await connect(within(2000, 100, log)).catch(keep);
          if (!session) return;
          const { failure } = await readAll(driver, session, pointsOf([...simulator.variables, simulator.missing]), within(2000, 100, log));
          keep(failure);
          await session.close();
        });
      await connect(within(2000, 100, log), await freePort()).catch(keep);
      expect(seen.length).toBeGreaterThan(6);
      for (const text of seen) expect(text).not.toContain(SECRET);
    },
  },
  {
    name: "has sent nothing but requests that read",
    async run({ type, proxy, connect, driver, pointsOf, simulator }) {
      const check = ALLOWED[type];
      if (!check) throw new Error(`test/conformance/allowed.ts has no entry for ${type}`);
      const heard = simulator.hear?.();
      const session = await connect();
      await readAll(driver, session, pointsOf(simulator.variables), within(5000));
      await session.close();
      if (heard) {
        const inside = heard();
        expect(inside.length).toBeGreaterThan(0);
        expect(ALLOWED_INSIDE_TLS[type]?.(inside)).toEqual([]);
      }
      const sent = proxy.sent();
      expect(sent.reduce((bytes, one) => bytes + one.length, 0)).toBeGreaterThan(0);
      for (const bytes of sent) expect(check(bytes)).toEqual([]);
    },
  },
  ...DATAGRAM_CHECKS,
  ...PREPARE_CHECKS,
  ...CONTRACT_CHECKS,
  ...MISTAKE_CHECKS,
];
