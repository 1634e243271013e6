import { expect, test } from "vitest";
import { Rounds } from "./rounds.ts";

const later = () => new Promise<void>((done) => setImmediate(done));

test("rounds that are asked for while one is taken become one, and none waits for what another has begun", async () => {
  const taken: number[] = [];
  const ends: (() => void)[] = [];
  let settled = 0;
  const rounds = new Rounds({
    async take() {
      taken.push(taken.length);
      await later();
      return { made: new Promise<void>((done) => ends.push(done)) };
    },
    onError: (error) => expect.fail(String(error)),
    onSettled: () => settled++,
  });
  for (let n = 0; n < 5; n++) rounds.ask();
  await expect.poll(() => ends.length).toBe(2);
  expect(taken).toEqual([0, 1]);
  rounds.ask();
  await expect.poll(() => ends.length).toBe(3);
  for (const end of ends.slice(1)) end();
  await later();
  // The first one hangs, which is not hidden.
  expect(settled).toBe(0);
  ends[0]?.();
  await expect.poll(() => settled).toBe(1);
});

test("a round that fails is told, and the next one is taken", async () => {
  const errors: unknown[] = [];
  let n = 0;
  let settled = 0;
  const rounds = new Rounds({
    async take() {
      n++;
      if (n === 1) throw new Error("taken badly");
      return { made: n === 2 ? Promise.reject(new Error("made badly")) : Promise.resolve() };
    },
    onError: (error) => errors.push(error),
    onSettled: () => settled++,
  });
  for (let round = 1; round <= 3; round++) {
    rounds.ask();
    await expect.poll(() => settled).toBe(round);
  }
  expect(errors.map(String)).toEqual(["Error: taken badly", "Error: made badly"]);
});
