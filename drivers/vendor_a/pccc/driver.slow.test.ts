import { afterEach, describe, expect, it, vi } from "vitest";
import { deviceMemory, driverContext } from "../../../test/support/driver-context.ts";
import { startFaultProxy } from "../../../test/support/fault-proxy.ts";
import { openPlanned } from "../../../test/support/planned.ts";
import type { DeviceMemory, DriverContext, Point } from "../../driver.ts";
import { typeOf } from "../../driver.ts";
import { LEARNED_FOR_MS } from "../../lib/learned.ts";
import driver from "../driver.ts";
import { type CipMessage, LogixProgram, startCipDevice } from "../simulator.ts";
import { type FileDeviceOptions, fileCpu, filledFiles, startFileDevice } from "../simulator-controllers.ts";
import { DataFiles } from "../simulator-files.ts";
import { CONTROLLER, DHRIO } from "../simulator-identity.ts";
import { FILE_STATUS, FileCpu } from "../simulator-pccc.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function start(options: FileDeviceOptions) {
  const device = await startFileDevice(options);
  closing.push(() => device.close());
  return device;
}

type Variables = readonly { readonly address: string; readonly type?: string }[];
async function open(port: number, variables: Variables, local: object = {}) {
  const planned = await openPlanned(driver, { type: "vendor_a", host: "127.0.0.1", port }, local, variables);
  closing.push(() => planned.session.close());
  return planned;
}

const context = (device?: DeviceMemory, answerMs = 1000): DriverContext => driverContext({ answerMs, ...(device && { device }) });

/** Each address looked up, planned and read by itself: the value, or the fault with its words. */
async function readEach(
  port: number,
  addresses: readonly string[],
  local: object = {},
  device?: DeviceMemory,
  answerMs?: number,
): Promise<unknown[]> {
  const settings = driver.settings.parse(local);
  const session = await driver.connect(
    { details: driver.details.parse({ type: "vendor_a", host: "127.0.0.1", port }), settings, secrets: {} },
    context(device, answerMs),
  );
  closing.push(() => session.close());
  const values: unknown[] = [];
  for (const text of addresses) {
    const [address = "", word] = text.split("=");
    const point: Point = { index: 0, ...driver.parseAddress(address, word === undefined ? undefined : typeOf(driver, word), settings) };
    try {
      const ready: Point[] = [];
      for await (const batch of session.prepare?.([point], context()) ?? [])
        for (const one of batch)
          if ("address" in one) ready.push({ ...point, address: one.address });
          else throw one.refusal;
      const [request] = driver.plan(ready, driver.limits?.(session.limits, settings) ?? session.limits);
      const [reading] = request ? await session.read(request, context()) : [];
      values.push(reading?.quality === "bad" ? `${reading.fault}: ${reading.detail}` : reading?.value);
    } catch (error) {
      values.push(error);
    }
  }
  return values;
}

describe.each(["slc", "micrologix", "plc5"] as const)("%s", (family) => {
  it.each([undefined, "eni", "dhp"] as const)("is read, behind: %s", async (behind) => {
    const filled = filledFiles(family);
    const cpu = fileCpu(family, filled);
    const device = await start({ cpu, ...(behind && { behind }) });
    const { values, session } = await open(device.port, filled.variables, behind === "dhp" ? { path: "1,3,A:12" } : {});
    expect(await values()).toEqual(filled.variables.map(({ value }) => value));
    expect(session.about).toContain({ slc: "an SLC 500", micrologix: "a MicroLogix", plc5: "a PLC-5" }[family]);
    expect(device.violations).toEqual([]);
    await session.close();
    expect(device.manager.size).toBe(0);
  });

  it("is read the same, byte by byte", async () => {
    const filled = filledFiles(family);
    const device = await start({ cpu: fileCpu(family, filled), behind: "dhp" });
    const proxy = await startFaultProxy(device.port);
    closing.push(() => proxy.close());
    proxy.fault = "split";
    const variables = filled.variables.slice(-12);
    expect(await (await open(proxy.port, variables, { path: "1,3,A:12" })).values()).toEqual(variables.map(({ value }) => value));
  });

  it("is read as the setting says, whatever the controller says", async () => {
    const filled = filledFiles(family);
    const cpu = fileCpu(family, filled);
    const device = await start({ cpu, behind: "eni" });
    cpu.refuse = ({ cmd }) => (cmd === 0x06 ? FILE_STATUS.command : undefined);
    expect(await (await open(device.port, filled.variables, { family })).values()).toEqual(filled.variables.map(({ value }) => value));
    await expect(open(device.port, [])).rejects.toMatchObject({ reason: { type: "UNKNOWN" }, condition: "configuration_invalid" });
  });
});

