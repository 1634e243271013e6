import { expect, test } from "vitest";
import { createRecentLayouts } from "./recent-layouts.ts";

test("as many as are asked for", () => {
  const layouts = createRecentLayouts<number, number>(3);
  for (let key = 0; key < 5; key++) layouts.add(key, "press-1", key);
  expect(layouts.entries().map(([key]) => key)).toEqual([2, 3, 4]);
});

test("each source's last two are known, and what is added again stays where it is", () => {
  const layouts = createRecentLayouts<string, number>();
  layouts.add("a", "press-1", 1);
  layouts.add("x", "press-2", 2);
  layouts.add("b", "press-1", 3);
  layouts.add("a", "press-1", 4);
  expect(layouts.entries()).toEqual([
    ["a", 1],
    ["x", 2],
    ["b", 3],
  ]);
  layouts.add("c", "press-1", 5);
  expect(["a", "b", "c", "x"].map(layouts.get)).toEqual([undefined, 3, 5, 2]);
  layouts.add("a", "press-1", 6);
  expect(["a", "b", "c", "x"].map(layouts.get)).toEqual([6, undefined, 5, 2]);
});
