import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startBroker } from "../../../test/support/broker.ts";
import { connack4, connack5, puback, type RawBroker, type RawPacket, startRawBroker, versionOf } from "../../../test/support/raw-broker.ts";
import { silentLog } from "../../model/context.ts";
import type { ReasonError } from "../../model/reason.ts";
import { PublishRate } from "../lib/publish-rate.ts";
import { type Connection, type ConnectOptions, connectMqtt } from "./connect.ts";
import mqtt from "./sink.ts";

const CONNECT = 1;
const PUBLISH = 3;
const DISCONNECT = 14;

let cleanups: (() => Promise<void>)[];
beforeEach(() => {
  cleanups = [];
});
afterEach(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

const raw = async (answer: (packet: RawPacket, socket: Socket) => void, keepsOpen = false): Promise<RawBroker> => {
  const broker = await startRawBroker(answer, { keepsOpen });
  cleanups.push(() => broker.stop());
  return broker;
};
const options = (port: number, more: Partial<ConnectOptions> = {}): ConnectOptions => ({
  host: "127.0.0.1",
  port,
  clientId: "test",
  username: undefined,
  password: undefined,
  connectTimeoutMs: 2000,
  publishTimeoutMs: 2000,
  keepaliveS: 30,
  window: 16,
  will: { topic: "status", payload: "offline" },
  ...more,
});
const open = async (port: number, more: Partial<ConnectOptions> = {}, signal = new AbortController().signal): Promise<Connection> => {
  const connection = await connectMqtt(options(port, more), { signal, log: silentLog });
  cleanups.push(() => connection.close());
  return connection;
};
const failure = async (work: Promise<unknown>): Promise<ReasonError> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toHaveProperty("reason");
  return error as ReasonError;
};

