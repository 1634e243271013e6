import { afterEach, describe, expect, it, vi } from "vitest";
import { Ring } from "../lib/capture/ring.ts";
import type { WirePeer } from "../model/wire.ts";
import { FrameRings } from "./frame-rings.ts";

const PEER: WirePeer = { transport: "tcp", address: "10.0.0.9", port: 502 };
const turns = (count: number): Promise<void> =>
  new Promise((done) => {
    let left = count;
    const next = (): void => void (left-- > 0 ? setImmediate(next) : done());
    next();
  });

afterEach(() => void vi.useRealTimers());

describe("memory for frames", () => {
  it("is one ring for sources that share their connections, until the last of them leaves", () => {
    const rings = new FrameRings({ sourceBytes: 65_536, totalBytes: 1 << 20 });
    const [one, other, apart] = [rings.join("a"), rings.join("a"), rings.join("b")];
    one.wire?.opening(PEER).opened();
    expect([one, other, apart].map((member) => member.record().events.length)).toEqual([2, 2, 0]);
    expect(rings.bytes).toBe(2 * 65_536);
    one.leave();
    one.leave();
    expect(other.record().events).toHaveLength(2);
    other.leave();
    expect(rings.bytes).toBe(65_536);
    expect(rings.join("a").record().events).toEqual([]);
  });

  it("is the same for each of 1,000, and not more than there is; frames move along", async () => {
    const rings = new FrameRings({ sourceBytes: 65_536, totalBytes: 16 << 20 });
    const first = rings.join("first");
    const trace = first.wire?.opening(PEER);
    for (let i = 0; i < 400; i++) trace?.data("out", Buffer.alloc(100, i));
    expect(first.record().events.length).toBeGreaterThan(300);
    const others = Array.from({ length: 999 }, (_, i) => rings.join(`${i}`));
    await turns(2000);
    expect(rings.bytes).toBeLessThanOrEqual(16 << 20);
    expect(new Set([first, ...others].map(({ bytes }) => bytes))).toEqual(new Set([16_384]));
    trace?.data("in", Buffer.from("after"));
    const { events } = first.record();
    expect(events.length).toBeGreaterThan(50);
    expect(Buffer.from(events.at(-1)?.bytes ?? []).toString()).toBe("after");
    expect(events.at(-2)?.bytes[0]).toBe(399 % 256);
  });

  it("is of its final size from the start where so many are expected, and of more where fewer come", async () => {
    const made: number[] = [];
    const rings = new FrameRings({ sourceBytes: 65_536, totalBytes: 1 << 20 });
    const join = (name: string) => {
      const member = rings.join(name);
      made.push(member.bytes);
      return member;
    };
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    rings.expect(64);
    const members = Array.from({ length: 20 }, (_, i) => join(`${i}`));
    members[0]?.wire?.opening(PEER).opened();
    await turns(100);
    expect(new Set(made)).toEqual(new Set([16_384]));
    expect(new Set(members.map(({ bytes }) => bytes))).toEqual(new Set([16_384]));
    await vi.advanceTimersByTimeAsync(59_000);
    expect(new Set(members.map(({ bytes }) => bytes))).toEqual(new Set([16_384]));
    await vi.advanceTimersByTimeAsync(1000);
    await turns(100);
    expect(new Set(members.map(({ bytes }) => bytes))).toEqual(new Set([32_768]));
    expect(members[0]?.record().events).toHaveLength(2);
  });

  it("is of its final size from the start where sources join in rounds", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const rings = new FrameRings({ sourceBytes: 65_536, totalBytes: 16 << 20 });
    const bytes = new Set<number>();
    const members = [];
    for (const round of [479, 521]) {
      rings.expect(1000);
      for (let i = 0; i < round; i++) members.push(rings.join(`${members.length}`));
      await turns(1000);
      await vi.advanceTimersByTimeAsync(30_000);
      for (const member of members) bytes.add(member.bytes);
    }
    expect(bytes).toEqual(new Set([16_384]));
  });

  it("is there also where more are expected than there is memory for, since sources may share connections", () => {
    const rings = new FrameRings({ sourceBytes: 65_536, totalBytes: 1 << 20 });
    rings.expect(5000);
    expect(rings.join("a").bytes).toBe(4096);
  });

  it("has none left for connections beyond", () => {
    const rings = new FrameRings({ sourceBytes: 65_536, totalBytes: 1 << 20 });
    const members = Array.from({ length: 300 }, (_, i) => rings.join(`${i}`));
    expect(members.filter(({ wire }) => wire).length).toBe(256);
    expect(members.at(-1)?.record()).toMatchObject({ events: [] });
    expect(members.at(-1)?.bytes).toBe(0);
  });

  it("that another thread writes moves with its next connection", async () => {
    const rings = new FrameRings({ sourceBytes: 65_536, totalBytes: 1 << 20 });
    const first = rings.join("first");
    const elsewhere = first.wire?.memory?.();
    if (!elsewhere) throw new Error("no memory");
    new Ring(elsewhere).opening(PEER).opened();
    for (let i = 0; i < 31; i++) rings.join(`${i}`);
    await turns(100);
    expect(first.bytes).toBe(65_536);
    expect(first.record().events).toHaveLength(2);
    expect(first.wire?.memory?.().byteLength).toBe(32_768);
    expect(first.record().events).toHaveLength(2);
  });
});
