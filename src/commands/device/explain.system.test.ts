import { expect, it, onTestFinished } from "vitest";
import type { AnyDriver } from "../../../drivers/driver.ts";
import fins from "../../../drivers/fins/driver.ts";
import { startSimulator as startFins } from "../../../drivers/fins/simulator.ts";
import { type Cell, registersOf, startFramed } from "../../../drivers/modbus_tcp/simulator.ts";
import { startSimulator as startOpcua } from "../../../drivers/opcua/simulator.ts";
import s7 from "../../../drivers/s7/driver.ts";
import { startSimulator as startS7 } from "../../../drivers/s7/simulator.ts";
import { startSimulator as startS7plus } from "../../../drivers/s7plus/simulator.ts";
import { startSimulator as startVendorA } from "../../../drivers/vendor_a/simulator.ts";
import { startFileSimulator } from "../../../drivers/vendor_a/simulator-controllers.ts";
import { startOmronSimulator } from "../../../drivers/vendor_a/simulator-omron.ts";
import { plant, source, variable } from "../../../test/support/agent.ts";
import { askedAgent } from "../../../test/support/asked-agent.ts";
import { lastGoodFile } from "../../api/embedded.ts";
import { saveLastGood } from "../../api/last-good.ts";
import { COLLECTOR, temporaryFolder } from "../../api/server/testing.ts";
import { silentLog } from "../../model/context.ts";
import type { LiveValue } from "../../model/source-insight.ts";
import { SessionHost } from "../../threads/session/host.ts";
import { remoteDriver } from "../../threads/session/remote-drivers.ts";
import { EXIT } from "../io.ts";
import { runCommandWith, settingsFile } from "../testing.ts";
import { placeAt } from "./explain.ts";

function here() {
  const folder = temporaryFolder();
  const config = settingsFile(folder, {});
  return { folder, run: (...words: string[]) => runCommandWith({}, ...words, "--config", config) };
}

const sink = {
  uuid: "1c6d2fae-7b63-4a8f-8b54-2f1d3f2e5b22",
  name: "hall-3",
  type: "mqtt",
  endpoint: "broker:1883",
  state: "OK" as const,
  since: "2026-11-20T07:00:00.000Z",
  error: null,
  next_retry_at: null,
  warnings: [],
  ledger: { accepted: 5, delivered: 3, unconfirmed: 0, filtered: 0, pending: 2, dropped: {}, delivered_unstored: 0 },
};

const lab = { ...sink, uuid: "2d7e30bf-8c74-4b90-9c65-303e403f6c33", name: "lab", filter: { units: ["bar"] } };

/** 21.5 as a machine with the words the other way round has it. */
const [high = 0, low = 0] = registersOf("float32", 21.5);
const holding = new Map([low, high, 235].entries());

