import net from "node:net";
import path from "node:path";
import { setTimeout as later } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { loadProfile } from "../../src/configuration/profile-file.ts";
import { driverContext } from "../../test/support/driver-context.ts";
import { freePort } from "../../test/support/free-port.ts";
import type { AnySession } from "../driver.ts";
import plastcontrol from "../plastcontrol/driver.ts";

type Fields = Readonly<Record<string, unknown>>;

const PLAIN = loadProfile(path.resolve(import.meta.dirname, "../plastcontrol/passive-profile.yaml")) as Fields;
/** The controller of the example, which sends alarms too. */
const profileWith = (more: Fields = {}): Fields => ({
  ...PLAIN,
  requests: {
    shot: { reads: "nothing is sent", ok: { begins: "SHOT " } },
    alarm: { reads: "nothing is sent", ok: { begins: "ALARM " } },
  },
  variables: {
    shot: { request: "shot", field: { separator: ";", index: 1 }, type: "uint32" },
    alarm: { request: "alarm", field: { separator: ";", index: 1 }, type: "uint32" },
  },
  ...more,
});

const ANSWER_MS = 200;
const ctx = driverContext({ timeouts: { nameMs: 5000, connectMs: 500, answerMs: ANSWER_MS } });

const open: { destroy(): void }[] = [];
const sessions: AnySession[] = [];
afterEach(async () => {
  for (const socket of open.splice(0)) socket.destroy();
  await Promise.all(sessions.splice(0).map((session) => session.close()));
});

/** Connects to the collector once it listens. */
async function controller(port: number): Promise<net.Socket> {
  for (;;) {
    const socket = net.connect({ host: "127.0.0.1", port });
    open.push(socket);
    socket.on("end", () => socket.end());
    if (await new Promise((done) => socket.on("error", () => done(false)).once("connect", () => done(true)))) return socket;
    await later(5);
  }
}

const settingsAt = (port: number, profile: Fields, more: Fields = {}) =>
  plastcontrol.settings.parse({ profile, listen: `127.0.0.1:${port}`, ...more });

async function connect(settings: unknown): Promise<AnySession> {
  const details = { type: "plastcontrol", host: "127.0.0.1", port: 4001, readout_mode: { type: "passive" } };
  const session = await plastcontrol.connect({ details, settings, secrets: {} }, ctx);
  sessions.push(session);
  return session;
}

/** The value of a variable, or its fault. */
async function readValue(session: AnySession, settings: unknown, name: string): Promise<unknown> {
  const [request] = plastcontrol.plan([{ index: 0, ...plastcontrol.parseAddress(name, undefined, settings) }], session.limits);
  if (!request) throw new Error("nothing is planned");
  const [reading] = await session.read(request, ctx);
  return reading?.quality === "bad" ? reading.fault : reading?.value;
}

async function begin(profile: Fields = profileWith()) {
  const port = await freePort();
  const settings = settingsAt(port, profile);
  const opening = connect(settings);
  const socket = await controller(port);
  const session = await opening;
  const read = (name: string, over = session) => readValue(over, settings, name);
  return { port, settings, socket, session, read };
}

describe("a controller that sends seldom", () => {
  test("stays connected: without any message it is TIMEOUT, and its first is read by the next session", async () => {
    const { settings, socket, session, read } = await begin();
    const began = performance.now();
    await expect(read("shot")).rejects.toMatchObject({
      reason: { type: "TIMEOUT" },
      message: expect.stringMatching(/^127\.0\.0\.1 has sent nothing since it connected .* ago: request shot comes without a request$/),
    });
    expect(performance.now() - began).toBeLessThan(2 * ANSWER_MS);
    await session.close();
    const next = await connect(settings);
    socket.write("SHOT 1;x\r\n");
    await expect.poll(() => read("shot", next).catch(() => undefined)).toBe(1);
    expect(socket.readableEnded).toBe(false);
  });

  test("a message that comes seldom holds up none that comes often", async () => {
    const { socket, session, read } = await begin(profileWith({ stale_after: "1s" }));
    const shots = setInterval(() => socket.write("SHOT 2;x\r\n"), 50);
    await expect.poll(() => read("shot")).toBe(2);
    await later(ANSWER_MS);
    const faultOf = async () => {
      const began = performance.now();
      const fault = await read("alarm");
      expect(performance.now() - began).toBeLessThan(ANSWER_MS / 2);
      return fault;
    };
    expect(await faultOf()).toBe("no_answer");
    socket.write("ALARM 3;x\r\n");
    await expect.poll(faultOf).toBe(3);
    await expect.poll(faultOf, { timeout: 3000 }).toBe("stale");
    expect(await read("shot")).toBe(2);
    clearInterval(shots);
    expect(session.alive()).toBe(true);
    expect(socket.readableEnded).toBe(false);
  });

  test("what falls silent is TIMEOUT once all of it is stale, and stays connected", async () => {
    const { socket, session, read } = await begin(profileWith({ stale_after: "100ms" }));
    socket.write("SHOT 4;x\r\n");
    expect(await read("shot")).toBe(4);
    await later(150);
    await expect(read("shot")).rejects.toMatchObject({
      reason: { type: "TIMEOUT" },
      message: expect.stringMatching(/^127\.0\.0\.1 has sent nothing for \d+ ms/),
    });
    expect(session.alive()).toBe(true);
  });
});

