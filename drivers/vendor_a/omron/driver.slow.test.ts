import { afterEach, describe, expect, it, vi } from "vitest";
import { FaultError } from "../../../src/model/fault.ts";
import { ReasonError } from "../../../src/model/reason.ts";
import { codesOf } from "../../../src/model/testing/warnings.ts";
import { formatDataType } from "../../../src/model/value.ts";
import { deviceMemory, driverContext } from "../../../test/support/driver-context.ts";
import { openPlanned } from "../../../test/support/planned.ts";
import type { DriverContext, Point, Prepared } from "../../driver.ts";
import { typeOf } from "../../driver.ts";
import driver from "../driver.ts";
import type { CipMessage, Misbehaviour } from "../simulator.ts";
import { OmronProgram, startOmronDevice } from "../simulator-omron.ts";
import { NJ_VARIABLES } from "../simulator-plant.ts";

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const step of cleanUp.splice(0).reverse()) await step();
});

async function start(options: Parameters<typeof startOmronDevice>[0] = {}) {
  const started = await startOmronDevice(options);
  cleanUp.push(() => started.device.close());
  return started;
}

const details = (port: number) => ({ type: "vendor_a", host: "127.0.0.1", port });

async function planned(port: number, variables: readonly { readonly address: string; readonly type?: string }[], local: object = {}) {
  const opened = await openPlanned(driver, details(port), local, variables);
  cleanUp.push(() => opened.session.close());
  return opened;
}

async function open(port: number, ctx: DriverContext = driverContext(), local: object = {}) {
  const settings = driver.settings.parse(local);
  const session = await driver.connect({ details: driver.details.parse(details(port)), settings, secrets: {} }, ctx);
  cleanUp.push(() => session.close());
  const prepare = async (...texts: readonly string[]): Promise<readonly Prepared[]> => {
    const points = texts.map((text, index): Point => {
      const [address = "", word] = text.split("=");
      return { index, ...driver.parseAddress(address, word === undefined ? undefined : typeOf(driver, word), settings) };
    });
    const found: Prepared[] = [];
    for await (const batch of session.prepare?.(points, ctx) ?? []) found.push(...batch);
    return found.toSorted((a, b) => a.point.index - b.point.index);
  };
  return { session, settings, prepare };
}

const refusal = (one: Prepared | undefined): string =>
  one && "refusal" in one ? `${one.refusal.fault}: ${one.refusal.message}` : "prepared";

const failureOf = (work: Promise<unknown>): Promise<ReasonError | FaultError> =>
  work.then(
    (value) => {
      throw new Error(`it gave ${JSON.stringify(value)}`);
    },
    (error: unknown) => {
      if (error instanceof ReasonError || error instanceof FaultError) return error;
      throw error;
    },
  );

describe("reading", () => {
  it.each([
    ["over a large connection", {}],
    ["over a small connection", { connection_size: 504 }],
    ["without a connection", { connected: false }],
  ])("every type and place: %s", async (_, local) => {
    const { device } = await start();
    const { session, values } = await planned(device.port, NJ_VARIABLES, local);
    expect(await values()).toEqual(NJ_VARIABLES.map(({ value }) => value));
    expect(session.warnings?.()).toEqual([]);
    expect(device.violations).toEqual([]);
    expect(device.counts.routed).toBe(0);
  });
});

/** Reads a few variables with what the session says of itself; `change` before the reading. */
async function readOne(
  port: number,
  text: string,
  change: () => void = () => {},
  ctx = driverContext({ answerMs: 400 }),
): Promise<unknown> {
  const { session, settings, prepare } = await open(port, ctx);
  const [one] = await prepare(text);
  if (!one || "refusal" in one) return refusal(one);
  const ready = { index: 0, address: one.address, type: one.type };
  const [request] = driver.plan([ready], driver.limits?.(session.limits, settings) ?? session.limits);
  if (!request) throw new Error("nothing is planned");
  change();
  const [reading] = await session.read(request, ctx);
  return reading?.quality === "bad" ? `${reading.fault}: ${reading.detail}` : reading?.value;
}

