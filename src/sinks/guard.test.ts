import type { Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { connack4, connack5, puback, type RawPacket, startRawBroker, versionOf } from "../../test/support/raw-broker.ts";
import { ReasonError } from "../model/reason.ts";
import type { Job } from "./flow.ts";
import { createGuard } from "./guard.ts";
import type { AnySinkKind } from "./sink.ts";
import { mqttSpec, startRig } from "./testing/rig.ts";

const CONNECT = 1;
const PUBLISH = 3;

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

const job = (...ids: readonly number[]): Job => ({
  group: {
    layout: 1,
    rows: ids.map((id) => ({ id, layout: 1, time: id, count: 1, explorationCount: 0, payload: new Uint8Array(3) })),
    bytes: 3 * ids.length,
  },
  backlog: true,
  generation: 0,
});
const closed = new ReasonError("CONNECTION_CLOSED", "closed");

describe("what is under way when the far side closes", () => {
  test("once is not suspected; twice is written alone; what is held is suspected no more", () => {
    const guard = createGuard();
    for (let time = 1; time <= 2; time++) {
      expect(guard.isAlone()).toBe(false);
      for (const one of [job(1, 2), job(3, 4)]) guard.begin(one);
      guard.lost(closed);
    }
    expect(guard.isAlone()).toBe(true);
    expect(guard.isSuspicious()).toBe(false);
    for (const one of [job(1, 2), job(3, 4)]) {
      guard.begin(one);
      guard.held(one);
    }
    expect(guard.isAlone()).toBe(false);
  });

  test("alone goes row by row; a row in ever smaller messages; then it is given up with the count", () => {
    const guard = createGuard();
    guard.begin(job(1, 2, 3));
    guard.lost(closed);
    expect(guard.isSuspicious()).toBe(true);
    expect(guard.partsOf(job(1, 2, 3)).map(({ group }) => group.rows.map(({ id }) => id))).toEqual([[1], [2], [3]]);
    const verdicts = [];
    for (let closes = 0; closes < 5; closes++) {
      verdicts.push(guard.verdictOf(job(2)));
      guard.begin(job(2));
      guard.lost(closed);
    }
    expect(verdicts).toEqual([
      {},
      { maxMessageBytes: 16_384 },
      { maxMessageBytes: 1024 },
      { maxMessageBytes: 1 },
      { closes: 4, why: "closed" },
    ]);
    expect(guard.verdictOf(job(1))).toEqual({});
  });

  test("beside what is told is in doubt once: the next has to wait until the connection lasts, and is then to blame", () => {
    const guard = createGuard();
    for (let round = 0; round < 2; round++) {
      guard.begin(job(1));
      expect(guard.lost(closed, true)).toBe(1);
      expect([guard.isSuspicious(), guard.isAlone()]).toEqual([true, round === 1]);
      expect(guard.lost(closed, true)).toBe(0);
      expect(guard.isSuspicious()).toBe(true);
    }
    const other = createGuard();
    other.begin(job(1));
    other.begin(job(2));
    other.lost(closed, true);
    other.lost(closed, false);
    expect(other.isSuspicious()).toBe(false);
  });

  test("is forgotten over many others that never came again", () => {
    const guard = createGuard();
    for (let id = 1; id <= 1001; id++) {
      guard.begin(job(id));
      guard.lost(closed);
    }
    expect([1, 2, 1001].map((id) => guard.verdictOf(job(id)).maxMessageBytes)).toEqual([undefined, 16_384, 16_384]);
  });

  test("is not to blame for a broker that is silent, and is forgotten after many writes", () => {
    const guard = createGuard();
    guard.begin(job(1));
    guard.lost(new ReasonError("TIMEOUT", "silent"));
    expect(guard.isAlone()).toBe(false);
    guard.begin(job(1));
    guard.lost(closed);
    for (let id = 2; id < 258; id++) {
      expect(guard.isAlone()).toBe(true);
      guard.begin(job(id));
      guard.held(job(id));
    }
    expect(guard.isAlone()).toBe(false);
  });
});

/** A 3.1.1 broker that closes on each publish for which `closesOn` holds, without a word. */
async function closingBroker(closesOn: (payload: string) => boolean) {
  const payloads: string[] = [];
  const sizes: number[] = [];
  const broker = await startRawBroker((packet: RawPacket, socket: Socket) => {
    if (packet.type === CONNECT) {
      if (versionOf(packet) === 5) socket.end(connack4(1));
      else socket.write(connack4(0));
    }
    if (packet.type !== PUBLISH) return;
    const payload = packet.body.subarray(2 + packet.body.readUInt16BE(0) + 2).toString();
    if (closesOn(payload)) {
      socket.destroy();
      return;
    }
    sizes.push(packet.body.length);
    if (payload.includes("readouts")) payloads.push(payload);
    socket.write(puback(packet));
  });
  undo.push(() => broker.stop());
  const values = () => payloads.flatMap((text) => JSON.parse(text).readouts.flatMap((r: { values: object }) => Object.entries(r.values)));
  return { ...broker, sizes, values };
}

test("a readout on which a 3.1.1 broker closes each time is dropped, counted and named; all others are delivered", async () => {
  const broker = await closingBroker((payload) => /"v0":7[,}]/.test(payload));
  const rig = await startRig();
  undo.push(() => rig.stop());
  rig.start(mqttSpec(broker.port));
  rig.append(20);
  await expect
    .poll(() => rig.sink(), { timeout: 40_000, interval: 100 })
    .toMatchObject({
      accepted: 80,
      delivered: 76,
      pending: 0,
      dropped: { refused: 4 },
    });
  expect(rig.report()).toMatchObject({
    state: "ERROR",
    error: { detail: expect.stringMatching(/closed the connection, 4 times right after the readout of press-1 of 2027-01-15/) },
  });
  expect(broker.values().some(([name, value]) => name === "v0" && value === 8)).toBe(true);
  rig.append(3);
  await expect.poll(() => rig.sink(), { timeout: 10_000 }).toMatchObject({ delivered: 88, pending: 0 });
}, 60_000);

