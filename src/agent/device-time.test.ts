import { describe, expect, it } from "vitest";
import {
  answered,
  type Charge,
  hasAnsweredOthers,
  mayProbe,
  newDevice,
  newUser,
  probed,
  probeTimeoutMs,
  searchCharge,
  yields,
} from "./device-time.ts";

/** A device and its users at times of their own. */
function device() {
  let nowMs = 1_000_000;
  const time = newDevice();
  const pass = (ms: number) => {
    nowMs += ms;
  };
  const join = (intervalMs: number, onOtherBack: () => void = () => {}) => {
    const user = newUser(time, intervalMs);
    return {
      answered(ms: number) {
        answered(time, user, ms, nowMs);
        for (const share of shares) share.tell();
      },
      probed: (costMs: number, from: Charge) => probed(time, user, costMs, from, undefined, nowMs),
      mayProbe: (isOwnTime: boolean) => mayProbe(time, user, isOwnTime, nowMs),
      searchCharge: () => searchCharge(time, user, nowMs),
      timeoutMs: (fullMs: number) => probeTimeoutMs(time, fullMs, nowMs),
      isPaceKnown: () => time.pace.slowestMs > 0,
      hasAnsweredOthers: () => hasAnsweredOthers(time, user),
      yields: () => yields(time, user, nowMs),
      failed(isShadowed = false) {
        user.isUnanswered = true;
        user.hasFailed = !isShadowed;
      },
      searches(isUnderWay: boolean) {
        user.isSearching = isUnderWay;
      },
      tell() {
        if (user.isToTry) onOtherBack();
        user.isToTry = false;
      },
    };
  };
  const shares: ReturnType<typeof join>[] = [];
  return {
    time,
    pass,
    join(intervalMs: number, onOtherBack?: () => void) {
      const share = join(intervalMs, onOtherBack);
      shares.push(share);
      return share;
    },
  };
}

