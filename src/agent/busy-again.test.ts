import { describe, expect, it } from "vitest";
import { Cells } from "./testing/cells.ts";

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, cell) => cell);
const isGood = (reading: { readonly quality: string } | undefined): boolean => reading?.quality === "good";

/** A device of two requests that is busy with the second one's cell, for so many asks of it. */
function busyFor(asks: number, intervalMs: number): Cells {
  const cells = new Cells(range(20), { intervalMs });
  let left = asks;
  cells.faults.set(15, "busy");
  cells.atAsk = () => {
    if (cells.asked.at(-1)?.includes(15) && left-- <= 0) cells.faults.clear();
  };
  return cells;
}

describe("a device that is busy for a moment", () => {
  it.each([1, 2])("costs no value: the readout asks again, busy %i times", async (asks) => {
    const cells = busyFor(asks, 1000);
    const { readings } = await cells.tick();
    expect(readings.filter(isGood)).toHaveLength(20);
    expect(cells.asked).toHaveLength(2 + asks);
  });

  it("is left alone after two more asks, and read in the next readout", async () => {
    const cells = busyFor(3, 1000);
    expect((await cells.tick()).readings.filter(isGood)).toHaveLength(10);
    expect(cells.asked).toHaveLength(4);
    expect((await cells.tick()).readings.filter(isGood)).toHaveLength(20);
  });

  it("gets no second request behind the first half of a short interval", async () => {
    const cells = busyFor(1, 100);
    expect((await cells.tick()).readings.filter(isGood)).toHaveLength(10);
    expect(cells.asked).toHaveLength(2);
  });
});
