import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Flight, LEAST_MESSAGE_BYTES, LEAST_WINDOW_BYTES, LinkWindow, MOST_WINDOW_BYTES } from "./link-window.ts";

interface Link {
  readonly bytesPerS: number;
  readonly roundTripMs: number;
}

/** A link that carries one message after the other, and a sender that always has the next one. Times are virtual. */
class Sender {
  readonly window: LinkWindow;
  nowMs = 0;
  link: Link;
  readonly #messageBytes: number;
  /** By the time of the acknowledgement. */
  readonly #underWay: { readonly flight: Flight; readonly dueMs: number }[] = [];
  #busyUntilMs = 0;
  /** Longest time from a message to its acknowledgement. */
  longestMs = 0;

  constructor(link: Link, messageBytes: number, window = new LinkWindow()) {
    this.link = link;
    this.#messageBytes = messageBytes;
    this.window = window;
    window.opened(link.roundTripMs);
  }

  #fill(): void {
    while (this.window.hasRoom()) {
      this.#busyUntilMs = Math.max(this.#busyUntilMs, this.nowMs) + (this.#messageBytes * 1000) / this.link.bytesPerS;
      const flight = this.window.sent(this.#messageBytes, this.nowMs);
      this.#underWay.push({ flight, dueMs: this.#busyUntilMs + this.link.roundTripMs });
    }
    this.window.waits(this.nowMs);
  }

  /** Sends for `ms`. */
  run(ms: number): void {
    const endMs = this.nowMs + ms;
    for (let steps = 0; this.nowMs < endMs && steps < 20_000; steps++) {
      this.#fill();
      const next = this.#underWay.shift();
      if (!next) return;
      this.nowMs = next.dueMs;
      this.longestMs = Math.max(this.longestMs, this.nowMs - next.flight.sentMs);
      this.window.acknowledged(next.flight, this.nowMs);
    }
  }
}

const links = fc.record({ bytesPerS: fc.integer({ min: 500, max: 20_000_000 }), roundTripMs: fc.integer({ min: 1, max: 1500 }) });
const bytesOf = (window: LinkWindow): number => window.state().windowBytes;
/** What fills the link, and a second more. */
const aimOf = ({ bytesPerS, roundTripMs }: Link): number =>
  Math.min(MOST_WINDOW_BYTES, Math.max(LEAST_WINDOW_BYTES, (bytesPerS * (roundTripMs + 1000)) / 1000));

