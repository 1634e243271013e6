import { describe, expect, it } from "vitest";
import { ReasonError } from "../../model/reason.ts";
import { InFlightWindow } from "./in-flight-window.ts";

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

describe("InFlightWindow", () => {
  it("lets so many work at once, and the others in the order in which they came, also after one that threw", async () => {
    const window = new InFlightWindow(2);
    const { begun, ends, work } = works();
    const results = [1, 2, 3, 4].map((n) => window.inTurn(work(n)).catch((error: Error) => error.message));
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
    expect(window.isIdle()).toBe(true);
  });

  it("fails once, with the first reason, which waiting and later works get at once", async () => {
    const window = new InFlightWindow(1);
    const { begun, ends, work } = works();
    const first = window.inTurn(work(1));
    const second = window.inTurn(work(2));
    const reason = closed();
    expect(window.fail(reason)).toBe(true);
    expect(window.fail(closed())).toBe(false);
    expect(window.failure()).toBe(reason);
    expect(await window.lost).toBe(reason);
    await expect(second).rejects.toBe(reason);
    await expect(window.inTurn(work(3))).rejects.toBe(reason);
    expect(begun).toEqual([1]);
    expect(window.isIdle()).toBe(false);
    ends.get(1)?.done();
    await first;
    expect(window.isIdle()).toBe(true);
  });
});
