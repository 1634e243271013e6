import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startBroker } from "../../../test/support/broker.ts";
import { connack5, type RawBroker, type RawPacket, startRawBroker, topicOf } from "../../../test/support/raw-broker.ts";
import { mqttSpec, type Rig, startRig } from "../../delivery/testing/rig.ts";

const CONNECT = 1;
const PUBLISH = 3;
const PINGREQ = 12;
const PINGRESP = Buffer.from([0xd0, 0]);
/** MQTT 5.0, 3.2.2.3.4: Maximum QoS 0. */
const MAXIMUM_QOS_0 = [0x24, 0];

let rig: Rig;
const undo: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  rig = await startRig();
  undo.push(() => rig.stop());
});
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** Bits 1 and 2 of the flags (MQTT 5.0, 3.3.1.2). */
const qosOf = ({ flags }: RawPacket): number => (flags >> 1) & 3;
const valuesOf = (broker: RawBroker): readonly RawPacket[] =>
  broker.packets.filter((packet) => packet.type === PUBLISH && topicOf(packet) === "plant/values");

/** A broker of MQTT 5 that takes no QoS 1. */
async function rawBroker(answersPings: () => boolean = () => true): Promise<RawBroker> {
  const broker = await startRawBroker((packet, socket) => {
    if (packet.type === CONNECT) socket.write(connack5(0, MAXIMUM_QOS_0));
    else if (packet.type === PINGREQ && answersPings()) socket.write(PINGRESP);
  });
  undo.push(() => broker.stop());
  return broker;
}

/** accepted = delivered + unconfirmed + pending + Σ dropped. */
function expectExact(): void {
  const { accepted, delivered, unconfirmed, pending, dropped } = rig.sink() ?? {
    accepted: -1,
    delivered: 0,
    unconfirmed: 0,
    filtered: 0,
    pending: 0,
    dropped: {},
  };
  expect(accepted).toBe(delivered + unconfirmed + pending + Object.values(dropped).reduce((sum, n) => sum + n, 0));
}

describe("qos: 0", () => {
  it("sends values without an acknowledgement, and counts them as unconfirmed", async () => {
    const broker = await startBroker();
    undo.push(() => broker.stop());
    rig.start(mqttSpec(broker.port, { settings: { qos: 0 } }));
    rig.append(20);
    await expect
      .poll(() => rig.sink(), { timeout: 10_000 })
      .toMatchObject({ accepted: 80, delivered: 0, unconfirmed: 80, filtered: 0, pending: 0, dropped: {} });
    expectExact();
    const ids = broker.received
      .filter(({ topic }) => topic === "plant/values")
      .flatMap(({ payload }) => JSON.parse(payload).readouts as unknown[]);
    expect(ids).toHaveLength(20);
  });

  it("takes a broker whose maximum QoS is 0: values, status and last will have no more", async () => {
    const broker = await rawBroker();
    rig.start(mqttSpec(broker.port, { settings: { qos: 0 } }));
    rig.append(3);
    await expect.poll(() => rig.sink(), { timeout: 10_000 }).toMatchObject({ accepted: 12, unconfirmed: 12, filtered: 0, pending: 0 });
    expect(rig.report()).toMatchObject({ state: "OK" });
    const publishes = broker.packets.filter(({ type }) => type === PUBLISH);
    expect(publishes.map(topicOf)).toContain("plant/values/status");
    expect(new Set(publishes.map(qosOf))).toEqual(new Set([0]));
    // CONNECT, 3.1.2.6: bits 3 and 4 of the connect flags are the QoS of the will.
    const connect = broker.packets.find(({ type }) => type === CONNECT);
    expect((connect?.body.readUInt8(7) ?? 0xff) & 0x3c).toBe(0x24);
  });

  it("sends once more what a lost connection may have swallowed: only what the broker has read counts as sent", async () => {
    let answers = false;
    const broker: RawBroker = await rawBroker(() => answers || valuesOf(broker).length === 0);
    rig.start(mqttSpec(broker.port, { settings: { qos: 0, publish_timeout: "300ms" } }));
    rig.append(5);
    await expect.poll(() => valuesOf(broker).length, { timeout: 10_000 }).toBeGreaterThan(0);
    expect(rig.sink()).toMatchObject({ accepted: 20, unconfirmed: 0, filtered: 0, pending: 20 });
    await expect.poll(() => rig.report()?.error?.detail ?? "", { timeout: 10_000 }).toMatch(/did not acknowledge a publish within/);
    answers = true;
    await expect.poll(() => rig.sink(), { timeout: 15_000 }).toMatchObject({ accepted: 20, unconfirmed: 20, filtered: 0, pending: 0 });
    expectExact();
  });
});

describe("qos: 1", () => {
  it("does not take a broker whose maximum QoS is 0, and names the setting", async () => {
    const broker = await rawBroker();
    rig.start(mqttSpec(broker.port));
    rig.append(3);
    await expect
      .poll(() => rig.report()?.error?.detail ?? "", { timeout: 10_000 })
      .toMatch(/QoS not supported \(code 155\); .*sudo collector sink set broker qos=0/);
    expect(rig.sink()).toMatchObject({ unconfirmed: 0, filtered: 0, delivered: 0, pending: 12 });
    expect(valuesOf(broker)).toEqual([]);
  });
});
