import { expect } from "vitest";
import type { AnySession, DriverContext, Point, Prepared } from "../../drivers/driver.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type Check, misbehaving } from "./check.ts";
import { type Rig, within } from "./rig.ts";
import { prepareAll, readPrepared } from "./support/read-all.ts";

/** Two such answers are later than a driver may stop. */
const SLOW_ANSWER_MS = 600;

async function unasked({ connect }: Rig): Promise<string | undefined> {
  const session = await connect();
  await session.close();
  return session.prepare ? undefined : "it looks nothing up before it reads";
}

/** All that is given until the end, or until it throws. */
async function gather(
  session: AnySession,
  points: readonly Point[],
  ctx: DriverContext,
  onBatch: () => void = () => {},
): Promise<{ readonly given: readonly Prepared[]; readonly error: unknown }> {
  const given: Prepared[] = [];
  try {
    for await (const batch of session.prepare?.(points, ctx) ?? []) {
      given.push(...batch);
      onBatch();
    }
    return { given, error: undefined };
  } catch (error) {
    return { given, error };
  }
}

/** Every one of `points` once, the object itself, with an address or a refusal. */
function expectOnce(given: readonly Prepared[], points: readonly Point[]): void {
  expect(given.map(({ point }) => point.index).sort((a, b) => a - b)).toEqual(points.map(({ index }) => index).sort((a, b) => a - b));
  for (const one of given) {
    expect(points.includes(one.point), `point ${one.point.index} is the one that was given`).toBe(true);
    if ("refusal" in one) expect(one.refusal).toBeInstanceOf(FaultError);
    else expect(one.type.scalar, `the type of point ${one.point.index}`).toBeTypeOf("string");
  }
}

/** The addresses by point, comparable. */
const addressesOf = (ready: readonly Point[]) => JSON.stringify(ready.map(({ index, address, type }) => [index, address, type]));

/** What a driver that looks addresses up promises. */
export const PREPARE_CHECKS: readonly Check[] = [
  {
    name: "prepares each point exactly once, with its address or why there is none",
    unasked,
    async run({ driver, connect, pointsOf, simulator }) {
      const session = await connect();
      const points = pointsOf([...simulator.variables, simulator.missing]);
      const { given, error } = await gather(session, points, within(5000));
      expect(error).toBeUndefined();
      expectOnce(given, points);
      // What is missing shows here, or when it is read: an address may stand for itself.
      const missing = given.find(({ point }) => point === points.at(-1));
      if (missing && "address" in missing) {
        const { index } = missing.point;
        const { readings } = await readPrepared(driver, session, [{ index, address: missing.address, type: missing.type }], within(5000));
        expect(readings.get(index)).toMatchObject({ quality: "bad", fault: "not_found" });
      } else expect(missing).toMatchObject({ refusal: { fault: "not_found" } });
      const some = points.filter((_, i) => i % 3 === 1).toReversed();
      expectOnce((await gather(session, some, within(5000))).given, some);
      expectOnce((await gather(session, [], within(5000))).given, []);
      await session.close();
    },
  },
  {
    name: "stops preparing at once when the signal aborts, and continues with what is missing",
    unasked,
    async run(rig) {
      const { driver, connect, pointsOf, simulator, proxy } = rig;
      const session = await connect();
      const points = pointsOf(simulator.variables);
      const stop = new AbortController();
      proxy.delayMs = SLOW_ANSWER_MS;
      let abortedAt = 0;
      const abort = () => {
        if (!stop.signal.aborted) abortedAt = performance.now();
        stop.abort();
      };
      const first = await misbehaving(rig, "delay", async () => {
        setTimeout(abort, 2 * SLOW_ANSWER_MS);
        return gather(session, points, { ...within(10_000), signal: stop.signal }, abort);
      });
      expect(performance.now() - abortedAt).toBeLessThan(1000);
      if (first.error !== undefined) expect(first.error).toBeInstanceOf(ReasonError);
      const known = new Set(first.given.map(({ point }) => point));
      const next = session.alive() ? session : await connect();
      const rest = await gather(
        next,
        points.filter((point) => !known.has(point)),
        within(5000),
      );
      expect(rest.error).toBeUndefined();
      expectOnce([...first.given, ...rest.given], points);
      const ready = [...first.given, ...rest.given].flatMap((one) =>
        "address" in one ? [{ index: one.point.index, address: one.address, type: one.type }] : [],
      );
      const { readings } = await readPrepared(driver, next, ready, within(5000));
      expect([...readings.values()].filter(({ quality }) => quality === "good")).toHaveLength(points.length);
      await session.close();
      await next.close();
    },
  },
  {
    name: "names a device that goes silent while it prepares: TIMEOUT",
    unasked,
    async run(rig) {
      const { connect, pointsOf, simulator, proxy } = rig;
      const session = await connect();
      const bytesSent = () => proxy.sent().reduce((bytes, { length }) => bytes + length, 0);
      const before = bytesSent();
      const { error } = await misbehaving(rig, "silent", () => gather(session, pointsOf(simulator.variables), within(5000, 200)));
      // Addresses that all stand for themselves are not asked for.
      if (bytesSent() > before) {
        expect(error).toBeInstanceOf(ReasonError);
        expect(error).toMatchObject({ reason: { type: "TIMEOUT" } });
      } else expect(error).toBeUndefined();
      await session.close();
    },
  },
  {
    name: "gives equal addresses in sessions of an equal epoch",
    unasked,
    async run({ driver, connect, pointsOf, simulator }) {
      const points = pointsOf(simulator.variables);
      const seen: { readonly epoch: string | undefined; readonly addresses: string }[] = [];
      const look = async (session: AnySession): Promise<readonly Point[]> => {
        const { ready } = await prepareAll(session, points, within(5000));
        seen.push({ epoch: session.epoch, addresses: addressesOf(ready) });
        return ready;
      };
      const session = await connect();
      const before = await look(session);
      const second = await connect();
      await look(second);
      await second.close();
      if (simulator.download) {
        simulator.download();
        const [request] = driver.plan(before, session.limits);
        if (!request) throw new Error("nothing is planned");
        await expect(session.read(request, within(5000))).rejects.toMatchObject({ name: "FaultError", scope: "program" });
        // The session goes on with the program that the device has now, and says so.
        await look(session);
        const third = await connect();
        await look(third);
        await third.close();
        expect(new Set(seen.map(({ addresses }) => addresses)).size).toBeGreaterThan(1);
      }
      await session.close();
      for (const { epoch, addresses } of seen)
        for (const other of seen) if (other.epoch === epoch) expect(other.addresses, `epoch ${epoch}`).toBe(addresses);
    },
  },
];
