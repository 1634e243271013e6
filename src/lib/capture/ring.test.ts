import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { WireEvent, WirePeer } from "../../model/wire.ts";
import { LEAST_RING_BYTES, Ring, recordIn, ringMemory } from "./ring.ts";

const PEER: WirePeer = { transport: "tcp", address: "192.168.7.12", port: 1502 };

const brief = ({ number, connection, kind, direction, offset, otherOffset, bytes, length }: WireEvent): readonly unknown[] => [
  number,
  connection,
  kind,
  direction,
  offset,
  otherOffset,
  Buffer.from(bytes).toString(),
  length,
];

describe("a ring", () => {
  it("keeps what passes, with its times", () => {
    const memory = ringMemory(LEAST_RING_BYTES);
    let now = 10.5;
    const ring = new Ring(
      memory,
      () => now++,
      () => 1_700_000_000_000,
    );
    const trace = ring.opening(PEER);
    trace.opened();
    trace.data("out", Buffer.from("question"));
    trace.data("in", Buffer.from("answer"));
    trace.data("out", Buffer.from("hunter2"), "log_in");
    trace.ended("fin_out");
    const { events, peers, dropped } = recordIn(memory);
    expect(events.map(brief)).toEqual([
      [0, 1, "opening", "out", 0, 0, "", 0],
      [1, 1, "opened", "out", 0, 0, "", 0],
      [2, 1, "data", "out", 0, 0, "question", 8],
      [3, 1, "data", "in", 0, 8, "answer", 6],
      [4, 1, "data", "out", 8, 6, "", 7],
      [5, 1, "ended", "out", 15, 6, "", 0],
    ]);
    expect(events.map(({ withheld, ending }) => withheld ?? ending)).toEqual([...Array(4).fill(undefined), "log_in", "fin_out"]);
    expect(events.map(({ wallMs, monotonicMs }) => [wallMs, monotonicMs])).toEqual(events.map((_, i) => [1_700_000_000_000 + i, 10.5 + i]));
    expect([...peers]).toEqual([[1, PEER]]);
    expect(dropped).toBe(0);
    expect(Buffer.from(memory).includes("hunter2")).toBe(false);
  });

  it.each(["10.0.0.1", "fe80::1", "2001:db8::ff00:42:8329", "::1"])("knows the address %s again", (address) => {
    const memory = ringMemory(LEAST_RING_BYTES);
    const peer: WirePeer = { transport: "udp", address, port: 65_535, listeningPort: 9000 };
    new Ring(memory).opening(peer);
    expect([...recordIn(memory).peers.values()]).toEqual([peer]);
  });

  it("holds the newest events in their order, and never more than its memory, whatever passes", () => {
    const step = fc.record({
      bytes: fc.nat(3000),
      direction: fc.constantFrom("out" as const, "in" as const),
      opens: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 512, max: 2048 }), (steps, words) => {
        const memory = ringMemory(8 * words);
        const ring = new Ring(memory);
        let trace = ring.opening(PEER);
        const passed: { readonly bytes: Buffer }[] = [];
        let count = 1;
        for (const [i, { bytes, direction, opens }] of steps.entries()) {
          if (opens) trace = ring.opening(PEER);
          const data = Buffer.alloc(bytes, i);
          trace.data(direction, data);
          passed.push({ bytes: data });
          count += opens ? 2 : 1;
        }
        const { events, dropped } = recordIn(memory);
        expect(events.length + dropped).toBe(count);
        expect(events.map(({ number }) => number)).toEqual(Array.from({ length: events.length }, (_, i) => dropped + i));
        const data = events.filter(({ kind }) => kind === "data");
        for (const [i, event] of data.toReversed().entries()) {
          const full = passed.at(-1 - i)?.bytes ?? Buffer.alloc(0);
          expect(event.length).toBe(full.length);
          expect(full.subarray(0, event.bytes.length).equals(event.bytes)).toBe(true);
        }
        if (steps.length > 0) expect(data.length).toBeGreaterThan(0);
      }),
      { numRuns: 200 },
    );
  });

  it("moves into other memory with what fits there, and goes on", () => {
    const [large, small] = [ringMemory(4 * LEAST_RING_BYTES), ringMemory(LEAST_RING_BYTES)];
    const ring = new Ring(large);
    const trace = ring.opening(PEER);
    for (let i = 0; i < 100; i++) trace.data("out", Buffer.alloc(100, i));
    ring.move(small);
    trace.data("in", Buffer.from("after"));
    const { events, peers, dropped } = recordIn(small);
    expect(events.map(({ number }) => number)).toEqual(Array.from({ length: events.length }, (_, i) => 102 - events.length + i));
    expect(dropped).toBe(102 - events.length);
    expect(events.length).toBeGreaterThan(10);
    expect(events.at(-1)).toMatchObject({ direction: "in", otherOffset: 10_000 });
    expect(peers.get(1)).toEqual(PEER);
  });

  it("is empty after its writer died in the middle of an event, and goes on with the next one", () => {
    const memory = ringMemory(LEAST_RING_BYTES);
    new Ring(memory).opening(PEER).opened();
    // Odd: something is being written.
    new Int32Array(memory)[0] = 5;
    expect(recordIn(memory).events).toEqual([]);
    new Ring(memory).opening(PEER).opened();
    expect(recordIn(memory).events.map(({ connection, kind }) => [connection, kind])).toEqual([
      [2, "opening"],
      [2, "opened"],
    ]);
  });
});
