import { afterEach, expect, test } from "vitest";
import * as z from "zod";
import { connack5, puback, startRawBroker } from "../../test/support/raw-broker.ts";
import { startRefusingBroker } from "../../test/support/refusing-broker.ts";
import { ReasonError } from "../model/reason.ts";
import { type AnySinkKind, copyReadout, type SinkBatch, type WriteResult } from "../sinks/sink.ts";
import { mqttSpec, type Rig, startRig } from "./testing/rig.ts";

const CONNECT = 1;
const PUBLISH = 3;

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** A sink whose writes are `write`. */
async function rigOf(write: (batch: SinkBatch) => Promise<WriteResult>): Promise<Rig> {
  const kind: AnySinkKind = {
    type: "mqtt",
    title: "one of this test",
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
      write: (batch) => write({ ...batch, readouts: Array.from(batch.readouts, copyReadout) }),
      close: () => Promise.resolve(),
    }),
  };
  const entry = { delivery: "every" as const, takesExploration: false, kind: () => Promise.resolve({ default: kind }) };
  const rig = await startRig({}, { sinks: { mqtt: entry } });
  undo.push(() => rig.stop());
  rig.start(mqttSpec(1));
  return rig;
}

function live(rig: Rig): () => void {
  const timer = setInterval(() => rig.append(1, { source: "press-2" }), 200);
  undo.push(() => clearInterval(timer));
  return () => clearInterval(timer);
}

/** By `readout time/place`: how often it was taken. */
function take(taken: Map<string, number>, { readouts }: SinkBatch): void {
  for (const { time, readings } of readouts)
    for (const [place, reading] of readings.entries()) if (reading) taken.set(`${time}/${place}`, (taken.get(`${time}/${place}`) ?? 0) + 1);
}

const has = ({ readouts }: SinkBatch, value: number): boolean =>
  [...readouts].some(({ readings: [first] }) => first !== undefined && first.quality !== "bad" && first.value === value);

test("writes begin several in one turn of the event loop, and never more than the sink takes", async () => {
  let [underWay, most, inThisTurn] = [0, 0, 0];
  const turns: number[] = [];
  const rig = await rigOf(async () => {
    if (inThisTurn === 0)
      process.nextTick(() => {
        turns.push(inThisTurn);
        inThisTurn = 0;
      });
    inThisTurn++;
    most = Math.max(most, ++underWay);
    await new Promise((done) => setTimeout(done, 20));
    underWay--;
    return { refused: 0 };
  });
  rig.append(40, { variables: 1 });
  await expect.poll(() => rig.sink()?.delivered, { timeout: 10_000 }).toBe(40);
  expect(most).toBe(4);
  expect(Math.max(...turns)).toBeGreaterThan(1);
});

test("a value on which the sink itself fails each time is dropped, counted and named; all others are delivered", async () => {
  const taken = new Map<string, number>();
  const rig = await rigOf(async (batch) => {
    if (has(batch, 7)) throw new TypeError("a mistake of ours");
    take(taken, batch);
    return { refused: 0 };
  });
  rig.append(20);
  const stop = live(rig);
  await expect.poll(() => rig.sink()?.dropped, { timeout: 60_000, interval: 100 }).toEqual({ refused: 1 });
  stop();
  await expect.poll(() => rig.sink()?.pending, { timeout: 10_000 }).toBe(0);
  const { accepted = 0, delivered } = rig.sink() ?? {};
  expect([delivered, taken.size]).toEqual([accepted - 1, accepted - 1]);
  expect(rig.report()).toMatchObject({
    state: "ERROR",
    error: { detail: expect.stringMatching(/a mistake of ours, 3 times with nothing but 1 value of press-1 of 2027-01-15.*it is dropped/) },
  });
}, 90_000);

test("what is refused of a batch is tried apart, and what was not is not written again", async () => {
  const taken = new Map<string, number>();
  const detail = "no value at an odd place";
  let refusals = 0;
  const rig = await rigOf(async (batch) => {
    const isRefused = batch.layout.source.name === "press-1";
    const places = isRefused ? [...batch.readouts].map(({ readings }) => readings.flatMap((reading, place) => (reading ? place : []))) : [];
    const odd = places.flatMap((row, readout) =>
      row.filter((place) => place % 2 === 1).map((from) => ({ detail, parts: [{ readout, from, to: from + 1 }] })),
    );
    refusals += odd.length;
    const even = [...batch.readouts].map((readout) => ({
      ...readout,
      readings: readout.readings.map((reading, place) => (isRefused && place % 2 === 1 ? undefined : reading && { ...reading })),
    }));
    take(taken, { ...batch, readouts: even });
    return { refused: 0, refusals: odd };
  });
  rig.append(5, { variables: 6 });
  const stop = live(rig);
  await expect.poll(() => rig.sink()?.dropped, { timeout: 30_000, interval: 100 }).toEqual({ refused: 15 });
  stop();
  await expect.poll(() => rig.sink()?.pending, { timeout: 10_000 }).toBe(0);
  expect(refusals).toBeLessThanOrEqual(15 * 4);
  expect([...taken.values()].every((times) => times === 1)).toBe(true);
  expect(rig.sink()?.delivered).toBe(taken.size);
}, 60_000);

test("what is kept while the file is opened again comes again from there, and the ledger is exact", async () => {
  let refuses = true;
  const taken = new Map<string, number>();
  const rig = await rigOf(async (batch) => {
    if (refuses && has(batch, 3)) throw new ReasonError("CONNECTION_RESET", "reset");
    take(taken, batch);
    return { refused: 0 };
  });
  rig.append(10);
  await expect.poll(() => rig.sink()?.delivered, { timeout: 20_000 }).toBeGreaterThanOrEqual(36);
  rig.relink();
  rig.append(1);
  refuses = false;
  await expect.poll(() => rig.sink(), { timeout: 60_000 }).toMatchObject({ accepted: 44, delivered: 44, pending: 0, dropped: {} });
  expect(taken.size).toBe(44);
}, 90_000);

test("max_packet_bytes keeps every publish below it from the first", async () => {
  const broker = await startRefusingBroker(4, ({ bytes }) => (bytes > 2048 ? { how: "fin" } : undefined));
  undo.push(() => broker.stop());
  const rig = await startRig();
  undo.push(() => rig.stop());
  rig.start(mqttSpec(broker.port, { settings: { max_packet_bytes: 2048 } }));
  rig.append(5, { variables: 400 });
  await expect.poll(() => rig.sink(), { timeout: 10_000 }).toMatchObject({ delivered: 2000, pending: 0, dropped: {} });
  expect(broker.refused).toEqual([]);
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
