import fc from "fast-check";
import { expect, it } from "vitest";
import { namespacesOf } from "./namespaces.ts";

const UA = "http://opcfoundation.org/UA/";

it("keeps indexes while the list grows", () => {
  const names = namespacesOf([UA, "urn:s", "a"], [UA, "urn:s", "a", "b"]);
  expect(names.warning).toBeUndefined();
  expect(names.indexOf(2)).toBe(2);
  expect(names.indexOf({ uri: "b" })).toBe(3);
  expect(names.indexOf(9)).toBe(9);
});

it("follows a namespace that has moved, and says so", () => {
  const names = namespacesOf([UA, "urn:s", "a", "b"], [UA, "urn:other", "b"]);
  expect(names.indexOf(3)).toBe(2);
  expect(names.indexOf(2)).toBeUndefined();
  expect(names.indexOf(1)).toBe(1);
  expect(names.missing(2).message).toContain('"a", which was ns=2');
  expect(names.warning?.text).toContain("ns=2 (a) is gone; ns=3 (b) is ns=2 now");
});

it("takes an index as it is where the server tells nothing, unless its namespace is known from before", () => {
  const names = namespacesOf([], undefined);
  expect([names.indexOf(0), names.indexOf(7), names.indexOf({ uri: UA }), names.warning]).toEqual([0, 7, 0, undefined]);
  expect(names.indexOf({ uri: "a" })).toBeUndefined();
  expect(names.missing({ uri: "a" })).toMatchObject({
    fault: "no_answer",
    message: expect.stringContaining('where "a" is now is not known'),
  });
  const known = namespacesOf([UA, "urn:s", "a"], undefined);
  expect([known.indexOf(1), known.indexOf(2), known.indexOf(3)]).toEqual([1, undefined, 3]);
});

it("finds every URI where it is today", () => {
  const lists = fc
    .uniqueArray(fc.string({ minLength: 1 }), { maxLength: 20 })
    .map((names) => [UA, "urn:s", ...names.filter((name) => name !== UA && name !== "urn:s")]);
  fc.assert(
    fc.property(lists, fc.infiniteStream(fc.nat()), (first, random) => {
      const moved = first
        .slice(2)
        .map((name) => ({ name, key: random.next().value ?? 0 }))
        .sort((a, b) => a.key - b.key)
        .map(({ name }) => name);
      const now = [UA, "urn:s", ...moved];
      const names = namespacesOf(first, now);
      for (const [index, uri] of first.entries()) expect(now[names.indexOf(index) ?? -1]).toBe(uri);
      expect(names.warning === undefined).toBe(`${first}` === `${now}`);
    }),
  );
});
