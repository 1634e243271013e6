import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anyText } from "../../../test/support/any-text.ts";
import { JsonBytes } from "./json-bytes.ts";

const written = (write: (out: JsonBytes) => void): string => {
  const out = new JsonBytes();
  write(out);
  return out.copy().toString("utf8");
};

describe("JsonBytes", () => {
  it("writes numbers in their shortest digits, with the sign of a negative zero", () => {
    const edges = [0, -0, 9, 10, 99, 100, 2 ** 31 - 1, -(2 ** 31), -(2 ** 31) + 1, 2 ** 31, 2 ** 53, 1e21, 1.5e-7, -0.1];
    const number = fc.oneof(fc.constantFrom(...edges), fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }));
    fc.assert(
      fc.property(number, (value) => {
        expect(written((out) => out.number(value))).toBe(Object.is(value, -0) ? "-0" : String(value));
      }),
    );
  });

  it("writes text of any length and any characters as UTF-8", () => {
    const text = fc.oneof(anyText({ maxLength: 60 }), fc.string({ unit: "grapheme", minLength: 20, maxLength: 30 }));
    fc.assert(
      fc.property(text, (value) => {
        expect(written((out) => out.text(value))).toBe(Buffer.from(value).toString("utf8"));
      }),
    );
  });

  it("grows, forgets what was rewound, and gives copies that later writing leaves alone", () => {
    const out = new JsonBytes();
    const long = "x".repeat(70_000);
    out.text(long);
    const before = out.length;
    out.text("forgotten");
    out.rewind(before);
    out.byte(0x21);
    out.raw(Buffer.from("€".repeat(40)));
    const first = out.copy();
    expect(first.toString("utf8")).toBe(`${long}!${"€".repeat(40)}`);
    expect(out.copy(before, before + 1).toString("utf8")).toBe("!");
    out.start();
    out.text("second");
    expect(first.subarray(0, 3).toString("utf8")).toBe("xxx");
    expect(out.copy().toString("utf8")).toBe("second");
  });

  it("starts small again after a large payload", () => {
    const out = new JsonBytes();
    for (let i = 0; i < 40; i++) out.text("x".repeat(60_000));
    expect(out.length).toBe(2_400_000);
    out.start();
    out.text("a");
    expect(out.copy().toString("utf8")).toBe("a");
  });
});
