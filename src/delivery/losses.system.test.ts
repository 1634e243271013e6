import Database from "better-sqlite3";
import { afterEach, describe, expect, test, vi } from "vitest";
import { startBroker, type TestBroker } from "../../test/support/broker.ts";
import { freePort } from "../../test/support/free-port.ts";
import { startRefusingBroker } from "../../test/support/refusing-broker.ts";
import type { Loss } from "../buffer/buffer.ts";
import { openReader } from "../buffer/reader.ts";
import { silentLog } from "../model/context.ts";
import { ReasonError } from "../model/reason.ts";
import type { PublishedLoss, Sink } from "../sinks/sink.ts";
import { LossPublisher } from "./losses.ts";
import { mqttSpec, RIG_START_MS, type Rig, startRig } from "./testing/rig.ts";

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});
const rigOf = async (...options: Parameters<typeof startRig>): Promise<Rig> => {
  const rig = await startRig(...options);
  undo.push(() => rig.stop());
  return rig;
};
const brokerOn = async (port = 0) => {
  const broker = await startBroker({ port });
  undo.push(() => broker.stop());
  return broker;
};
const ctx = { signal: new AbortController().signal, log: silentLog };

describe("publishing of losses", () => {
  const loss = (number: number, values: number | null): Loss => ({ reason: "too_old", number, from: 1, to: 2, values });

  function setUp(answers: readonly boolean[] = []) {
    const heard: PublishedLoss[] = [];
    const published: number[] = [];
    const now: Loss[] = [];
    const target = { publishLoss: async (one: PublishedLoss) => answers[heard.push(one) - 1] ?? true } as unknown as Sink;
    const publisher = new LossPublisher({
      losses: () => now,
      epoch: () => "0123456789",
      published: ({ number }) => published.push(number),
    });
    const tell = async (...losses: readonly Loss[]) => {
      now.splice(0, now.length, ...losses);
      await publisher.publish(target, ctx);
    };
    return { heard, published, tell, publisher, now };
  }

  test("one that the server refuses comes again after a minute, as it is then, and no sooner", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    undo.push(async () => void vi.useRealTimers());
    const { heard, published, publisher, now } = setUp();
    now.push(loss(1, 10));
    const sink = { publishLoss: async (one: PublishedLoss) => heard.push(one) > 2 } as unknown as Sink;
    expect(await publisher.publish(sink, ctx)).toBe(60_000);
    now.splice(0, 1, loss(1, 15));
    vi.advanceTimersByTime(30_000);
    expect(await publisher.publish(sink, ctx)).toBe(30_000);
    vi.advanceTimersByTime(30_000);
    expect(await publisher.publish(sink, ctx)).toBe(60_000);
    vi.advanceTimersByTime(60_000);
    expect(await publisher.publish(sink, ctx)).toBeUndefined();
    expect([heard.map(({ values }) => values), published]).toEqual([[10, 15, 15], [1]]);
  });

  test("once while the acknowledgement is under way, and again when it has grown", async () => {
    const { heard, published, tell } = setUp();
    await tell(loss(1, 10));
    await tell(loss(1, 10));
    await tell(loss(1, 15));
    await tell(loss(2, 15));
    expect(heard.map(({ id, values }) => [id, values])).toEqual([
      ["01234567-too_old-1", 10],
      ["01234567-too_old-1", 15],
      ["01234567-too_old-2", 15],
    ]);
    expect(published).toEqual([1, 1, 2]);
  });

  test("one that is refused is not acknowledged, and not sent again as it is", async () => {
    const { heard, published, tell } = setUp([false]);
    await tell(loss(1, null));
    await tell(loss(1, null));
    expect(heard).toHaveLength(1);
    expect(published).toEqual([]);
  });

  test("another opening of the sink gets again what is not acknowledged", async () => {
    const { heard, tell, publisher } = setUp();
    await tell(loss(1, 10));
    let isLost = true;
    const next = {
      publishLoss: async () => {
        if (isLost) throw new ReasonError("CONNECTION_CLOSED", "gone");
        return heard.push({ id: "next", reason: "too_old", from: 1, to: 2, values: 10 }) > 0;
      },
    } as unknown as Sink;
    await expect(publisher.publish(next, ctx)).rejects.toThrow("gone");
    isLost = false;
    const third = { publishLoss: next.publishLoss } as unknown as Sink;
    await publisher.publish(third, ctx);
    expect(heard.at(-1)?.id).toBe("next");
  });
});

test("what the bound drops during an outage is told once as a loss, with its count, and acknowledged", async () => {
  const port = await freePort();
  const rig = await rigOf({ maxBytes: 2 ** 20 });
  rig.start(mqttSpec(port));
  for (let i = 1; i <= 20; i++) {
    rig.append(200, { variables: 100 });
    await expect.poll(() => rig.sink()?.accepted, { interval: 5 }).toBe(i * 20_000);
  }
  await expect.poll(() => rig.sink()?.dropped.buffer_full).toBeGreaterThan(0);
  const dropped = rig.sink()?.dropped.buffer_full ?? 0;
  const broker = await brokerOn(port);
  await expect.poll(() => rig.sink(), { timeout: 10_000 }).toMatchObject({ pending: 0, delivered: 400_000 - dropped });
  const losses = () => broker.received.filter((m) => m.topic === "plant/values/gap").map((m) => JSON.parse(m.payload));
  await expect.poll(() => losses().length).toBe(1);
  expect(losses()).toEqual([
    {
      v: 1,
      clock: "synchronised",
      id: expect.stringMatching(/^[0-9a-f]{8}-buffer_full-1$/),
      from: new Date(1_800_000_000_000).toISOString(),
      to: new Date(1_800_000_000_000 + (dropped / 100 - 1) * 1000).toISOString(),
      count: dropped,
      reason: "buffer_full",
    },
  ]);
  expect(broker.received.find((m) => m.topic === "plant/values/gap")?.retain).toBe(false);
  const reader = openReader(rig.file);
  await expect.poll(() => reader.losses("sink-1")).toEqual([]);
  reader.close();
});

