import { afterEach, describe, expect, it } from "vitest";
import { Gate } from "../../simulators/gate.ts";
import { DeviceHabits } from "../../src/agent/device-habits.ts";
import { DeviceMemories } from "../../src/agent/device-memory.ts";
import { Habits } from "../../src/agent/habits.ts";
import { LearnedGroups } from "../../src/agent/learned-groups.ts";
import { readOnce } from "../../src/agent/read.ts";
import type { PassOptions } from "../../src/agent/read-pass.ts";
import { type Log, silentLog } from "../../src/model/context.ts";
import type { SimulatedFault } from "../../src/model/simulation.ts";
import type { AnyDriver, AnySession, DriverContext } from "../driver.ts";
import modbus from "./driver.ts";
import { startModbusPlant } from "./simulator.ts";

const driver = modbus as unknown as AnyDriver;
const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const ANSWER_MS = 150;
const DAY_MS = 86_400_000;
const REGISTERS = [0, 1000, 2000, 3000];

interface Scene {
  readonly faults?: readonly SimulatedFault[];
  readonly keepsConnection?: boolean;
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly registers?: readonly number[];
  readonly maxRegisters?: number;
  /** Each answer has the next number. */
  readonly counts?: boolean;
  /** It loses what comes before the answer to a request. */
  readonly takesOne?: boolean;
  /** Habits that were learned before. */
  readonly known?: ReadonlyMap<string, unknown>;
}

/** A source at a device behind a gate with these faults, read again and again as the agent does. */
async function source({
  faults = [],
  keepsConnection = true,
  settings: set = {},
  registers = REGISTERS,
  maxRegisters,
  takesOne,
  counts,
  known: knownBefore,
}: Scene) {
  const holding = new Map(registers.map((address) => [address, address]));
  const taking = { isOne: takesOne === true };
  let count = 0;
  const counted = (answer: Buffer): Buffer => {
    answer.writeUInt16BE(++count, answer.length - 2);
    return answer;
  };
  const misbehave = counts === true ? { misbehave: () => ({ change: counted }) } : {};
  const more = { ...misbehave, ...(maxRegisters !== undefined && { maxRegisters }), oneAtATimeMs: () => (taking.isOne ? 5 : undefined) };
  const plant = await startModbusPlant({ units: new Map([[1, { holding }]]), ...more });
  cleanUp.push(() => plant.close());
  const gate = await Gate.start({ host: "127.0.0.1", port: 0, devicePort: plant.port, hasUdp: false });
  cleanUp.push(() => gate.close());
  await gate.plant(faults);
  const settings = driver.settings.parse(set);
  const points = registers.map((address, index) => ({ index, ...driver.parseAddress(`holding:${address}`, undefined, settings) }));
  const said: string[] = [];
  const say = (_: object, words: string): void => void said.push(words);
  const log: Log = { ...silentLog, info: say, warn: say };
  const kept = new Map<string, unknown>(knownBefore);
  let epochMs = Date.parse("2026-03-01T10:00:00Z");
  const keptOf = { values: Object.fromEntries(kept), set: (key: string, value: unknown) => void kept.set(key, value) };
  const habits = new Habits(
    { driver, settings, keepMs: 30 * DAY_MS, log, place: "", epochMs: () => epochMs },
    new DeviceHabits(keptOf, () => epochMs),
  );
  const learned = new LearnedGroups(points, points.length, habits);
  const device = new DeviceMemories().of("plant");
  const ctx = (): DriverContext => ({
    signal: AbortSignal.timeout(10_000),
    log,
    timeouts: { nameMs: 1000, connectMs: 1000, answerMs: ANSWER_MS },
    device,
    habit: (name, holds) => (holds ? habits.learn(name, undefined) : habits.forget(name, undefined)),
  });
  const details = driver.details.parse({ type: "modbus_tcp", host: "127.0.0.1", port: gate.port });
  let session: AnySession | undefined;
  cleanUp.push(() => session?.close());
  const connect = (readCtx: DriverContext) => driver.connect({ details, settings: habits.settings(points), secrets: {} }, readCtx);
  const limitsOf = ({ limits }: AnySession) => habits.limits(limits, points);
  let values: readonly unknown[] = [];
  const read = async (options: PassOptions = {}): Promise<string> => {
    const readCtx = ctx();
    const passOptions = { intervalMs: 1000, ...options };
    const result = await readOnce({ driver, connect: () => connect(readCtx), limitsOf }, learned, session, readCtx, passOptions);
    session = result.session;
    values = points.map(({ index }) => result.readings[index]).map((one) => (one?.quality === "good" ? one.value : undefined));
    if (!keepsConnection) {
      await session?.close();
      session = undefined;
    }
    return points.map(({ index }) => (result.readings[index]?.quality === "good" ? "g" : "b")).join("");
  };
  const nextDay = (): void => {
    epochMs += DAY_MS + 1000;
  };
  const names = () => habits.list(points).map(({ name }) => name);
  /** Each a second after the one before; they take no time, however busy the machine is. */
  const inSeconds = async (count: number): Promise<readonly string[]> => {
    const seen: string[] = [];
    for (let n = 0; n < count; n++) {
      epochMs += 1000;
      const atMs = performance.now();
      seen.push(await read({ now: () => atMs }));
    }
    return seen;
  };
  const known = () => habits.list(points).map(({ name, value }) => `${name} ${value}`);
  const atOnce = () => (session ? limitsOf(session).inFlight : undefined);
  return {
    values: () => values,
    answers: () => count,
    read,
    said,
    kept,
    gate,
    names,
    nextDay,
    inSeconds,
    known,
    atOnce,
    taking,
    requests: () => learned.plannedRequests,
  };
}

