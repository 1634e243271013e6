import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import manifest from "../../package.json" with { type: "json" };
import { textsOf } from "../../src/model/testing/warnings.ts";
import { type DocumentPlatform, KEY, sinkRecord, sourceRecord, startDocumentPlatform } from "../platforms/document-platform.ts";
import { startBroker } from "../support/broker.ts";
import { startBuiltCollector } from "../support/built-collector.ts";
import type { CollectorProcess } from "../support/collector-process.ts";

/** The program as it is shipped, on a platform that has only the document, in its oddest legal form. */

const COLLECTOR = "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a02";
const OTHER = "7a2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a03";
const WITHIN = { timeout: 30_000, interval: 100 };

let folder: string;
let platform: DocumentPlatform;
let plant: Awaited<ReturnType<typeof startModbusPlant>>;
let broker: Awaited<ReturnType<typeof startBroker>>;
let collector: CollectorProcess;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "document-platform-"));
  plant = await startModbusPlant({ units: new Map([[1, { holding: new Map([[0, 42]]) }]]) });
  broker = await startBroker({});
  platform = await startDocumentPlatform({
    pageSize: 1,
    emptyPages: 1,
    unknownFields: true,
    reversed: true,
    unfiltered: true,
    unknownRoute: 401,
    keyForm: "bearer",
  });
  const modbus = { type: "modbus_tcp", host: "127.0.0.1", port: plant.port };
  platform.sources = [
    sourceRecord(OTHER, "elsewhere"),
    sourceRecord(COLLECTOR, "press-1", { details: modbus }),
    sourceRecord(COLLECTOR, "press-2", { type: "s7", details: modbus }),
    sourceRecord(COLLECTOR, "moulder", { type: "vendor_b", details: { type: "vendor_b", host: "h", port: 1, machine: "C9" } }),
    sourceRecord(COLLECTOR, "bare", { details: null }),
  ];
  platform.sinks = [
    sinkRecord(COLLECTOR, "broker", {
      details: { type: "mqtt", host: "127.0.0.1", port: broker.port, client_id: "c", topic: "plant/{source}" },
    }),
    sinkRecord(COLLECTOR, "cloud", { type: "platform", details: { type: "platform" } }),
  ];
  mkdirSync(join(folder, "variables"));
  for (const name of ["press-1", "press-2"])
    writeFileSync(join(folder, "variables", `${name}.csv`), "name;address;type\nlevel;holding:0;uint16\n");
  writeFileSync(join(folder, "key"), `${KEY}\n`);
  collector = await startBuiltCollector({
    dir: folder,
    settings: { collector: COLLECTOR, api: { url: platform.url, key_file: join(folder, "key"), poll_interval: "500ms" } },
  });
}, 60_000);

afterAll(async () => {
  await collector.stop();
  await platform.close();
  await broker.stop();
  await plant.close();
  rmSync(folder, { recursive: true, force: true });
});

const valuesOf = (source: string): object | undefined => {
  const payload = broker.received.findLast(({ topic }) => topic === `plant/${source}`)?.payload;
  const { readouts = [] } = JSON.parse(payload ?? "{}") as { readonly readouts?: readonly { readonly values: object }[] };
  return readouts.at(-1)?.values;
};

test("what it describes is read and published, with the variables of local files", async () => {
  for (const source of ["press-1", "press-2"]) await expect.poll(() => valuesOf(source), WITHIN).toEqual({ level: 42 });
  const spans = broker.received.flatMap(({ payload }) => payload.match(/"span_ms":[^,]*/g) ?? []);
  expect(spans).not.toEqual([]);
  for (const span of spans) expect(span).toMatch(/^"span_ms":\d+(\.\d{1,3})?$/);
  const { sources } = await collector.status();
  expect(sources.map(({ name }) => name)).toEqual(["press-1", "press-2", "moulder", "bare"]);
  expect(sources).toMatchObject([
    { warnings: [] },
    { warnings: [{ code: "types_contradict", text: expect.stringContaining('details.type is "modbus_tcp", which is taken') }] },
    {
      error: {
        condition: "configuration_invalid",
        detail: expect.stringMatching(/details\.machine.*details\.initialization_mode/s),
      },
    },
    { error: { condition: "details_missing" } },
  ]);
});

test("what it does not offer is one sentence each in status, with what to do", async () => {
  await expect
    .poll(async () => (await collector.status()).sinks.find(({ name }) => name === "cloud"), WITHIN)
    .toMatchObject({
      state: "ERROR",
      error: { detail: expect.stringMatching(/does not offer to take values .*of the type mqtt or opcua instead/) },
    });
  const { config } = await collector.status();
  expect(config.ok).toBe(true);
  const notes = textsOf(config.warnings).filter((text) => text.startsWith("the API"));
  expect(notes).toEqual([
    expect.stringContaining("does not offer variables"),
    expect.stringContaining("does not give out passwords"),
    expect.stringContaining("does not take statuses back"),
  ]);
});

test("it is asked for nothing that the document does not have but the probe, and in one form of the key", () => {
  const asked = platform.asked.filter(({ path }) => !path.startsWith("/v2/"));
  // The configuration's in both forms, and the platform sink's with each try: eight in the first minute at the most.
  expect(asked.length).toBeLessThanOrEqual(2 + 8 * 2);
  // The probe and the first list of each.
  expect(platform.asked.filter(({ authorization }) => authorization === KEY).length).toBeLessThanOrEqual(2 + 8 * 2);
  expect(platform.asked.length).toBeGreaterThan(20);
  expect(new Set(platform.asked.map(({ userAgent }) => userAgent))).toEqual(new Set([`collector/${manifest.version}`]));
  expect(platform.violations).toEqual([]);
  expect(collector.log.join("\n")).not.toContain(KEY);
});

test("an outage of all of it heals: what runs goes on, and a change afterwards is taken", async () => {
  platform.instead = (_, response) => Boolean(response.writeHead(503, { "retry-after": "1" }).end());
  await expect.poll(async () => (await collector.status()).config.ok, WITHIN).toBe(false);
  const count = broker.received.length;
  await expect.poll(() => broker.received.length, WITHIN).toBeGreaterThan(count);
  platform.sinks = platform.sinks.filter((sink) => sink["name"] !== "cloud");
  platform.instead = undefined;
  await expect.poll(async () => (await collector.status()).sinks.map(({ name }) => name), WITHIN).toEqual(["broker"]);
  const { config, sources } = await collector.status();
  expect(config).toMatchObject({ ok: true, origin: "api" });
  expect(sources[0]?.status.state.type).toBe("OK");
});
