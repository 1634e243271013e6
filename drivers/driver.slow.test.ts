import { afterEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { silentLog } from "../src/model/context.ts";
import { FaultError } from "../src/model/fault.ts";
import { ReasonError } from "../src/model/reason.ts";
import { type AnySession, type DriverContext, defineDriver, type Limits, type Request, type Session } from "./driver.ts";

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
    await expect(reading(mistake)).rejects.toMatchObject({ name: "ReasonError", condition: "internal_error" });
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
