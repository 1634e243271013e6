import { describe, expect, it } from "vitest";
import { ReasonError } from "../../model/reason.ts";
import { createWayOut } from "./in-flight-window.ts";

const closed = () => new ReasonError("CONNECTION_CLOSED", "closed");

/** Works that end when they are told to. */
function works() {
  const begun: number[] = [];
  const ends = new Map<number, { readonly done: () => void; readonly fail: (error: Error) => void }>();
  const work = (n: number) => () => {
    begun.push(n);
    return new Promise<void>((done, fail) => ends.set(n, { done, fail }));
  };
  return { begun, ends, work };
}

const settled = () => new Promise((done) => setImmediate(done));

describe("createWayOut", () => {
  it("lets so many work at once, and the others in the order in which they came, also after one that threw", async () => {
    const way = createWayOut(2);
    const { begun, ends, work } = works();
    const results = [1, 2, 3, 4].map((n) => way.inTurn(work(n)).catch((error: Error) => error.message));
    await settled();
    expect(begun).toEqual([1, 2]);
    ends.get(1)?.fail(new Error("no"));
    await settled();
    expect(begun).toEqual([1, 2, 3]);
    ends.get(2)?.done();
    await settled();
    expect(begun).toEqual([1, 2, 3, 4]);
    ends.get(3)?.done();
    ends.get(4)?.done();
    expect(await Promise.all(results)).toEqual(["no", undefined, undefined, undefined]);
    expect(way.isIdle()).toBe(true);
  });

  it("fails once, with the first reason: who waits gets it at once, who comes later too", async () => {
    const way = createWayOut(1);
    const { begun, ends, work } = works();
    const first = way.inTurn(work(1));
    const second = way.inTurn(work(2));
    const reason = closed();
    expect(way.fail(reason)).toBe(true);
    expect(way.fail(closed())).toBe(false);
    expect(way.failure()).toBe(reason);
    expect(await way.lost).toBe(reason);
    await expect(second).rejects.toBe(reason);
    await expect(way.inTurn(work(3))).rejects.toBe(reason);
    expect(begun).toEqual([1]);
    expect(way.isIdle()).toBe(false);
    ends.get(1)?.done();
    await first;
    expect(way.isIdle()).toBe(true);
  });
});
