import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ReasonError } from "../../model/reason.ts";
import { LinkWindow } from "../lib/link-window.ts";
import { PublishRate } from "../lib/publish-rate.ts";
import { type Feed, type Publish, type PublishAnswer, type PublishOutcome, PublishQueue } from "./publish-queue.ts";

const ACCEPTED: PublishOutcome = { type: "accepted" };
const ROUND_TRIP_MS = 10;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A queue over a connection that says when a publish is answered. */
function queueOf(size = 16, timeoutMs = 1000, { receiveMaximum = 65_535 } = {}) {
  const sent: { readonly topic: string; readonly isAgain: boolean; readonly answer: (answer?: PublishAnswer) => void }[] = [];
  const overdue: number[] = [];
  const refusing: boolean[] = [];
  const window = new LinkWindow();
  const rate = new PublishRate();
  window.opened(ROUND_TRIP_MS);
  const queue = new PublishQueue({
    size,
    receiveMaximum,
    window,
    rate,
    timeoutMs,
    send: ({ topic }, isAgain, settle) => sent.push({ topic, isAgain, answer: (answer = ACCEPTED) => settle(answer) }),
    isConfirmed: ({ qos = 1 }) => qos === 1,
    refusing(_, isOne) {
      refusing.push(isOne);
      queue.fail(new ReasonError("UNKNOWN", "refusing"));
    },
    overdue: (ms) => {
      overdue.push(ms);
      queue.fail(new ReasonError("TIMEOUT", "overdue"));
    },
  });
  return { queue, sent, overdue, refusing, window, rate, topics: () => sent.map(({ topic }) => topic) };
}

/** `count` publishes of so many bytes, on topics `<name><number from 1>`. */
function feedOf(name: string, count: number, { bytes = 100, isOlder = false, key = name } = {}) {
  const outcomes: (PublishOutcome | Error)[] = [];
  let made = 0;
  const fail = (error: unknown): void => void outcomes.push(error as Error);
  const feed: Feed = {
    key,
    isOlder,
    make() {
      if (made === count) return undefined;
      made++;
      const publish: Publish = {
        topic: `${name}${made}`,
        payload: Buffer.alloc(bytes),
        retain: false,
        done: (outcome) => outcomes.push(outcome),
        fail,
      };
      return { publish, isLast: made === count };
    },
    fail,
  };
  return { feed, outcomes, made: () => made };
}