it("shows from the address to each sink how a value comes about, over the connection that is there", async () => {
  const { folder, run } = here();
  const device = await plant({ units: new Map([[1, { holding }]]) });
  const { agent } = await askedAgent(folder, {}, { sinks: [sink, lab] });
  const variables = [
    variable(1, 1, "holding:0", { name: "temperature", type: "float32", unit: "°C" }),
    variable(1, 2, "holding:2", { name: "pressure", scaling: { factor: 0.1, offset: 1 }, unit: "bar" }),
    variable(1, 3, "holding:50", { name: "gone" }),
    variable(1, 4, "nowhere", { name: "wrong" }),
  ];
  await agent.apply([source(1, device.port, { variables })]);
  await saveLastGood(lastGoodFile(folder), {
    collector: COLLECTOR,
    fetchedAt: "2026-11-20T09:00:00.000Z",
    sources: [],
    sinks: [
      {
        uuid: sink.uuid,
        name: sink.name,
        type: "mqtt",
        collector: COLLECTOR,
        details: { type: "mqtt", host: "broker", topic: "hall/{source}/{variable}" },
      },
    ] as never,
    variables: [],
    secrets: {},
    areSecretsAwaited: true,
    revision: null,
  });
  const words = ["explain", "machine-1"];
  const json = await run(...words, "temperature", "--json");
  expect([json.code, json.err]).toEqual([EXIT.good, ""]);
  const found = JSON.parse(json.out);
  const bytes = [low, high].map((register) => register.toString(16).padStart(4, "0")).join("");
  expect(found).toMatchObject({ bytes, request: expect.stringContaining("holding"), scaling: null, set_aside: null });
  expect(found.orders.map(({ order, configured }: { order: string; configured: boolean }) => [order, configured])).toEqual([
    ["ABCD", true],
    ["BADC", false],
    ["CDAB", false],
    ["DCBA", false],
  ]);
  expect(found.orders[2].value).toBe(21.5);
  expect(found.variable.value).toBe(found.orders[0].value);
  expect(found.now).toBe(found.orders[0].value);
  expect(found.looks_like).toBeNull();
  expect(found.sinks).toMatchObject([
    { name: "hall-3", place: "topic hall/machine-1/temperature", pending: 2, note: null },
    { name: "lab", note: "left out by the filter of this sink" },
  ]);

  const text = (await run(...words, "temperature")).out;
  expect(text).toMatch(
    /\n {2}Address: {3}holding:0\n {2}Type: {6}float32, in °C\n {2}Request: .*\n {2}Bytes: {5}(?:[0-9a-f]{2} ){3}[0-9a-f]{2}\n {2}Now: {7}\S+, read once with the bytes\n/,
  );
  expect(text).toMatch(/\nBYTE ORDER +VALUE\nABCD +\S+ +configured\n[^\n]*\nCDAB +21\.5\n/);
  expect(text).toMatch(
    /\nhall-3 +mqtt +OK +topic hall\/machine-1\/temperature +2\nlab +mqtt +OK +left out by the filter of this sink +2\n$/,
  );
  const scaled = (await run(...words, "pressure")).out;
  expect(scaled).toMatch(/\n {2}Raw value: 235\n {2}Scaling: {3}× 0\.1 \+ 1\n {2}Value: {5}24\.5 bar\n {2}Quality: {3}good/);
  expect(scaled).toContain("RAW VALUE");
  expect(scaled).toContain("\n  Now:       235, before scaling, read once with the bytes\n");

  const gone = await run(...words, "gone");
  expect([gone.code, gone.out]).toEqual([
    EXIT.variableBad,
    expect.stringMatching(/Set aside: not_found.*\n.*Value: +none: not_found.*\n {2}Cause: .*\n {2}Next step: /s),
  ]);
  expect(await run(...words, "wrong")).toMatchObject({
    code: EXIT.variableBad,
    out: expect.stringContaining("Set aside: address_invalid"),
  });
  expect(await run(...words, "speed")).toMatchObject({ code: EXIT.usage, err: expect.stringContaining("has no variable speed") });
  expect(await run("explain", "machine-9", "v")).toMatchObject({ code: EXIT.usage, err: expect.stringContaining("it reads machine-1") });
  expect(device.accepted()).toBe(1);
});

it.each([{}, { framing: "rtu" }] as const)("shows and plans records of a file and registers of 32 bits (%j)", async (options) => {
  const { folder, run } = here();
  const simulator = await startFramed(options);
  onTestFinished(() => simulator.close());
  const variables = simulator.variables
    .filter(({ address }) => /^(?:file4:|holding32:)/.test(address))
    .map(({ address, type }, i) => variable(1, i, address, { name: address, type }));
  const { agent } = await askedAgent(folder);
  await agent.apply([{ ...source(1, simulator.port, { variables }), local: options }]);
  await expect.poll(() => agent.reports()[0]?.status.state.type).toBe("OK");
  for (const { name } of variables) {
    const { code, out } = await run("explain", "machine-1", name, "--json");
    const { bytes, request, variable: found } = JSON.parse(out);
    expect([name, code, found.quality, bytes]).toEqual([name, EXIT.good, "good", expect.stringMatching(/^(?:[0-9a-f]{4})+$/)]);
    expect(request, name).toContain(name.startsWith("file") ? "file 4" : "32 bits each");
  }
  expect(variables.length).toBeGreaterThan(2);
  const plan = JSON.parse((await run("plan", "machine-1", "--json")).out);
  expect(plan).toMatchObject({ variables: variables.length, set_aside: 0 });
  expect([variables.length, plan.requests]).toEqual([5, 3]);
});

