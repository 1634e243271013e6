import net, { type AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { silentLog } from "../../src/model/context.ts";
import type { DriverContext } from "../driver.ts";
import { connectRequest } from "./iso.ts";
import { connectIso } from "./iso-connect.ts";
import { openTcp } from "./tcp.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const TARGET = { callingTsap: Buffer.of(6, 0), calledTsap: Buffer.from("SIMATIC-ROOT-HMI") };
const CONFIRM = hex("0300 000e 09 d0 0001 0003 00 c0 01 09");

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

/** Answers the first chunk as it likes. */
async function open(answer: (socket: net.Socket) => unknown, more: Partial<DriverContext> = {}) {
  const got: Buffer[] = [];
  const server = net.createServer({ noDelay: true }, (socket) => {
    socket.on("error", () => {});
    cleanUp.push(() => socket.destroy());
    socket.on("data", (chunk) => got.push(Buffer.from(chunk)));
    socket.once("data", () => answer(socket));
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  cleanUp.push(() => server.close());
  const ctx: DriverContext = {
    signal: new AbortController().signal,
    log: silentLog,
    timeouts: { nameMs: 1000, connectMs: 1000, answerMs: 300 },
    ...more,
  };
  const connection = await openTcp({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, transport: "tcp" }, ctx);
  cleanUp.push(() => connection.close());
  return { connection, got, connected: () => connectIso(connection, TARGET, ctx) };
}

it("asks with the TSAPs, takes the size, and shows both frames to the tap", async () => {
  const seen: string[] = [];
  const { got, connected, connection } = await open((socket) => socket.write(CONFIRM), {
    tap: (direction, frame) => seen.push(`${direction} ${Buffer.from(frame).toString("hex")}`),
  });
  expect(await connected()).toEqual({ tpduBytes: 512, early: Buffer.alloc(0) });
  expect(Buffer.concat(got)).toEqual(connectRequest(TARGET));
  expect(seen).toEqual([`out ${connectRequest(TARGET).toString("hex")}`, `in ${CONFIRM.toString("hex")}`]);
  expect(connection.alive()).toBe(true);
});

it("leaves what follows the confirm to whoever comes next, in the same chunk and later", async () => {
  const { connected, connection } = await open((socket) => {
    socket.write(Buffer.concat([CONFIRM, hex("0300 0008")]));
    setTimeout(() => socket.write(hex("02f080 16")), 20);
  });
  expect((await connected()).early).toEqual(hex("0300 0008"));
  const later = await new Promise((done) => connection.onBytes((chunk) => done(Buffer.from(chunk))));
  expect(later).toEqual(hex("02f080 16"));
});

it("takes a confirm whose bytes come one by one", async () => {
  const { connected } = await open((socket) => {
    for (const [i, byte] of CONFIRM.entries()) setTimeout(() => socket.write(Buffer.of(byte)), i * 2);
  });
  expect(await connected()).toMatchObject({ tpduBytes: 512 });
});

it.each<[string, (socket: net.Socket) => unknown, string, RegExp]>([
  ["refuses", (socket) => socket.write(hex("0300 000b 06 80 0001 0000 01")), "CONNECTION_CLOSED", /too many connections at this TSAP/],
  ["rejects the request", (socket) => socket.write(hex("0300 0009 04 70 0001 02")), "CONNECTION_CLOSED", /rejected a TPDU \(cause 2\)/],
  ["closes", (socket) => socket.end(), "CONNECTION_CLOSED", /closed the connection/],
  ["resets", (socket) => socket.resetAndDestroy(), "CONNECTION_RESET", /ECONNRESET/],
  ["is silent", () => {}, "TIMEOUT", /no answer within 300 ms to the ISO connect request/],
  ["speaks another protocol", (socket) => socket.write("HTTP/1.1 400\r\n\r\n"), "UNKNOWN", /TPKT version 72/],
])("names a device that %s, and leaves no connection", async (_, answer, reason, words) => {
  const { connected, connection } = await open(answer);
  await expect(connected()).rejects.toMatchObject({ reason: { type: reason }, message: expect.stringMatching(words) });
  expect(connection.alive()).toBe(false);
});
