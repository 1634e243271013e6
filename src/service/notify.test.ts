import { openSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { silentLog } from "../model/context.ts";
import { createNotifier, startNotifying, watchdogPeriodMs } from "./notify.ts";

const undo: (() => void)[] = [];
afterEach(() => {
  for (const step of undo.splice(0)) step();
});

describe("createNotifier", () => {
  it("is absent where no service manager asked to be told", () => expect(createNotifier({ NOTIFY_FD: "0" }, silentLog)).toBeUndefined());

  it.each([undefined, "", "x", "99999", "-1", String(openSync("/dev/null", "w"))])("takes %s for no socket", (fd) => {
    const errors: string[] = [];
    const env = { NOTIFY_SOCKET: "/run/systemd/notify", NOTIFY_FD: fd };
    expect(createNotifier(env, { ...silentLog, error: (_, text) => errors.push(text) })).toBeUndefined();
    expect(errors).toHaveLength(1);
  });
});

describe("startNotifying", () => {
  const collect = (progressing: () => boolean, summary = () => "reading 1 of 1 data sources; 1 sink") => {
    const sent: string[] = [];
    const stop = new AbortController();
    undo.push(() => stop.abort());
    const env = { WATCHDOG_USEC: "80000", WATCHDOG_PID: "42" };
    startNotifying({
      notifier: { send: (...words) => void sent.push(words.join("\n")) },
      env,
      pid: 42,
      summary,
      progressing,
      signal: stop.signal,
    });
    return { sent, stop };
  };

  it("says ready, feeds the watchdog, and says when it stops", async () => {
    const { sent, stop } = collect(() => true);
    expect(sent).toEqual(["READY=1\nSTATUS=reading 1 of 1 data sources; 1 sink\nWATCHDOG=1"]);
    await expect.poll(() => sent.filter((text) => text === "WATCHDOG=1").length).toBeGreaterThan(2);
    stop.abort();
    const count = sent.length;
    expect(sent.at(-1)).toMatch(/^STOPPING=1\n/);
    await new Promise((done) => setTimeout(done, 60));
    expect(sent).toHaveLength(count);
  });

  it("starves the watchdog while there is no progress, and still tells the status", async () => {
    let n = 0;
    let moving = false;
    const { sent } = collect(
      () => moving,
      () => `reading ${n++} of 9`,
    );
    await expect.poll(() => sent.length).toBeGreaterThan(4);
    expect(sent.slice(1).every((text) => /^STATUS=reading \d+ of 9$/.test(text))).toBe(true);
    moving = true;
    await expect.poll(() => sent.at(-1)).toMatch(/WATCHDOG=1/);
  });

  it("feeds nothing while the event loop is blocked", async () => {
    const { sent } = collect(() => true);
    const before = sent.length;
    const until = performance.now() + 200;
    while (performance.now() < until);
    expect(sent).toHaveLength(before);
    await expect.poll(() => sent.length).toBeGreaterThan(before);
  });
});

describe("watchdogPeriodMs", () => {
  it.each([
    [{}, undefined],
    [{ WATCHDOG_USEC: "30000000" }, 30_000],
    [{ WATCHDOG_USEC: "30000000", WATCHDOG_PID: "7" }, 30_000],
    [{ WATCHDOG_USEC: "30000000", WATCHDOG_PID: "8" }, undefined],
    [{ WATCHDOG_USEC: "0" }, undefined],
    [{ WATCHDOG_USEC: "soon" }, undefined],
  ])("takes %o for %s ms", (env, expected) => expect(watchdogPeriodMs(env, 7)).toBe(expected));
});