describe("a refusal", () => {
  const PASSWORD = "canary-password";
  /** Properties of MQTT 5.0, 2.2.2: 31 reason string, 28 server reference. */
  const text = (identifier: number, words: string): Buffer => {
    const bytes = Buffer.from(words);
    return Buffer.concat([Buffer.from([identifier, bytes.length >> 8, bytes.length & 0xff]), bytes]);
  };
  const packet = (type: number, head: readonly number[], ...properties: readonly Buffer[]): Buffer => {
    const body = Buffer.concat([Buffer.from(head), Buffer.from([Buffer.concat(properties).length]), ...properties]);
    return Buffer.concat([Buffer.from([type, body.length]), body]);
  };

  test("by CONNACK has the broker's own words and the server that it names, without a secret or a control character", async () => {
    const said = [text(31, `moved\u001b[2J, ${PASSWORD} is known there`), text(28, "mqtt2.example:1884")];
    const broker = await raw((one, socket) => {
      if (one.type === CONNECT) socket.end(packet(0x20, [0, 156], ...said));
    });
    const { message, condition } = await failure(open(broker.port, { username: "a", password: PASSWORD }));
    expect([condition, broker.sockets.length]).toEqual(["server_refuses", 1]);
    expect(message).toContain("Use another server (code 156)");
    expect(message).toContain("it names another server: mqtt2.example:1884");
    expect(message).toContain("collector sink set NAME host=OTHER");
    expect(message).toMatch(/it says "moved.*, … is known there"/);
    expect(message).not.toContain("canary");
    expect(message).not.toContain("\u001b");
  });

  test.each([137, 139, 156])("by DISCONNECT %i names its code and words, and is not taken for another client", async (code) => {
    const broker = await raw((one, socket) => {
      if (one.type === CONNECT) socket.write(connack5(0));
      if (one.type === PUBLISH) socket.end(packet(0xe0, [code], text(31, "see you")));
    });
    const connection = await open(broker.port);
    connection.publish("a", "b", false).catch(() => {});
    const lost = await connection.lost;
    expect(lost).toMatchObject({ reason: { type: "CONNECTION_CLOSED" }, condition: "server_refuses" });
    expect(lost.message).toContain(`(code ${code}); it says "see you"`);
  });

  test("by PUBACK has the broker's words", async () => {
    const broker = await raw((one, socket) => {
      if (one.type === CONNECT) socket.write(connack5(0));
      const topicBytes = one.type === PUBLISH ? one.body.readUInt16BE(0) : 0;
      if (one.type === PUBLISH)
        socket.write(packet(0x40, [...one.body.subarray(2 + topicBytes, 4 + topicBytes), 135], text(31, "no right for a/#")));
    });
    const outcome = await (await open(broker.port)).publish("a", "b", false);
    expect(outcome).toMatchObject({ type: "no_right", detail: expect.stringContaining('(code 135); it says "no right for a/#"') });
  });

  /** CONNECT's flags (MQTT 5.0, 3.1.2.3): 4 is the last will. */
  const hasWill = (one: RawPacket): boolean => (one.body.readUInt8(7) & 4) !== 0;

  test.each([
    ["5", 135],
    ["5", 144],
    ["3.1.1", 5],
  ] as const)("for the last will under MQTT %s (code %i): the broker is tried once without, a second later", async (version, code) => {
    const at: number[] = [];
    const broker = await raw((one, socket) => {
      if (one.type !== CONNECT) return;
      if (version === "3.1.1" && versionOf(one) === 5) return void socket.end(connack4(1));
      at.push(performance.now());
      const answer = version === "5" ? connack5 : connack4;
      if (hasWill(one)) socket.end(answer(code));
      else socket.write(answer(0));
    });
    const connection = await open(broker.port, { connects: { lastMs: Number.NEGATIVE_INFINITY } });
    expect(connection.refusedWill).toContain(`(code ${code})`);
    expect(at).toHaveLength(2);
    // The first CONNECT arrives a while after its connection.
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThan(800);
  });

  test("for the last will makes a warning of the sink about its topic", async () => {
    const broker = await raw((one, socket) => {
      if (one.type === CONNECT && hasWill(one)) socket.end(connack5(135));
      else if (one.type === CONNECT) socket.write(connack5(0));
      else if (one.type === PUBLISH) socket.write(puback(one));
    });
    const details = { type: "mqtt" as const, host: "127.0.0.1", port: broker.port, topic: "plant/{source}" };
    const input = { uuid: "51c40000-0000-4000-8000-000000000001", name: "plant", details, settings: mqtt.settings.parse({}), secrets: {} };
    const sink = await mqtt.open(input, { signal: new AbortController().signal, log: silentLog });
    cleanups.push(() => sink.close());
    const [found] = sink.warnings ?? [];
    expect(found).toMatchObject({
      code: "will_refused",
      text: expect.stringContaining("(code 135)"),
      about: expect.stringContaining("status"),
    });
  });

  test("for the user stays what it was before: it has the words of the first try", async () => {
    const broker = await raw((one, socket) => {
      if (one.type === CONNECT) socket.end(connack5(hasWill(one) ? 135 : 134));
    });
    const remembered = new Map<string, string>();
    expect((await failure(open(broker.port, { remembered }))).message).toContain("(code 135)");
    expect(broker.sockets).toHaveLength(2);
    // It was not the will: no second try each time, for which a user may be locked out.
    await failure(open(broker.port, { remembered }));
    expect(broker.sockets).toHaveLength(3);
  });
});

