import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { boundOptions } from "../../src/configuration/bindings.ts";
import { silentLog } from "../../src/model/context.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import { driverContext } from "../../test/support/driver-context.ts";
import { type LineDevice, startLineDevice } from "../../test/support/plugin/line-device.ts";
import type { AnySession, DriverContext, Request } from "../driver.ts";
import odac from "../odac/driver.ts";
import { FLOW_WORDS } from "./driver.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const BROKEN = path.join(ROOT, "test/support/plugin/broken.mjs");
const SAMPLE = ["/usr/bin/python3", path.join(ROOT, "drivers/plugin/samples/line_plugin.py")];
const DETAILS = { type: "odac", host: "127.0.0.1", port: 2020, protocol_override: null };
const broken = (way: string, ...more: readonly string[]) => [process.execPath, BROKEN, way, ...more];

const settingsOf = (command: readonly string[], parameters = {}) =>
  odac.settings.parse({
    ...boundOptions("odac", { parameters }, { bindings: { odac: { plugin: { command: [...command] } } } }, () => undefined),
  });

const connect = (command: readonly string[], ctx: Partial<DriverContext> & { answerMs?: number } = {}, port = 2020) =>
  odac.connect({ details: { ...DETAILS, port }, settings: settingsOf(command), secrets: {} }, driverContext(ctx));

const requestsOf = (session: AnySession, addresses: readonly string[], type = { scalar: "uint16" } as const): readonly Request[] => {
  const settings = settingsOf(["/x"]);
  const points = addresses.map((text, index) => ({ index, ...odac.parseAddress(text, type, settings) }));
  return odac.plan(points, session.limits);
};

async function readAll(
  session: AnySession,
  addresses: readonly string[],
  ctx: DriverContext = driverContext(),
  type?: { scalar: "uint16" },
) {
  const readings = [];
  for (const request of requestsOf(session, addresses, type)) readings.push(...(await session.read(request, ctx)));
  return readings;
}

let folder: string;
let device: LineDevice;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "plugin-"));
  device = await startLineDevice({ temperature: "21.5", count: "18446744073709551615", state: "1", name: "press 7" });
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await device[Symbol.asyncDispose]();
});

