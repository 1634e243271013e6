import net from "node:net";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { loadProfile } from "../../src/configuration/profile-file.ts";
import { unboundWords } from "../../src/model/binding.ts";
import type { Profile } from "../../src/model/profile.ts";
import { codesOf, textsOf } from "../../src/model/testing/warnings.ts";
import type { Reading } from "../../src/model/value.ts";
import { driverContext } from "../../test/support/driver-context.ts";
import type { AnySession, DriverContext } from "../driver.ts";
import odac from "../odac/driver.ts";
import { type OdacSimulator, startSimulator as startOdac } from "../odac/simulator.ts";
import plastcontrol from "../plastcontrol/driver.ts";
import vendorB from "../vendor_b/driver.ts";
import { startSimulator as startVendorB } from "../vendor_b/simulator.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const TEN_LINES = loadProfile(path.join(ROOT, "test/support/profiles/ten-lines.yaml"));
const ODAC = loadProfile(path.join(ROOT, "config/profiles/odac-host.yaml"));
const VENDOR_B = loadProfile(path.join(ROOT, "drivers/vendor_b/example-profile.yaml"));
const DETAILS = { type: "vendor_b", host: "127.0.0.1", machine: "C5", initialization_mode: "Default" } as const;

/** Reads addresses over a session, each by its name. */
async function readAll(session: AnySession, profile: Profile, addresses: readonly string[], ctx = driverContext()) {
  const settings = vendorB.settings.parse({ profile });
  const points = addresses.map((text, index) => ({ index, ...vendorB.parseAddress(text, undefined, settings) }));
  const readings: Record<string, Reading | undefined> = {};
  for (const request of vendorB.plan(points, session.limits)) {
    const answers = await session.read(request, ctx);
    for (const [i, point] of request.points.entries()) readings[addresses[point.index] ?? ""] = answers[i];
  }
  return readings;
}

