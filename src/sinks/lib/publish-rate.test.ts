import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type LearnedRate, PublishRate } from "./publish-rate.ts";

/** Publishes as fast as the rate lets, over `forMs`, to a server that accepts `perS` in each of its seconds and refuses the rest. */
function run(rate: PublishRate, perS: number, fromMs: number, forMs: number, { wantedPerS = 1000, isCertain = true } = {}) {
  let [sent, refused, last] = [0, 0, fromMs];
  const inSecond = new Map<number, number>();
  for (let nowMs = fromMs, wanted = 0; nowMs < fromMs + forMs; nowMs++) {
    wanted += wantedPerS / 1000;
    while (wanted >= 1 && rate.waitMs(nowMs) === 0) {
      wanted--;
      rate.sent(nowMs);
      const second = Math.floor(nowMs / 1000);
      const count = (inSecond.get(second) ?? 0) + 1;
      inSecond.set(second, count);
      if (count <= perS) {
        rate.accepted(nowMs);
        sent++;
        continue;
      }
      refused++;
      last = nowMs;
      rate.exceeded(nowMs, nowMs, isCertain);
    }
    wanted = Math.min(wanted, 100);
  }
  return { sent, refused, lastRefusedMs: last - fromMs };
}

describe("PublishRate", () => {
  it("limits nothing before a refusal", () => {
    const rate = new PublishRate();
    rate.opened(0);
    for (let i = 0; i < 1000; i++) {
      expect(rate.waitMs(5)).toBe(0);
      rate.sent(5);
    }
    expect(rate.state()).toBeUndefined();
  });

  it.each([2, 10, 60, 500])("finds a rate below a limit of %i a second with few ends of the session, and stays there", (perS) => {
    const rate = new PublishRate();
    rate.opened(10_250);
    const { sent, refused, lastRefusedMs } = run(rate, perS, 10_250, 75_000);
    expect(refused).toBeLessThanOrEqual(4);
    expect(lastRefusedMs).toBeLessThan(perS < 60 ? 60_000 : 30_000);
    expect(sent).toBeGreaterThan(0.55 * perS * 75);
    expect(rate.state()?.perS).toBeLessThanOrEqual(perS);
  });

  it.each([2, 10, 60, 500])("has few publishes refused where it is said of each that is above %i a second", (perS) => {
    const rate = new PublishRate();
    rate.opened(10_250);
    run(rate, perS, 10_250, 60_000, { isCertain: false });
    const { sent, refused } = run(rate, perS, 70_250, 60_000, { isCertain: false });
    expect(sent).toBeGreaterThan(0.6 * perS * 60);
    expect(refused).toBeLessThanOrEqual(Math.max(2, 0.08 * sent));
  });

  it("takes no more from one refusal than from the many that were under way with it", () => {
    const rate = new PublishRate();
    rate.opened(0);
    for (let i = 0; i < 60; i++) rate.accepted(500);
    expect([1, 2, 3, 4].map(() => rate.exceeded(500, 510))).toEqual([false, false, false, true]);
    expect(rate.exceeded(505, 511)).toBe(false);
    expect(rate.state()).toEqual({ perS: 48, isLearned: true });
  });

  it("pauses a second after a refusal", () => {
    const rate = new PublishRate();
    rate.accepted(100);
    rate.exceeded(100, 100, true);
    expect(rate.waitMs(100)).toBe(1000);
  });

  it("sends at once what a stall of 100 ms held up, and no more", () => {
    const rate = new PublishRate({ perS: 100 });
    rate.opened(0);
    rate.sent(0);
    let count = 0;
    while (rate.waitMs(5000) === 0 && count < 100) {
      rate.sent(5000);
      count++;
    }
    expect(count).toBe(11);
  });

  it("counts the acknowledgements of the second in which the missing one was sent, however late it is noticed", () => {
    const rate = new PublishRate();
    for (let i = 0; i < 30; i++) rate.accepted(10_000 + i);
    rate.exceeded(10_040, 14_000, true);
    expect(rate.state()?.perS).toBe(24);
  });

  it("grows from one a second where nothing was accepted, as soon as something is", () => {
    const rate = new PublishRate();
    rate.opened(1000);
    rate.exceeded(1000, 1000, true);
    expect(rate.state()?.perS).toBe(1);
    run(rate, 1000, 2000, 240_000);
    expect(rate.state()?.perS).toBeGreaterThan(100);
  });

  it("tries more again after an hour, in small steps, and gives a limit up that is no longer there", () => {
    const rate = new PublishRate();
    rate.opened(1000);
    for (let i = 0; i < 60; i++) rate.accepted(2500);
    rate.exceeded(2500, 2500, true);
    const wait = (nowMs: number) => {
      for (let i = 0; i < 10_000 && rate.waitMs(nowMs) === 0; i++) rate.sent(nowMs);
    };
    for (let nowMs = 2000; nowMs < 3_500_000; nowMs += 5000) wait(nowMs);
    expect(rate.state()?.perS).toBeCloseTo(51, 5);
    for (let nowMs = 3_700_000, i = 0; i < 2; nowMs += 60_000, i++) wait(nowMs);
    expect(rate.state()?.perS).toBeGreaterThan(51);
    expect(rate.state()?.perS).toBeLessThan(62);
    for (let nowMs = 4_000_000; nowMs < 14_000_000; nowMs += 60_000) wait(nowMs);
    expect(rate.state()).toBeUndefined();
  });

  it("does not grow while nothing waits for it", () => {
    const rate = new PublishRate({ perS: 10 });
    rate.opened(0);
    run(rate, 1000, 0, 60_000, { wantedPerS: 2 });
    expect(rate.state()?.perS).toBe(10);
  });

  /** A server that is asked for more than it takes, over `forS`; gives what it took in each second. */
  function sell(rate: PublishRate, forS: number, takes: (second: number, n: number) => boolean): number[] {
    const taken = Array.from({ length: forS }, () => 0);
    let open: { readonly atMs: number; readonly isTaken: boolean }[] = [];
    let n = 0;
    for (let nowMs = 0; nowMs < forS * 1000; nowMs += 5) {
      const due = open.filter(({ atMs }) => atMs <= nowMs - 20);
      open = open.filter(({ atMs }) => atMs > nowMs - 20);
      for (const { atMs, isTaken } of due) {
        if (isTaken) rate.accepted(nowMs);
        else rate.exceeded(atMs, nowMs);
      }
      while (open.length < 16 && rate.waitMs(nowMs) === 0) {
        const second = Math.floor(nowMs / 1000);
        const isTaken = takes(second, n++) && (taken[second] ?? 0) < 200;
        if (isTaken) taken[second] = (taken[second] ?? 0) + 1;
        open.push({ atMs: nowMs, isTaken });
        rate.sent(nowMs);
      }
    }
    return taken;
  }

  it.each<[string, (second: number, n: number) => boolean]>([
    ["refused all for 15 s", (second) => second < 60 || second >= 75],
    ["had taken nearly all of its first second before", (second, n) => second > 0 || n < 3],
    ["refuses one of a thousand", (_, n) => n % 1000 !== 999],
    ["refuses one of thirty", (_, n) => n % 30 !== 29],
    ["refuses everything for a second each 10 minutes", (second) => second % 600 !== 599],
  ])("is back at what a server of 200 a second takes that %s", (_, takes) => {
    const rate = new PublishRate();
    rate.opened(0);
    const taken = sell(rate, 3600, takes);
    for (const second of [400, 1000, 1750, 3500]) expect(taken[second]).toBeGreaterThan(120);
  });

  it("is as before where the cause was another one", () => {
    const saved: (LearnedRate | undefined)[] = [];
    const rate = new PublishRate(undefined, (learned) => saved.push(learned));
    for (let i = 0; i < 10; i++) rate.accepted(100);
    rate.exceeded(100, 100, true);
    rate.exceeded(1200, 1300, true);
    rate.undo();
    expect(rate.state()).toBeUndefined();
    expect(saved).toEqual([{ perS: 8, ceilingPerS: 10 }, { perS: 4, ceilingPerS: 10 }, undefined]);
  });

  it("obeys a limit of the settings, and the lower one of both", () => {
    const rate = new PublishRate({ perS: 40, ceilingPerS: 50 });
    rate.opened(0);
    rate.limitTo(100);
    expect(rate.state()).toEqual({ perS: 40, isLearned: true });
    rate.limitTo(10);
    expect(rate.state()).toEqual({ perS: 10, isLearned: false });
    expect(run(rate, 1000, 0, 10_000).sent).toBeLessThanOrEqual(102);
  });

  it("ignores a rate that cannot be one", () => {
    expect(new PublishRate({ perS: 10, ceilingPerS: -5 }).state()?.perS).toBe(10);
    for (const perS of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) expect(new PublishRate({ perS }).state()).toBeUndefined();
  });

  it("is always between one and fifty thousand, whatever comes in whatever order", () => {
    const step = fc.record({ what: fc.constantFrom("sent", "accepted", "exceeded", "opened", "undo", "wait"), ms: fc.nat(20_000) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const rate = new PublishRate();
        let nowMs = 0;
        for (const { what, ms } of steps) {
          nowMs += ms;
          if (what === "sent") rate.sent(nowMs);
          else if (what === "accepted") rate.accepted(nowMs);
          else if (what === "exceeded") rate.exceeded(nowMs - ms / 2, nowMs, ms % 2 === 0);
          else if (what === "opened") rate.opened(nowMs);
          else if (what === "undo") rate.undo();
          const { perS } = rate.state() ?? { perS: 1 };
          expect(perS).toBeGreaterThanOrEqual(1);
          expect(perS).toBeLessThanOrEqual(50_000);
          expect(rate.waitMs(nowMs)).toBeLessThanOrEqual(1000 * (steps.length + 1));
        }
      }),
    );
  });
});