describe("arrays", () => {
  it("have the first index that is declared, and no element before it", async () => {
    const { device } = await start();
    const { prepare } = await open(device.port);
    const refused = (await prepare("Temps[0]", "Temps[4]", "Grid[0,4]", "Grid[0]", "Temps[2]{3}", "Flags[9]")).map(refusal);
    expect(refused).toEqual([
      'out_of_range: "Temps[0]": the elements of Temps are [1..3]',
      'out_of_range: "Temps[4]": the elements of Temps are [1..3]',
      'out_of_range: "Grid[0,4]": the elements of Grid are [0..1, 5..7]',
      'type_mismatch: "Grid[0]": Grid has 2 dimensions: [0..1, 5..7]',
      'out_of_range: "Temps[2]": 3 elements were requested, there are 2',
      'out_of_range: "Flags[9]": the elements of Flags are [10..46]',
    ]);
  });

  it("are read by elements where the controller gives no parts of them", async () => {
    const { device, cpu } = await start();
    cpu.givesParts = false;
    const long = NJ_VARIABLES.filter(({ address }) => address === "Counts" || address === "Many");
    const { values } = await planned(device.port, long, { connection_size: 504 });
    expect(await values()).toEqual(long.map(({ value }) => value));
    expect(cpu.counts.rows).toBeGreaterThan(5);
  });

  it("are one request where their elements lie together, and texts a request each", async () => {
    const { device } = await start();
    const { requests } = await planned(
      device.port,
      ["Temps[1]", "Temps[3]", "Names[1]", "Names[2]", "Status.0", "Status.3"].map((address) => ({ address })),
    );
    expect(requests.map((request) => driver.describe?.(request))).toEqual(["Temps[1..3]", "Names[1]", "Names[2]", "Status"]);
  });
});

describe("a controller that does not list its variables", () => {
  const KNOWN = NJ_VARIABLES.filter(({ address }) => !/^(Recipe1|Axes\[4\]|Flags$|Many|Note|Counts$|Names$|Grid)/.test(address));

  it("is read by name, and status says what is missing", async () => {
    const { device, cpu } = await start();
    cpu.lists = false;
    const { session, values } = await planned(device.port, KNOWN);
    expect(await values()).toEqual(KNOWN.map(({ value }) => value));
    expect(codesOf(session.warnings?.())).toEqual(["variables_not_listed"]);
    await expect(async () => {
      for await (const _ of session.discover?.(driverContext()) ?? []);
    }).rejects.toThrow("the controller lists no variables: the list of variables: status 0x08");
  });

  it("that is silent about them is read by name too, over the same connection", async () => {
    const { device } = await start();
    device.misbehave = ({ service }) => (service === 0x5f ? { silent: true } : undefined);
    const ctx = driverContext({ answerMs: 150, device: deviceMemory() });
    const { session, prepare } = await open(device.port, ctx);
    const found = await prepare("Total=DINT", "Recipe1.Speed");
    expect(found.map(refusal)).toEqual(["prepared", "prepared"]);
    expect(codesOf(session.warnings?.())).toEqual(["help_silent"]);
    expect(device.counts.accepted).toBe(1);
  });

  it("tells bytes of an array from the one that fills up a word by their count", async () => {
    const { device, cpu } = await start();
    cpu.lists = false;
    cpu.program.variable("Pair", "BYTE[0..1]", [1, 2]);
    cpu.program.variable("Four", "BYTE[0..3]", [1, 2, 3, 4]);
    expect(await readOne(device.port, "Pair{2}")).toEqual([1, 2]);
    expect(await readOne(device.port, "Four{4}")).toEqual([1, 2, 3, 4]);
    expect(await readOne(device.port, "Four{3}")).toEqual([1, 2, 3]);
    expect(await readOne(device.port, "Four")).toContain("say how many, for example Four{4}");
  });

  it("refuses a path that has no room for the part of an element", async () => {
    const { device } = await start();
    const long = Array.from({ length: 4 }, (_, i) => `${"m".repeat(120)}${i}`).join(".");
    const { prepare } = await open(device.port);
    expect((await prepare(long)).map(refusal)).toEqual([expect.stringMatching(/^address_invalid: .*a path of \d+ bytes/)]);
  });

  it("says what an address has to say instead", async () => {
    const { device, cpu } = await start();
    cpu.lists = false;
    const { prepare } = await open(device.port);
    const found = (
      await prepare("Flags", "Flags{37}", "Flags{20}", "Recipe1", "Bytes", "Bytes{4}", "Names[2]", "Counts", "Grid[1,5]", "Hidden")
    ).map(refusal);
    expect(found).toEqual([
      'type_mismatch: "Flags": it is an array of BOOL whose bounds the controller does not list: say how many, for example Flags{16}',
      "prepared",
      'type_mismatch: "Flags": it is not an array of 20 BOOL: its answer has 48 bits',
      expect.stringContaining('type_mismatch: "Recipe1": it is a structure whose members the controller does not list: name one of them ('),
      "prepared",
      'type_mismatch: "Bytes": its bounds are not listed, and its answer has 5 elements',
      "prepared",
      expect.stringMatching(/^out_of_range: Counts: an answer has no room for it|^prepared/),
      "prepared",
      expect.stringContaining("not_found: Hidden: status 0x05 (no such variable on the network: set Network Publish"),
    ]);
  });
});

