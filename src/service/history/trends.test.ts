import { describe, expect, it } from "vitest";
import type { Layout } from "../../model/layout.ts";
import type { Reading } from "../../model/value.ts";
import { TREND_BYTES } from "./trend-memory.ts";
import { type TrendSettings, Trends } from "./trends.ts";

const variableOf = (name: string, scalar: "float32" | "string" | "bool" | "uint64" = "float32", count?: number) => ({
  uuid: `uuid-${name}`,
  name,
  address: "1",
  type: { scalar, ...(count !== undefined && { count }) },
  unit: null,
  comment: null,
  exploration: false,
});
const layoutOf = (name: string, ...variables: readonly (string | ReturnType<typeof variableOf>)[]): Layout => ({
  source: { uuid: `source-${name}`, name },
  variables: variables.map((one) => (typeof one === "string" ? variableOf(one) : one)),
});
const good = (value: number | boolean | bigint | string): Reading => ({ quality: "good", value });
const trendsOf = (variables: number, patterns: readonly string[] = []): Trends => new Trends(settingsOf(variables, patterns));
const settingsOf = (variables: number, patterns: readonly string[] = []): TrendSettings => ({
  maxBytes: variables * TREND_BYTES,
  patterns,
});

/** The last numbers of the first minutes; a word: why it is not kept. */
function lastOf(trends: Trends, { source }: Layout, name: string, minutes = 3): readonly number[] | string {
  const found = trends.look({ source: source.uuid, variable: `uuid-${name}`, from: 0, to: minutes - 1 });
  return found.isKept ? [...found.figures.last] : found.why;
}

describe("which trends are kept", () => {
  it("numbers and truth values of each reading, no texts and lists", async () => {
    const trends = trendsOf(10);
    const layout = layoutOf(
      "a",
      "n",
      variableOf("b", "bool"),
      variableOf("u", "uint64"),
      variableOf("s", "string"),
      variableOf("l", "float32", 4),
    );
    trends.take(layout, { readings: [] }, 0);
    await trends.decided();
    trends.take(layout, { readings: [good(1.5), good(true), good(2n ** 63n), good("x"), good(1)] }, 0);
    trends.take(layout, { readings: [undefined, good(false), { quality: "bad", fault: "stale" }] }, 1);
    expect(lastOf(trends, layout, "n", 2)).toEqual([1.5, Number.NaN]);
    expect(lastOf(trends, layout, "b", 2)).toEqual([1, 0]);
    expect(lastOf(trends, layout, "u", 2)).toEqual([2 ** 63, Number.NaN]);
    expect([lastOf(trends, layout, "s"), lastOf(trends, layout, "l"), lastOf(trends, layout, "x")]).toEqual([
      "no_trend",
      "no_trend",
      "none",
    ]);
  });

  it("first those that the settings choose, then those that somebody looked at, then by name", async () => {
    const trends = trendsOf(3, ["z/chosen*"]);
    const [a, z] = [layoutOf("a", "a3", "a1", "a2"), layoutOf("z", "z1", "chosen-1", "z2")];
    for (const layout of [z, a]) trends.take(layout, { readings: [] }, 0);
    await trends.decided();
    for (const layout of [a, z]) trends.take(layout, { readings: [good(1), good(2), good(3)] }, 0);
    expect(lastOf(trends, z, "chosen-1", 1)).toEqual([2]);
    expect([lastOf(trends, a, "a1", 1), lastOf(trends, a, "a2", 1)]).toEqual([[2], [3]]);
    expect(lastOf(trends, z, "z2")).toBe("no_room");
    expect(lastOf(trends, a, "a2", 1)).toEqual([3]);
    await trends.decided();
    trends.take(z, { readings: [good(4), good(5), good(6)] }, 1);
    trends.take(a, { readings: [good(7), good(8), good(9)] }, 1);
    expect(lastOf(trends, z, "z2", 2)).toEqual([Number.NaN, 6]);
    expect(lastOf(trends, a, "a2", 2)).toEqual([3, 9]);
    expect(lastOf(trends, z, "chosen-1", 2)).toEqual([2, 5]);
    expect(lastOf(trends, a, "a1")).toBe("no_room");
  });

  it("those of a variable that stays where its source gets another layout, and not those of one that went", async () => {
    const trends = trendsOf(2);
    const before = layoutOf("a", "x", "y");
    trends.take(before, { readings: [] }, 0);
    await trends.decided();
    trends.take(before, { readings: [good(1), good(2)] }, 0);
    const after = layoutOf("a", "w", "x");
    trends.take(after, { readings: [good(8), good(9)] }, 0);
    await trends.decided();
    trends.take(after, { readings: [good(8), good(3)] }, 1);
    expect(lastOf(trends, after, "x", 2)).toEqual([1, 3]);
    expect(lastOf(trends, after, "w", 2)).toEqual([Number.NaN, 8]);
    expect(lastOf(trends, after, "y")).toBe("none");
  });

  it("none of a removed source, and others in its place", async () => {
    const trends = trendsOf(1);
    const [a, b] = [layoutOf("a", "x"), layoutOf("b", "x")];
    for (const layout of [a, b]) trends.take(layout, { readings: [] }, 0);
    await trends.decided();
    trends.take(a, { readings: [good(1)] }, 0);
    trends.keep(new Set([b.source.uuid]));
    await trends.decided();
    trends.take(b, { readings: [good(5)] }, 1);
    expect(lastOf(trends, a, "x")).toBe("none");
    expect(lastOf(trends, b, "x", 2)).toEqual([Number.NaN, 5]);
  });

  it("none where there is no memory for one, and begins again with another bound", async () => {
    const trends = trendsOf(0);
    const layout = layoutOf("a", "x");
    trends.take(layout, { readings: [good(1)] }, 0);
    expect(lastOf(trends, layout, "x")).toBe("off");
    trends.use(settingsOf(1));
    await trends.decided();
    trends.take(layout, { readings: [good(2)] }, 1);
    expect(lastOf(trends, layout, "x", 2)).toEqual([Number.NaN, 2]);
  });

  it("the first by name of a source with more variables than there is room for", async () => {
    const trends = trendsOf(3);
    const names = Array.from({ length: 10_000 }, (_, n) => `v${String(9999 - n).padStart(4, "0")}`);
    const layout = layoutOf("a", ...names);
    trends.take(layout, { readings: [] }, 0);
    await trends.decided();
    const kept = names.filter((name) => typeof lastOf(trends, layout, name) !== "string").toSorted();
    trends.stop();
    expect(kept).toEqual(["v0000", "v0001", "v0002"]);
  });
});
