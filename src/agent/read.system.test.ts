import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CellFault, Cells, type CellsOptions, goodOf, range } from "./testing/cells.ts";

const MAX_EXTRAS = 20;
const LOSSES: readonly CellFault[] = ["silent", "fin", "rst", "malformed", "gateway"];

async function ticks(cells: Cells, n: number): Promise<void> {
  for (let i = 0; i < n; i++) await cells.tick();
}

/** Requests of the next readout. */
async function requestsOf(cells: Cells): Promise<number> {
  const before = cells.asked.length;
  await cells.tick();
  return cells.asked.length - before;
}

describe("readOnce", () => {
  it("reads every cell that is there and faults every one that is not, whichever are missing", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.nat(40), { minLength: 1, maxLength: 30 }),
        fc.uniqueArray(fc.nat(40), { maxLength: 4 }),
        async (asked, missing) => {
          const cells = new Cells(asked, { perRequest: 40, gap: 40 });
          for (const cell of missing) cells.faults.set(cell, "missing");
          // Four holes take more requests than one readout has for searching.
          await ticks(cells, 2);
          for (let round = 0; round < 3; round++) {
            const { readings, failure } = await cells.tick();
            expect(failure).toBeUndefined();
            asked.forEach((cell, i) => {
              expect(readings[i]).toMatchObject(
                missing.includes(cell) ? { quality: "bad", fault: "not_found" } : { quality: "good", value: cell },
              );
            });
          }
        },
      ),
    );
  });

  it("remembers a missing point: one request beside it, and one that looks whether it is back", async () => {
    const cells = new Cells(range(40), { perRequest: 40 });
    cells.faults.set(20, "missing");
    expect(goodOf(await cells.tick())).toBe(39);
    await ticks(cells, 2);
    expect(await requestsOf(cells)).toBe(3);
  });

  it("remembers a hole that no point asks for: one cut", async () => {
    const cells = new Cells(
      range(40).filter((cell) => cell !== 20),
      { perRequest: 40 },
    );
    cells.faults.set(20, "missing");
    expect(goodOf(await cells.tick())).toBe(39);
    await ticks(cells, 2);
    const before = cells.asked.length;
    expect(goodOf(await cells.tick())).toBe(39);
    expect(cells.asked.length - before).toBeLessThanOrEqual(3);
    expect(cells.learned.known.cuts.size).toBe(1);
  });

  it("asks only the refused item of a request again", async () => {
    const cells = new Cells([...range(8), ...range(8, 100), ...range(8, 200)], { hasItems: true });
    cells.faults.set(104, "missing");
    const read = await cells.tick();
    expect(goodOf(read)).toBe(23);
    for (const asked of cells.asked.slice(1)) expect(asked.every((cell) => cell >= 100 && cell < 108)).toBe(true);
    await ticks(cells, 2);
    // The item stands in the same request, in two runs.
    expect(await requestsOf(cells)).toBeLessThanOrEqual(2);
  });

  it("knows every refused item of a request at once: none is asked whole again to be found", async () => {
    const firsts = [0, 100, 200, 300];
    const runs = firsts.map((first) => range(8, first));
    const cells = new Cells(runs.flat(), { perRequest: 8, hasItems: true });
    for (const cell of [3, 104, 305]) cells.faults.set(cell, "missing");
    expect(goodOf(await cells.tick())).toBe(29);
    const [whole, ...searched] = cells.asked;
    expect(whole).toEqual(runs.flat());
    for (const run of runs) expect(searched.filter((asked) => run.every((cell) => asked.includes(cell)))).toEqual([]);
  });

  it("takes a refusal of everything for what it is: one request, its words for all, and all at once when it ends", async () => {
    const cells = new Cells(range(50));
    expect(goodOf(await cells.tick())).toBe(50);
    cells.everything = "forbidden";
    const { readings, definite } = await cells.tick();
    expect(definite).toBe(true);
    expect(readings.every((reading) => reading?.quality === "bad" && reading.fault === "access_denied")).toBe(true);
    expect(await requestsOf(cells)).toBe(1);
    cells.everything = undefined;
    expect(goodOf(await cells.tick())).toBe(50);
  });

  it("says when the deadline came before all was asked, and goes on there in the next readout", async () => {
    const cells = new Cells(range(100), { answerMs: 1500, intervalMs: 1000 });
    const first = await cells.tick();
    expect(first.unreached).toBeGreaterThan(0);
    expect(first.failure).toBeUndefined();
    const second = await cells.tick();
    for (const point of cells.points)
      expect([first.readings[point.index]?.quality, second.readings[point.index]?.quality]).toContain("good");
  });

  it("never has more requests under way than the limit", async () => {
    const cells = new Cells(range(80), { inFlight: 3 });
    await cells.tick();
    expect(cells.mostInFlight).toBe(3);
  });

  it("does not halve for a device that is busy, and asks all of it the next time", async () => {
    const cells = new Cells(range(20));
    cells.faults.set(3, "busy");
    const { definite } = await cells.tick();
    expect(definite).toBe(false);
    // Twice more, after a pause, as it was planned.
    expect(cells.asked).toHaveLength(4);
    cells.faults.clear();
    expect(goodOf(await cells.tick())).toBe(20);
    expect(cells.asked).toHaveLength(6);
  });

  it.each([
    ["is busy with one address alone, for ever", "busy", 0, 5],
    ["is busy with one address alone, the last one, for ever", "busy", 39, 5],
    ["refuses one request with words that are about everything", "forbidden", 0, 4],
    ["refuses one request with words that are about everything, the last one", "forbidden", 39, 4],
  ] as const)("reads all others of a device that %s", async (_, fault, at, within) => {
    const cells = new Cells(range(40), { intervalMs: 60_000 });
    await ticks(cells, 2);
    const fresh = await requestsOf(cells);
    cells.faults.set(at, fault);
    for (let n = 0; n < within; n++) expect(await requestsOf(cells)).toBeLessThanOrEqual(fresh + MAX_EXTRAS);
    for (let n = 0; n < 5; n++) expect(goodOf(await cells.tick())).toBe(39);
    expect(await requestsOf(cells)).toBeLessThanOrEqual(fresh + 3);
    cells.faults.clear();
    await ticks(cells, 2);
    expect(goodOf(await cells.tick())).toBe(40);
    expect(await requestsOf(cells)).toBe(fresh);
  });

  it("waits for a device that is busy with everything", async () => {
    const cells = new Cells(range(40), { intervalMs: 60_000 });
    await ticks(cells, 2);
    const fresh = await requestsOf(cells);
    for (const at of range(40)) cells.faults.set(at, "busy");
    // It may be busy for a moment: two asks more, once.
    expect(await requestsOf(cells)).toBe(fresh + 2);
    for (let n = 0; n < 10; n++) expect(await requestsOf(cells)).toBe(fresh);
    cells.faults.clear();
    expect(goodOf(await cells.tick())).toBe(40);
    expect(await requestsOf(cells)).toBe(fresh);
  });
});

