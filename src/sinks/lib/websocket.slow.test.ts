import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { startBroker } from "../../../test/support/broker.ts";
import { createAuthority } from "../../../test/support/certificates.ts";
import { connack5, startRawBroker } from "../../../test/support/raw-broker.ts";
import {
  accept,
  closeFrame,
  frame,
  OPCODES,
  startWebSocketServer,
  type WebSocketServerOptions,
} from "../../../test/support/websocket-server.ts";
import { silentLog } from "../../model/context.ts";
import type { ReasonError } from "../../model/reason.ts";
import { type Connection, type ConnectOptions, connectMqtt } from "../mqtt/connect.ts";
import { settingsSchema } from "../mqtt/settings.ts";

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

async function start(options: WebSocketServerOptions) {
  const server = await startWebSocketServer(options);
  undo.push(() => server.stop());
  return server;
}
async function open(port: number, more: Partial<ConnectOptions> = {}): Promise<Connection> {
  const options = {
    host: "127.0.0.1",
    port,
    clientId: "test",
    sink: "plant",
    username: undefined,
    password: undefined,
    websocketPath: "/mqtt?a=b",
    connectTimeoutMs: 1000,
    publishTimeoutMs: 1000,
    keepaliveS: 30,
    window: 16,
    will: { topic: "status", payload: "offline" },
    ...more,
  };
  const connection = await connectMqtt(options, { signal: new AbortController().signal, log: silentLog });
  undo.push(() => connection.close());
  return connection;
}
const failure = (work: Promise<unknown>): Promise<ReasonError> =>
  work.then(
    () => Promise.reject(new Error("it was opened")),
    (error: ReasonError) => error,
  );

