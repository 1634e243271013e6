import { describe, expect, it } from "vitest";
import { Cells, goodOf, range } from "../testing/cells.ts";

describe("a device that refused everything once", () => {
  it.each([1, 30])("is read whole in the next readout: %i variables", async (count) => {
    const cells = new Cells(range(count));
    await cells.tick();
    cells.everything = "forbidden";
    expect(goodOf(await cells.tick())).toBe(0);
    cells.everything = undefined;
    expect(goodOf(await cells.tick())).toBe(count);
  });
});
