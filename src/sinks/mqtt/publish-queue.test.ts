import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ReasonError } from "../../model/reason.ts";
import { LinkWindow } from "../lib/link-window.ts";
import { type Feed, type Publish, type PublishOutcome, PublishQueue } from "./publish-queue.ts";

const ACCEPTED: PublishOutcome = { type: "accepted" };
const ROUND_TRIP_MS = 10;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A queue over a connection that says when a publish is answered. */
function queueOf(size = 16, timeoutMs = 1000) {
  const sent: { readonly topic: string; readonly answer: () => void }[] = [];
  const overdue: number[] = [];
  const window = new LinkWindow();
  window.opened(ROUND_TRIP_MS);
  const queue = new PublishQueue({
    size,
    window,
    timeoutMs,
    send: ({ topic }, settle) => sent.push({ topic, answer: () => settle(ACCEPTED) }),
    overdue: (ms) => {
      overdue.push(ms);
      queue.fail(new ReasonError("TIMEOUT", "overdue"));
    },
  });
  return { queue, sent, overdue, window, topics: () => sent.map(({ topic }) => topic) };
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

  it("is overdue where the first has no answer, however many behind it do", () => {
    const { queue, sent, overdue } = queueOf();
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