describe("a simple framed device, by a profile of ten lines", () => {
  /** What the device says to each request; undefined: nothing. */
  let answer: string | undefined;
  let asked: string[];
  let server: net.Server;
  const sockets = new Set<net.Socket>();
  beforeAll(async () => {
    server = net.createServer((socket) => {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
      socket.on("error", () => {});
      socket.on("data", (bytes) => {
        asked.push(bytes.toString("latin1"));
        if (answer !== undefined) socket.write(Buffer.from(answer, "latin1"));
      });
    });
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  });
  beforeEach(() => {
    answer = "W=12.5;S;7\r\n";
    asked = [];
  });
  afterEach(() => {
    for (const socket of sockets) socket.destroy();
  });
  afterAll(() => void server.close());

  const connect = (profile: Profile = TEN_LINES, ctx: DriverContext = driverContext()) => {
    const { port } = server.address() as net.AddressInfo;
    return vendorB.connect({ details: { ...DETAILS, port }, settings: vendorB.settings.parse({ profile }), secrets: {} }, ctx);
  };
  const ALL = ["weight", "is_stable", "count"];
  const changed = (fields: object): Profile => ({ ...TEN_LINES, ...fields });

  test("one request and one answer give all its variables", async () => {
    const session = await connect();
    expect(await readAll(session, TEN_LINES, ALL)).toEqual({
      weight: { quality: "good", value: 12.5 },
      is_stable: { quality: "good", value: true },
      count: { quality: "good", value: 7 },
    });
    expect(asked).toEqual(["W?\r\n"]);
    await session.close();
  });

  test.each([
    ["a field that is missing", "W=1;U\r\n", { is_stable: { value: false }, count: { fault: "not_found" } }],
    ["a field that is no number", "W=---;S;7\r\n", { weight: { fault: "not_a_number" }, count: { value: 7 } }],
    ["a number that does not fit", "W=1;S;4294967296\r\n", { count: { fault: "out_of_range" } }],
    ["a text that is neither", "W=1;?;7\r\n", { is_stable: { fault: "not_a_number" } }],
  ])("%s is the fault of that variable", async (_what, text, expected) => {
    answer = text;
    const session = await connect();
    expect(await readAll(session, TEN_LINES, ALL)).toMatchObject(expected);
    await session.close();
  });

  test("an answer that the profile does not know ends the connection, with its bytes in the reason", async () => {
    answer = "X=1\r\n";
    const session = await connect();
    await expect(readAll(session, TEN_LINES, ALL)).rejects.toMatchObject({
      condition: "protocol_violation",
      message: expect.stringContaining("583d31"),
    });
    expect(session.alive()).toBe(false);
  });

  test("an answer without an end is bounded", async () => {
    answer = "W=".padEnd(2000, "1");
    const session = await connect();
    await expect(readAll(session, TEN_LINES, ALL)).rejects.toThrow("a frame of more than 64 bytes");
  });

  test("an answer that stops in its middle ends after between_bytes, one that dribbles after answer_within", async () => {
    answer = "W=1";
    const stalled = await connect(changed({ between_bytes: "50ms" }));
    await expect(readAll(stalled, TEN_LINES, ALL)).rejects.toMatchObject({
      reason: { type: "TIMEOUT" },
      message: expect.stringContaining("stopped in the middle of a frame: 3 bytes, then nothing for 50 ms"),
    });
    const dribbled = await connect(changed({ answer_within: "150ms", between_bytes: "100ms" }));
    const dribble = setInterval(() => sockets.forEach((socket) => void socket.write("1")), 10);
    try {
      await expect(readAll(dribbled, TEN_LINES, ALL)).rejects.toMatchObject({
        reason: { type: "TIMEOUT" },
        message: expect.stringContaining("no answer within 150 ms"),
      });
    } finally {
      clearInterval(dribble);
    }
    answer = undefined;
    const silent = await connect(changed({ answer_within: "50ms" }));
    await expect(readAll(silent, TEN_LINES, ALL)).rejects.toMatchObject({ reason: { type: "TIMEOUT" } });
  });

  test("with a start and resync: start, garbage before and between frames is skipped and counted", async () => {
    const framing = { ...TEN_LINES.framing, start: "@", checksum: { kind: "xor", written: "hex" } };
    const profile = changed({ framing, resync: "start" });
    const body = "@W=2;S;9";
    const sum = Buffer.from([Buffer.from(body).reduce((all, byte) => all ^ byte, 0)]).toString("hex");
    answer = `noise@W=1;S;900\r\n${body}${sum}\r\n`;
    const session = await connect(profile);
    expect(await readAll(session, profile, ["weight", "count"])).toEqual({
      weight: { quality: "good", value: 2 },
      count: { quality: "good", value: 9 },
    });
    expect(textsOf(session.warnings?.())).toEqual([
      "5 bytes between frames were skipped since connecting",
      "1 frames with a wrong checksum were skipped since connecting",
    ]);
    // Healed: as after a fresh start.
    answer = `${body}${sum}\r\n`;
    expect(await readAll(session, profile, ["weight"])).toEqual({ weight: { quality: "good", value: 2 } });
    await session.close();
  });

  test("an answer to nobody is none to the next request", async () => {
    const session = await connect();
    await readAll(session, TEN_LINES, ["weight"]);
    for (const socket of sockets) socket.write("W=99;S;7\r\n");
    const seen = Promise.withResolvers<void>();
    const look = setInterval(() => session.warnings?.().length === 1 && seen.resolve(), 2);
    await seen.promise;
    clearInterval(look);
    expect(await readAll(session, TEN_LINES, ["weight"])).toEqual({ weight: { quality: "good", value: 12.5 } });
    await session.close();
  });

  test("between an answer and the next request there is the pause that the device needs", async () => {
    const session = await connect(changed({ pause: "60ms" }));
    const began = performance.now();
    await readAll(session, TEN_LINES, ["weight"]);
    await readAll(session, TEN_LINES, ["weight"]);
    expect(performance.now() - began).toBeGreaterThan(55);
    await session.close();
  });

  test("errors become faults, a device that is busy or locked, or a reason", async () => {
    const profile: Profile = changed({
      errors: [
        { equals: "ERR 1", fault: "not_found", about: "variables", meaning: "no such scale" },
        { begins: "ERR 2", fault: "device_error", about: "busy", meaning: "it weighs" },
        { contains: "LOCK", fault: "access_denied", about: "everything", meaning: "the panel is locked" },
        { ends: "OFF", reason: "HOST_DOWN", about: "variables", meaning: "the scale behind the converter is off" },
      ],
    });
    const session = await connect(profile);
    const read = () => readAll(session, profile, ["weight", "count"]);
    answer = "ERR 1\r\n";
    const missing = { quality: "bad", fault: "not_found", detail: "request weight: no such scale" };
    expect(await read()).toEqual({ weight: missing, count: missing });
    answer = "ERR 2 wait\r\n";
    await expect(read()).rejects.toMatchObject({ fault: "device_error", scope: "busy" });
    answer = "-LOCKED-\r\n";
    await expect(read()).rejects.toMatchObject({
      fault: "access_denied",
      scope: "everything",
      message: "request weight: the panel is locked",
    });
    answer = "PWR OFF\r\n";
    await expect(read()).rejects.toMatchObject({ reason: { type: "HOST_DOWN" } });
    await session.close();
  });
});

