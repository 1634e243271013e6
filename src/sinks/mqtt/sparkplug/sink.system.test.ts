import { connectAsync, type MqttClient } from "mqtt";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startBroker, type TestBroker } from "../../../../test/support/broker.ts";
import { connack4, connack5, puback, type RawPacket, startRawBroker, topicOf, versionOf } from "../../../../test/support/raw-broker.ts";
import { sourceReport } from "../../../../test/support/source-report.ts";
import { plainLayout } from "../../../buffer/testing/readouts.ts";
import { mqttSpec, RIG_START_MS, type Rig, startRig } from "../../../delivery/testing/rig.ts";
import type { SourceReport } from "../../../model/report.ts";
import { textsOf } from "../../../model/testing/warnings.ts";
import { decoded, encoded } from "./testing.ts";
import { TestHost } from "./testing-host.ts";

const VARIABLES = 4;
const NODE = "line-3";
const NCMD = `spBv1.0/plant/NCMD/${NODE}`;
const REBIRTH = encoded({ timestamp: 1, metrics: [{ name: "Node Control/Rebirth", booleanValue: true }] });
const WITHIN = { timeout: 15_000 };

let rig: Rig;
const undo: (() => unknown)[] = [];
beforeEach(async () => {
  rig = await startRig();
  undo.push(() => rig.stop());
});
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

const specOf = (port: number, identifiers: object = {}, more: object = {}) =>
  mqttSpec(port, { settings: { payload: "sparkplug", group_id: "plant", edge_node_id: NODE, ...identifiers, ...more } });

const source = (name: string, state: "OK" | "ERROR" = "OK"): SourceReport =>
  sourceReport(name, {
    uuid: plainLayout(1).source.uuid,
    layout: plainLayout(VARIABLES, { scalar: "uint32" }, name),
    status: {
      last_readout_at: null,
      configured_variables: VARIABLES,
      state: state === "OK" ? { type: "OK" } : { type: "ERROR", reason: { type: "TIMEOUT" }, error_at: "2026-11-20T09:00:00Z" },
    },
  });

const describeSources = (...sources: readonly SourceReport[]): void => rig.ask({ type: "sources", sources });

async function broker(port?: number): Promise<TestBroker> {
  const started = await startBroker(port === undefined ? {} : { port });
  undo.push(() => started.stop().catch(() => {}));
  return started;
}