describe("the version", () => {
  test("is MQTT 5 where the broker speaks it", async () => {
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(connack5(0));
    });
    expect((await open(broker.port)).version).toBe(5);
  });

  test("is tried once a second at most, and less often where the broker says that there are too many connects", async () => {
    const beganMs: number[] = [];
    const broker = await raw((packet, socket) => {
      if (packet.type !== CONNECT) return;
      beganMs.push(performance.now());
      socket.end(versionOf(packet) === 5 ? connack5(132) : connack4(5));
    });
    const connects = { lastMs: performance.now() };
    expect((await failure(open(broker.port, { connects }))).isLasting).toBe(false);
    expect(beganMs.length).toBe(3);
    for (const [i, ms] of beganMs.slice(1).entries()) expect(ms - (beganMs[i] ?? ms)).toBeGreaterThan(900);
    const limited = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.end(connack5(159));
    });
    expect((await failure(open(limited.port))).isLasting).toBe(true);
  });

  test.each([
    ["as 3.1.1 says it", connack4(1)],
    ["as MQTT 5 says it", connack5(132)],
  ])("is 3.1.1 where the broker refuses MQTT 5 %s", async (_how, refusal) => {
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(versionOf(packet) === 5 ? refusal : connack4(0));
    });
    expect((await open(broker.port)).version).toBe(4);
    expect(broker.packets.filter((p) => p.type === CONNECT).map(versionOf)).toEqual([5, 4]);
  });

  test.each([
    ["ends", (socket: Socket) => socket.end()],
    ["resets", (socket: Socket) => socket.resetAndDestroy()],
  ])("is 3.1.1 where the broker %s the connection on CONNECT", async (_how, cut) => {
    const broker = await raw((packet, socket) => {
      if (packet.type !== CONNECT) return;
      if (versionOf(packet) === 5) cut(socket);
      else socket.write(connack4(0));
    });
    expect((await open(broker.port)).version).toBe(4);
  });

  /** Closes on the CONNECTs for which `closes` holds, by their number from 0 and version, and answers the others. */
  const closing = (closes: (number: number, version: number) => boolean): Promise<RawBroker> => {
    let connects = 0;
    return raw((packet, socket) => {
      if (packet.type === DISCONNECT) socket.end();
      if (packet.type !== CONNECT) return;
      if (closes(connects++, versionOf(packet))) socket.resetAndDestroy();
      else socket.write(versionOf(packet) === 5 ? connack5(0) : connack4(0));
    });
  };
  const versions = (broker: RawBroker): number[] => broker.packets.filter((p) => p.type === CONNECT).map(versionOf);

  test.each([1, 2, 3, 4])("stays MQTT 5 where the first %i connections are reset on CONNECT and the broker speaks it", async (resets) => {
    const broker = await closing((number) => number < resets);
    const connection = await open(broker.port).catch(() => open(broker.port));
    expect(connection.version).toBe(5);
  });

  test("is 3.1.1 where MQTT 5 is closed on each time and 3.1.1 is answered between; that is known at the next opening", async () => {
    const broker = await closing((_number, version) => version === 5);
    const remembered = new Map<string, string>();
    expect((await open(broker.port, { remembered })).version).toBe(4);
    expect(versions(broker)).toEqual([5, 5, 5, 4, 5, 4, 5, 4, 5, 4, 5, 4]);
    expect((await open(broker.port, { remembered })).version).toBe(4);
    expect(versions(broker).slice(12)).toEqual([5, 4]);
  });

  test("is 3.1.1 also where no opening lasts until that is seen often enough", async () => {
    let answers = 0;
    // Each third 3.1.1 fails too.
    const broker = await closing((_number, version) => version === 5 || ++answers % 3 === 0);
    const remembered = new Map<string, string>();
    const openings = async () => {
      for (let openings = 1; openings <= 10; openings++) {
        const connection = await open(broker.port, { remembered }).catch(() => undefined);
        if (connection) return { openings, version: connection.version };
      }
      return undefined;
    };
    expect(await openings()).toEqual({ openings: 3, version: 4 });
    expect(versions(broker).filter((version) => version === 4)).toHaveLength(7);
  });

  // Under 3.1.1 it acknowledges what it refuses: these values would be lost, and count as delivered.
  test.each([1, 2, 3])(
    "stays MQTT 5 where three connections are reset, and %i more of that version between some that are not",
    async (more) => {
      let left = 3 + more;
      const broker = await closing((_number, version) => version === 5 && left-- > 0);
      const remembered = new Map<string, string>();
      expect((await open(broker.port, { remembered })).version).toBe(5);
      expect(versions(broker)).toEqual([5, 5, 5, ...Array.from({ length: more }, () => [4, 5]).flat(), 4, 5]);
    },
  );

  test("goes back to MQTT 5 where the broker answers it again, and then a close is nothing but a close", async () => {
    let closesOn5 = true;
    const broker = await closing((_number, version) => version === 5 && closesOn5);
    const remembered = new Map<string, string>();
    expect((await open(broker.port, { remembered })).version).toBe(4);
    closesOn5 = false;
    expect((await open(broker.port, { remembered })).version).toBe(5);
    closesOn5 = true;
    expect((await failure(open(broker.port, { remembered }))).reason).toEqual({ type: "CONNECTION_RESET" });
    expect(versions(broker).at(-1)).toBe(5);
  });

  test("is 3.1.1 with aedes", async () => {
    const broker = await startBroker();
    cleanups.push(() => broker.stop());
    const connection = await open(broker.port);
    expect(connection.version).toBe(4);
    expect(await connection.publish("a/b", "hello", false)).toEqual({ type: "accepted" });
    await expect.poll(() => broker.received).toContainEqual({ topic: "a/b", payload: "hello", retain: false });
  });
});