it("hints at a double word that looks like a REAL, and at a word of decimal digits", async () => {
  const { folder, run } = here();
  const [upper = 0, lower = 0] = registersOf("float32", 21.5);
  // Each is another one at each readout: who asks for both must not make them repeat themselves.
  let [speeds, years] = [0, 0];
  const changing = new Map<number, Cell>([
    [0, upper],
    [1, () => lower + (++speeds % 7) * 512],
    [2, () => 0x1907 + (++years % 7) * 0x10],
  ]);
  const device = await plant({ units: new Map([[1, { holding: changing }]]) });
  const { agent } = await askedAgent(folder);
  const variables = [variable(1, 1, "holding:0", { name: "speed", type: "uint32" }), variable(1, 2, "holding:2", { name: "year" })];
  await agent.apply([source(1, device.port, { variables })]);
  const [speed, year] = await Promise.all(["speed", "year"].map((name) => run("explain", "machine-1", name)));
  expect(speed?.out).toMatch(
    /\n {2}Hint: {6}all [3-5] values are plausible as REAL \(21\.5\d*\); compare with the device, and give it the type REAL/,
  );
  expect(year?.out).toMatch(/\n {2}Hint: {6}all [3-5] values are decimal digits, so that BCD and binary cannot be told apart \(\d{4}\)/);
  const { looks_like: look } = JSON.parse((await run("explain", "machine-1", "speed", "--json")).out);
  expect(look).toMatchObject({ type: "REAL", value: expect.closeTo(21.5, 1) });
});

it("watches values, those that are meant, readout by readout", async () => {
  const { folder, run } = here();
  let n = 0;
  const device = await plant({
    units: new Map([
      [
        1,
        {
          holding: new Map([
            [0, () => ++n % 1000],
            [1, () => 7],
          ] as const),
        },
      ],
    ]),
  });
  const { agent } = await askedAgent(folder);
  const scaling = { factor: 0.5, offset: 0 };
  await agent.apply([
    source(1, device.port, {
      variables: [variable(1, 1, "holding:0"), variable(1, 2, "holding:1", { scaling }), variable(1, 3, "holding:9")],
    }),
  ]);
  const json = await run("watch", "machine-1", "--count", "2", "--json");
  const [first, second] = json.out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(first.time).not.toBe(second.time);
  expect(second.values.map(({ name, value, raw, quality }: Record<string, unknown>) => [name, value, raw, quality])).toEqual([
    ["v1", expect.any(Number), null, "good"],
    ["v2", 3.5, 7, "good"],
    ["v3", null, null, "bad"],
  ]);
  const text = await run("watch", "--filter", "v2", "--count", "1");
  expect(text.out).toMatch(
    /^machine-1 \(modbus_tcp .* every 50 ms: OK, read .* ago, .*\)\nNAME +VALUE +UNIT +QUALITY +RAW.*\nv2 +3\.5 +good +7\n\n$/,
  );
  expect(text.out).not.toContain("\u001b");
  expect(await run("watch", "--count", "0")).toMatchObject({ code: EXIT.usage });
});

it("watches for a time, ends with what was read, and with a source that fails, too", async () => {
  const { folder, run } = here();
  const device = await plant({ units: new Map([[1, { holding }]]) });
  const { agent } = await askedAgent(folder);
  await agent.apply([source(1, device.port), source(2, 1)]);
  const beganMs = performance.now();
  const { code, out } = await run("watch", "machine-1", "--for", "1s", "--json");
  expect(performance.now() - beganMs).toBeGreaterThanOrEqual(1000);
  const times = out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).time);
  expect(code).toBe(EXIT.good);
  expect(times.length).toBeGreaterThan(1);
  expect(new Set(times).size).toBe(times.length);
  // A count that comes first ends it.
  expect((await run("watch", "machine-1", "--for", "1h", "--count", "1", "--json")).out.split("\n")).toHaveLength(2);
  const failing = await run("watch", "machine-2", "--for", "300ms");
  expect([failing.code, failing.err]).toEqual([EXIT.good, expect.stringContaining("machine-2: no values, because the source fails")]);
  for (const [time, words] of [
    ["0s", /--for 0s: expected a duration above zero/],
    ["30", /--for 30: 30 has no unit: 30s is seconds/],
  ] as const)
    expect(await run("watch", "machine-1", "--for", time)).toMatchObject({ code: EXIT.usage, err: expect.stringMatching(words) });
});