async function readouts(read: () => Promise<string>, count: number): Promise<readonly string[]> {
  const seen: string[] = [];
  for (let n = 0; n < count; n++) seen.push(await read());
  return seen;
}

const WHOLE = "gggg";

describe("a device with habits", () => {
  it("is read although it leaves the first request of each connection without an answer, and the log says so once", async () => {
    const { read, said, names } = await source({ faults: ["deaf"], keepsConnection: false });
    expect(await readouts(read, 4)).toEqual([WHOLE, WHOLE, WHOLE, WHOLE]);
    expect(said.filter((words) => words.includes("repeat_first: true"))).toHaveLength(1);
    expect(names()).toEqual(["deaf_at_first"]);
  });

  it("gets the pause between requests that it needs, and none of its registers is accused for long", async () => {
    const { read, said, names } = await source({ faults: ["hurried"] });
    const seen = await readouts(read, 16);
    expect(seen.slice(-3), seen.join(" ")).toEqual([WHOLE, WHOLE, WHOLE]);
    expect(said.filter((words) => words.includes("min_pause: 100"))).toHaveLength(1);
    expect(names()).toEqual(["pause"]);
  });

  it("gets one request at a time where it loses what comes before an answer", async () => {
    const { read, said, names } = await source({ takesOne: true, settings: { in_flight: 4 } });
    const seen = await readouts(read, 8);
    expect(seen.slice(-3), seen.join(" ")).toEqual([WHOLE, WHOLE, WHOLE]);
    expect(said.filter((words) => words.includes("in_flight: 1"))).toHaveLength(1);
    expect(names()).toEqual(["one_in_flight"]);
  });

  it("gets no requests over gaps where it refuses two of them, and each gap is cut in the same readout", async () => {
    const registers = Array.from({ length: 12 }, (_, i) => i * 3);
    const { read, said, names, requests } = await source({ registers });
    const seen = await readouts(read, 4);
    expect(seen.at(-1), seen.join(" ")).toBe("g".repeat(12));
    expect(said.filter((words) => words.includes("max_gap: 0"))).toHaveLength(1);
    expect(names()).toEqual(["no_gaps"]);
    expect(requests()).toBe(12);
  });

  it("gets shorter requests where it refuses long ones", async () => {
    const registers = Array.from({ length: 300 }, (_, i) => i);
    const { read, said, names, requests } = await source({ registers, maxRegisters: 60 });
    const seen = await readouts(read, 6);
    expect(seen.at(-1), seen.join(" ")).toBe("g".repeat(300));
    expect(said.filter((words) => words.includes("max_registers"))).toHaveLength(1);
    expect(names()).toEqual(["small_blocks"]);
    expect(requests()).toBeLessThanOrEqual(11);
  });

  it.each(["hurried", "deaf"] as const)("is known after a restart (%s)", async (fault) => {
    const before = await source({ faults: [fault], keepsConnection: fault === "hurried" });
    await readouts(before.read, 12);
    const after = await source({ faults: [fault], keepsConnection: fault === "hurried", known: before.kept });
    expect(await readouts(after.read, 2)).toEqual([WHOLE, WHOLE]);
    expect(after.said).toEqual([]);
  });

  it("is forgotten where the device shows that it has it no more, a request a day", async () => {
    const { read, names, gate, nextDay, said } = await source({ faults: ["hurried"] });
    await readouts(read, 12);
    nextDay();
    expect(await readouts(read, 2)).toEqual([WHOLE, WHOLE]);
    expect(names()).toEqual(["pause"]);
    await gate.plant([]);
    nextDay();
    await readouts(read, 3);
    expect(names()).toEqual([]);
    expect(said.at(-1)).toContain("does not need it any more");
  });

  it("is forgotten where it was not seen for the time that is set", async () => {
    const { read, names, nextDay } = await source({ takesOne: true, settings: { in_flight: 4 } });
    await readouts(read, 8);
    for (let day = 0; day < 31; day++) nextDay();
    expect(names()).toEqual([]);
  });

  it("is sent several requests at once where it was seen to answer them as it does one after the other, and after a restart at once", async () => {
    const { inSeconds, known, atOnce, said, kept } = await source({});
    await inSeconds(10);
    expect(known()).toEqual([]);
    await inSeconds(8);
    expect(known()).toEqual(["several_in_flight 4"]);
    expect(atOnce()).toBe(4);
    expect(said.at(-1)).toContain("in_flight: 4");
    const after = await source({ known: kept });
    expect(await after.inSeconds(2)).toEqual([WHOLE, WHOLE]);
    expect([after.known(), after.atOnce()]).toEqual([["several_in_flight 4"], 4]);
  });

  it("is never sent more where it loses some of them when it is tried, and no value is missing", async () => {
    const { inSeconds, known, atOnce } = await source({ takesOne: true });
    const seen = await inSeconds(20);
    expect(new Set(seen)).toEqual(new Set([WHOLE]));
    expect([known(), atOnce()]).toEqual([["several_in_flight 1"], 1]);
  });

  it("is sent one at a time from the first one that it loses, and is tried again after a minute", async () => {
    const { inSeconds, known, atOnce, taking } = await source({});
    await inSeconds(20);
    expect(atOnce()).toBe(4);
    taking.isOne = true;
    const seen = await inSeconds(1);
    expect([known(), atOnce()]).toEqual([["several_in_flight 1"], 1]);
    expect(seen).toEqual([WHOLE]);
    taking.isOne = false;
    await inSeconds(55);
    expect(atOnce()).toBe(1);
    await inSeconds(25);
    expect(atOnce()).toBe(4);
  });

  it("has the values of its readout, and not those of the requests that are tried after it", async () => {
    const { inSeconds, values, answers } = await source({ counts: true });
    let tried = 0;
    for (let n = 0; n < 20; n++) {
      const before = answers();
      await inSeconds(1);
      expect(values()).toEqual([1, 2, 3, 4].map((nth) => before + nth));
      if (answers() > before + 4) tried++;
    }
    expect(tried).toBeGreaterThan(5);
  });

  it("is not tried where it may have registers that are cleared by reading", async () => {
    const { inSeconds, answers } = await source({ counts: true, settings: { max_gap: 0 } });
    await inSeconds(20);
    expect(answers()).toBe(80);
  });

  it("is sent as many as the settings say, whatever was learned, and not tried with others", async () => {
    const before = await source({ takesOne: true });
    await before.inSeconds(15);
    const { inSeconds, known, atOnce } = await source({ settings: { in_flight: 2 }, known: before.kept });
    await inSeconds(20);
    expect([known(), atOnce()]).toEqual([[], 2]);
  });

  it("needs nothing of it where it answers as others do", async () => {
    for (const inFlight of [1, 4]) {
      const { read, said } = await source({ settings: { in_flight: inFlight } });
      expect(await readouts(read, 3)).toEqual([WHOLE, WHOLE, WHOLE]);
      expect(said).toEqual([]);
    }
  });
});
