import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Point } from "../driver.ts";
import { typeOf } from "../driver.ts";
import { parseType } from "../lib/step7-types.ts";
import { parseAddress, type S7Address } from "./address.ts";
import { answerBytes, itemsRoom, maxItemBytes } from "./frames.ts";
import { describeRead, plan, type S7Limits } from "./plan.ts";
import { settingsSchema } from "./settings.ts";

const SETTINGS = settingsSchema.parse({});

const limits = (pduBytes: number, more: Partial<S7Limits> = {}): S7Limits => ({
  maxPoints: 1000,
  maxBytes: maxItemBytes(pduBytes),
  inFlight: 1,
  pduBytes,
  maxItems: 20,
  maxGap: 64,
  ...more,
});
const pointsOf = (...texts: string[]): Point<S7Address>[] =>
  texts.map((text, index) => {
    const [address = "", word] = text.split(":");
    return { index, ...parseAddress(address, word === undefined ? undefined : typeOf({ parseType }, word), SETTINGS) };
  });
const planned = (texts: readonly string[], with_ = limits(480), apart: readonly number[] = []) => {
  const points = pointsOf(...texts);
  return plan(points, with_, new Set(points.filter(({ index }) => apart.includes(index)))).map(describeRead);
};

describe("plan", () => {
  it("joins neighbours of one area over small gaps", () => {
    expect(
      planned(["DB1.DBD4", "DB1.DBX0.1", "DB1.DBW18", "DB1.DBB40", "DB2.DBB0", "MW20", "M20.3", "T5", "T7", "C1", "I0.0", "DI1.DIB0"]),
    ).toEqual(["DB1.DBB0..19, DB1.DBB40, DB2.DBB0, DI1.DIB0 and 4 more ranges, 34 bytes in all"]);
  });

  it("joins over larger gaps where that saves jobs, and never over more than max_gap", () => {
    const apart = Array.from({ length: 60 }, (_, i) => `DB1.DBB${i * 40}`);
    expect(planned(apart, limits(960))).toHaveLength(3);
    expect(planned(apart, limits(960, { maxGap: 16 }))).toHaveLength(3);
    // 60 ranges of one byte are three jobs; two ranges of 942 bytes and the rest too. At 20 bytes apart it is less.
    const near = Array.from({ length: 60 }, (_, i) => `DB1.DBB${i * 20}`);
    expect(planned(near, limits(960, { maxGap: 32 }))).toHaveLength(2);
    expect(planned(near, limits(960, { maxGap: 16 }))).toHaveLength(3);
  });

  it("fills jobs up to the last byte of a message", () => {
    // 4 + 100 bytes each: two fit into the 226 bytes of an answer of 240.
    expect(planned(["DB1.DBB0:CHAR(100)", "DB2.DBB0:CHAR(100)", "DB3.DBB0:CHAR(100)", "DB4.DBB0:CHAR(10)"], limits(240))).toEqual([
      "DB1.DBB0..99, DB2.DBB0..99, DB4.DBB0..9",
      "DB3.DBB0..99",
    ]);
    expect(planned(["DB1.DBB0:CHAR(222)"], limits(240))).toHaveLength(1);
    expect(planned(["DB1.DBB0:CHAR(222)", "DB2.DBB0"], limits(240))).toHaveLength(2);
  });

  it("takes 19 ranges in a request of 240 bytes, 20 in longer ones, and fewer on demand", () => {
    const blocks = Array.from({ length: 40 }, (_, i) => `DB${i + 1}.DBB0`);
    const counts = (pduBytes: number, more: Partial<S7Limits> = {}) =>
      plan(pointsOf(...blocks), limits(pduBytes, more)).map(({ items }) => items.length);
    expect(counts(240)).toEqual([19, 19, 2]);
    expect(counts(960)).toEqual([20, 20]);
    expect(counts(960, { maxItems: 15 })).toEqual([15, 15, 10]);
  });

  it("leaves a value that is longer than a message by itself", () => {
    expect(planned(["DB1.DBD0:DINT[150]", "DB1.DBB600", "DB1.DBB601"], limits(240))).toEqual(["DB1.DBB0..599", "DB1.DBB600..601"]);
  });

  it("begins a range at a point of apart", () => {
    expect(planned(["DB1.DBB0", "DB1.DBB1", "DB1.DBB2"], limits(480), [1])).toEqual(["DB1.DBB0, DB1.DBB1..2"]);
  });

  it("holds every point once, within the limits, whatever the order", () => {
    const address = fc.oneof(
      fc.tuple(fc.integer({ min: 1, max: 4 }), fc.nat(3000)).map(([block, byte]) => `DB${block}.DBD${byte}:REAL`),
      fc.tuple(fc.nat(3000), fc.nat(7)).map(([byte, bit]) => `M${byte}.${bit}`),
      fc.tuple(fc.nat(500), fc.integer({ min: 1, max: 300 })).map(([byte, count]) => `DB9.DBB${byte}:CHAR(${count})`),
      fc.nat(40).map((number) => `T${number}`),
    );
    fc.assert(
      fc.property(
        fc.array(address, { maxLength: 80 }),
        fc.constantFrom(112, 240, 480, 960),
        fc.integer({ min: 1, max: 40 }),
        (texts, pduBytes, maxPoints) => {
          const points = pointsOf(...texts);
          const with_ = limits(pduBytes, { maxPoints });
          const requests = plan(points, with_);
          expect(requests.flatMap((request) => request.points.map(({ index }) => index)).sort((a, b) => a - b)).toEqual(
            points.map(({ index }) => index),
          );
          expect(plan(points.toReversed(), with_).map((request) => request.points.map(({ index }) => index))).toEqual(
            requests.map((request) => request.points.map(({ index }) => index)),
          );
          const room = itemsRoom(pduBytes);
          for (const request of requests) {
            expect(request.points.length).toBeLessThanOrEqual(maxPoints);
            expect(request.items.length).toBeLessThanOrEqual(Math.min(20, room.requestItems));
            const bytes = request.items.reduce((sum, item) => sum + answerBytes(item.bytes), 0);
            if (request.points.length > 1) expect(bytes).toBeLessThanOrEqual(room.answerBytes);
            for (const item of request.items)
              for (let at = item.firstPoint; at < item.firstPoint + item.points; at++) {
                const own = request.points[at]?.address;
                expect(own?.start).toBeGreaterThanOrEqual(item.start);
                expect((own?.start ?? 0) + (own?.length ?? 0)).toBeLessThanOrEqual(item.start + item.length);
              }
          }
        },
      ),
    );
  });
});
