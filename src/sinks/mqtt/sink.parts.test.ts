import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect } from "mqtt";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { startBroker } from "../../../test/support/broker.ts";
import { freePort } from "../../../test/support/free-port.ts";
import { connack5, puback, startRawBroker, topicOf } from "../../../test/support/raw-broker.ts";
import { sourceReport } from "../../../test/support/source-report.ts";
import { plainLayout, plainReadout } from "../../buffer/testing/readouts.ts";
import { prepareSink } from "../../delivery/prepare-sink.ts";
import { type Context, silentLog } from "../../model/context.ts";
import type { SourceReport } from "../../model/report.ts";
import { textsOf } from "../../model/testing/warnings.ts";
import { SINKS } from "../index.ts";
import type { PublishedLoss, Sink, SinkBatch, SinkMemory } from "../sink.ts";
import { openMemory } from "./memory.ts";

const PUBLISH = 3;
const ctx: Context = { signal: new AbortController().signal, log: silentLog };
let cleanups: (() => Promise<unknown>)[];
beforeEach(() => {
  cleanups = [];
});
afterEach(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

async function open(port: number, details: object = {}, settings: object = {}, secrets = {}, memory?: SinkMemory): Promise<Sink> {
  const uuid = "7e0d3c5a-0000-4000-8000-000000000001";
  const spec = {
    uuid,
    name: "broker",
    type: "mqtt",
    details: { type: "mqtt", host: "127.0.0.1", port, topic: "plant/{source}", ...details },
    settings,
    secrets,
    publishIntervalUnit: "seconds" as const,
  };
  const prepared = await prepareSink(spec, SINKS);
  const sink = await prepared.kind.open(
    { uuid, name: spec.name, details: prepared.details, settings: prepared.settings, secrets, memory },
    ctx,
  );
  cleanups.push(() => sink.close());
  return sink;
}

const batchOf = (variables: number, readouts = 1, layout = plainLayout(variables)): SinkBatch => ({
  id: "e-1-1",
  layout,
  readouts: Array.from({ length: readouts }, (_, i) => plainReadout(variables, i)),
  backlog: false,
});

const sourceOf = (name: string, more: Partial<SourceReport> = {}): SourceReport =>
  sourceReport(name, { layout: plainLayout(2, { scalar: "float32" }, name), ...more });

describe("topics", () => {
  test("with {variable}: one value a message, each on its own topic", async () => {
    const broker = await startBroker();
    cleanups.push(() => broker.stop());
    const sink = await open(broker.port, { topic: "plant/{source}/{variable}" });
    expect(await sink.write(batchOf(30, 3), ctx)).toEqual({ refused: 0 });
    const ofValues = () => broker.received.filter((m) => m.topic.startsWith("plant/press-1/"));
    // It says what it has taken after it has acknowledged it.
    await expect.poll(() => ofValues().length).toBe(90);
    const values = ofValues();
    expect(new Set(values.map((m) => m.topic)).size).toBe(30);
    expect(JSON.parse(values.filter((m) => m.topic === "plant/press-1/v7")[2]?.payload ?? "").readouts[0].values).toEqual({ v7: 9 });
  });

  test.each([
    ["plant/{source}/{variable}", {}],
    ["plant/{source}", { max_packet_bytes: 1024 }],
  ])("%s: batches of a source that take several messages do not mix", async (topic, settings) => {
    const broker = await startBroker();
    cleanups.push(() => broker.stop());
    const sink = await open(broker.port, { topic }, { in_flight: 5, ...settings });
    const layout = plainLayout(40);
    const batches = Array.from({ length: 4 }, (_, batch): SinkBatch => {
      return { id: `e-${batch}`, layout, readouts: Array.from({ length: 5 }, (_, i) => plainReadout(40, batch * 5 + i)), backlog: false };
    });
    broker.hold(true);
    const writing = Promise.all(batches.map((batch) => sink.write(batch, ctx)));
    await expect.poll(broker.held).toBe(5);
    broker.hold(false);
    expect(await writing).toEqual(batches.map(() => ({ refused: 0 })));
    const byVariable = new Map<string, number[]>();
    for (const { topic: at, payload } of broker.received)
      if (!at.endsWith("/status"))
        for (const { values } of JSON.parse(payload).readouts)
          for (const [name, value] of Object.entries<number>(values)) byVariable.set(name, [...(byVariable.get(name) ?? []), value]);
    expect(byVariable.size).toBe(40);
    for (const values of byVariable.values()) expect(values).toEqual(Array.from({ length: 20 }, (_, i) => (values[0] ?? 0) + i));
  });

  test("that two variables would share go to the first of them; the other's values are refused by name, and a warning says which template", async () => {
    const broker = await startBroker();
    cleanups.push(() => broker.stop());
    const sink = await open(broker.port, { topic: "plant/{source}-{variable}" });
    expect(textsOf(sink.warnings)).toContainEqual(expect.stringMatching(/the same topic twice.*put a \/ between/));
    const [mine, other] = [plainLayout(1, undefined, "a-v0"), plainLayout(1, undefined, "a")];
    const renamed = { ...other, variables: other.variables.map((one) => ({ ...one, uuid: "other", name: "v0-v0" })) };
    expect(await sink.write(batchOf(1, 2, mine), ctx)).toEqual({ refused: 0 });
    expect(await sink.write(batchOf(1, 2, renamed), ctx)).toEqual({
      refused: 2,
      detail: expect.stringMatching(/the topic of v0-v0 of a, is that of v0 of a-v0/),
    });
    expect(broker.received.filter(({ topic }) => topic === "plant/a-v0-v0")).toHaveLength(2);
  });

  test("that cannot be published to are refused before anything is connected", async () => {
    await expect(open(1, { topic: "$SYS/x" })).rejects.toMatchObject({
      condition: "configuration_invalid",
      message: expect.stringMatching(/^topic: /),
    });
  });
});

describe("retained", () => {
  test("status and metadata of each source, published when they change, cleared when it is renamed", async () => {
    const broker = await startBroker();
    cleanups.push(() => broker.stop());
    const memory = openMemory({ folder: undefined, uuid: "sink", endpoint: "broker", log: silentLog });
    const sink = await open(broker.port, {}, {}, {}, memory);
    await sink.describe?.([sourceOf("a"), sourceOf("b")], ctx);
    expect([...broker.retained.keys()].sort()).toEqual([
      "plant/meta/a",
      "plant/meta/b",
      "plant/status",
      "plant/status/a",
      "plant/status/b",
    ]);
    expect(JSON.parse(broker.retained.get("plant/status/a") ?? "")).toMatchObject({
      v: 1,
      source: "a",
      source_id: "source-a",
      state: "OK",
      reason: null,
    });
    expect(JSON.parse(broker.retained.get("plant/meta/a") ?? "").variables[1]).toEqual({
      uuid: "variable-1",
      name: "v1",
      type: "float32",
      unit: null,
      address: "holding:1",
      comment: null,
    });
    const before = broker.received.length;
    await sink.describe?.(
      [sourceOf("a", { status: { ...sourceOf("a").status, last_readout_at: "2026-11-20T09:00:01Z" } }), sourceOf("b")],
      ctx,
    );
    expect(broker.received.length).toBe(before);
    const failed: Partial<SourceReport> = {
      status: {
        last_readout_at: null,
        configured_variables: 2,
        state: { type: "ERROR", reason: { type: "TIMEOUT" }, error_at: "2026-11-20T09:00:02Z" },
      },
      error: { reason: { type: "TIMEOUT" }, condition: null, detail: "no answer within 3000 ms" },
    };
    await sink.describe?.([sourceOf("a", failed), sourceOf("b")], ctx);
    expect(broker.received.slice(before).map((m) => m.topic)).toEqual(["plant/status/a"]);
    expect(JSON.parse(broker.retained.get("plant/status/a") ?? "")).toMatchObject({
      state: "ERROR",
      reason: { type: "TIMEOUT" },
      detail: "no answer within 3000 ms",
    });
    await sink.close();
    const again = await open(broker.port, {}, {}, {}, memory);
    await again.describe?.([sourceOf("renamed")], ctx);
    expect([...broker.retained.keys()].sort()).toEqual(["plant/meta/renamed", "plant/status", "plant/status/renamed"]);
    await again.forget?.(ctx);
    expect([...broker.retained.keys()]).toEqual([]);
  });

  test("online while open, offline by the last will or by closing", async () => {
    const broker = await startBroker();
    cleanups.push(() => broker.stop());
    const first = await open(broker.port);
    expect(broker.retained.get("plant/status")).toBe('{"state":"online"}');
    broker.drop();
    await first.lost;
    await expect.poll(() => broker.retained.get("plant/status")).toBe('{"state":"offline"}');
    const second = await open(broker.port);
    expect(broker.retained.get("plant/status")).toBe('{"state":"online"}');
    await second.close();
    expect(broker.retained.get("plant/status")).toBe('{"state":"offline"}');
  });
});

describe("refusals", () => {
  test("for missing rights leave the values to be held, with the broker's words", async () => {
    const broker = await startRawBroker((packet, socket) => {
      if (packet.type === 1) socket.write(connack5(0));
      if (packet.type === PUBLISH) socket.write(puback(packet, packet.body.includes("status") ? undefined : 135));
    });
    cleanups.push(() => broker.stop());
    const sink = await open(broker.port);
    const hold = { forMs: 600_000, next: "drop" };
    const parts = [0, 1].map((readout) => ({ readout, from: 0, to: 4 }));
    const detail = expect.stringContaining("Not authorized (code 135)");
    expect(await sink.write(batchOf(4, 2), ctx)).toEqual({ refused: 0, refusals: [{ parts, detail, hold }] });
    // Of what comes next nothing is published, but for what is tried again.
    const publishes = () => broker.packets.filter((p) => p.type === PUBLISH && !p.body.includes("status")).length;
    expect(await sink.write(batchOf(4, 2), ctx)).toEqual({ refused: 0, refusals: [{ parts, detail, hold }] });
    expect(publishes()).toBe(1);
    await sink.write({ ...batchOf(4, 2), isRetry: true }, ctx);
    expect(publishes()).toBe(2);
    expect(textsOf(sink.warnings)).toEqual([]);
  });

  test("of the status are warnings", async () => {
    const broker = await startRawBroker((packet, socket) => {
      if (packet.type === 1) socket.write(connack5(0));
      if (packet.type === PUBLISH) socket.write(puback(packet, packet.body.includes("status") ? 135 : undefined));
    });
    cleanups.push(() => broker.stop());
    const sink = await open(broker.port);
    expect(textsOf(sink.warnings)).toEqual([expect.stringContaining("plant/status: Not authorized")]);
    expect(await sink.write(batchOf(1), ctx)).toEqual({ refused: 0 });
  });

  test("of status, metadata and losses end with the connection open: what is taken again has no note, nor what is not used any more", async () => {
    const denied = new Set(["plant/status", "plant/status/a", "plant/meta/a", "plant/status/b", "plant/gap"]);
    const broker = await startRawBroker((packet, socket) => {
      if (packet.type === 1) socket.write(connack5(0));
      if (packet.type === PUBLISH) socket.write(puback(packet, denied.has(topicOf(packet)) ? 135 : undefined));
    });
    cleanups.push(() => broker.stop());
    const realNow = performance.now.bind(performance);
    let skewMs = 0;
    vi.spyOn(performance, "now").mockImplementation(() => realNow() + skewMs);
    cleanups.push(async () => void vi.restoreAllMocks());
    const sink = await open(broker.port);
    let changes = 0;
    sink.watchWarnings?.(() => changes++);
    const loss: PublishedLoss = { id: "1", reason: "too_old", from: 1, to: 2, values: 3 };
    const notesOf = () => textsOf(sink.warnings).map((text) => / to (\S+): Not authorized/.exec(text)?.[1]);
    const describe = (...sources: readonly SourceReport[]) => sink.describe?.(sources, ctx);
    await describe(sourceOf("a"), sourceOf("b"));
    expect(await sink.publishLoss?.(loss, ctx)).toBe(false);
    expect(notesOf().sort()).toEqual([...denied].sort());
    const published = () => broker.packets.filter(({ type }) => type === PUBLISH).length;
    const before = published();
    await describe(sourceOf("a"), sourceOf("b"));
    expect(published()).toBe(before);
    denied.clear();
    denied.add("plant/status/a");
    changes = 0;
    skewMs += 10_000;
    await describe(sourceOf("a"), sourceOf("b"));
    expect(await sink.publishLoss?.(loss, ctx)).toBe(true);
    expect(notesOf()).toEqual(["plant/status/a"]);
    expect(changes).toBeGreaterThan(0);
    await describe(sourceOf("b"));
    expect(textsOf(sink.warnings)).toEqual([]);
    // As after a fresh start: each topic has been taken once, and nothing else is published for the same sources.
    const healed = published();
    await describe(sourceOf("b"));
    expect(published()).toBe(healed);
    expect(broker.sockets).toHaveLength(1);
  });

  test("a broker without retained messages gets none", async () => {
    const broker = await startRawBroker((packet, socket) => {
      if (packet.type === 1) socket.write(connack5(0, [0x25, 0]));
      if (packet.type === PUBLISH) socket.write(puback(packet));
    });
    cleanups.push(() => broker.stop());
    const sink = await open(broker.port);
    await sink.describe?.([sourceOf("a")], ctx);
    expect(broker.packets.filter((p) => p.type === PUBLISH)).toEqual([]);
    expect(textsOf(sink.warnings).join()).toMatch(/no retained messages/);
  });

  test("no packet is above the broker's maximum; a value that alone exceeds it is refused", async () => {
    const maximum = 1500;
    const broker = await startRawBroker((packet, socket) => {
      if (packet.type === 1) socket.write(connack5(0, [0x27, 0, 0, maximum >> 8, maximum & 0xff]));
      if (packet.type === PUBLISH) socket.write(puback(packet));
    });
    cleanups.push(() => broker.stop());
    const sink = await open(broker.port);
    expect(await sink.write(batchOf(20, 50), ctx)).toEqual({ refused: 0 });
    const sizes = broker.packets.filter((p) => p.type === PUBLISH).map((p) => p.body.length + 3);
    expect(sizes.length).toBeGreaterThan(5);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(maximum);
    expect(await sink.write(batchOf(500), ctx)).toEqual({ refused: 0 });
    const text = plainLayout(2, { scalar: "string" });
    const long = {
      time: 0,
      spanMs: 0,
      clockSynced: true,
      readings: ["x".repeat(2000), "y"].map((value) => ({ quality: "good" as const, value })),
    };
    const mixed = { id: "e-2-2", layout: text, readouts: [long], backlog: false };
    expect(await sink.write(mixed, ctx)).toEqual({ refused: 1, detail: expect.stringContaining("1500 bytes") });
  });
});

test("user name and password go to the broker; a wrong one is told without it", async () => {
  const broker = await startBroker({ user: { name: "line", password: "s3cret-word" } });
  cleanups.push(() => broker.stop());
  const sink = await open(broker.port, {}, { username: "line" }, { password: "s3cret-word" });
  expect(await sink.write(batchOf(1), ctx)).toEqual({ refused: 0 });
  const refused = open(broker.port, {}, { username: "line" }, { password: "an0ther-word" });
  await expect(refused).rejects.toMatchObject({ reason: { type: "UNKNOWN" }, message: expect.stringMatching(/Not authorized \(code 5\)/) });
  await expect(refused).rejects.not.toMatchObject({ message: expect.stringContaining("an0ther-word") });
});

const MOSQUITTO = "/usr/sbin/mosquitto";
const hasMosquitto = await new Promise<boolean>((done) => {
  const child = spawn(MOSQUITTO, ["-h"], { stdio: "ignore" });
  child.once("error", () => done(false));
  child.once("exit", () => done(true));
});

test("a password without a user is said with the command that gives one, and nothing is connected", async () => {
  const broker = await startBroker();
  cleanups.push(() => broker.stop());
  const error = await open(broker.port, {}, {}, { password: "canary" }).catch((reason: unknown) => reason);
  expect(String(error)).toContain("there is a password for this sink, and no user: sudo collector sink set broker username=USER");
  expect([String(error).includes("canary"), broker.connections()]).toEqual([false, 0]);
});

describe.skipIf(!hasMosquitto && process.env["COLLECTOR_REQUIRE_PARTS"] !== "1")("with mosquitto", () => {
  test("MQTT 5: values, retained status, and rights that it denies", async () => {
    const folder = await mkdtemp(path.join(tmpdir(), "mosquitto-"));
    const port = await freePort();
    await writeFile(path.join(folder, "acl"), "topic readwrite plant/#\n", { mode: 0o600 });
    await writeFile(
      path.join(folder, "conf"),
      `user root\nlistener ${port} 127.0.0.1\nallow_anonymous true\nacl_file ${folder}/acl\nmax_inflight_messages 5\n`,
    );
    const child = spawn(MOSQUITTO, ["-c", path.join(folder, "conf")], { stdio: "ignore" });
    cleanups.push(async () => {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      await rm(folder, { recursive: true, force: true });
    });
    await expect
      .poll(
        async () => {
          const sink = await open(port).catch(() => undefined);
          await sink?.close();
          return sink !== undefined;
        },
        { timeout: 5000 },
      )
      .toBe(true);
    const reader = connect(`mqtt://127.0.0.1:${port}`, { protocolVersion: 5, reconnectPeriod: 0 });
    cleanups.push(() => reader.endAsync(true));
    const received = new Map<string, string>();
    const properties = new Map<string, unknown>();
    reader.on("message", (topic, payload, packet) => {
      received.set(topic, payload.toString());
      properties.set(topic, { ...packet.properties?.userProperties });
    });
    await new Promise<void>((done) => reader.once("connect", () => done()));
    await reader.subscribeAsync("plant/#", { qos: 1 });
    const sink = await open(port);
    expect(textsOf(sink.warnings)).toEqual([]);
    // What the broker takes at once (max_inflight_messages) on the way, as much that waits behind it, and as much that is older.
    expect(sink.inFlight).toBe(5 * 3);
    expect(sink.older?.().writes).toBe(5);
    expect(await sink.write(batchOf(3, 2), ctx)).toEqual({ refused: 0 });
    await expect.poll(() => JSON.parse(received.get("plant/press-1") ?? "{}").readouts?.[1]?.values).toEqual({ v0: 1, v1: 2, v2: 3 });
    expect(received.get("plant/status")).toBe('{"state":"online"}');
    const bare = await open(port, { topic: "plant/{source}/{variable}", client_id: "bare" }, { payload: "raw" });
    expect(await bare.write(batchOf(2), ctx)).toEqual({ refused: 0 });
    await expect.poll(() => received.get("plant/press-1/v1")).toBe("1");
    const said = { ts: "2027-01-15T08:00:00.000Z", q: "good", clock: "synchronised" };
    expect(properties.get("plant/press-1/v1")).toEqual(said);
    const denied = await open(port, { topic: "elsewhere/{source}", client_id: "denied" });
    expect(await denied.write(batchOf(3, 2), ctx)).toMatchObject({
      refused: 0,
      refusals: [{ detail: expect.stringContaining("code 135") }],
    });
  });
});
