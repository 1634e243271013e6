import { describe, expect, test } from "vitest";
import { variableCreateSchema, variableInputSchema, variableSchema } from "./variable.ts";

const least = { name: "temp", address: "holding:0" };
const DEFAULTS = { type: null, unit: null, scaling: null, comment: null, status: "ACTIVE" };
const id = "0d4ae1f6-6c4a-4f0e-9b66-0c3c6ad1f0a1";

test("what may be left out has its default", () => {
  expect(variableInputSchema.parse(least)).toEqual({ ...least, ...DEFAULTS });
  expect(variableInputSchema.parse({ ...least, scaling: { factor: 0.1 } }).scaling).toEqual({ factor: 0.1, offset: 0 });
  expect(variableInputSchema.parse({ ...least, scaling: {} }).scaling).toEqual({ factor: 1, offset: 0 });
});

test("unknown fields are errors in a file and on creation, and dropped from the API", () => {
  expect(variableInputSchema.safeParse({ ...least, adress: "x" }).error?.issues).toMatchObject([
    { code: "unrecognized_keys", keys: ["adress"] },
  ]);
  expect(variableCreateSchema.safeParse({ ...least, data_source: id, uuid: id }).success).toBe(false);
  expect(variableSchema.parse({ ...least, uuid: id, data_source: id.toUpperCase(), later: 1 })).toEqual({
    ...least,
    ...DEFAULTS,
    uuid: id,
    data_source: id,
  });
});

describe("refused", () => {
  test.each<[string, object, (string | number)[]]>([
    ["an empty name", { name: "" }, ["name"]],
    ["a name of 201 characters", { name: "x".repeat(201) }, ["name"]],
    ["an empty address", { address: "" }, ["address"]],
    ["a type that is none", { type: "16 bits" }, ["type"]],
    ["a status in lower case", { status: "active" }, ["status"]],
    ["an infinite factor", { scaling: { factor: Number.POSITIVE_INFINITY } }, ["scaling", "factor"]],
    ["an offset that is text", { scaling: { offset: "1" } }, ["scaling", "offset"]],
    ["an unknown part of the scaling", { scaling: { gain: 2 } }, ["scaling"]],
  ])("%s, at its field", (_name, wrong, path) => {
    expect(variableInputSchema.safeParse({ ...least, ...wrong }).error?.issues.map((issue) => issue.path)).toEqual([path]);
  });

  test("a type, with what would be right", () => {
    expect(variableInputSchema.safeParse({ ...least, type: "two words" }).error?.issues[0]?.message).toContain("uint32");
  });
});