/** The bytes of a REAL as a number. */
const REAL_OF: Readonly<Record<string, (bytes: Buffer) => number>> = {
  s7: (bytes) => bytes.readFloatBE(),
  // The lower word comes first.
  fins: (bytes) => Buffer.concat([bytes.subarray(2, 4), bytes.subarray(0, 2)]).readFloatBE(),
};

it.each(["s7", "fins"] as const)("shows the bytes of every kind of value that %s has, and leaves the others as they are", async (type) => {
  const { folder, run } = here();
  const simulator = await (type === "s7" ? startS7() : startFins());
  onTestFinished(() => simulator.close());
  const { agent } = await askedAgent(folder, { drivers: { [type]: { driver: async () => ({ default: type === "s7" ? s7 : fins }) } } });
  const kinds = new Map(simulator.variables.toReversed().map((one) => [one.type.toUpperCase().replace(/\d+/g, "n"), one] as const));
  const meant = [...kinds].filter(([kind]) => /^(?:BOOL|INT|DINT|REAL|LREAL|STRING\[n\]|INT\[n\])$/.test(kind));
  const variables = meant.map(([kind, { address, type: wanted }], i) => variable(1, i, address, { name: kind, type: wanted }));
  const details = simulator.details("127.0.0.1", simulator.port) as never;
  const input = source(1, simulator.port, { variables });
  await agent.apply([{ ...input, record: { ...input.record, type, details } }]);
  await expect.poll(() => agent.reports()[0]?.status.state.type).toBe("OK");
  const each = async ({ name }: { readonly name: string }) => {
    const { out, code } = await run("explain", "machine-1", name, "--json");
    const { bytes, variable: found } = JSON.parse(out);
    expect([name, code, found.quality]).toEqual([name, EXIT.good, "good"]);
    expect(bytes, name).toMatch(/^(?:[0-9a-f]{2})+$/);
    if (name === "REAL") expect(REAL_OF[type]?.(Buffer.from(bytes, "hex"))).toBeCloseTo(found.value, 4);
  };
  expect(variables.length).toBeGreaterThan(4);
  await Promise.all(variables.map(each));
  expect(agent.reports()[0]?.faults).toEqual([]);
});

/** With its sessions in the worker, as they are in the product. */
async function remoteOpcua(): Promise<AnyDriver> {
  const entry = new URL("../../threads/session/worker.ts", import.meta.url);
  const sessions = new SessionHost({ entry, workerData: {}, log: silentLog });
  onTestFinished(() => sessions.stop(5000));
  return remoteDriver((await import("../../../drivers/opcua/driver.ts")).default, sessions);
}

const vendorA = async () => (await import("../../../drivers/vendor_a/driver.ts")).default;

/** Of protocols whose values say their type: the bytes that come before the value's own, and the value. */
const BEHIND_HEAD: Readonly<Record<string, (bytes: Buffer) => unknown>> = {
  // Flags and datatype (REAL).
  s7plus: (bytes) => (bytes[1] === 0x0e ? bytes.readFloatBE(2) : undefined),
  vendor_a: (bytes) => bytes.readFloatLE(),
  // Mask, then the Variant: built-in type 10, Float.
  opcua: (bytes) => (bytes[1] === 10 ? bytes.readFloatLE(2) : undefined),
};