describe("the time of a device", () => {
  it("knows of others that were answered since a source is silent, and of none where all are", () => {
    const { join, pass } = device();
    const [one, other] = [join(1000), join(1000)];
    for (const share of [one, other]) share.answered(5);
    pass(1000);
    one.probed(500, "surprise");
    expect(one.hasAnsweredOthers()).toBe(false);
    pass(100);
    other.answered(5);
    expect(one.hasAnsweredOthers()).toBe(true);
    one.answered(5);
    expect(one.hasAnsweredOthers()).toBe(false);
  });

  it("waits whole milliseconds, which people read in the sentence of a time-out", () => {
    const { join } = device();
    const share = join(1000);
    share.answered(211.123456);
    expect(share.timeoutMs(10_000)).toBe(844);
  });

  it("gives what has no answer a twentieth where a probe holds up a readout, and a quarter where it does not", () => {
    for (const [intervalMs, costMs, pauseMs] of [
      [1000, 620, 19 * 620],
      [10_000, 600, 3 * 600],
    ] as const) {
      const { join, pass } = device();
      const [well, dead] = [join(intervalMs), join(intervalMs)];
      well.answered(5);
      expect(dead.mayProbe(true)).toBe(true);
      dead.probed(costMs, "share");
      pass(pauseMs - 1);
      expect(dead.mayProbe(true)).toBe(false);
      pass(1);
      expect(dead.mayProbe(true)).toBe(true);
    }
  });

  it("lets those that search take turns among themselves, and with what has no answer at all", () => {
    const { time, join, pass } = device();
    const [one, other, dead] = [join(1000), join(1000), join(1000)];
    for (const share of [one, other]) share.answered(5);
    dead.failed();
    const order: string[] = [];
    // Each second all want the next probe; what has no answer waits for it, so that it is asked first.
    for (let second = 0; second < 100; second++) {
      pass(1000);
      for (const share of [one, other]) share.answered(5);
      const isFree = (): boolean => time.freeAtMs <= 1_000_000 + (second + 1) * 1000;
      if (isFree() && !dead.yields()) {
        dead.probed(502, "share");
        order.push("dead");
      }
      for (const [name, share] of [
        ["one", one],
        ["other", other],
      ] as const)
        if (share.mayProbe(true)) {
          share.probed(502, "share");
          order.push(name);
        }
    }
    expect(order.slice(0, 9)).toEqual(["dead", "one", "dead", "other", "dead", "one", "dead", "other", "dead"]);
  });

  it("has three seconds at once for searches, which come back slowly, and none of them for what has no answer at all", () => {
    const { join, pass } = device();
    const [one, other, dead] = [join(1000), join(1000), join(1000)];
    for (const share of [one, other]) share.answered(5);
    dead.failed();
    const passSeconds = (seconds: number): void => {
      for (let second = 0; second < seconds; second++) {
        pass(1000);
        for (const share of [one, other]) share.answered(5);
      }
    };
    /** How many asks of 600 ms may be made now. */
    const asks = (): number => {
      let asked = 0;
      for (let time = one.searchCharge(); asked < 100 && time; time = one.searchCharge(), asked++) one.probed(600, time);
      return asked;
    };
    // The first is a probe's, and then what is there for searches.
    expect(asks()).toBe(6);
    expect([one.searchCharge(), dead.mayProbe(true), dead.mayProbe(false)]).toEqual([undefined, false, false]);
    passSeconds(10);
    expect(asks()).toBe(1);
    passSeconds(120);
    expect(asks()).toBe(6);
  });

  it("waits for nobody who wanted a probe and has gone quiet since", () => {
    const { join, pass } = device();
    const [one, dead] = [join(1000), join(1000)];
    one.answered(5);
    dead.failed();
    dead.probed(502, "share");
    expect(one.mayProbe(true)).toBe(true);
    const other = join(1000);
    expect(other.mayProbe(true)).toBe(false);
    expect(dead.yields()).toBe(true);
    pass(3001);
    expect(dead.yields()).toBe(false);
  });

  it("charges what the device was busy after a probe was given up, and learns no pace from it", () => {
    const { join, pass } = device();
    const [well, dead] = [join(10_000), join(10_000)];
    well.answered(5);
    expect(well.timeoutMs(3000)).toBe(500);
    dead.probed(500, "share");
    well.answered(700);
    expect(well.timeoutMs(3000)).toBe(500);
    pass(3 * (500 + 700) - 1);
    expect(dead.mayProbe(true)).toBe(false);
    pass(1);
    expect(dead.mayProbe(true)).toBe(true);
  });

  it("takes an answer after a probe for the pace as long as it has no better one: the device is no slower", () => {
    const { join } = device();
    const share = join(1000);
    share.probed(3000, "surprise");
    share.answered(200);
    expect([share.isPaceKnown(), share.timeoutMs(3000)]).toEqual([false, 800]);
    share.answered(300);
    expect([share.isPaceKnown(), share.timeoutMs(3000)]).toEqual([true, 1200]);
  });

  it("bounds nobody where nobody else is answered", () => {
    const { join, pass } = device();
    const [one, other] = [join(1000), join(1000)];
    one.answered(5);
    one.probed(3000, "share");
    expect([one.mayProbe(true), one.mayProbe(false), other.mayProbe(true)]).toEqual([true, false, false]);
    pass(31_000);
    expect(other.mayProbe(true)).toBe(true);
  });

  it("waits four times as long as the slowest of the last answers, within its bounds", () => {
    const { join } = device();
    const share = join(1000);
    expect([share.isPaceKnown(), share.timeoutMs(3000)]).toEqual([false, 3000]);
    share.answered(200);
    expect(share.timeoutMs(3000)).toBe(800);
    share.answered(2000);
    expect(share.timeoutMs(3000)).toBe(3000);
    for (let i = 0; i < 500; i++) share.answered(10);
    expect(share.timeoutMs(3000)).toBe(500);
  });

  it("brings all tries forward after a silence of all, even those in a shadow", () => {
    const { join } = device();
    const tried = { one: 0, other: 0 };
    const [one, other] = [join(1000, () => tried.one++), join(1000, () => tried.other++)];
    for (const share of [one, other]) share.answered(5);
    for (const share of [one, other]) share.probed(3000, "share");
    for (const share of [one, other]) share.failed(true);
    one.answered(5);
    expect(tried).toEqual({ one: 0, other: 1 });
    expect(other.mayProbe(true)).toBe(true);
  });

  it("brings the next try of what had no answer forward when something else is back, at most once in ten seconds", () => {
    const { join, pass } = device();
    const tried = { one: 0, other: 0, well: 0 };
    const [one, other] = [join(1000, () => tried.one++), join(1000, () => tried.other++)];
    const well = join(1000, () => tried.well++);
    const readAll = (...shares: readonly { answered(ms: number): void }[]) => {
      for (const share of shares) share.answered(5);
    };
    readAll(well, one, other);
    expect(tried).toEqual({ one: 0, other: 0, well: 0 });
    for (const share of [one, other]) share.failed();
    other.probed(600, "share");
    expect(one.mayProbe(true)).toBe(false);
    readAll(well);
    expect(tried).toEqual({ one: 0, other: 0, well: 0 });
    readAll(one);
    expect(tried).toEqual({ one: 0, other: 1, well: 0 });
    expect(other.mayProbe(true)).toBe(true);
    // It comes and goes.
    for (let second = 1; second < 20; second++) {
      pass(1000);
      one.failed();
      readAll(well, one);
    }
    expect(tried).toEqual({ one: 0, other: 2, well: 0 });
  });

  /** How many asks of so many ms a search makes in a minute beside these, whose readouts take so long each second. */
  function asksIn(askMs: number, others: number, readoutMs: number, isSearching: boolean): number {
    const { join, pass } = device();
    const own = join(1000);
    const users = Array.from({ length: others }, () => join(1000));
    let asked = 0;
    for (let tenth = 0; tenth < 600; tenth++) {
      if (tenth % 10 === 0)
        for (const user of users) {
          user.answered(readoutMs);
          user.searches(isSearching);
        }
      const taken = own.searchCharge();
      if (taken) {
        own.probed(askMs, taken);
        asked++;
      }
      pass(100);
    }
    return asked;
  }

  it("lets searches have what others leave, of short asks", () => {
    const beside = (readoutMs: number, askMs = 500) => asksIn(askMs, 10, readoutMs, false);
    // Half of the time beside readouts that take a tenth of it; a long one would cost a readout each time.
    expect(beside(10)).toBeGreaterThan(50);
    expect(beside(50)).toBeLessThan(beside(10) / 1.5);
    // Some before it is known how busy the device is.
    expect(beside(100)).toBeLessThan(30);
    expect(beside(20, 700)).toBeLessThan(30);
  });

  it("lets a search take its time where all others search too", () => {
    expect(asksIn(700, 10, 20, true)).toBe(600);
    expect(asksIn(700, 10, 20, false)).toBeLessThan(30);
  });
});