describe("sizes", () => {
  const words = Array.from({ length: 300 }, (_, i) => ({ address: `N7:${i}` }));

  it("asks for all of a file in the fewest requests", async () => {
    for (const [family, requests] of [
      ["micrologix", 3],
      ["plc5", 3],
    ] as const) {
      const cpu = fileCpu(family);
      const device = await start({ cpu });
      expect((await open(device.port, words)).requests).toHaveLength(requests);
    }
  });

  it("asks older processors for 82 bytes", async () => {
    const cpu = fileCpu("slc");
    cpu.bulletin = "5/02";
    cpu.maxBytes = 82;
    const device = await start({ cpu, behind: "eni" });
    const { requests, values } = await open(device.port, words);
    expect(requests).toHaveLength(Math.ceil(600 / 82));
    expect((await values()).slice(0, 3)).toEqual([-1, 32_767, -32_768]);
  });

  it("reads a long value in pieces, and learns how long they may be", async () => {
    const cpu = fileCpu("micrologix");
    cpu.maxBytes = 100;
    const device = await start({ cpu });
    const { values } = await open(device.port, [{ address: "N7:0{200}" }]);
    expect(((await values())[0] as number[]).slice(0, 3)).toEqual([-1, 32_767, -32_768]);
    expect(cpu.counts.refused).toBe(2);
    await values();
    expect(cpu.counts.refused).toBe(2);
    // A range that the file does not have teaches nothing.
    expect(await readEach(device.port, ["N7:250{60}", "N7:0{30}"])).toMatchObject([{ fault: "out_of_range" }, expect.any(Array)]);
  });

  it("takes fewer by its setting, also of one long value", async () => {
    const cpu = fileCpu("micrologix");
    const device = await start({ cpu });
    expect((await open(device.port, words, { max_file_bytes: 100 })).requests).toHaveLength(6);
    const { values } = await open(device.port, [{ address: "N7:0{200}" }], { max_file_bytes: 100 });
    expect((await values())[0]).toHaveLength(200);
    expect(cpu.lastCommands.map(({ data }) => data[0])).toEqual([100, 100, 100, 100]);
  });

  it("are learned of one controller, and not of another behind the same module", async () => {
    const [small, large] = [fileCpu("slc"), fileCpu("slc")];
    small.maxBytes = 60;
    const device = await start({ cpu: small, behind: "dhp" });
    const nodes = new Map([
      [0o12, small],
      [0o13, large],
    ]);
    device.slots.set(3, { kind: "dhp", identity: DHRIO, channel: 1, nodes });
    const memory = deviceMemory();
    const read = async (path: string) => (await readEach(device.port, ["N7:0{110}"], { path }, memory))[0];
    expect(await read("1,3,A:12")).toHaveLength(110);
    expect(await read("1,3,A:13")).toHaveLength(110);
    expect([small.counts.refused > 0, large.counts.refused, large.counts.reads]).toEqual([true, 0, 1]);
  });
});

describe("missing files and elements", () => {
  it("are refused in words", async () => {
    const cpu = fileCpu("micrologix");
    const device = await start({ cpu });
    const found = await readEach(device.port, ["N99:0", "N7:299{5}", "F7:0", "A11:0", "Motor.Speed", "I:9.0"]);
    expect(found.map((one) => (one as { readonly fault?: string }).fault)).toEqual([
      "not_found",
      "out_of_range",
      "type_mismatch",
      "not_found",
      "not_found",
      "not_found",
    ]);
  });

  it("show in the typed reply of a PLC-5: a letter that does not match gives no value", async () => {
    const cpu = fileCpu("plc5");
    const device = await start({ cpu });
    const found = await readEach(device.port, ["F7:0", "N8:0", "N3:0", "B7:0", "L10:0", "I:018"]);
    expect(found.map((one) => (one as { readonly fault?: string }).fault)).toEqual([
      "type_mismatch",
      "type_mismatch",
      "type_mismatch",
      undefined,
      "not_found",
      "address_invalid",
    ]);
  });

  it("are requested in another way once: inputs by slot, and words where there are no typed reads", async () => {
    const slc = fileCpu("slc");
    slc.isBySlot = true;
    const device = await start({ cpu: slc });
    expect(await readEach(device.port, ["I:1.0/7", "O:2", "I:1.1"])).toEqual([true, 1, 0x0102]);
    expect(slc.counts.refused).toBe(1);
    const plc5 = fileCpu("plc5");
    plc5.hasTyped = false;
    const other = await start({ cpu: plc5 });
    expect(await readEach(other.port, ["N7:0", "F8:0", "ST9:0"])).toEqual([-1, 21.5, "Recipe 7"]);
    expect(plc5.counts.refused).toBe(1);
    const { session, values } = await open(other.port, [{ address: "N7:0" }]);
    await values();
    expect(session.warnings?.().map(({ code }) => code)).toEqual(["file_types_unproved"]);
  });
});

