import { afterEach, describe, expect, it } from "vitest";
import type { Discovered, DriverContext, Point, Prepared, Request } from "../../../drivers/driver.ts";
import { SEEN } from "../../../test/support/session/driver.ts";
import { DeviceMemories } from "../../agent/device-memory.ts";
import { silentLog } from "../../model/context.ts";
import { PartialRefusal } from "../../model/fault.ts";
import { ReasonError } from "../../model/reason.ts";
import { SessionHost } from "./host.ts";

/** What the session worker answers page by page, over a real one. */

const MARGIN = { timeout: 10_000 };
/** Most that one page brings, and one more that may be on its way. */
const A_PAGE = 501;

let running: SessionHost | undefined;
afterEach(() => running?.stop(3000));

function start() {
  const sessions = new SessionHost({
    entry: new URL("../../../test/support/session/worker.ts", import.meta.url),
    workerData: {},
    log: silentLog,
    abortGraceMs: 1000,
  });
  running = sessions;
  const seen = new SharedArrayBuffer(64);
  return {
    seen: (what: keyof typeof SEEN) => Atomics.load(new Int32Array(seen), SEEN[what]),
    open: (does: string, ctx: Partial<DriverContext> = {}) =>
      sessions.connect("far", { details: { does, seen }, settings: {}, secrets: {} }, context(ctx)),
  };
}
const context = (given: Partial<DriverContext> = {}): DriverContext => ({
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: 1000, connectMs: 1000, answerMs: 1000 },
  ...given,
});
const pointsOf = (count: number, odd: Readonly<Record<number, string>> = {}): readonly Point[] =>
  Array.from({ length: count }, (_, index): Point => ({ index, address: odd[index] ?? `a${index}`, type: { scalar: "float64" } }));
const asking = (...addresses: string[]): Request => ({
  points: addresses.map((address, index): Point => ({ index, address, type: { scalar: "float64" } })),
});

type Session = Awaited<ReturnType<ReturnType<typeof start>["open"]>>;
async function prepareAll(session: Session, points: readonly Point[], ctx: DriverContext = context()): Promise<Prepared[]> {
  const found: Prepared[] = [];
  for await (const batch of session.prepare?.(points, ctx) ?? []) found.push(...batch);
  return found;
}
/** Counts items, until there are so many of them. */
async function discover(session: Session, ctx: DriverContext, upTo = Number.POSITIVE_INFINITY): Promise<Discovered[]> {
  const found: Discovered[] = [];
  for await (const one of session.discover?.(ctx) ?? []) {
    found.push(one);
    if (found.length >= upTo) break;
  }
  return found;
}

