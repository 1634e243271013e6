import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { type Log, silentLog } from "../../src/model/context.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { codesOf, textsOf } from "../../src/model/testing/warnings.ts";
import { formatDataType, type Reading, type Value } from "../../src/model/value.ts";
import { driverContext as context, deviceMemory } from "../../test/support/driver-context.ts";
import type { AnySession, Confirmation, Discovered, DriverContext, Point } from "../driver.ts";
import { typeOf } from "../driver.ts";
import driver from "./driver.ts";
import { largeProgram, makePlcCertificate, type S7PlusPlc, startS7PlusPlc, startSimulator } from "./simulator.ts";

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

async function simulated(change: (plc: S7PlusPlc) => void = () => {}): Promise<S7PlusPlc> {
  const simulator = await startSimulator();
  cleanUp.push(() => simulator.close());
  change(simulator.plc);
  return simulator.plc;
}

async function filled(count: number): Promise<S7PlusPlc> {
  const plc = await startS7PlusPlc({ program: largeProgram(count) });
  cleanUp.push(() => plc.close());
  return plc;
}

/** A kind of connection that nothing is said about. */
const PANEL = { destination_tsap: "SIMATIC-ROOT-HMI" };

interface How {
  readonly local?: object;
  readonly details?: object;
  readonly password?: string;
  readonly ctx?: DriverContext;
}

async function open({ port }: S7PlusPlc, { local = {}, details = {}, password, ctx = context() }: How = {}): Promise<AnySession> {
  const session = await driver.connect(
    {
      details: driver.details.parse({ type: "s7plus", host: "127.0.0.1", port, password: { type: "none" }, ...PANEL, ...details }),
      settings: driver.settings.parse(local),
      secrets: password === undefined ? {} : { password },
    },
    ctx,
  );
  cleanUp.push(() => session.close());
  return session;
}

const pointsOf = (texts: readonly string[]): Point[] =>
  texts.map((text, index) => {
    const [address = "", word] = text.split(":");
    return { index, ...driver.parseAddress(address, word === undefined ? undefined : typeOf(driver, word), {}) };
  });

/** Points with their places, and faults of those that have none. */
async function prepare(session: AnySession, texts: readonly string[], ctx = context()): Promise<{ ready: Point[]; refused: string[] }> {
  const ready: Point[] = [];
  const refused: string[] = [];
  for await (const batch of session.prepare?.(pointsOf(texts), ctx) ?? [])
    for (const one of batch)
      if ("refusal" in one) refused.push(`${one.refusal.fault}: ${one.refusal.message}`);
      else ready.push({ index: one.point.index, address: one.address, type: one.type });
  return { ready, refused };
}

const shown = (reading: Reading): Value => (reading.quality === "bad" ? `${reading.fault}: ${reading.detail}` : reading.value);

async function readReady(session: AnySession, ready: readonly Point[], ctx = context()): Promise<Value[]> {
  const values: Value[] = [];
  for (const request of driver.plan(ready, session.limits))
    for (const [i, reading] of (await session.read(request, ctx)).entries()) values[request.points[i]?.index ?? -1] = shown(reading);
  return values;
}

const read = async (session: AnySession, texts: readonly string[], ctx = context()): Promise<Value[]> =>
  readReady(session, (await prepare(session, texts, ctx)).ready, ctx);

