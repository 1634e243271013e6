import { NodeId } from "node-opcua-client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DeviceMemories } from "../../src/agent/device-memory.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import type { Reading } from "../../src/model/value.ts";
import { prepareAll } from "../../test/conformance/support/read-all.ts";
import { connect, context, detailsOf } from "../../test/support/opcua.ts";
import {
  all,
  dataValue,
  expandedNode,
  f64,
  i32,
  localized,
  node,
  qualified,
  str,
  u8,
  u32,
  variant,
} from "../../test/support/opcua-wire/bytes.ts";
import { reference, WireServer } from "../../test/support/opcua-wire/server.ts";
import { BAD_TOO_MANY_MONITORED_ITEMS, doubleValue, WireSubscriptions } from "../../test/support/opcua-wire/subscriptions.ts";
import type { AnySession, DriverContext, Request } from "../driver.ts";
import driver from "./driver.ts";

const SETTINGS = { read_mode: "subscribe", publishing_interval: 50, sampling_interval: 0 };
const KEY = (i: number) => `ns=2;s=v${i}`;

let server: WireServer;
let far: WireSubscriptions;
/** By how much monotonic time is ahead of itself. */
let aheadMs = 0;
const undo: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  aheadMs = 0;
  const monotonic = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => monotonic() + aheadMs);
  server = await new WireServer().start();
  far = new WireSubscriptions(server);
  undo.push(() => server.close());
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const step of undo.splice(0).reverse()) await step();
  far.stop();
});

/** A source that reads these nodes again and again. */
class Reader {
  readonly session: AnySession;
  readonly #requests: readonly Request[];
  readonly ctx: DriverContext;
  constructor(session: AnySession, requests: readonly Request[], ctx: DriverContext) {
    this.session = session;
    this.#requests = requests;
    this.ctx = ctx;
  }

