import net, { type AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type Log, silentLog } from "../../src/model/context.ts";
import { FaultError, PartialRefusal } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { codesOf, textsOf } from "../../src/model/testing/warnings.ts";
import { formatDataType, type Reading, type Value } from "../../src/model/value.ts";
import { driverContext as context, deviceMemory } from "../../test/support/driver-context.ts";
import type { AnySession, Discovered, Limits, Point } from "../driver.ts";
import { typeOf } from "../driver.ts";
import driver from "./driver.ts";
import { type CipDevice, type CipDeviceOptions, filledProgram, LogixProgram, microProgram, STATUS, startCipDevice } from "./simulator.ts";

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const step of cleanUp.splice(0).reverse()) await step();
});

async function start(options: CipDeviceOptions = {}, change: (device: CipDevice) => void = () => {}): Promise<CipDevice> {
  const device = await startCipDevice({ program: filledProgram().program, ...options });
  cleanUp.push(() => device.close());
  change(device);
  return device;
}

interface Opened {
  readonly session: AnySession;
  readonly settings: unknown;
  limits(): Limits;
}

async function open(port: number, local: object = {}, ctx = context()): Promise<Opened> {
  const settings = driver.settings.parse(local);
  const details = driver.details.parse({ type: "vendor_a", host: "127.0.0.1", port });
  const session = await driver.connect({ details, settings, secrets: {} }, ctx);
  cleanUp.push(() => session.close());
  return { session, settings, limits: () => driver.limits?.(session.limits, settings) ?? session.limits };
}

const pointsOf = (settings: unknown, texts: readonly string[]): Point[] =>
  texts.map((text, index) => {
    const [address = "", word] = text.split(/:(?=[A-Za-z\d[\]x]+$)(?!Main)/);
    return { index, ...driver.parseAddress(address, word === undefined ? undefined : typeOf(driver, word), settings) };
  });

const shown = (reading: Reading): Value => (reading.quality === "bad" ? `${reading.fault}: ${reading.detail}` : reading.value);

/** What can be planned, and what was refused, by index. */
async function prepare({ session, settings }: Opened, texts: readonly string[], ctx = context()) {
  const values: (Value | undefined)[] = texts.map(() => undefined);
  const ready: Point[] = [];
  for await (const batch of session.prepare?.(pointsOf(settings, texts), ctx) ?? [])
    for (const one of batch)
      if ("address" in one) ready.push({ index: one.point.index, address: one.address, type: one.type });
      else values[one.point.index] = `${one.refusal.fault}: ${one.refusal.message}`;
  return { ready, values };
}

/** Values, or faults as text. */
async function read(
  opened: Opened,
  texts: readonly string[],
  ctx = context(),
  limits = opened.limits(),
): Promise<readonly (Value | undefined)[]> {
  const { ready, values } = await prepare(opened, texts, ctx);
  for (const request of driver.plan(ready, limits)) {
    const take = (readings: readonly (Reading | undefined)[]) => {
      for (const [i, reading] of readings.entries()) if (reading) values[request.points[i]?.index ?? -1] = shown(reading);
    };
    try {
      take(await opened.session.read(request, ctx));
    } catch (error) {
      if (!(error instanceof FaultError) || error.scope !== "points") throw error;
      const items = error instanceof PartialRefusal ? error.items : [{ places: request.points.map((_, i) => i), refusal: error }];
      if (error instanceof PartialRefusal) take(error.readings);
      for (const { places, refusal } of items)
        for (const place of places) values[request.points[place]?.index ?? -1] = `${refusal.fault} (${refusal.scope}): ${refusal.message}`;
    }
  }
  return values;
}

