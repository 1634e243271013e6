import { afterEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { MAX_WORDS } from "../src/model/bounded-failure.ts";
import { silentLog } from "../src/model/context.ts";
import { FaultError } from "../src/model/fault.ts";
import { ReasonError } from "../src/model/reason.ts";
import { textsOf } from "../src/model/testing/warnings.ts";
import { type Warning, warning } from "../src/model/warning.ts";
import {
  type AnySession,
  type DriverContext,
  defineDriver,
  type Limits,
  type Point,
  type Prepared,
  type Request,
  type Session,
} from "./driver.ts";

const limits: Limits = { maxPoints: 1, maxBytes: 1, inFlight: 1 };
const ctx: DriverContext = {
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: 1, connectMs: 1, answerMs: 1 },
};
const mistake = () => {
  throw new TypeError("a mistake in the driver");
};

/** A driver with this session, or one that connects with this error. */
function connecting(session: Partial<Session<string>> | Error): Promise<AnySession> {
  const fallback: Session<string> = { limits, read: async () => [], alive: () => true, close: async () => {} };
  const whole = session instanceof Error ? fallback : Object.assign(session, { ...fallback, ...session });
  return defineDriver<object, object, string, Request<string>, Limits>({
    type: "made",
    title: "made for the test",
    details: z.object({}),
    settings: z.object({}),
    maxConnections: 1,
    endpoint: () => ({ host: "127.0.0.1", port: 1, transport: "tcp" }),
    keepsConnection: () => true,
    parseAddress: (text) => ({ address: text, type: { scalar: "bool" } }),
    plan: () => [],
    connect: async () => {
      if (session instanceof Error) throw session;
      return whole;
    },
    reasonOf: (error) => (error instanceof RangeError ? { type: "HOST_DOWN" } : undefined),
  }).connect({ details: {}, settings: {}, secrets: {} }, ctx);
}

afterEach(() => void vi.useRealTimers());

