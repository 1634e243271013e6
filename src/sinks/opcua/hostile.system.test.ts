import { randomBytes } from "node:crypto";
import { EventEmitter } from "node:events";
import net from "node:net";
import {
  ActivateSessionRequest,
  AttributeIds,
  BrowseRequest,
  type ClientSession,
  CreateMonitoredItemsRequest,
  CreateSessionRequest,
  CreateSubscriptionRequest,
  MessageSecurityMode,
  type MonitoredItemCreateResult,
  MonitoringMode,
  type OPCUAClient,
  PublishRequest,
  ReadRequest,
  RepublishRequest,
  SecurityPolicy,
  SetPublishingModeRequest,
  TimestampsToReturn,
} from "node-opcua-client";
import type { OPCUAServer } from "node-opcua-server";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { silentLog } from "../../model/context.ts";
import { textsOf } from "../../model/testing/warnings.ts";
import type { Sink } from "../sink.ts";
import { Connections } from "./connections.ts";
import { LIMITS } from "./limits.ts";
import { rawClient, readBody, TYPE } from "./testing/raw-client.ts";
import { ANONYMOUS, batchOf, createRig, good, layoutOf, type Rig, reportOf, user, variableOf } from "./testing/rig.ts";

const LAYOUT = layoutOf("press", ...Array.from({ length: 200 }, (_, i) => variableOf(`${i}`, { scalar: "int32" })));
const OPEN = { securityMode: MessageSecurityMode.None, securityPolicy: SecurityPolicy.None } as const;

let rig: Rig;
let sink: Sink & { readonly url: string };
beforeAll(async () => {
  rig = await createRig();
  rig.server.trust(rig.client.own);
});
afterAll(() => rig.end());
beforeEach(async () => {
  sink = await rig.open(
    { security_modes: ["None", "Sign"], anonymous: true },
    { users: { op: "secret" }, settings: { max_sessions: 4, max_monitored_items: 300 } },
  );
  await sink.describe?.([reportOf(LAYOUT)], rig.ctx());
  await write(1);
});
afterEach(() => sink.close());

const write = async (value: number): Promise<void> => {
  await sink.write(
    batchOf(
      LAYOUT,
      LAYOUT.variables.map(() => good(value)),
    ),
    rig.ctx(),
  );
};
const port = (): number => Number(new URL(sink.url.replace("opc.tcp", "http")).port);

/** A client that behaves, at the same moment. */
async function isServed(): Promise<boolean> {
  const client = await rig.clientOf({ ...OPEN });
  await client.connect(sink.url);
  const session = await client.createSession(ANONYMOUS);
  const { value } = await session.read({ nodeId: "ns=1;s=v-0", attributeId: AttributeIds.Value });
  await session.close();
  await client.disconnect();
  return value.value === 1;
}

async function connected(): Promise<{ readonly client: OPCUAClient; readonly session: ClientSession }> {
  const client = await rig.clientOf({ ...OPEN });
  await client.connect(sink.url);
  return { client, session: await client.createSession(ANONYMOUS) };
}

/** Of the session, what its type does not show. */
interface Raw {
  createSubscription(options: object): Promise<{ readonly subscriptionId: number }>;
  createMonitoredItems(request: CreateMonitoredItemsRequest): Promise<{ readonly results?: readonly MonitoredItemCreateResult[] | null }>;
}
const raw = (session: ClientSession): Raw => session as unknown as Raw;

/** Sends what the library's own functions would not, and tells the name of the answer. */
async function ask(session: ClientSession, request: unknown): Promise<string> {
  const { performMessageTransaction } = session as unknown as {
    performMessageTransaction(request: unknown): Promise<{ constructor: { name: string } }>;
  };
  return await performMessageTransaction.call(session, request).then(
    (response) => response.constructor.name,
    (error: Error) => /Bad\w+/.exec(error.message)?.[0] ?? error.message,
  );
}

