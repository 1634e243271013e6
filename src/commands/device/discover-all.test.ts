import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { AnyDriver, Discovered, DriverContext } from "../../../drivers/driver.ts";
import { silentLog } from "../../model/context.ts";
import { commandIo } from "../testing.ts";
import { discoverAll } from "./discover-all.ts";

const found = (n: number, comment = ""): Discovered => ({ address: `${n}`, name: `n${n}`, type: { scalar: "bool" }, comment });

async function* forEver(comment?: string): AsyncGenerator<Discovered> {
  for (let n = 0; ; n++) yield found(n, comment);
}

async function* hanging(): AsyncGenerator<Discovered> {
  yield found(0);
  await new Promise(() => {});
}

/** What is found until `withinMs` have passed, of a driver that looks at no signal, and how long that took. */
async function discover(items: () => AsyncIterable<Discovered>, withinMs: number, json = false) {
  let closed = 0;
  const session = { discover: items, close: async () => void closed++ };
  const driver = { connect: async () => session } as unknown as AnyDriver;
  const ctx: DriverContext = {
    signal: AbortSignal.timeout(withinMs),
    log: silentLog,
    timeouts: { nameMs: 1000, connectMs: 1000, answerMs: 1000 },
  };
  const how = { timeoutMs: withinMs, depth: Number.POSITIVE_INFINITY, isMeant: () => true };
  const beganMs = performance.now();
  const outcome = await discoverAll({ driver, details: {}, settings: {}, secrets: {} }, how, { json }, ctx, commandIo({}));
  return { ...outcome, closed, ms: performance.now() - beganMs };
}

test("a device that finds no end is left when the time is over", async () => {
  const { count, failure, closed, ms } = await discover(forEver, 100, true);
  expect(count).toBeGreaterThan(0);
  expect([failure?.reason.type, failure?.message, closed]).toEqual([
    "TIMEOUT",
    "not everything was found within 100 ms; give more with --timeout",
    1,
  ]);
  expect(ms).toBeLessThan(1000);
});

test("a driver that never comes back is not waited for, nor its end", async () => {
  const { found: kept, failure, closed, ms } = await discover(hanging, 100);
  expect([kept.length, failure?.reason.type, closed]).toEqual([1, "TIMEOUT", 1]);
  expect(ms).toBeLessThan(3000);
});

test("no more is kept than a list holds, and nothing of what is printed at once", async () => {
  const long = "x".repeat(1024 * 1024);
  const { found: kept, count, isFull, failure } = await discover(() => forEver(long), 20_000);
  expect([kept.length, count, isFull, failure]).toEqual([63, 63, true, undefined]);
});

test("what the driver holds for it is released when no more is wanted", async () => {
  let released = 0;
  async function* held(): AsyncGenerator<Discovered> {
    try {
      yield* forEver("x".repeat(16 * 1024 * 1024));
    } finally {
      await sleep(10);
      released++;
    }
  }
  await discover(held, 5000);
  expect(released).toBe(1);
});