describe("odac in host mode", () => {
  let simulator: OdacSimulator;
  beforeAll(async () => {
    simulator = await startOdac({ group: 1, unit: 7 });
  });
  afterAll(() => simulator.close());

  const details = (override: "odac" | "host" | null = null) => ({
    type: "odac",
    host: "127.0.0.1",
    port: simulator.port,
    protocol_override: override,
  });
  const settingsWith = (parameters: object, profile: Profile = ODAC) => odac.settings.parse({ profile, parameters });

  test("polls the address that the settings give, in frames of X3.28 to the byte", async () => {
    const frames: string[] = [];
    const tap: DriverContext["tap"] = (direction, frame) => frames.push(`${direction} ${Buffer.from(frame).toString("hex")}`);
    const session = await odac.connect(
      { details: details(), settings: settingsWith({ group: 1, unit: 7 }), secrets: {} },
      driverContext({ tap }),
    );
    expect(await readAll(session, ODAC, ["PV", "SW", "XX"])).toMatchObject({
      PV: { quality: "good", value: 215.5 },
      SW: { quality: "good", value: 0x1a2b },
      XX: { quality: "bad", fault: "not_found" },
    });
    // EOT 1 1 7 7 P V ENQ; STX P V 2 1 5 . 5 ETX, and 50^56^32^31^35^2e^35^03 = 28.
    expect(frames.slice(0, 2)).toEqual(["out 04313137375056" + "05", "in 025056" + "3231352e3503" + "28"]);
    expect(frames.at(-1)).toBe("in 04");
    await session.close();
  });

  test("a damaged answer is no value; the next session reads again", async () => {
    const open = () => odac.connect({ details: details(), settings: settingsWith({ group: 1, unit: 7 }), secrets: {} }, driverContext());
    const session = await open();
    simulator.nextAnswer = Buffer.from("\x02PV999\x03\x00", "latin1");
    await expect(readAll(session, ODAC, ["PV"])).rejects.toMatchObject({ condition: "protocol_violation" });
    const again = await open();
    expect(await readAll(again, ODAC, ["PV"])).toEqual({ PV: { quality: "good", value: 215.5 } });
    await again.close();
  });

  test("the answer to another code is none", async () => {
    const session = await odac.connect({ details: details(), settings: settingsWith({ group: 1, unit: 7 }), secrets: {} }, driverContext());
    // SP220 with its block check: 53^50^32^32^30^03 = 30.
    simulator.nextAnswer = Buffer.from("\x02SP220\x03\x30", "latin1");
    await expect(readAll(session, ODAC, ["PV"])).rejects.toThrow("an answer that the profile does not know");
  });

  test("protocol_override is never written, and says what to do instead", () => {
    const problem = (override: "odac" | "host" | null) => odac.problemOf?.(details(override), settingsWith({}));
    expect([problem(null), problem("host")]).toEqual([undefined, undefined]);
    expect(problem("odac")).toEqual({
      condition: "configuration_invalid",
      detail: "the profile ODAC host mode is for protocol_override host or none; the data source has odac",
    });
    expect(odac.warningsOf?.(details("host"), settingsWith({}))[0]?.text).toMatch(
      /writes to the controller for good, which the collector never does\. Select host/,
    );
    expect(textsOf(odac.warningsOf?.(details(), settingsWith({})))).toEqual([
      "the profile ODAC host mode has been verified on no device (verified_on is empty): compare values with the machine's own display",
    ]);
    const verified = settingsWith({}, { ...ODAC, verified_on: ["ACME 5, firmware 1.2, 2026-11-20"] });
    expect(codesOf(odac.warningsOf?.(details(), verified))).toContain("profile_verified");
    expect(textsOf(odac.warningsOf?.(details(), verified))).toEqual([
      "the profile ODAC host mode was verified on ACME 5, firmware 1.2, 2026-11-20",
    ]);
  });

  test("parameters are checked, and named", () => {
    const problem = (parameters: object) => odac.problemOf?.(details(), settingsWith(parameters))?.detail;
    expect(problem({ group: 10 })).toBe("parameters.group: expected a whole number of 0 to 9");
    expect(problem({ grup: 1 })).toBe("parameters.grup: the profile ODAC host mode has no such parameter; it has group, unit");
    expect(problem({ group: "3\x02" })).toContain("parameters.group");
  });
});