test("a readout on which the sink itself fails each time is dropped, counted and named; all others are delivered", async () => {
  const kind: AnySinkKind = {
    type: "mqtt",
    title: "one with a fault",
    details: z.unknown(),
    settings: z.unknown(),
    delivery: "every",
    takesExploration: false,
    publishIntervalMs: () => 100,
    endpoint: () => "nowhere",
    open: async () => ({
      inFlight: 4,
      warnings: [],
      lost: new Promise<Error>(() => {}),
      async write({ readouts }) {
        for (const { readings } of readouts) {
          const [first] = readings;
          if (first !== undefined && first.quality !== "bad" && first.value === 7) throw new TypeError("a mistake of ours");
        }
        return { refused: 0 };
      },
      close: () => Promise.resolve(),
    }),
  };
  const rig = await startRig(
    {},
    { sinks: { mqtt: { delivery: "every", takesExploration: false, kind: () => Promise.resolve({ default: kind }) } } },
  );
  undo.push(() => rig.stop());
  rig.start(mqttSpec(1));
  rig.append(20);
  await expect
    .poll(() => rig.sink(), { timeout: 40_000, interval: 100 })
    .toMatchObject({ accepted: 80, delivered: 76, pending: 0, dropped: { refused: 4 } });
  expect(rig.report()?.error?.detail).toMatch(/a mistake of ours, 4 times right after the readout of press-1 of 2027-01-15/);
}, 60_000);

test("a 3.1.1 broker that closes on large publishes gets smaller ones, and every value", async () => {
  const broker = await closingBroker((payload) => payload.length > 1200);
  const rig = await startRig();
  undo.push(() => rig.stop());
  rig.start(mqttSpec(broker.port));
  rig.append(1, { variables: 400 });
  await expect
    .poll(() => rig.sink(), { timeout: 30_000, interval: 100 })
    .toMatchObject({ accepted: 400, delivered: 400, pending: 0, dropped: {} });
  expect(new Set(broker.values().map(([name]) => name)).size).toBe(400);
}, 60_000);

test("max_packet_bytes keeps every publish below it from the first", async () => {
  const broker = await closingBroker((payload) => payload.length > 2048);
  const rig = await startRig();
  undo.push(() => rig.stop());
  rig.start(mqttSpec(broker.port, { settings: { max_packet_bytes: 2048 } }));
  rig.append(5, { variables: 400 });
  await expect.poll(() => rig.sink(), { timeout: 10_000 }).toMatchObject({ delivered: 2000, pending: 0, dropped: {} });
  expect(Math.max(...broker.sizes)).toBeLessThanOrEqual(2048);
  expect(broker.sockets.length).toBe(2);
});

test.each([
  ["with the broker's word for it", Buffer.from([0xe0, 1, 142]), /code 142.*another client uses the same client_id/],
  ["without a word", Buffer.alloc(0), /closed 3 times within 10 s of connecting: another client may use the same client_id/],
])("a broker that closes soon after each CONNACK, %s, is tried once a minute", async (_how, last, words) => {
  const broker = await startRawBroker((packet, socket) => {
    if (packet.type === CONNECT) socket.write(connack5(0));
    if (packet.type === PUBLISH) {
      socket.write(puback(packet));
      setImmediate(() => socket.end(last));
    }
  });
  undo.push(() => broker.stop());
  const rig = await startRig();
  undo.push(() => rig.stop());
  rig.start(mqttSpec(broker.port));
  await expect.poll(() => Date.parse(rig.report()?.next_retry_at ?? "") - Date.now(), { timeout: 10_000 }).toBeGreaterThan(40_000);
  expect(rig.report()?.error?.detail).toMatch(words);
  expect(broker.sockets).toHaveLength(3);
});