describe("a spell of refusals", () => {
  it.each([1, 4, 30, 500, 1000, 10_000])("of everything heals at once: %i points", async (n) => {
    const cells = new Cells(range(n), { perRequest: 125, intervalMs: 1000 });
    await cells.tick();
    const fresh = await requestsOf(cells);
    for (const length of [1, 2, 5, 40]) {
      cells.everything = "missing";
      for (let i = 0; i < length; i++) expect(await requestsOf(cells)).toBeLessThanOrEqual(fresh + MAX_EXTRAS);
      cells.everything = undefined;
      await ticks(cells, 2);
      const before = cells.asked.length;
      expect(goodOf(await cells.tick())).toBe(n);
      expect(cells.asked.length - before).toBe(fresh);
    }
  });

  it("is probed with one request a readout once it is known", async () => {
    const cells = new Cells(range(1000), { perRequest: 125, intervalMs: 1000 });
    await cells.tick();
    cells.everything = "missing";
    await ticks(cells, 4);
    expect(await requestsOf(cells)).toBeLessThanOrEqual(1);
  });

  it("of some areas heals within three readouts, whatever the rest does", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 2, max: 40 }).chain((groups) => fc.tuple(fc.constant(groups), fc.subarray([...range(groups)], { minLength: 1 }))),
        fc.integer({ min: 1, max: 60 }),
        async ([groups, bad], length) => {
          const cells = new Cells(range(groups * 50), { perRequest: 50, intervalMs: 1000 });
          await cells.tick();
          for (const group of bad) for (const cell of range(50, group * 50)) cells.faults.set(cell, "missing");
          for (let i = 0; i < length; i++) expect(await requestsOf(cells)).toBeLessThanOrEqual(groups + MAX_EXTRAS);
          cells.faults.clear();
          await ticks(cells, 2);
          const before = cells.asked.length;
          expect(goodOf(await cells.tick())).toBe(groups * 50);
          expect(cells.asked.length - before).toBe(groups);
        },
      ),
      { numRuns: 30 },
    );
  });
});

