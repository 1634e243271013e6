import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createDeviceMemory, createIdCounter, IdPool } from "./ids.ts";

it("a counter goes round", () => {
  const ids = createIdCounter(8, 253);
  expect(Array.from({ length: 4 }, () => ids.next())).toEqual([254, 255, 0, 1]);
  expect(createIdCounter(16).next()).toBe(1);
});

describe("a pool of ids", () => {
  it("gives none that is in use, and none that rests while more than a quarter of all are free", () => {
    const [REST_MS, SPARE] = [1000, 64];
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.constant({ do: "take" as const, n: 0 }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("release" as const), n: fc.nat(255) }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant("rest" as const), n: fc.nat(255) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("wait" as const), n: fc.nat(1500) }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 900, size: "max" }), fc.nat(255), (steps, last) => {
        const pool = new IdPool(8, REST_MS, last);
        const inUse: number[] = [];
        let restUntil = new Map<number, number>();
        let now = 0;
        for (const { do: what, n } of steps) {
          if (what === "wait") now += n;
          const [id] = what === "release" || what === "rest" ? inUse.splice(n % Math.max(1, inUse.length), 1) : [];
          if (id !== undefined && what === "release") pool.release(id);
          if (id !== undefined && what === "rest") {
            pool.rest(id, now);
            restUntil.set(id, now + REST_MS);
          }
          if (what !== "take") continue;
          const taken = pool.take(now);
          const resting = [...restUntil].filter(([, until]) => until > now);
          // Those that rested longest join the spare ones.
          const tooMany = Math.max(0, inUse.length + resting.length - (255 - SPARE));
          const joined = resting.slice(0, tooMany).map(([id]) => id);
          if (inUse.length === 256) {
            expect(taken).toBeUndefined();
            continue;
          }
          if (taken === undefined) throw new Error("an id is free, and none was given");
          expect(taken).toBeGreaterThanOrEqual(0);
          expect(taken).toBeLessThan(256);
          expect(inUse).not.toContain(taken);
          restUntil = new Map(resting.slice(tooMany));
          expect([...restUntil.keys()]).not.toContain(taken);
          if (inUse.length + restUntil.size + joined.length < 256 - SPARE) expect(joined).not.toContain(taken);
          inUse.push(taken);
          expect(pool.size).toBe(inUse.length);
        }
      }),
      // Long walks: shrinking one takes longer than looking at it.
      { endOnFailure: true },
    );
  });

  it("goes round: one that was answered is not the next", () => {
    const pool = new IdPool(8, 1000);
    const given = Array.from({ length: 256 }, () => {
      const id = pool.take(0) ?? -1;
      pool.release(id);
      return id;
    });
    expect(new Set(given).size).toBe(256);
  });

  it("gives one that was answered again only after a quarter of all, however many rest", () => {
    const pool = new IdPool(8, 30_000);
    for (let n = 0; n < 600; n++) pool.rest(pool.take(n) ?? -1, n);
    const given = Array.from({ length: 64 }, () => {
      const id = pool.take(600) ?? -1;
      pool.release(id);
      return id;
    });
    expect(new Set(given).size).toBe(64);
  });

  it("of 16 bits gives each of its ids once, and then none", () => {
    const pool = new IdPool(16, 1000);
    expect(new Set(Array.from({ length: 65_536 }, () => pool.take(0))).size).toBe(65_536);
    expect(pool.take(0)).toBeUndefined();
    pool.release(7);
    expect(pool.take(0)).toBe(7);
  });
});

it("a memory of devices keeps those that were asked for last", () => {
  let made = 0;
  const of = createDeviceMemory(() => ({ n: ++made }), 2);
  const a = of("a");
  of("b");
  expect(of("a")).toBe(a);
  of("c");
  expect(of("a")).toBe(a);
  expect(of("b")).toEqual({ n: 4 });
});
