import net, { type AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ReasonError } from "../../src/model/reason.ts";
import { codesOf, textsOf } from "../../src/model/testing/warnings.ts";
import { driverContext as context, deviceMemory } from "../../test/support/driver-context.ts";
import type { AnySession, DriverContext, Point } from "../driver.ts";
import driver from "./driver.ts";
import {
  type CipDevice,
  type CipDeviceOptions,
  type CipMessage,
  filledProgram,
  type Misbehaviour,
  STATUS,
  startCipDevice,
} from "./simulator.ts";

/** Longer than the simulator takes, so short that a request without an answer costs little. */
const ANSWER_MS = 60;
const HELP = {
  identity: ({ path, service }) => service === 0x01 && /class 0x1\b|class 1\b/i.test(path),
  mark: ({ path }) => /class 0xac|class 172/i.test(path),
  list: ({ service }) => service === 0x55,
  template: ({ path }) => /class 0x6c|class 108/i.test(path),
  connection: ({ service }) => service === 0x54 || service === 0x5b,
} as const satisfies Record<string, (message: CipMessage) => boolean>;
type Kind = keyof typeof HELP;
const KINDS = Object.keys(HELP) as Kind[];

let aheadMs = 0;
const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  aheadMs = 0;
  vi.restoreAllMocks();
  vi.useRealTimers();
  for (const step of cleanUp.splice(0).reverse()) await step();
});

async function start(options: CipDeviceOptions = {}): Promise<CipDevice> {
  const device = await startCipDevice({ program: filledProgram().program, ...options });
  cleanUp.push(() => device.close());
  return device;
}

async function open(device: CipDevice, ctx: DriverContext, local: object = { path: "1,0" }): Promise<AnySession> {
  const details = driver.details.parse({ type: "vendor_a", host: "127.0.0.1", port: device.port });
  const session = await driver.connect({ details, settings: driver.settings.parse(local), secrets: {} }, ctx);
  cleanUp.push(() => session.close());
  return session;
}

/** Values by address, or what each was refused with. */
async function read(session: AnySession, addresses: readonly string[], ctx: DriverContext): Promise<Record<string, unknown>> {
  const points = addresses.map((text, index) => ({ index, ...driver.parseAddress(text, undefined, driver.settings.parse({})) }));
  const [values, ready]: [Record<string, unknown>, Point[]] = [{}, []];
  for await (const batch of session.prepare?.(points, ctx) ?? [])
    for (const one of batch)
      if ("address" in one) ready.push({ index: one.point.index, address: one.address, type: one.type });
      else values[addresses[one.point.index] ?? ""] = `${one.refusal.fault}: ${one.refusal.message}`;
  for (const request of driver.plan(ready, session.limits)) {
    const readings = await session.read(request, ctx);
    for (const [i, reading] of readings.entries())
      values[addresses[request.points[i]?.index ?? -1] ?? ""] = reading.quality === "bad" ? reading.detail : reading.value;
  }
  return values;
}

const silentTo =
  (...kinds: readonly Kind[]) =>
  (message: CipMessage): Misbehaviour | undefined =>
    kinds.some((kind) => HELP[kind](message)) ? { silent: true } : undefined;

const realNow = performance.now.bind(performance);
/** Monotonic time runs ahead by so many ms more from now on. */
function skip(ms: number): void {
  aheadMs += ms;
  vi.spyOn(performance, "now").mockImplementation(() => realNow() + aheadMs);
}

const PLAIN = ["Shown", "Recipe1.Speed"];
const WHOLE = [...PLAIN, "Recipe1.Steps"];