test("while the file takes nothing live values are published unstored and counted apart; then it goes on as before", async () => {
  const broker = await brokerOn();
  const rig = await rigOf({ retryMs: 20, unstoredAfterMs: 60 });
  rig.start(mqttSpec(broker.port));
  await expect.poll(() => rig.report()?.state).toBe("OK");
  rig.append(3);
  await expect.poll(() => rig.sink()?.delivered).toBe(12);
  const other = new Database(rig.file);
  other.exec("CREATE TRIGGER refuse BEFORE INSERT ON batch BEGIN SELECT RAISE(ABORT, 'no room'); END");
  rig.append(5);
  const messages = () => broker.received.filter((m) => m.topic === "plant/values").map((m) => JSON.parse(m.payload));
  const numbers = () => messages().flatMap((m) => m.readouts.map((r: { values: { v0: number } }) => r.values.v0));
  await expect.poll(numbers, { timeout: 5000 }).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  other.exec("DROP TRIGGER refuse");
  other.close();
  rig.append(2);
  await expect.poll(() => rig.ledger(), { timeout: 5000 }).toMatchObject({ rejected: { not_stored: 20 } });
  await expect.poll(() => rig.sink()).toMatchObject({ accepted: 20, delivered: 20, pending: 0, deliveredUnstored: 20 });
  expect(numbers()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  const ids = messages().map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(messages().every((m) => m.backlog === undefined)).toBe(true);
  expect(lossesOf(broker)).toEqual([]);
});

const lossesOf = (broker: TestBroker) =>
  broker.received.filter((m) => m.topic === "plant/values/gap").map((m): Record<string, unknown> => JSON.parse(m.payload));
const at = (number: number) => new Date(RIG_START_MS + number * 1000).toISOString();

test("what was never accepted is told as a loss of each sink that did not get it: no room on disk, and none in memory", async () => {
  const port = await freePort();
  const well = await brokerOn();
  const rig = await rigOf({ retryMs: 20, unstoredAfterMs: 60, maxWaitingBytes: 1 });
  rig.start(mqttSpec(well.port), mqttSpec(port, { uuid: "sink-2", name: "away" }, { client_id: "away" }));
  rig.append(3);
  await expect.poll(() => rig.sink()?.delivered).toBe(12);
  const other = new Database(rig.file);
  other.exec("CREATE TRIGGER refuse BEFORE INSERT ON batch BEGIN SELECT RAISE(ABORT, 'no room'); END");
  rig.append(5);
  rig.post({ type: "overflow", values: 11, span: { from: RIG_START_MS + 8000, to: RIG_START_MS + 9000, explorationCount: 3 } });
  await expect.poll(() => well.received.filter((m) => m.payload.includes('"v0":7')).length, { timeout: 5000 }).toBe(1);
  other.exec("DROP TRIGGER refuse");
  other.close();
  rig.append(2);
  await expect.poll(() => rig.ledger(), { timeout: 5000 }).toMatchObject({ rejected: { not_stored: 20, overflow: 11 } });
  const away = await brokerOn(port);
  const overflow = { reason: "overflow", from: at(8), to: at(9), count: 8 };
  await expect
    .poll(
      () =>
        lossesOf(away)
          .map(({ reason }) => reason)
          .sort(),
      { timeout: 10_000 },
    )
    .toEqual(["not_stored", "overflow"]);
  expect(lossesOf(away)).toEqual(
    expect.arrayContaining([
      expect.objectContaining(overflow),
      expect.objectContaining({ reason: "not_stored", from: at(3), to: at(7), count: 20 }),
    ]),
  );
  expect(lossesOf(well)).toEqual([expect.objectContaining(overflow)]);
  await expect.poll(() => rig.sink("sink-2"), { timeout: 10_000 }).toMatchObject({ accepted: 20, delivered: 20, pending: 0, dropped: {} });
});

test("what the broker refuses for good is told as a loss, with its time and count, and everything else arrives", async () => {
  const broker = await startRefusingBroker(5, ({ payload }) =>
    payload.includes('"source":"saw-1"') ? { how: "puback", code: 144 } : undefined,
  );
  undo.push(() => broker.stop());
  const rig = await rigOf();
  rig.start(mqttSpec(broker.port));
  await expect.poll(() => rig.report()?.state).toBe("OK");
  rig.append(2);
  rig.append(3, { source: "saw-1" });
  await expect.poll(() => rig.sink(), { timeout: 10_000 }).toMatchObject({ delivered: 8, dropped: { refused: 12 }, pending: 0 });
  const losses = () =>
    broker.packets.flatMap(({ type, body }) => (type === 3 ? /\{"v":1,"id":"[^"]*","from".*/.exec(String(body)) : null) ?? []);
  const parsed = () => losses().map((text) => JSON.parse(text));
  await expect.poll(() => parsed().reduce((sum, { count }) => sum + count, 0), { timeout: 10_000 }).toBe(12);
  expect(parsed()[0]).toMatchObject({ reason: "refused", from: at(2) });
  expect(parsed().at(-1)).toMatchObject({ reason: "refused", to: at(4) });
  const reader = openReader(rig.file);
  await expect.poll(() => reader.losses("sink-1"), { timeout: 5000 }).toEqual([]);
  reader.close();
});