describe("bytes that are not OPC UA", () => {
  const HELLO = Buffer.from("48454c46200000000000000000000100000001000000000000000000ffffffff", "hex");
  test.each([
    ["noise", () => randomBytes(5000)],
    ["a hello and noise", () => Buffer.concat([HELLO, randomBytes(5000)])],
    ["a chunk of 2 GiB announced", () => Buffer.concat([HELLO, Buffer.from("4d534746ffffff7f", "hex"), randomBytes(100)])],
    ["an open channel request of noise", () => Buffer.concat([HELLO, Buffer.from("4f504e4688130000", "hex"), randomBytes(4992)])],
    ["nothing", () => Buffer.alloc(0)],
    ["http", () => Buffer.from("GET / HTTP/1.1\r\n\r\n")],
  ])("%s: others are served", async (_name, bytes) => {
    const sockets = Array.from({ length: 20 }, () => {
      const socket = net.connect(port(), "127.0.0.1");
      socket.on("error", () => {});
      socket.write(bytes());
      return socket;
    });
    expect(await isServed()).toBe(true);
    for (const socket of sockets) socket.destroy();
    expect(await isServed()).toBe(true);
  });
});

test("idle connections make room for a client, and the standard output stays quiet", async () => {
  const printed = vi.spyOn(console, "log").mockImplementation(() => {});
  const sockets = Array.from({ length: 100 }, () => net.connect(port(), "127.0.0.1").on("error", () => {}));
  await expect.poll(() => textsOf(sink.warnings).join()).toContain("too many connections");
  expect(await isServed()).toBe(true);
  for (const socket of sockets) socket.destroy();
  expect(printed).not.toHaveBeenCalled();
  printed.mockRestore();
});