describe("preparing in the session worker", () => {
  it("gives each of 12,000 points its address or its refusal", async () => {
    const { open, seen } = start();
    const session = await open("prepares");
    expect(session.discover).toBeUndefined();
    const points = pointsOf(12_000, { 7: "lost", 11999: "typed" });
    const found = await prepareAll(session, points);
    // The points are those that were given, and not others like them.
    expect(found.map(({ point }) => point)).toEqual(points);
    expect(found.every(({ point }, i) => point === points[i])).toBe(true);
    expect(found[0]).toEqual({ point: points[0], address: "a0 found", type: points[0]?.type });
    expect(found[7]).toMatchObject({ refusal: { name: "FaultError", fault: "not_found", message: "no such symbol" }, retryAfterMs: 7000 });
    expect(found[11_999]).toMatchObject({ address: "typed found", type: { scalar: "int64" } });
    expect([seen("found"), seen("ends")]).toEqual([12_000, 1]);
    expect(await prepareAll(session, [])).toEqual([]);
  });

  it("looks for no more than is taken, and stops when nobody takes more", async () => {
    const { open, seen } = start();
    const session = await open("prepares");
    for await (const batch of session.prepare?.(pointsOf(10_000), context()) ?? []) {
      expect(batch.length).toBeGreaterThan(0);
      await new Promise((done) => setTimeout(done, 300));
      expect(seen("found")).toBeLessThanOrEqual(batch.length + A_PAGE);
      break;
    }
    await expect.poll(() => seen("ends"), MARGIN).toBe(1);
    expect(seen("found")).toBeLessThanOrEqual(2 * A_PAGE);
    expect(await session.read(asking("a"), context())).toHaveLength(1);
  });

  it("brings what was found before the deadline, and the driver's own words for it", async () => {
    const { open, seen } = start();
    const session = await open("prepares");
    const stop = new AbortController();
    const found: Prepared[] = [];
    const preparing = (async () => {
      const points = pointsOf(1000, { 750: "prepare: never" });
      for await (const batch of session.prepare?.(points, context({ signal: stop.signal })) ?? []) found.push(...batch);
    })();
    await expect.poll(() => found.length, MARGIN).toBe(750);
    stop.abort(new ReasonError("TIMEOUT", "the look-up's deadline has passed"));
    await expect(preparing).rejects.toMatchObject({ reason: { type: "TIMEOUT" }, message: "the look-up's deadline has passed" });
    expect(seen("aborts")).toBe(1);
    expect(seen("ends")).toBe(1);
    expect(session.alive()).toBe(true);
    expect(await prepareAll(session, pointsOf(10))).toHaveLength(10);
  });

  it("brings the driver's errors, after what came before them", async () => {
    const { open } = start();
    const session = await open("prepares");
    const found: Prepared[] = [];
    const preparing = async () => {
      for await (const batch of session.prepare?.(pointsOf(50, { 25: "prepare: busy" }), context()) ?? []) found.push(...batch);
    };
    await expect(preparing()).rejects.toMatchObject({ name: "FaultError", scope: "busy" });
    expect(found).toHaveLength(20);
    // About what was asked, and not about the source: the others are asked without it.
    const own = { name: "FaultError", fault: "collector_error", scope: "points" };
    await expect(prepareAll(session, pointsOf(5, { 2: "prepare: cannot cross" }))).rejects.toMatchObject(own);
    const cannot = [{ index: 0, address: () => 1, type: { scalar: "auto" } } as const];
    await expect(prepareAll(session, cannot)).rejects.toMatchObject(own);
    await expect(session.read({ points: cannot }, context())).rejects.toMatchObject(own);
    expect(await prepareAll(session, pointsOf(5))).toHaveLength(5);
  });

  it("does not hold back what is found slowly", async () => {
    const { open } = start();
    const session = await open("prepares");
    const odd = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [10 * i, "prepare: slow"]));
    let batches = 0;
    for await (const batch of session.prepare?.(pointsOf(100, odd), context()) ?? []) if (batch.length > 0) batches++;
    expect(batches).toBeGreaterThan(2);
  });

  it("fails when the thread dies in the middle, and with the session that is closed", async () => {
    const { open, seen } = start();
    const session = await open("prepares");
    const found: Prepared[] = [];
    const dying = (async () => {
      for await (const batch of session.prepare?.(pointsOf(2000, { 1500: "prepare: ends" }), context()) ?? []) found.push(...batch);
    })();
    await expect(dying).rejects.toMatchObject({ condition: "internal_error" });
    expect(found.length).toBeGreaterThanOrEqual(1000);
    expect(session.alive()).toBe(false);
    await expect(prepareAll(session, pointsOf(1))).rejects.toMatchObject({ reason: { type: "CONNECTION_CLOSED" } });
    const again = await open("prepares");
    const ends = seen("ends");
    const closing = (async () => {
      for await (const _ of again.prepare?.(pointsOf(2000), context()) ?? []) await again.close();
    })();
    await expect(closing).rejects.toMatchObject({ reason: { type: "CONNECTION_CLOSED" } });
    await expect.poll(() => seen("ends"), MARGIN).toBe(ends + 1);
  });

  it("brings nothing that was not asked for", async () => {
    const { open } = start();
    const session = await open("prepares");
    const points = pointsOf(25, { 12: "prepare: unasked" });
    expect((await prepareAll(session, points)).map(({ point }) => point)).toEqual(points);
  });

  it("ends soon after the signal where the driver goes on with empty batches for ever", async () => {
    const { open, seen } = start();
    const session = await open("prepares");
    const stop = new AbortController();
    const preparing = prepareAll(session, pointsOf(20, { 15: "prepare: deaf" }), context({ signal: stop.signal }));
    await expect.poll(() => seen("found"), MARGIN).toBe(10);
    stop.abort(new ReasonError("TIMEOUT", "the look-up's deadline has passed"));
    await expect(preparing).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
    await expect.poll(() => seen("ends"), MARGIN).toBe(1);
    expect(await prepareAll(session, pointsOf(10))).toHaveLength(10);
  });

  it("tells of another epoch before the refusal of a look-up that it came with", async () => {
    const { open } = start();
    const session = await open("prepares");
    const preparing = prepareAll(session, pointsOf(5, { 2: "prepare: other program" }));
    await expect(preparing).rejects.toMatchObject({ name: "FaultError", scope: "program" });
    expect(session.epoch).toBe("program 2");
  });

  it("has the driver's names for a library's own errors", async () => {
    const { open } = start();
    const session = await open("prepares");
    const preparing = prepareAll(session, pointsOf(5, { 2: "prepare: unnamed" }));
    await expect(preparing).rejects.toMatchObject({ reason: { type: "HOST_DOWN" }, message: "a library's own words" });
  });

  it("tells of another epoch before the refusal that it came with", async () => {
    const { open } = start();
    const session = await open("prepares");
    expect(session.epoch).toBe("program 1");
    await expect(session.read(asking("other program"), context())).rejects.toMatchObject({ name: "FaultError", scope: "program" });
    expect(session.epoch).toBe("program 2");
    const plain = await open("");
    expect([plain.epoch, plain.prepare, plain.discover]).toEqual([undefined, undefined, undefined]);
  });
});

