import { describe, expect, it } from "vitest";
import { numberOf } from "./feed.ts";
import { pathOf } from "./line.tsx";

describe("the line of the last values", () => {
  it("has a gap where a reading was bad, and starts again behind it", () => {
    expect(pathOf([0, 10, null, 5, 10], 0, 10).replace(/[\d. ]/g, "")).toBe("MLML");
  });

  it("is in the middle where nothing changes", () => {
    expect(pathOf([3, 3, 3], 3, 3)).toBe("M0.0 10.0L48.0 10.0L96.0 10.0");
  });

  it("takes numbers, switches and numbers in quotes, and nothing else", () => {
    expect(["1.5", "true", '"9007199254740993"', "null", '"text"', "", "[1]", null].map(numberOf)).toEqual([
      1.5,
      1,
      9007199254740992,
      undefined,
      undefined,
      undefined,
      undefined,
      null,
    ]);
  });
});