describe("a controller that goes and comes back", () => {
  test("one that disconnects after each message is read until the last is stale", async () => {
    const { port, settings, socket, session, read } = await begin(profileWith({ stale_after: "1s" }));
    socket.end("SHOT 5;x\r\n");
    expect(await read("shot")).toBe(5);
    await expect.poll(() => session.alive()).toBe(false);
    await session.close();
    // It is away: what it sent counts, and nobody waits for it.
    const away = await connect(settings);
    expect(await read("shot", away)).toBe(5);
    for (let n = 6; n < 9; n++) {
      (await controller(port)).end(`SHOT ${n};x\r\n`);
      await expect.poll(() => read("shot", away)).toBe(n);
    }
    await expect.poll(() => away.alive(), { timeout: 3000 }).toBe(false);
    await away.close();
    await expect(connect(settings)).rejects.toMatchObject({
      reason: { type: "TIMEOUT" },
      message: expect.stringMatching(/has not connected to .* within 500 ms; its last connection ended: .* closed the connection$/),
    });
  });

  test("one that was away and has connected again gets a new session", async () => {
    const { port, settings, socket, session, read } = await begin();
    socket.end("SHOT 1;x\r\n");
    expect(await read("shot")).toBe(1);
    await session.close();
    await expect.poll(() => session.alive()).toBe(false);
    const away = await connect(settings);
    expect(away.alive()).toBe(true);
    const again = await controller(port);
    await expect.poll(() => away.alive()).toBe(false);
    await away.close();
    const next = await connect(settings);
    expect(await read("shot", next)).toBe(1);
    again.write("SHOT 2;x\r\n");
    await expect.poll(() => read("shot", next)).toBe(2);
  });

  test("half a message ends the connection by name; what came before it counts on", async () => {
    const { port, settings, socket, session, read } = await begin(profileWith({ between_bytes: "50ms" }));
    socket.write("SHO");
    await expect(read("shot")).rejects.toMatchObject({
      reason: { type: "TIMEOUT" },
      message: expect.stringContaining("stopped in the middle of a frame: 3 bytes"),
    });
    await session.close();
    const again = await controller(port);
    const next = await connect(settings);
    again.write("SHOT 9;x\r\nSHO");
    expect(await read("shot", next)).toBe(9);
    await expect.poll(() => next.alive()).toBe(false);
    expect(await read("shot", next)).toBe(9);
    await expect(read("alarm", next)).rejects.toMatchObject({ message: expect.stringContaining("stopped in the middle of a frame") });
  });
});

describe("another configuration of the same place", () => {
  test("a message that another profile took apart is not given", async () => {
    const { port, socket, session, read } = await begin();
    socket.write("SHOT 7;x\r\n");
    expect(await read("shot")).toBe(7);
    await session.close();
    const other = settingsAt(port, profileWith({ requests: OTHER_REQUESTS }));
    const opening = connect(other);
    await expect.poll(() => socket.readableEnded || socket.destroyed).toBe(true);
    const again = await controller(port);
    const next = await opening;
    again.write("SHOT 8;x\r\n");
    expect(await readValue(next, other, "alarm")).toBe(8);
  });

  test("with other peers, the one that nobody reads any more does not keep the controller", async () => {
    const { port, session } = await begin();
    await session.close();
    const other = settingsAt(port, profileWith(), { peers: ["127.0.0.8/29"] });
    const opening = connect(other);
    const again = await controller(port);
    const next = await opening;
    again.write("SHOT 8;x\r\n");
    expect(await readValue(next, other, "shot")).toBe(8);
  });
});

/** What was a shot is an alarm. */
const OTHER_REQUESTS = {
  shot: { reads: "nothing is sent", ok: { begins: "OTHER " } },
  alarm: { reads: "nothing is sent", ok: { begins: "SHOT " } },
};

describe("a device that sends by itself, and that the collector connects to", () => {
  test("is not connected to again before its messages would be stale; what is asked is read meanwhile", async () => {
    const profile = profileWith({
      role: "client",
      accepts: { readout_mode: ["active"] },
      stale_after: "1s",
      requests: {
        shot: { reads: "nothing is sent", ok: { begins: "SHOT " } },
        alarm: { reads: "the alarm", send: "A?", ok: { begins: "ALARM " } },
      },
    });
    const sockets: net.Socket[] = [];
    let isAnswering = true;
    const server = net.createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => {}).on("data", () => isAnswering && socket.write("ALARM 1;x\r\n"));
    });
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    const { port } = server.address() as net.AddressInfo;
    const settings = plastcontrol.settings.parse({ profile });
    const details = { type: "plastcontrol", host: "127.0.0.1", port, readout_mode: { type: "active" } };
    const session = await plastcontrol.connect({ details, settings, secrets: {} }, ctx);
    sessions.push(session);
    expect(await readValue(session, settings, "shot")).toBe("no_answer");
    expect(await readValue(session, settings, "alarm")).toBe(1);
    sockets[0]?.write("SHOT 5;x\r\n");
    await expect.poll(() => readValue(session, settings, "shot")).toBe(5);
    isAnswering = false;
    await later(1100);
    await expect(readValue(session, settings, "shot")).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
    for (const socket of sockets) socket.destroy();
    server.close();
  });
});
