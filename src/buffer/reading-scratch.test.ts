import fc from "fast-check";
import { expect, test } from "vitest";
import type { Readout } from "../model/value.ts";
import { decodeReadout, encodeReadout } from "./codec.ts";
import { createReadingScratch } from "./reading-scratch.ts";
import { layoutAndReadout, plainLayout, plainReadout } from "./testing/readouts.ts";

test("nothing of one readout shows in the next, whatever their layouts, and whether or not one in between is damaged", () => {
  const one = fc.record({ given: layoutAndReadout, kept: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })) });
  fc.assert(
    fc.property(fc.array(one, { minLength: 2, maxLength: 12 }), (many) => {
      const scratch = createReadingScratch();
      for (const { given, kept } of many) {
        const { layout, readout } = given;
        const { payload } = encodeReadout(layout, readout);
        if (kept < 1) {
          const cut = payload.subarray(0, Math.floor(payload.length * kept));
          expect(() => decodeReadout(layout, cut, scratch)).toThrow("damaged payload");
          continue;
        }
        expect(decodeReadout(layout, payload, scratch)).toEqual(readout);
        expect(decodeReadout(layout, payload, scratch)).toEqual(decodeReadout(layout, payload));
      }
    }),
  );
});

test("what was read leaves memory with clear, and the objects stay", () => {
  const layout = plainLayout(3, { scalar: "string" });
  const readout: Readout = {
    ...plainReadout(0, 0),
    readings: [{ quality: "good", value: "a long text" }, { quality: "bad", fault: "stale", detail: "another" }, undefined],
  };
  const scratch = createReadingScratch();
  const decoded = decodeReadout(layout, encodeReadout(layout, readout).payload, scratch);
  const [first] = decoded.readings;
  scratch.clear();
  expect(JSON.stringify([first, decoded.readings])).not.toMatch(/text|another/);
  expect([scratch.length(), scratch.capacity()]).toEqual([3, 3]);
  expect(decodeReadout(layout, encodeReadout(layout, readout).payload, scratch).readings[0]).toBe(first);
});
