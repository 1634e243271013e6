import { describe, expect, it } from "vitest";
import { layoutKey } from "./layout-key.ts";
import { packedLayout, wholeLayout } from "./layout-rows.ts";
import { plainLayout } from "./testing/readouts.ts";

describe("the copy of a layout", () => {
  it.each([0, 1, 10, 100, 1000, 20_000])("of %i variables is what was packed", (variables) => {
    const layout = { ...plainLayout(variables), source: { uuid: "u", name: "Wärmetauscher" } };
    const key = layoutKey(layout);
    expect(wholeLayout(key, packedLayout(JSON.stringify(layout)))).toEqual({ key, layout });
  });

  it("of a few variables holds little more memory than they need", () => {
    const body = JSON.stringify(plainLayout(10));
    const memory = new Set(Array.from({ length: 100 }, () => packedLayout(body).buffer));
    expect([...memory].reduce((sum, { byteLength }) => sum + byteLength, 0)).toBeLessThan(100 * 4096);
  });
});
