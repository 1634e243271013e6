import { expect, test, vi } from "vitest";
import * as z from "zod";
import { boundedArray, boundedRecord, MAX_ISSUES } from "./bounded.ts";

test("too many items are one issue, and none of them is looked at, nor by a check of the whole", () => {
  const look = vi.fn(() => true);
  const schema = boundedArray(z.string().refine(look), 3).min(1).refine(look).optional().describe("words");
  expect(schema.safeParse(["a", "b", "c", 1]).error?.issues).toMatchObject([
    { code: "too_big", origin: "array", maximum: 3, message: "expected at most 3 items" },
  ]);
  expect(look).not.toHaveBeenCalled();
  expect(schema.parse(["a", "b", "c"])).toEqual(["a", "b", "c"]);
  expect(look).toHaveBeenCalledTimes(4);
  expect(schema.safeParse([]).error?.issues).toMatchObject([{ code: "too_small" }]);
  expect(schema.safeParse({ length: 4 }).error?.issues).toMatchObject([{ code: "invalid_type", expected: "array" }]);
});

test("validation ends with the issues that a 422 lists", () => {
  const look = vi.fn(() => false);
  const schema = z.strictObject({ list: boundedArray(z.number().refine(look, "wrong"), 10_000) });
  const { issues } = schema.safeParse({ list: Array(10_000).fill(7) }).error ?? { issues: [] };
  expect(issues).toHaveLength(MAX_ISSUES);
  expect(issues.at(-1)?.path).toEqual(["list", MAX_ISSUES - 1]);
  expect(look).toHaveBeenCalledTimes(MAX_ISSUES);
});

test("lists inside a union inside a list share the bound", () => {
  const look = vi.fn(() => false);
  const scalar = z.union([z.boolean(), z.number().refine(look, "wrong")]);
  const schema = boundedArray(z.union([scalar, boundedArray(scalar, 1000)]), 1000);
  expect(schema.safeParse(Array(1000).fill(Array(1000).fill(7))).success).toBe(false);
  expect(look.mock.calls.length).toBeLessThanOrEqual(MAX_ISSUES);
});

test("items become what their schema makes of them", () => {
  const schema = boundedArray(z.object({ a: z.string().toLowerCase(), b: z.int().default(3) }), 2);
  expect(
    schema.parse([
      { a: "X", c: 1 },
      { a: "y", b: 1 },
    ]),
  ).toEqual([
    { a: "x", b: 3 },
    { a: "y", b: 1 },
  ]);
});

test("a record with too many fields is one issue, and none of them is looked at", () => {
  const look = vi.fn(() => true);
  const schema = boundedRecord(z.unknown().refine(look), 2);
  expect(schema.safeParse({ a: 1, b: 2, c: 3 }).error?.issues).toMatchObject([
    { code: "too_big", origin: "object", maximum: 2, message: "expected at most 2 fields" },
  ]);
  expect(look).not.toHaveBeenCalled();
  expect(schema.parse({ a: 1, b: 2 })).toEqual({ a: 1, b: 2 });
  for (const wrong of [[], null, "a", undefined]) expect(schema.safeParse(wrong).success).toBe(false);
});

test("the description has the bounds", () => {
  const schema = z.object({ list: boundedArray(z.string(), 5).min(1).describe("a"), record: boundedRecord(z.unknown(), 6).describe("b") });
  expect(z.toJSONSchema(schema)).toMatchObject({
    properties: {
      list: { type: "array", minItems: 1, maxItems: 5, items: { type: "string" }, description: "a" },
      record: { type: "object", maxProperties: 6, description: "b" },
    },
  });
});
