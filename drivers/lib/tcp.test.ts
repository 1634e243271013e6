import { getEventListeners } from "node:events";
import net, { type AddressInfo } from "node:net";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { silentLog } from "../../src/model/context.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import { openTcp } from "./tcp.ts";

const open: { close(): unknown }[] = [];
afterEach(() => {
  for (const thing of open.splice(0)) thing.close();
});

/** Sockets that the server has taken, and its port. */
async function serve(onSocket: (socket: net.Socket) => void = () => {}, allowHalfOpen = false) {
  const sockets: net.Socket[] = [];
  const server = net.createServer({ allowHalfOpen }, (socket) => {
    socket.on("error", () => {});
    sockets.push(socket);
    onSocket(socket);
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  open.push({
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

/** A server whose thread stands still after listen(): nobody accepts. */
async function listenWithoutAccepting() {
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const source = `
    const { parentPort, workerData } = require("node:worker_threads");
    const server = require("node:net").createServer().listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
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

  it("does not wait for ever for a peer that keeps its side open", async () => {
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
});