describe("a client within the limits of the protocol", () => {
  test("opens as many sessions as there are, and the next is told so", async () => {
    const opened = [await connected(), await connected(), await connected(), await connected()];
    const client = await rig.clientOf({ ...OPEN });
    await client.connect(sink.url);
    await expect(client.createSession(ANONYMOUS)).rejects.toThrow("BadTooManySessions");
    await opened[0]?.session.close();
    const again = await client.createSession(ANONYMOUS);
    await again.close();
    for (const { session, client: one } of opened.slice(1)) {
      await session.close();
      await one.disconnect();
    }
  });

  test("sends requests that make no sense", async () => {
    const { client, session } = await connected();
    const { subscriptionId } = await raw(session).createSubscription({ publishingEnabled: true, requestedPublishingInterval: 50 });
    const item = (change: object) => ({
      itemToMonitor: { nodeId: "ns=1;s=v-0", attributeId: AttributeIds.Value, ...change },
      monitoringMode: MonitoringMode.Reporting,
      requestedParameters: { clientHandle: 1, samplingInterval: 0, queueSize: 1, discardOldest: true, ...change },
    });
    const items = (...itemsToCreate: object[]) =>
      new CreateMonitoredItemsRequest({ subscriptionId, timestampsToReturn: TimestampsToReturn.Both, itemsToCreate });
    const answers = [
      await ask(session, new ReadRequest({ nodesToRead: null as never })),
      await ask(session, Object.assign(new ReadRequest({ nodesToRead: [{ nodeId: "ns=77;s=x" }] }), { maxAge: -1 })),
      await ask(session, new ReadRequest({ maxAge: Number.NaN, nodesToRead: [{ nodeId: "ns=1;s=v-0", attributeId: 13 }] })),
      await ask(session, new BrowseRequest({ nodesToBrowse: null as never })),
      await ask(session, items(item({ samplingInterval: Number.NaN }))),
      await ask(session, items(item({ samplingInterval: Number.POSITIVE_INFINITY }))),
      await ask(session, items(item({ queueSize: 0xffff_ffff }))),
      await ask(session, items(item({ nodeId: "ns=1;s=no-such" }))),
      await ask(session, items()),
      await ask(session, new RepublishRequest({ subscriptionId: 12345, retransmitSequenceNumber: 1 })),
      await ask(session, new SetPublishingModeRequest({ publishingEnabled: true, subscriptionIds: [99_999] })),
      await ask(session, new CreateSubscriptionRequest({ requestedPublishingInterval: Number.NaN })),
    ];
    for (const said of answers) expect(said).toMatch(/^Bad|Response$/);
    expect((await session.read({ nodeId: "ns=1;s=v-0", attributeId: AttributeIds.Value })).value.value).toBe(1);
    await session.close();
    await client.disconnect();
    expect(await isServed()).toBe(true);
  });

  test("creates a session with a certificate of noise, and activates one without a token", async () => {
    const client = await rig.clientOf({ securityMode: MessageSecurityMode.Sign });
    await client.connect(sink.url);
    const session = await client.createSession(user("op", "secret"));
    const { clientNonce } = new CreateSessionRequest({ clientNonce: randomBytes(32) });
    const said = [
      await ask(session, new CreateSessionRequest({ clientNonce, clientCertificate: randomBytes(500), requestedSessionTimeout: 1e12 })),
      await ask(session, new ActivateSessionRequest({ userIdentityToken: null as never })),
    ];
    for (const answer of said) expect(answer).toMatch(/^Bad/);
    expect((await session.read({ nodeId: "ns=1;s=v-0", attributeId: AttributeIds.Value })).value.value).toBe(1);
    await session.close();
    await client.disconnect();
  });

  test("asks for more monitored items than there are", async () => {
    const { client, session } = await connected();
    const subscription = await raw(session).createSubscription({ publishingEnabled: true });
    const create = async (count: number) => {
      const request = new CreateMonitoredItemsRequest({
        subscriptionId: subscription.subscriptionId,
        timestampsToReturn: TimestampsToReturn.Both,
        itemsToCreate: Array.from({ length: count }, (_, i) => ({
          itemToMonitor: { nodeId: `ns=1;s=v-${i % 200}`, attributeId: AttributeIds.Value },
          requestedParameters: { clientHandle: i + 1, samplingInterval: 5, queueSize: 0xffff_ffff },
        })),
      });
      return (await raw(session).createMonitoredItems(request)).results ?? [];
    };
    const first = await create(300);
    expect(
      new Set(first.map((result) => `${result.statusCode.name} ${result.revisedQueueSize} ${result.revisedSamplingInterval}`)),
    ).toEqual(new Set([`Good ${LIMITS.dataQueue} 0`]));
    const beyond = await create(10);
    expect(new Set(beyond.map(({ statusCode }) => statusCode.name))).toEqual(new Set(["BadTooManyMonitoredItems"]));
    await session.close();
    await client.disconnect();
  });

  test("lets its queues overflow with bad values: another client gets every one", async () => {
    const lazy = await connected();
    const { subscriptionId } = await raw(lazy.session).createSubscription({ publishingEnabled: false, requestedPublishingInterval: 1000 });
    await raw(lazy.session).createMonitoredItems(
      new CreateMonitoredItemsRequest({
        subscriptionId,
        timestampsToReturn: TimestampsToReturn.Both,
        itemsToCreate: [true, false].map((discardOldest, i) => ({
          itemToMonitor: { nodeId: "ns=1;s=v-0", attributeId: AttributeIds.Value },
          requestedParameters: { clientHandle: i + 1, samplingInterval: 0, queueSize: 2, discardOldest },
        })),
      }),
    );
    const other = await connected();
    const seen: string[] = [];
    const subscription = await other.session.createSubscription2({ publishingEnabled: true, requestedPublishingInterval: 50 });
    const item = await subscription.monitor(
      { nodeId: "ns=1;s=v-0", attributeId: AttributeIds.Value },
      { samplingInterval: 0, queueSize: 10, discardOldest: true },
      TimestampsToReturn.Both,
    );
    item.on("changed", ({ statusCode }: { statusCode: { name: string } }) => void seen.push(statusCode.name));
    await expect.poll(() => seen).toEqual(["Good"]);
    for (let i = 0; i < 6; i++) {
      await sink.write(
        batchOf(LAYOUT, [{ quality: "bad", fault: i % 2 === 0 ? "device_error" : "out_of_range" }], Date.now() + i),
        rig.ctx(),
      );
      await expect.poll(() => seen.length).toBe(i + 2);
    }
    expect(seen.slice(1)).toEqual(Array.from({ length: 6 }, (_, i) => (i % 2 === 0 ? "BadDeviceFailure" : "BadOutOfRange")));
    for (const { session, client } of [lazy, other]) {
      await session.close();
      await client.disconnect();
    }
  });

  test("sends more publish requests than are kept", async () => {
    const { client, session } = await connected();
    await raw(session).createSubscription({ publishingEnabled: true, requestedPublishingInterval: 1000 });
    const asked = Array.from({ length: 150 }, () => ask(session, new PublishRequest({})));
    expect(await Promise.race(asked)).toMatch(/Bad|Publish/);
    expect((await session.read({ nodeId: "ns=1;s=v-0", attributeId: AttributeIds.Value })).value.value).toBe(1);
    await client.disconnect();
    await Promise.allSettled(asked);
  });
});