describe("reading in the session worker", () => {
  it("brings a partial refusal: what was answered, and what was refused together", async () => {
    const { open } = start();
    const session = await open("");
    const refused = await session.read(asking("partly refused", "b", "c", "d"), context()).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(PartialRefusal);
    expect(refused).toMatchObject({
      fault: "access_denied",
      message: "item refused",
      items: [
        { places: [0, 2], refusal: { fault: "access_denied", scope: "points", message: "item refused" } },
        { places: [3], refusal: { fault: "out_of_range", message: "too far" } },
      ],
    });
    const { readings } = refused as PartialRefusal;
    expect([readings[0], readings[1]]).toEqual([undefined, { quality: "good", value: 5 }]);
  });

  it("brings limits that change: with the answer or the refusal that they came with, and by themselves", async () => {
    const { open } = start();
    const session = await open("");
    const granted = session.limits;
    expect(granted).toEqual({ maxPoints: 1000, maxBytes: 1e6, inFlight: 2 });
    await session.read(asking("fewer at once"), context());
    expect(session.limits).toEqual({ ...granted, maxPoints: 20 });
    const { limits } = session;
    await session.read(asking("a"), context());
    expect(session.limits).toBe(limits);
    await expect(session.read(asking("too many"), context())).rejects.toMatchObject({ scope: "busy" });
    expect(session.limits).toEqual({ ...granted, maxPoints: 30 });
    expect(await session.read(asking("limits cannot cross"), context())).toHaveLength(1);
    expect(session.limits).toEqual({ ...granted, maxPoints: 30 });
    const later = await open("takes less later");
    await expect.poll(() => later.limits.maxPoints, MARGIN).toBe(10);
  });

  it("keeps what a driver knows of a device, for each device by itself", async () => {
    const { open } = start();
    const memories = new DeviceMemories();
    const warningsOf = async (device: string | undefined) =>
      (await open("remembers", device === undefined ? {} : { device: memories.of(device) })).warnings?.()[1]?.text;
    expect(await warningsOf("press")).toBe("opened 0 times before");
    expect(await warningsOf("press")).toBe("opened 1 times before");
    expect(await warningsOf("mill")).toBe("opened 0 times before");
    expect(await warningsOf(undefined)).toBe("opened 0 times before");
    expect(await warningsOf("press")).toBe("opened 2 times before");
  });
});