describe("PublishQueue", () => {
  it("has no more under way than the broker takes, and makes no more", () => {
    const { queue, sent, topics } = queueOf(2);
    const { feed, made, outcomes } = feedOf("a", 4);
    queue.add(feed);
    expect([topics(), made()]).toEqual([["a1", "a2"], 2]);
    sent[0]?.answer();
    expect(topics()).toEqual(["a1", "a2", "a3"]);
    for (const { answer } of sent) answer();
    sent[3]?.answer();
    expect(outcomes).toEqual([ACCEPTED, ACCEPTED, ACCEPTED, ACCEPTED]);
    expect(queue.isIdle()).toBe(true);
  });

  it("makes them of the keys by turns, and of one key in order", () => {
    const { queue, sent, topics } = queueOf(1);
    queue.add(feedOf("a", 3).feed);
    queue.add(feedOf("b", 1).feed);
    queue.add(feedOf("c", 1, { key: "b" }).feed);
    queue.add(feedOf("none", 0).feed);
    for (let n = 0; n < 5; n++) sent[n]?.answer();
    expect(topics()).toEqual(["a1", "a2", "b1", "a3", "c1"]);
    expect(queue.isIdle()).toBe(true);
  });

  it("sends what is newer first, and gives older data a quarter of the bytes", () => {
    const { queue, sent, topics } = queueOf(1);
    queue.add(feedOf("old", 1000, { isOlder: true }).feed);
    queue.add(feedOf("new", 1000).feed);
    for (let n = 0; n < 400; n++) sent[n]?.answer();
    const older = topics().filter((topic) => topic.startsWith("old")).length;
    expect(older).toBeGreaterThanOrEqual(98);
    expect(older).toBeLessThanOrEqual(103);
  });

  it("sends older data one after the other, whatever the key: a loss finds one that has begun", () => {
    const { queue, sent, topics } = queueOf(1);
    queue.add(feedOf("a", 2, { isOlder: true }).feed);
    queue.add(feedOf("b", 2, { isOlder: true }).feed);
    for (let n = 0; n < 4; n++) sent[n]?.answer();
    expect(topics()).toEqual(["a1", "a2", "b1", "b2"]);
  });

  it("has one large older message under way among many small newer ones, where publishes are what there is too few of", () => {
    const { queue, sent, topics, window } = queueOf(8);
    window.acknowledged(window.sent(1_000_000, 0), 1);
    queue.add(feedOf("old", 100, { bytes: 20_000, isOlder: true }).feed);
    queue.add(feedOf("new", 1000).feed);
    for (const name of topics()) expect(name).toMatch(/^old/);
    for (let n = 0; n < 160; n++) sent[n]?.answer();
    // By bytes it would be one in 600.
    const after = topics().slice(16, 160);
    const older = after.filter((topic) => topic.startsWith("old")).length;
    expect(older).toBeGreaterThanOrEqual(144 / 9);
    expect(older).toBeLessThanOrEqual(144 / 8);
  });

  it("sends one message of any size, and then waits for the window", () => {
    const { queue, sent, topics, window } = queueOf();
    queue.add(feedOf("large", 2, { bytes: 20_000 }).feed);
    expect(topics()).toEqual(["large1"]);
    vi.advanceTimersByTime(500);
    sent[0]?.answer();
    expect(topics()).toEqual(["large1", "large2"]);
    expect(window.bytesIn(500)).toBeLessThan(25_000);
  });

  it("is overdue for want of progress, however long all of them take together", () => {
    const { queue, sent, overdue } = queueOf();
    queue.add(feedOf("a", 5).feed);
    for (const { answer } of sent) {
      vi.advanceTimersByTime(900);
      answer();
    }
    queue.add(feedOf("b", 1).feed);
    vi.advanceTimersByTime(999);
    expect(overdue).toEqual([]);
    vi.advanceTimersByTime(1000);
    expect(overdue).toHaveLength(1);
  });

  it("is overdue where the first has no answer within the time-out, however many behind it do", () => {
    const { queue, sent, overdue } = queueOf(16, 800);
    const first = feedOf("a", 1);
    queue.add(first.feed);
    queue.add(feedOf("b", 20).feed);
    for (let n = 1; n < 20; n++) {
      vi.advanceTimersByTime(100);
      sent[n]?.answer();
    }
    expect(overdue).toHaveLength(1);
    expect(first.outcomes).toEqual([expect.objectContaining({ message: "overdue" })]);
  });

  it("gives a large message over an unknown link the time of 8 kbit/s more", () => {
    const { queue, overdue } = queueOf();
    queue.add(feedOf("large", 1, { bytes: 30_000 }).feed);
    vi.advanceTimersByTime(30_000);
    expect(overdue).toEqual([]);
    vi.advanceTimersByTime(2000);
    expect(overdue).toHaveLength(1);
  });

  it("fails all that is not answered, once, and all that comes later", () => {
    const { queue, sent } = queueOf(1);
    const feeds = [feedOf("a", 2), feedOf("b", 2, { isOlder: true }), feedOf("c", 1)];
    for (const { feed } of feeds.slice(0, 2)) queue.add(feed);
    const reason = new ReasonError("CONNECTION_CLOSED", "gone");
    expect([queue.fail(reason), queue.fail(reason)]).toEqual([true, false]);
    for (const { feed } of feeds.slice(2)) queue.add(feed);
    for (const { outcomes } of feeds) expect(outcomes[0]).toBe(reason);
    for (const { answer } of sent) answer();
    expect(feeds[0]?.outcomes).not.toContain(ACCEPTED);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("a feed that throws ends alone", () => {
    const { queue, topics } = queueOf();
    const fail = vi.fn();
    const make = () => {
      throw new Error("no");
    };
    queue.add({ key: "x", isOlder: false, make, fail });
    queue.add(feedOf("a", 1).feed);
    expect(fail).toHaveBeenCalledWith(expect.objectContaining({ message: "no" }));
    expect(topics()).toEqual(["a1"]);
  });
});

const OVER_QUOTA: PublishAnswer = { type: "over_quota", detail: "quota" };

describe("PublishQueue, of a broker that takes fewer than it is sent", () => {
  it("sends what was over the quota again after a second, before all others, and no faster than was accepted", () => {
    const { queue, sent, topics, rate } = queueOf(4, 10_000);
    const { feed, outcomes } = feedOf("a", 50);
    queue.add(feed);
    for (let n = 0; n < 10; n++) sent[n]?.answer();
    for (let n = 10; n < 14; n++) sent[n]?.answer(OVER_QUOTA);
    // One alone may be chance: it is sent again at once.
    expect([topics().length, rate.state()?.perS]).toEqual([15, 8]);
    vi.advanceTimersByTime(999);
    expect(sent).toHaveLength(15);
    vi.advanceTimersByTime(1001);
    expect(topics().slice(14, 18)).toEqual(["a11", "a12", "a13", "a14"]);
    expect(sent[14]?.isAgain).toBe(true);
    for (let n = 0; n < 100; n++) {
      for (const { answer } of sent) answer();
      vi.advanceTimersByTime(100);
    }
    expect(outcomes).toEqual(Array.from({ length: 50 }, () => ACCEPTED));
    expect(queue.isIdle()).toBe(true);
  });

  it("ends the connection where everything is over the quota for the time-out, and for one that alone is it each time", () => {
    const all = queueOf(1, 5000);
    all.queue.add(feedOf("a", 3).feed);
    for (let n = 0; n < 30; n++) {
      all.sent[n]?.answer(OVER_QUOTA);
      vi.advanceTimersByTime(1000);
    }
    expect(all.refusing).toEqual([false]);
    const one = queueOf(2, 60_000);
    one.queue.add(feedOf("bad", 1).feed);
    one.queue.add(feedOf("a", 1000).feed);
    for (let n = 0; n < 300; n++) {
      for (const { topic, answer } of one.sent.splice(0)) answer(topic === "bad1" ? OVER_QUOTA : ACCEPTED);
      vi.advanceTimersByTime(500);
    }
    expect(one.refusing).toEqual([true]);
  });

  it("sends again what later ones have passed, and learns the rate", () => {
    const { queue, sent, topics, rate, overdue } = queueOf(4, 10_000);
    const { feed, outcomes } = feedOf("a", 12);
    queue.add(feed);
    for (let n = 0; n < 5; n++) sent[n]?.answer();
    // The sixth and the seventh were dropped without a word.
    for (let n = 7; n < 12; n++) sent[n]?.answer();
    expect(outcomes).toHaveLength(10);
    vi.advanceTimersByTime(900);
    expect(topics()).toHaveLength(12);
    vi.advanceTimersByTime(2500);
    expect(topics().slice(12)).toEqual(["a6", "a7"]);
    expect(rate.state()?.perS).toBe(8);
    for (const { answer } of sent.slice(12)) answer();
    vi.advanceTimersByTime(20_000);
    expect([outcomes.length, overdue, queue.isIdle()]).toEqual([12, [], true]);
  });

  it("finds with one repetition that all that is under way was dropped", () => {
    const { queue, sent, topics, rate, overdue } = queueOf(4, 10_000);
    const { feed, outcomes } = feedOf("a", 12);
    queue.add(feed);
    for (let n = 0; n < 6; n++) sent[n]?.answer();
    vi.advanceTimersByTime(3000);
    expect(topics().slice(10)).toEqual(["a7"]);
    sent[10]?.answer();
    expect(rate.state()?.perS).toBeCloseTo(4.8);
    vi.advanceTimersByTime(4000);
    expect(topics().slice(11, 14)).toEqual(["a8", "a9", "a10"]);
    for (let n = 0; n < 20; n++) {
      for (const { answer } of sent) answer();
      vi.advanceTimersByTime(300);
    }
    expect([outcomes.length, overdue]).toEqual([12, []]);
  });

  it("repeats one alone while a broker stands still, and takes its late answers for what they are", () => {
    const { queue, sent, topics, rate, overdue } = queueOf(4, 10_000);
    const { feed, outcomes } = feedOf("a", 8);
    queue.add(feed);
    sent[0]?.answer();
    vi.advanceTimersByTime(8000);
    expect(topics()).toHaveLength(6);
    // In the order of the publishes, each a while after the one before.
    for (const n of [1, 2, 3, 4, 5, 6, 7, 8]) {
      sent[n]?.answer();
      vi.advanceTimersByTime(900);
    }
    expect([outcomes.length, overdue, rate.state()]).toEqual([8, [], undefined]);
    expect(topics().filter((topic) => topic === "a2")).toHaveLength(2);
    expect(topics()).toHaveLength(9);
  });

  it("ends the connection over one that gets no answer three times, and learns nothing of the rate from it", () => {
    const { queue, sent, rate, overdue } = queueOf(4, 60_000);
    queue.add(feedOf("bad", 1).feed);
    queue.add(feedOf("a", 10_000).feed);
    for (let n = 0; n < 10_000 && overdue.length === 0; n++) {
      for (const one of sent.splice(0)) if (one.topic !== "bad1") one.answer();
      vi.advanceTimersByTime(100);
    }
    expect(overdue).toHaveLength(1);
    expect(rate.state()).toBeUndefined();
  });

  it("ends the connection before dropped ones exceed what the broker allows without an answer", () => {
    const { queue, sent, overdue } = queueOf(2, 60_000, { receiveMaximum: 3 });
    queue.add(feedOf("a", 1000).feed);
    for (let n = 0; n < 600 && overdue.length === 0; n++) {
      for (const [i, one] of sent.splice(0).entries()) if (n % 20 !== 0 || i !== 0) one.answer();
      vi.advanceTimersByTime(200);
    }
    expect(overdue).toHaveLength(1);
  });

  it("never repeats what nothing confirms, however late it is, and whatever later one is acknowledged", () => {
    const { queue, sent, topics, rate } = queueOf(4, 10_000);
    const outcomes: unknown[] = [];
    const one = (topic: string, qos: 0 | 1): Feed => {
      const publish = { topic, payload: "", retain: false, qos, done: (outcome: PublishOutcome) => outcomes.push(outcome), fail: () => {} };
      return { key: topic, isOlder: false, make: () => ({ publish, isLast: true }), fail: () => {} };
    };
    queue.add(one("unconfirmed", 0));
    queue.add(one("confirmed", 1));
    sent[1]?.answer();
    vi.advanceTimersByTime(8000);
    expect([topics(), rate.state()]).toEqual([["unconfirmed", "confirmed"], undefined]);
    sent[0]?.answer();
    expect(outcomes).toEqual([ACCEPTED, ACCEPTED]);
  });

  it("gives older data what the newer leave of the rate", () => {
    const { queue, sent, topics, rate } = queueOf(4, 10_000);
    rate.limitTo(10);
    queue.add(feedOf("old", 1000, { isOlder: true }).feed);
    for (let second = 0; second < 20; second++) {
      queue.add(feedOf(`new${second}.`, 6, { key: "new" }).feed);
      for (let n = 0; n < 20; n++) {
        vi.advanceTimersByTime(50);
        for (const { answer } of sent) answer();
      }
    }
    const newer = topics().filter((topic) => topic.startsWith("new")).length;
    expect(newer).toBeGreaterThanOrEqual(116);
    expect(topics().length - newer).toBeGreaterThanOrEqual(75);
    expect(topics().length).toBeLessThanOrEqual(202);
  });
});