describe("what comes out of defineDriver", () => {
  it.each([
    [new RangeError("a library's own"), { reason: { type: "HOST_DOWN" }, message: "a library's own" }],
    [new FaultError("not_found", "no answer to connecting"), { reason: { type: "UNKNOWN" }, condition: "protocol_violation" }],
    [new TypeError("x"), { reason: { type: "UNKNOWN" }, condition: "internal_error" }],
  ])("has %s at connecting as a ReasonError", async (error, expected) => {
    const thrown = await connecting(error).catch((one: unknown) => one);
    expect(thrown).toBeInstanceOf(ReasonError);
    expect(thrown).toMatchObject(expected);
  });

  it("has what a read throws as a FaultError or a ReasonError, also where it throws before it waits", async () => {
    const reading = (read: () => never) => connecting({ read }).then((session) => session.read({ points: [] }, ctx));
    await expect(reading(mistake)).rejects.toMatchObject({ name: "FaultError", fault: "collector_error" });
    const refusal = new FaultError("device_error", "refused");
    await expect(
      reading(() => {
        throw refusal;
      }),
    ).rejects.toBe(refusal);
  });

  it("is not alive, warns of nothing and closes where the driver throws", async () => {
    const session = await connecting({ alive: mistake, warnings: mistake, close: mistake });
    expect(session.alive()).toBe(false);
    expect(session.warnings?.()).toEqual([]);
    expect(await session.close()).toBeUndefined();
    const rejecting = await connecting({ close: () => Promise.reject(new Error("cannot")) });
    expect(await rejecting.close()).toBeUndefined();
  });

  it.each(["prepare", "discover"] as const)("has what %s throws by the driver's names, as a FaultError or a ReasonError", async (what) => {
    const thrownBy = async (error: Error): Promise<unknown> => {
      // biome-ignore lint/correctness/useYield: it fails before there is anything.
      const failing = async function* (): AsyncGenerator<never> {
        throw error;
      };
      const session = await connecting({ [what]: failing });
      const found = what === "prepare" ? session.prepare?.([], ctx) : session.discover?.(ctx);
      return found?.[Symbol.asyncIterator]()
        .next()
        .catch((one: unknown) => one);
    };
    const named = await thrownBy(new RangeError("a library's own"));
    expect(named).toBeInstanceOf(ReasonError);
    expect(named).toMatchObject({ reason: { type: "HOST_DOWN" }, message: "a library's own" });
    const mistaken = what === "prepare" ? { fault: "collector_error" } : { name: "ReasonError", condition: "internal_error" };
    expect(await thrownBy(new TypeError("a mistake"))).toMatchObject(mistaken);
    const refusal = new FaultError("device_error", "refused");
    expect(await thrownBy(refusal)).toBe(refusal);
  });

  describe("where a device or a driver says more than anybody reads", () => {
    const long = "no end ".repeat(700_000);
    const cut = long.slice(0, MAX_WORDS);

    it("has failures and refusals with so many words and no more", async () => {
      expect(await connecting(new RangeError(long)).catch((one: unknown) => one)).toMatchObject({ message: cut });
      const throwing = (error: Error) => () => {
        throw error;
      };
      const refused = await connecting({ read: throwing(new FaultError("not_found", long)) });
      await expect(refused.read({ points: [] }, ctx)).rejects.toMatchObject({ fault: "not_found", message: cut });
      const rejecting = await connecting({ read: async () => throwing(new RangeError(long))() });
      await expect(rejecting.read({ points: [] }, ctx)).rejects.toMatchObject({ reason: { type: "HOST_DOWN" }, message: cut });
    });

    it("has what is prepared the same way, and the batch itself where it has an end", async () => {
      const point: Point<string> = { index: 0, address: "a", type: { scalar: "bool" } };
      const good: Prepared<string>[] = [
        { point, address: "a", type: point.type },
        { point, refusal: new FaultError("not_found", "no such symbol") },
      ];
      const session = await connecting({
        async *prepare() {
          yield good;
          yield [{ point, refusal: new FaultError("access_denied", long), retryAfterMs: 7 }, ...good];
          throw new FaultError("stale", long, { scope: "program" });
        },
      });
      const batches = session.prepare?.([], ctx)[Symbol.asyncIterator]();
      expect((await batches?.next())?.value).toBe(good);
      const second = (await batches?.next())?.value;
      expect(second).toEqual([
        { point, refusal: expect.objectContaining({ fault: "access_denied", message: cut }), retryAfterMs: 7 },
        ...good,
      ]);
      await expect(batches?.next()).rejects.toMatchObject({ scope: "program", message: cut });
    });

    it("warns of the first 20, of each with so many words", async () => {
      const warnings = Array.from({ length: 100_000 }, (_, i) => warning("device_limited", `${i} ${i === 3 ? long : ""}`));
      const found = (await connecting({ warnings: () => warnings })).warnings?.();
      expect(textsOf(found)).toEqual(textsOf(warnings.slice(0, 20)).map((text) => text.slice(0, MAX_WORDS)));
      expect((await connecting({ warnings: () => long as unknown as Warning[] })).warnings?.()).toEqual([]);
    });
  });

  it("has the session's limits and epoch as they are, also where they change while it is open", async () => {
    const given = { limits, epoch: "program 1" };
    const session = await connecting(given);
    Object.assign(given, { limits: { ...limits, maxPoints: 5 }, epoch: "program 2" });
    expect([session.limits.maxPoints, session.epoch]).toEqual([5, "program 2"]);
    expect((await connecting({})).epoch).toBeUndefined();
  });

  it("closes within ten seconds, and leaves no timer behind where it takes less", async () => {
    vi.useFakeTimers();
    const hangs = await connecting({ close: () => new Promise(() => {}) });
    let isClosed = false;
    const closing = hangs.close().then(() => {
      isClosed = true;
    });
    await vi.advanceTimersByTimeAsync(9_900);
    expect(isClosed).toBe(false);
    await vi.advanceTimersByTimeAsync(100);
    await closing;
    expect(isClosed).toBe(true);
    await (await connecting({})).close();
    expect(vi.getTimerCount()).toBe(0);
  });
});
