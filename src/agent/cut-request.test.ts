import { describe, expect, it } from "vitest";
import { Cells, FULL_TIMEOUT_MS } from "./testing/cells.ts";

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, cell) => cell);

/** Quality of the first cell of each of four requests, readout by readout: g good, b bad, . without a reading. */
async function played(cells: Cells, readouts: number): Promise<readonly string[]> {
  const seen: string[] = [];
  for (let n = 0; n < readouts; n++) {
    const { readings, failure } = await cells.tick();
    expect(failure).toBeUndefined();
    seen.push([0, 10, 20, 30].map((index) => ({ good: "g", uncertain: "u", bad: "b" })[readings[index]?.quality ?? "bad"]).join(""));
  }
  return seen;
}

describe("a request that the deadline of the readout cuts off", () => {
  it("comes first in the next readout: answers of 2.7 s leave no request without values", async () => {
    const cells = new Cells(range(40), { answerMs: 2700, intervalMs: 1000 });
    const seen = await played(cells, 8);
    for (const place of [0, 1, 2, 3]) expect(seen.filter((line) => line[place] === "g").length, seen.join(" ")).toBeGreaterThanOrEqual(5);
  });

  it("is not called silent: its variables say that the time was up, and the readout counts them", async () => {
    const cells = new Cells(range(40), { answerMs: 2700, intervalMs: 1000 });
    const { readings, unreached } = await cells.tick();
    expect(unreached).toBe(10);
    expect(readings[35]).toMatchObject({ fault: "no_answer", detail: expect.stringContaining("the next readout continues here") });
  });

  it("is called silent where it stays without an answer for its whole time", async () => {
    const cells = new Cells(range(40), { answerMs: 2700, intervalMs: 1000 });
    cells.faults.set(35, "silent");
    for (let n = 0; n < 12; n++) await cells.tick();
    const { readings } = await cells.tick();
    expect(FULL_TIMEOUT_MS).toBeGreaterThan(2700);
    expect(readings[35]).toMatchObject({ fault: "no_answer", detail: expect.stringContaining("TIMEOUT") });
    const seen = await played(cells, 12);
    for (const place of [0, 1, 2]) expect(seen.filter((line) => line[place] === "g").length, seen.join(" ")).toBeGreaterThanOrEqual(6);
  });
});