describe("MQTT over WebSocket", () => {
  test("publishes in binary, masked messages of at most 64 KiB, no more of them than packets and parts, and ends in order", async () => {
    const broker = await startBroker();
    undo.push(() => broker.stop());
    const server = await start({ target: broker.port });
    const connection = await open(server.port);
    const payloads = Array.from({ length: 40 }, (_, n) => `${n}`.repeat(n === 0 ? 70_000 : n));
    const outcomes = await Promise.all(payloads.map((payload) => connection.publish("a", payload, false)));
    expect(new Set(outcomes.map(({ type }) => type))).toEqual(new Set(["accepted"]));
    expect(broker.received.map(({ payload }) => payload)).toEqual(payloads);
    await connection.close();
    const [head = ""] = server.heads;
    expect(head.split("\r\n")[0]).toBe("GET /mqtt?a=b HTTP/1.1");
    expect(head).toMatch(/^sec-websocket-protocol: mqtt$/im);
    expect(head).not.toMatch(/extensions|permessage/i);
    const data = server.frames.filter(({ opcode }) => opcode === OPCODES.binary);
    expect(server.frames.every(({ isMasked, fin }) => isMasked && fin)).toBe(true);
    // CONNECT in version 5 and in 3.1.1, the publishes and DISCONNECT.
    expect(data.length).toBeLessThanOrEqual(payloads.length + 5);
    expect(Math.max(...data.map(({ payload }) => payload.length))).toBe(65_536);
    expect(data.map(({ payload }) => (payload[0] ?? 0) >> 4).at(-1)).toBe(14);
    expect(server.frames.at(-1)).toMatchObject({ opcode: OPCODES.close });
    expect(server.frames.at(-1)?.payload.readUInt16BE(0)).toBe(1000);
    await expect.poll(() => server.open()).toBe(0);
  });

  test("goes in TLS as wss, with the certificate of the collector", async () => {
    const [authority, broker] = await Promise.all([createAuthority(), startBroker()]);
    undo.push(
      () => authority.remove(),
      () => broker.stop(),
    );
    const [own, client] = await Promise.all([authority.issue("own", "IP:127.0.0.1"), authority.issue("client", "DNS:collector")]);
    const tls = { cert: await readFile(own.cert), key: await readFile(own.key), ca: await readFile(authority.ca), requestCert: true };
    const server = await start({ target: broker.port, tls });
    const files = { ca_file: authority.ca, cert_file: client.cert, key_file: client.key };
    expect(await (await open(server.port, { tls: files })).publish("a", "1", false)).toEqual({ type: "accepted" });
    const refused = await failure(open(server.port, { tls: { ca_file: authority.ca } }));
    expect(refused).toMatchObject({ condition: "certificate_refused", message: expect.stringContaining("tls.cert_file") });
  });

  test.each([
    [
      301,
      "Location: https://user:canary-secret@web.example/mqtt\r\n",
      /301 Moved Permanently: it names another address \(https:\/\/.*web\.example\/mqtt\), which is not followed/,
      /websocket_path=PATH/,
    ],
    [401, "WWW-Authenticate: Basic realm=x\r\n", /401 Unauthorized: it wants a log-in/, /without a log-in/],
    [
      404,
      "",
      /answers the WebSocket request for \/mqtt\?a=b with 404 Not Found: there is no WebSocket at this path/,
      /mostly \/mqtt: `sudo collector sink set plant websocket_path=PATH`/,
    ],
    [503, "", /503 Service Unavailable: .*tried again/, /in front of it/],
    [200, "", /200 OK: it speaks HTTP and opens no WebSocket/, /Compare port, tls and websocket_path/],
  ])("a server that answers %i with a body that never ends is told with what to do", async (status, headers, words, step) => {
    const server = await start({
      onRequest: (_head, socket) => {
        socket.write(`HTTP/1.1 ${status} x\r\n${headers}Transfer-Encoding: chunked\r\n\r\n`);
        const more = (): void => {
          if (socket.destroyed) return;
          socket.write(`1000\r\n${"x".repeat(4096)}\r\n`);
          setTimeout(more, 1);
        };
        more();
        return false;
      },
    });
    const { condition, message, nextStep } = await failure(open(server.port));
    expect([condition, message, nextStep]).toEqual(["server_refuses", expect.stringMatching(words), expect.stringMatching(step)]);
    expect(message).not.toContain("canary");
    await expect.poll(() => server.open()).toBe(0);
  });

  const answers = (text: (head: string) => string): WebSocketServerOptions => ({
    onRequest: (head, socket) => {
      socket.write(text(head));
      return true;
    },
  });
  test.each<[string, WebSocketServerOptions, string, RegExp]>([
    [
      "a wrong accept",
      answers((head) => accept(head).replace(/Accept: .{8}/, "Accept: AAAAAAAA")),
      "protocol_violation",
      /does not follow WebSocket: Invalid Sec-WebSocket-Accept/,
    ],
    ["no subprotocol", answers((head) => accept(head, [])), "protocol_violation", /does not name the subprotocol mqtt/],
    ["another subprotocol", answers((head) => accept(head, ["Sec-WebSocket-Protocol: wamp"])), "protocol_violation", /subprotocol mqtt/],
    [
      "an extension that was not asked for",
      answers((head) => accept(head, ["Sec-WebSocket-Protocol: mqtt", "Sec-WebSocket-Extensions: permessage-deflate"])),
      "protocol_violation",
      /does not follow WebSocket/,
    ],
    [
      "another upgrade",
      answers((head) => accept(head).replace("Upgrade: websocket", "Upgrade: h2c")),
      "protocol_violation",
      /Invalid Upgrade/,
    ],
    [
      "headers without an end",
      answers((head) => `${accept(head).slice(0, -2)}x: ${"y".repeat(100_000)}\r\n`),
      "protocol_violation",
      /does not speak HTTP/,
    ],
    ["bytes that are not HTTP", answers(() => "SSH-2.0-x\r\n"), "protocol_violation", /does not speak HTTP, which WebSocket begins with/],
  ])("a handshake with %s is told", async (_what, options, condition, words) => {
    const server = await start(options);
    expect(await failure(open(server.port))).toMatchObject({
      condition,
      message: expect.stringMatching(words),
      nextStep: expect.stringContaining("websocket_path"),
    });
    await expect.poll(() => server.open()).toBe(0);
  });

  test("a silent server is a time-out, and one that closes may be one without WebSocket", async () => {
    const silent = await start({ onRequest: () => false });
    expect(await failure(open(silent.port, { connectTimeoutMs: 100 }))).toMatchObject({
      reason: { type: "TIMEOUT" },
      message: expect.stringContaining("WebSocket request"),
    });
    await expect.poll(() => silent.open()).toBe(0);
    const plain = await startRawBroker(() => {});
    undo.push(() => plain.stop());
    const closing = await start({ onRequest: (_head, socket) => void socket.end() === undefined && false });
    expect(await failure(open(closing.port))).toMatchObject({
      reason: { type: "CONNECTION_CLOSED" },
      message: expect.stringMatching(/in the WebSocket handshake; its port may be one without/),
    });
  });

  test("an answer that ends at any byte is a failure at once, and one that comes byte by byte opens", async () => {
    const CONNACK = frame(OPCODES.binary, connack5(0));
    const answerOf = (head: string) => Buffer.concat([Buffer.from(accept(head)), CONNACK]);
    const { length } = answerOf("");
    for (let cut = 0; cut < length; cut += 1) {
      const server = await start({ onRequest: (head, socket) => void socket.end(answerOf(head).subarray(0, cut)) === undefined });
      const beganMs = performance.now();
      const { reason } = await failure(open(server.port, { remembered: new Map([["version", "answers 5"]]) }));
      expect([cut, reason.type]).toEqual([cut, expect.stringMatching(/CONNECTION_CLOSED|UNKNOWN/)]);
      expect(performance.now() - beganMs).toBeLessThan(900);
      await server.stop();
      undo.pop();
    }
    const server = await start({
      onRequest: (head, socket) => {
        const bytes = answerOf(head);
        const next = (at: number): void => {
          if (at < bytes.length) socket.write(bytes.subarray(at, at + 1), () => setImmediate(next, at + 1));
        };
        next(0);
        return true;
      },
    });
    expect((await open(server.port)).version).toBe(5);
  });
});

