import net from "node:net";
import path from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { loadProfile } from "../../src/configuration/profile-file.ts";
import { codesOf, textsOf } from "../../src/model/testing/warnings.ts";
import { driverContext } from "../../test/support/driver-context.ts";
import { freePort } from "../../test/support/free-port.ts";
import type { AnySession, DriverContext } from "../driver.ts";
import plastcontrol from "../plastcontrol/driver.ts";

const PROFILE = loadProfile(path.resolve(import.meta.dirname, "../plastcontrol/passive-profile.yaml"));
const details = (host = "127.0.0.1") => ({ type: "plastcontrol", host, port: 4001, readout_mode: { type: "passive" } });

const open: { destroy(): void }[] = [];
const sessions: AnySession[] = [];
afterEach(async () => {
  for (const socket of open.splice(0)) socket.destroy();
  await Promise.all(sessions.splice(0).map((session) => session.close()));
});

/** A controller that connects and sends. */
async function controller(port: number, localAddress = "127.0.0.1"): Promise<net.Socket> {
  const socket = net.connect({ host: "127.0.0.1", port, localAddress });
  open.push(socket);
  socket.on("error", () => {});
  // A stranger may be refused before it knows that it was connected.
  await new Promise((ready) => socket.once("connect", ready).once("close", ready));
  return socket;
}

const settingsAt = (port: number, more: object = {}) =>
  plastcontrol.settings.parse({ profile: PROFILE, listen: `127.0.0.1:${port}`, ...more });

async function connect(settings: unknown, ctx: DriverContext = driverContext(), host?: string): Promise<AnySession> {
  const session = await plastcontrol.connect({ details: details(host), settings, secrets: {} }, ctx);
  sessions.push(session);
  return session;
}

async function shot(session: AnySession, ctx = driverContext()) {
  const settings = settingsAt(1);
  const points = ["shot", "cushion"].map((text, index) => ({ index, ...plastcontrol.parseAddress(text, undefined, settings) }));
  const [request] = plastcontrol.plan(points, session.limits);
  if (!request) throw new Error("nothing is planned");
  return (await session.read(request, ctx)).map((reading) => (reading.quality === "bad" ? reading.fault : reading.value));
}

describe("a controller that connects and sends", () => {
  test("is read by what it sent last, and by the next where nothing has come", async () => {
    const port = await freePort();
    const opening = connect(settingsAt(port));
    const socket = await controllerOnceListening(port);
    const session = await opening;
    const first = shot(session);
    socket.write("HELLO\r\nSHOT 1;4.25;x\r\n");
    expect(await first).toEqual([1, 4.25]);
    expect(await shot(session)).toEqual([1, 4.25]);
    socket.write("SHOT 2;4.5\r\nSHOT 3;4.75\r\n");
    await expect.poll(() => shot(session)).toEqual([3, 4.75]);
    expect(codesOf(session.warnings?.())).toContain("frames_skipped");
    expect(textsOf(session.warnings?.())).toEqual(["1 frames that nothing in the profile fits came since connecting"]);
  });

  test("strangers are refused at once and counted; the controller goes on", async () => {
    const port = await freePort();
    const opening = connect(settingsAt(port));
    const socket = await controllerOnceListening(port);
    const session = await opening;
    const strangers = await Promise.all(Array.from({ length: 20 }, () => controller(port, "127.0.0.9")));
    for (const stranger of strangers) stranger.write("SHOT 666;6\r\n");
    await expect.poll(() => strangers.every(({ destroyed }) => destroyed)).toBe(true);
    socket.write("SHOT 5;1\r\n");
    expect(await shot(session)).toEqual([5, 1]);
    expect(codesOf(session.warnings?.())).toContain("stranger_refused");
    expect(textsOf(session.warnings?.())).toEqual([
      expect.stringMatching(/^20 connections to 127\.0\.0\.1:\d+ were refused, the last from 127\.0\.0\.9/),
    ]);
  });

  test("peers of the settings may connect beside the host", async () => {
    const port = await freePort();
    const opening = connect(settingsAt(port, { peers: ["127.0.0.8/29"] }));
    const socket = await controllerOnceListening(port, "127.0.0.9");
    const session = await opening;
    socket.write("SHOT 7;2\r\n");
    expect(await shot(session)).toEqual([7, 2]);
  });

  test("one that connects again takes the place of its old connection, and is found by the next session", async () => {
    const port = await freePort();
    const opening = connect(settingsAt(port));
    await controllerOnceListening(port);
    const session = await opening;
    const waiting = expect(shot(session)).rejects.toMatchObject({
      reason: { type: "CONNECTION_CLOSED" },
      message: expect.stringContaining("has connected again"),
    });
    const again = await controller(port);
    await waiting;
    expect(session.alive()).toBe(false);
    again.write("SHOT 8;3\r\n");
    await session.close();
    expect(await shot(await connect(settingsAt(port)))).toEqual([8, 3]);
  });

  test("two data sources share a port, each by the address of its controller", async () => {
    const port = await freePort();
    const openings = [connect(settingsAt(port)), connect(settingsAt(port), driverContext(), "127.0.0.9")];
    const one = await controllerOnceListening(port);
    const other = await controller(port, "127.0.0.9");
    const [first, second] = await Promise.all(openings);
    one.write("SHOT 1;1\r\n");
    other.write("SHOT 2;2\r\n");
    expect(first && (await shot(first))).toEqual([1, 1]);
    expect(second && (await shot(second))).toEqual([2, 2]);
  });

  test("nobody connects: TIMEOUT; the policy closes the place; another program has it", async () => {
    const port = await freePort();
    const soon = driverContext({ timeouts: { nameMs: 1000, connectMs: 30, answerMs: 30 } });
    await expect(connect(settingsAt(port), soon)).rejects.toMatchObject({
      reason: { type: "TIMEOUT" },
      message: `127.0.0.1 has not connected to 127.0.0.1:${port} within 30 ms`,
    });
    // It is listened at for a while, until the policy closes the place.
    const waiting = await controller(port);
    const closed = driverContext({ listenRefusal: (at) => `${at} is closed` });
    await expect(connect(settingsAt(port), closed)).rejects.toMatchObject({ condition: "forbidden_by_policy" });
    await expect.poll(() => waiting.destroyed).toBe(true);
    const taken = net.createServer();
    await new Promise<void>((ready) => taken.listen(0, "127.0.0.1", ready));
    const { port: takenPort } = taken.address() as net.AddressInfo;
    await expect(connect(settingsAt(takenPort))).rejects.toMatchObject({ condition: "collector_host_trouble" });
    await new Promise((done) => taken.close(done));
  });

  test("where it listens is a flow that comes in, the port of the data source unless the settings name another", () => {
    expect(plastcontrol.listensAt?.(details(), settingsAt(5001))).toBe("127.0.0.1:5001");
    expect(plastcontrol.listensAt?.(details(), plastcontrol.settings.parse({ profile: PROFILE }))).toBe("0.0.0.0:4001");
    expect(plastcontrol.problemOf?.(details(), settingsAt(5001))).toBeUndefined();
  });
});

/** The listener opens a moment after connecting begins. */
async function controllerOnceListening(port: number, localAddress = "127.0.0.1"): Promise<net.Socket> {
  for (;;) {
    const socket = net.connect({ host: "127.0.0.1", port, localAddress });
    open.push(socket);
    const isOpen = await new Promise((done) => socket.on("error", () => done(false)).once("connect", () => done(true)));
    if (isOpen) return socket;
  }
}