/** Requests for the types of variables: instances of class 6B, or of 6C. */
const isOfTypes = ({ service, path }: CipMessage): boolean => service === 0x01 && /class (107|108|0x6b|0x6c)\b/i.test(path);

describe("a controller that lists its variables, and not their types", () => {
  it.each<[string, Misbehaviour]>([
    ["refuses them", { status: { general: 0x08 } }],
    ["gives no answer", { silent: true }],
  ])("is read by name, as one without a list: %s", async (_, odd) => {
    const { device } = await start();
    device.misbehave = (message) => (isOfTypes(message) ? odd : undefined);
    const { prepare } = await open(device.port, driverContext({ answerMs: 100, device: deviceMemory() }));
    const found = await prepare("Total=DINT", "Recipe1.Speed", "Temps[2]", "Recipe1", "Hidden");
    expect(found.map(refusal)).toEqual([
      "prepared",
      "prepared",
      "prepared",
      expect.stringContaining("device_error: the type of Recipe1: "),
      expect.stringContaining("not_found: Hidden"),
    ]);
    expect(device.counts.accepted).toBe(1);
  });

  it("gets no further question about types for a minute once it gave no answer", async () => {
    const { device } = await start();
    device.misbehave = (message) => (isOfTypes(message) ? { silent: true } : undefined);
    const { session, prepare } = await open(device.port, driverContext({ answerMs: 100, device: deviceMemory() }));
    expect((await prepare("Recipe1")).map(refusal)).toEqual([
      expect.stringContaining("the type of Recipe1: the controller gives no answer"),
    ]);
    const asked = device.counts.messages;
    expect((await prepare("Recipe1", "Axes[4]")).map(refusal)).not.toContain("prepared");
    // By name only.
    expect(device.counts.messages - asked).toBeLessThanOrEqual(4);
    expect(codesOf(session.warnings?.())).toEqual(["help_silent"]);
  });

  it("gives members of a union by their names", async () => {
    const { device, cpu } = await start();
    const instance = cpu.program.variables.get("recipe1")?.instance ?? 0;
    const isRecipe = ({ service, path }: CipMessage) => service === 0x01 && path.includes("6b") && path.endsWith(` ${instance}`);
    const UNION = 0x0c;
    device.misbehave = (message) =>
      isRecipe(message) ? { change: (reply) => Buffer.concat([reply.subarray(0, 8), Buffer.of(UNION), reply.subarray(9)]) } : undefined;
    expect(await readOne(device.port, "Recipe1.Speed")).toBe(12.25);
    expect(await readOne(device.port, "Recipe1")).toContain("a union is not read as a whole");
  });
});