describe("sessions that nobody comes back to", () => {
  /** As many as there are, of clients that went away without a word. */
  async function forget(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const client = await rawClient(port());
      await client.open();
      await client.login();
      client.end();
    }
  }

  test("make room for whoever comes, the longest silent first, and lock nobody out", async () => {
    const kept = await rawClient(port());
    await kept.open();
    await kept.login();
    await forget(3);
    for (let i = 0; i < 5; i++) {
      expect(await isServed()).toBe(true);
      await forget(1);
    }
    expect((await kept.answer(kept.send(TYPE.read, readBody(["v-0"])))).result).toBe(0);
    await expect.poll(() => textsOf(sink.warnings).join("\n")).toMatch(/\d times a session without a connection ended to make room/);
    expect(textsOf(sink.warnings).join("\n")).not.toContain("max_sessions raises");
    expect(rig.logged.some(({ level, message }) => level === "warn" && message.includes("ended to make room"))).toBe(true);
    kept.end();
  });

  test("end after five minutes at most, whatever they ask for", async () => {
    for (const requestedSessionTimeout of [1000, 1e12, 0, Number.POSITIVE_INFINITY]) {
      const client = await rig.clientOf({ ...OPEN, requestedSessionTimeout });
      await client.connect(sink.url);
      const session = await client.createSession(ANONYMOUS);
      expect(session.timeout).toBeGreaterThan(0);
      expect(session.timeout).toBeLessThanOrEqual(300_000);
      await session.close();
      await client.disconnect();
    }
  });

  test("where all have a connection, the next client is refused, and status says why", async () => {
    const opened = [await connected(), await connected(), await connected(), await connected()];
    const client = await rig.clientOf({ ...OPEN });
    await client.connect(sink.url);
    await expect(client.createSession(ANONYMOUS)).rejects.toThrow("BadTooManySessions");
    expect(textsOf(sink.warnings).join("\n")).toMatch(/1 times a client found all 4 sessions in use.*max_sessions raises/);
    for (const { client: one } of opened) await one.disconnect();
  });
});

test("a session may be silent for longer than a handshake may take", async () => {
  const silent = await rawClient(port());
  await silent.open();
  await silent.login();
  const idle = await rawClient(port());
  await idle.open();
  await expect.poll(() => idle.isClosed, { timeout: 3 * LIMITS.handshake }).toBe(true);
  expect(silent.isClosed).toBe(false);
  expect((await silent.answer(silent.send(TYPE.read, readBody(["v-0"])))).result).toBe(0);
  silent.end();
}, 60_000);

describe("what a client does not take back", () => {
  const serverOf = (listener: EventEmitter, sessions: object = {}): OPCUAServer =>
    ({
      endpoints: [{ _server: Object.assign(listener, { listening: true, close() {} }) }],
      engine: { _sessions: sessions },
      on() {},
    }) as unknown as OPCUAServer;

  test("of notifications that are never acknowledged the oldest are forgotten", () => {
    const message = (count: number) => ({ notificationData: [{ monitoredItems: Array.from({ length: count }) }] });
    const many = Array.from({ length: 100 }, () => message(LIMITS.unacknowledged / 10));
    const subscription = { _sent_notification_messages: many };
    const connections = new Connections(serverOf(new EventEmitter(), { a: { publishEngine: { subscriptions: [subscription] } } }), {
      maxConnections: 10,
      offersNone: false,
      gates: new WeakMap(),
      log: silentLog,
    });
    connections.bound();
    expect(subscription._sent_notification_messages).toHaveLength(10);
  });
});
