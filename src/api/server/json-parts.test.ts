import fc from "fast-check";
import { expect, test } from "vitest";
import { hasMoreParts } from "./json-parts.ts";

/** Counted on what was parsed. */
function partsOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const fields = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce((sum: number, inner) => sum + partsOf(inner), 1 + fields);
}

test("objects, lists and fields are counted, whatever their texts hold", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.string(), fc.boolean(), (inner, word, isIndented) => {
      const value = { [word]: inner, "\\": ['"', '\\"', "{[:", word] };
      const text = JSON.stringify(value, null, isIndented ? 2 : undefined);
      const parts = partsOf(JSON.parse(text));
      expect([hasMoreParts(text, parts - 1), hasMoreParts(text, parts)]).toEqual([true, false]);
    }),
  );
});

test.each(['"', '"\\', '{"', '"\\\\\\"', "", "]"])("a text that is no JSON ends it too: %s", (text) => {
  expect(hasMoreParts(text, 1)).toBe(false);
});
