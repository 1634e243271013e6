import { describe, expect, it } from "vitest";
import { type CellFault, Cells, goodOf, range } from "./testing/cells.ts";

/** So long `collector read` takes at most, unless it is told otherwise. */
const TIME_MS = 10_000;

/** Cells of the units or places that are named, with this fault. */
function fail(cells: Cells, places: readonly number[], fault: CellFault): Cells {
  for (const place of places) cells.faults.set(place, fault);
  return cells;
}

const detailsOf = ({ readings }: { readonly readings: readonly unknown[] }): string => JSON.stringify(readings);

describe("what a person reads once", () => {
  const units = (n: number) => new Cells(range(n), { unit: 1, isThorough: true });

  it.each([5, 9])("shows every unit that answers, with the first %i of twelve silent", async (silent) => {
    const cells = fail(units(12), range(silent), "silent");
    expect(goodOf(await cells.readout(TIME_MS))).toBe(12 - silent);
  });

  it("shows the others where the first and the last of them are silent", async () => {
    const cells = fail(units(12), [0, 11], "silent");
    expect(goodOf(await cells.readout(TIME_MS))).toBe(10);
  });

  it("waits for a unit that is slower than the others as long as it was told, at the end", async () => {
    const cells = fail(units(8), [0, 1], "silent");
    cells.slow.set(4, 2000);
    const read = await cells.readout(60_000);
    expect(goodOf(read)).toBe(6);
    expect(cells.asked.slice(-2).flat()).toEqual([1, 4]);
  });

  it("waits for a silent unit as long as any request, once", async () => {
    const cells = fail(units(4), [1, 2], "silent");
    const { readings } = await cells.readout(60_000);
    for (const place of [1, 2]) expect(readings[place]).toMatchObject({ detail: expect.stringContaining("no answer within 3000 ms") });
  });

  it.each(["fin", "rst", "malformed"] as const)(
    "reads what lies behind twenty requests in a row that end the connection: %s",
    async (fault) => {
      const ends = range(20).map((request) => 10 * (request + 5) + 3);
      const cells = fail(new Cells(range(400), { perRequest: 10, isThorough: true }), ends, fault);
      expect(goodOf(await cells.readout(TIME_MS))).toBe(380);
    },
  );

  // A controller that takes one connection may notice late that the last one has ended.
  it.each([[2], [2, 4, 6, 8], [7, 8, 9]])("goes on where new connections are not served: the ones of %j", async (...unserved) => {
    const cells = fail(new Cells(range(200), { perRequest: 13, isThorough: true, unserved }), [4, 30, 70], "fin");
    expect(goodOf(await cells.readout(60_000))).toBe(197);
  });

  it("speaks of no next readout where its time was too short", async () => {
    for (const fault of ["silent", "fin", "gateway"] as const)
      for (const timeMs of [3500, 5000, 7000]) {
        const many = fail(new Cells(range(400), { perRequest: 13, isThorough: true, answerMs: 100 }), [4, 30, 70, 100, 150], fault);
        expect(detailsOf(await many.readout(timeMs))).not.toMatch(/next/);
        expect(detailsOf(await fail(units(40), range(30), fault).readout(timeMs))).not.toMatch(/next/);
      }
  });

  it.each(["silent", "fin"] as const)("gives a device up that answers nothing any more, and says why: %s", async (fault) => {
    const cells = new Cells(range(2000), { perRequest: 10, isThorough: true });
    const answers = 50;
    cells.atAsk = (n) => {
      if (n > answers) cells.everything = fault;
    };
    const { givenUp, unreached } = await cells.readout(600_000);
    expect(unreached).toBeGreaterThan(0);
    expect(givenUp?.reason.type).toBe(fault === "silent" ? "TIMEOUT" : "CONNECTION_CLOSED");
    expect(cells.connects).toBeLessThan(20);
  });

  it("opens no more than a dozen connections to a device that answers nothing", async () => {
    const cells = new Cells(range(2000), { perRequest: 10, isThorough: true });
    cells.everything = "fin";
    const { failure } = await cells.readout(TIME_MS);
    expect([failure?.reason.type, cells.connects]).toEqual(["CONNECTION_CLOSED", 12]);
  });
});