describe("vendor_b", () => {
  test("machine and initialization_mode are in the start-up", async () => {
    const device = await startVendorB();
    const settings = vendorB.settings.parse({ profile: VENDOR_B });
    for (const [machine, mode] of [
      ["C4", "Default"],
      ["C6", "Extended"],
    ] as const) {
      const details = { ...DETAILS, machine, initialization_mode: mode, port: device.port };
      const session = await vendorB.connect({ details, settings, secrets: {} }, driverContext());
      await session.close();
    }
    expect(device.begun).toEqual(["C4 Default", "C6 Extended"]);
    await device.close();
  });

  test("without a profile it says what is missing and which roads there are, and its details are checked to the letter", () => {
    expect(vendorB.problemOf?.({ ...DETAILS, port: 1 }, vendorB.settings.parse({}))).toEqual({
      condition: "type_not_supported",
      detail: unboundWords("vendor_b"),
    });
    expect(unboundWords("vendor_b")).toMatch(/bindings\.vendor_b is missing in collector\.yaml.*profile/);
    for (const wrong of [{ machine: "C7" }, { machine: "c4" }, { initialization_mode: "extended" }, { machine: undefined }])
      expect(vendorB.details.safeParse({ ...DETAILS, port: 1, ...wrong }).success).toBe(false);
  });

  test("a profile for another type, or another role, is refused", () => {
    const settings = vendorB.settings.parse({ profile: ODAC });
    expect(vendorB.problemOf?.({ ...DETAILS, port: 1 }, settings)?.detail).toContain("is for odac, not for vendor_b");
    const passive = { type: "plastcontrol", host: "h", port: 1, readout_mode: { type: "passive" } };
    const active = plastcontrol.settings.parse({ profile: { ...TEN_LINES, for: ["plastcontrol"] } });
    expect(plastcontrol.problemOf?.(passive, active)?.detail).toContain("needs a listener, and the profile scale of the tests is a client");
  });
});
