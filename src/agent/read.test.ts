import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AnyDriver, AnySession, DriverContext, Point, Request } from "../../drivers/driver.ts";
import { silentLog } from "../model/context.ts";
import { FaultError } from "../model/fault.ts";
import { ReasonError } from "../model/reason.ts";
import { demote, forget, MAX_LONE_ASKED } from "./memory.ts";
import { createGroupMemory, readAll } from "./read.ts";

/**
 * A device of numbered cells: a read of a span is refused where it touches a missing cell. Points are one cell each, joined over any gap.
 */
function device(missing: ReadonlySet<number>, options: { readonly failAfter?: number; readonly inFlight?: number } = {}) {
  let requests = 0;
  let underWay = 0;
  let most = 0;
  const driver = {
    plan: (points: readonly Point[]): Request[] =>
      points.length === 0 ? [] : [{ points: [...points].sort((a, b) => Number(a.address) - Number(b.address)) }],
  } as unknown as AnyDriver;
  const session = {
    limits: { maxPoints: 1000, maxBytes: 1000, inFlight: options.inFlight ?? 1 },
    async read(request: Request) {
      requests++;
      most = Math.max(most, ++underWay);
      await Promise.resolve();
      underWay--;
      if (requests > (options.failAfter ?? Number.POSITIVE_INFINITY)) throw new ReasonError("CONNECTION_RESET", "reset");
      const cells = request.points.map((p) => Number(p.address));
      for (let cell = Math.min(...cells); cell <= Math.max(...cells); cell++)
        if (missing.has(cell)) throw new FaultError("not_found", `no cell ${cell}`);
      return request.points.map((p) => ({ quality: "good" as const, value: Number(p.address) }));
    },
  } as unknown as AnySession;
  return { driver, session, requests: () => requests, most: () => most };
}

const points = (cells: readonly number[]): Point[] => cells.map((address, index) => ({ index, address, type: { scalar: "uint16" } }));
const ctx = (signal = new AbortController().signal): DriverContext => ({
  signal,
  log: silentLog,
  timeouts: { nameMs: 1, connectMs: 1, answerMs: 1 },
});
const cells = fc.uniqueArray(fc.nat(40), { minLength: 1, maxLength: 30 });

describe("readAll", () => {
  it("reads every cell that is there and faults every one that is not, whichever are missing", async () => {
    await fc.assert(
      fc.asyncProperty(cells, fc.uniqueArray(fc.nat(40), { maxLength: 6 }), async (asked, missing) => {
        const gone = new Set(missing);
        const { driver, session } = device(gone);
        const memory = createGroupMemory(points(asked));
        for (let round = 0; round < 3; round++) {
          const { readings, failure } = await readAll(driver, session, memory, ctx());
          expect(failure).toBeUndefined();
          asked.forEach((cell, i) => {
            expect(readings[i]).toMatchObject(gone.has(cell) ? { quality: "bad", fault: "not_found" } : { quality: "good", value: cell });
          });
        }
      }),
    );
  });

  it("remembers a missing point: two requests beside it from the next readouts on", async () => {
    const { driver, session, requests } = device(new Set([20]));
    const memory = createGroupMemory(points(Array.from({ length: 40 }, (_, i) => i)));
    await readAll(driver, session, memory, ctx());
    const before = requests();
    await readAll(driver, session, memory, ctx());
    expect(requests() - before).toBe(3);
  });

  it("remembers a hole that no point asks for: one cut", async () => {
    const { driver, session, requests } = device(new Set([20]));
    const memory = createGroupMemory(points(Array.from({ length: 40 }, (_, i) => i).filter((i) => i !== 20)));
    for (let round = 0; round < 3; round++) await readAll(driver, session, memory, ctx());
    const before = requests();
    const { readings } = await readAll(driver, session, memory, ctx());
    expect(requests() - before).toBe(2);
    expect(readings.every((r) => r?.quality === "good")).toBe(true);
  });

  it("ends at a failure of the source and keeps what was answered before", async () => {
    const { driver, session } = device(new Set([2]), { failAfter: 2 });
    const { readings, failure } = await readAll(driver, session, createGroupMemory(points([0, 1, 2, 3])), ctx());
    expect(failure?.reason.type).toBe("CONNECTION_RESET");
    expect(readings.filter((r) => r !== undefined)).toHaveLength(2);
  });

  it("says when the deadline came between two requests", async () => {
    const stop = new AbortController();
    stop.abort();
    const { driver, session, requests } = device(new Set());
    expect(await readAll(driver, session, createGroupMemory(points([1])), ctx(stop.signal))).toMatchObject({
      ranOut: true,
      failure: undefined,
      readings: [],
    });
    expect(requests()).toBe(0);
  });

  it("never has more requests under way than the limit", async () => {
    const { driver, session, most } = device(new Set(), { inFlight: 3 });
    const memory = createGroupMemory([]);
    memory.groups = points([0, 1, 2, 3, 4, 5, 6, 7]).map((p) => [p]);
    await readAll(driver, session, memory, ctx());
    expect(most()).toBe(3);
  });
});