describe("ways to the controller", () => {
  it("tries slot 0 and the controller's own address where it refuses the way without a route, and remembers which answered", async () => {
    const { device } = await start({ layout: "compact" });
    const isOpening = (service: number) => service === 0x54 || service === 0x5b;
    let opened = 0;
    device.misbehave = ({ service }) => (isOpening(service) && opened++ === 0 ? { status: { general: 1, extended: [0x0315] } } : undefined);
    const memory = deviceMemory();
    const first = await open(device.port, driverContext({ device: memory }));
    expect(first.session.about).toContain("(slot 0)");
    await first.session.close();
    const again = await open(device.port, driverContext({ device: memory }));
    expect(again.session.about).toContain("(slot 0)");
    expect(opened).toBe(3);
  });

  it("takes the path of the settings, and the sizes that the controller grants", async () => {
    const { device } = await start();
    expect((await open(device.port, driverContext(), { path: "direct" })).session.granted).toBe("a connection with messages of 1992 bytes");
    device.manager.grants.largeBytes = 0;
    expect((await open(device.port)).session.granted).toBe("a connection with messages of 502 bytes");
    expect((await open(device.port, driverContext(), { connected: false })).session.granted).toBe("no connection, messages of 472 bytes");
  });
});

describe("answers", () => {
  it.each(["Total", "Running", "Product", "Temps", "Recipe1", "Names[2]"])(
    "of %s that are cut at any byte are never a value",
    async (text) => {
      const { device, cpu } = await start();
      const whole = await readOne(device.port, text);
      // The reply header, and behind it every shorter reply in a whole frame.
      for (let length = 4, isShorter = true; isShorter; length += text === "Recipe1" ? 7 : 1) {
        const value = await readOne(device.port, text, () => {
          device.misbehave = () => ({
            change: (reply) => {
              isShorter = length < reply.length;
              return reply.subarray(0, length);
            },
          });
        }).catch((error: unknown) => error);
        device.misbehave = undefined;
        if (isShorter) expect(value, `${length} bytes`).toBeInstanceOf(FaultError);
        else expect(value).toEqual(whole);
      }
      expect(cpu.program.variables.size).toBeGreaterThan(30);
    },
  );

  it("that are longer than the part that was requested give no text", async () => {
    const { device, cpu } = await start();
    const long = "äöü".repeat(300);
    cpu.program.set("Note", long);
    expect(await readOne(device.port, "Note")).toBe(long);
    // The whole text, whatever part was asked for.
    const text = Buffer.from(long);
    const whole = Buffer.concat([Buffer.of(0xcc, 0, 0, 0, 0xd0, 0, text.length & 0xff, text.length >> 8), text]);
    const settings = { connection_size: 504 };
    const { requests, session } = await planned(device.port, [{ address: "Note" }], settings);
    device.misbehave = () => ({ change: () => whole });
    const [request] = requests;
    if (!request) throw new Error("nothing is planned");
    await expect(session.read(request, driverContext())).rejects.toMatchObject({
      fault: "device_error",
      message: expect.stringMatching(/sent 1800 of \d+ bytes/),
    });
  });

  it("may hold fewer elements than a connection has room for", async () => {
    const { device, cpu } = await start();
    cpu.givesParts = false;
    const most = 40;
    const tooLarge: Misbehaviour = { status: { general: 0x11 } };
    device.misbehave = ({ service, reads }) => (service === 0x4c && (reads[0]?.count ?? 0) > most ? tooLarge : undefined);
    const long = NJ_VARIABLES.filter(({ address }) => address === "Counts");
    const { values } = await planned(device.port, long, { connection_size: 504 });
    expect(await values()).toEqual(long.map(({ value }) => value));
  });

  it("to a read of a duration have either of its two codes", async () => {
    const { device } = await start();
    const other = () => {
      device.misbehave = () => ({ change: (reply) => Buffer.concat([reply.subarray(0, 4), Buffer.of(0x09), reply.subarray(5)]) });
    };
    expect(await readOne(device.port, "Cycle", other)).toBe(-1_500_000_001n);
  });

  it("in frames that come byte by byte are the same", async () => {
    const { device } = await start();
    device.misbehave = () => ({ delayMs: 1 });
    expect(await readOne(device.port, "Product")).toBe("Käse 乳酪 №5");
  });

  it("that refuse a variable may be others in a minute, when the program is another one", async () => {
    const { device, cpu } = await start();
    const { prepare } = await open(device.port);
    const wanted = ["Temps[4]", "Recipe1.Later", "NoSuch", "Total[0]"];
    for (const one of await prepare(...wanted)) expect(one).toMatchObject({ refusal: expect.anything(), retryAfterMs: 60_000 });
    cpu.program.structure("Other", [["Later", "INT"]]);
    cpu.program.variable("Recipe1", "Other", { Later: 5 });
    cpu.program.variable("Temps", "REAL[1..4]", [0, 0, 0, 4]);
    cpu.program.variable("NoSuch", "DINT");
    cpu.program.variable("Total", "DINT[0..1]", [1, 2]);
    const now = performance.now();
    vi.spyOn(performance, "now").mockReturnValue(now + 60_000);
    expect((await prepare(...wanted)).map(refusal)).toEqual(["prepared", "prepared", "prepared", "prepared"]);
  });

  it("with another type or CRC mean another program, once; then the type does not fit", async () => {
    const { device, cpu } = await start();
    const ctx = driverContext({ device: deviceMemory() });
    const change = () => {
      device.misbehave = () => ({ change: (reply) => Buffer.concat([reply.subarray(0, 4), Buffer.of(0xca, 0), reply.subarray(6)]) });
    };
    const first = await failureOf(readOne(device.port, "Total=DINT", change, ctx));
    device.misbehave = undefined;
    expect(first).toMatchObject({ fault: "program_changed", scope: "program" });
    cpu.program.variable("Axes", "DINT[3..5]", [1, 2, 3]);
    expect(await readOne(device.port, "Axes[4]", () => {}, ctx)).toBe(2);
  });
});