describe("discovering in the session worker", () => {
  it("brings all 50,000, each once, and says how far it has come", async () => {
    const { open, seen } = start();
    const session = await open("discovers");
    const told: (readonly [done: number, total: number | undefined])[] = [];
    const found = await discover(session, context({ progress: (done, total) => void told.push([done, total]) }));
    expect(found).toHaveLength(50_000);
    expect(found.every(({ address }, i) => address === `v${i}`)).toBe(true);
    expect(found[1]).toEqual({ address: "v1", name: "variable 1", type: { scalar: "float64" }, path: ["Plant", "Line 1"], unit: "°C" });
    expect(seen("ends")).toBe(1);
    expect(told.at(-1)).toEqual([50_000, 50_000]);
    expect(told.map(([done]) => done)).toEqual([...told.map(([done]) => done)].sort((a, b) => a - b));
  });

  it("looks for no more than is taken: a slow reader costs no memory, and who leaves ends it", async () => {
    const { open, seen } = start();
    const session = await open("discovers");
    let taken = 0;
    for await (const _ of session.discover?.(context()) ?? []) {
      taken++;
      if (taken % 1000 === 0) {
        await new Promise((done) => setTimeout(done, 100));
        expect(seen("found") - taken).toBeLessThanOrEqual(2 * A_PAGE);
      }
      if (taken === 5000) break;
    }
    await expect.poll(() => seen("ends"), MARGIN).toBe(1);
    expect(seen("found")).toBeLessThanOrEqual(5000 + 2 * A_PAGE);
    expect(await session.read(asking("a"), context())).toHaveLength(1);
  });

  it("stops in the middle when the signal aborts", async () => {
    const { open, seen } = start();
    const session = await open("discovers and waits");
    const stop = new AbortController();
    const found: Discovered[] = [];
    const discovering = (async () => {
      for await (const one of session.discover?.(context({ signal: stop.signal })) ?? []) found.push(one);
    })();
    await expect.poll(() => found.length, MARGIN).toBe(1200);
    stop.abort(new ReasonError("TIMEOUT", "long enough"));
    await expect(discovering).rejects.toMatchObject({ reason: { type: "TIMEOUT" }, message: "long enough" });
    expect([seen("aborts"), seen("ends")]).toEqual([1, 1]);
    expect(session.alive()).toBe(true);
  });

  it("ends soon after the signal where the driver does not look at it", async () => {
    const { open, seen } = start();
    const session = await open("discovers and is deaf");
    const stop = new AbortController();
    let [found, foundAtAbort] = [0, 0];
    const discovering = (async () => {
      for await (const _ of session.discover?.(context({ signal: stop.signal })) ?? []) found++;
    })();
    await expect.poll(() => found, MARGIN).toBeGreaterThan(2000);
    foundAtAbort = found;
    stop.abort(new ReasonError("TIMEOUT", "long enough"));
    await expect(discovering).rejects.toMatchObject({ reason: { type: "TIMEOUT" }, message: "long enough" });
    expect(found - foundAtAbort).toBeLessThanOrEqual(3 * A_PAGE);
    await expect.poll(() => seen("ends"), MARGIN).toBe(1);
    expect(await session.read(asking("a"), context())).toHaveLength(1);
  });

  it.each([
    ["discovers and has no name for it", { reason: { type: "HOST_DOWN" } }],
    ["discovers and fails", { reason: { type: "CONNECTION_RESET" } }],
    ["discovers and ends", { condition: "internal_error" }],
  ] as const)("%s in the middle", async (does, failure) => {
    const { open } = start();
    const session = await open(does);
    const found: Discovered[] = [];
    const discovering = (async () => {
      for await (const one of session.discover?.(context()) ?? []) found.push(one);
    })();
    await expect(discovering).rejects.toMatchObject(failure);
    expect(found.length).toBeGreaterThanOrEqual(500);
    expect(found.length).toBeLessThanOrEqual(1200);
    expect(await discover(await open("discovers"), context(), 10)).toHaveLength(10);
  });

  it("has several at once, each by itself", async () => {
    const { open } = start();
    const [one, two] = [await open("discovers"), await open("discovers")];
    const [first, second, third] = await Promise.all([
      discover(one, context(), 3000),
      discover(two, context(), 2000),
      discover(one, context(), 1000),
    ]);
    for (const found of [first, second, third]) expect(found.map(({ address }) => address)).toEqual(found.map((_, i) => `v${i}`));
    expect([first.length, second.length, third.length]).toEqual([3000, 2000, 1000]);
  });
});