describe("troubles", () => {
  afterEach(() => void vi.restoreAllMocks());

  it("that one answer brings do not turn proved types off for longer than ten minutes", async () => {
    const cpu = fileCpu("plc5");
    const device = await start({ cpu });
    const { session, values } = await open(device.port, [{ address: "N7:0" }]);
    cpu.refuse = ({ fnc }) => (fnc === 0x68 ? FILE_STATUS.command : undefined);
    expect(await values()).toEqual([-1]);
    cpu.refuse = undefined;
    expect(session.warnings?.()).toHaveLength(1);
    const now = performance.now();
    vi.spyOn(performance, "now").mockReturnValue(now + LEARNED_FOR_MS);
    expect(await values()).toEqual([-1]);
    expect(cpu.lastCommands.at(-1)?.fnc).toBe(0x68);
    expect(session.warnings?.()).toEqual([]);
  });

  const isIdentity = ({ service, path }: CipMessage): boolean => service === 0x01 && /class 0x1\b/i.test(path);

  it("with the answer to what it is leave a controller what it was, and one that was never known is not read as another kind", async () => {
    const device = await start({ cpu: fileCpu("plc5") });
    const memory = deviceMemory();
    const read = (local: object, known = memory) => readEach(device.port, ["F8:0", "N7:0"], local, known, 100);
    device.misbehave = (message) => (isIdentity(message) ? { silent: true } : undefined);
    // Words of a float lie in another order in a controller of another kind.
    const unknown = deviceMemory();
    expect(await read({ path: "direct" }, unknown)).toMatchObject([
      { fault: "device_error", message: expect.stringContaining("set family") },
      -1,
    ]);
    await expect(read({})).rejects.toMatchObject({ reason: { type: "UNKNOWN" } });
    device.misbehave = undefined;
    expect(await read({})).toEqual([21.5, -1]);
    device.misbehave = (message) => (isIdentity(message) ? { silent: true } : undefined);
    expect(await read({})).toEqual([21.5, -1]);
    expect(await read({})).toEqual([21.5, -1]);
  });

  it("on the way are not mistaken for a device without PCCC", async () => {
    const device = await start({ cpu: fileCpu("micrologix") });
    const answered = async (general: number) => {
      device.misbehave = ({ service }) => (service === 0x4b ? { status: { general } } : undefined);
      return (await readEach(device.port, ["N7:0"]))[0];
    };
    expect(await answered(0x02)).toMatchObject({ scope: "busy", message: expect.stringContaining("no resources left") });
    expect(await answered(0x1b)).toMatchObject({ scope: "points", message: expect.stringContaining("too large for a bridge") });
    expect(await answered(0x05)).toMatchObject({ scope: "everything", message: expect.stringContaining("takes no PCCC commands") });
  });
});

describe("a Logix controller", () => {
  it("has tags and mapped files in one source", async () => {
    const program = new LogixProgram();
    program.tag("Boxes", "DINT", 7);
    const device = await startCipDevice({ program, layout: "bridge" });
    closing.push(() => device.close());
    const files = new DataFiles();
    files.file(7, "N", 20);
    files.word(7, 3, -42);
    files.file(8, "F", 4);
    files.float(8, 1, 2.5);
    device.cpu.mapped = new FileCpu({ files, identity: CONTROLLER, takes: "both" });
    const { values } = await open(device.port, [{ address: "N7:3" }, { address: "Boxes" }, { address: "F8:1" }], { path: "1,3" });
    expect(await values()).toEqual([-42, 7, 2.5]);
    expect(device.violations).toEqual([]);
    device.cpu.mapped = undefined;
    const [refused] = await readEach(device.port, ["N7:3"], { path: "1,3" });
    expect(refused).toMatchObject({ fault: "device_error", message: expect.stringContaining("Map PLC/SLC Messages") });
  });
});

describe("listing", () => {
  it.each(["slc", "micrologix"] as const)("gives the files of %s with their elements", async (family) => {
    const cpu = fileCpu(family);
    const device = await start({ cpu });
    const { session } = await open(device.port, []);
    const found = [];
    for await (const one of session.discover?.(context()) ?? []) found.push(one);
    const names = found.map(({ address }) => address);
    for (const address of ["N7:299", "T4:2.ACC", "T4:9/DN", "ST9:2", "L10:9", "N300:2"]) expect(names).toContain(address);
    expect(names).not.toContain("N7:300");
    expect(found.find(({ address }) => address === "N7")).toMatchObject({ type: undefined, comment: "300 elements" });
  });
});