/** Units of ten cells each: cell 23 belongs to unit 2. Every unit's state can be changed while it runs. */
function units(states: Map<number, "busy" | "silent" | "dead">, missing = new Set<number>()) {
  const asked: number[][] = [];
  const limits = { maxPoints: 1000, maxBytes: 1000, inFlight: 1 };
  const unitOf = (p: Point) => Math.floor(Number(p.address) / 10);
  const driver = {
    plan: (list: readonly Point[]): Request[] =>
      [...Map.groupBy(list, unitOf)].sort(([a], [b]) => a - b).map(([unit, points]) => ({ points, part: `unit ${unit}` })),
  } as unknown as AnyDriver;
  const session = {
    limits,
    async read(request: Request) {
      asked.push(request.points.map((p) => Number(p.address)));
      await Promise.resolve();
      const state = states.get(unitOf(request.points[0] as Point));
      if (state === "dead") throw new ReasonError("TIMEOUT", "no answer");
      if (state === "busy") throw new FaultError("device_error", "busy", { scope: "busy" });
      if (state === "silent") throw new FaultError("no_answer", "exception 11", { scope: "silent" });
      if (request.points.some((p) => missing.has(Number(p.address)))) throw new FaultError("not_found", "no such cell");
      return request.points.map((p) => ({ quality: "good" as const, value: Number(p.address) }));
    },
  } as unknown as AnySession;
  return { driver, session, asked };
}
const tens = (...numbers: number[]) => points(numbers.flatMap((n) => Array.from({ length: 10 }, (_, i) => n * 10 + i)));

describe("a refusal that is not about what was asked", () => {
  it("is not halved when the device is busy: one request, its fault for all, and all of it again next time", async () => {
    const states = new Map<number, "busy">([[1, "busy"]]);
    const { driver, session, asked } = units(states);
    const memory = createGroupMemory(tens(1, 2));
    const { readings, definite } = await readAll(driver, session, memory, ctx());
    expect(asked).toHaveLength(2);
    expect(definite).toBe(false);
    expect(readings.slice(0, 10).every((r) => r?.quality === "bad" && r.fault === "device_error")).toBe(true);
    expect(readings.slice(10).every((r) => r?.quality === "good")).toBe(true);
    states.clear();
    expect((await readAll(driver, session, memory, ctx())).readings.every((r) => r?.quality === "good")).toBe(true);
    expect(asked).toHaveLength(4);
  });

  it("demotes a silent unit: one small request at growing intervals, and full reads as soon as it answers", async () => {
    const states = new Map<number, "silent">([[1, "silent"]]);
    const { driver, session, asked } = units(states);
    const memory = createGroupMemory(tens(1, 2));
    const toUnit1 = () => asked.filter((cells) => cells[0] === 10);
    let now = 0;
    for (now = 0; now < 60_000; now += 500) {
      const { readings } = await readAll(driver, session, memory, ctx(), { now: () => now });
      expect(readings.slice(0, 10).every((r) => r?.quality === "bad" && r.fault === "no_answer")).toBe(true);
      expect(readings.slice(10).every((r) => r?.quality === "good")).toBe(true);
    }
    // At 0 in full, then after 1, 2, 4, 8 and 16 and 32 s more.
    expect(toUnit1().map((cells) => cells.length)).toEqual([10, 1, 1, 1, 1, 1]);
    states.clear();
    now += 64_000;
    expect((await readAll(driver, session, memory, ctx(), { now: () => now })).readings.every((r) => r?.quality === "good")).toBe(true);
    expect(memory.silent.size).toBe(0);
  });

  it("takes a refused probe for an answer", async () => {
    const { driver, session } = units(new Map(), new Set([10]));
    const memory = createGroupMemory(tens(1, 2));
    demote(memory, "unit 1", { quality: "bad", fault: "no_answer" }, 0);
    const { readings } = await readAll(driver, session, memory, ctx(), { now: () => 2000 });
    expect(readings.map((r) => r?.quality)).toEqual(["bad", ...new Array(19).fill("good")]);
  });

  it("names the unit that was asked when the source failed", async () => {
    const { driver, session } = units(new Map([[2, "dead"]]));
    expect(await readAll(driver, session, createGroupMemory(tens(1, 2, 3)), ctx())).toMatchObject({ failedPart: "unit 2", parts: 3 });
  });
});

