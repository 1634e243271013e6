import net, { type AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { codesOf, textsOf } from "../../src/model/testing/warnings.ts";
import type { Value } from "../../src/model/value.ts";
import { driverContext as context, deviceMemory } from "../../test/support/driver-context.ts";
import { freePort } from "../../test/support/free-port.ts";
import type { AnySession, DriverContext, Limits, Point } from "../driver.ts";
import { typeOf } from "../driver.ts";
import driver from "./driver.ts";
import {
  controllerWith,
  END_CODES,
  type Family,
  FinsMemory,
  type FinsPlc,
  LIMITS,
  READ_COMMANDS,
  startFinsPlc,
  TCP_ERRORS,
} from "./simulator.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const plain = (text: string): string => text.replaceAll(" ", "");
const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

interface Opened {
  readonly session: AnySession;
  readonly settings: unknown;
  /** Limits as the agent plans with them. */
  limits(): Limits;
}

interface How {
  readonly local?: object;
  readonly details?: object;
  readonly ctx?: DriverContext;
}

async function open(port: number, { local = {}, details = {}, ctx = context() }: How = {}): Promise<Opened> {
  const settings = driver.settings.parse(local);
  const all = driver.details.parse({ type: "fins", host: "127.0.0.1", port, local_address: "0.0.0", remote_address: "0.10.0", ...details });
  const session = await driver.connect({ details: all, settings, secrets: {} }, ctx);
  cleanUp.push(() => session.close());
  return { session, settings, limits: () => driver.limits?.(session.limits, settings) ?? session.limits };
}

async function prepared({ session, settings }: Opened, texts: readonly string[], ctx: DriverContext, values: (Value | undefined)[]) {
  const points = texts.map((text, index) => {
    const [address = "", word] = text.split(":");
    return { index, ...driver.parseAddress(address, word === undefined ? undefined : typeOf(driver, word), settings) };
  });
  const ready: Point[] = [];
  for await (const batch of session.prepare?.(points, ctx) ?? [])
    for (const one of batch)
      if ("refusal" in one) values[one.point.index] = `${one.refusal.fault}: ${one.refusal.message}`;
      else ready.push({ index: one.point.index, address: one.address, type: one.type });
  return ready;
}

/** Values, or faults as text, of `address:type`. */
async function read(opened: Opened, texts: readonly string[], ctx = context()): Promise<readonly (Value | undefined)[]> {
  const values: (Value | undefined)[] = [];
  const points = await prepared(opened, texts, ctx, values);
  for (const request of driver.plan(points, opened.limits()))
    try {
      for (const [i, reading] of (await opened.session.read(request, ctx)).entries())
        values[request.points[i]?.index ?? -1] = reading.quality === "bad" ? `${reading.fault}: ${reading.detail}` : reading.value;
    } catch (error) {
      if (!(error instanceof FaultError)) throw error;
      for (const { index } of request.points) values[index] = `${error.fault} (${error.scope}): ${error.message}`;
    }
  return values;
}

async function failureOf(work: Promise<unknown>): Promise<ReasonError> {
  const error = await work.then(
    (value) => new Error(`it gave ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown,
  );
  if (error instanceof ReasonError) return error;
  throw error;
}

/** 4000 words of D and W, each its number. */
async function plcWith(change: (plc: FinsPlc) => void = () => {}, family: Family = "cs"): Promise<FinsPlc> {
  const memory = new FinsMemory(family);
  for (const area of family === "cs" ? ["D", "W"] : ["D"]) memory.create(area, 4000).set(Array.from({ length: 4000 }, (_, i) => i));
  const plc = await startFinsPlc({ memory, port: await freePort() });
  cleanUp.push(() => plc.close());
  change(plc);
  return plc;
}
const words = (count: number, step: number, from = 0): string[] => Array.from({ length: count }, (_, i) => `D${from + i * step}`);
const numbers = (count: number, step: number, from = 0): number[] => Array.from({ length: count }, (_, i) => from + i * step);

const asked = ({ lastRequests }: FinsPlc) =>
  lastRequests
    .filter(({ code }) => code !== READ_COMMANDS.controllerData)
    .map(({ code, items }) => (code === READ_COMMANDS.memory ? (items[0]?.count ?? 0) : -items.length));

describe("limits that are smaller than those of Ethernet", () => {
  it("are followed within a read, are kept over sessions, and are reported", async () => {
    const plc = await plcWith(({ limits }) => void Object.assign(limits, LIMITS.sysmacLink));
    const device = deviceMemory();
    const first = await open(plc.port, { ctx: context({ device }) });
    expect(await read(first, words(600, 1))).toEqual(numbers(600, 1));
    expect(asked(plc)).toEqual([600, 88, 512, 62, 269, 269]);
    expect(textsOf(first.session.warnings?.())).toEqual(["the controller or the network takes reads of 269 words at most"]);
    plc.resetCounts();
    expect(await read(first, words(150, 20))).toEqual(numbers(150, 20));
    expect(asked(plc)).toEqual([-150, -128, -89, -61]);
    plc.resetCounts();
    const second = await open(plc.port, { ctx: context({ device }) });
    expect(await read(second, [...words(269, 1), ...words(89, 20, 1000)])).toEqual([...numbers(269, 1), ...numbers(89, 20, 1000)]);
    expect(asked(plc)).toEqual([269, -89]);
    expect(second.limits()).toMatchObject({ maxWords: 269, maxItems: 89, maxBytes: 538 });
    // What was planned for larger limits: a range stays a range.
    plc.resetCounts();
    const bridged = words(150, 4);
    const large = await open(plc.port);
    expect(await read(large, [...bridged, ...words(50, 1, 1000)])).toEqual([...numbers(150, 4), ...numbers(50, 1, 1000)]);
    expect(await read(large, ["D0:UINT[800]"])).toEqual([numbers(800, 1)]);
    expect(plc.counts.errors).toBeLessThan(6);
  });

  it("are not looked for where size is not what a refusal is about", async () => {
    const plc = await plcWith(({ memory }) => {
      memory.refuse = ({ start }) => (start === 7 ? END_CODES.responseTooLong : undefined);
    });
    const opened = await open(plc.port);
    expect(await read(opened, ["D7"])).toEqual([
      "device_error (points): end code 0x110B (the response is too long) for D7: lower max_words and max_items",
    ]);
    expect(opened.limits()).toMatchObject({ maxWords: 999, maxItems: 167 });
    plc.resetCounts();
    await read(opened, ["D7"]);
    expect(plc.counts.requests).toBe(1);
  });

  it("ranges alone are read where there is no multiple read", async () => {
    const plc = await plcWith(({ unknownCommands }) => unknownCommands.add(READ_COMMANDS.multiple));
    const opened = await open(plc.port);
    expect(await read(opened, ["D5", "D500:DINT", "W30"])).toEqual([5, 501 * 65_536 + 500, 30]);
    // The simulator does not look at the items of a command that it does not know.
    expect(asked(plc)).toEqual([-0, 1, 2, 1]);
    expect(textsOf(opened.session.warnings?.())).toEqual([expect.stringMatching(/no multiple memory area read \(0104\)/)]);
    plc.resetCounts();
    expect(await read(opened, ["D5", "W30"])).toEqual([5, 30]);
    expect(asked(plc)).toEqual([1, 1]);
  });

  it.each(["tcp", "udp"])("a value that is longer than one read comes in pieces over %s", async (transport) => {
    const plc = await plcWith();
    const opened = await open(plc.port, { local: { transport } });
    const pairs = Array.from({ length: 1500 }, (_, i) => (2 * i + 1) * 65_536 + 2 * i);
    expect(await read(opened, ["D0:UDINT[1500]", "W5"])).toEqual([pairs, 5]);
    // No element is cut.
    expect(asked(plc)).toEqual(transport === "tcp" ? [998, 998, 998, 6, 1] : [700, 700, 700, 700, 200, 1]);
  });
});

describe("end codes", () => {
  it("are faults of what was asked, and flags of the controller's state are none", async () => {
    const plc = await plcWith(({ memory }) => {
      memory.create("E0", 10);
      memory.refused.set("E0", END_CODES.isProtected);
    });
    const opened = await open(plc.port);
    plc.statusBits = 0x40;
    expect(await read(opened, ["D3", "D4"])).toEqual([3, 4]);
    expect(codesOf(opened.session.warnings?.())).toContain("device_faulty");
    expect(textsOf(opened.session.warnings?.())).toEqual([expect.stringMatching(/does not stop it, such as a low battery/)]);
    plc.statusBits = 0x80;
    expect(await read(opened, ["D3900", "D3999:DINT"])).toEqual([
      expect.stringMatching(/^out_of_range \(points\): end code 0x110[34]/),
      expect.stringMatching(/^out_of_range \(points\): end code 0x110[34]/),
    ]);
    expect(textsOf(opened.session.warnings?.())).toEqual([expect.stringMatching(/fatal error and does not run/)]);
    plc.statusBits = 0;
    expect(await read(opened, ["E0_1"])).toEqual([
      "access_denied (points): end code 0x2002 (protected) for E0_1: release the protection in the controller",
    ]);
    expect(await read(opened, ["E1_1"])).toEqual([expect.stringMatching(/^not_found \(points\): end code 0x1101/)]);
    expect(textsOf(opened.session.warnings?.())).toEqual([]);
  });

  it.each([
    [0x0204, "device_error (busy)"],
    [0x2604, "device_error (busy)"],
    [0x2605, "device_error (busy)"],
    [0x2203, "device_error (busy)"],
    [0x0205, "no_answer (everything)"],
    [0x0501, "no_answer (everything)"],
    [0x3001, "access_denied (everything)"],
    [0x1109, "device_error (points)"],
    [0x7f3f, "device_error (points)"],
  ])("0x%s says what it is about", async (code, expected) => {
    const plc = await plcWith();
    const opened = await open(plc.port);
    plc.readError = code;
    const [fault] = await read(opened, ["D3"]);
    expect(String(fault).startsWith(`${expected}: end code 0x${code.toString(16).toUpperCase().padStart(4, "0")}`), String(fault)).toBe(
      true,
    );
    expect(opened.session.alive()).toBe(true);
  });

  it("of a node that cannot be reached are the source's failure where it connects", async () => {
    const plc = await plcWith();
    const failure = await failureOf(open(plc.port, { details: { remote_address: "0.11.0" } }));
    expect([failure.reason.type, failure.message]).toEqual([
      "UNKNOWN",
      expect.stringMatching(/end code 0x0201 \(the destination node is not in the network\): check remote_address/),
    ]);
    // It has answered: UDP is not tried.
    expect(plc.lastRequests.map(({ transport }) => transport)).toEqual(["tcp"]);
  });
});

describe.each(["tcp", "udp"])("relay errors over %s", (transport) => {
  const RELAY = { endCode: 0x0201, network: 2, node: 10 };
  it("name where they were found, and are never data", async () => {
    const plc = await plcWith();
    const opened = await open(plc.port, { local: { transport } });
    plc.relay = RELAY;
    plc.statusBits = 0x40;
    const failure = await failureOf(read(opened, ["D3"]));
    expect(failure.reason).toEqual({
      type: "FINS_NETWORK_RELAY_ERROR",
      response_code: 0x0201,
      requested_node: 10,
      relay_network: 2,
      relay_node: 10,
    });
    expect(failure.message).toMatch(
      /relay error at network 2, node 10, on the way to node 10: end code 0x0201 .* \(the answer holds 0x8241\)/,
    );
    // The two bytes would fit a read of one word.
    plc.relay = { ...RELAY, endCode: 0 };
    expect((await failureOf(read(opened, ["D3"]))).reason).toMatchObject({ response_code: 0, relay_network: 2 });
  });

  it("without a place have no numbers", async () => {
    const plc = await plcWith();
    const opened = await open(plc.port, { local: { transport } });
    plc.relay = { ...RELAY, isCut: true };
    const failure = await failureOf(read(opened, ["D3"]));
    expect([failure.reason, failure.message]).toEqual([
      { type: "UNKNOWN" },
      expect.stringMatching(/^relay error, end code 0x0201 .*; it does not say where \(the answer holds 0x8201\)/),
    ]);
  });

  it("come while connecting too, from a network where nobody is", async () => {
    const plc = await plcWith((one) => {
      one.networks.set(3, { gateway: { network: 1, node: 20 }, nodes: new Map() });
    });
    const failure = await failureOf(open(plc.port, { local: { transport }, details: { remote_address: "3.17.0" } }));
    expect(failure.reason).toMatchObject({ type: "FINS_NETWORK_RELAY_ERROR", requested_node: 17, relay_network: 1, relay_node: 20 });
  });
});

describe("nodes", () => {
  const routesOf = ({ lastRequests }: FinsPlc) =>
    lastRequests.map(({ from, to }) => [from, to].map(({ network, node, unit }) => `${network}.${node}.${unit}`).join(" > "));

  it("over TCP are what the unit gives, and its own where the remote one is left open", async () => {
    const plc = await plcWith();
    await open(plc.port, { details: { remote_address: "0.0.0" } });
    await open(plc.port, { details: { local_address: "0.33.0" } });
    expect(routesOf(plc)).toEqual(["0.239.0 > 0.10.0", "0.33.0 > 0.10.0"]);
    expect(plc.violations).toEqual([]);
  });

  it("of another network are left as they are", async () => {
    const memory = new FinsMemory();
    memory.create("D", 100).set([42], 7);
    const plc = await plcWith((one) => {
      one.networks.set(3, { gateway: { network: 1, node: 20 }, nodes: new Map([[17, controllerWith(memory)]]) });
    });
    for (const transport of ["tcp", "udp"]) {
      const opened = await open(plc.port, { local: { transport }, details: { local_address: "1.0.0", remote_address: "3.17.0" } });
      expect(await read(opened, ["D7"])).toEqual([42]);
    }
    expect(new Set(routesOf(plc))).toEqual(new Set(["1.239.0 > 3.17.0", "1.1.0 > 3.17.0"]));
  });

  it("over UDP are the last octet of the own address, and may not be the controller's", async () => {
    const plc = await plcWith();
    const udp = { transport: "udp" };
    await open(plc.port, { local: udp });
    await open(plc.port, { local: udp, details: { local_address: "0.77.0" } });
    expect(routesOf(plc)).toEqual(["0.1.0 > 0.10.0", "0.77.0 > 0.10.0"]);
    const own = await failureOf(open(plc.port, { local: udp, details: { remote_address: "0.1.0" } }));
    expect([own.condition, own.message]).toEqual(["configuration_invalid", expect.stringMatching(/are both node 1 of network 0/)]);
    const equal = await failureOf(open(plc.port, { details: { local_address: "0.10.0" } }));
    expect([equal.condition, equal.message]).toEqual(["configuration_invalid", expect.stringMatching(/are both node 10/)]);
  });

  it.each([
    [TCP_ERRORS.allTaken, "nodes"],
    [TCP_ERRORS.nodeConnected, "bare"],
    [TCP_ERRORS.addressRefused, "notification"],
    [TCP_ERRORS.noFreeNode, "notification"],
    [0x99, "bare"],
  ] as const)("are refused with error 0x%s (%s), which is reported", async (code, form) => {
    const plc = await plcWith(({ tcp }) => {
      tcp.handshakeError = code;
      tcp.refusalForm = form;
    });
    const failure = await failureOf(open(plc.port, { local: { transport: "tcp" } }));
    expect(failure.reason.type).toBe("UNKNOWN");
    expect(failure.message).toContain(`ended the FINS/TCP connection: error 0x${code.toString(16).toUpperCase()}: `);
  });

  it("are refused in silence: TIMEOUT", async () => {
    const plc = await plcWith(({ tcp }) => {
      tcp.handshakeError = 0x20;
      tcp.refusalForm = "silent";
    });
    const failure = await failureOf(open(plc.port, { local: { transport: "tcp" }, ctx: context({ answerMs: 100 }) }));
    expect([failure.reason.type, failure.message]).toEqual(["TIMEOUT", expect.stringMatching(/to the request for a node/)]);
  });

  it("a notification ends what is under way with its words", async () => {
    const plc = await plcWith();
    const opened = await open(plc.port);
    plc.misbehave = () => ({ notification: TCP_ERRORS.tooLong });
    expect((await failureOf(read(opened, ["D3"]))).message).toMatch(/error 0x02: the message is too long/);
    expect(opened.session.alive()).toBe(false);
  });
});

describe("auto", () => {
  it("goes on over UDP where TCP is not served, and stays there", async () => {
    const plc = await plcWith();
    await plc.serve({ tcp: false, udp: true });
    const device = deviceMemory();
    const opened = await open(plc.port, { ctx: context({ device }) });
    expect(await read(opened, ["D3"])).toEqual([3]);
    expect(plc.lastRequests.at(-1)?.transport).toBe("udp");
    await plc.serve({ tcp: true, udp: true });
    await open(plc.port, { ctx: context({ device }) });
    expect(plc.lastRequests.at(-1)?.transport).toBe("udp");
    await plc.serve({ tcp: false, udp: false });
    const failure = await failureOf(open(plc.port, { ctx: context({ device }) }));
    expect(failure.reason.type).toBe("CONNECTION_REFUSED");
  });

  it("has the reason of TCP where neither answers", async () => {
    const plc = await plcWith();
    await plc.serve({ tcp: false, udp: false });
    const failure = await failureOf(open(plc.port));
    expect([failure.reason.type, failure.message]).toEqual([
      "CONNECTION_REFUSED",
      expect.stringMatching(/^over FINS\/TCP: connect ECONNREFUSED .*; over FINS\/UDP: recvmsg ECONNREFUSED/),
    ]);
  });
});

describe("over UDP", () => {
  const udp = { transport: "udp" };
  it("a request is sent again with the same SID, and what comes twice or from strangers is dropped", async () => {
    const plc = await plcWith();
    const opened = await open(plc.port, { local: udp, ctx: context({ answerMs: 600 }) });
    let lost = 0;
    plc.misbehave = ({ isRepeated }) => (isRepeated ? { againAfterMs: 1, strangerFirst: true } : { isSilent: lost++ >= 0 });
    expect(await read(opened, ["D3", "D4"], context({ answerMs: 300 }))).toEqual([3, 4]);
    plc.misbehave = () => ({ strangerFirst: true, againAfterMs: 1 });
    for (const n of [10, 20, 30]) expect(await read(opened, [`D${n}`])).toEqual([n]);
    expect([lost, plc.counts.repeats]).toEqual([1, 1]);
    const sids = plc.lastRequests.filter(({ items }) => items.length > 0).map(({ sid }) => sid);
    expect(new Set(sids.slice(0, 2)).size).toBe(1);
    expect(new Set(sids.slice(1)).size).toBe(4);
  });

  it("no retransmission is made where none is wanted", async () => {
    const plc = await plcWith();
    const opened = await open(plc.port, { local: { ...udp, retransmissions: 0 } });
    plc.misbehave = () => ({ isSilent: true });
    plc.resetCounts();
    expect((await failureOf(read(opened, ["D3"], context({ answerMs: 100 })))).reason.type).toBe("TIMEOUT");
    expect(plc.counts.frames).toBe(1);
  });

  it("an answer of another length is waited past, and is the reason where no other comes", async () => {
    const plc = await plcWith();
    const opened = await open(plc.port, { local: udp });
    plc.misbehave = () => ({ change: (frame) => frame.subarray(0, frame.length - 1) });
    const failure = await failureOf(read(opened, ["D3"], context({ answerMs: 100 })));
    expect([failure.condition, failure.message]).toEqual([
      "protocol_violation",
      expect.stringMatching(/1 bytes answered a read of 2 \(D3\)/),
    ]);
    plc.misbehave = undefined;
    expect(await read(opened, ["D3"])).toEqual([3]);
  });

  it("a local port is taken where the controller answers to one", async () => {
    const probe = net.createServer();
    await new Promise<void>((done) => probe.listen(0, "127.0.0.1", done));
    const { port: local_port } = probe.address() as AddressInfo;
    await new Promise((done) => probe.close(done));
    const plc = await plcWith((one) => {
      one.udpAnswers = { host: () => "127.0.0.1", port: local_port };
    });
    const opened = await open(plc.port, { local: { ...udp, local_port } });
    expect(await read(opened, ["D3"])).toEqual([3]);
  });
});

describe("Classic controllers", () => {
  const classic = { target_plc: "Classic" };
  const filled = (family: "c" | "cv", model: string) =>
    plcWith((plc) => {
      plc.identity.model = model;
      const { memory } = plc;
      memory.create("CIO", 100).set([7], 50);
      memory.create(family === "c" ? "AR" : "A", 20).set([9], 5);
      memory.create("T", 100).set([0x0123], 5);
      memory.create("T flag", 100).set([1], 5);
      if (family === "c") memory.create("HR", 100).set([8], 30);
      if (family === "c") memory.create("LR", 60).set([6], 7);
      if (family === "cv") memory.create("C", 100).set([0x0077], 3);
      if (family === "cv") memory.create("E1", 100).set([11], 4);
    }, family);

  it("of the C series are known by their model", async () => {
    const plc = await filled("c", "C200HX-CPU64");
    const opened = await open(plc.port, { details: classic });
    expect(await read(opened, ["CIO50", "H30", "A5", "L7", "D3000", "T5", "T5:BOOL", "D3.01"])).toEqual([
      7,
      8,
      9,
      6,
      3000,
      123,
      true,
      true,
    ]);
    expect(await read(opened, ["W0", "E0_0"])).toEqual([
      expect.stringMatching(/^address_invalid: .*C series has no W/),
      expect.stringMatching(/has no E0_/),
    ]);
    expect(opened.limits()).toMatchObject({ maxWords: 256, maxItems: 128, inFlight: 1 });
    expect(opened.session.epoch).toBe("c");
    expect(await read(opened, words(300, 1))).toEqual(numbers(300, 1));
    expect(plc.counts.errors).toBe(0);
  });

  it("of the CV series are known by their model", async () => {
    const plc = await filled("cv", "CV1000-CPU01");
    const opened = await open(plc.port, { details: classic });
    expect(await read(opened, ["CIO50", "A5", "E1_4", "D3000", "T5", "C3"])).toEqual([7, 9, 11, 3000, 123, 77]);
    expect(await read(opened, ["H30"])).toEqual([expect.stringMatching(/^address_invalid: .*CV series has no H/)]);
    expect(textsOf(opened.session.warnings?.())).toEqual([]);
  });

  it("that do not say their model are read where the series agree, and with a setting everywhere", async () => {
    const plc = await filled("c", "C200H");
    plc.unknownCommands.add(READ_COMMANDS.controllerData);
    const unknown = await open(plc.port, { details: classic });
    expect(await read(unknown, ["CIO50", "D3", "T5", "H30"])).toEqual([7, 3, 123, expect.stringMatching(/set plc_series to c or cv/)]);
    expect(codesOf(unknown.session.warnings?.())).toContain("model_contradicts");
    expect(textsOf(unknown.session.warnings?.())).toEqual([expect.stringMatching(/does not say its model: set plc_series/)]);
    const known = await open(plc.port, { details: classic, local: { plc_series: "c" } });
    expect(await read(known, ["H30"])).toEqual([8]);
    expect(textsOf(known.session.warnings?.())).toEqual([]);
  });

  it("and newer ones are told apart", async () => {
    const plc = await plcWith();
    const classicOne = await open(plc.port, { details: classic });
    expect(textsOf(classicOne.session.warnings?.())).toEqual(["the controller is a CP1L-EL20: set target_plc to Cs1OrNewer"]);
    plc.identity.model = "C200HG-CPU43";
    expect(textsOf((await open(plc.port)).session.warnings?.())).toEqual(["the controller is a C200HG-CPU43: set target_plc to Classic"]);
  });

  it("that are busy while they are asked for their model are asked again", async () => {
    const plc = await filled("c", "C200HX-CPU64");
    plc.misbehave = () => ({ endCode: END_CODES.busy });
    expect((await failureOf(open(plc.port, { details: classic }))).message).toMatch(/0x0204 \(the destination node is busy\)/);
    // Others need not know it.
    expect((await open(plc.port)).session.alive()).toBe(true);
  });
});

it("warns of the bank that the program selects", async () => {
  const plc = await plcWith(({ memory }) => void memory.create("E0", 10).set([5], 1));
  const opened = await open(plc.port);
  expect(await read(opened, ["E1", "E0_1"])).toEqual([5, 5]);
  expect(codesOf(opened.session.warnings?.())).toContain("bank_not_fixed");
  expect(textsOf(opened.session.warnings?.())).toEqual([expect.stringMatching(/the bank that the program has selected/)]);
});

/** Answers each message that comes with the next of these; `SID` is the one that was asked with. */
async function scripted(answers: readonly string[], write = (socket: net.Socket, bytes: Buffer): unknown => socket.write(bytes)) {
  const got: string[] = [];
  const server = net.createServer({ noDelay: true }, (socket) => {
    socket.on("error", () => {});
    cleanUp.push(() => socket.destroy());
    let at = 0;
    socket.on("data", (chunk) => {
      got.push(chunk.toString("hex"));
      const sid = chunk.length > 25 ? chunk.toString("hex", 25, 26) : "00";
      const answer = answers[at++];
      if (answer !== undefined) write(socket, hex(answer.replaceAll("SID", sid)));
    });
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  cleanUp.push(() => new Promise((done) => server.close(done)));
  return { port: (server.address() as AddressInfo).port, got };
}

const NODES = "46494e53 00000010 00000001 00000000 000000fb 000000c8";
const MODEL = `46494e53 0000002a 00000002 00000000 c00002 00fb00 00c800 SID 0501 0000 ${Buffer.from("CP1L-EL20".padEnd(20)).toString("hex")}`;
const WORDS = "46494e53 0000001a 00000002 00000000 c00002 00fb00 00c800 SID 0101 0040 0001 0002";

describe("index and data registers", () => {
  const REGISTERS = ["IR4[2]", "IR9", "DR3:INT"];

  it("come in these bytes, as a range of four bytes each, and among words", async () => {
    const range = "46494e53 0000001e 00000002 00000000 c00002 00fb00 00c800 SID 0101 0000 00010064 fedcba98";
    const list = "46494e53 00000021 00000002 00000000 c00002 00fb00 00c800 SID 0104 0000 82 0007 bc fffb dc 0000c000";
    const { port, got } = await scripted([NODES, MODEL, range, list]);
    const opened = await open(port, { details: { remote_address: "0.0.0" } });
    expect(await read(opened, REGISTERS.slice(0, 1))).toEqual([[0x1_0064, 0xfedc_ba98]]);
    expect(await read(opened, ["IR9", "D700", "DR3:INT"])).toEqual([0xc000, 7, -5]);
    const sent = got.slice(2).map((message) => message.replace(/(?<=^.{50})../, "SI"));
    expect(sent).toEqual([
      plain("46494e53 0000001a 00000002 00000000 800002 00c800 00fb00 SI 0101 dc 0104 00 0002"),
      plain("46494e53 00000020 00000002 00000000 800002 00c800 00fb00 SI 0104 82 02bc 00 bc 0203 00 dc 0109 00"),
    ]);
  });

  it("are read of a CS in pieces where it grants less, and a part of one is never a value", async () => {
    const plc = await plcWith(({ memory, limits }) => {
      memory.create("IR", 32).set(Array.from({ length: 32 }, (_, i) => i));
      memory.create("DR", 16).set(Array.from({ length: 16 }, (_, i) => i));
      Object.assign(limits, { maxBytes: 8, maxElements: 8 });
    });
    const opened = await open(plc.port);
    const all = Array.from({ length: 16 }, (_, i) => 2 * i * 0x1_0000 + 2 * i + 1);
    expect(await read(opened, ["IR0[16]"])).toEqual([all]);
    expect(opened.limits()).toMatchObject({ maxWords: 4 });
    expect(await read(opened, ["IR15", "DR15", "IR3"])).toEqual([all[15], 15, all[3]]);
    plc.misbehave = () => ({ change: (frame) => frame.subarray(0, frame.length - 2) });
    expect((await failureOf(read(opened, ["IR0"]))).condition).toBe("protocol_violation");
  });

  it("have one word each in a CV, and the C series has none", async () => {
    const cv = await plcWith(({ memory, identity }) => {
      identity.model = "CVM1-CPU21";
      memory.create("IR", 3).set([10, 0xc000, 12]);
      memory.create("DR", 3).set([20, 21, 22]);
    }, "cv");
    const classic = { target_plc: "Classic" };
    expect(await read(await open(cv.port, { details: classic }), ["IR0[3]", "IR1", "DR2", "IR3"])).toEqual([
      [10, 0xc000, 12],
      0xc000,
      22,
      "address_invalid: a controller of the CV series has IR0 to IR2",
    ]);
    const c = await plcWith(({ identity }) => void Object.assign(identity, { model: "C200HX-CPU64" }), "c");
    expect(await read(await open(c.port, { details: classic }), ["IR5"])).toEqual([
      "address_invalid: a controller of the C series has no IR; the word IR5 of a C200H is CIO5",
    ]);
  });
});

describe("a conversation over TCP", () => {
  const TEXTS = ["D100:UDINT"];
  it("is this, byte for byte", async () => {
    const { port, got } = await scripted([NODES, MODEL, WORDS]);
    const opened = await open(port, { details: { remote_address: "0.0.0" }, local: { max_items: 0 } });
    expect(await read(opened, TEXTS)).toEqual([0x0002_0001]);
    const [node, model, memory] = got;
    expect(node).toBe(plain("46494e53 0000000c 00000000 00000000 00000000"));
    expect(model?.replace(/(?<=^.{50})../, "SI")).toBe(plain("46494e53 00000015 00000002 00000000 800002 00c800 00fb00 SI 0501 00"));
    expect(memory?.replace(/(?<=^.{50})../, "SI")).toBe(
      plain("46494e53 0000001a 00000002 00000000 800002 00c800 00fb00 SI 0101 82 0064 00 0002"),
    );
  });

  it("reads the same wherever an answer is split, and when several messages come at once", async () => {
    const bytes = [NODES, MODEL, WORDS].map((answer) => plain(answer.replaceAll("SID", "00")).length / 2);
    for (let at = 1; at < Math.max(...bytes); at++) {
      const { port } = await scripted([NODES, MODEL, WORDS], (socket, answer) => {
        socket.write(answer.subarray(0, at));
        setImmediate(() => socket.write(answer.subarray(at)));
      });
      const opened = await open(port, { local: { max_items: 0 } });
      expect(await read(opened, TEXTS), `split at ${at}`).toEqual([0x0002_0001]);
      await opened.session.close();
    }
    const confirmation = "46494e53 00000008 00000006 00000000";
    const command = "46494e53 0000001a 00000002 00000000 800002 00fb00 00c800 SID 0101 8200 6400 0002";
    const other = WORDS.replace("0101", "0104");
    const { port } = await scripted([NODES, MODEL, `${confirmation}${command}${other}${WORDS}`]);
    expect(await read(await open(port, { local: { max_items: 0 } }), TEXTS)).toEqual([0x0002_0001]);
  });

  it.each([
    ["data of another length", WORDS.replace("0000001a", "0000001b").replace("0001 0002", "0001 0002 00"), /5 bytes answered a read of 4/],
    ["no data", "46494e53 00000016 00000002 00000000 c00002 00fb00 00c800 SID 0101 0000", /0 bytes answered a read of 4/],
    ["another protocol", "485454502f312e31", /48545450 where a FINS\/TCP header begins/],
    ["a frame that is too short", "46494e53 00000015 00000002 00000000 c00002 00fb00 00c800 SID 0101 00", /a FINS frame of 13 bytes/],
    ["a frame with an error", WORDS.replace("00000002 00000000", "00000002 00000003"), /a frame with error 0x03/],
    ["an unknown message", "46494e53 00000008 00000009 00000000", /FINS\/TCP command 9/],
    ["nodes again", NODES, /node numbers without a request/],
  ])("that answers with %s breaks the protocol", async (_, answer, message) => {
    const { port } = await scripted([NODES, MODEL, answer]);
    const opened = await open(port, { local: { max_items: 0 } });
    const failure = await failureOf(read(opened, TEXTS));
    expect([failure.reason.type, failure.condition, failure.message]).toEqual([
      "UNKNOWN",
      "protocol_violation",
      expect.stringMatching(message),
    ]);
  });

  it("that has no nodes breaks the protocol", async () => {
    const { port } = await scripted(["46494e53 00000008 00000001 00000000"]);
    const failure = await failureOf(open(port, { local: { transport: "tcp" } }));
    expect([failure.condition, failure.message]).toEqual(["protocol_violation", expect.stringMatching(/no node numbers/)]);
  });
});