describe("browsing", () => {
  it("ends where the controller lists its variables in a circle", async () => {
    const { device } = await start();
    const entry = Buffer.from("010000000c006b0001000000054f74686572", "hex");
    const page = Buffer.concat([Buffer.from("df0000000100ff00", "hex"), entry]);
    device.misbehave = ({ service }) => (service === 0x5f ? { change: () => page } : undefined);
    const { prepare } = await open(device.port);
    expect((await prepare("Total", "_Nothing")).map(refusal)).toEqual(["prepared", expect.stringContaining("not_found")]);
    expect(device.counts.messages).toBeLessThan(12);
  });

  it("lists published variables with their members and bounds, the system's last, over many pages", async () => {
    const program = new OmronProgram();
    program.structure("Part", [
      ["On", "BOOL"],
      ["Sizes", "INT[1..2]"],
    ]);
    program.variable("Parts", "Part[4..5]");
    for (let i = 0; i < 250; i++) program.variable(`V${i}`, "DINT");
    program.variable("_Clock", "DATE_AND_TIME");
    program.variable("Hidden", "DINT", 0, { isPublished: false });
    const { device } = await start({ program });
    const { session } = await open(device.port);
    const found: string[] = [];
    for await (const { address, type, path } of session.discover?.(driverContext()) ?? [])
      found.push([address, type && formatDataType(type), ...(path ?? [])].join(" "));
    expect(found.slice(0, 5)).toEqual([
      "Parts string[2]",
      "Parts[4].On bool Parts[4]",
      "Parts[4].Sizes int16[2] Parts[4]",
      "Parts[5].On bool Parts[5]",
      "Parts[5].Sizes int16[2] Parts[5]",
    ]);
    expect(found).toHaveLength(5 + 250 + 1);
    expect(found.at(-1)).toBe("_Clock string");
    expect(device.violations).toEqual([]);
  });
});
