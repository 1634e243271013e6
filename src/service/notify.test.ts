import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import koffi from "koffi";
import { afterEach, describe, expect, it } from "vitest";
import { silentLog } from "../model/context.ts";
import { createNotifier, socketAddress, startNotifying, watchdogPeriodMs } from "./notify.ts";

const libc = koffi.load("libc.so.6");
const socket = libc.func("int socket(int domain, int type, int protocol)");
const bind = libc.func("int bind(int fd, const void *address, uint32_t length)");
const recv = libc.func("intptr_t recv(int fd, _Out_ void *data, size_t length, int flags)");
const close = libc.func("int close(int fd)");
const MSG_DONTWAIT = 0x40;

const undo: (() => void)[] = [];
afterEach(() => {
  for (const step of undo.splice(0)) step();
});

/** A service manager's end: the datagrams that have come in since it was asked last. */
function manager(target: string): () => string[] {
  const fd = socket(1, 2, 0) as number;
  undo.push(() => close(fd));
  const address = socketAddress(target);
  expect(bind(fd, address, address.length)).toBe(0);
  return () => {
    const got: string[] = [];
    const buffer = Buffer.alloc(4096);
    for (let n = 1; n > 0; ) {
      n = Number(recv(fd, buffer, buffer.length, MSG_DONTWAIT));
      if (n > 0) got.push(buffer.toString("utf8", 0, n));
    }
    return got;
  };
}

function folder(): string {
  const dir = mkdtempSync(path.join(os.tmpdir(), "collector-notify-"));
  undo.push(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

describe("createNotifier", () => {
  it("is absent where no service manager asked to be told", () => expect(createNotifier({}, silentLog)).toBeUndefined());

  it.each([
    ["a path", () => path.join(folder(), "notify")],
    ["an abstract name", () => `@collector-${randomUUID()}`],
  ])("sends to %s", (_, target) => {
    const name = target();
    const received = manager(name);
    const notifier = createNotifier({ NOTIFY_SOCKET: name }, silentLog);
    notifier?.send("READY=1", "STATUS=reading\nWATCHDOG=trigger");
    expect(received()).toEqual(["READY=1\nSTATUS=reading WATCHDOG=trigger"]);
  });

  it("says once that nobody takes notifications, and goes on when somebody does", () => {
    const name = path.join(folder(), "notify");
    const warnings: string[] = [];
    const notifier = createNotifier({ NOTIFY_SOCKET: name }, { ...silentLog, warn: (_, text) => warnings.push(text) });
    notifier?.send("WATCHDOG=1");
    notifier?.send("WATCHDOG=1");
    expect(warnings).toHaveLength(1);
    const received = manager(name);
    notifier?.send("WATCHDOG=1");
    expect(received()).toEqual(["WATCHDOG=1"]);
  });

  it.each(["vsock:2:1234", "notify", `/${"x".repeat(120)}`])("says that %s cannot be used, and the service runs on", (target) => {
    const errors: string[] = [];
    expect(createNotifier({ NOTIFY_SOCKET: target }, { ...silentLog, error: (_, text) => errors.push(text) })).toBeUndefined();
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