async function failureOf(work: Promise<unknown>): Promise<ReasonError | FaultError> {
  const error = await work.then(
    (value) => new Error(`it gave ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown,
  );
  if (error instanceof ReasonError || error instanceof FaultError) return error;
  throw error;
}

/** The category of S7PLUS_ERROR and what is said. */
async function refusalOf(work: Promise<unknown>): Promise<string> {
  const error = await failureOf(work);
  if (!(error instanceof ReasonError)) throw error;
  const { reason } = error;
  return `${reason.type === "S7PLUS_ERROR" ? reason.category : reason.type}: ${error.message}`;
}

const values = (count: number, block = 1): string[] => Array.from({ length: count }, (_, i) => `Block_${block}.value_${i}`);
const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** Every session that was made was deleted, and nothing was asked that a right client does not ask. */
async function expectOrderly(plc: S7PlusPlc): Promise<void> {
  await expect.poll(() => plc.connections()).toBe(0);
  expect(plc.violations).toEqual([]);
  expect([plc.counts.deleted, plc.sessions()]).toEqual([plc.counts.created, 0]);
}

it("stopped while it opens has deleted its session when it ends", async () => {
  const plc = await filled(10);
  const stop = new AbortController();
  plc.misbehave = ({ name }) => {
    if (name !== "getMultiVariables") return undefined;
    setTimeout(() => stop.abort(), 20);
    return { delayMs: 200 };
  };
  await expect(open(plc, { ctx: { ...context(), signal: stop.signal } })).rejects.toThrow();
  expect([plc.counts.created, plc.counts.deleted]).toEqual([1, 1]);
  await expectOrderly(plc);
});

describe("reading", () => {
  it("asks for as many variables at once as the CPU takes and a frame holds", async () => {
    const plc = await filled(1000);
    const session = await open(plc);
    expect(await read(session, values(1000))).toEqual(numbers(1000));
    const frames = plc.lastRequests.map(({ frameBytes }) => frameBytes);
    expect(Math.max(...frames)).toBeLessThanOrEqual(900);
    // Limits, the types of the block, and the variables.
    expect(plc.requests.getMultiVariables).toBeLessThanOrEqual(18);
    await session.close();
    await expectOrderly(plc);
  });

  it.each([
    ["what the CPU says", (plc: S7PlusPlc) => (plc.maxReadItems = 7), {}, 7],
    ["20 where it does not say", (plc: S7PlusPlc) => (plc.hidesLimits = true), {}, 20],
    ["the setting where it is less", () => {}, { max_items: 5 }, 5],
  ])("takes %s for the most variables of a request", async (_, change, local, most) => {
    const plc = await filled(100);
    change(plc);
    const session = await open(plc, { local });
    const limits = driver.limits?.(session.limits, driver.settings.parse(local)) ?? session.limits;
    const { ready } = await prepare(session, values(30));
    expect(driver.plan(ready, limits).map(({ points }) => points.length)[0]).toBe(most);
    expect(await readReady(session, ready)).toEqual(numbers(30));
    await session.close();
    await expectOrderly(plc);
  });

  it("asks for half as much where the CPU has less memory than it promises, and says so", async () => {
    const plc = await filled(100);
    [plc.toldReadItems, plc.maxReadItems] = [100, 9];
    const session = await open(plc);
    const { ready } = await prepare(session, values(60));
    expect(await readReady(session, ready)).toEqual(numbers(60));
    expect(session.limits).toMatchObject({ maxItems: 7 });
    expect(textsOf(session.warnings?.())).toEqual([expect.stringContaining("the collector asks for 7")]);
    const before = plc.requests.getMultiVariables ?? 0;
    expect(await readReady(session, ready)).toEqual(numbers(60));
    expect(plc.requests.getMultiVariables).toBe(before + 9);
    await session.close();
    await expectOrderly(plc);
  });

  it("is told by one variable what the return value of that is about", async () => {
    const plc = await simulated();
    plc.refuse = (_, name) => (name?.endsWith("int") ? -100 : name?.endsWith(".real") ? "lost" : undefined);
    const session = await open(plc);
    const [int, real, word] = await read(session, ["Types.int", "Types.real", "Types.word"]);
    expect(int).toMatch(/^access_denied: Types\.int \(8A0E0001\.[0-9A-F]+\): return value -100 \(access denied\).*accessible from HMI/);
    expect(real).toMatch(/^device_error: .*neither a value nor a refusal/);
    expect(word).toBe(0xabcd);
    expect(await read(session, ["Types.word:WORD"])).toEqual([0xabcd]);
  });

  it("says what is wrong with a symbol", async () => {
    const session = await open(await simulated());
    const wrong = [
      "Nowhere.x",
      "Types.nope",
      "Types",
      "Types.int.x",
      "Types.int[0]",
      "Arrays.levels[4]",
      "Arrays.grid[0]",
      "Arrays.grid",
      "Arrays.names",
      "Motor_DB.main",
      "Motor_DB.spare.speed",
      "Types.int:REAL",
      "Arrays.levels:INT[3]",
      '"Not loaded".x',
    ];
    const { refused } = await prepare(session, wrong);
    // Those of one block come together.
    expect(refused.toSorted()).toEqual([
      expect.stringMatching(/^not_found: Arrays\.grid\[0\]: an element of grid is grid\[0,1\]/),
      expect.stringMatching(/^not_found: Motor_DB\.spare\.speed: spare is an array, name an element: spare\[1\]/),
      expect.stringMatching(/^not_found: Types\.int\.x: int has no members/),
      expect.stringMatching(/^not_found: Types\.int\[0\]: int is not an array/),
      expect.stringMatching(/^not_found: Types\.nope: .*no nope there/),
      expect.stringMatching(/^not_found: the PLC's program has neither a block nor a tag Nowhere/),
      expect.stringMatching(/^not_found: the block "Not loaded" is not in the PLC's working memory/),
      expect.stringMatching(/^out_of_range: Arrays\.levels\[4\]: the index 4 is outside 0\.\.3/),
      expect.stringMatching(/^type_mismatch: Arrays\.grid is an array .*name an element, grid\[0,1\]/),
      expect.stringMatching(/^type_mismatch: Arrays\.levels is INT \(int16\[4\]\) in the PLC, not int16\[3\]/),
      expect.stringMatching(/^type_mismatch: Arrays\.names is an array .*name an element, names\[1\]/),
      expect.stringMatching(/^type_mismatch: Motor_DB\.main .*name a member/),
      expect.stringMatching(/^type_mismatch: Types is a block/),
      expect.stringMatching(/^type_mismatch: Types\.int is INT \(int16\) in the PLC, not float32/),
    ]);
  });

  it("says what an absolute address is, and which name differs by its letters alone", async () => {
    const session = await open(await simulated());
    const { refused } = await prepare(session, ["DB1.DBD4", "%MW20", "types.int", "Types.INT", "temp 1"]);
    expect(refused.toSorted()).toEqual([
      expect.stringMatching(/^not_found: .*Types\.INT: .* no INT there; it has int: write the name in the same letters/),
      expect.stringMatching(/neither a block nor a tag "%MW20"; .*"%MW20" is an address of STEP 7.*read the place with the driver s7$/),
      expect.stringMatching(/neither a block nor a tag "temp 1"; it has "Temp 1": write the name in the same letters/),
      expect.stringMatching(/neither a block nor a tag DB1; .*"DB1\.DBD4" is an address of STEP 7.*read the place with the driver s7$/),
      expect.stringMatching(/neither a block nor a tag types; it has Types: write the name in the same letters/),
    ]);
  });

  it.each([
    ["of one byte", (plc: S7PlusPlc) => (plc.fragmentBytes = 1)],
    ["joined in one record", (plc: S7PlusPlc) => ([plc.fragmentBytes, plc.joinsFragments] = [40, true])],
    ["in small packets", (plc: S7PlusPlc) => ([plc.payloadBytes, plc.packetSizeCode, plc.sendsEmptyPackets] = [11, 7, true])],
    ["of messages that are left open", (plc: S7PlusPlc) => (plc.leavesMessagesOpen = true)],
    ["behind an event", (plc: S7PlusPlc) => (plc.eventBeforeSsl = true)],
  ])("takes answers in fragments %s", async (_, change) => {
    const plc = await simulated(change);
    const session = await open(plc);
    plc.report("plain");
    plc.babble(Buffer.from("72ff0100", "hex"));
    expect(await read(session, ["Types.text", "Arrays.many[299]", "Temp 1"])).toEqual(["Hällo", 149 * 1_000_003, -12.625]);
    await session.close();
    await expectOrderly(plc);
  });
});

describe("connecting", () => {
  it.each(["unknown-service", "no-tls"] as const)("names a CPU without TLS (%s), and what to do", async (ssl) => {
    const plc = await simulated((one) => (one.ssl = ssl));
    expect(await refusalOf(open(plc))).toMatch(/^UNKNOWN: the PLC refused TLS: return value -(119|507) .*V17.*read the CPU with s7/);
  });

  it.each(["reset", "alert", "old-tls"] as const)("names a handshake that fails (%s)", async (ssl) => {
    const plc = await simulated((one) => (one.ssl = ssl));
    expect(await refusalOf(open(plc))).toMatch(/^UNKNOWN: the PLC agreed to TLS and then refused the handshake \(TLS 1\.3, X25519\)/);
  });

  it("names a TSAP that is refused, and asks for the one that is configured", async () => {
    const plc = await simulated((one) => (one.tsaps = new Set(["SIMATIC-ROOT-HMI"])));
    expect(await refusalOf(open(plc, { details: { destination_tsap: "SIMATIC-ROOT-ES" } }))).toMatch(
      /^CONNECTION_CLOSED: .*asked for the TSAP SIMATIC-ROOT-ES.*destination_tsap/,
    );
    const session = await open(plc, { details: { destination_tsap: "SIMATIC-ROOT-HMI" } });
    expect(await read(session, ["Types.int"])).toEqual([-7]);
  });

  it("accepts the pinned certificate alone", async () => {
    const certificate = makePlcCertificate();
    const plc = await simulated((one) => (one.certificate = certificate));
    const other = "ab".repeat(32);
    const refusal = await refusalOf(open(plc, { local: { certificate: other } }));
    const [, own = ""] = /fingerprint ([0-9A-F:]{95})/.exec(refusal) ?? [];
    expect(refusal).toMatch(/^UNKNOWN: the PLC shows the certificate/);
    const session = await open(plc, { local: { certificate: own } });
    expect(await read(session, ["Types.int"])).toEqual([-7]);
  });

  it.each([
    [-113, /^UNKNOWN: .*-113 \(too many sessions\).*close other connections/],
    [-100, /^AUTHENTICATION: .*-100 \(access denied\)/],
    [-95, /^UNKNOWN: .*-95 \(not implemented\)/],
  ])("names the return value %d of the session", async (code, words) => {
    const plc = await simulated((one) => (one.createCode = code));
    expect(await refusalOf(open(plc))).toMatch(words);
    const second = await simulated((one) => (one.setUpCode = code));
    expect(await refusalOf(open(second))).toMatch(words);
    expect(second.violations).toEqual([]);
  });

  it("deletes a session that it gives up while it is set up", async () => {
    const plc = await simulated();
    const stop = new AbortController();
    plc.misbehave = ({ name }) => {
      if (name !== "getMultiVariables") return undefined;
      setImmediate(() => stop.abort());
      return { delayMs: 200 };
    };
    expect(await refusalOf(open(plc, { ctx: context({ signal: stop.signal }) }))).toMatch(/^TIMEOUT: .*its limits/);
    await expectOrderly(plc);
  });
});

describe("logging in", () => {
  const locked = (change: (plc: S7PlusPlc) => void) =>
    simulated((plc) => {
      [plc.level, plc.password] = [4, "geheim äöü"];
      change(plc);
    });
  const PASSWORD = "geheim äöü";

  it.each([
    ["the legacy answer", (plc: S7PlusPlc) => ([plc.legitimation, plc.device] = ["legacy", "1;6ES7 511-1AK02-0AB0;V2.9"])],
    ["the new answer", (plc: S7PlusPlc) => ([plc.legitimation, plc.device] = ["new", "1;6ES7 511-1AK02-0AB0;V3.1"])],
    ["the new answer of a CPU that says nothing known", (plc: S7PlusPlc) => ([plc.legitimation, plc.device] = ["new", "2;?;W1"])],
  ])("with %s", async (_, change) => {
    const plc = await locked(change);
    const session = await open(plc, { password: PASSWORD });
    expect(await read(session, ["Types.int"])).toEqual([-7]);
    expect(plc.counts.logins).toBe(1);
    await session.close();
    await expectOrderly(plc);
  });

  it("with a user", async () => {
    const plc = await locked((one) => {
      [one.legitimation, one.device, one.password] = ["new", "1;6ES7 511-1AK02-0AB0;V3.1", undefined];
      one.users.set("otto", PASSWORD);
    });
    const session = await open(plc, { local: { user: "otto" }, password: PASSWORD });
    expect(await read(session, ["Types.int"])).toEqual([-7]);
    expect(await refusalOf(open(plc, { password: PASSWORD }))).toMatch(
      /^AUTHENTICATION: the PLC refused the password: .*local setting user/,
    );
    expect(await refusalOf(open(plc, { local: { user: "anna" }, password: PASSWORD }))).toMatch(/^AUTHENTICATION: .*of the user "anna"/);
  });

  it.each([
    [22, /return value 22 \(session delegitimated\)/],
    [-118, /return value -118/],
    [38, /return value 38/],
  ])("names a wrong password by its return value %d, and heals when it is right", async (code, words) => {
    const plc = await locked((one) => (one.wrongPasswordCode = code));
    const refusal = await refusalOf(open(plc, { password: "wrong" }));
    expect(refusal).toMatch(/^AUTHENTICATION: the PLC refused the password/);
    expect(refusal).toMatch(words);
    expect(refusal).not.toContain("wrong");
    expect(plc.counts.wrongPasswords).toBe(1);
    expect(await read(await open(plc, { password: PASSWORD }), ["Types.int"])).toEqual([-7]);
    plc.password = "changed";
    expect(await refusalOf(open(plc, { password: PASSWORD }))).toMatch(/^AUTHENTICATION/);
  });

  it("names a password that is missing, and one that is not sufficient", async () => {
    const plc = await locked((one) => (one.levelOfPassword = 4));
    expect(await refusalOf(open(plc))).toMatch(/^AUTHENTICATION: .*no access without a password \(protection level 4\); set the password/);
    expect(await refusalOf(open(plc, { password: PASSWORD }))).toMatch(/^AUTHENTICATION: .*took the password and still gives no access/);
    await expectOrderly(plc);
  });

  it("names a log-in that is taken back, and heals with a new session", async () => {
    const plc = await locked(() => {});
    const session = await open(plc, { password: PASSWORD });
    const { ready } = await prepare(session, ["Types.int"]);
    plc.delegitimate();
    expect(await refusalOf(readReady(session, ready))).toMatch(/^AUTHENTICATION: /);
    expect(await read(await open(plc, { password: PASSWORD }), ["Types.int"])).toEqual([-7]);
  });

  it("names rights that are taken away while every variable is denied, and heals with a new session", async () => {
    const plc = await locked(() => {});
    const session = await open(plc, { password: PASSWORD });
    const { ready } = await prepare(session, ["Types.int"]);
    plc.setLevel(4);
    expect(await refusalOf(readReady(session, ready))).toMatch(/^AUTHENTICATION: .*rights away \(protection level 4/);
    expect(await read(await open(plc, { password: PASSWORD }), ["Types.int"])).toEqual([-7]);
  });

  it("takes a request of denied variables alone for no missing log-in, and asks for the level once", async () => {
    const plc = await simulated();
    const session = await open(plc);
    const { ready } = await prepare(session, ["Types.int"]);
    plc.refuse = () => -100;
    const before = plc.requests.getVarSubStreamed ?? 0;
    expect(String(await readReady(session, ready))).toMatch(/^access_denied: Types\.int .*return value -100/);
    await readReady(session, ready);
    expect((plc.requests.getVarSubStreamed ?? 0) - before).toBe(1);
    plc.refuse = undefined;
    expect(await readReady(session, ready)).toEqual([-7]);
  });

  it("sends no password to a CPU that asks for none", async () => {
    const plc = await simulated();
    await open(plc, { password: PASSWORD });
    expect([plc.counts.logins, plc.counts.wrongPasswords, plc.requests.setVariable]).toEqual([0, 0, undefined]);
  });
});

describe("the end of a session", () => {
  it.each(["abort", "time-out", "close"] as const)("deletes it in the middle of a read (%s)", async (how) => {
    const plc = await simulated();
    const session = await open(plc);
    const { ready } = await prepare(session, ["Types.int"]);
    const [request] = driver.plan(ready, session.limits);
    if (!request) throw new Error("nothing is planned");
    plc.misbehave = ({ name }) => (name === "getMultiVariables" ? { delayMs: 150 } : undefined);
    const stop = new AbortController();
    const reading = refusalOf(session.read(request, context({ signal: stop.signal, answerMs: how === "time-out" ? 30 : 5000 })));
    if (how === "abort") setImmediate(() => stop.abort());
    if (how === "close") setImmediate(() => session.close());
    expect(await reading).toMatch(how === "close" ? /^CONNECTION_CLOSED/ : /^TIMEOUT/);
    expect(session.alive()).toBe(false);
    await session.close();
    await expectOrderly(plc);
  });

  it("does not wait for a CPU that says nothing to the deletion", async () => {
    const plc = await simulated();
    const session = await open(plc);
    plc.misbehave = () => ({ silent: true });
    const began = performance.now();
    await session.close();
    expect(performance.now() - began).toBeLessThan(2500);
    await expect.poll(() => plc.connections()).toBe(0);
  });

  it.each([
    ["it reports its end and closes", (plc: S7PlusPlc) => plc.endSessions(), /^(UNKNOWN: .*ended the session: LOGOUT|CONNECTION_CLOSED)/],
    ["it reports an error", (plc: S7PlusPlc) => plc.report("fatal"), /^UNKNOWN: .*ended the session: return value -\d+/],
    ["it reports an error without a code", (plc: S7PlusPlc) => plc.report("bare-struct"), /^UNKNOWN: .*ended the session: no reason given/],
    ["it restarts", (plc: S7PlusPlc) => plc.restart(), /^CONNECTION_RESET/],
  ])("of the CPU's own: %s", async (_, end, words) => {
    const plc = await simulated();
    const device = deviceMemory();
    const session = await open(plc, { ctx: context({ device }) });
    const { ready } = await prepare(session, ["Types.int"]);
    plc.misbehave = ({ name }) => {
      if (name !== "getMultiVariables") return undefined;
      end(plc);
      return { silent: true };
    };
    expect(await refusalOf(readReady(session, ready))).toMatch(words);
    expect(session.alive()).toBe(false);
    plc.misbehave = undefined;
    // What was looked up holds in the next session.
    const next = await open(plc, { ctx: context({ device }) });
    expect(next.epoch).toBe(session.epoch);
    expect(await readReady(next, ready)).toEqual([-7]);
  });

  it("passes a late answer by", async () => {
    const plc = await simulated();
    const session = await open(plc);
    const { ready } = await prepare(session, ["Types.int"]);
    plc.misbehave = ({ name }) => (name === "getMultiVariables" ? { stale: true } : undefined);
    expect(await readReady(session, ready)).toEqual([-7]);
    expect(await readReady(session, ready)).toEqual([-7]);
  });

  it.each([
    ["cut short", (answer: Buffer) => answer.subarray(0, answer.length - 7)],
    ["of a type that is not known", (answer: Buffer) => Buffer.concat([answer.subarray(0, 13), Buffer.of(0x16), answer.subarray(14)])],
  ])("is not what an answer asks for that is %s", async (_, change) => {
    const plc = await simulated();
    const session = await open(plc);
    const { ready } = await prepare(session, ["Types.text"]);
    plc.misbehave = ({ name }) => (name === "getMultiVariables" ? { change } : undefined);
    expect(await failureOf(readReady(session, ready))).toMatchObject({ fault: "device_error", scope: "points" });
    plc.misbehave = undefined;
    expect(await readReady(session, ready)).toEqual(["Hällo"]);
  });
});

describe("another program", () => {
  const TEXTS = ["Types.int", "Types.real", "8A0E0001.9"];

  it("shows when a variable is no longer where it was; then it is looked up again", async () => {
    const plc = await simulated();
    const session = await open(plc);
    const { ready } = await prepare(session, TEXTS);
    expect((await readReady(session, ready)).slice(0, 2)).toEqual([-7, 23.5]);
    const { epoch } = session;
    plc.download(undefined, { ids: "shifted", keepsStamps: true });
    expect(await failureOf(readReady(session, ready))).toMatchObject({ fault: "program_changed", scope: "program" });
    expect(session.epoch).not.toBe(epoch);
    const again = await prepare(session, TEXTS);
    expect((await readReady(session, again.ready)).slice(0, 2)).toEqual([-7, 23.5]);
    expect(await readReady(session, again.ready)).toHaveLength(3);
  });

  it("shows by its stamps when a session begins, before a value is taken for another's", async () => {
    const plc = await simulated();
    const device = deviceMemory();
    const session = await open(plc, { ctx: context({ device }) });
    const { ready } = await prepare(session, TEXTS);
    await session.close();
    plc.download(undefined, { ids: "turned" });
    const next = await open(plc, { ctx: context({ device }) });
    expect(await failureOf(readReady(next, ready))).toMatchObject({ scope: "program" });
    expect((await read(next, TEXTS)).slice(0, 2)).toEqual([-7, 23.5]);
  });

  describe("whose blocks are as before", () => {
    const VALUES: Readonly<Record<string, number>> = { first: 1, second: 2 };
    const field = (name: string, type = "INT") => ({ name, type, ...(VALUES[name] !== undefined && { value: VALUES[name] }) });
    const block = { number: 1, name: "DB", fields: [field("part", "Part")] };
    const declared = (first: string, second: string) => ({
      tags: { M: [field(first), field(second)] },
      structures: { Part: [field("a"), field("b")] },
      blocks: [block],
    });
    const NAMES = ["first", "second", "DB.part.a"];
    /** Types that are looked at, and the tags' one. */
    const [TYPES, TAGS] = [[0x9003_0000, 0x9100_0001], 0x9003_0000];
    const stampsOf = ({ lastRequests }: S7PlusPlc) =>
      lastRequests.filter(({ name, object }) => name === "explore" && TYPES.includes(object ?? 0)).map(({ object }) => object);

    async function begin() {
      const plc = await startS7PlusPlc({ program: declared("first", "second") });
      cleanUp.push(() => plc.close());
      const device = deviceMemory();
      const again = () => open(plc, { ctx: context({ device }), local: { program_check: 1 } });
      const session = await again();
      const { ready } = await prepare(session, NAMES);
      expect(await readReady(session, ready)).toEqual([1, 2, 0]);
      plc.resetCounts();
      return { plc, session, ready, again };
    }
    const untilList = () => sleep(1000);
    const swap = (plc: S7PlusPlc) => plc.download(declared("second", "first"), { onlyChanges: true });

    it("shows by the stamp of the tag table with the next list, and stays known then", async () => {
      const { plc, session, ready } = await begin();
      await untilList();
      expect(await readReady(session, ready)).toEqual([1, 2, 0]);
      expect(stampsOf(plc).toSorted()).toEqual(TYPES);
      swap(plc);
      await untilList();
      const { epoch } = session;
      expect(await failureOf(readReady(session, ready))).toMatchObject({ fault: "program_changed", scope: "program" });
      expect(session.epoch).not.toBe(epoch);
      expect(await read(session, NAMES)).toEqual([1, 2, 0]);
      expect(plc.violations).toEqual([]);
    });

    it("shows by the stamp of a structure", async () => {
      const { plc, session, ready } = await begin();
      plc.download({ ...declared("first", "second"), structures: { Part: [field("b"), field("a")] } }, { onlyChanges: true });
      await untilList();
      expect(await failureOf(readReady(session, ready))).toMatchObject({ fault: "program_changed", scope: "program" });
    });

    it("shows to the next session", async () => {
      const { plc, session, ready, again } = await begin();
      await session.close();
      swap(plc);
      const next = await again();
      expect(await failureOf(readReady(next, ready))).toMatchObject({ fault: "program_changed" });
      expect(await read(next, NAMES)).toEqual([1, 2, 0]);
    });

    it.each([
      ["is silent", { silent: true }],
      ["ends the connection over it", { hangUp: "rst" }],
    ] as const)("is not asked for by its types for a while where a CPU %s", async (_, odd) => {
      const { plc, session, ready, again } = await begin();
      plc.misbehave = ({ name, object }) => (name === "explore" && object === TAGS ? odd : undefined);
      await untilList();
      if ("hangUp" in odd) expect(await refusalOf(readReady(session, ready))).toMatch(/^CONNECTION_RESET/);
      else expect(await readReady(session, ready, context({ answerMs: 500 }))).toEqual([1, 2, 0]);
      const next = "hangUp" in odd ? await again() : session;
      plc.resetCounts();
      await untilList();
      expect(await readReady(next, ready)).toEqual([1, 2, 0]);
      expect(stampsOf(plc)).toEqual([]);
      expect(plc.requests.explore).toBeGreaterThan(0);
    });
  });

  it("shows by the check of names where the stamps say nothing", async () => {
    const plc = await simulated();
    const session = await open(plc, { local: { check_symbols: true } });
    const { ready } = await prepare(session, TEXTS.slice(0, 2));
    expect(await readReady(session, ready)).toEqual([-7, 23.5]);
    plc.download(undefined, { ids: "turned", keepsStamps: true });
    expect(await failureOf(readReady(session, ready))).toMatchObject({ scope: "program" });
    expect(await read(session, TEXTS.slice(0, 2))).toEqual([-7, 23.5]);
  });

  it("shows by a value of another type than was looked up, which is looked for once where it stays so", async () => {
    const plc = await simulated();
    const session = await open(plc);
    const { ready } = await prepare(session, TEXTS.slice(0, 2));
    plc.download(undefined, { ids: "turned", keepsStamps: true });
    expect(await failureOf(readReady(session, ready))).toMatchObject({ fault: "program_changed", scope: "program" });
    expect(await read(session, TEXTS.slice(0, 2))).toEqual([-7, 23.5]);
    // A CPU that says one type and sends another.
    const real = Buffer.from("000e41bc0000", "hex");
    plc.misbehave = ({ name }) =>
      name === "getMultiVariables" ? { change: (answer) => replaced(answer, real, Buffer.from("000c41bc0000", "hex")) } : undefined;
    const again = await prepare(session, TEXTS.slice(0, 2));
    expect(await failureOf(readReady(session, again.ready))).toMatchObject({ scope: "program" });
    const stays = await prepare(session, TEXTS.slice(0, 2));
    expect(await readReady(session, stays.ready)).toEqual([-7, expect.stringMatching(/^type_mismatch: the PLC sent dword/)]);
  });

  it("is not looked for again because of a variable that is refused whatever the program", async () => {
    const plc = await simulated();
    plc.refuse = (_, name) => (name?.endsWith("real") ? -255 : undefined);
    const session = await open(plc);
    const { ready } = await prepare(session, TEXTS);
    expect(await failureOf(readReady(session, ready))).toMatchObject({ scope: "program" });
    const again = await prepare(session, TEXTS);
    plc.resetCounts();
    for (let i = 0; i < 3; i++) {
      const [int, real] = await readReady(session, again.ready);
      expect([int, real]).toEqual([-7, expect.stringMatching(/^not_found: .*-255 \(invalid local id\)/)]);
    }
    expect(plc.requests.explore).toBeUndefined();
  });

  it("is ready all the same where a CPU takes long to tell its symbols, longer than one answer may", async () => {
    const plc = await filled(2000);
    plc.explorePause = { bytes: 3000, ms: 15 };
    const session = await open(plc);
    const began = performance.now();
    expect(await read(session, ["Block_1.value_0", "Block_2.value_999"], context({ answerMs: 120 }))).toEqual([0, 1999]);
    expect(performance.now() - began).toBeGreaterThan(150);
  });

  it("keeps what it has looked up when the time for it is over", async () => {
    const plc = await simulated();
    const session = await open(plc);
    const stop = new AbortController();
    const found: unknown[] = [];
    for await (const batch of session.prepare?.(pointsOf(["Types.int", "Motor_DB.main.speed"]), context({ signal: stop.signal })) ?? []) {
      found.push(...batch);
      stop.abort();
    }
    expect(found).toHaveLength(1);
    expect(session.alive()).toBe(true);
  });

  it("is listed without time stamps by a CPU that knows none of them", async () => {
    const plc = await simulated();
    let refused = 0;
    plc.misbehave = ({ name, object }) => (name === "explore" && object === 3 && refused++ === 0 ? { code: -32 } : undefined);
    const session = await open(plc);
    expect(await read(session, TEXTS.slice(0, 2))).toEqual([-7, 23.5]);
    expect(refused).toBe(2);
  });

  it("one type that cannot be read hurts no other", async () => {
    const plc = await simulated();
    const logged: string[] = [];
    const warn = (_: object, message: string) => void logged.push(message);
    const log: Log = { ...silentLog, warn };
    const session = await open(plc);
    plc.misbehave = ({ name, object }) =>
      // A name list that begins with a name longer than its block.
      name === "explore" && object === 0x8a0e0001 ? { change: (answer) => broken(answer) } : undefined;
    const { ready, refused } = await prepare(session, ["Types.int", "Motor_DB.main.speed"], context({ log }));
    expect([ready.length, refused]).toEqual([1, [expect.stringContaining("Types.int")]]);
    expect(logged).toEqual([expect.stringContaining("cannot be read")]);
    expect(await readReady(session, ready)).toEqual([undefined, 1480]);
  });
});

/** The first name of the name list is longer than its block. */
function broken(answer: Buffer): Buffer {
  const changed = Buffer.from(answer);
  const at = changed.indexOf(Buffer.from("\x03bit\0", "latin1"));
  changed[at] = 0xff;
  return changed;
}

const replaced = (answer: Buffer, from: Buffer, to: Buffer): Buffer => {
  const at = answer.indexOf(from);
  if (at < 0) return answer;
  return Buffer.concat([answer.subarray(0, at), to, answer.subarray(at + from.length)]);
};

describe("the look behind the values", () => {
  const TEXTS = ["Types.int", "Types.real", "Far.x", "MArea.MW10", "8A0E0003.B"];
  const names = (found: Confirmation | undefined) =>
    found?.doubtful.map(({ points, detail }) => [points.map(({ index }) => index), detail]);

  it("asks for the stamps of the used blocks alone, and names the variables of those that were changed", async () => {
    const plc = await simulated();
    const session = await open(plc);
    const { ready } = await prepare(session, TEXTS);
    await readReady(session, ready);
    plc.resetCounts();
    expect(await session.confirm?.(ready, 1000, context())).toEqual({ doubtful: [], ageMs: expect.any(Number) });
    expect(plc.lastRequests.map(({ name, object }) => [name, object])).toEqual([
      ["explore", 0x8a0e0001],
      ["explore", 0x8a0e9c40],
    ]);
    const { epoch } = session;
    const { declaration } = plc.program;
    const blocks = declaration.blocks?.map((block) => (block.number === 1 ? { ...block, fields: [...(block.fields as [])] } : block));
    plc.download({ ...declaration, ...(blocks && { blocks }) }, { onlyChanges: true });
    expect(names(await session.confirm?.(ready, 1000, context()))).toEqual([
      [[0, 1], "the block Types was changed in the PLC after its variables were looked up"],
    ]);
    expect(session.epoch).not.toBe(epoch);
    const again = await prepare(session, TEXTS);
    expect(names(await session.confirm?.(again.ready, 1000, context()))).toEqual([]);
    expect(plc.violations).toEqual([]);
  });

  it("has one block behind a readout where no more have room, the oldest first, and says how old the oldest look is", async () => {
    const plc = await filled(4000);
    const session = await open(plc);
    const { ready } = await prepare(
      session,
      [1, 2, 3, 4].flatMap((block) => values(1, block)),
    );
    plc.resetCounts();
    const ages: number[] = [];
    for (let i = 0; i < 5; i++) ages.push((await session.confirm?.(ready, 0, context()))?.ageMs ?? -1);
    const asked = plc.lastRequests.map(({ object }) => object);
    expect(new Set(asked.slice(0, 4)).size).toBe(4);
    expect(asked[4]).toBe(asked[0]);
    expect(Math.min(...ages)).toBeGreaterThan(0);
    plc.download(undefined, { ids: "turned" });
    const found = await session.confirm?.(ready, 0, context());
    expect(found?.doubtful.map(({ points, detail }) => [points.length, detail.slice(0, 12)])).toEqual([
      [1, "the block Bl"],
      ...[1, 2, 3].map(() => [1, "other blocks"]),
    ]);
  });

  it.each([
    ["refuses to tell of a single block", { code: -32 }, /^the PLC does not tell of single blocks/],
    ["knows no single block by its id", { code: -12 }, /^the PLC does not tell of single blocks/],
    ["ends the connection over it", { hangUp: "rst" }, undefined],
  ] as const)("is left out for a while where a CPU %s", async (_, odd, words) => {
    const plc = await simulated();
    const device = deviceMemory();
    const session = await open(plc, { ctx: context({ device }) });
    const { ready } = await prepare(session, TEXTS);
    const { epoch } = session;
    plc.misbehave = ({ name, object }) => (name === "explore" && object === 0x8a0e0001 ? odd : undefined);
    const look = async () => session.confirm?.(ready, 1000, context());
    if (words) expect(await look()).toEqual({ doubtful: [], ageMs: undefined });
    else expect(await refusalOf(look())).toMatch(/^CONNECTION_RESET/);
    const next = words ? session : await open(plc, { ctx: context({ device }) });
    plc.resetCounts();
    expect(await next.confirm?.(ready, 1000, context())).toEqual({ doubtful: [], ageMs: undefined });
    expect(plc.lastRequests).toEqual([]);
    expect(codesOf(next.warnings?.())).toContain("program_list_unreadable");
    expect(textsOf(next.warnings?.())).toEqual([expect.stringMatching(words ?? /^the PLC does not tell of single blocks/)]);
    expect(next.epoch).toBe(epoch);
  });

  it("does not believe blocks that were changed at each look, and nothing is asked with program_check 0", async () => {
    const plc = await simulated();
    const session = await open(plc);
    const changes: number[] = [];
    for (let i = 0; i < 6; i++) {
      const { ready } = await prepare(session, TEXTS);
      plc.download();
      changes.push((await session.confirm?.(ready, 1000, context()))?.doubtful.length ?? -1);
    }
    expect(changes).toEqual([2, 2, 2, 2, 0, 0]);
    expect(textsOf(session.warnings?.())).toEqual([expect.stringContaining("say at each look that they were changed")]);
    const unasked = await open(plc, { local: { program_check: 0 } });
    const { ready } = await prepare(unasked, TEXTS);
    plc.resetCounts();
    expect(await unasked.confirm?.(ready, 1000, context())).toEqual({ doubtful: [], ageMs: undefined });
    expect([plc.lastRequests, unasked.warnings?.()]).toEqual([[], []]);
  });
});

describe("browsing", () => {
  const all = async (session: AnySession, ctx = context()): Promise<Discovered[]> => {
    const found: Discovered[] = [];
    for await (const one of session.discover?.(ctx) ?? []) found.push(one);
    return found;
  };

  it("offers what can be read, under addresses that read it", async () => {
    const plc = await simulated();
    const session = await open(plc);
    const found = await all(session);
    const variables = found.filter(({ type }) => type !== undefined);
    expect(variables.length).toBeGreaterThan(120);
    expect(new Set(found.map(({ address }) => address)).size).toBe(found.length);
    expect(found.map(({ path }) => path?.length ?? 0)).toEqual(found.map(({ path }) => path?.length ?? 0).toSorted((a, b) => a - b));
    const { ready, refused } = await prepare(
      session,
      variables.map(({ address }) => address),
    );
    expect(refused).toEqual([]);
    expect(ready.map(({ type }) => type)).toEqual(expect.arrayContaining(variables.map(({ type }) => type)));
    // With the types as browse --csv writes them, the same.
    const typed = await prepare(
      session,
      variables.map(({ address, type }) => `${address}:${type && formatDataType(type)}`),
    );
    expect(typed.refused).toEqual([]);
    const read = await readReady(session, ready);
    expect(await readReady(session, typed.ready)).toEqual(read);
    expect(read.filter((value) => typeof value === "string" && /^[a-z_]+: /.test(value))).toEqual([
      expect.stringMatching(/^access_denied: Motor_DB\.secret/),
    ]);
    await session.close();
    await expectOrderly(plc);
  });

  it("of 20,000 variables takes few seconds, tells how far it is, and ends when it is stopped", async () => {
    const plc = await filled(20_000);
    const session = await open(plc);
    const seen: number[] = [];
    const began = performance.now();
    const found = await all(session, context({ progress: (done) => seen.push(done) }));
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(found.filter(({ type }) => type !== undefined)).toHaveLength(20_000);
    expect(seen.length).toBeGreaterThan(19);
    const stop = new AbortController();
    const second = await open(plc);
    const stopped = (async () => {
      for await (const _ of second.discover?.(context({ signal: stop.signal })) ?? []) stop.abort();
    })();
    expect(await refusalOf(stopped)).toMatch(/^TIMEOUT/);
  });
});