  async readings(): Promise<readonly Reading[]> {
    const readings: Reading[] = [];
    for (const request of this.#requests) readings.push(...(await this.session.read(request, this.ctx)));
    return readings;
  }

  /** Numbers, and faults of what has none. */
  async values(): Promise<readonly unknown[]> {
    return (await this.readings()).map((reading) => (reading.quality === "bad" ? reading.fault : reading.value));
  }

  texts(): readonly string[] {
    return textsOf(this.session.warnings?.());
  }
}

interface ReaderOptions {
  readonly settings?: Record<string, unknown>;
  readonly deadband?: number;
  readonly ctx?: Partial<DriverContext>;
}

async function reader(keys: readonly string[], { settings = {}, deadband, ctx: more = {} }: ReaderOptions = {}): Promise<Reader> {
  const ctx = { ...context(), reader: "press", intervalMs: 1000, ...more };
  const session = await connect(detailsOf(server.port), ctx, { settings: { ...SETTINGS, ...settings } });
  undo.push(() => session.close());
  const points = keys.map((key, index) => ({
    index,
    ...driver.parseAddress(key, undefined, driver.settings.parse({})),
    ...(deadband !== undefined && { deadband }),
  }));
  const { ready } = await prepareAll(session, points, ctx);
  return new Reader(session, driver.plan(ready as never, session.limits), ctx);
}

const READER = { ...context(), reader: "press", intervalMs: 1000 };

async function prepared(session: AnySession, keys: readonly string[], ctx: DriverContext): Promise<Request> {
  const points = keys.map((key, index) => ({ index, ...driver.parseAddress(key, undefined, driver.settings.parse({})) }));
  const { ready } = await prepareAll(session, points, ctx);
  const [request] = driver.plan(ready as never, session.limits);
  if (!request) throw new Error("nothing is planned");
  return request;
}

const put = (count: number): readonly string[] => {
  const keys = Array.from({ length: count }, (_, i) => KEY(i));
  for (const [i, key] of keys.entries()) server.nodes.set(key, doubleValue(i));
  return keys;
};

describe("items that the server refuses", () => {
  it("for lack of room are read plainly in the same readout, with one warning that has both numbers", async () => {
    far.room = 20;
    const { values, readings, texts } = bound(await reader(put(50)));
    expect(await values()).toEqual(Array.from({ length: 50 }, (_, i) => i));
    for (let i = 0; i < 50; i++) far.set(KEY(i), 100 + i);
    await expect.poll(values).toEqual(Array.from({ length: 50 }, (_, i) => 100 + i));
    const sent = (await readings()).filter((reading) => reading.quality !== "bad" && reading.isSent);
    expect(sent).toHaveLength(20);
    expect(texts().filter((text) => text.includes("subscription"))).toEqual([
      expect.stringMatching(/^20 of 50 variables come by subscription, 30 are read plainly: .*BadTooManyMonitoredItems \(0x80DB0000\)/),
    ]);
    expect(far.wanted).toHaveLength(50);
  });

  it.each([0x8044_0000, 0x8041_0000, 0x8003_0000, BAD_TOO_MANY_MONITORED_ITEMS])("with %i are read plainly", async (status) => {
    const [first = "", second = ""] = put(2);
    far.refused.set(first, status);
    const { values } = bound(await reader([first, second]));
    expect(await values()).toEqual([0, 1]);
    far.set(first, 7);
    expect(await values()).toEqual([7, 1]);
    expect(far.items).toBe(1);
  });
});

it("offers refused items again every ten minutes, and deletes those that are not wanted any more", async () => {
  far.room = 2;
  const keys = put(4);
  const four = bound(await reader(keys));
  await four.values();
  expect([far.items, far.wanted.length]).toEqual([2, 4]);
  aheadMs += 599_000;
  await four.values();
  expect(far.wanted).toHaveLength(4);
  far.room = 10;
  aheadMs += 1000;
  await expect.poll(async () => [await four.values(), far.items, four.texts()]).toEqual([[0, 1, 2, 3], 4, []]);
  const two = await prepared(four.session, keys.slice(0, 2), READER);
  for (let i = 0; i < 13; i++) {
    aheadMs += 5000;
    await four.session.read(two, READER);
  }
  await expect.poll(() => [far.items, far.deleted.length]).toEqual([2, 2]);
});

it("watches all variables again where the server has other versions of its models", async () => {
  const name = all(node("i=46"), u8(1), expandedNode("ns=2;i=31"), qualified(0, "ModelVersion"), localized(""), u32(2), node("i=68"));
  server.references.set("i=11715", [reference(expandedNode("ns=2;i=30"), "urn:wire:plant")]);
  server.references.set("ns=2;i=30", [name]);
  const version = (words: string) => server.nodes.set("ns=2;i=31", dataValue({ value: variant(12, str(words)) }));
  version("1.0");
  // Without the audit, which would find the other value too.
  const { values, texts } = bound(await reader(put(2), { settings: { audit_interval: 0 } }));
  await values();
  aheadMs += 31_000;
  const hasLooked = () => values().then(() => server.asked.lastIndexOf("Read") > server.asked.indexOf("Browse") && server.count("Browse"));
  await expect.poll(hasLooked).toBe(2);
  await new Promise((done) => setTimeout(done, 50));
  far.tellsDeletion = false;
  far.remove(KEY(0));
  far.set(KEY(0), 77);
  expect(await values()).toEqual([0, 1]);
  version("1.1");
  aheadMs += 31_000;
  await expect.poll(values).toEqual([77, 1]);
  expect(texts()).toContainEqual(expect.stringContaining("other versions of its models"));
});

it("says within a session that the server is not Running any more, and that it is again", async () => {
  const { values, texts } = bound(await reader(put(1)));
  const textsAt = async (state: number) => {
    server.nodes.set("i=2259", dataValue({ value: variant(6, i32(state)) }));
    aheadMs += 31_000;
    await values();
    return texts();
  };
  await expect.poll(() => textsAt(4)).toContainEqual(expect.stringContaining("the server says that it is Shutdown, not Running"));
  await expect.poll(() => textsAt(0)).not.toContainEqual(expect.stringContaining("not Running"));
});

/** Its methods without their object. */
const bound = (one: Reader) => ({
  readings: () => one.readings(),
  values: () => one.values(),
  texts: () => one.texts(),
  session: one.session,
});

describe("a node that goes and comes back", () => {
  it("has its value again at once, and comes by subscription again", async () => {
    const [key = ""] = put(1);
    const { values } = bound(await reader([key]));
    expect(await values()).toEqual([0]);
    far.remove(key);
    await expect.poll(values).toEqual(["not_found"]);
    server.nodes.set(key, doubleValue(5));
    expect(await values()).toEqual([5]);
    await expect.poll(async () => [...(await values()), far.wanted.length], { timeout: 5000, interval: 100 }).toEqual([5, 2]);
    const reads = server.count("Read");
    far.set(key, 6);
    await expect.poll(values).toEqual([6]);
    expect(server.count("Read")).toBe(reads);
  });

  it("without a word of the server is found by the audit, which warns and watches it again", async () => {
    far.tellsDeletion = false;
    const keys = put(3);
    const { values, texts } = bound(await reader(keys, { settings: { audit_interval: 300 } }));
    expect(await values()).toEqual([0, 1, 2]);
    far.remove(KEY(1));
    far.set(KEY(1), 41);
    await expect.poll(values, { timeout: 8000, interval: 50 }).toEqual([0, 41, 2]);
    expect(texts()).toContainEqual(
      expect.stringMatching(/^1 variable had another value on the server than came by subscription.*ns=2;s=v1/),
    );
    far.set(KEY(1), 42);
    await expect.poll(values).toEqual([0, 42, 2]);
    const textsNow = () => values().then(texts);
    await expect.poll(textsNow, { timeout: 8000, interval: 50 }).toEqual([]);
  });

  it("is not called wrong by the audit while changes are on their way, or within the deadband", async () => {
    const keys = put(2);
    const { values, texts } = bound(await reader(keys, { settings: { audit_interval: 300 }, deadband: 10 }));
    await values();
    expect(far.deadbandOf(KEY(0))).toBe(10);
    for (let i = 1; i < 20; i++) {
      far.set(KEY(0), 20 * i);
      far.set(KEY(1), 1 + (i % 9));
      await values();
      await new Promise((done) => setTimeout(done, 50));
    }
    expect(texts()).toEqual([]);
    expect(far.wanted).toHaveLength(2);
  });
});

describe("a subscription", () => {
  it("brings changes of a server that accepts one Publish at a time", async () => {
    far.maxPublish = 1;
    const keys = put(3);
    const { values, texts } = bound(await reader(keys));
    expect(await values()).toEqual([0, 1, 2]);
    const reads = server.count("Read");
    for (let i = 1; i <= 5; i++) {
      far.set(KEY(1), 10 * i);
      await expect.poll(values).toEqual([0, 10 * i, 2]);
    }
    expect(server.count("Read")).toBe(reads);
    expect(far.created).toBe(1);
    expect(texts()).toEqual([]);
  });

  it("that the server has forgotten is created again, and its values hold meanwhile", async () => {
    const { values, texts } = bound(await reader(put(3)));
    await values();
    far.lose();
    far.set(KEY(0), 8);
    await expect.poll(values).toEqual([8, 1, 2]);
    await expect.poll(() => far.items).toBe(3);
    expect([far.created, far.items]).toEqual([2, 3]);
    expect(texts()).toEqual([]);
  });

  it("that is forgotten for the third time within a minute is left alone, with one warning", async () => {
    far.isForgetful = true;
    const { values, texts } = bound(await reader(put(3)));
    let i = 0;
    const step = async (): Promise<number> => {
      far.set(KEY(0), ++i);
      expect((await values()).slice(1)).toEqual([1, 2]);
      return far.created;
    };
    await expect.poll(step, { timeout: 5000 }).toBe(3);
    await expect.poll(texts).toEqual([expect.stringContaining("the server does not keep a subscription (BadNoSubscription")]);
    await expect.poll(values).toEqual([i, 1, 2]);
    for (let more = 0; more < 5; more++) expect(await step()).toBe(3);
  });

  it("that ends while its items are created is lost once, though Publish says so when there is another", async () => {
    far.forgets = 1;
    const { values, texts } = bound(await reader(put(3)));
    const untilMs = Date.now() + 500;
    for (let i = 1; Date.now() < untilMs; i++) {
      far.set(KEY(0), i);
      await expect.poll(values).toEqual([i, 1, 2]);
    }
    expect(far.created).toBe(2);
    expect(texts()).toEqual([]);
  });

  it("does not believe its messages where one is missing", async () => {
    const { values, readings } = bound(await reader(put(2)));
    await values();
    far.skipped = 1;
    far.set(KEY(0), 3);
    await expect
      .poll(async () => (await readings())[0])
      .toMatchObject({
        value: 3,
        earlier: [{ fault: "values_lost", detail: expect.stringContaining("a message of the server did not come") }],
      });
  });

  it("asks without a filter where the server takes none", async () => {
    far.filters = false;
    const { values } = bound(await reader(put(2), { deadband: 5 }));
    await values();
    far.set(KEY(0), 1);
    await expect.poll(values).toEqual([1, 1]);
    expect([far.deadbandOf(KEY(0)), far.items, server.count("CreateMonitoredItems")]).toEqual([0, 2, 2]);
  });
});

it("makes no text of a node id in a readout", async () => {
  const { values } = bound(await reader(put(3)));
  await values();
  const texts = vi.spyOn(NodeId.prototype, "toString");
  for (let i = 1; i <= 3; i++) {
    far.set(KEY(0), i);
    await expect.poll(values).toEqual([i, 1, 2]);
  }
  expect(texts.mock.contexts.filter((id) => (id as NodeId).namespace === 2)).toEqual([]);
});

describe("each change", () => {
  it("between two readouts is a reading of its own, with its source time", async () => {
    const one = await reader(put(2), { settings: { queue_size: 100 } });
    await one.values();
    for (let i = 1; i <= 50; i++) far.set(KEY(0), i, 1_795_000_000_000 + i);
    await expect.poll(() => server.asked.length).toBeGreaterThan(0);
    await new Promise((done) => setTimeout(done, 100));
    const [first, second] = await one.readings();
    expect(first).toMatchObject({ value: 50, sourceTime: 1_795_000_000_050 });
    expect(first?.earlier?.map((reading) => reading.quality === "good" && [reading.value, reading.sourceTime])).toEqual(
      Array.from({ length: 49 }, (_, i) => [i + 1, 1_795_000_000_001 + i]),
    );
    expect(second).not.toHaveProperty("earlier");
    expect((await one.readings())[0]).not.toHaveProperty("earlier");
  });

  it("goes to each reader of a variable", async () => {
    const keys = put(1);
    const one = await reader(keys, { settings: { queue_size: 100 } });
    const other = { ...READER, reader: "mixer" };
    const asked = await prepared(one.session, keys, other);
    await one.values();
    await one.session.read(asked, other);
    for (let i = 1; i <= 10; i++) far.set(KEY(0), i);
    await new Promise((done) => setTimeout(done, 100));
    expect((await one.readings())[0]?.earlier).toHaveLength(9);
    expect((await one.session.read(asked, other))[0]?.earlier).toHaveLength(9);
  });

  it("that the queue of 10 did not hold is named as lost, before the value that follows", async () => {
    const one = await reader(put(1));
    await one.values();
    for (let i = 1; i <= 50; i++) far.set(KEY(0), i);
    await new Promise((done) => setTimeout(done, 100));
    const [first] = await one.readings();
    expect(first).toMatchObject({ value: 50 });
    expect(first?.earlier?.slice(0, 2)).toMatchObject([
      { quality: "bad", fault: "values_lost", detail: expect.stringContaining("the server's queue of 10 values overflowed") },
      { value: 41 },
    ]);
    expect(one.texts()).toEqual([expect.stringMatching(/^the server's queue of 1 variable overflowed: .*ns=2;s=v0/)]);
  });

  it("that the queue did not hold is counted where the server says how many it dropped", async () => {
    far.tellsOverflows = true;
    const one = await reader(put(1), { settings: { queue_size: 10 } });
    await one.values();
    const lost: (string | undefined)[] = [];
    for (const count of [50, 30]) {
      for (let i = 1; i <= count; i++) far.set(KEY(0), i);
      await new Promise((done) => setTimeout(done, 100));
      const [hole] = (await one.readings())[0]?.earlier ?? [];
      lost.push(hole?.quality === "bad" ? hole.detail : undefined);
    }
    expect(lost).toEqual([expect.stringContaining("(the server counts 40)"), expect.stringContaining("(the server counts 20)")]);
  });

  it("that came before the connection was lost is read after it, and the hole is named where the value is another one", async () => {
    const memory = new DeviceMemories().of("press");
    const keys = put(2);
    const one = await reader(keys, { ctx: { device: memory } });
    await one.values();
    far.set(KEY(0), 7);
    await new Promise((done) => setTimeout(done, 100));
    await one.session.close();
    far.set(KEY(0), 9);
    const two = await reader(keys, { ctx: { device: memory } });
    const [first, second] = await two.readings();
    expect(first).toMatchObject({
      value: 9,
      earlier: [{ value: 7 }, { fault: "values_lost", detail: expect.stringContaining("the connection was lost") }],
    });
    expect(second).toMatchObject({ value: 1 });
    expect(second).not.toHaveProperty("earlier");
  });
});

it.each([
  [Number.NaN, 100],
  [1e12, 4_000_000_000],
])("that grants an interval of %d ms and %i of them for a sign of life keeps its session", async (intervalMs, count) => {
  server.answers.set("CreateSubscription", () => all(u32(9), f64(intervalMs), u32(1000), u32(count)));
  const { values, session } = bound(await reader(put(2), { ctx: { timeouts: { nameMs: 500, connectMs: 500, answerMs: 500 } } }));
  for (let i = 0; i < 3; i++) {
    expect(await values()).toEqual([0, 1]);
    await new Promise((done) => setTimeout(done, 50));
  }
  expect(session.alive()).toBe(true);
});