describe("a broker that keeps no messages", () => {
  /** MQTT 5.0, 3.1.2.7: the last will is to be kept. */
  const keepsWill = ({ body }: RawPacket): boolean => (body.readUInt8(2 + body.readUInt16BE(0) + 1) & 0x20) !== 0;

  test.each([
    ["refuses a last will that is to be kept", (packet: RawPacket) => connack5(keepsWill(packet) ? 154 : 0)],
    ["says so", () => connack5(0, [0x25, 0])],
  ])("and %s is published to all the same", async (_how, answer) => {
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(answer(packet));
      if (packet.type === PUBLISH) socket.write(puback(packet));
    });
    const connection = await open(broker.port);
    expect([connection.version, connection.canRetain]).toEqual([5, false]);
    expect(await connection.publish("a", "x", false)).toEqual({ type: "accepted" });
  });

  test("and keeps them from some time on: the next connection says so", async () => {
    let keeps = false;
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(connack5(keepsWill(packet) && !keeps ? 154 : 0));
    });
    const first = await open(broker.port);
    keeps = true;
    expect([first.canRetain, (await open(broker.port)).canRetain]).toEqual([false, true]);
  });
});

describe("a connection that does not come about", () => {
  test("refused by the kernel", async () => {
    const broker = await startRawBroker(() => {});
    await broker.stop();
    expect((await failure(open(broker.port))).reason).toEqual({ type: "CONNECTION_REFUSED" });
  });

  test("of a name that does not exist", async () => {
    expect((await failure(open(1883, { host: "no-such-host.invalid" }))).reason).toEqual({ type: "LOOKUP_ERROR" });
  });

  test("without an answer to CONNECT", async () => {
    const broker = await raw(() => {});
    const error = await failure(open(broker.port, { connectTimeoutMs: 100 }));
    expect(error.reason).toEqual({ type: "TIMEOUT" });
    expect(error.message).toContain("did not answer CONNECT within 100 ms");
    await expect.poll(() => broker.sockets.every((socket) => socket.readableEnded || socket.destroyed)).toBe(true);
  });

  test("closed on CONNECT in both versions", async () => {
    const broker = await raw((_packet, socket) => socket.end());
    expect((await failure(open(broker.port))).reason).toEqual({ type: "CONNECTION_CLOSED" });
  });

  test.each([
    [
      "bad user name or password",
      connack5(134),
      /Bad User Name or Password \(code 134\); correct user and password: sudo collector sink set NAME username=USER/,
    ],
    ["a client_id that it does not take", connack5(133), /\(code 133\); choose another client_id: collector sink set NAME client_id=OTHER/],
    ["not authorized", connack5(135), /Not authorized \(code 135\); give this user/],
    ["not authorized in 3.1.1 words", connack4(5), /Not authorized \(code 5\)/],
    ["no QoS 1", connack5(0, [0x24, 0]), /QoS not supported \(code 155\); allow QoS 1/],
    ["an unknown code", connack5(250), /unknown reason \(code 250\)/],
  ])("refused by the broker: %s", async (_what, answer, words) => {
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(answer);
    });
    const error = await failure(open(broker.port));
    expect(error.reason).toEqual({ type: "UNKNOWN" });
    expect(error.message).toMatch(words);
  });

  test.each([
    ["HTTP", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"), /a web server answers there \(HTTP\)/],
    ["noise", Buffer.from([0x7f, 0xff, 0xff, 0xff, 0xff]), /it answers CONNECT with 7f ff ff ff ff/],
    ["a CONNACK that is none", Buffer.from([0x20, 0xff, 0xff, 0xff, 0xff, 0xff]), /does not follow MQTT/],
  ])("to a server that answers with %s is a violation of the protocol", async (_what, answer, words) => {
    const broker = await raw((_packet, socket) => socket.end(answer));
    const error = await failure(open(broker.port));
    expect([error.condition, error.message]).toEqual(["protocol_violation", expect.stringMatching(words)]);
  });

  test("given up by the caller", async () => {
    const broker = await raw(() => {});
    const stop = new AbortController();
    const opening = failure(open(broker.port, {}, stop.signal));
    await expect.poll(() => broker.packets.length).toBe(1);
    stop.abort();
    expect((await opening).reason).toEqual({ type: "CONNECTION_CLOSED" });
    await expect.poll(() => broker.sockets.every((socket) => socket.readableEnded || socket.destroyed)).toBe(true);
  });
});