it.each([
  [
    "s7plus",
    async () => (await import("../../../drivers/s7plus/driver.ts")).default,
    startS7plus,
    /^(?:Bool|Int|DInt|Real|LReal|String.*)$/i,
  ],
  ["vendor_a", vendorA, startVendorA, /^(?:BOOL|INT|DINT|REAL|LREAL|STRING.*)$/i],
  ["vendor_a", vendorA, startFileSimulator, /^(?:BOOL|INT|UINT|DINT|REAL|STRING|INT\[5\])$/i],
  ["vendor_a", vendorA, startOmronSimulator, /^(?:BOOL|INT|DINT|REAL|LREAL|STRING|REAL\[3\]|BOOL\[37\])$/i],
  ["opcua", remoteOpcua, startOpcua, /^(?:bool|int16|int64|float32|float64|string|int32\[3\]|float64\[2x3\])$/i],
] as const)("shows the bytes of %s with what is around them (row %#)", async (type, driver, start, meant) => {
  const { folder, run } = here();
  const simulator = await start();
  onTestFinished(() => simulator.close());
  const { agent } = await askedAgent(folder, { drivers: { [type]: { driver: async () => ({ default: await driver() }) } } });
  const kinds = new Map(simulator.variables.toReversed().map((one) => [one.type.toUpperCase(), one] as const));
  const variables = [...kinds]
    .filter(([kind]) => meant.test(kind))
    // More are not kept at once.
    .slice(0, 8)
    .map(([kind, { address, type: wanted }], i) => variable(1, i, address, { name: kind, type: wanted }));
  const details = simulator.details("127.0.0.1", simulator.port) as never;
  const input = source(1, simulator.port, { variables });
  await agent.apply([{ ...input, record: { ...input.record, type, details } }]);
  await expect.poll(() => agent.reports()[0]?.status.state.type, { timeout: 30_000 }).toBe("OK");
  const each = async ({ name }: { readonly name: string }) => {
    const { out } = await run("explain", "machine-1", name, "--json");
    const { bytes, now, orders, variable: found } = JSON.parse(out);
    expect([name, found.quality]).toEqual([name, "good"]);
    expect(bytes, name).toMatch(/^(?:[0-9a-f]{2})+$/);
    expect([name, typeof now, Array.isArray(now)]).toEqual([name, typeof found.value, Array.isArray(found.value)]);
    expect(orders).toEqual([]);
    if (name === "REAL" || name === "FLOAT32") expect(BEHIND_HEAD[type]?.(Buffer.from(bytes, "hex"))).toBeCloseTo(now, 4);
  };
  expect(variables.length).toBeGreaterThan(2);
  await Promise.all(variables.map(each));
  expect(agent.reports()[0]?.faults).toEqual([]);
  const plan = JSON.parse((await run("plan", "machine-1", "--json")).out);
  expect(plan).toMatchObject({ variables: variables.length, set_aside: 0, first_requests: expect.anything() });
  expect(plan.requests).toBeGreaterThan(0);
});

it("does not wait for readouts of a source that fails", async () => {
  const { folder, run } = here();
  const { agent } = await askedAgent(folder);
  await agent.apply([source(1, 1)]);
  await expect.poll(() => agent.reports()[0]?.status.state.type).toBe("ERROR");
  const { code, err } = await run("watch", "machine-1", "--count", "1", "--json");
  expect([code, err]).toEqual([EXIT.sourceFailed, expect.stringContaining("machine-1: no values, because the source fails")]);
  expect(await run("explain", "machine-1", "v1")).toMatchObject({
    code: EXIT.sourceFailed,
    out: expect.stringContaining("The source fails"),
  });
});

it("reports that no service runs", async () => {
  const { run } = here();
  for (const words of [["watch"], ["explain", "a", "b"]])
    expect(await run(...words)).toMatchObject({ code: EXIT.ownFailure, out: "", err: expect.stringContaining("does not run here") });
});

it("knows where a sink puts a variable", async () => {
  const value = { name: "a/b", uuid: "u", exploration: false } as LiveValue;
  expect(await placeAt("opcua", undefined, "s", value)).toBe("/Objects/1:DataSources/1:s/1:a/b");
  expect(await placeAt("platform", undefined, "s", { ...value, exploration: true })).toBe("variable u");
  expect(await placeAt("mqtt", undefined, "s", value)).toBeNull();
  expect(await placeAt("opcua", undefined, "s", { ...value, exploration: true })).toBeNull();
});