describe("an open WebSocket", () => {
  /** Opens, has the broker send something after CONNACK, and gives the failure in which the connection ends. */
  const lostOver = async (send: (socket: Socket) => void): Promise<ReasonError> => {
    let isAnswered = false;
    const server = await start({
      onFrame: (one, socket) => {
        if (one.opcode !== OPCODES.binary || isAnswered) return;
        isAnswered = true;
        socket.write(frame(OPCODES.binary, connack5(0)));
        setTimeout(() => send(socket), 10);
      },
    });
    const lost = await (await open(server.port)).lost;
    await expect.poll(() => server.open()).toBe(0);
    return lost;
  };

  test.each<[string, (socket: Socket) => void, RegExp]>([
    ["a text message", (socket) => socket.write(frame(OPCODES.text, Buffer.from("hello"))), /sends a text message/],
    [
      "a message above the bound",
      (socket) => socket.write(frame(OPCODES.binary, Buffer.alloc(300_000))),
      /sends a message above 262144 bytes/,
    ],
    [
      "a message whose length alone is above the bound",
      (socket) => socket.write(Buffer.from([0x82, 127, 0, 0, 0, 200, 0, 0, 0, 0])),
      /sends a message above 262144 bytes/,
    ],
    [
      "a message in too many pieces",
      (socket) => {
        socket.write(frame(OPCODES.binary, Buffer.from([0x40]), { fin: false }));
        for (let n = 0; n < 2000; n++) socket.write(frame(OPCODES.continuation, Buffer.alloc(1), { fin: false }));
      },
      /does not follow WebSocket: Too many message fragments/,
    ],
    ["reserved bits", (socket) => socket.write(frame(OPCODES.binary, Buffer.alloc(1), { bits: 0x40 })), /does not follow WebSocket/],
    ["a masked frame", (socket) => socket.write(Buffer.from([0x82, 0x81, 1, 2, 3, 4, 5])), /does not follow WebSocket/],
    ["a packet that is not MQTT", (socket) => socket.write(frame(OPCODES.binary, Buffer.from([0, 0, 0]))), /does not follow MQTT/],
    [
      "a flood of pings",
      (socket) => {
        for (let n = 0; n < 1000; n++) socket.write(frame(OPCODES.ping, Buffer.alloc(100)));
      },
      /sends more than 60 pings in 10 s/,
    ],
    [
      "a flood of empty messages",
      (socket) => {
        for (let n = 0; n < 1000; n++) socket.write(frame(OPCODES.binary, Buffer.alloc(0)));
      },
      /sends more than 60 pings/,
    ],
  ])("is lost over %s", async (_what, send, words) => {
    expect(await lostOver(send)).toMatchObject({ condition: "protocol_violation", message: expect.stringMatching(words) });
  });

  test.each([
    [1001, "", /closed the WebSocket: going away \(code 1001\)$/],
    [1008, "no \u001b[2J right", /against the server's policy \(code 1008\); it says "no .*right"$/],
    [1009, "", /message too big \(code 1009\)$/],
    [4001, "bye", /a code of its own \(code 4001\); it says "bye"$/],
    [1000, "", /the broker 127\.0\.0\.1:\d+ closed the connection$/],
  ])("that the broker closes with code %i says so", async (code, reason, words) => {
    const lost = await lostOver((socket) => socket.write(closeFrame(code, reason)));
    expect(lost).toMatchObject({ reason: { type: "CONNECTION_CLOSED" }, message: expect.stringMatching(words) });
    expect(lost.message).not.toContain("\u001b");
  });

  test("answers pings, and is lost where the connection breaks", async () => {
    const server = await start({
      onFrame: (one, socket) => {
        if (one.opcode === OPCODES.binary)
          socket.write(Buffer.concat([frame(OPCODES.binary, connack5(0)), frame(OPCODES.ping, Buffer.from("you?"))]));
        if (one.opcode === OPCODES.pong) socket.resetAndDestroy();
      },
    });
    const lost = await (await open(server.port)).lost;
    expect(server.frames.find(({ opcode }) => opcode === OPCODES.pong)?.payload.toString()).toBe("you?");
    expect(lost.reason.type).toMatch(/CONNECTION_RESET|CONNECTION_CLOSED/);
  });
});

test.each(["mqtt", "/a b", "/a#b", ""])("the path %j is refused", (path) => {
  expect(settingsSchema.safeParse({ websocket_path: path }).success).toBe(false);
});
