import { expect, test } from "vitest";
import * as z from "zod";
import { issueSentence } from "./issue-words.ts";

const union = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("a") }),
  z.strictObject({ type: z.literal("b"), n: z.int() }),
]);

test.each<[z.ZodType, unknown, string]>([
  [z.string(), undefined, "is required"],
  [z.enum(["a", "b"]), undefined, "is required"],
  [union, undefined, "is required"],
  [z.string(), 7, "expected a text, not a number"],
  [z.string(), null, "expected a text, not nothing (null)"],
  [z.int(), 1.5, "expected a whole number, not a broken number"],
  [z.int(), "5", "expected a number, not a text"],
  [z.number(), Number.NaN, "expected a number, not an infinite number or none"],
  [z.boolean(), "yes", "expected true or false, not a text"],
  [z.array(z.string()), {}, "expected a list, not an object"],
  [z.object({}), [], "expected an object, not a list"],
  [z.record(z.string(), z.string()), 3, "expected an object, not a number"],
  [z.int().max(65_535), 99_999, "expected at most 65535"],
  [z.int().min(1), 0, "expected at least 1"],
  [z.number().gt(0), 0, "expected more than 0"],
  [z.string().max(200), "x".repeat(201), "expected at most 200 characters"],
  [z.string().min(1), "", "expected at least 1 character"],
  [z.array(z.string()).max(1), ["a", "b"], "expected at most 1 entry"],
  [z.enum(["Sign", "None", "SignAndEncrypt"]), "sign", "expected Sign, None or SignAndEncrypt"],
  [z.literal("mqtt"), "opcua", "expected mqtt"],
  [z.uuid(), "x", "expected a UUID such as 0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11"],
  [union, { type: "c" }, "expected a or b"],
  [z.union([z.string(), z.int()]), true, "expected one of the known forms"],
  [z.strictObject({}), { a: 1 }, "not known here: a"],
  [z.int().multipleOf(5), 3, "expected a multiple of 5"],
])("%#: a sentence of ours", (schema, value, words) => {
  expect(schema.safeParse(value).error?.issues.map(({ message }) => message)).toEqual([words]);
});

test("a schema's own words come first, and what is in a value is in none of ours", () => {
  expect(z.string("give a name").safeParse(7).error?.issues[0]?.message).toBe("give a name");
  for (const schema of [z.int(), z.enum(["a"]), z.uuid(), z.string().max(3), z.url()])
    expect(JSON.stringify(schema.safeParse("canary-value").error?.issues[0]?.message)).not.toContain("canary");
  expect(issueSentence({ code: "custom", input: 1 })).toBeUndefined();
});