describe("a request that only helps and has no answer", () => {
  it.each(KINDS)("costs its help alone: %s", async (kind) => {
    const ctx = context({ answerMs: ANSWER_MS, device: deviceMemory() });
    const device = await start();
    const well = await read(await open(device, context()), PLAIN, ctx);
    device.resetCounts();
    device.misbehave = silentTo(kind);
    const session = await open(device, ctx);
    expect(await read(session, PLAIN, ctx)).toEqual(well);
    expect(session.alive()).toBe(true);
    expect(codesOf(session.warnings?.() ?? [])).toContain("help_silent");
    expect(textsOf(session.warnings?.()).every((text) => text.includes("gives no answer"))).toBe(true);
    expect(device.counts.accepted).toBe(1);
    expect(device.violations).toEqual([]);
  });

  it.each(KINDS)("is not sent again in the next session: %s", async (kind) => {
    const ctx = context({ answerMs: ANSWER_MS, device: deviceMemory() });
    const device = await start();
    device.misbehave = silentTo(kind);
    const first = await open(device, ctx);
    await read(first, PLAIN, ctx);
    await first.close();
    device.resetCounts();
    const second = await open(device, ctx);
    await read(second, PLAIN, ctx);
    expect(device.lastMessages.filter((message) => HELP[kind](message))).toEqual([]);
  });

  it("reads the same after all of them are answered again as a fresh start does", async () => {
    const ctx = context({ answerMs: ANSWER_MS, device: deviceMemory() });
    const device = await start();
    device.misbehave = silentTo(...KINDS);
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const session = await open(device, ctx);
    const without = await read(session, WHOLE, ctx);
    const epochBefore = session.epoch;
    device.misbehave = undefined;
    const well = await read(await open(device, context()), WHOLE, context());
    expect(without["Shown"]).toEqual(well["Shown"]);
    expect(without["Recipe1.Speed"]).toEqual(well["Recipe1.Speed"]);
    skip(61_000);
    vi.advanceTimersByTime(15_000);
    await vi.waitFor(() => expect(codesOf(session.warnings?.() ?? []).filter((code) => code === "help_silent").length).toBeLessThan(2));
    await vi.waitFor(() => expect(session.epoch).not.toBe(epochBefore));
    expect(await read(session, WHOLE, ctx)).toEqual(well);
    expect(session.warnings?.()).toEqual([]);
    expect(session.alive()).toBe(true);
  });
});

const failureOf = async (work: Promise<unknown>): Promise<ReasonError> => {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof ReasonError) return error;
  throw new Error(`it ended with ${String(error)}`);
};

