import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AnySession } from "../../drivers/driver.ts";
import { ReasonError } from "../model/reason.ts";
import { ConnectionPool, type Turn } from "./connection-pool.ts";

function connection(open: Set<AnySession>): AnySession {
  const session = {
    alive: () => open.has(session),
    async close() {
      await Promise.resolve();
      open.delete(session);
    },
  } as unknown as AnySession;
  open.add(session);
  return session;
}

const forever = new AbortController().signal;
const INTERVAL_MS = 1000;
const ask = (pool: ConnectionPool, key: string, maxConnections: number, signal = forever, isProbe = false, hasHealthyOthers = () => true) =>
  pool.acquire(
    "d",
    {
      key,
      maxConnections,
      isProbe,
      hasHealthyOthers,
      yields: () => false,
      isBehind: false,
      settles: false,
      answeredMs: () => 0,
      notBeforeMs: () => 0,
    },
    signal,
  );
async function turn(...args: Parameters<typeof ask>): Promise<Turn> {
  const got = await ask(...args);
  if (!got || got instanceof ReasonError) throw new Error(`no turn: ${got?.message ?? "aborted"}`);
  return got;
}

describe("connection pool", () => {
  it("hands a kept connection to the next of the same key, and closes it for another key when the maximum is reached", async () => {
    const pool = new ConnectionPool();
    const open = new Set<AnySession>();
    const first = await turn(pool, "a", 1);
    const session = connection(open);
    first.release(session);
    const second = await turn(pool, "a", 1);
    expect(second.session).toBe(session);
    second.release(session);
    const other = await turn(pool, "b", 1);
    expect(other.session).toBeUndefined();
    expect(open.size).toBe(0);
    other.release(undefined);
  });

  it("gives a turn at once where nobody waits, and in order of asking where somebody does", async () => {
    const pool = new ConnectionPool();
    const held = ask(pool, "a", 1);
    if (!held || held instanceof Promise || held instanceof ReasonError) throw new Error("no turn at once");
    const order: string[] = [];
    const waiting = ["b", "a"].map(async (key) => {
      const got = await turn(pool, key, 1);
      order.push(key);
      got.release(undefined);
    });
    held.release(connection(new Set()));
    const last = ask(pool, "a", 1);
    expect(last).toBeInstanceOf(Promise);
    await Promise.all(waiting);
    expect(order).toEqual(["b", "a"]);
    expect(await last).toMatchObject({ session: undefined });
  });

  it("does not hand out a connection that the device has dropped", async () => {
    const pool = new ConnectionPool();
    const open = new Set<AnySession>();
    const session = connection(open);
    (await turn(pool, "a", 1)).release(session);
    open.clear();
    expect((await turn(pool, "a", 1))?.session).toBeUndefined();
  });

  it("gives up waiting when the signal aborts, and those behind go on", async () => {
    const pool = new ConnectionPool();
    const held = await turn(pool, "a", 1);
    const stop = new AbortController();
    const givenUp = ask(pool, "b", 1, stop.signal);
    const behind = ask(pool, "c", 1);
    stop.abort();
    expect(await givenUp).toBeUndefined();
    held.release(undefined);
    expect(await behind).toBeDefined();
  });

  it("closes the idle connection when the last source with its key leaves, and not before", async () => {
    const pool = new ConnectionPool();
    const open = new Set<AnySession>();
    const [first, second, other] = [pool.join("d", "a", INTERVAL_MS), pool.join("d", "a", INTERVAL_MS), pool.join("d", "b", INTERVAL_MS)];
    (await turn(pool, "a", 2)).release(connection(open));
    await first.leave();
    await first.leave();
    expect(open.size).toBe(1);
    await second.leave();
    expect(open.size).toBe(0);
    await other.leave();
  });

  it("knows whether other sources are answered, and not oneself", () => {
    const pool = new ConnectionPool(() => 5);
    const [one, two] = [pool.join("d", "a", INTERVAL_MS), pool.join("d", "b", INTERVAL_MS)];
    one.share.answered(1);
    expect([one.hasHealthyOthers(), two.hasHealthyOthers()]).toEqual([false, true]);
  });

  it("tells those who wait to open the same connection that it was refused, and nobody else", async () => {
    const pool = new ConnectionPool();
    const refused = new ReasonError("CONNECTION_REFUSED", "refused");
    const held = await turn(pool, "a", 1);
    const [same, different] = [ask(pool, "a", 1), ask(pool, "b", 1)];
    held.release(undefined, refused);
    expect(await same).toBe(refused);
    expect(await different).toMatchObject({ session: undefined });
  });

  it("gives what had no answer its share of the device's time, one probe at a time, and never all of it", async () => {
    let now = 100_000;
    const pool = new ConnectionPool(() => now);
    const healthy = pool.join("d", "a", INTERVAL_MS);
    healthy.share.answered(5);
    const served: string[] = [];
    const wait = (name: string, isProbe: boolean) =>
      turn(pool, "a", 1, forever, isProbe).then((got) => {
        served.push(name);
        return got;
      });
    const held = await turn(pool, "a", 1);
    const [one, two] = [wait("probe 1", true), wait("probe 2", true)];
    const [first, second] = [wait("first", false), wait("second", false)];
    held.release(undefined);
    const probe = await one;
    now += 500;
    healthy.share.probed(500, "share");
    probe.release(undefined);
    const well = await first;
    healthy.share.answered(5);
    well.release(undefined);
    (await second).release(undefined);
    expect(served).toEqual(["probe 1", "first", "second"]);
    // A probe of half an interval delays readouts and costs none: it may take a quarter of the time.
    now += 1514;
    (await wait("third", false)).release(undefined);
    expect(served.at(-1)).toBe("third");
    now += 1;
    const fourth = wait("fourth", false);
    (await two).release(undefined);
    (await fourth).release(undefined);
    expect(served.slice(-2)).toEqual(["probe 2", "fourth"]);
  });

  it("wakes a probe when its time has come, though nobody gives a turn back", async () => {
    const pool = new ConnectionPool();
    const healthy = pool.join("d", "a", 60_000);
    healthy.share.answered(5);
    const began = performance.now();
    healthy.share.probed(20, "share");
    (await turn(pool, "a", 1, forever, true)).release(undefined);
    expect(performance.now() - began).toBeGreaterThanOrEqual(50);
  });

  it("wakes a probe whose time comes while the pool looks", async () => {
    // Each look at the clock is later than the one before.
    let now = 100_000;
    const pool = new ConnectionPool(() => now++);
    const healthy = pool.join("d", "a", 60_000);
    healthy.share.answered(5);
    for (let costMs = 0; costMs < 10; costMs++) {
      healthy.share.probed(costMs, "share");
      (await turn(pool, "a", 1, forever, true)).release(undefined);
    }
  });

  it("lets a probe go at once where nobody else is answered", async () => {
    const pool = new ConnectionPool();
    const one = pool.join("d", "a", INTERVAL_MS);
    one.share.answered(5);
    one.share.probed(100_000, "share");
    (await turn(pool, "a", 1, forever, true, () => false)).release(undefined);
  });

  it("serves every asker once, in order, and never has more connections than the maximum", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ key: fc.constantFrom("a", "b", "c"), keep: fc.boolean() }), { maxLength: 30 }),
        fc.integer({ min: 1, max: 3 }),
        async (askers, max) => {
          const pool = new ConnectionPool();
          const open = new Set<AnySession>();
          const served: number[] = [];
          await Promise.all(
            askers.map(async ({ key, keep }, i) => {
              const got = await turn(pool, key, max);
              served.push(i);
              const session = got.session ?? connection(open);
              expect(open.size).toBeLessThanOrEqual(max);
              await Promise.resolve();
              if (!keep) await session.close();
              got.release(keep ? session : undefined);
            }),
          );
          expect(served).toEqual(askers.map((_, i) => i));
        },
      ),
    );
  });
});
