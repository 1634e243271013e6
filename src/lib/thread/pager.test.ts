import { describe, expect, it } from "vitest";
import { Pager } from "./pager.ts";

/** Items as they are pushed, and what was asked for. */
function source() {
  const waiting: ((result: IteratorResult<number>) => void)[] = [];
  let asked = 0;
  let ended = 0;
  const iterable: AsyncIterable<number> = {
    [Symbol.asyncIterator]: () => ({
      next: () => {
        asked++;
        return new Promise((done) => waiting.push(done));
      },
      return: async () => {
        ended++;
        return { done: true, value: undefined };
      },
    }),
  };
  return { iterable, asked: () => asked, ended: () => ended, push: (value: number) => waiting.shift()?.({ done: false, value }) };
}
async function* count(upTo: number, failure?: Error): AsyncGenerator<number> {
  for (let i = 0; i < upTo; i++) yield i;
  if (failure) throw failure;
}

describe("Pager", () => {
  it("takes full pages and the rest", async () => {
    const pager = new Pager(count(5), { maxItems: 2, withinMs: 10_000 });
    expect(await pager.take()).toEqual({ items: [0, 1], isLast: false });
    expect(await pager.take()).toEqual({ items: [2, 3], isLast: false });
    expect(await pager.take()).toEqual({ items: [4], isLast: true });
    expect(await new Pager(count(0)).take()).toEqual({ items: [], isLast: true });
  });

  it("waits for the first item, and for a second only so long; what comes then is in the next page", async () => {
    const { iterable, asked, push } = source();
    const pager = new Pager(iterable, { maxItems: 10, withinMs: 20 });
    const first = pager.take();
    await new Promise((done) => setTimeout(done, 60));
    push(1);
    await Promise.resolve();
    expect(await first).toEqual({ items: [1], isLast: false });
    expect(asked()).toBeLessThanOrEqual(2);
    const second = pager.take();
    await Promise.resolve();
    push(2);
    expect(await second).toEqual({ items: [2], isLast: false });
  });

  it("throws after what came before the failure", async () => {
    const pager = new Pager(count(3, new Error("lost")), { maxItems: 2, withinMs: 10_000 });
    expect((await pager.take()).items).toEqual([0, 1]);
    expect(await pager.take()).toEqual({ items: [2], isLast: false });
    await expect(pager.take()).rejects.toThrow("lost");
  });

  it("ends what it takes from, and never throws then", async () => {
    const { iterable, ended } = source();
    await new Pager(iterable).end();
    expect(ended()).toBe(1);
    const failing = new Pager(count(0, new Error("lost")));
    await expect(failing.take()).rejects.toThrow("lost");
    await failing.end();
  });
});