describe("a template that is refused", () => {
  it("names the template, and members are read by name", async () => {
    const device = await start();
    device.misbehave = (message) => (HELP.template(message) ? { status: STATUS.noSuchTag } : undefined);
    const values = await read(await open(device, context()), ["Recipe1", "Recipe1.Speed", "Recipe1.NoSuch"], context());
    expect(values["Recipe1"]).toMatch(/^device_error: the template \d+: status 0x04\S* \(the controller does not tell this structure/);
    expect(values["Recipe1"]).not.toMatch(/no such tag/);
    expect(values["Recipe1.Speed"]).toBeTypeOf("number");
    expect(values["Recipe1.NoSuch"]).toMatch(/^not_found/);
  });
});

describe("slots of a backplane", () => {
  const isProbe = ({ via, service }: CipMessage) => via === "routed" && service === 0x01;

  it("finds a controller behind a bridge that takes one question at a time", async () => {
    const device = await start({ layout: "bridge" });
    device.silentSlotMs = 5;
    let [busyUntil, most] = [0, 0];
    device.misbehave = (message) => {
      if (!isProbe(message)) return undefined;
      const isBusy = performance.now() < busyUntil;
      most += isBusy ? 1 : 0;
      busyUntil = performance.now() + 10;
      return isBusy ? { silent: true } : { delayMs: 10 };
    };
    const session = await open(device, context({ answerMs: ANSWER_MS, device: deviceMemory() }), { path: "auto" });
    expect(most).toBeGreaterThan(0);
    expect(session.about).toMatch(/slot 3/);
    expect(session.warnings?.()).toEqual([]);
  });

  it("finds a controller among slots without any answer", async () => {
    const device = await start({ layout: "bridge" });
    device.isMuteAboutSlots = true;
    for (const slot of [0, 1, 6, 7]) device.slots.set(slot, { kind: "silent" });
    const ctx = context({ answerMs: ANSWER_MS, device: deviceMemory() });
    const session = await open(device, ctx, { path: "auto" });
    expect(session.about).toMatch(/slot 3/);
    expect(session.warnings?.()).toEqual([]);
  });

  it("is a TIMEOUT where no slot has an answer, and asks all of them the next time", async () => {
    const device = await start({ layout: "bridge" });
    device.misbehave = (message) => (message.service === 0x01 ? { silent: true } : undefined);
    device.isMuteAboutSlots = true;
    for (let slot = 0; slot < 17; slot++) if (slot !== 2 && slot !== 3) device.slots.set(slot, { kind: "silent" });
    const ctx = context({ answerMs: 20, device: deviceMemory() });
    const failure = await failureOf(open(device, ctx, { path: "auto" }));
    expect(failure.reason.type).toBe("TIMEOUT");
    device.misbehave = undefined;
    expect((await open(device, ctx, { path: "auto" })).about).toMatch(/slot 3/);
  });
});

describe("a session", () => {
  it.each(["fin", "rst"] as const)("names CIP Security where the device closes the connection at its registration: %s", async (how) => {
    const server = net.createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => (how === "fin" ? socket.end() : socket.resetAndDestroy()));
    });
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    cleanUp.push(() => server.close());
    const failure = await failureOf(open({ port: (server.address() as AddressInfo).port } as CipDevice, context()));
    expect(failure.reason.type).toBe(how === "fin" ? "CONNECTION_CLOSED" : "CONNECTION_RESET");
    expect(failure.message).toMatch(/CIP Security may be on \(5380/);
  });

  /** Answers come over this with another number in them. */
  async function changed(device: CipDevice, change: (message: Buffer) => void): Promise<CipDevice> {
    const server = net.createServer((near) => {
      const far = net.connect(device.port, "127.0.0.1");
      for (const socket of [near, far]) socket.on("error", () => {});
      near.on("data", (bytes) => far.write(bytes));
      far.on("data", (bytes) => {
        change(bytes);
        near.write(bytes);
      });
      near.on("close", () => far.destroy());
      far.on("close", () => near.destroy());
    });
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    cleanUp.push(() => server.close());
    return { port: (server.address() as AddressInfo).port } as CipDevice;
  }

  it("names both numbers where a sender context is not repeated", async () => {
    const ctx = context({ answerMs: ANSWER_MS, device: deviceMemory() });
    const device = await changed(await start(), (message) => message.readUInt16LE(0) === 0x6f && message.fill(0, 12, 20));
    const failure = await failureOf(open(device, ctx));
    expect([failure.reason.type, failure.condition]).toEqual(["UNKNOWN", "protocol_violation"]);
    expect(failure.message).toMatch(/an answer has the sender context 0, the request has \d+: the device has to repeat it/);
  });

  it("names both numbers where a sequence count is not repeated", async () => {
    const ctx = context({ answerMs: ANSWER_MS, device: deviceMemory() });
    const device = await changed(await start(), (message) => {
      if (message.readUInt16LE(0) === 0x70) message.writeUInt16LE(0x7777, 44);
    });
    const failure = await failureOf(open(device, ctx));
    expect([failure.reason.type, failure.condition]).toEqual(["UNKNOWN", "protocol_violation"]);
    expect(failure.message).toMatch(/an answer has the sequence count 30583, the request has \d+/);
  });
});

describe("the mark of the program", () => {
  it("is believed again an hour after it changed six times in a row", async () => {
    const ctx = context({ device: deviceMemory() });
    const device = await start();
    const session = await open(device, ctx);
    const { address, type } = driver.parseAddress("Shown", undefined, driver.settings.parse({}));
    const ready: Point[] = [];
    for await (const batch of session.prepare?.([{ index: 0, address, type }], ctx) ?? [])
      for (const one of batch) if ("address" in one) ready.push({ index: 0, address: one.address, type: one.type });
    const [request] = driver.plan(ready, session.limits);
    if (!request) throw new Error("nothing is planned");
    const ends = async () => {
      skip(6000);
      device.program.renumber();
      return session.read(request, ctx).then(
        () => "read",
        (error: unknown) => (/what class AC says/.test(String(error)) ? "another program" : String(error)),
      );
    };
    const ended: string[] = [];
    for (let i = 0; i < 8; i++) ended.push(await ends());
    expect(ended).toEqual([...Array<string>(6).fill("another program"), "read", "read"]);
    skip(3_600_000);
    // The connection ended for lack of traffic, and is opened again.
    expect(await ends()).toBe("another program");
  });
});