describe("what is refused for good", () => {
  it("is asked for three times, then every tenth readout, and keeps its fault between", async () => {
    const { driver, session, asked } = units(new Map(), new Set([13]));
    const memory = createGroupMemory(tens(1));
    for (let readout = 0; readout < 43; readout++) {
      const { readings } = await readAll(driver, session, memory, ctx(), { now: () => readout });
      expect(readings[3]).toMatchObject({ quality: "bad", fault: "not_found", detail: "no such cell" });
    }
    expect(asked.filter((cells) => cells.length === 1 && cells[0] === 13)).toHaveLength(3 + 4);
  });

  it("costs few requests however much of it there is", async () => {
    const { driver, session, asked } = units(new Map(), new Set(Array.from({ length: 500 }, (_, i) => i)));
    const memory = createGroupMemory(points(Array.from({ length: 510 }, (_, i) => i)));
    await readAll(driver, session, memory, ctx());
    for (let readout = 0; readout < 50; readout++) {
      const before = asked.length;
      await readAll(driver, session, memory, ctx(), { now: () => readout });
      expect(asked.length - before).toBeLessThanOrEqual(MAX_LONE_ASKED + 2);
    }
  });

  it("is read with its neighbours again once it answers, after few requests more", async () => {
    const missing = new Set([13]);
    const { driver, session, asked } = units(new Map(), missing);
    const memory = createGroupMemory(tens(1));
    await readAll(driver, session, memory, ctx());
    missing.clear();
    for (let readout = 0; readout < 6; readout++) await readAll(driver, session, memory, ctx());
    const before = asked.length;
    expect((await readAll(driver, session, memory, ctx())).readings.every((r) => r?.quality === "good")).toBe(true);
    expect(asked.length - before).toBe(1);
  });

  it("is looked for until its time is up, and further from there in the next readout", async () => {
    const { driver, session } = units(new Map(), new Set([13, 57]));
    const memory = createGroupMemory(points(Array.from({ length: 80 }, (_, i) => i).map((i) => i)));
    let now = 0;
    const bad = [];
    for (let readout = 0; readout < 12; readout++) {
      const until = now + 3;
      const { readings } = await readAll(driver, session, memory, ctx(), { now: () => now++ / 2, searchUntilMs: until / 2 });
      bad.push(readings.filter((r) => r?.quality === "bad").length);
      expect(readings.every((r) => r !== undefined)).toBe(true);
      now += 100;
    }
    expect(bad[0]).toBeGreaterThan(2);
    expect(bad.at(-1)).toBe(2);
  });

  it("is forgotten in the hourly joining too: a hole that is filled costs no second request for ever", async () => {
    const gone = new Set([20]);
    const { driver, session, requests } = device(gone);
    const memory = createGroupMemory(points(Array.from({ length: 40 }, (_, i) => i).filter((i) => i !== 20)));
    for (let round = 0; round < 3; round++) await readAll(driver, session, memory, ctx(), { now: () => 0 });
    expect(memory.groups).toHaveLength(2);
    gone.clear();
    for (let round = 0; round < 3; round++) await readAll(driver, session, memory, ctx(), { now: () => 3_600_001 });
    const before = requests();
    await readAll(driver, session, memory, ctx(), { now: () => 3_600_002 });
    expect(requests() - before).toBe(1);
  });

  it("is all forgotten when the device may be another one", async () => {
    const { driver, session } = device(new Set([2]));
    const memory = createGroupMemory(points([0, 1, 2, 3]));
    await readAll(driver, session, memory, ctx());
    forget(memory);
    expect([memory.groups.length, memory.lone.size, memory.silent.size]).toEqual([1, 0, 0]);
  });
});
