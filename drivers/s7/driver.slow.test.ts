import net, { type AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { silentLog } from "../../src/model/context.ts";
import { FaultError, PartialRefusal } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import type { Reading, Value } from "../../src/model/value.ts";
import { driverContext as context, deviceMemory } from "../../test/support/driver-context.ts";
import type { AnySession, Limits, Point } from "../driver.ts";
import { typeOf } from "../driver.ts";
import driver from "./driver.ts";
import { JOB_ERRORS, S7Memory, type S7Plc, startS7Plc, startSimulator } from "./simulator.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
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

/** References go on where those of the last connection to a host and port ended. */
const talkedTo = new Set<number>();

async function open(port: number, local: object = {}, ctx = context(), details: object = {}): Promise<Opened> {
  talkedTo.add(port);
  const settings = driver.settings.parse(local);
  const all = driver.details.parse({ type: "s7", host: "127.0.0.1", port, slot: 1, ...details });
  const session = await driver.connect({ details: all, settings, secrets: {} }, ctx);
  cleanUp.push(() => session.close());
  return { session, settings, limits: () => driver.limits?.(session.limits, settings) ?? session.limits };
}

const pointsOf = (settings: unknown, texts: readonly string[]): Point[] =>
  texts.map((text, index) => {
    const [address = "", word] = text.split(":");
    return { index, ...driver.parseAddress(address, word === undefined ? undefined : typeOf(driver, word), settings) };
  });

/** Values, or faults as text, of `address:type`, in several jobs at once where the limits say so. */
async function read(
  { session, settings, limits }: Opened,
  texts: readonly string[],
  ctx = context(),
): Promise<readonly (Value | undefined)[]> {
  const values: (Value | undefined)[] = [];
  const queue = driver.plan(pointsOf(settings, texts), limits());
  const take = (points: readonly Point[], readings: readonly (Reading | undefined)[]) => {
    for (const [i, { index }] of points.entries()) {
      const reading = readings[i];
      if (reading) values[index] = reading.quality === "bad" ? `${reading.fault}: ${reading.detail}` : reading.value;
    }
  };
  const lane = async () => {
    for (let request = queue.shift(); request; request = queue.shift()) {
      try {
        take(request.points, await session.read(request, ctx));
      } catch (error) {
        if (!(error instanceof FaultError)) throw error;
        const items = error instanceof PartialRefusal ? error.items : [{ places: request.points.map((_, i) => i), refusal: error }];
        if (error instanceof PartialRefusal) take(request.points, error.readings);
        for (const { places, refusal } of items)
          for (const place of places)
            values[request.points[place]?.index ?? -1] = `${refusal.fault} (${refusal.scope}): ${refusal.message}`;
      }
    }
  };
  await Promise.all(Array.from({ length: limits().inFlight }, lane));
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

/** 1000 words in DB1, each its number, and the same in DB2. */
async function plcWith(change: (plc: S7Plc) => void = () => {}): Promise<S7Plc> {
  const memory = new S7Memory();
  for (const block of ["DB1", "DB2"]) {
    memory.create(block, 2000);
    memory.put(
      block,
      0,
      "WORD",
      Array.from({ length: 1000 }, (_, i) => i),
    );
  }
  const plc = await startS7Plc({ memory });
  cleanUp.push(() => plc.close());
  change(plc);
  return plc;
}
const words = (count: number, step: number, block = 1): string[] =>
  Array.from({ length: count }, (_, i) => `DB${block}.DBW${i * step * 2}`);
const wordValues = (count: number, step: number): number[] => Array.from({ length: count }, (_, i) => i * step);

/** Answers each chunk that comes with the next of these bytes, on a port that was not talked to; `write` may split them. */
async function scripted(
  answers: readonly string[],
  write = (socket: net.Socket, bytes: Buffer): unknown => socket.write(bytes),
): Promise<{ readonly port: number; readonly got: readonly string[] }> {
  const got: string[] = [];
  const server = net.createServer({ noDelay: true }, (socket) => {
    socket.on("error", () => {});
    cleanUp.push(() => socket.destroy());
    let at = 0;
    socket.on("data", (chunk) => {
      got.push(chunk.toString("hex"));
      const answer = answers[at++];
      if (answer !== undefined) write(socket, hex(answer));
    });
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  cleanUp.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  return talkedTo.has(port) ? scripted(answers, write) : { port, got };
}

// RFC 1006, X.224 and the protocol notes, 1 to 3; references count from 1 for a host and port that was not talked to before.
const CONVERSATION = [
  ["0300 0016 11 e0 0000 0001 00 c0 01 0a c1 02 0100 c2 02 0201", "0300 0016 11 d0 0001 0003 00 c0 01 0a c1 02 0100 c2 02 0201"],
  ["0300 0019 02f080 3201 0000 0001 0008 0000 f000 0008 0008 03c0", "0300 001b 02f080 3203 0000 0001 0008 0000 0000 f000 0003 0003 01e0"],
  [
    "0300 003702f080 3201 0000 0002 0026 0000 04 03 120a10 02 0001 0001 84 000000 120a10 02 0004 000a 84 000020 120a10 02 0002 0000 83 0000a0",
    "0300 0029 02f080 3203 0000 0002 0002 0014 0000 04 03 ff04 0008 02 00 ff04 0020 41ac0000 ff04 0010 1267",
  ],
] as const;
const ASKED = ["DB1.DBX0.1", "DB10.DBD4:REAL", "MW20"];
const HELD = [true, 21.5, 4711];

describe("the conversation", () => {
  it("is that of the protocol, byte for byte", async () => {
    const server = await scripted(CONVERSATION.map(([, answer]) => answer));
    const opened = await open(server.port);
    expect(opened.session.limits).toMatchObject({ pduBytes: 480, inFlight: 3, maxBytes: 462, maxItems: 20 });
    expect(await read(opened, ASKED)).toEqual(HELD);
    expect(server.got).toEqual(CONVERSATION.map(([request]) => request.replaceAll(" ", "")));
  });

  it("is the same wherever TCP splits the answers in two", { timeout: 30_000 }, async () => {
    for (let cut = 1; cut < 41; cut++) {
      const server = await scripted(
        CONVERSATION.map(([, answer]) => answer),
        (socket, bytes) => socket.write(bytes.subarray(0, cut), () => setTimeout(() => socket.write(bytes.subarray(cut)), 1)),
      );
      const opened = await open(server.port);
      expect(await read(opened, ASKED), `cut at ${cut}`).toEqual(HELD);
    }
  });

  it.each([
    ["connection_type op", {}, { rack: 0, slot: 2 }, "0100", "0202"],
    ["connection_type basic", { connection_type: "basic" }, { rack: 1, slot: 3 }, "0100", "0323"],
    ["connection_type pg", { connection_type: "pg" }, { rack: 0, slot: 1 }, "0100", "0101"],
    ["raw TSAPs", { connection_type: "raw", local_tsap: "10.00", remote_tsap: "2000" }, { rack: 99 }, "1000", "2000"],
  ])("names the controller's end by its %s", async (_, local, details, calling, called) => {
    const server = await scripted(["0300 000b 06 d0 0001 0003 00", CONVERSATION[1][1]]);
    await open(server.port, local, context(), details);
    expect(server.got[0]).toBe(`0300001611e00000000100c0010ac102${calling}c202${called}`);
  });

  it("asks for messages of the size in the settings", async () => {
    const server = await scripted([CONVERSATION[0][1], CONVERSATION[1][1]]);
    const { session } = await open(server.port, { pdu_size: 240 });
    expect(server.got[1]?.slice(-4)).toBe("00f0");
    expect(session.limits).toMatchObject({ pduBytes: 240 });
  });

  it("passes over messages that answer no job", async () => {
    const seen: object[] = [];
    const log = { ...silentLog, debug: (fields: object) => void seen.push(fields) };
    const event = "0300 0013 02f080 3207 0000 0000 0000 0000 0000";
    const late = CONVERSATION[2][1].replace("0000 0002 0002", "0000 7777 0002");
    const server = await scripted([CONVERSATION[0][1], CONVERSATION[1][1], `${late} ${event} ${CONVERSATION[2][1]}`]);
    const opened = await open(server.port, {}, context({ log }));
    expect(await read(opened, ASKED)).toEqual(HELD);
    expect(seen).toEqual([
      { tag: 0x7777, count: 1 },
      { tag: undefined, count: 2 },
    ]);
  });

  it.each([
    ["bytes before it is asked", [`${CONVERSATION[0][1]} 0300 0007 02f080`], /before it was asked/],
    ["no ISO transport", ["485454502f312e31"], /TPKT version 72/],
    ["data instead of a confirm", ["0300 0007 02f080"], /answered a connect request/],
    ["S7+", [CONVERSATION[0][1], "0300 000b 02f080 72010000"], /protocol id 0x72/],
    [
      "an impossible set-up",
      [CONVERSATION[0][1], "0300 001b 02f080 3203 0000 0001 0008 0000 0000 f000 0003 0003 0001"],
      /messages of 1 bytes/,
    ],
  ])("takes %s for no S7", async (_, answers, why) => {
    const server = await scripted(answers);
    const failure = await failureOf(open(server.port));
    expect(failure).toMatchObject({ reason: { type: "UNKNOWN" }, condition: "protocol_violation" });
    expect(failure.message).toMatch(why);
  });
});

describe("any controller", () => {
  it.each<[string, (plc: S7Plc) => void]>([
    ["with messages of 240 bytes", (plc) => void Object.assign(plc, { pduBytes: 240 })],
    ["with messages of 960 bytes", (plc) => void Object.assign(plc, { pduBytes: 960 })],
    ["with messages of 112 bytes", (plc) => void Object.assign(plc, { pduBytes: 112 })],
    ["that takes one job at once", (plc) => void Object.assign(plc, { jobs: 1 })],
    ["that answers backwards", (plc) => void Object.assign(plc, { answersBackwards: true })],
    ["that takes packets of 128 bytes", (plc) => void Object.assign(plc, { packetBytes: 128 })],
    ["that answers in fragments of one byte", (plc) => void Object.assign(plc, { fragmentBytes: 1 })],
    ["that acknowledges with empty packets", (plc) => void Object.assign(plc, { acknowledgesFast: true })],
    ["that fills the last item", (plc) => void Object.assign(plc, { fillsLast: true })],
    ["that confirms in another form", (plc) => void Object.assign(plc, { confirm: "bare" })],
    ["that says a length where nothing is", (plc) => void Object.assign(plc.memory.form, { refusedLength: 4 })],
    ["that counts timers in bits", (plc) => void Object.assign(plc.memory.form, { numbered: "words" })],
  ])("%s is read as any other", async (_, change) => {
    const simulator = await startSimulator();
    cleanUp.push(() => simulator.close());
    change(simulator.plc);
    const opened = await open(simulator.port);
    const texts = simulator.variables.map(({ address, type }) => `${address}:${type}`);
    expect(await read(opened, texts)).toEqual(simulator.variables.map(({ value }) => value));
    expect(await read(opened, ["DB99.DBW0", ...texts])).toEqual([
      expect.stringMatching(/^not_found \(points\): DB99\.DBB0\.\.1: item code 0x0A/),
      ...simulator.variables.map(({ value }) => value),
    ]);
    expect(simulator.plc.violations).toEqual([]);
  });

  it("has as many jobs under way as it grants, and never more", async () => {
    for (const jobs of [1, 3, 8]) {
      const plc = await plcWith((one) => Object.assign(one, { jobs, answerDelayMs: 20, pduBytes: 240 }));
      const opened = await open(plc.port);
      expect(await read(opened, words(900, 1))).toEqual(wordValues(900, 1));
      expect(plc.mostInFlight).toBe(jobs);
      expect(plc.violations).toEqual([]);
    }
    const plc = await plcWith((one) => Object.assign(one, { answerDelayMs: 20, pduBytes: 240 }));
    await read(await open(plc.port, { in_flight: 2 }), words(900, 1));
    expect(plc.mostInFlight).toBe(2);
  });

  it("reads what is longer than a message in pieces, cut between two elements, and joins them", async () => {
    const plc = await plcWith((one) => Object.assign(one, { pduBytes: 240 }));
    const opened = await open(plc.port, { in_flight: 1 });
    expect(await read(opened, ["DB1.DBW0[1000]", "DB2.DBW10"])).toEqual([wordValues(1000, 1), 5]);
    const counts = () => plc.lastJobs.splice(0).map(({ items }) => items.map(({ count }) => count));
    expect(counts()).toEqual([...Array.from({ length: 9 }, () => [222]), [2], [2]]);
    expect(await read(opened, ["DB1.DBD0:DWORD[60]"])).toEqual([wordValues(60, 2).map((high) => high * 65_536 + high + 1)]);
    expect(counts()).toEqual([[220], [20]]);
    plc.memory.holes.set("DB1", new Set([1999]));
    expect(await read(opened, ["DB1.DBW0[1000]"])).toEqual([
      expect.stringMatching(/^out_of_range \(points\): DB1\.DBB0\.\.1999: item code 0x05/),
    ]);
  });

  it.each(["cut", "refuse"] as const)(
    "asks for less within the jobs that are agreed, where all of them are too large at once: %s",
    async (over) => {
      const plc = await plcWith((one) => Object.assign(one, { maxItems: 7, overItems: over, answersBackwards: true }));
      const { session, settings } = await open(plc.port, { max_gap: 0 });
      const requests = driver.plan(pointsOf(settings, words(160, 4)), session.limits);
      expect([requests.length, session.limits.inFlight]).toEqual([8, 8]);
      const answers = await Promise.all(requests.map((request) => session.read(request, context())));
      for (const [i, request] of requests.entries())
        for (const [at, { index }] of request.points.entries())
          expect(answers[i]?.[at]).toMatchObject({ quality: "good", value: index * 4 });
      expect(plc.mostInFlight).toBe(8);
      expect(plc.violations).toEqual([]);
    },
  );

  it("reads a plan that was made for longer messages", async () => {
    const plc = await plcWith((one) => Object.assign(one, { pduBytes: 960 }));
    const first = await open(plc.port);
    const requests = driver.plan(pointsOf(first.settings, words(120, 4)), first.session.limits);
    plc.pduBytes = 240;
    const second = await open(plc.port);
    expect(second.session.limits).toMatchObject({ pduBytes: 240 });
    for (const request of requests) {
      const readings = await second.session.read(request, context());
      for (const [i, { index }] of request.points.entries()) expect(readings[i]).toMatchObject({ quality: "good", value: index * 4 });
    }
    expect(plc.violations).toEqual([]);
    // No value is cut: each range begins and ends with a word.
    const [joined] = driver.plan(
      pointsOf(first.settings, ["DB1.DBB1:CHAR(100)", "DB1.DBB101:CHAR(100)", "DB1.DBB201:CHAR(101)"]),
      first.session.limits,
    );
    if (!joined) throw new Error("nothing is planned");
    plc.lastJobs.length = 0;
    expect(await second.session.read(joined, context())).toHaveLength(3);
    expect(plc.lastJobs.map(({ items }) => items.map(({ start, count }) => [start, count]))).toEqual([[[1, 200]], [[201, 101]]]);
  });
});

describe("a controller that takes less than it should", () => {
  it.each(["cut", "refuse"] as const)("is asked for as many ranges as it takes (it %ss more), over connections", async (overItems) => {
    const plc = await plcWith((one) => Object.assign(one, { maxItems: 7, overItems }));
    const device = deviceMemory();
    const opened = await open(plc.port, { max_gap: 0 }, context({ device }));
    expect(await read(opened, words(30, 10))).toEqual(wordValues(30, 10));
    const learned = overItems === "cut" ? 7 : 5;
    expect(opened.session.limits).toMatchObject({ maxItems: learned });
    expect(textsOf(opened.session.warnings?.())).toEqual([`the controller answers ${learned} ranges of one job, fewer than 20`]);
    plc.resetCounts();
    const next = await open(plc.port, { max_gap: 0 }, context({ device }));
    expect(await read(next, words(30, 10))).toEqual(wordValues(30, 10));
    expect(plc.lastJobs.map(({ items }) => items.length).every((count) => count <= learned)).toBe(true);
  });

  it("is sent shorter messages where it refuses those that it has granted", async () => {
    const plc = await plcWith((one) => {
      one.pduBytes = 960;
      one.misbehave = ({ items }) => (items.some(({ count }) => count > 222) ? { error: JOB_ERRORS.wrongFrame } : undefined);
    });
    const device = deviceMemory();
    const opened = await open(plc.port, {}, context({ device }));
    expect(await read(opened, ["DB1.DBW0[400]"])).toEqual([wordValues(400, 1)]);
    expect(opened.session.limits).toMatchObject({ pduBytes: 240 });
    expect(textsOf(opened.session.warnings?.())).toEqual([expect.stringContaining("240 bytes at most")]);
    const next = await open(plc.port, {}, context({ device }));
    expect(next.session.limits).toMatchObject({ pduBytes: 240 });
  });

  it("is sent shorter messages for what takes several of them, too", async () => {
    const plc = await plcWith((one) => {
      one.pduBytes = 480;
      one.misbehave = ({ items }) => (items.some(({ count }) => count > 222) ? { error: JOB_ERRORS.wrongFrame } : undefined);
    });
    const opened = await open(plc.port);
    expect(await read(opened, ["DB1.DBW0[900]"])).toEqual([wordValues(900, 1)]);
    expect(opened.session.limits).toMatchObject({ pduBytes: 240 });
    plc.misbehave = () => ({ error: JOB_ERRORS.wrongFrame });
    expect(await read(opened, ["DB1.DBW0[900]"])).toEqual([expect.stringMatching(/^device_error \(points\): error 0x8500/)]);
    expect(opened.session.alive()).toBe(true);
  });

  it("keeps what it has learned where it answers fewer ranges and then refuses all", async () => {
    let jobs = 0;
    const plc = await plcWith((one) => {
      one.maxItems = 7;
      one.overItems = "cut";
      one.misbehave = () => (jobs++ === 0 ? undefined : { error: JOB_ERRORS.wrongFrame });
    });
    const opened = await open(plc.port, { max_gap: 0 });
    const values = await read(opened, words(15, 10));
    for (const value of values) expect(value).toMatch(/^device_error \(points\): error 0x8500/);
    expect(opened.session.limits).toMatchObject({ maxItems: 7, pduBytes: 480 });
  });

  it("learns nothing from a range that is refused whatever the size", async () => {
    const plc = await plcWith((one) => {
      one.misbehave = ({ items }) => (items.some(({ start }) => start === 100) ? { error: JOB_ERRORS.wrongFrame } : undefined);
    });
    const opened = await open(plc.port, { max_gap: 0 });
    expect(await read(opened, ["DB1.DBW0", "DB1.DBW100"])).toEqual([
      expect.stringMatching(/^device_error \(points\): error 0x8500/),
      expect.stringMatching(/^device_error \(points\): error 0x8500/),
    ]);
    expect(opened.session.limits).toMatchObject({ maxItems: 20, pduBytes: 480 });
    // It is asked for less once, and from then on not again.
    const before = plc.counts.jobs;
    await read(opened, ["DB1.DBW0", "DB1.DBW100"]);
    expect(plc.counts.jobs - before).toBe(1);
  });
});

describe("refusals", () => {
  it.each([0, 7, 19])("of one item cost that item alone, item %d of 20", async (at) => {
    const plc = await plcWith();
    plc.memory.refuse = ({ start }) => (start === at * 20 ? 5 : undefined);
    const opened = await open(plc.port, { max_gap: 0 });
    const values: (Value | unknown)[] = wordValues(20, 10);
    values[at] = expect.stringMatching(/^out_of_range \(points\): DB1\.DBB\d+\.\.\d+: item code 0x05 \(address out of range\).*s7plus/);
    expect(await read(opened, words(20, 10))).toEqual(values);
  });

  it.each([
    [1, /^device_error \(points\).*0x01 \(hardware error\): look at the diagnostic buffer/],
    [3, /^access_denied \(points\).*0x03 \(access not allowed\): permit access with PUT\/GET/],
    [6, /^type_mismatch \(points\).*0x06/],
    [7, /^type_mismatch \(points\).*0x07/],
    [10, /^not_found \(points\).*0x0A \(object does not exist\).*not loaded.*optimised/],
    [99, /^device_error \(points\).*0x63 \(not in the protocol's list\)/],
  ])("of an item with the code %d say what to do", async (code, words) => {
    const plc = await plcWith();
    plc.memory.refused.set("DB1", code);
    expect(await read(await open(plc.port), ["DB1.DBW0", "DB2.DBW2"])).toEqual([expect.stringMatching(words), 1]);
  });

  it.each([
    [0x8104, /^access_denied \(everything\): error 0x8104: the service is not permitted.*PUT\/GET/],
    [0xd241, /^access_denied \(everything\): error 0xD241: a password is needed/],
    [0x8304, /^device_error \(busy\): error 0x8304 for DB1\.DBB0\.\.1/],
    [0x83ff, /^device_error \(busy\): error 0x83FF for DB1\.DBB0\.\.1/],
    [0x8404, /^device_error \(points\): error 0x8404/],
    [0x8701, /^out_of_range \(points\): error 0x8701/],
    [0xd209, /^not_found \(points\): error 0xD209/],
    [0x1234, /^device_error \(points\): error 0x1234.*not in the protocol's list/],
  ])("of a job with the error %s have their scope", async (error, words) => {
    for (const errorForm of ["ack", "ack-data"] as const) {
      const plc = await plcWith((one) => Object.assign(one, { readError: error, errorForm }));
      const opened = await open(plc.port);
      expect(await read(opened, ["DB1.DBW0"])).toEqual([expect.stringMatching(words)]);
      plc.readError = undefined;
      expect(await read(opened, ["DB1.DBW2"])).toEqual([1]);
    }
  });

  it("are not taken from an item of another length: that item is a fault", async () => {
    const plc = await plcWith((one) => {
      one.misbehave = () => ({
        change(pdu) {
          pdu.writeUInt16BE(8, 16);
          return Buffer.concat([pdu.subarray(0, 18), hex("0100"), pdu.subarray(20)]);
        },
      });
    });
    expect(await read(await open(plc.port, { max_gap: 0 }), ["DB1.DBW0", "DB2.DBW2"])).toEqual([
      expect.stringMatching(/^device_error \(points\): DB1\.DBB0\.\.1: the device sent 1 bytes, 2 were asked for/),
      1,
    ]);
  });
});

describe("connecting", () => {
  const SLOTS =
    /asked for rack 0, slot 1; other slots worth trying: 0 \(S7-1200, S7-1500\), 2 \(S7-300, S7-400\), 3 \(S7-400\); or all of its connections of the type op are taken/;
  it.each([
    ["disconnect", "CONNECTION_CLOSED"],
    ["fin", "CONNECTION_CLOSED"],
    ["rst", "CONNECTION_RESET"],
    ["silent", "TIMEOUT"],
  ] as const)("to a wrong slot or without a free connection (%s) names slots worth trying", async (refusal, reason) => {
    const wrongSlot = await plcWith((one) => Object.assign(one, { positions: new Set([2]), wrongTsap: refusal }));
    const taken = await plcWith((one) => Object.assign(one, { slots: { op: 0 }, slotsTaken: refusal }));
    for (const { port } of [wrongSlot, taken]) {
      const failure = await failureOf(open(port, {}, context({ answerMs: 300 })));
      expect(failure).toMatchObject({ reason: { type: reason } });
      expect(failure.message).toMatch(SLOTS);
    }
  });

  it("does not take a connection of another type", async () => {
    const plc = await plcWith((one) => Object.assign(one, { slots: { pg: 1, op: 1 } }));
    await open(plc.port);
    expect(plc.confirmed("pg")).toBe(0);
    await expect(open(plc.port)).rejects.toMatchObject({ reason: { type: "CONNECTION_CLOSED" } });
    await open(plc.port, { connection_type: "basic" });
    expect(plc.confirmed()).toBe(2);
  });

  it("says which error refuses the set-up, and leaves no connection behind it", async () => {
    const plc = await plcWith((one) => Object.assign(one, { setupError: 0x8104 }));
    const failure = await failureOf(open(plc.port));
    expect(failure).toMatchObject({ reason: { type: "UNKNOWN" } });
    expect(failure.message).toMatch(/refused the set-up of the communication: error 0x8104/);
    await expect.poll(() => plc.connections()).toBe(0);
  });

  it.each([{ rack: 8 }, { slot: 32 }, { slot: -1 }])("refuses %j before it connects", async (details) => {
    const plc = await plcWith();
    await expect(open(plc.port, {}, context(), details)).rejects.toMatchObject({ condition: "configuration_invalid" });
    expect(plc.counts.accepted).toBe(0);
  });

  it.each([{ local_tsap: "2" }, { remote_tsap: "02.0g" }, { pdu_size: 50 }, { max_items: 21 }, { surprise: 1 }])(
    "refuses the settings %j",
    (local) => expect(driver.settings.safeParse(local).success).toBe(false),
  );
});

describe("a connection that ends", () => {
  it.each([
    ["by a disconnect", "0300 000b 06 80 0001 0003 80", "CONNECTION_CLOSED", /ended the connection: disconnect reason 128/],
    ["by an error of the transport", "0300 0009 04 70 0001 02", "CONNECTION_CLOSED", /rejected a TPDU/],
  ])("%s says so", async (_, bytes, reason, words) => {
    const server = await scripted([CONVERSATION[0][1], CONVERSATION[1][1], bytes]);
    const opened = await open(server.port);
    const failure = await failureOf(read(opened, ["MW20"]));
    expect(failure).toMatchObject({ reason: { type: reason } });
    expect(failure.message).toMatch(words);
    expect(opened.session.alive()).toBe(false);
  });

  it("with a reset where reading is forbidden, is a reset", async () => {
    const plc = await plcWith((one) => Object.assign(one, { resetsOnRead: true }));
    const opened = await open(plc.port);
    expect(await failureOf(read(opened, ["DB1.DBW0"]))).toMatchObject({ reason: { type: "CONNECTION_RESET" } });
  });

  it("is closed after a job without an answer, whose late answer nobody takes", async () => {
    const plc = await plcWith();
    const opened = await open(plc.port);
    plc.misbehave = () => ({ delayMs: 300 });
    expect(await failureOf(read(opened, ["DB1.DBW0"], context({ answerMs: 100 })))).toMatchObject({ reason: { type: "TIMEOUT" } });
    expect(opened.session.alive()).toBe(false);
  });
});
