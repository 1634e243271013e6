import { describe, expect, it } from "vitest";
import { createProgress, type ProgressReport } from "./progress.ts";

const MINUTE = 60_000;
const EPOCH = Date.parse("2026-11-20T09:00:00Z");
const source = (uuid: string, readouts: number, intervalMs = 1000, variables = 1, retryAt?: number): ProgressReport => ({
  uuid,
  interval_ms: intervalMs,
  next_retry_at: retryAt === undefined ? null : new Date(retryAt).toISOString(),
  counters: { readouts },
  layout: { variables: Array.from({ length: variables }) },
});

/** A clock, and rounds that go on by themselves unless told otherwise. */
function setup() {
  let now = 1000;
  const progress = createProgress({ monotonicMs: () => now, epochMs: () => EPOCH + now }, 2000);
  return {
    ok: (...sources: ProgressReport[]) => progress.ok(sources),
    pass(ms: number, rounds = true) {
      now += ms;
      if (rounds) progress.reconciled();
    },
  };
}

describe("createProgress", () => {
  it("is content without sources for as long as the rounds go on", () => {
    const { ok, pass } = setup();
    for (let i = 0; i < 10; i++) {
      pass(10 * MINUTE);
      expect(ok()).toBe(true);
    }
    pass(10 * MINUTE, false);
    expect(ok()).toBe(false);
  });

  it("is content while readouts go on, and not when they have all stopped", () => {
    const { ok, pass } = setup();
    expect(ok(source("a", 0), source("b", 0))).toBe(true);
    pass(MINUTE);
    expect(ok(source("a", 5), source("b", 0))).toBe(true);
    pass(MINUTE);
    expect(ok(source("a", 9), source("b", 0))).toBe(true);
    pass(2 * MINUTE);
    expect(ok(source("a", 9), source("b", 0))).toBe(false);
    pass(1);
    expect(ok(source("a", 10), source("b", 0))).toBe(true);
  });

  it("waits as long as a device has asked for, and no longer than usual after that", () => {
    const { ok, pass } = setup();
    const paused = source("a", 1, 1000, 1, EPOCH + 30 * MINUTE);
    for (let i = 0; i < 29; i++) {
      expect(ok(paused)).toBe(true);
      pass(MINUTE);
    }
    expect(ok(paused)).toBe(true);
    pass(2 * MINUTE);
    expect(ok(paused)).toBe(false);
  });

  it("leaves one source that hangs beside one that is read to itself", () => {
    const { ok, pass } = setup();
    for (let i = 0; i < 20; i++) {
      expect(ok(source("hangs", 3), source("read", i))).toBe(true);
      pass(MINUTE);
    }
  });

  it("waits as long as the interval asks for", () => {
    const { ok, pass } = setup();
    const hourly = source("a", 1, 60 * MINUTE);
    expect(ok(hourly)).toBe(true);
    pass(119 * MINUTE);
    expect(ok(hourly)).toBe(true);
    pass(3 * MINUTE);
    expect(ok(hourly)).toBe(false);
  });

  it("expects nothing of sources that have nothing to read", () => {
    const { ok, pass } = setup();
    const idle = [source("empty", 0, 1000, 0), { ...source("parked", 0), interval_ms: 0 }, { ...source("unknown", 0), layout: null }];
    expect(ok(...idle)).toBe(true);
    pass(60 * MINUTE);
    expect(ok(...idle)).toBe(true);
  });
});
