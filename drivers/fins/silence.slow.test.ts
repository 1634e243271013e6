import { afterEach, describe, expect, it } from "vitest";
import { ReasonError } from "../../src/model/reason.ts";
import { codesOf, textsOf } from "../../src/model/testing/warnings.ts";
import { driverContext as context, deviceMemory } from "../../test/support/driver-context.ts";
import { freePort } from "../../test/support/free-port.ts";
import { type AnySession, type DriverContext, typeOf } from "../driver.ts";
import driver from "./driver.ts";
import { FinsMemory, type FinsPlc, READ_COMMANDS, startFinsPlc } from "./simulator.ts";

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

/** D0 to D999, each its number and this much more. */
async function plcWith(more = 0, host = "127.0.0.1", port = 0): Promise<FinsPlc> {
  const memory = new FinsMemory();
  memory.create("D", 1000).set(Array.from({ length: 1000 }, (_, i) => i + more));
  const plc = await startFinsPlc({ memory, host, port });
  cleanUp.push(() => plc.close());
  return plc;
}

interface How {
  readonly local?: object;
  readonly details?: object;
  readonly ctx?: DriverContext;
}

async function open(port: number, { local = {}, details = {}, ctx = context() }: How = {}): Promise<AnySession> {
  const settings = driver.settings.parse({ transport: "udp", ...local });
  const all = driver.details.parse({ type: "fins", host: "127.0.0.1", port, local_address: "0.0.0", remote_address: "0.10.0", ...details });
  const session = await driver.connect({ details: all, settings, secrets: {} }, ctx);
  cleanUp.push(() => session.close());
  return session;
}

/** The value, or the fault in words. */
async function read(session: AnySession, text: string, ctx = context()): Promise<unknown> {
  const [address = "", word] = text.split(":");
  const type = word === undefined ? undefined : typeOf(driver, word);
  const parsed = driver.parseAddress(address, type, driver.settings.parse({}));
  for await (const [found] of session.prepare?.([{ index: 0, ...parsed }], ctx) ?? []) {
    if (!found || "refusal" in found) return found?.refusal.message;
    const [request] = driver.plan([{ ...found.point, index: 0, address: found.address, type: found.type }], session.limits);
    const [reading] = request ? await session.read(request, ctx) : [];
    return reading?.quality === "bad" ? reading.detail : reading?.value;
  }
  return undefined;
}

async function failureOf(work: Promise<unknown>): Promise<ReasonError> {
  const error = await work.catch((thrown: unknown) => thrown);
  if (error instanceof ReasonError) return error;
  throw new Error(`it gave ${String(error)}`);
}

describe("several controllers over one local port", () => {
  it("each give their own values, also those that answer to that port whatever port they were asked from", async () => {
    const local_port = await freePort();
    const plcs = await Promise.all([1000, 2000, 3000].map((more) => plcWith(more)));
    for (const plc of plcs) plc.udpAnswers = { host: () => "127.0.0.1", port: local_port };
    const sessions = await Promise.all(plcs.map(({ port }) => open(port, { local: { local_port } })));
    for (let round = 0; round < 3; round++)
      expect(await Promise.all(sessions.map((session) => read(session, "D7:UINT[900]")))).toEqual(
        [1000, 2000, 3000].map((more) => Array.from({ length: 900 }, (_, i) => i + 7 + more)),
      );
    await sessions[0]?.close();
    expect(await read(sessions[1] as AnySession, "D8")).toBe(2008);
    expect(sessions.flatMap((session) => session.warnings?.() ?? [])).toEqual([]);
  });

  it("also with two ways to one of them, whose requests have different SIDs", async () => {
    const local_port = await freePort();
    const plc = await plcWith();
    const [one, other] = [
      await open(plc.port, { local: { local_port } }),
      await open(plc.port, { local: { local_port }, details: { remote_address: "0.0.0" } }),
    ];
    plc.answerDelayMs = 5;
    const places = Array.from({ length: 12 }, (_, i) => i);
    expect(await Promise.all(places.map((i) => read(i % 2 === 0 ? one : other, `D${i}`)))).toEqual(places);
    expect(plc.mostInFlight).toBeGreaterThan(1);
  });
});

