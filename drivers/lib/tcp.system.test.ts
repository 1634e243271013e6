import { getEventListeners } from "node:events";
import net, { type AddressInfo } from "node:net";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { createResolver, permittedResolve } from "../../src/lib/resolver.ts";
import { silentLog } from "../../src/model/context.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import { openTcp } from "./tcp.ts";

const open: { close(): unknown }[] = [];
afterEach(() => {
  for (const thing of open.splice(0)) thing.close();
});

/** Sockets that the server has taken, and its port. */
async function serve(onSocket: (socket: net.Socket) => void = () => {}, allowHalfOpen = false, host = "127.0.0.1") {
  const sockets: net.Socket[] = [];
  const server = net.createServer({ allowHalfOpen }, (socket) => {
    socket.on("error", () => {});
    sockets.push(socket);
    onSocket(socket);
  });
  await new Promise<void>((ready) => server.listen(0, host, ready));
  open.push({
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

/** A server whose thread stands still after listen(): nobody accepts. */
async function listenWithoutAccepting(host = "127.0.0.1", onPort = 0) {
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const source = `
    const { parentPort, workerData } = require("node:worker_threads");
    const server = require("node:net").createServer().listen({ port: ${onPort}, host: "${host}", backlog: 1 }, () => {
      parentPort.postMessage(server.address().port);
      setImmediate(() => Atomics.wait(workerData, 0, 0));
    });`;
  const worker = new Worker(source, { eval: true, workerData: gate });
  const port = await new Promise<number>((done, failed) => worker.once("message", done).once("error", failed));
  const stop = () => {
    Atomics.store(gate, 0, 1);
    Atomics.notify(gate, 0);
    return worker.terminate();
  };
  return { port, stop };
}

const context = (more: Partial<DriverContext> = {}): DriverContext => ({
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 5000 },
  ...more,
});
const connect = (port: number, ctx = context(), host = "127.0.0.1") => openTcp({ host, port, transport: "tcp" }, ctx);
const never = () => new Promise<never>(() => {});

describe("openTcp", () => {
  it("names a refused connection and keeps the kernel's error", async () => {
    const server = net.createServer();
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    const { port } = server.address() as AddressInfo;
    await new Promise((done) => server.close(done));
    await expect(connect(port)).rejects.toMatchObject({ reason: { type: "CONNECTION_REFUSED" }, cause: { code: "ECONNREFUSED" } });
  });

  it("gives up a look-up after its own time-out: LOOKUP_ERROR", async () => {
    const ctx = context({ resolve: never, timeouts: { nameMs: 20, connectMs: 5000, answerMs: 5000 } });
    await expect(connect(502, ctx, "plc")).rejects.toMatchObject({
      reason: { type: "LOOKUP_ERROR" },
      message: expect.stringMatching(/plc.*20 ms/),
    });
  });

  it("takes a failed look-up for LOOKUP_ERROR", async () => {
    const failed = Object.assign(new Error("getaddrinfo EAI_AGAIN plc"), { code: "EAI_AGAIN", syscall: "getaddrinfo", errno: -3001 });
    await expect(connect(502, context({ resolve: () => Promise.reject(failed) }), "plc")).rejects.toMatchObject({
      reason: { type: "LOOKUP_ERROR" },
      cause: failed,
    });
  });

  it("connects where the given look-up says, also for an address", async () => {
    const { port, sockets } = await serve();
    const connection = await connect(port, context({ resolve: async () => [{ address: "127.0.0.1", family: 4 }] }), "203.0.113.1");
    open.push(connection);
    await expect.poll(() => sockets.length).toBe(1);
    expect(connection.where).toBe(`203.0.113.1:${port}`);
  });

  it("gives up connecting after its time-out and says the phase", async () => {
    const { port, stop } = await listenWithoutAccepting();
    open.push({ close: stop });
    const ctx = context({ timeouts: { nameMs: 5000, connectMs: 200, answerMs: 5000 } });
    // The first few are taken into the kernel's backlog; once it is full, further SYNs get no answer.
    const attempts: Promise<unknown>[] = [];
    for (let i = 0; i < 6; i++)
      attempts.push(
        connect(port, ctx).then(
          (connection) => open.push(connection),
          (error: unknown) => error,
        ),
      );
    const errors = (await Promise.all(attempts)).filter((outcome) => outcome instanceof ReasonError);
    expect(errors.length).toBeGreaterThan(0);
    for (const error of errors)
      expect(error).toMatchObject({ reason: { type: "TIMEOUT" }, message: expect.stringMatching(/200 ms \(connecting\)/) });
  });

  it("stops with the signal, before and during, and leaves no listener on it", async () => {
    const { port } = await serve();
    await expect(connect(port, context({ signal: AbortSignal.abort() }))).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
    const stop = new AbortController();
    const work = connect(port, context({ signal: stop.signal, resolve: never }), "plc");
    stop.abort();
    await expect(work).rejects.toMatchObject({ reason: { type: "TIMEOUT" }, message: expect.stringContaining("looking up plc") });
    const { signal } = new AbortController();
    open.push(await connect(port, context({ signal })));
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it.each([0, -1, 65_536, 1.5])("refuses port %d as a matter of configuration", async (port) => {
    await expect(connect(port)).rejects.toMatchObject({
      condition: "configuration_invalid",
      message: expect.stringContaining(String(port)),
    });
  });
});

/** A port of a host of which SYNs get no answer. */
async function silence(host: string, port: number): Promise<void> {
  const { stop } = await listenWithoutAccepting(host, port);
  open.push({ close: stop });
  // The first few are taken into the kernel's backlog; once it is full, further SYNs get no answer.
  await Promise.all(
    Array.from(
      { length: 6 },
      () =>
        new Promise<void>((done) => {
          const socket = net.connect({ host, port });
          socket.on("error", () => {});
          socket.once("connect", done);
          setTimeout(done, 200);
          open.push({ close: () => socket.destroy() });
        }),
    ),
  );
}

describe("openTcp with several addresses", () => {
  const [ALIVE, SILENT, REFUSES] = ["127.0.0.1", "127.0.0.2", "127.0.0.3"] as const;
  const at = (addresses: readonly string[], connectMs: number, more: Partial<DriverContext> = {}) =>
    context({
      resolve: async () => addresses.map((address) => ({ address, family: 4 })),
      timeouts: { nameMs: 5000, connectMs, answerMs: 5000 },
      ...more,
    });

  it.each([[[ALIVE, SILENT, REFUSES]], [[SILENT, ALIVE, REFUSES]], [[SILENT, REFUSES, ALIVE]], [[REFUSES, SILENT, ALIVE]]])(
    "finds the one that lives within the connect time-out: %j",
    async (addresses) => {
      const { port, sockets } = await serve();
      await silence(SILENT, port);
      const connected: string[] = [];
      for (const connectMs of [5000, 400]) {
        const ctx = at(addresses, connectMs, { connected: (host, address) => void connected.push(`${host} ${address}`) });
        const connection = await connect(port, ctx, "plc");
        open.push(connection);
        expect(connection.where).toBe(`plc:${port}`);
        expect(getEventListeners(ctx.signal, "abort")).toEqual([]);
      }
      expect(connected).toEqual([`plc ${ALIVE}`, `plc ${ALIVE}`]);
      await expect.poll(() => sockets.length).toBe(2);
    },
  );

  it.each([
    [[SILENT, REFUSES], "CONNECTION_REFUSED"],
    [[REFUSES, SILENT], "CONNECTION_REFUSED"],
    [[REFUSES, REFUSES], "CONNECTION_REFUSED"],
    [[SILENT, SILENT], "TIMEOUT"],
    // No way there: a v6 network that this machine is not in, and v4 multicast.
    [["224.0.0.1", SILENT], "TIMEOUT"],
    [["224.0.0.1", REFUSES], "CONNECTION_REFUSED"],
  ])("gives the reason that says most of the device and names each: %j", async (addresses, reason) => {
    const { port } = await serve();
    await silence(SILENT, port);
    const error = await connect(port, at(addresses, 300), "plc").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ reason: { type: reason }, message: expect.stringContaining("plc has 2 addresses: ") });
    for (const address of addresses) expect(error).toMatchObject({ message: expect.stringContaining(`${address} `) });
  });

  it("begins with the one that took the last connection, and finds another when that one has gone", async () => {
    const first = await serve();
    await silence(SILENT, first.port);
    const lookUp = async () => [SILENT, ALIVE, REFUSES].map((address) => ({ address, family: 4 as const }));
    const resolver = createResolver({ lookUp, now: () => performance.now() });
    const permitted = permittedResolve(resolver, (address) => (address === REFUSES ? `${address} is closed` : undefined), first.port);
    const at = { host: "plc", port: first.port };
    const ctx = context({ resolve: permitted, connected: (_, address) => resolver.connected(at, address) });
    const order = async () => (await permitted("plc", ctx.signal)).map(({ address }) => address);
    expect(await order()).toEqual([SILENT, ALIVE]);
    open.push(await connect(first.port, ctx, "plc"));
    expect(await order()).toEqual([ALIVE, SILENT]);
    resolver.suspect(at);
    expect(await order()).toEqual([SILENT, ALIVE]);
    open.push(await connect(first.port, ctx, "plc"));
    expect(await order()).toEqual([ALIVE, SILENT]);
  });

  it("leaves no attempt behind when the signal aborts", async () => {
    const { port } = await serve();
    await silence(SILENT, port);
    const stop = new AbortController();
    const work = connect(port, at([SILENT, SILENT, ALIVE], 5000, { signal: stop.signal }), "plc");
    setTimeout(() => stop.abort(), 50);
    await expect(work).rejects.toMatchObject({ reason: { type: "TIMEOUT" }, message: expect.stringContaining("connecting to plc") });
    expect(getEventListeners(stop.signal, "abort")).toEqual([]);
  });

  it("takes a name without an address for LOOKUP_ERROR", async () => {
    await expect(connect(502, at([], 300), "plc")).rejects.toMatchObject({ reason: { type: "LOOKUP_ERROR" } });
  });
});

describe("Connection", () => {
  it("knows RST from FIN, at once", async () => {
    const { port, sockets } = await serve();
    for (const [act, reason, words] of [
      [(socket: net.Socket) => socket.resetAndDestroy(), "CONNECTION_RESET", "ECONNRESET"],
      [(socket: net.Socket) => socket.end(), "CONNECTION_CLOSED", `127.0.0.1:${port} closed the connection`],
    ] as const) {
      const connection = await connect(port);
      const lost = new Promise<ReasonError>((done) => connection.onLost(done));
      await expect.poll(() => sockets.length).toBe(1);
      const [socket] = sockets.splice(0);
      if (socket) act(socket);
      const failure = await lost;
      expect(failure.reason.type).toBe(reason);
      expect(failure.message).toContain(words);
      expect(connection.alive()).toBe(false);
      await connection.close();
    }
  });

  it("keeps the first failure, and tells who asks later", async () => {
    const { port } = await serve();
    const connection = await connect(port);
    const first = new ReasonError("TIMEOUT", "first");
    connection.fail(first, "destroy");
    connection.fail(new ReasonError("TIMEOUT", "second"), "destroy");
    expect(connection.failure()).toBe(first);
    const told: unknown[] = [];
    connection.onLost((failure) => told.push(failure));
    expect(told).toEqual([first]);
  });

  it("gives every byte to its receiver, in order, across many reads", async () => {
    const sent = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 7) & 0xff));
    const { port } = await serve((socket) => socket.write(sent));
    const connection = await connect(port);
    open.push(connection);
    const got: Buffer[] = [];
    connection.onBytes((chunk) => got.push(Buffer.from(chunk)));
    await expect.poll(() => got.reduce((n, chunk) => n + chunk.length, 0)).toBe(sent.length);
    expect(Buffer.concat(got).equals(sent)).toBe(true);
  });

  it("sends what is gathered in a turn in one piece, at the end of the turn or before it closes", async () => {
    const { port, sockets } = await serve();
    const connection = await connect(port);
    await expect.poll(() => sockets.length).toBe(1);
    const chunks: string[] = [];
    sockets[0]?.on("data", (chunk) => chunks.push(chunk.toString()));
    for (const text of ["one", "two", "three"]) {
      connection.gather();
      connection.write(Buffer.from(text));
    }
    await expect.poll(() => chunks).toEqual(["onetwothree"]);
    connection.gather();
    connection.write(Buffer.from("four"));
    await connection.close();
    await expect.poll(() => chunks.join(" ")).toBe("onetwothree four");
  });

  it("closes with FIN and waits for the peer's; again is the same", async () => {
    const { port, sockets } = await serve();
    const connection = await connect(port);
    await expect.poll(() => sockets.length).toBe(1);
    const errors: unknown[] = [];
    sockets[0]?.on("error", (error) => errors.push(error));
    const ended = new Promise((done) => sockets[0]?.on("end", done).resume());
    await Promise.all([connection.close(), connection.close(), ended]);
    await connection.close();
    expect(errors).toEqual([]);
  });

  it("does not wait without end for a peer that keeps its side open", async () => {
    const { port, sockets } = await serve(() => {}, true);
    const connection = await connect(port);
    await expect.poll(() => sockets.length).toBe(1);
    const started = performance.now();
    await connection.close();
    expect(performance.now() - started).toBeLessThan(3000);
  });

  it("tells its listeners when the collector closes it: nothing waits for an answer any more", async () => {
    const { port } = await serve();
    const connection = await connect(port);
    const lost = new Promise<ReasonError>((done) => connection.onLost(done));
    await connection.close();
    expect((await lost).message).toContain("closed by the collector");
    connection.write(Buffer.from("nobody takes it, and nothing throws"));
  });

  it("keeps what arrives before there is a receiver, and gives it in order", async () => {
    const { port, sockets } = await serve((socket) => socket.write("hello, "));
    const connection = await connect(port);
    open.push(connection);
    await new Promise((done) => setTimeout(done, 100));
    const got: string[] = [];
    connection.onBytes((chunk) => got.push(chunk.toString()));
    // Not from within onBytes: who sets it may not be ready.
    expect(got).toEqual([]);
    sockets[0]?.write("world");
    await expect.poll(() => got.join("")).toBe("hello, world");
    connection.onBytes(undefined);
    sockets[0]?.write(" and ");
    await new Promise((done) => setTimeout(done, 100));
    connection.onBytes((chunk) => got.push(chunk.toString()));
    sockets[0]?.write("more");
    await expect.poll(() => got.join("")).toBe("hello, world and more");
  });

  it("keeps a bounded part of it, and the device has to wait", async () => {
    const sent = Buffer.from(Array.from({ length: 64 * 1024 }, (_, i) => (i * 7) & 0xff));
    let taken = 0;
    const TOTAL = 32 * 1024 * 1024;
    const { port } = await serve((socket) => {
      const more = () => {
        while (taken < TOTAL && !socket.destroyed) {
          taken += sent.length;
          if (!socket.write(sent)) return void socket.once("drain", more);
        }
      };
      more();
    });
    const connection = await connect(port);
    open.push(connection);
    await new Promise((done) => setTimeout(done, 300));
    expect(taken).toBeLessThan(TOTAL);
    let got = 0;
    let wrong = 0;
    connection.onBytes((chunk) => {
      for (const byte of chunk.subarray(0, 1)) if (byte !== ((got * 7) & 0xff)) wrong++;
      got += chunk.length;
    });
    await expect.poll(() => got, { timeout: 10_000 }).toBe(TOTAL);
    expect(wrong).toBe(0);
  });

  it("gives nothing while it is paused, and all of it afterwards", async () => {
    const { port, sockets } = await serve();
    const connection = await connect(port);
    open.push(connection);
    let got = "";
    connection.onBytes((chunk) => {
      got += chunk.toString();
      connection.pause();
    });
    await expect.poll(() => sockets.length).toBe(1);
    sockets[0]?.write("one");
    await expect.poll(() => got).toBe("one");
    sockets[0]?.write("two");
    await new Promise((done) => setTimeout(done, 100));
    expect(got).toBe("one");
    connection.resume();
    await expect.poll(() => got).toBe("onetwo");
  });

  it("says when the device takes less than is written, and when it has taken it", async () => {
    const { port, sockets } = await serve((socket) => socket.pause());
    const connection = await connect(port);
    open.push(connection);
    await connection.drained();
    const chunk = Buffer.alloc(64 * 1024);
    let written = 0;
    while (connection.write(chunk) && written < 10_000) written++;
    let isDrained = false;
    const drained = connection.drained().then(() => {
      isDrained = true;
    });
    await new Promise((done) => setTimeout(done, 100));
    expect(isDrained).toBe(false);
    sockets[0]?.resume();
    await drained;
    expect(connection.alive()).toBe(true);
  });

  it("is lost where a driver writes on and on, and nobody waits without end", async () => {
    const { port } = await serve((socket) => socket.pause());
    const connection = await connect(port);
    const chunk = Buffer.alloc(1024 * 1024);
    for (let i = 0; i < 100; i++) connection.write(chunk);
    await connection.drained();
    expect(connection.failure()).toMatchObject({ condition: "internal_error", message: expect.stringContaining("wait to be sent") });
  });
});
