import { expect, test } from "vitest";
import * as z from "zod";
import { MAX_ISSUES } from "../../model/bounded.ts";
import { ROUTES } from "./index.ts";
import type { Route } from "./route.ts";

/** What a client sends of each operation. */
const SENT = Object.entries(ROUTES as Readonly<Record<string, Route>>).flatMap(([operation, { params, query, body }]) =>
  Object.entries({ params, query, body }).flatMap(([part, schema]) => (schema ? [{ name: `${operation} ${part}`, schema }] : [])),
);

/** Places in a JSON schema that may grow without a bound: lists, and objects of any fields. */
function unbounded(schema: unknown, at = ""): readonly string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const said: Readonly<Record<string, unknown>> = { ...schema };
  const inner = Object.entries(said).flatMap(([name, value]) => unbounded(value, `${at}/${name}`));
  if (said["type"] === "array" && typeof said["maxItems"] !== "number") return [`${at}: list`, ...inner];
  const isOpen = said["type"] === "object" && said["additionalProperties"] !== false;
  return isOpen && typeof said["maxProperties"] !== "number" ? [`${at}: object`, ...inner] : inner;
}

/** Every list inside a schema, however it is wrapped. */
function listsIn(schema: unknown, seen = new Set<unknown>()): readonly z.ZodArray[] {
  if (typeof schema !== "object" || schema === null || seen.has(schema)) return [];
  seen.add(schema);
  const own = schema instanceof z.ZodArray ? [schema] : [];
  const inner: unknown =
    schema instanceof z.ZodType ? { ...schema.def, ...(schema instanceof z.ZodObject && { shape: schema.shape }) } : schema;
  return [...own, ...Object.values(inner as object).flatMap((value) => listsIn(value, seen))];
}

test("the walk finds what has no bound", () => {
  const schema = z.strictObject({ list: z.array(z.array(z.string()).max(1)), record: z.record(z.string(), z.unknown()).optional() });
  expect(unbounded(z.toJSONSchema(schema))).toEqual(["/properties/list: list", "/properties/record: object"]);
  expect(listsIn(schema)).toHaveLength(2);
});

test.each(SENT)("$name: every list and every object of any fields has a maximum", ({ schema }) => {
  expect(unbounded(z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }))).toEqual([]);
});

test.each(SENT.filter(({ schema }) => listsIn(schema).length > 0))("$name: no list is validated beyond its bounds", ({ schema }) => {
  for (const list of listsIn(schema)) {
    const { maxItems = 0 } = z.toJSONSchema(list, { io: "input", unrepresentable: "any" });
    const issuesOf = (count: number) => list.safeParse(Array(count).fill({ unheard_of: 1 })).error?.issues ?? [];
    expect(issuesOf(maxItems + 1)).toMatchObject([{ code: "too_big", path: [], maximum: maxItems }]);
    const atMost = issuesOf(maxItems);
    expect(atMost.length).toBeGreaterThan(0);
    // The last item may have several.
    expect(new Set(atMost.map(({ path: [index] }) => index)).size).toBeLessThanOrEqual(MAX_ISSUES);
  }
});