describe("answers from elsewhere", () => {
  it("are never values: they are a warning while the controller's own come, and the next step where they do not", async () => {
    const local_port = await freePort();
    const plc = await plcWith();
    const session = await open(plc.port, { local: { local_port } });
    plc.misbehave = () => ({ strangerFirst: true });
    expect([await read(session, "D3"), await read(session, "D4")]).toEqual([3, 4]);
    expect(codesOf(session.warnings?.())).toEqual(["answers_elsewhere"]);
    expect(textsOf(session.warnings?.())).toEqual([
      expect.stringMatching(
        /^2 answers came from 127\.0\.0\.1:\d+ and not from 127\.0\.0\.1:\d+, .*: set host and port to 127\.0\.0\.1:\d+ if/,
      ),
    ]);
    plc.misbehave = undefined;
    plc.udpFrom = "127.0.0.2";
    const failure = await failureOf(read(session, "D5", context({ answerMs: 100 })));
    expect([failure.reason.type, failure.message]).toEqual([
      "TIMEOUT",
      expect.stringMatching(/; 5 answers came from .*127\.0\.0\.2:\d+ instead$/),
    ]);
    expect(failure.nextStep).toMatch(/^Set host and port to 127\.0\.0\.2:\d+ if that is the controller, or correct .*NAT/);
  });

  it("are heard without a local port too, and with the transport auto", async () => {
    const plc = await plcWith();
    await plc.serve({ tcp: false, udp: true });
    plc.udpFrom = "127.0.0.2";
    const failure = await failureOf(open(plc.port, { local: { transport: "auto" }, ctx: context({ answerMs: 150 }) }));
    expect(failure.message).toMatch(
      /^over FINS\/TCP: connect ECONNREFUSED.*; over FINS\/UDP: .* answers came from 127\.0\.0\.2:\d+ instead$/,
    );
    expect(failure.nextStep).toMatch(/^Set host and port to 127\.0\.0\.2/);
  });

  it("to the controller's own port of this machine name the setting", async () => {
    const port = await freePort();
    const plc = await plcWith(0, "127.0.0.2", port);
    plc.udpAnswers = { host: () => "127.0.0.1", port };
    const at = { details: { host: "127.0.0.2" }, ctx: context({ answerMs: 150 }) };
    const failure = await failureOf(open(port, at));
    expect([failure.reason.type, failure.nextStep]).toEqual(["TIMEOUT", expect.stringContaining(`Set local_port to ${port}:`)]);
    expect(await read(await open(port, { ...at, local: { local_port: port } }), "D6")).toBe(6);
  });
});

describe("a controller that gives no answer when asked for its model", () => {
  const silent = (plc: FinsPlc) => {
    plc.misbehave = ({ code }) => ({ isSilent: code === READ_COMMANDS.controllerData });
  };
  const askedFor = ({ lastRequests }: FinsPlc) => lastRequests.map(({ code }) => code.toString(16).padStart(4, "0"));

  it.each(["tcp", "udp"])(
    "is read without it over %s; status says what is missing, and the next session does not ask",
    async (transport) => {
      const plc = await plcWith();
      silent(plc);
      const device = deviceMemory();
      const how = { local: { transport, retransmissions: 0 }, ctx: context({ answerMs: 100, device }) };
      const session = await open(plc.port, how);
      expect([await read(session, "D3"), session.alive()]).toEqual([3, true]);
      expect(askedFor(plc)).toEqual(["0501", "0101", "0101"]);
      expect(codesOf(session.warnings?.())).toEqual(["help_silent"]);
      expect(textsOf(session.warnings?.())).toEqual([
        "the controller gives no answer when asked for its model (0501), and is read without it: target_plc and plc_series are not compared with it; a later connection asks again",
      ]);
      await session.close();
      plc.resetCounts();
      const next = await open(plc.port, how);
      expect(await read(next, "D4")).toBe(4);
      expect(askedFor(plc)).toEqual(["0101", "0101"]);
      expect(codesOf(next.warnings?.())).toEqual(["help_silent"]);
      // Another node behind the same address is another controller.
      plc.misbehave = undefined;
      const other = await open(plc.port, { ...how, details: { remote_address: "0.0.0" } });
      expect(other.warnings?.()).toEqual([]);
    },
  );

  it("that is a Classic one has what both series have at the same place", async () => {
    const plc = await plcWith();
    silent(plc);
    const ctx = context({ answerMs: 100 });
    const session = await open(plc.port, { details: { target_plc: "Classic" }, ctx });
    expect(await read(session, "D3")).toBe(3);
    expect(await read(session, "H3")).toMatch(/set plc_series to c or cv: it gives no answer when asked for its model$/);
    expect(textsOf(session.warnings?.())).toEqual([
      expect.stringMatching(/gives no answer when asked for its model: set plc_series to c or cv/),
      expect.stringMatching(/only what both Classic series have at the same place is read/),
    ]);
  });

  it("is not told from one that is away until it answers something; that costs the time of one question", async () => {
    const plc = await plcWith();
    plc.misbehave = () => ({ isSilent: true });
    const device = deviceMemory();
    const ctx = context({ answerMs: 100, device });
    const local = { retransmissions: 0 };
    expect((await failureOf(open(plc.port, { local, ctx }))).reason.type).toBe("TIMEOUT");
    plc.resetCounts();
    expect((await failureOf(open(plc.port, { local, ctx }))).message).toMatch(/to D0, to know whether it is there$/);
    expect(askedFor(plc)).toEqual(["0101"]);
    plc.misbehave = undefined;
    plc.resetCounts();
    const session = await open(plc.port, { local, ctx });
    expect([askedFor(plc), session.warnings?.()]).toEqual([["0101", "0501"], []]);
    plc.resetCounts();
    await open(plc.port, { local, ctx });
    expect(askedFor(plc)).toEqual(["0501"]);
  });

  it("is one that answers, where it refuses the word instead", async () => {
    const plc = await plcWith();
    plc.memory.areas.delete("D");
    silent(plc);
    const session = await open(plc.port, { ctx: context({ answerMs: 100 }) });
    expect([session.alive(), codesOf(session.warnings?.())]).toEqual([true, ["help_silent"]]);
    plc.wrongNode = 0x0201;
    expect((await failureOf(open(plc.port, { details: { remote_address: "0.55.0" }, ctx: context({ answerMs: 100 }) }))).message).toMatch(
      /0x0201/,
    );
  });
});
