import { afterEach, describe, expect, it } from "vitest";
import { Gate } from "../../simulators/gate.ts";
import { DeviceMemories } from "../../src/agent/device-memory.ts";
import { LearnedGroups } from "../../src/agent/learned-groups.ts";
import { readOnce } from "../../src/agent/read.ts";
import { type Log, silentLog } from "../../src/model/context.ts";
import type { AnyDriver, AnySession, DriverContext } from "../driver.ts";
import modbus from "./driver.ts";
import { startModbusPlant } from "./simulator.ts";

const driver = modbus as unknown as AnyDriver;
const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const ANSWER_MS = 150;

/** A source of four requests at a device behind a gate with this fault, read again and again as the agent does. */
async function source(fault: "deaf" | "hurried", keepsConnection = true) {
  const holding = new Map([0, 1000, 2000, 3000].map((address) => [address, address]));
  const plant = await startModbusPlant({ units: new Map([[1, { holding }]]) });
  cleanUp.push(() => plant.close());
  const gate = await Gate.start({ host: "127.0.0.1", port: 0, devicePort: plant.port, hasUdp: false });
  cleanUp.push(() => gate.close());
  await gate.plant([fault]);
  const settings = driver.settings.parse({});
  const points = [...holding.keys()].map((address, index) => ({
    index,
    ...driver.parseAddress(`holding:${address}`, undefined, settings),
  }));
  const learned = new LearnedGroups(points, points.length);
  const said: string[] = [];
  const say = (_: object, words: string): void => void said.push(words);
  const log: Log = { ...silentLog, info: say, warn: say };
  const kept = new Map<string, unknown>();
  const device = new DeviceMemories().of("plant");
  const ctx = (): DriverContext => ({
    signal: AbortSignal.timeout(10_000),
    log,
    timeouts: { nameMs: 1000, connectMs: 1000, answerMs: ANSWER_MS },
    device,
    kept: { values: Object.fromEntries(kept), set: (key, value) => void kept.set(key, value) },
  });
  const details = driver.details.parse({ type: "modbus_tcp", host: "127.0.0.1", port: gate.port });
  let session: AnySession | undefined;
  cleanUp.push(() => session?.close());
  const connect = (readCtx: DriverContext) => driver.connect({ details, settings, secrets: {} }, readCtx);
  const read = async (): Promise<string> => {
    const readCtx = ctx();
    const result = await readOnce({ driver, connect: () => connect(readCtx) }, learned, session, readCtx, { intervalMs: 1000 });
    session = result.session;
    if (!keepsConnection) {
      await session?.close();
      session = undefined;
    }
    return points.map(({ index }) => (result.readings[index]?.quality === "good" ? "g" : "b")).join("");
  };
  return { read, said, kept, gate };
}

async function readouts(read: () => Promise<string>, count: number): Promise<readonly string[]> {
  const seen: string[] = [];
  for (let n = 0; n < count; n++) seen.push(await read());
  return seen;
}

describe("a device with habits", () => {
  it("is read although it leaves the first request of each connection without an answer, and the log says so once", async () => {
    const { read, said, kept } = await source("deaf", false);
    expect(await readouts(read, 4)).toEqual(["gggg", "gggg", "gggg", "gggg"]);
    expect(said.filter((words) => words.includes("first request"))).toHaveLength(1);
    expect(kept.get("first_request")).toBe("deaf");
  });

  it("gets the pause between requests that it needs, and none of its registers is accused for long", async () => {
    const { read, said, kept } = await source("hurried");
    const seen = await readouts(read, 12);
    expect(seen.slice(-3), seen.join(" ")).toEqual(["gggg", "gggg", "gggg"]);
    expect(said.filter((words) => words.includes("min_pause: 100"))).toHaveLength(1);
    expect(kept.get("hurry")).toBe(0);
  });

  it("needs nothing of it where it answers as others do", async () => {
    const { read, said, gate } = await source("deaf");
    await gate.plant([]);
    expect(await readouts(read, 3)).toEqual(["gggg", "gggg", "gggg"]);
    expect(said).toEqual([]);
  });
});
