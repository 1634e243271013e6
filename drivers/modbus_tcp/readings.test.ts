import { describe, expect, it } from "vitest";
import { parseAddress } from "./address.ts";
import { limitsOf, type ModbusRead, plan } from "./plan.ts";
import { readingsOf } from "./readings.ts";
import { settingsSchema } from "./settings.ts";

const settings = settingsSchema.parse({});
const points = ["holding:0", "holding:1", "holding:2[2]"].map((text, index) => ({ index, ...parseAddress(text, undefined, settings) }));
const requestOf = (): ModbusRead => plan(points, limitsOf(settings))[0] as ModbusRead;
const answer = (...registers: number[]): Buffer => Buffer.from(registers.flatMap((register) => [register >> 8, register & 255]));
const valuesOf = (readings: ReturnType<typeof readingsOf>) =>
  readings.map((reading) => (reading.quality === "bad" ? reading.fault : reading.value));

describe("readingsOf", () => {
  it("leaves the readings of an answer alone while the next one is taken", () => {
    const request = requestOf();
    const first = readingsOf(request, answer(1, 2, 3, 4));
    const second = readingsOf(request, answer(11, 12, 13, 14));
    expect(valuesOf(first)).toEqual([1, 2, [3, 4]]);
    expect(valuesOf(second)).toEqual([11, 12, [13, 14]]);
    expect(valuesOf(readingsOf(request, answer(21, 22, 23, 24)))).toEqual([21, 22, [23, 24]]);
    expect(valuesOf(second)).toEqual([11, 12, [13, 14]]);
  });

  it("keeps requests apart, also for the same registers", () => {
    const [one, other] = [requestOf(), requestOf()];
    const readings = readingsOf(one, answer(1, 2, 3, 4));
    readingsOf(other, answer(5, 6, 7, 8));
    readingsOf(other, answer(5, 6, 7, 8));
    expect(valuesOf(readings)).toEqual([1, 2, [3, 4]]);
  });

  it("has a value again after it was none", () => {
    const float = plan([{ index: 0, ...parseAddress("holding:0", { scalar: "float32" }, settings) }], limitsOf(settings))[0] as ModbusRead;
    const [nan, number] = [Buffer.from("7fc00000", "hex"), Buffer.from("3fc00000", "hex")];
    for (const [data, value] of [
      [nan, "not_a_number"],
      [nan, "not_a_number"],
      [number, 1.5],
      [number, 1.5],
      [nan, "not_a_number"],
    ] as const)
      expect(valuesOf(readingsOf(float, data))).toEqual([value]);
  });
});
