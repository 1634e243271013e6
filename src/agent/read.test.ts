import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AnyDriver, AnySession, DriverContext, Point, Request } from "../../drivers/driver.ts";
import { silentLog } from "../model/context.ts";
import { FaultError } from "../model/fault.ts";
import { ReasonError } from "../model/reason.ts";
import { createGroupMemory, readAll } from "./read.ts";

/** A device of numbered cells: a read of a span is refused where it touches a missing cell. Points are one cell each, joined over any gap. */
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