async function failureOf(work: Promise<unknown>): Promise<ReasonError | FaultError> {
  const error = await work.then(
    (value) => new Error(`it gave ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown,
  );
  if (error instanceof ReasonError || error instanceof FaultError) return error;
  throw error;
}

async function discover({ session }: Opened, ctx = context()): Promise<Discovered[]> {
  const found: Discovered[] = [];
  for await (const one of session.discover?.(ctx) ?? []) found.push(one);
  return found;
}

/** Monotonic time goes on by so many ms at once. */
function skip(ms: number): void {
  const real = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => real() + ms);
}

const EVERYTHING = filledProgram().variables;
const texts = EVERYTHING.map(({ address, type }) => `${address}:${type}`);
const expected = EVERYTHING.map(({ value }) => value);

describe("ways to the controller", () => {
  it.each([
    ["a controller with its own network connection", {}, {}],
    ["one behind a bridge, found in the backplane", { layout: "bridge" }, {}],
    ["one behind a bridge, by its slot", { layout: "bridge" }, { path: "1,3" }],
    ["without a connection", {}, { connected: false }],
    ["without a connection, behind a bridge", { layout: "bridge" }, { connected: false }],
    ["without a route", {}, { path: "direct" }],
  ] as const)("reads everything: %s", async (_, options, local) => {
    const device = await start(options, (one) => {
      one.silentSlotMs = 30;
    });
    const opened = await open(device.port, local);
    expect(await read(opened, texts)).toEqual(expected);
    expect(textsOf(opened.session.warnings?.())).toEqual([]);
    await opened.session.close();
    expect(device.violations).toEqual([]);
    expect(device.leftOpen).toBe(0);
    expect(device.manager.counts.closes).toBe("connected" in local ? 0 : 1);
  });

  it("reads a Micro800: no route, one tag a request, a small connection", async () => {
    const { program, variables } = microProgram();
    const device = await start({ layout: "micro", program });
    const opened = await open(device.port);
    const all = variables.map(({ address, type }) => `${address}:${type}`);
    expect(await read(opened, all)).toEqual(variables.map(({ value }) => value));
    expect(device.lastMessages.every(({ items, via }) => items === 1 && via !== "routed")).toBe(true);
    expect(opened.limits()).toMatchObject({ messageBytes: 502, maxItems: 1 });
    expect(device.violations).toEqual([]);
  });

  it("remembers the slot, and looks again where it was not right", async () => {
    const device = await start({ layout: "bridge" }, (one) => {
      one.silentSlotMs = 30;
    });
    const ctx = context({ device: deviceMemory() });
    const infos: string[] = [];
    const log: Log = { ...silentLog, info: (_fields, message) => infos.push(message) };
    await open(device.port, {}, { ...ctx, log });
    expect(infos).toEqual(["connected to 1756-L83E/B, revision 33.011, serial number 00C0FFEE (slot 3)"]);
    device.resetCounts();
    await open(device.port, {}, { ...ctx, log });
    expect(device.counts.routed).toBe(1);
    expect(infos).toHaveLength(1);
    const cpu = device.slots.get(3);
    device.slots.delete(3);
    if (cpu) device.slots.set(7, cpu);
    const { session } = await open(device.port, {}, { ...ctx, log });
    expect(session.alive()).toBe(true);
    expect(infos.at(-1)).toContain("slot 7");
  });

  it("asks for the path where there are several controllers, or none", async () => {
    const several = await start({ layout: "bridge" }, (one) => {
      one.silentSlotMs = 30;
      const cpu = one.slots.get(3);
      if (cpu) one.slots.set(6, cpu);
    });
    expect(await failureOf(open(several.port))).toMatchObject({
      condition: "configuration_invalid",
      message: expect.stringContaining("several controllers, set path: 1,3 (1756-L83E/B), 1,6 (1756-L83E/B)"),
    });
    const none = await start({ layout: "bridge" }, (one) => {
      one.silentSlotMs = 30;
      one.slots.delete(3);
    });
    expect(await failureOf(open(none.port))).toMatchObject({
      message: expect.stringContaining("no controller was found in the backplane (slot 2: 1756-EN2T/D, slot 4: 1756-IB16/A)"),
    });
  });

  it.each([
    ["1,9", "UNKNOWN", "0x01/0x0312"],
    ["1,5", "TIMEOUT", "0x01/0x0204"],
    ["4,0", "UNKNOWN", "0x01/0x0311"],
  ])("names a wrong path: %s", async (path, reason, code) => {
    const device = await start({ layout: "bridge" }, (one) => {
      one.silentSlotMs = 30;
    });
    const failure = await failureOf(open(device.port, { path }));
    expect(failure).toMatchObject({ reason: { type: reason }, message: expect.stringContaining(code) });
    await expect.poll(() => device.sessions()).toBe(0);
  });
});

describe("connections", () => {
  it.each([
    ["08", 0, 502],
    ["0109", 0, 502],
    ["0109", 1000, 502],
    ["0109 with size", 1000, 998],
    ["0109 with size", 400, 398],
    ["0127", 1000, 502],
    ["0128", 1000, 502],
    ["08", 1000, 502],
  ] as const)("takes a smaller size: refused with %s above %i", async (sizeRefusal, largeBytes, messageBytes) => {
    const device = await start({}, ({ manager }) => Object.assign(manager.grants, { sizeRefusal, largeBytes }));
    const opened = await open(device.port);
    expect(opened.limits()).toMatchObject({ messageBytes });
    expect(await read(opened, texts)).toEqual(expected);
    expect(device.violations).toEqual([]);
  });

  it("asks for what the settings say", async () => {
    const device = await start();
    expect((await open(device.port, { connection_size: 700 })).limits()).toMatchObject({ messageBytes: 698 });
    expect((await open(device.port, { connection_size: 300 })).limits()).toMatchObject({ messageBytes: 298 });
    expect(device.manager.counts).toMatchObject({ opens: 2, largeOpens: 1, refusedOpens: 0 });
  });

  it("reads without one while the controller has none left, says so, and opens one later", async () => {
    const device = await start({}, ({ manager }) => Object.assign(manager.grants, { maxConnections: 0 }));
    const opened = await open(device.port);
    expect(await read(opened, texts)).toEqual(expected);
    expect(codesOf(opened.session.warnings?.())).toContain("read_without_connection");
    expect(textsOf(opened.session.warnings?.())).toEqual([expect.stringContaining("0x01/0x0113 (no connection left")]);
    device.manager.grants.maxConnections = 1;
    skip(31_000);
    expect(await read(opened, texts)).toEqual(expected);
    expect(device.manager.size).toBe(1);
    expect(textsOf(opened.session.warnings?.())).toEqual([]);
    expect(opened.limits()).toMatchObject({ messageBytes: 4000 });
  });

  it("takes another serial number where one is still open over there, once", async () => {
    let refusals = 1;
    const device = await start({}, (one) => {
      one.misbehave = ({ service }) => (service === 0x5b && refusals-- > 0 ? { status: { general: 1, extended: [0x0100] } } : undefined);
    });
    await open(device.port);
    expect(device.manager.size).toBe(1);
  });

  it("opens it again after it has ended for lack of traffic", async () => {
    const device = await start();
    const opened = await open(device.port);
    expect(await read(opened, ["Shown"])).toEqual([2]);
    device.loseConnections();
    skip(70_000);
    expect(await read(opened, ["Shown"])).toEqual([2]);
    expect(device.manager.counts.opens).toBe(2);
  });

  it.each(["close", "abort", "time-out"])("is closed in the middle of a read: %s", async (how) => {
    const device = await start();
    const opened = await open(device.port);
    const { ready } = await prepare(opened, texts);
    const [request] = driver.plan(ready, opened.limits());
    if (!request) throw new Error("nothing is planned");
    device.misbehave = ({ reads }) => (reads.length > 0 ? { silent: true } : undefined);
    const stop = new AbortController();
    const reading = failureOf(opened.session.read(request, context({ signal: stop.signal, answerMs: how === "time-out" ? 100 : 5000 })));
    await expect.poll(() => device.mostInFlight).toBe(1);
    if (how === "close") await opened.session.close();
    if (how === "abort") stop.abort();
    expect(await reading).toMatchObject({ reason: { type: how === "close" ? "CONNECTION_CLOSED" : "TIMEOUT" } });
    await expect.poll(() => device.connections()).toBe(0);
    expect(device.manager.counts.closes).toBe(1);
    expect(device.leftOpen).toBe(0);
  });

  it("names what the encapsulation refuses", async () => {
    const refused = await start({}, (one) => {
      one.registerStatus = 2;
    });
    expect(await failureOf(open(refused.port))).toMatchObject({
      reason: { type: "UNKNOWN" },
      message: expect.stringContaining("refuses a session: encapsulation status 0x02 (the device has no memory left for it)"),
    });
    const device = await start();
    const opened = await open(device.port);
    device.loseSessions();
    const lost = await failureOf(read(opened, ["Shown"]));
    expect(lost).toMatchObject({
      sessionLost: true,
      message: expect.stringContaining("encapsulation status 0x64 (the session handle is not valid)"),
    });
    expect(opened.session.alive()).toBe(false);
    const other = await open(device.port);
    const { ready } = await prepare(other, ["Shown"]);
    device.misbehave = () => ({ encapsulation: 3, hangUp: true });
    const [request] = driver.plan(ready, other.limits());
    expect(request && (await failureOf(other.session.read(request, context())))).toMatchObject({
      message: expect.stringContaining("encapsulation status 0x03 (the data are malformed)"),
    });
  });
});

/** Refused at this moment, by one tag. */
const STATE_CONFLICT = { general: 0x10 } as const;
const IN_USE = { general: 0xff, extended: [0x2106] } as const;

describe("packets and fragments", () => {
  const names = ["Tag_0", "Tag_1", "Tag_2", "Tag_3", "Tag_4"];
  const five = (): LogixProgram => {
    const program = new LogixProgram();
    for (const [i, name] of names.entries()) program.tag(name, "DINT", i);
    program.tag(
      "Long",
      "DINT[3000]",
      Array.from({ length: 3000 }, (_, i) => i),
    );
    program.tag(
      "Names",
      "STRING[60]",
      Array.from({ length: 60 }, (_, i) => `Name ${i}`),
    );
    return program;
  };

  /** Enough of them to be read as a whole. */
  const members = [
    "Recipe1.Speed",
    "Recipe1.On",
    "Recipe1.Auto",
    "Recipe1.Serial",
    "Recipe1.Cooling.PRE",
    "Recipe1.Steps[0]",
    "Recipe1.Steps[2]",
    "Recipe1.Name",
  ];

  it.each(names.map((_, at) => at))("one tag that is refused costs only itself, at place %i", async (at) => {
    const device = await start({ program: five() });
    const opened = await open(device.port);
    const { ready } = await prepare(opened, names);
    for (const [status, words] of [
      [STATUS.noSuchTag, "not_found: Tag_X: status 0x04/0x0000"],
      [STATUS.noPrivilege, "access_denied: Tag_X: status 0xFF/0x2100"],
      [STATUS.privilege, "access_denied: Tag_X: status 0x0F"],
      [{ general: 0xff, extended: [1, 2, 3] }, "device_error: Tag_X: status 0xFF/0x0001"],
      [STATUS.resources, "device_error: Tag_X: status 0x02"],
      [STATE_CONFLICT, "device_error: Tag_X: status 0x10"],
      [IN_USE, "device_error: Tag_X: status 0xFF/0x2106"],
    ] as const) {
      device.cpu.refuse = ({ path }) => (path === `Tag_${at}` ? status : undefined);
      const [request] = driver.plan(ready, opened.limits());
      const readings = request && (await opened.session.read(request, context()));
      const values = readings?.map(shown) ?? [];
      expect(values[at]).toContain(words.replace("X", String(at)));
      expect(values.filter((_, i) => i !== at)).toEqual([0, 1, 2, 3, 4].filter((i) => i !== at));
    }
  });

  it("a structure or a long array that is not to be had at this moment costs only itself, and is not halved", async () => {
    const device = await start();
    const opened = await open(device.port);
    device.cpu.refuse = ({ path }) => (path === "Recipe1" ? STATE_CONFLICT : undefined);
    const [shownValue, ...ofRecipe] = await read(opened, ["Shown", ...members]);
    expect(shownValue).toBe(expected[texts.findIndex((text) => text.startsWith("Shown:"))]);
    for (const value of ofRecipe) expect(value).toMatch(/^device_error: Recipe1: status 0x10/);
    const long = await start({ program: five() });
    const both = await open(long.port, { connection_size: 504 });
    const large = { ...both.limits(), messageBytes: 4000, maxBytes: 3900 };
    long.cpu.refuse = ({ path, offset }) => (path.startsWith("Long") && offset !== undefined ? IN_USE : undefined);
    expect(await read(both, ["Tag_0", "Long[0]{200}", "Tag_1"], context(), large)).toEqual([
      0,
      expect.stringMatching(/^device_error: Long.*status 0xFF\/0x2106/),
      1,
    ]);
  });

  it.each([true, false])(
    "says that the controller is busy where each tag of a request is refused so (packets: %s)",
    async (hasMultiple) => {
      const device = await start({ program: five() });
      const opened = await open(device.port);
      const { ready } = await prepare(opened, names);
      const [request] = driver.plan(ready, opened.limits());
      device.cpu.hasMultiple = hasMultiple;
      let refused: ReadonlySet<string> = new Set(names);
      device.cpu.refuse = ({ path }) => (refused.has(path) ? STATE_CONFLICT : undefined);
      expect(request && (await failureOf(opened.session.read(request, context())))).toMatchObject({
        scope: "busy",
        message: expect.stringMatching(/^Tag_0: status 0x10 .*; so are all 5 items of its request$/),
      });
      refused = new Set(names.slice(0, 4));
      const readings = request && (await opened.session.read(request, context()));
      expect(readings?.map(({ quality }) => quality)).toEqual(["bad", "bad", "bad", "bad", "good"]);
    },
  );

  it("says of a controller that is being loaded that it is busy", async () => {
    const device = await start({ program: five() });
    const opened = await open(device.port);
    const { ready } = await prepare(opened, names);
    const [request] = driver.plan(ready, opened.limits());
    device.cpu.isDownloading = true;
    expect(request && (await failureOf(opened.session.read(request, context())))).toMatchObject({
      scope: "busy",
      message: expect.stringContaining("0xFF/0x2108"),
    });
    expect(await failureOf(prepare(opened, names))).toMatchObject({ scope: "busy" });
  });

  it("asks for members one by one where the structure is refused", async () => {
    const device = await start();
    const opened = await open(device.port);
    device.cpu.refuse = ({ path }) => (path === "Recipe1" ? STATUS.noPrivilege : undefined);
    const refused = await read(opened, members);
    expect(refused.every((value) => String(value).startsWith("access_denied (points): Recipe1: status 0xFF/0x2100"))).toBe(true);
    for (const member of members) expect(String((await read(opened, [member]))[0])).not.toContain("access_denied");
  });

  it.each([
    ["4000 bytes", {}],
    ["502 bytes", { connection_size: 504 }],
    ["no connection", { connected: false }],
  ])("reads arrays in as many parts as it takes: %s", async (_, local) => {
    const device = await start({ program: five() });
    const opened = await open(device.port, local);
    const long = Array.from({ length: 3000 }, (_value, i) => i);
    expect(await read(opened, ["Long", "Names", "Long[2990]{10}", "Tag_1"])).toEqual([
      long,
      Array.from({ length: 60 }, (_value, i) => `Name ${i}`),
      long.slice(2990),
      1,
    ]);
    expect(device.violations).toEqual([]);
    expect(device.cpu.counts.fragments).toBeGreaterThan(2);
  });

  it("asks again for what the controller cut, and for nothing else", async () => {
    const device = await start({ program: five() });
    const opened = await open(device.port, { connection_size: 504 });
    const large = { ...opened.limits(), messageBytes: 4000, maxBytes: 3900 };
    expect(await read(opened, ["Tag_0", "Long[0]{200}", "Tag_1"], context(), large)).toEqual([
      0,
      Array.from({ length: 200 }, (_, i) => i),
      1,
    ]);
    expect(device.cpu.counts.fragments).toBeLessThan(5);
  });

  it("ends a part without bytes with a fault", async () => {
    const device = await start({ program: five() });
    const opened = await open(device.port);
    device.misbehave = ({ service }) => (service === 0x52 ? { change: () => Buffer.from("d2000600c400", "hex") } : undefined);
    expect(await read(opened, ["Long"])).toEqual([expect.stringContaining("the controller sends nothing from byte 0 on")]);
  });

  it("asks for each tag by itself where packets are not taken", async () => {
    const device = await start({ program: five() }, ({ cpu }) => {
      cpu.hasMultiple = false;
    });
    const opened = await open(device.port);
    expect(await read(opened, names)).toEqual([0, 1, 2, 3, 4]);
    expect(opened.limits()).toMatchObject({ maxItems: 1 });
  });

  it("brings the type with a value that has none", async () => {
    const device = await start();
    const opened = await open(device.port);
    const { ready } = await prepare(opened, ["Recipe1.Speed", "Recipe1", "Recipe1.Steps"]);
    const types: unknown[] = [];
    for (const request of driver.plan(ready, opened.limits()))
      for (const [i, reading] of (await opened.session.read(request, context())).entries())
        types[request.points[i]?.index ?? -1] = reading.quality === "bad" ? reading : reading.type;
    expect(types).toEqual([{ scalar: "float32" }, { scalar: "string" }, { scalar: "int32", count: 4 }]);
  });
});

describe("tags", () => {
  it("says of each why it cannot be read", async () => {
    const device = await start();
    const opened = await open(device.port);
    const { values } = await prepare(opened, [
      "NoSuchTag",
      "Hidden",
      "Recipe1.Torque",
      "Program:Main.Nothing",
      "Program:Other.Tag",
      "Recipes.Speed",
      "Shown:REAL",
    ]);
    expect(values).toEqual([
      expect.stringMatching(/^not_found: NoSuchTag: status 0x04/),
      expect.stringMatching(/^access_denied: Hidden: External Access/),
      expect.stringMatching(/^not_found: "Recipe1.Torque": Recipe1 \(Recipe\) has no member Torque/),
      expect.stringMatching(/^not_found: Program:Main.Nothing: status 0x0/),
      expect.stringMatching(/^not_found: Program:Other.Tag: status 0x0/),
      expect.stringMatching(/^type_mismatch: "Recipes.Speed": Recipes is an array of Recipe/),
      expect.stringMatching(/^type_mismatch: "Shown": it is DINT on the controller, not float32/),
    ]);
  });

  it("are found without external access, and without a list", async () => {
    const device = await start({}, ({ cpu }) => cpu.lacks.add(10));
    expect(await read(await open(device.port), ["Shown", "Recipe1.Speed"])).toEqual([2, 12.25]);
    device.misbehave = ({ service }) => (service === 0x55 ? { status: STATUS.serviceUnsupported } : undefined);
    const opened = await open(device.port);
    expect(await read(opened, ["Shown", "Recipe1.Speed", "Shown.1", "Recipe1.Steps[1]:DINT[2]", "Recipe1"])).toEqual([
      2,
      12.25,
      true,
      [20, 30],
      expect.stringContaining("a structure, of which only members can be read"),
    ]);
    expect(await failureOf(discover(opened))).toMatchObject({
      fault: "device_error",
      message: expect.stringContaining("does not list its tags"),
    });
  });

  it("one array of BOOL that the controller does not list costs nothing beside it, and its elements are read", async () => {
    const device = await start({}, (one) => {
      one.misbehave = ({ service }) => (service === 0x55 ? { status: STATUS.serviceUnsupported } : undefined);
    });
    const alarms = (from: number, count: number) => Array.from({ length: count }, (_, i) => (from + i) % 3 === 0);
    const wanted = ["Shown", "Alarms[33]", "Alarms[63]", "Alarms[30]{4}", "Alarms", "Alarms[64]", "Alarms[1].0", "Alarms[1]:DWORD"];
    expect(await read(await open(device.port), wanted)).toEqual([
      2,
      true,
      true,
      alarms(30, 4),
      expect.stringContaining("name one BOOL, for example Alarms[0]"),
      expect.stringMatching(/^out_of_range/),
      expect.stringContaining("write Alarms[32] for bit 0 of its word 1"),
      alarms(32, 32).reduce((sum, isSet, i) => sum + (isSet ? 2 ** i : 0), 0),
    ]);
  });

  it("of a Micro800 are DWORD where it says DWORD, listed or not", async () => {
    const { program } = microProgram();
    const device = await start({ layout: "micro", program });
    const expected = [[0x8000_0001, 7], 7, true, 7];
    const wanted = ["Masks", "Masks[1]", "Masks[0].31", "Masks[1]:DWORD"];
    expect(await read(await open(device.port), wanted)).toEqual(expected);
    device.misbehave = ({ service }) => (service === 0x55 ? { status: STATUS.serviceUnsupported } : undefined);
    expect(await read(await open(device.port), wanted)).toEqual([0x8000_0001, ...expected.slice(1)]);
  });

  it("are looked up again after a download, noticed by its mark and by what is read", async () => {
    const device = await start();
    const ctx = context({ device: deviceMemory() });
    const opened = await open(device.port, {}, ctx);
    const { ready } = await prepare(opened, ["Recipe1", "Shown"]);
    const [request] = driver.plan(ready, opened.limits());
    if (!request) throw new Error("nothing is planned");
    const before = opened.session.epoch;
    device.download((program) => {
      program.remove("Shown");
      program.tag("Shown", "REAL", 1.5);
    });
    expect(await failureOf(opened.session.read(request, ctx))).toMatchObject({
      scope: "program",
      message: expect.stringContaining("Shown has the type 0xca"),
    });
    expect(opened.session.epoch).not.toBe(before);
    expect(await read(opened, ["Shown"], ctx)).toEqual([1.5]);
    const after = opened.session.epoch;
    device.download();
    skip(6000);
    expect(await failureOf(opened.session.read(request, ctx))).toMatchObject({
      scope: "program",
      message: expect.stringContaining("class AC"),
    });
    expect(opened.session.epoch).not.toBe(after);
    expect((await open(device.port, {}, ctx)).session.epoch).toBe(opened.session.epoch);
  });

  it("are known to belong to a program once the controller says which", async () => {
    let isBusy = true;
    const device = await start({}, (one) => {
      one.misbehave = ({ service }) => (isBusy && service === 0x03 ? { status: STATUS.downloading } : undefined);
    });
    const opened = await open(device.port);
    const before = opened.session.epoch;
    isBusy = false;
    const { ready } = await prepare(opened, ["Shown"]);
    skip(6000);
    const [request] = driver.plan(ready, opened.limits());
    expect(request && (await opened.session.read(request, context())).map(shown)).toEqual([2]);
    expect(opened.session.epoch).not.toBe(before);
  });

  it("are not looked up again and again where the mark is another one each time", async () => {
    const device = await start();
    const opened = await open(device.port);
    const { ready } = await prepare(opened, ["Shown"]);
    const [request] = driver.plan(ready, opened.limits());
    if (!request) throw new Error("nothing is planned");
    const outcomes: string[] = [];
    for (let i = 1; i <= 9; i++) {
      device.program.changes++;
      vi.restoreAllMocks();
      skip(6000 * i);
      outcomes.push(
        await opened.session.read(request, context()).then(
          () => "read",
          (error: FaultError) => error.scope,
        ),
      );
    }
    expect(outcomes).toEqual([...Array.from({ length: 6 }, () => "program"), "read", "read", "read"]);
  });

  it("that have two types are looked up again once, and refused then", async () => {
    const device = await start({}, ({ cpu }) => {
      cpu.hasChangeMark = false;
    });
    const opened = await open(device.port);
    const { ready } = await prepare(opened, ["Shown", "Recipe1.Speed"]);
    device.misbehave = ({ reads, service }) =>
      reads.some(({ path }) => path === "Shown") && service === 0x4c
        ? { change: () => Buffer.from("cc000000c30001000000", "hex") }
        : undefined;
    const [shown] = ready.filter(({ index }) => index === 0);
    const [request] = driver.plan(shown ? [shown] : [], opened.limits());
    if (!request) throw new Error("nothing is planned");
    expect(await failureOf(opened.session.read(request, context()))).toMatchObject({ scope: "program" });
    const [reading] = await opened.session.read(request, context());
    expect(reading).toMatchObject({ fault: "type_mismatch", detail: expect.stringContaining("the type 0xc3 instead of 0xc4") });
  });

  it("go on being looked up where that was interrupted", async () => {
    const program = new LogixProgram();
    for (let i = 0; i < 2000; i++) program.tag(`Tag_${i}`, "DINT", i);
    const device = await start({ program });
    const ctx = context({ device: deviceMemory() });
    const opened = await open(device.port, { connection_size: 504 }, ctx);
    const all = ["Tag_1", "Tag_1000", "Tag_1999"];
    const points = pointsOf(opened.settings, all);
    const begin = opened.session.prepare?.(points, ctx)[Symbol.asyncIterator]();
    const first = await begin?.next();
    expect(first?.value).toHaveLength(1);
    const second = await begin?.next();
    expect(second?.value).toHaveLength(1);
    device.resetCounts();
    const rest: unknown[] = [];
    for await (const batch of opened.session.prepare?.(points.slice(2), ctx) ?? []) rest.push(...batch);
    expect(rest).toHaveLength(1);
    const pages = 2000 / 20;
    expect(device.counts.messages).toBeLessThan(pages * 0.75);
    // What is before the place where it went on is found too.
    expect(await read(opened, ["Tag_5", "Tag_1999"], ctx)).toEqual([5, 1999]);
  });
});

describe("discovery", () => {
  it("lists tags, programs and their tags, then members, without what is the controller's own", async () => {
    const device = await start();
    const found = await discover(await open(device.port));
    const byAddress = new Map(found.map((one) => [one.address, one]));
    expect(byAddress.size).toBe(found.length);
    expect(byAddress.get("Program:Main")).toEqual({ address: "Program:Main", name: "Program:Main", type: undefined });
    expect(byAddress.get("Program:Main.Rates")).toMatchObject({
      name: "Rates",
      path: ["Program:Main"],
      type: { scalar: "float32", count: 3 },
    });
    expect(byAddress.get("Hidden")).toMatchObject({ type: undefined, comment: "External Access: None" });
    expect(byAddress.get("Recipe1")).toMatchObject({ type: { scalar: "string" }, comment: "Recipe" });
    expect(byAddress.get("Label")).toMatchObject({ type: { scalar: "string" } });
    expect(byAddress.get("Recipe1.Cooling.DN")).toMatchObject({ name: "DN", path: ["Recipe1", "Cooling"], type: { scalar: "bool" } });
    expect(byAddress.get("Recipe1.Flags")).toMatchObject({ type: { scalar: "bool", count: 32 } });
    expect(byAddress.get("Recipes[2].Steps")).toMatchObject({ path: ["Recipes[2]"], type: { scalar: "int32", count: 4 } });
    expect([...byAddress.keys()].filter((address) => /__|ZZZZ|CTL|Routine|Label\./.test(address))).toEqual([]);
    const places = ["Recipe1", "Program:Main.Cycle", "Recipe1.Speed"].map((address) => found.findIndex((one) => one.address === address));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    // What is listed with a type is read with it.
    const opened = await open(device.port);
    const readable = found.flatMap(({ address, type }) => (type === undefined ? [] : [`${address}:${formatDataType(type)}`]));
    const values = await read(opened, readable);
    expect(values).toHaveLength(readable.length);
    expect(values).not.toContain(undefined);
    expect(values.filter((value) => typeof value === "string" && /^[a-z_]+(?: \(|: )/.test(value))).toEqual([]);
  });

  it("lists 20,000 tags a page at a time, with progress", async () => {
    const program = new LogixProgram();
    for (let i = 0; i < 20_000; i++) program.tag(`Tag_${i}`, i % 2 === 0 ? "DINT" : "REAL");
    const device = await start({ program });
    const opened = await open(device.port);
    let progress = 0;
    let count = 0;
    const ctx = context({ progress: (done) => (progress = done) });
    for await (const one of opened.session.discover?.(ctx) ?? []) {
      if (one.type) count++;
      // What comes is given on before the next page is asked for.
      if (count === 1) expect(device.lastMessages.filter(({ service }) => service === 0x55)).toHaveLength(1);
    }
    expect([count, progress]).toEqual([20_000, 20_000]);
    expect(device.violations).toEqual([]);
  });

  it("ends a list that goes in a circle", async () => {
    const device = await start({}, (one) => {
      one.misbehave = ({ service }) =>
        service === 0x55 ? { change: () => Buffer.from(`d500060000000000010041c400${"00".repeat(13)}`, "hex") } : undefined;
    });
    expect(await failureOf(discover(await open(device.port)))).toMatchObject({ message: expect.stringContaining("in a circle") });
  });
});

describe("answers", () => {
  it("are taken in two parts, cut at every byte", async () => {
    const device = await start();
    let cut = 0;
    const relay = net.createServer({ noDelay: true }, (socket) => {
      const device_ = net.connect({ port: device.port, host: "127.0.0.1", noDelay: true });
      cleanUp.push(
        () => socket.destroy(),
        () => device_.destroy(),
      );
      socket.on("error", () => {});
      device_.on("error", () => {});
      socket.on("data", (bytes) => device_.write(bytes));
      device_.on("data", (bytes) => {
        const at = Math.min(cut, bytes.length);
        if (at > 0) socket.write(bytes.subarray(0, at));
        if (at < bytes.length) setImmediate(() => socket.write(bytes.subarray(at)));
      });
    });
    await new Promise<void>((ready) => relay.listen(0, "127.0.0.1", ready));
    cleanUp.push(() => relay.close());
    const opened = await open((relay.address() as AddressInfo).port);
    const some = ["Recipe1.Speed:REAL", "Shown:DINT", "Product:STRING"];
    const { ready } = await prepare(opened, some);
    const [request] = driver.plan(ready, opened.limits());
    if (!request) throw new Error("nothing is planned");
    for (cut = 1; cut < 190; cut++) {
      const readings = await opened.session.read(request, context());
      expect(readings.map(shown).toSorted()).toEqual([12.25, 2, "Mühle 1"].toSorted());
    }
  });

  it("to nobody are ignored", async () => {
    const device = await start();
    const opened = await open(device.port, { in_flight: 2 });
    const { ready } = await prepare(opened, ["Shown", "Recipe1.Speed"]);
    const requests = driver.plan(ready, { ...opened.limits(), maxPoints: 1 });
    // The second is answered before the first.
    let isFirst = true;
    device.misbehave = () => {
      if (!isFirst) return undefined;
      isFirst = false;
      return { delayMs: 50 };
    };
    const answers = await Promise.all(requests.map((request) => opened.session.read(request, context())));
    expect(answers.flat().map(shown).toSorted()).toEqual([12.25, 2].toSorted());
  });

  it.each([
    ["of another service", "ce000000c40002000000", "service 0xce answers service 0x4c"],
    ["that are too short", "cc00", "a reply of 2 bytes"],
    ["whose status goes beyond the end", "cc00ff05", "5 words of status"],
  ])("%s break the protocol", async (_, bytes, words) => {
    const device = await start();
    const opened = await open(device.port);
    const { ready } = await prepare(opened, ["Shown"]);
    device.misbehave = () => ({ change: () => Buffer.from(bytes, "hex") });
    const [request] = driver.plan(ready, opened.limits());
    expect(request && (await failureOf(opened.session.read(request, context())))).toMatchObject({
      condition: "protocol_violation",
      message: expect.stringContaining(words),
    });
  });
});
