import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseDataType } from "../../src/model/value.ts";
import type { Point } from "../driver.ts";
import { type ModbusAddress, parseAddress } from "./address.ts";
import { MAX_COUNT } from "./frames.ts";
import { describeRead, limitsOf, type ModbusLimits, plan } from "./plan.ts";
import { settingsSchema } from "./settings.ts";

const settings = settingsSchema.parse({});
const point = (index: number, text: string, type?: string): Point<ModbusAddress> => ({
  index,
  ...parseAddress(text, type === undefined ? undefined : parseDataType(type), settings),
});
const shape = (points: readonly Point<ModbusAddress>[], limits: Partial<ModbusLimits> = {}) =>
  plan(points, { ...limitsOf(settings), ...limits }).map(describeRead);

const anyPoint = fc
  .record({
    unit: fc.constantFrom("", "2/", "7/"),
    area: fc.constantFrom("holding", "input", "coil", "discrete"),
    start: fc.nat(400),
    type: fc.constantFrom("uint16", "int32", "float64", "string(11)", "uint16[9]"),
  })
  .map(({ unit, area, start, type }) => ({
    text: `${unit}${area}:${start}`,
    type: area === "holding" || area === "input" ? type : start % 3 === 0 ? "bool[5]" : "bool",
  }));
const anyPoints = fc.array(anyPoint, { maxLength: 80 }).map((list) => list.map(({ text, type }, index) => point(index, text, type)));
const anyLimits = fc
  .record({
    maxRegisters: fc.integer({ min: 9, max: 125 }),
    maxCoils: fc.integer({ min: 5, max: 2000 }),
    maxGap: fc.nat(40),
    maxGapCoils: fc.nat(40),
    maxPoints: fc.integer({ min: 1, max: 100 }),
  })
  .map((limits) => ({ ...limitsOf(settings), ...limits }));

describe("plan", () => {
  it("bridges small gaps, never large ones, and nothing at all with a gap of 0", () => {
    const points = [point(0, "holding:0"), point(1, "holding:10"), point(2, "holding:100"), point(3, "holding:101")];
    expect(shape(points)).toEqual(["holding registers 0..10 of unit 1", "holding registers 100..101 of unit 1"]);
    expect(shape(points, { maxGap: 0 })).toEqual([
      "holding register 0 of unit 1",
      "holding register 10 of unit 1",
      "holding registers 100..101 of unit 1",
    ]);
  });

  it("splits between values where a read is full, never within one", () => {
    const points = Array.from({ length: 40 }, (_, i) => point(i, `holding:${i * 4}`, "float64"));
    expect(shape(points)).toEqual(["holding registers 0..123 of unit 1", "holding registers 124..159 of unit 1"]);
    expect(shape(points, { maxBytes: 64 })).toHaveLength(5);
  });

  it("takes 2000 coils at once", () => {
    const points = Array.from({ length: 2001 }, (_, i) => point(i, `coil:${i}`));
    expect(shape(points)).toEqual(["coils 0..1999 of unit 1", "coil 2000 of unit 1"]);
  });

  it("holds every point once and whole, within limits, gaps, units and functions, whatever the order", () => {
    fc.assert(
      fc.property(
        anyPoints.chain((points) => fc.tuple(fc.constant(points), fc.shuffledSubarray(points, { minLength: points.length }))),
        anyLimits,
        ([points, shuffled], limits) => {
          const reads = plan(points, limits);
          expect(reads.flatMap((read) => read.points.map((p) => p.index)).sort((a, b) => a - b)).toEqual(points.map((p) => p.index));
          for (const read of reads) {
            const bits = read.functionCode <= 2;
            expect(read.count).toBeLessThanOrEqual(Math.min(MAX_COUNT[read.functionCode], bits ? limits.maxCoils : limits.maxRegisters));
            expect(read.points.length).toBeLessThanOrEqual(limits.maxPoints);
            expect(read.decoders).toHaveLength(read.points.length);
            let end = read.start;
            for (const { address } of read.points) {
              expect([address.unit, address.functionCode]).toEqual([read.unit, read.functionCode]);
              expect(address.start - end).toBeLessThanOrEqual(bits ? limits.maxGapCoils : limits.maxGap);
              end = Math.max(end, address.start + address.length);
            }
            expect([read.points[0]?.address.start, end]).toEqual([read.start, read.start + read.count]);
          }
          const places = (list: typeof reads) => list.map((read) => [describeRead(read), read.points.map((p) => p.index)]);
          expect(places(plan(shuffled, limits))).toEqual(places(reads));
        },
      ),
    );
  });
});