describe("a publish", () => {
  test.each([
    [135, "no_right", /refuses a publish to a\/b: Not authorized \(code 135\); give this user/],
    [144, "of_topic", /Topic Name invalid \(code 144\)/],
    [149, "too_large", /Packet too large \(code 149\); raise the broker's limit/],
    [128, "in_trouble", /Unspecified error \(code 128\)/],
    [153, "refused", /Payload format invalid \(code 153\)/],
    [0x42, "refused", /unknown reason \(code 66\)/],
    [0xff, "refused", /unknown reason \(code 255\)/],
  ])("refused by the broker with code %i resolves with its words, and the connection goes on", async (code, type, words) => {
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(connack5(0));
      if (packet.type === PUBLISH) socket.write(puback(packet, packet.body.includes("good") ? 0 : code));
    });
    const connection = await open(broker.port);
    expect(await connection.publish("a/b", "x", false)).toEqual({ type, detail: expect.stringMatching(words) });
    expect(await connection.publish("a/b", "good", false)).toEqual({ type: "accepted" });
    expect(broker.sockets).toHaveLength(1);
  });

  test("that nobody subscribes to (code 16) is delivered", async () => {
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(connack5(0));
      if (packet.type === PUBLISH) socket.write(puback(packet, 16));
    });
    expect(await (await open(broker.port)).publish("a", "x", false)).toEqual({ type: "accepted" });
  });

  test("above the quota is sent again over the same connection, with another packet identifier", async () => {
    let refusals = 2;
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(connack5(0));
      if (packet.type === PUBLISH) socket.write(refusals-- > 0 ? puback(packet, 151) : puback(packet));
    });
    const connection = await open(broker.port, { publishTimeoutMs: 60_000 });
    expect(await connection.publish("a", "x", false)).toEqual({ type: "accepted" });
    const publishes = broker.packets.filter(({ type }) => type === PUBLISH);
    expect(publishes.map(({ flags, body }) => [flags, body.readUInt16BE(3)])).toEqual([
      [2, 1],
      [2, 2],
      [2, 3],
    ]);
    expect(broker.sockets).toHaveLength(1);
  });

  test("above the quota each time ends the connection after the time-out, and no message is at fault", async () => {
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(connack5(0));
      if (packet.type === PUBLISH) socket.write(puback(packet, 151));
    });
    const connection = await open(broker.port, { publishTimeoutMs: 1500 });
    expect((await failure(connection.publish("a", "x", false))).message).toMatch(/Quota exceeded \(code 151\)/);
    expect(await connection.lost).toMatchObject({ isOfLimit: true, message: expect.stringMatching(/Quota/) });
  });

  test("again is retained only where no newer one was", async () => {
    let refusals = 2;
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(connack5(0));
      if (packet.type === PUBLISH) socket.write(refusals-- > 0 ? puback(packet, 151) : puback(packet));
    });
    const connection = await open(broker.port, { publishTimeoutMs: 60_000 });
    const done = new Promise((settled) => {
      const publish = { topic: "a", payload: "x", retain: true, retainAgain: () => false, done: settled, fail: settled };
      connection.feed({ key: "", isOlder: false, make: () => ({ publish, isLast: true }), fail: settled });
    });
    expect(await done).toEqual({ type: "accepted" });
    expect(broker.packets.filter(({ type }) => type === PUBLISH).map(({ flags }) => flags)).toEqual([3, 2, 2]);
  });

  test.each([150, 151])("teaches the rate where the session ends with code %i", async (code) => {
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(connack5(0));
      if (packet.type === PUBLISH) socket.end(Buffer.from([0xe0, 1, code]));
    });
    const rate = new PublishRate();
    const connection = await open(broker.port, { rate });
    void connection.publish("a", "x", false).catch(() => {});
    expect(await connection.lost).toMatchObject({ isOfLimit: true, condition: "server_refuses" });
    expect(rate.state()).toMatchObject({ isLearned: true });
  });

  test("without an acknowledgement in time ends the connection, and with it all others", async () => {
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(connack5(0));
    });
    const connection = await open(broker.port, { publishTimeoutMs: 100 });
    const results = await Promise.all([failure(connection.publish("a", "1", false)), failure(connection.publish("a", "2", false))]);
    for (const error of [...results, await connection.lost]) expect(error).toHaveProperty("reason", { type: "TIMEOUT" });
    expect((await failure(connection.publish("a", "3", false))).reason).toEqual({ type: "TIMEOUT" });
  });

  test("waits its turn: never more under way than the broker's receive maximum", async () => {
    const held: Buffer[] = [];
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(connack5(0, [0x21, 0, 3]));
      if (packet.type === PUBLISH) held.push(puback(packet));
    });
    const connection = await open(broker.port, { window: 16 });
    expect(connection.window).toBe(3);
    const all = Promise.all(Array.from({ length: 10 }, (_, i) => connection.publish("a", `${i}`, false)));
    for (let acknowledged = 0; acknowledged < 10; acknowledged++) {
      await expect.poll(() => broker.packets.filter((p) => p.type === PUBLISH).length).toBe(Math.min(10, acknowledged + 3));
      expect(held.length).toBeLessThanOrEqual(3);
      broker.sockets[0]?.write(held.shift() ?? "");
    }
    expect(await all).toHaveLength(10);
    expect(broker.packets.filter((p) => p.type === PUBLISH).map((p) => p.body.toString("utf8").at(-1))).toEqual([..."0123456789"]);
  });
});

