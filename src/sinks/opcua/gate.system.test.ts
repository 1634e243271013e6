import net from "node:net";
import { afterEach, expect, test } from "vitest";
import type { Refusal } from "./fence.ts";
import { Gate } from "./gate.ts";
import { LIMITS } from "./limits.ts";
import { TYPE, text, u32 } from "./testing/raw-client.ts";

const opened: { destroy(): void }[] = [];
const listeners: net.Server[] = [];
afterEach(() => {
  for (const socket of opened.splice(0)) socket.destroy();
  for (const listener of listeners.splice(0)) listener.close();
});

interface Pair {
  readonly client: net.Socket;
  readonly socket: net.Socket;
  readonly gate: Gate;
  /** What the library would get. */
  readonly handed: Buffer[];
  readonly refusals: Refusal[];
}

/** `onChunk`: what the library makes of a chunk. */
async function pair(onChunk: (gate: Gate, chunk: Buffer) => void = (gate, chunk) => gate.asked(chunk, false)): Promise<Pair> {
  const listener = net.createServer({ pauseOnConnect: true });
  listeners.push(listener);
  await new Promise<void>((done) => listener.listen(0, "127.0.0.1", done));
  const accepted = new Promise<net.Socket>((done) => listener.once("connection", done));
  const client = net.connect((listener.address() as net.AddressInfo).port, "127.0.0.1");
  const socket = await accepted;
  opened.push(client, socket);
  client.on("error", () => {});
  socket.on("error", () => {});
  const handed: Buffer[] = [];
  const refusals: Refusal[] = [];
  const gate = new Gate(socket, { offersNone: true, onRefused: (refusal) => refusals.push(refusal), onThrown() {} });
  gate.activatedBy(() => true);
  socket.on("data", (chunk: Buffer) => {
    handed.push(chunk);
    if (chunk.toString("latin1", 0, 3) === "MSG") onChunk(gate, chunk);
  });
  socket.resume();
  return { client, socket, gate, handed, refusals };
}

const chunkOf = (head: string, ...parts: readonly Buffer[]): Buffer => {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(head), u32(body.length + 8), body]);
};
const HELLO = chunkOf("HELF", Buffer.alloc(20), text("opc.tcp://x"));
const NONE = text("http://opcfoundation.org/UA/SecurityPolicy#None");
const OPEN = chunkOf("OPNF", u32(0), NONE, text(null), text(null), u32(1), u32(1), Buffer.from([1, 0, 0xbe, 1]), Buffer.alloc(40));
const request = (id: number): Buffer =>
  chunkOf("MSGF", u32(1), u32(1), u32(id), u32(id), Buffer.from([1, 0, TYPE.read & 0xff, TYPE.read >> 8]), Buffer.alloc(50));
const requests = (count: number): Buffer => Buffer.concat([HELLO, OPEN, ...Array.from({ length: count }, (_, i) => request(i))]);
const idOf = (chunk: Buffer): number => chunk.readUInt32LE(20);
const poll = <T>(look: () => T) => expect.poll(look, { timeout: 20_000 });
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

test("chunks come whole and in order, however the stream is cut", async () => {
  const { client, handed } = await pair();
  client.setNoDelay(true);
  const bytes = requests(5);
  for (let at = 0; at < bytes.length; at += 7) {
    client.write(bytes.subarray(at, at + 7));
    if (at % 70 === 0) await pause(1);
  }
  await poll(() => handed.length).toBe(7);
  expect(handed.slice(2).map(idOf)).toEqual([0, 1, 2, 3, 4]);
  expect(Buffer.concat(handed).equals(bytes)).toBe(true);
});

test("one request is answered at a time", async () => {
  const made: Buffer[] = [];
  const { client, gate } = await pair((at, chunk) => {
    made.push(chunk);
    at.asked(chunk, true);
  });
  client.write(requests(40));
  for (let i = 0; i < 40; i++) {
    await poll(() => made.length).toBe(i + 1);
    const last = made.at(-1);
    if (last) gate.answered(last);
  }
  expect(made.map(idOf)).toEqual(Array.from({ length: 40 }, (_, i) => i));
});

test("nothing is taken from a client that leaves more than 1 MiB unread, until it reads", async () => {
  let made = 0;
  const { client, socket, gate, handed } = await pair((at, chunk) => {
    made++;
    at.asked(chunk, true);
    socket.write(Buffer.alloc(2 ** 21));
    at.answered(chunk);
  });
  client.pause();
  client.write(requests(500));
  await poll(() => gate.isCongested).toBe(true);
  // The kernel takes some of it before its buffers are full.
  await pause(1000);
  const before = made;
  await pause(300);
  expect(made).toBe(before);
  expect(before).toBeLessThan(50);
  expect(socket.isPaused()).toBe(true);
  expect(socket.writableLength).toBeLessThan(LIMITS.unsent + 2 ** 21 + 1);
  client.resume();
  await poll(() => made).toBe(500);
  expect(handed.slice(2).map(idOf)).toEqual(Array.from({ length: 500 }, (_, i) => i));
});

test("a client is stuck that reads nothing for 30 s; one that reads slowly is not", async () => {
  const { client, socket, gate } = await pair();
  client.pause();
  socket.write(Buffer.alloc(32 * 2 ** 20));
  await poll(() => socket.writableLength > 0).toBe(true);
  await pause(200);
  expect(gate.isStuck(1000)).toBe(false);
  expect(gate.isStuck(1000 + LIMITS.unread)).toBe(false);
  expect(gate.isStuck(1001 + LIMITS.unread)).toBe(true);
  let read = 0;
  client.on("data", (data: Buffer) => {
    read += data.length;
    if (read > 8 * 2 ** 20) client.pause();
  });
  client.resume();
  await poll(() => read).toBeGreaterThan(8 * 2 ** 20);
  await pause(200);
  expect(gate.isStuck(2000 + LIMITS.unread)).toBe(false);
  expect(gate.isStuck(2001 + 2 * LIMITS.unread)).toBe(true);
  client.removeAllListeners("data");
  client.resume();
  await poll(() => socket.writableLength).toBe(0);
  expect(gate.isStuck(1e9)).toBe(false);
});

test("a request that never has its answer holds up the next ones for 10 s", async () => {
  let made = 0;
  const { client, gate } = await pair((at, chunk) => {
    made++;
    at.asked(chunk, true);
  });
  client.write(requests(2));
  await poll(() => made).toBe(1);
  expect(gate.isStuck(performance.now())).toBe(false);
  expect(made).toBe(1);
  gate.isStuck(performance.now() + LIMITS.answer + 1);
  await poll(() => made).toBe(2);
});

test("a refused client gets its ERR message, whatever it still sends, and the connection ends", async () => {
  const { client, handed, refusals, socket } = await pair();
  const came: Buffer[] = [];
  client.on("data", (data: Buffer) => came.push(data));
  client.write(Buffer.concat([HELLO, Buffer.from("GET / HTTP/1.1\r\n\r\n"), Buffer.alloc(5_000_000, 0x41)]));
  await poll(() => socket.destroyed).toBe(true);
  expect(handed).toHaveLength(1);
  expect(refusals).toEqual([expect.objectContaining({ isForeign: true })]);
  expect(Buffer.concat(came).toString("latin1", 0, 4)).toBe("ERRF");
});
