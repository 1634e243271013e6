import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { anyText } from "../../../test/support/any-text.ts";
import { cursorBinding, decodeCursor, encodeCursor } from "./cursor.ts";

const key = randomBytes(32);
const position = fc.nat({ max: Number.MAX_SAFE_INTEGER });
const filters = fc.dictionary(fc.constantFrom("uuid", "machine", "collector"), fc.array(fc.uuid(), { minLength: 1, maxLength: 5 }));

test("a cursor gives back its position for the same parameters, in whatever order and however often", () => {
  fc.assert(
    fc.property(position, filters, (at, wanted) => {
      const token = encodeCursor(key, [at], cursorBinding("list", wanted));
      const same = Object.fromEntries(
        Object.entries(wanted)
          .reverse()
          .map(([name, values]) => [name, [...values].reverse().concat(values.map((v) => v.toUpperCase()))]),
      );
      expect(decodeCursor(key, token, cursorBinding("list", same), 1)).toEqual([at]);
      expect(token).toMatch(/^[\w-]+$/);
    }),
  );
});

test("an altered character, another key, other parameters or another operation refuse it", () => {
  fc.assert(
    fc.property(position, filters, fc.nat(), fc.constantFrom(..."AZaz09-_=%"), fc.uuid(), (at, wanted, place, letter, other) => {
      const binding = cursorBinding("list", wanted);
      const token = encodeCursor(key, [at], binding);
      const index = place % token.length;
      const altered = token.slice(0, index) + letter + token.slice(index + 1);
      if (altered !== token) expect(decodeCursor(key, altered, binding, 1)).toBeUndefined();
      expect(decodeCursor(randomBytes(32), token, binding, 1)).toBeUndefined();
      expect(decodeCursor(key, token, cursorBinding("other", wanted), 1)).toBeUndefined();
      expect(decodeCursor(key, token, cursorBinding("list", { ...wanted, uuid: [...(wanted["uuid"] ?? []), other] }), 1)).toBeUndefined();
    }),
  );
});

test("an absent filter is not the same as one that is moved to another parameter", () => {
  const id = "0d4d5dd5-4f0e-4e0a-9a3e-d0a4f2f3b111";
  const token = encodeCursor(key, [7], cursorBinding("list", { machine: [id] }));
  expect(decodeCursor(key, token, cursorBinding("list", { collector: [id] }), 1)).toBeUndefined();
  expect(decodeCursor(key, token, cursorBinding("list", { machine: [id], collector: undefined }), 1)).toEqual([7]);
});

test("a position of several parts comes back whole, and is none of another number of parts", () => {
  fc.assert(
    fc.property(fc.array(fc.maxSafeInteger(), { minLength: 1, maxLength: 3 }), (parts) => {
      const token = encodeCursor(key, parts, "x");
      expect(decodeCursor(key, token, "x", parts.length)).toEqual(parts);
      expect(decodeCursor(key, token, "x", parts.length + 1)).toBeUndefined();
    }),
  );
});

test("any text is an answer, never an exception", () => {
  fc.assert(fc.property(anyText(), (text) => decodeCursor(key, text, "x", 1) === undefined));
  expect(decodeCursor(key, "", "x", 1)).toBeUndefined();
});