describe("LinkWindow", () => {
  it("is never below its least nor above its most, whatever happens in whatever order", () => {
    const events = fc.array(
      fc.oneof(
        fc.record({ type: fc.constant("sent" as const), bytes: fc.integer({ min: 1, max: 300_000_000 }) }),
        fc.record({ type: fc.constant("acknowledged" as const), which: fc.nat() }),
        fc.record({ type: fc.constantFrom("waits" as const, "timedOut" as const, "opened" as const), ms: fc.nat({ max: 1e9 }) }),
      ),
      { maxLength: 100 },
    );
    fc.assert(
      fc.property(events, fc.array(fc.nat({ max: 60_000 })), (all, steps) => {
        const window = new LinkWindow();
        let flights: Flight[] = [];
        let nowMs = 0;
        for (const [i, event] of all.entries()) {
          nowMs += steps[i % Math.max(1, steps.length)] ?? 0;
          if (event.type === "sent") flights.push(window.sent(event.bytes, nowMs));
          else if (event.type === "acknowledged") {
            const [flight] = flights.splice(event.which % Math.max(1, flights.length), 1);
            if (flight) window.acknowledged(flight, nowMs);
          } else if (event.type === "waits") window.waits(nowMs);
          else if (event.type === "timedOut") window.timedOut(1000, event.ms);
          else {
            window.opened(event.ms);
            flights = [];
          }
          const { windowBytes, bytesPerS = 1, roundTripMs = 0 } = window.state();
          expect(windowBytes).toBeGreaterThanOrEqual(LEAST_WINDOW_BYTES);
          expect(windowBytes).toBeLessThanOrEqual(MOST_WINDOW_BYTES);
          expect(Number.isInteger(windowBytes)).toBe(true);
          expect(bytesPerS).toBeGreaterThanOrEqual(0);
          expect(roundTripMs).toBeGreaterThanOrEqual(0);
          if (flights.length === 0) expect(window.hasRoom()).toBe(true);
          for (const ms of [0, 1000]) expect(window.provedBytesIn(ms)).toBeGreaterThanOrEqual(LEAST_MESSAGE_BYTES);
        }
      }),
    );
  });

  it("grows with acknowledgements until the link is full, and keeps about a second waiting in it", () => {
    fc.assert(
      fc.property(links, (link) => {
        const sender = new Sender(link, 1000);
        const before = bytesOf(sender.window);
        const aim = aimOf(link);
        sender.run(30_000);
        expect(bytesOf(sender.window)).toBeGreaterThan(Math.min(before, aim) * 0.7);
        if (aim > 4000) {
          expect(bytesOf(sender.window) / aim).toBeGreaterThan(0.7);
          expect(bytesOf(sender.window) / aim).toBeLessThan(1.3);
          expect((sender.window.state().bytesPerS ?? 0) / link.bytesPerS).toBeLessThan(1.1);
        }
      }),
      { numRuns: 40 },
    );
  });

  it("halves on a time-out, and recovers", () => {
    fc.assert(
      fc.property(links, fc.integer({ min: 1, max: 5 }), (link, timeOuts) => {
        const sender = new Sender(link, 1000);
        sender.run(20_000);
        const before = bytesOf(sender.window);
        for (let n = 0; n < timeOuts; n++) {
          const bytes = bytesOf(sender.window);
          sender.window.timedOut(1000, 10_000);
          expect(bytesOf(sender.window)).toBe(Math.max(LEAST_WINDOW_BYTES, bytes >> 1));
        }
        const again = new Sender(link, 1000, sender.window);
        again.nowMs = sender.nowMs;
        again.run(40_000);
        expect(bytesOf(again.window)).toBeGreaterThan(Math.min(before, aimOf(link)) * 0.7);
      }),
      { numRuns: 40 },
    );
  });

  it("follows a link that becomes slower, and one that becomes faster", () => {
    const sender = new Sender({ bytesPerS: 64_000, roundTripMs: 100 }, 1000);
    sender.run(20_000);
    sender.link = { bytesPerS: 8000, roundTripMs: 100 };
    sender.run(60_000);
    expect(bytesOf(sender.window)).toBeLessThan(aimOf(sender.link) * 1.3);
    sender.link = { bytesPerS: 64_000, roundTripMs: 100 };
    sender.run(30_000);
    expect(bytesOf(sender.window)).toBeGreaterThan(aimOf(sender.link) * 0.7);
  });

  it("recovers where the way becomes longer than all that may wait in the link", () => {
    const sender = new Sender({ bytesPerS: 40_000, roundTripMs: 20 }, 500);
    sender.run(10_000);
    sender.link = { bytesPerS: 40_000, roundTripMs: 3000 };
    sender.run(120_000);
    expect(bytesOf(sender.window)).toBeGreaterThan(aimOf(sender.link) * 0.5);
  });

  it("takes few bytes over a fast link for no sign of a slow one", () => {
    const window = new LinkWindow();
    window.opened(50);
    for (let nowMs = 0; nowMs < 60_000; nowMs += 1000) window.acknowledged(window.sent(60, nowMs), nowMs + 50 + (nowMs % 7000) / 70);
    expect(window.bytesIn(2000)).toBeUndefined();
    expect(window.allowanceMs(1e6)).toBeUndefined();
  });

  it("takes a server that acknowledges late for a long way, and not for a slow one", () => {
    const window = new LinkWindow();
    window.opened(5);
    for (let nowMs = 0; nowMs < 60_000; nowMs += 1000) window.acknowledged(window.sent(300, nowMs), nowMs + 900);
    expect(window.bytesIn(2000)).toBeUndefined();
    expect(window.state().roundTripMs).toBe(900);
  });

  it("takes a message that is late for one", () => {
    const window = new LinkWindow();
    window.opened(100);
    window.acknowledged(window.sent(8000, 0), 1100);
    expect(window.bytesIn(1000)).toBe(8000);
    expect(window.allowanceMs(16_000)).toBe(4000);
  });

  it("learns from a time-out of a large message how much slower the link has become, and sends as much ahead as that carries", () => {
    const sender = new Sender({ bytesPerS: 100_000, roundTripMs: 50 }, 20_000);
    sender.run(20_000);
    expect(bytesOf(sender.window)).toBeGreaterThan(70_000);
    sender.window.timedOut(50_000, 12_500);
    expect(sender.window.bytesIn(1000)).toBe(2000);
    expect(bytesOf(sender.window)).toBeLessThanOrEqual(2 * 1050);
    const healed = new Sender(sender.link, 1000, sender.window);
    healed.nowMs = sender.nowMs;
    healed.run(5000);
    expect(bytesOf(healed.window)).toBeGreaterThan(70_000);
  });

  it("learns from a time-out that a large message was too large", () => {
    const window = new LinkWindow();
    window.opened(100);
    window.sent(200_000, 0);
    window.timedOut(200_000, 100_000);
    expect(window.bytesIn(1000)).toBe(1000);
    expect(window.bytesIn(100)).toBe(LEAST_MESSAGE_BYTES);
    expect(window.bytesIn(2000)).toBe(2000);
  });
});
