import { expect, it } from "vitest";
import { addressInvalid, alternatives, quote, typeMismatch } from "./text.ts";

it("quotes what may be long or unprintable", () => {
  expect(quote("a\nb")).toBe('"a\\nb"');
  expect(quote("x".repeat(5000)).length).toBeLessThan(80);
});

it("names alternatives", () => {
  expect(alternatives([])).toBe("");
  expect(alternatives(["a"])).toBe("a");
  expect(alternatives(["a", "b", "c"])).toBe("a, b or c");
});

it("says the text and what would be right", () => {
  expect(addressInvalid("x", "expected y")).toMatchObject({ fault: "address_invalid", message: '"x" is not an address: expected y' });
  expect(typeMismatch("x", "a y holds z")).toMatchObject({ fault: "type_mismatch", message: '"x": a y holds z' });
});