describe("a plugin reads a device", () => {
  test("the sample in Python reads each type, a missing one apart, and finds all that there is", async () => {
    const session = await connect(SAMPLE, {}, device.port);
    const settings = settingsOf(SAMPLE);
    const types = { temperature: "float32", count: "uint64", state: "bool", name: "string", none: "uint16", "": "" } as const;
    const points = Object.entries(types).flatMap(([text, scalar], index) =>
      scalar === "" ? [] : [{ index, ...odac.parseAddress(text, { scalar }, settings) }],
    );
    const [request] = odac.plan(points, session.limits);
    expect(request && (await session.read(request, driverContext()))).toEqual([
      { quality: "good", value: 21.5 },
      { quality: "good", value: 18446744073709551615n },
      { quality: "good", value: true },
      { quality: "good", value: "press 7" },
      { quality: "bad", fault: "not_found", detail: "the device has no none" },
    ]);
    const found = [];
    for await (const one of session.discover?.(driverContext()) ?? []) found.push(one.address);
    expect(found).toEqual(["count", "name", "state", "temperature"]);
    expect(device.asked.every((line) => line === "LIST" || line.startsWith("GET "))).toBe(true);
    await session.close();
    expect(session.alive()).toBe(false);
  });

  test("it has an empty environment, requests of at most its max_points, and is gone after close", async () => {
    const file = path.join(folder, "environment");
    const session = await connect(broken("good", file));
    expect(requestsOf(session, ["a", "b", "c", "d"]).map(({ points }) => points.length)).toEqual([3, 1]);
    expect(await readAll(session, ["a", "none", "c", "d"])).toMatchObject([
      { value: 1 },
      { fault: "not_found" },
      { value: 1 },
      { value: 1 },
    ]);
    await session.close();
    const { env, pid } = JSON.parse(readFileSync(file, "utf8")) as { env: object; pid: number };
    expect(env).toEqual({});
    expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  });

  test("the type of a variable without one is that of its value", async () => {
    const session = await connect(broken("good"));
    const settings = settingsOf(["/x"]);
    const [request] = odac.plan([{ index: 0, ...odac.parseAddress("a", undefined, settings) }], session.limits);
    expect(request && (await session.read(request, driverContext()))).toEqual([{ quality: "good", value: 1, type: { scalar: "uint16" } }]);
    await session.close();
  });

  test("what the status and the flows say of it", () => {
    const settings = settingsOf(SAMPLE);
    expect(textsOf(odac.warningsOf?.(DETAILS, settings)).join()).toMatch(/passes no fence.*the collector's own user/);
    expect(odac.encryption?.(DETAILS, settings)).toBe(FLOW_WORDS);
    expect(odac.problemOf?.(DETAILS, settings)).toBeUndefined();
    expect(odac.problemOf?.(DETAILS, odac.settings.parse({ plugin: {} }))).toMatchObject({ condition: "configuration_invalid" });
  });
});

describe("a plugin that", () => {
  test.each([
    ["hangs", { reason: { type: "TIMEOUT" }, message: "the plugin did not answer (read) within 300 ms, and was ended" }],
    ["late", { reason: { type: "TIMEOUT" }, message: "the plugin did not answer (read) within 300 ms, and was ended" }],
    [
      "dies",
      {
        reason: { type: "UNKNOWN" },
        message: expect.stringMatching(/ended without a request \(exit code 3\); it wrote: Traceback: it fell over/),
      },
    ],
    ["floods", { condition: "protocol_violation", message: expect.stringContaining("a line of more than 262144 bytes") }],
    ["lies", { condition: "protocol_violation", message: expect.stringContaining("its answer to read") }],
    ["counts", { condition: "protocol_violation", message: expect.stringContaining("1 readings for 2 variables") }],
    ["other-id", { condition: "protocol_violation", message: expect.stringContaining("it answered request 10, and was asked 3") }],
    ["prints", { condition: "protocol_violation", message: expect.stringContaining('not JSON: "debug: reading"') }],
    ["bytes", { condition: "protocol_violation", message: expect.stringContaining("not UTF-8") }],
  ])("%s is ended, and what it did is the reason", async (way, expected) => {
    const file = path.join(folder, way);
    const session = await connect(broken(way, file));
    const ctx = driverContext({ timeouts: { nameMs: 5000, connectMs: 5000, answerMs: way === "hangs" || way === "late" ? 300 : 20_000 } });
    await expect(readAll(session, ["a", "b"], ctx)).rejects.toMatchObject(expected);
    expect(session.alive()).toBe(false);
    await expect(readAll(session, ["a"], ctx)).rejects.toMatchObject(expected);
    await session.close();
    const { pid } = JSON.parse(readFileSync(file, "utf8")) as { pid: number };
    await expect.poll(() => isRunning(pid)).toBe(false);
    // The next session has a process of its own, which is well.
    const next = await connect(broken("good"));
    expect(await readAll(next, ["a"])).toMatchObject([{ value: 1 }]);
    await next.close();
  });

  test("gives a value that is not of its type costs that variable", async () => {
    const session = await connect(broken("values"));
    expect(await readAll(session, ["a"])).toEqual([{ quality: "bad", fault: "out_of_range", detail: "70000 (number) is not a uint16" }]);
    expect(session.alive()).toBe(true);
    await session.close();
  });

  test("writes NaN and infinities, as Python's json does, is not ended: they are the faults of their variables", async () => {
    const session = await connect(broken("nan"));
    const [request] = odac.plan(
      ["a", "b", "c"].map((text, index) => ({ index, ...odac.parseAddress(text, { scalar: "float64" }, settingsOf(["/x"])) })),
      { ...session.limits, maxPoints: 4 },
    );
    const [last] = request?.points ?? [];
    const four = request && last && { ...request, points: [...request.points, { ...last, index: 3 }] };
    expect(four && (await session.read(four, driverContext()))).toMatchObject([
      { quality: "bad", fault: "not_a_number" },
      { quality: "bad", fault: "not_a_number" },
      { quality: "good", value: 7 },
      { quality: "bad", fault: "stale", detail: "NaN, he said" },
    ]);
    expect(session.alive()).toBe(true);
    await session.close();
  });

  test("gives one reading that its contract does not have costs that variable", async () => {
    const session = await connect(broken("one-wrong"));
    const [request] = requestsOf(session, ["a", "b", "c"]);
    const [last] = request?.points ?? [];
    const four = request && last && { ...request, points: [...request.points, { ...last, index: 3 }] };
    const wrong = { quality: "bad", fault: "device_error", detail: expect.stringContaining("no reading of its contract") };
    expect(four && (await session.read(four, driverContext()))).toMatchObject([{ quality: "good", value: 7 }, wrong, wrong, wrong]);
    expect(session.alive()).toBe(true);
    await session.close();
  });

  test.each(["long-words", "long-detail"])("says more than 1000 characters (%s) is not ended: what it says is cut", async (way) => {
    const session = await connect(broken(way));
    const said = await readAll(session, ["a"]).then(
      ([reading]) => (reading?.quality === "bad" ? reading.detail : undefined),
      (error: unknown) => (error as Error).message,
    );
    expect(said).toBe("long ".repeat(200));
    expect(session.alive()).toBe(true);
    await session.close();
  });

  test.each([
    ["by itself", 2],
    ["with its session", 1],
  ] as const)("ends %s takes its children along", async (how, reads) => {
    const file = path.join(folder, `children ${reads}`);
    const session = await connect(broken("children", file));
    for (let i = 0; i < reads; i++) await readAll(session, ["a"]).catch(() => {});
    await session.close();
    const children = readFileSync(`${file}.children`, "utf8").trim().split("\n").map(Number);
    expect(children, how).toHaveLength(reads);
    await expect.poll(() => children.filter(isRunning), { timeout: 5000 }).toEqual([]);
  });

  test("dies with every fourth read is a warning from the second time within a minute on, with its last words", async () => {
    const kept = new Map<string, unknown>();
    const device = { get: (key: string) => kept.get(key), set: (key: string, value: unknown) => void kept.set(key, value) };
    const logged: string[] = [];
    const log = { ...silentLog, warn: (_fields: object, words: string) => void logged.push(words) };
    const warnings: (readonly string[])[] = [];
    for (let session = 0; session < 3; session++) {
      const open = await connect(broken("fourth"), { device, log });
      warnings.push(textsOf(open.warnings?.()));
      for (let read = 0; read < 3; read++) expect(await readAll(open, ["a"])).toMatchObject([{ value: 1 }]);
      await expect(readAll(open, ["a"])).rejects.toMatchObject({ reason: { type: "UNKNOWN" } });
      await open.close();
    }
    const twice = expect.stringMatching(/^the plugin has ended 2 times .* \(exit code 3\); it wrote: Traceback: the fourth read$/);
    expect(warnings).toEqual([[], [], [twice]]);
    expect(logged).toEqual([twice]);
  });

  test("names a reason of the API fails the source with it", async () => {
    const session = await connect(broken("refuses"));
    await expect(readAll(session, ["a"])).rejects.toMatchObject({ reason: { type: "HOST_DOWN" }, message: "the machine is off" });
    await session.close();
  });

  test("pages without an end is ended", async () => {
    const session = await connect(broken("endless"));
    const all = async () => {
      for await (const _ of session.discover?.(driverContext()) ?? []);
    };
    await expect(all()).rejects.toMatchObject({ condition: "protocol_violation", message: expect.stringContaining("do not end") });
    await session.close();
  });

  test("says no hello is waited for no longer than the readout", async () => {
    const signal = AbortSignal.timeout(500);
    await expect(connect(broken("mute"), { signal })).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
  });

  test.each([
    ["is of another contract", broken("other-contract"), /its first line: hello\.contract: expected 1/],
    ["sends what nobody asked for", broken("chatters"), /a line without a request/],
    ["does not exist", ["/no/such/plugin"], /ended without a request \(exit code 127\)/],
  ])("%s is not used", async (_what, command, message) => {
    await expect(connect(command)).rejects.toMatchObject({ message: expect.stringMatching(message) });
  });

  test("finds a problem in its source says which", async () => {
    const given = { details: { ...DETAILS, port: 2020 }, settings: settingsOf(SAMPLE, { speed: "9600" }), secrets: {} };
    await expect(odac.connect(given, driverContext())).rejects.toMatchObject({
      condition: "configuration_invalid",
      message: "the plugin line-sample says: settings.speed is not known; this plugin has prefix",
    });
  });

  test("is for a host that the policy forbids is not started", async () => {
    const file = path.join(folder, "forbidden");
    const resolve = () => Promise.reject(new Error("the policy says no"));
    await expect(connect(broken("good", file), { resolve })).rejects.toThrow("the policy says no");
    expect(() => readFileSync(file)).toThrow("ENOENT");
  });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