describe("an open connection is lost", () => {
  test.each([
    ["by a FIN", (socket: Socket) => socket.end(), "CONNECTION_CLOSED", /closed the connection/],
    ["by a reset", (socket: Socket) => socket.resetAndDestroy(), "CONNECTION_RESET", /ECONNRESET/],
    [
      "by DISCONNECT",
      (socket: Socket) => socket.write(Buffer.from([0xe0, 2, 142, 0])),
      "CONNECTION_CLOSED",
      /Session taken over \(code 142\); another client/,
    ],
    [
      "by DISCONNECT with a code that MQTT does not know",
      (socket: Socket) => socket.write(Buffer.from([0xe0, 2, 0x42, 0])),
      "CONNECTION_CLOSED",
      /unknown reason \(code 66\)/,
    ],
    [
      "by bytes that are not MQTT",
      (socket: Socket) => socket.write(Buffer.from([0x00, 0x00, 0xff, 0xff])),
      "UNKNOWN",
      /does not follow MQTT/,
    ],
    ["by a second CONNACK", (socket: Socket) => socket.write(connack5(0)), "UNKNOWN", /does not follow MQTT/],
    [
      "by a packet without end",
      (socket: Socket) => socket.write(Buffer.concat([Buffer.from([0x30, 0xff, 0xff, 0xff, 0x7f]), Buffer.alloc(200_000)])),
      "UNKNOWN",
      /above 65536 bytes/,
    ],
  ])("%s", async (_how, act, type, words) => {
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(connack5(0));
    });
    const connection = await open(broker.port);
    const publish = failure(connection.publish("a", "x", false));
    await expect.poll(() => broker.packets.length).toBe(2);
    const socket = broker.sockets[0];
    if (socket) act(socket);
    const reason = await connection.lost;
    expect(reason.reason.type).toBe(type);
    expect(reason.message).toMatch(words);
    expect(await publish).toBe(reason);
    await connection.close();
  });

  test("by silence: no answer to the ping", async () => {
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(connack5(0));
    });
    const connection = await open(broker.port, { keepaliveS: 1 });
    expect((await connection.lost).message).toMatch(/did not answer a ping/);
  });
});