describe("an address without an answer", () => {
  it.each(LOSSES)("(%s) costs itself, wherever it is in the plan", async (fault) => {
    for (const at of [0, 7, 55, 99]) {
      const cells = new Cells(range(100), { unit: 1000 });
      await cells.tick();
      cells.faults.set(at, fault);
      await ticks(cells, 2);
      const read = await cells.tick();
      expect([at, goodOf(read)]).toEqual([at, 99]);
      expect(read.failure).toBeUndefined();
      expect(read.readings[at]).toMatchObject({ quality: "bad", fault: "no_answer" });
    }
  });

  it.each(LOSSES)("(%s) of a unit among others leaves the unit's other addresses alone", async (fault) => {
    const cells = new Cells(range(100), { unit: 20 });
    await cells.tick();
    cells.faults.set(45, fault);
    await ticks(cells, 3);
    expect(goodOf(await cells.tick())).toBe(99);
  });

  it("is read over as many connections as a device wants that closes after each answer", async () => {
    for (const answersPerConnection of [1, 2, 3]) {
      const cells = new Cells(range(100), { answersPerConnection });
      const first = await cells.tick();
      expect(goodOf(first)).toBe(100);
      expect(first.requests).toBeLessThanOrEqual(10 + MAX_EXTRAS);
      const second = await cells.tick();
      expect(goodOf(second)).toBe(100);
      expect(second.requests).toBeLessThanOrEqual(12);
    }
  });
});

describe("half of the requests without an answer, more than a readout has time for", () => {
  /** Readouts until one has all that is well. */
  async function readoutsUntilGood(cells: Cells, wanted: number): Promise<number> {
    for (let readout = 1; readout <= 60; readout++) if (goodOf(await cells.tick()) >= wanted) return readout;
    return Number.POSITIVE_INFINITY;
  }
  const silent = (from: number) => {
    const cells = new Cells(range(60), { perRequest: 1, gap: 0, intervalMs: 1000 });
    for (const cell of range(30, from)) cells.faults.set(cell, "silent");
    return cells;
  };

  it.each([0, 15, 30])("(from %i) the others are read, also from a fresh start", async (from) => {
    expect(await readoutsUntilGood(silent(from), 25)).toBeLessThanOrEqual(15);
  });

  it("the others are read after the device was off at the start", async () => {
    const cells = silent(0);
    cells.everything = "silent";
    await ticks(cells, 2);
    cells.everything = undefined;
    expect(await readoutsUntilGood(cells, 25)).toBeLessThanOrEqual(20);
  });

  it("after a readout without any answer, what had a value is asked first, and then by turns with others", async () => {
    const cells = new Cells(range(60), { perRequest: 1, gap: 0 });
    await cells.tick();
    cells.everything = "silent";
    await cells.tick();
    const before = cells.asked.length;
    await ticks(cells, 6);
    const probes = cells.asked.slice(before).flat();
    expect(probes).toEqual([0, 0, 0, 37, 0, 14]);
  });
});

describe("several misbehaving requests", () => {
  const kinds = fc.constantFrom<CellFault>("missing", ...LOSSES);
  const options: fc.Arbitrary<CellsOptions> = fc.record(
    { perRequest: fc.constantFrom(5, 20, 125), inFlight: fc.constantFrom(1, 4), unit: fc.constantFrom(1000, 100) },
    { requiredKeys: ["perRequest"] },
  );
  const scenario = fc.record({
    n: fc.integer({ min: 2, max: 400 }),
    faults: fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), kinds), { minLength: 1, maxLength: 4 }),
    readouts: fc.integer({ min: 1, max: 30 }),
    options,
  });

  it("never leave a good variable without a reading for long, and heal within three readouts", async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async ({ n, faults, readouts, options: more }) => {
        const intervalMs = 60_000;
        const cells = new Cells(range(n), { ...more, intervalMs });
        await cells.tick();
        const fresh = await requestsOf(cells);
        for (const [at, kind] of faults) cells.faults.set(Math.floor(at * n), kind);
        const lastGood = new Map(cells.points.map(({ index }) => [index, cells.nowMs]));
        for (let i = 0; i < readouts; i++) {
          const before = cells.asked.length;
          const { readings } = await cells.tick();
          expect(cells.asked.length - before).toBeLessThanOrEqual(fresh + MAX_EXTRAS);
          for (const { index } of cells.points) {
            if (cells.faults.has(index)) continue;
            if (readings[index]?.quality === "good") lastGood.set(index, cells.nowMs);
            expect(cells.nowMs - (lastGood.get(index) ?? 0), `cell ${index} in readout ${i}`).toBeLessThanOrEqual(2 * intervalMs + 3000);
          }
        }
        cells.faults.clear();
        await ticks(cells, 2);
        const before = cells.asked.length;
        expect(goodOf(await cells.tick())).toBe(n);
        expect(cells.asked.length - before).toBe(fresh);
      }),
      { numRuns: 150 },
    );
  }, 60_000);
});
