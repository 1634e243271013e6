import { getEventListeners } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import type { DriverContext, Point, Request } from "../../../drivers/driver.ts";
import { SEEN } from "../../../test/support/session/driver.ts";
import type { Log } from "../../model/context.ts";
import { ReasonError } from "../../model/reason.ts";
import { textsOf } from "../../model/testing/warnings.ts";
import { SessionHost, type SessionHostOptions } from "./host.ts";
import { remoteDrivers } from "./remote-drivers.ts";

const MARGIN = { timeout: 10_000 };
const TIMEOUTS = { nameMs: 1000, connectMs: 1000, answerMs: 1000 };

interface Line {
  readonly level: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}
function recording(): { readonly lines: Line[]; readonly log: Log } {
  const lines: Line[] = [];
  const at = (level: string) => (fields: object, message: string) => void lines.push({ level, fields: { ...fields }, message });
  return { lines, log: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") } };
}

let running: SessionHost | undefined;
afterEach(() => running?.stop(3000));

function start(options: Partial<SessionHostOptions> = {}) {
  const own = recording();
  let starts = 0;
  const sessions = new SessionHost({
    get entry() {
      starts++;
      return new URL("../../../test/support/session/worker.ts", import.meta.url);
    },
    workerData: {},
    log: own.log,
    ...options,
  });
  running = sessions;
  const seen = new SharedArrayBuffer(64);
  return {
    sessions,
    lines: own.lines,
    starts: () => starts,
    seen: (what: keyof typeof SEEN) => Atomics.load(new Int32Array(seen), SEEN[what]),
    open: (does = "", ctx: Partial<DriverContext> = {}) =>
      sessions.connect("far", { details: { does, seen }, settings: {}, secrets: {} }, context(ctx)),
  };
}

const context = (given: Partial<DriverContext> = {}): DriverContext => ({
  signal: new AbortController().signal,
  log: recording().log,
  timeouts: TIMEOUTS,
  ...given,
});
const asking = (...addresses: string[]): Request => ({
  points: addresses.map((address, index): Point => ({ index, address, type: { scalar: "float64" } })),
});

describe("the session worker", () => {
  it("reads as the driver does, and knows a request again", async () => {
    const { open, seen } = start();
    const session = await open();
    expect(session.limits).toEqual({ maxPoints: 1000, maxBytes: 1e6, inFlight: 2 });
    const request = asking("a", "bad", "big");
    const expected = [
      { quality: "good", value: 0, sourceTime: 1_700_000_000_000 },
      { quality: "bad", fault: "not_found", detail: "BadNodeIdUnknown" },
      { quality: "good", value: 2n ** 63n - 1n, type: { scalar: "int64" } },
    ];
    for (let i = 0; i < 3; i++) expect(await session.read(request, context())).toEqual(expected);
    expect(seen("sameRequests")).toBe(2);
    expect(session.alive()).toBe(true);
    await session.close();
    expect(session.alive()).toBe(false);
    expect(seen("closes")).toBe(1);
    await expect(session.read(request, context())).rejects.toMatchObject({ reason: { type: "CONNECTION_CLOSED" } });
  });

  it("has the driver's errors cross as what they are", async () => {
    const { open } = start();
    await expect(open("refuses")).rejects.toMatchObject({
      name: "ReasonError",
      reason: { type: "OPC_UA_ERROR_RESPONSE", code: 0x80560000, reason: "full" },
      message: "the server has too many sessions",
      retryAfterMs: 7000,
      cause: { message: "outer", cause: { message: "inner" } },
    });
    const session = await open();
    await expect(session.read(asking("request refused"), context())).rejects.toMatchObject({
      name: "FaultError",
      fault: "device_error",
      scope: "busy",
      message: "BadTooManyOperations",
    });
    expect(session.alive()).toBe(true);
  });

  it("loads what a driver stands on before it connects, once in each life of the thread", async () => {
    const { open, sessions } = start();
    const { signal } = new AbortController();
    await expect(open("is loaded")).rejects.toThrow("it is not loaded");
    const [first, beside] = [sessions.load("far", signal), sessions.load("far", signal)];
    await Promise.all([first, beside]);
    expect(sessions.load("far", signal)).toBeUndefined();
    const session = await open("is loaded");
    await expect(session.read(asking("end"), context())).rejects.toThrow("died");
    const again = sessions.load("far", signal);
    expect(again).toBeInstanceOf(Promise);
    await again;
    await (await open("is loaded")).close();
    await expect(sessions.load("near", signal)).rejects.toMatchObject({ condition: "type_not_supported" });
  });

  it("aborts what is under way, with the reason", async () => {
    const { open, seen } = start();
    const session = await open();
    const stop = new AbortController();
    const reading = session.read(asking("never"), context({ signal: stop.signal }));
    const connecting = open("waits", { signal: stop.signal });
    stop.abort(new ReasonError("TIMEOUT", "the readout's deadline has passed"));
    const late = { reason: { type: "TIMEOUT" }, message: "the readout's deadline has passed" };
    await expect(reading).rejects.toMatchObject(late);
    await expect(connecting).rejects.toMatchObject(late);
    expect(seen("aborts")).toBe(2);
    await expect(
      session.read(asking("never"), context({ signal: AbortSignal.abort(new ReasonError("TIMEOUT", "before")) })),
    ).rejects.toThrow("before");
  });

  it("fails a call that does not end in time after its abort, and closes a session that comes too late", async () => {
    const { open, seen } = start({ abortGraceMs: 50 });
    const first = await open();
    const gone = AbortSignal.abort(new ReasonError("TIMEOUT", "over"));
    await expect(first.read(asking("deaf"), context({ signal: gone }))).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
    await expect(open("comes late", { signal: gone })).rejects.toThrow("did not end the call in time");
    await expect.poll(() => seen("connects"), MARGIN).toBe(2);
    await expect.poll(() => seen("closes"), MARGIN).toBe(1);
    expect(await first.read(asking("a"), context())).toHaveLength(1);
  });

  it("looks names up on this side, and hands errors of that over", async () => {
    const { open } = start();
    const { lines, log } = recording();
    const reached: string[] = [];
    await open("looks up", {
      log,
      resolve: async (host) => (host === "press.example" ? ["10.1.2.3", "10.1.2.4"] : []).map((address) => ({ address, family: 4 })),
      connected: (host, address) => void reached.push(`${host} ${address}`),
    });
    expect(lines).toEqual([{ level: "info", fields: { found: "10.1.2.3 10.1.2.4" }, message: "looked up" }]);
    expect(reached).toEqual(["press.example 10.1.2.4"]);
    const fails = async () => {
      throw Object.assign(new Error("queryA ENOTFOUND"), { code: "ENOTFOUND", syscall: "queryA" });
    };
    await expect(open("looks up", { resolve: fails })).rejects.toMatchObject({ reason: { type: "LOOKUP_ERROR" } });
    const forbidden = async () => {
      throw new ReasonError("UNKNOWN", "not there", { condition: "forbidden_by_policy" });
    };
    await expect(open("looks up", { resolve: forbidden })).rejects.toMatchObject({
      condition: "forbidden_by_policy",
      message: "not there",
    });
  });

  it("brings lines to the log of the call, so many and no more", async () => {
    const { open, lines: own } = start();
    const session = await open();
    const { lines, log } = recording();
    await session.read(asking("say"), context({ log }));
    expect(lines).toHaveLength(100);
    expect(lines[3]).toMatchObject({ level: "debug", fields: { err: { message: "said" }, i: 3 }, message: "a line" });
    await new Promise((done) => setTimeout(done, 1100));
    await session.read(asking("say"), context({ log }));
    expect(own).toContainEqual({
      level: "warn",
      fields: { level: "debug", dropped: 900 },
      message: "log lines of the session worker were left out",
    });
  });

  it("reports that the device has ended a session", async () => {
    const { open } = start();
    const session = await open("goes");
    expect(session.alive()).toBe(true);
    await expect.poll(() => session.alive(), MARGIN).toBe(false);
    await session.close();
  });

  it("brings the warnings of a session, also later ones", async () => {
    const { open } = start();
    const session = await open("warns");
    expect(textsOf(session.warnings?.())).toEqual(["as it is"]);
    await expect.poll(() => textsOf(session.warnings?.()), MARGIN).toEqual(["as it is", "and more"]);
  });

  it("fails everything when the thread dies, and is there again for the next connect", async () => {
    const { open } = start();
    const [one, two] = [await open(), await open()];
    const waiting = one.read(asking("never"), context());
    await expect(two.read(asking("end"), context())).rejects.toMatchObject({ reason: { type: "UNKNOWN" }, condition: "internal_error" });
    await expect(waiting).rejects.toMatchObject({ condition: "internal_error" });
    expect([one.alive(), two.alive()]).toEqual([false, false]);
    const began = performance.now();
    await one.close();
    const again = await open();
    await two.close();
    expect(performance.now() - began).toBeLessThan(3000);
    expect(await again.read(asking("a"), context())).toHaveLength(1);
  });

  it("ends a thread that hangs", async () => {
    const { open, lines } = start({ heartbeatMs: 300 });
    const session = await open();
    await expect(session.read(asking("spin"), context())).rejects.toMatchObject({ condition: "internal_error" });
    expect(lines.map(({ message }) => message)).toContain("session worker hangs: restarting it");
    // On a machine with other work the next one, too, may be silent for three heartbeats while it starts.
    await expect.poll(() => open().then((next) => next.read(asking("a"), context())), MARGIN).toHaveLength(1);
  }, 20_000);

  it("keeps the sessions when a library throws aside, but not in a storm", async () => {
    const { open, lines } = start();
    const session = await open();
    await open("throws aside");
    await expect.poll(() => lines.length, MARGIN).toBe(1);
    expect(lines[0]).toMatchObject({ level: "error", fields: { condition: "internal_error", detail: "thrown in a socket's handler" } });
    expect(await session.read(asking("a"), context())).toHaveLength(1);
    await open("storms");
    await expect.poll(() => session.alive(), MARGIN).toBe(false);
    expect(lines.filter(({ message }) => message.startsWith("uncaught error"))).toHaveLength(11);
  });

  it("leaves nothing behind after 500 sessions", async () => {
    const { open, seen } = start();
    const stop = new AbortController();
    const request = asking("a");
    for (let i = 0; i < 500; i++) {
      const session = await open(i % 5 === 0 ? "refuses" : "", { signal: stop.signal }).catch(() => undefined);
      await session?.read(request, context({ signal: stop.signal }));
      await session?.close();
    }
    expect(getEventListeners(stop.signal, "abort")).toEqual([]);
    expect([seen("connects"), seen("closes")]).toEqual([400, 400]);
  });

  it("says what cannot cross", async () => {
    const { sessions } = start();
    const input = { details: { helper: () => 1 }, settings: {}, secrets: {} };
    await expect(sessions.connect("far", input, context())).rejects.toMatchObject({ condition: "internal_error" });
    await expect(sessions.connect("far", { details: {}, settings: {}, secrets: {} }, context())).rejects.toThrow(ReasonError);
  });

  it("closes what is open on stop, also in the middle of a read", async () => {
    const { open, seen, sessions } = start();
    const session = await open();
    const reading = session.read(asking("never"), context()).catch((error: unknown) => error);
    await open();
    const began = performance.now();
    await sessions.stop(5000);
    expect(performance.now() - began).toBeLessThan(3000);
    expect(seen("closes")).toBe(2);
    expect(await reading).toMatchObject({ name: "ReasonError" });
    await expect(open()).rejects.toMatchObject({ condition: "internal_error" });
  });
});

describe("remoteDrivers", () => {
  it("moves the drivers that ask for it and starts nothing before they connect", async () => {
    const { sessions, seen, starts } = start();
    const registry = remoteDrivers(
      {
        far: { inWorker: true, driver: () => import("../../../test/support/session/driver.ts") },
        near: { driver: () => import("../../../test/support/session/driver.ts") },
      },
      sessions,
    );
    const { default: original } = await import("../../../test/support/session/driver.ts");
    expect((await registry["near"]?.driver())?.default).toBe(original);
    const far = (await registry["far"]?.driver())?.default;
    expect(await registry["far"]?.driver()).toEqual({ default: far });
    expect(far?.plan([], { maxPoints: 1, maxBytes: 1, inFlight: 1 })).toEqual([]);
    expect(starts()).toBe(0);
    const session = await far?.connect({ details: { does: "", seen: new SharedArrayBuffer(64) }, settings: {}, secrets: {} }, context());
    expect(starts()).toBe(1);
    expect(session?.alive()).toBe(true);
    expect(seen("connects")).toBe(0);
  });
});