describe("close", () => {
  test("says DISCONNECT, is idempotent, settles lost", async () => {
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(connack5(0));
      if (packet.type === DISCONNECT) socket.end();
    });
    const connection = await open(broker.port);
    await Promise.all([connection.close(), connection.close()]);
    await expect.poll(() => broker.packets.at(-1)?.type).toBe(DISCONNECT);
    expect((await connection.lost).reason).toEqual({ type: "CONNECTION_CLOSED" });
  });

  test("is bounded when the broker never closes its side", async () => {
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(connack5(0));
    }, true);
    await (await open(broker.port)).close();
    expect(broker.sockets.map((socket) => socket.writable)).toEqual([true]);
  });

  test("with publishes under way throws them", async () => {
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT) socket.write(connack5(0));
    });
    const connection = await open(broker.port);
    const publish = failure(connection.publish("a", "x", false));
    await expect.poll(() => broker.packets.length).toBe(2);
    await connection.close();
    expect((await publish).reason).toEqual({ type: "CONNECTION_CLOSED" });
  });

  test("what arrives with and after the end of a session ends nothing else (mqtt 5.16.0: uncaught TypeError)", async () => {
    const qos2 = [0x34, 8, 0, 1, 0x61, 0, 10, 0, 0x78, 0x78];
    const release = [0x62, 2, 0, 10];
    const acknowledged = [0x40, 2, 0, 1];
    const ended = [0xe0, 2, 142, 0];
    const rest = Array.from({ length: 200 }, () => [...qos2, ...release, ...acknowledged]).flat();
    let answers = false;
    const broker = await raw((packet, socket) => {
      if (packet.type === CONNECT && answers) socket.write(connack5(0));
    }, true);
    const thrown: unknown[] = [];
    const take = (error: unknown) => thrown.push(error);
    process.on("uncaughtException", take);
    try {
      const stop = new AbortController();
      const givenUp = failure(open(broker.port, {}, stop.signal));
      await expect.poll(() => broker.packets.length).toBe(1);
      stop.abort();
      await givenUp;
      broker.sockets[0]?.write(Buffer.from([...connack5(0), ...rest]));
      answers = true;
      const ending = await open(broker.port);
      broker.sockets[1]?.write(Buffer.from([...ended, ...rest]));
      expect((await ending.lost).message).toMatch(/Session taken over/);
      const closing = await open(broker.port);
      const closed = closing.close();
      broker.sockets[2]?.write(Buffer.from([...rest, 0, 0, 0xff, 0xff]));
      await closed;
      for (const socket of broker.sockets) socket.destroy();
      await expect.poll(() => broker.sockets.map((socket) => socket.closed)).toEqual([true, true, true]);
    } finally {
      process.off("uncaughtException", take);
    }
    expect(thrown).toEqual([]);
  });
});
