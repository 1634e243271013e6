import fc from "fast-check";
import { expect, test } from "vitest";
import { PayloadPool } from "./payload-pool.ts";

const BYTES = fc.integer({ min: 0, max: 300_000 });

test("gives memory of the size that is asked for, and none that is lent", () => {
  fc.assert(
    fc.property(fc.array(fc.record({ bytes: BYTES, ends: fc.boolean() }), { maxLength: 40 }), (steps) => {
      const pool = new PayloadPool();
      const lent: Buffer[] = [];
      for (const [place, { bytes, ends }] of steps.entries()) {
        const taken = pool.take(bytes);
        for (const at of [0, bytes >> 1, bytes - 1]) taken[at] = place;
        expect(taken.length).toBe(bytes);
        lent.push(taken);
        if (ends) pool.giveBack(lent.shift() as Buffer);
      }
      const first = steps.length - lent.length;
      for (const [i, buffer] of lent.entries())
        expect([buffer[0], buffer[buffer.length >> 1], buffer.at(-1)]).toEqual(
          buffer.length > 0 ? Array(3).fill(first + i) : Array(3).fill(undefined),
        );
    }),
  );
});

test("what is given back is used again", () => {
  const pool = new PayloadPool();
  const { buffer } = pool.take(100_000);
  pool.giveBack(Buffer.from(buffer, 0, 100_000));
  expect(pool.take(120_000).buffer).toBe(buffer);
  expect(pool.take(120_000).buffer).not.toBe(buffer);
});

test("what is given back twice, or was never taken, is not lent twice", () => {
  const pool = new PayloadPool();
  const taken = pool.take(100_000);
  pool.giveBack(taken);
  pool.giveBack(taken);
  pool.giveBack(Buffer.allocUnsafeSlow(131_072));
  const again = [pool.take(100_000), pool.take(100_000)];
  expect(again.map(({ buffer }) => buffer === taken.buffer)).toEqual([true, false]);
});

test("keeps a bounded amount", () => {
  const pool = new PayloadPool();
  const taken = Array.from({ length: 100 }, () => pool.take(100_000));
  const known = new Set(taken.map(({ buffer }) => buffer));
  for (const one of taken) pool.giveBack(one);
  const kept = taken.map(() => pool.take(100_000)).filter(({ buffer }) => known.has(buffer));
  expect(kept.reduce((sum, { buffer }) => sum + buffer.byteLength, 0)).toBe(524_288);
});