/** A host application at the broker; what other hosts publish is not of the node. */
async function hostAt(
  { port }: { readonly port: number },
  host = new TestHost(),
): Promise<{ readonly host: TestHost; readonly client: MqttClient }> {
  const client = await connectAsync({ host: "127.0.0.1", port, reconnectPeriod: 50 });
  undo.push(() => client.endAsync(true));
  client.on("message", (topic, payload, { qos, retain }) => {
    if (/^spBv1\.0\/[^/]+\/[ND](BIRTH|DATA|DEATH)\//.test(topic)) host.take(topic, payload, { qos, retain });
  });
  await client.subscribeAsync("spBv1.0/#", { qos: 1 });
  return { host, client };
}

const verbsOf = (host: TestHost): readonly string[] =>
  host.messages.map(({ verb, device }) => (device === undefined ? verb : `${verb} ${device}`));

/** Every value that was appended, once or more, and which of them came as historical. */
async function expectAll(host: TestHost): Promise<void> {
  await expect.poll(() => rig.sink()?.pending, WITHIN).toBe(0);
  const numbers = new Set(host.values.filter(({ name }) => name === "v0").map(({ value }) => value));
  expect([...numbers].sort((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: rig.readouts() }, (_, i) => i));
  const { accepted, unconfirmed, delivered, pending } = rig.sink() ?? {};
  expect({ accepted, unconfirmed, delivered, pending }).toEqual({
    accepted: rig.readouts() * VARIABLES,
    unconfirmed: accepted,
    delivered: 0,
    pending: 0,
  });
}

describe("a Sparkplug edge node at a broker", () => {
  it("is born, then each device, then sends data; the ledger has them as unconfirmed", async () => {
    const at = await broker();
    const { host } = await hostAt(at);
    rig.start(specOf(at.port));
    describeSources(source("press-1"), sourceReport("oven", { layout: plainLayout(1, undefined, "oven") }));
    rig.append(20);
    await expect.poll(() => rig.sink(), WITHIN).toMatchObject({ unconfirmed: 80, filtered: 0, pending: 0 });
    await expect.poll(() => host.values.length, WITHIN).toBe(80);
    expect(host.faults).toEqual([]);
    expect(verbsOf(host).slice(0, 4)).toEqual(["NBIRTH", "DBIRTH press-1", "DBIRTH oven", "DDATA press-1"]);
    // The broker speaks 3.1.1: it refused the CONNECT before, of MQTT 5, which had bdSeq 0.
    expect(host.bdSeq).toBe(1);
    await expectAll(host);
    // Nothing else is published: neither status nor metadata, and nothing is retained.
    expect(at.received.filter(({ topic, retain }) => !topic.startsWith("spBv1.0/plant/") || retain)).toEqual([]);
  });

  it("dies with its connection, is born with the next bdSeq, and sends what waited as historical", async () => {
    let at = await broker();
    const first = await hostAt(at);
    rig.start(specOf(at.port));
    describeSources(source("press-1"));
    rig.append(5);
    await expect.poll(() => first.host.values.length, WITHIN).toBe(20);
    at.drop();
    // The will comes to the host once it is back.
    await at.stop();
    rig.append(30);
    at = await broker(at.port);
    const { host } = await hostAt(at, first.host);
    await expect.poll(() => rig.sink(), WITHIN).toMatchObject({ unconfirmed: 140, filtered: 0, pending: 0 });
    rig.append(5);
    await expect.poll(() => new Set(host.values.map(({ time }) => time)).size, WITHIN).toBe(40);
    const later = host.values.filter(({ time }) => time >= RIG_START_MS + 5000);
    expect(later.filter(({ time }) => time < RIG_START_MS + 35_000).every(({ isHistorical }) => isHistorical)).toBe(true);
    expect(later.filter(({ time }) => time >= RIG_START_MS + 35_000).every(({ isHistorical }) => !isHistorical)).toBe(true);
    expect(host.bdSeq).toBeGreaterThan(0);
  }, 40_000);

  it("gives the device to the first of two data sources of one name", async () => {
    const at = await broker();
    const { host } = await hostAt(at);
    rig.start(specOf(at.port));
    describeSources(sourceReport("press-1", { uuid: "first", layout: plainLayout(1, undefined, "press-1") }), source("press-1"));
    rig.append(2);
    await expect
      .poll(() => rig.sink(), WITHIN)
      .toMatchObject({ accepted: 8, unconfirmed: 0, filtered: 0, pending: 0, dropped: { refused: 8 } });
    expect(rig.report()?.warnings.map(({ code }) => code)).toEqual(["names_shared"]);
    await expect.poll(() => verbsOf(host), WITHIN).toEqual(["NBIRTH", "DBIRTH press-1", "NDATA"]);
    // The host is told what it will never get.
    expect(JSON.parse(String(host.messages.at(-1)?.payload.metrics[0]?.value))).toMatchObject({ count: 8, reason: "refused" });
    expect(Object.keys(host.birthOf("press-1"))).toEqual(["v0"]);
    expect(host.faults).toEqual([]);
  });

  it("is born again on a Rebirth command, with sequence number 0 and the same bdSeq", async () => {
    const at = await broker();
    const { host, client } = await hostAt(at);
    rig.start(specOf(at.port));
    describeSources(source("press-1"));
    rig.append(3);
    await expect.poll(() => host.values.length, WITHIN).toBe(12);
    await client.publishAsync(NCMD, REBIRTH, { qos: 0 });
    await expect.poll(() => verbsOf(host).filter((verb) => verb === "NBIRTH").length, WITHIN).toBe(2);
    await expect.poll(() => verbsOf(host).filter((verb) => verb === "DBIRTH press-1").length, WITHIN).toBe(2);
    rig.append(3);
    await expect.poll(() => host.values.length, WITHIN).toBe(24);
    expect(host.faults).toEqual([]);
    expect(host.bdSeq).toBe(1);
    // The birth has the values that were current before it.
    expect(host.birthOf("press-1")["v0"]).toMatchObject({ is: 2, timestamp: RIG_START_MS + 2000 });
    // A storm of them makes one a second.
    for (let i = 0; i < 200; i++) client.publish(NCMD, REBIRTH, { qos: 1 });
    rig.append(3);
    await expect.poll(() => host.values.length, WITHIN).toBe(36);
    expect(verbsOf(host).filter((verb) => verb === "NBIRTH").length).toBeLessThanOrEqual(4);
    expect(host.faults).toEqual([]);
  }, 30_000);

  it("refuses every other command, counts it and says so, and no bytes from outside end it", async () => {
    const at = await broker();
    const { host, client } = await hostAt(at);
    rig.start(specOf(at.port));
    describeSources(source("press-1"));
    rig.append(1);
    await expect.poll(() => host.values.length, WITHIN).toBe(4);
    const write = encoded({
      metrics: [
        { name: "v0", intValue: 5 },
        { alias: 3, intValue: 5 },
      ],
    });
    await client.publishAsync(`spBv1.0/plant/DCMD/${NODE}/press-1`, write, { qos: 1 });
    await client.publishAsync(NCMD, encoded({ metrics: [{ name: "Node Control/Reboot", booleanValue: true }] }), { qos: 1 });
    await expect
      .poll(() => textsOf(rig.report()?.warnings ?? []), WITHIN)
      .toContainEqual(
        expect.stringMatching(
          /^3 metrics of commands were refused .* at spBv1\.0\/plant\/NCMD\/line-3 \(Node Control\/Reboot\): the collector only reads/,
        ),
      );
    expect(rig.report()?.warnings.map(({ code }) => code)).toEqual(["commands_refused"]);
    for (let length = 0; length < write.length; length++) client.publish(NCMD, write.subarray(0, length), { qos: 0 });
    for (const bytes of [Buffer.alloc(60_000, 0xff), Buffer.from("{}"), Buffer.alloc(0)]) {
      client.publish(NCMD, bytes);
      client.publish(`spBv1.0/plant/DCMD/${NODE}/${"x".repeat(1000)}`, bytes);
    }
    const told = (): number => Number(host.messages.findLast(({ verb }) => verb === "NDATA")?.payload.metrics[0]?.value ?? 0);
    await expect.poll(told, WITHIN).toBeGreaterThan(20);
    rig.append(3);
    await expect.poll(() => host.values.length, WITHIN).toBe(16);
    expect(host.faults).toEqual([]);
    expect(verbsOf(host).filter((verb) => verb === "NBIRTH")).toHaveLength(1);
    expect(rig.report()).toMatchObject({ state: "OK" });
  }, 30_000);

  it("a device dies when its source is not read or not configured any more, and is born when it is read again", async () => {
    const at = await broker();
    const { host } = await hostAt(at);
    rig.start(specOf(at.port));
    describeSources(source("press-1"));
    rig.append(3);
    await expect.poll(() => host.values.length, WITHIN).toBe(12);
    // It answers with faults: they are its values.
    const faulted = { reason: { type: "UNKNOWN" as const }, condition: "all_variables_faulted" as const, detail: "exception 2" };
    describeSources({ ...source("press-1", "ERROR"), error: faulted });
    await new Promise((done) => setTimeout(done, 3500));
    expect(verbsOf(host).at(-1)).toBe("DDATA press-1");
    describeSources(source("press-1", "ERROR"));
    await expect.poll(() => verbsOf(host).at(-1), WITHIN).toBe("DDEATH press-1");
    describeSources(source("press-1"));
    await expect.poll(() => verbsOf(host).at(-1), WITHIN).toBe("DBIRTH press-1");
    expect(host.birthOf("press-1")["v0"]).toMatchObject({ is: 2, properties: { Quality: { value: 192 } } });
    describeSources();
    await expect.poll(() => verbsOf(host).at(-1), WITHIN).toBe("DDEATH press-1");
    // Readouts that still wait are delivered all the same: the device is born as stale, and dies again after that.
    rig.append(1);
    await expect.poll(() => host.values.length, WITHIN).toBe(16);
    await expect.poll(() => verbsOf(host).at(-1), WITHIN).toBe("DDEATH press-1");
    expect(host.birthOf("press-1")["v0"]).toMatchObject({ properties: { Quality: { value: 500 } } });
    expect(host.faults).toEqual([]);
  }, 40_000);
});

describe("a primary host application", () => {
  const STATE = "spBv1.0/STATE/scada";
  const state = (online: boolean, timestamp: number): string => JSON.stringify({ online, timestamp });

  it("is waited for: nothing is born before it is online, and all dies when it is not", async () => {
    const at = await broker();
    const { host, client } = await hostAt(at);
    await client.publishAsync(STATE, state(false, 100), { qos: 1, retain: true });
    rig.start(specOf(at.port, { primary_host_id: "scada" }));
    describeSources(source("press-1"));
    rig.append(3);
    await client.publishAsync("spBv1.0/STATE/other", state(true, 900), { qos: 1, retain: true });
    await new Promise((done) => setTimeout(done, 500));
    expect(host.messages).toEqual([]);
    await client.publishAsync(STATE, state(true, 200), { qos: 1, retain: true });
    await expect.poll(() => host.values.length, WITHIN).toBe(12);
    // Older than what was said last.
    await client.publishAsync(STATE, state(false, 150), { qos: 1, retain: true });
    rig.append(1);
    await expect.poll(() => host.values.length, WITHIN).toBe(16);
    await client.publishAsync(STATE, state(false, 200), { qos: 1, retain: true });
    await expect.poll(() => verbsOf(host).at(-1), WITHIN).toBe("NDEATH");
    rig.append(2);
    await expect.poll(() => rig.report()?.error?.detail ?? "", WITHIN).toMatch(/the primary host application scada is offline/);
    expect(host.values).toHaveLength(16);
    await client.publishAsync(STATE, state(true, 300), { qos: 1, retain: true });
    await expect.poll(() => host.values.length, WITHIN).toBe(24);
    expect(host.faults).toEqual([]);
    expect(host.bdSeq).toBeGreaterThan(0);
    await expectAll(host);
  }, 60_000);
});

describe("the packets of an edge node", () => {
  const CONNECT = 1;
  const PUBLISH = 3;
  const SUBSCRIBE = 8;
  const PINGREQ = 12;
  const DISCONNECT = 14;

  /** A broker of MQTT 5 that grants every subscription but those of `refuses`. */
  async function rawBroker(refuses: (topic: string) => boolean = () => false) {
    const started = await startRawBroker((packet, socket) => {
      if (packet.type === CONNECT) socket.write(connack5(0));
      else if (packet.type === PINGREQ) socket.write(Buffer.from([0xd0, 0]));
      else if (packet.type === PUBLISH && (packet.flags & 6) !== 0) socket.write(puback(packet, 0));
      else if (packet.type === SUBSCRIBE) {
        const codes = subscriptionsOf(packet).map(({ topic }) => (refuses(topic) ? 0x87 : 1));
        socket.write(Buffer.from([0x90, 3 + codes.length, ...packet.body.subarray(0, 2), 0, ...codes]));
      }
    });
    undo.push(() => started.stop());
    return started;
  }

  /** MQTT 5.0, 3.8: packet identifier, properties, then topics with their options. */
  function subscriptionsOf({ body }: RawPacket): readonly { readonly topic: string; readonly qos: number }[] {
    const found = [];
    for (let at = 3 + (body[2] ?? 0); at < body.length; ) {
      const length = body.readUInt16BE(at);
      found.push({ topic: body.subarray(at + 2, at + 2 + length).toString(), qos: (body[at + 2 + length] ?? 0) & 3 });
      at += 3 + length;
    }
    return found;
  }

  /** MQTT 5.0, 3.1: flags, and the topic and payload of the will. */
  function connectOf({ body }: RawPacket): { readonly flags: number; readonly topic: string; readonly payload: Buffer } {
    const flags = body.readUInt8(7);
    const skip = (at: number): number => at + 2 + body.readUInt16BE(at);
    const propertiesEnd = 10 + 1 + (body[10] ?? 0);
    const willAt = skip(propertiesEnd) + 1 + (body[skip(propertiesEnd)] ?? 0);
    const payloadAt = skip(willAt);
    return { flags, topic: body.subarray(willAt + 2, payloadAt).toString(), payload: body.subarray(payloadAt + 2, skip(payloadAt)) };
  }

  it("CONNECT has the death as its will, SUBSCRIBE comes before the birth, all but the death has QoS 0, DISCONNECT keeps the will", async () => {
    const at = await rawBroker();
    rig.start(specOf(at.port));
    describeSources(source("press-1"));
    rig.append(3);
    await expect.poll(() => rig.sink(), WITHIN).toMatchObject({ unconfirmed: 12 });
    rig.ask({ type: "stop", uuid: "sink-1", removed: false });
    await expect.poll(() => at.packets.at(-1)?.type, WITHIN).toBe(DISCONNECT);
    const [first, second, third] = at.packets;
    const will = connectOf(first as RawPacket);
    // Clean start, a will of QoS 1 that is not retained.
    expect(will.flags & 0x3e).toBe(0b001110);
    // The one property is the maximum packet size: a session without an expiry interval ends with its connection.
    expect(first?.body.subarray(10, 12)).toEqual(Buffer.from([5, 0x27]));
    expect(will.topic).toBe("spBv1.0/plant/NDEATH/line-3");
    expect(decoded(will.payload)).toMatchObject({ metrics: [{ name: "bdSeq", datatype: 4, value: 0n }] });
    expect(second?.type).toBe(SUBSCRIBE);
    expect(subscriptionsOf(second as RawPacket)).toEqual([
      { topic: "spBv1.0/plant/NCMD/line-3", qos: 1 },
      { topic: "spBv1.0/plant/DCMD/line-3/+", qos: 1 },
    ]);
    expect(third && topicOf(third)).toBe("spBv1.0/plant/NBIRTH/line-3");
    const publishes = at.packets.filter(({ type }) => type === PUBLISH);
    const death = publishes.pop();
    expect(death && [topicOf(death), death.flags]).toEqual(["spBv1.0/plant/NDEATH/line-3", 2]);
    expect(new Set(publishes.map(({ flags }) => flags))).toEqual(new Set([0]));
    // MQTT 5.0, 3.14.2.1: disconnect with will message.
    expect(at.packets.at(-1)?.body[0]).toBe(4);
  });

  it("CONNECT of MQTT 3.1.1 asks for a clean session", async () => {
    const at = await startRawBroker((packet, socket) => {
      if (packet.type === CONNECT) socket.end(connack4(versionOf(packet) === 4 ? 3 : 1));
    });
    undo.push(() => at.stop());
    rig.start(specOf(at.port));
    await expect.poll(() => at.packets.map(versionOf), WITHIN).toContain(4);
    const connect = at.packets.find((packet) => versionOf(packet) === 4) as RawPacket;
    expect(connect.body.readUInt8(7) & 0x3e).toBe(0b001110);
  });

  it("bdSeq rises by one with each CONNECT", async () => {
    const at = await rawBroker();
    rig.start(specOf(at.port));
    describeSources(source("press-1"));
    for (let connects = 1; connects <= 3; connects++) {
      await expect
        .poll(
          () =>
            at.packets
              .filter(({ type }) => type === PUBLISH)
              .map(topicOf)
              .filter((topic) => topic.includes("NBIRTH")).length,
          WITHIN,
        )
        .toBe(connects);
      at.sockets.at(-1)?.destroy();
    }
    const ofConnects = at.packets
      .filter(({ type }) => type === CONNECT)
      .map((packet) => Number(decoded(connectOf(packet).payload).metrics[0]?.value));
    expect(ofConnects.slice(0, 3)).toEqual([0, 1, 2]);
    const births = at.packets.filter((packet) => packet.type === PUBLISH && topicOf(packet).includes("NBIRTH"));
    // Topic and an empty list of properties.
    const payloads = births.map((packet) => decoded(packet.body.subarray(2 + packet.body.readUInt16BE(0) + 1)));
    expect(payloads.map(({ metrics }) => Number(metrics.find(({ name }) => name === "bdSeq")?.value)).slice(0, 3)).toEqual([0, 1, 2]);
  }, 30_000);

  it("a subscription to commands that is not granted is a warning", async () => {
    const at = await rawBroker((topic) => topic.includes("CMD"));
    rig.start(specOf(at.port));
    describeSources(source("press-1"));
    await expect.poll(() => rig.report()?.warnings.map(({ code }) => code), WITHIN).toEqual(["commands_unheard", "commands_unheard"]);
    rig.append(1);
    await expect.poll(() => rig.sink(), WITHIN).toMatchObject({ unconfirmed: 4 });
  });

  it("a subscription to STATE that is not granted keeps the sink from opening", async () => {
    const at = await rawBroker((topic) => topic.includes("STATE"));
    rig.start(specOf(at.port, { primary_host_id: "scada" }));
    await expect.poll(() => rig.report()?.error?.detail ?? "", WITHIN).toMatch(/does not grant the subscription to spBv1\.0\/STATE\/scada/);
  });

  it("a birth that is larger than the broker takes drops the values of its source, by name, and a warning says so", async () => {
    const at = await rawBroker();
    rig.start(specOf(at.port, {}, { max_packet_bytes: 1024 }));
    describeSources(sourceReport("press-1", { uuid: "source-1", layout: plainLayout(40, { scalar: "uint32" }, "press-1") }));
    rig.append(2, { variables: 40 });
    await expect
      .poll(() => rig.sink(), WITHIN)
      .toMatchObject({ accepted: 80, unconfirmed: 0, filtered: 0, pending: 0, dropped: { refused: 80 } });
    expect(rig.report()?.warnings.map(({ code }) => code)).toEqual(["birth_too_large"]);
  });
});
