import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dataType, valueOfType } from "../../../buffer/testing/readouts.ts";
import { parseDataType } from "../../../model/value.ts";
import { packArray, sparkplugType, valueProblem } from "./datatypes.ts";
import { type Metric, payloadOf, writeMetric } from "./payload.ts";
import { ProtoBytes } from "./proto-bytes.ts";
import { decoded, valueIn } from "./testing.ts";

const TIME = Date.parse("2026-11-28T09:00:00.123Z");

const typeOf = (text: string) => sparkplugType(parseDataType(text) ?? { scalar: "auto" });

function encodedOf(...metrics: readonly Metric[]): Buffer {
  const out = new ProtoBytes();
  for (const metric of metrics) writeMetric(out, metric);
  return payloadOf(out.copy(), TIME, 7);
}

describe("a payload", () => {
  it("has time, sequence number and metrics, with each field of a metric that is given and no other", () => {
    const type = typeOf("float64");
    const all: Metric = {
      name: "Line/temp",
      alias: 300,
      timestamp: TIME + 0.4,
      type,
      hasDatatype: true,
      isHistorical: true,
      properties: { Quality: 192, engUnit: "°C", Uncertain: true },
      value: 21.5,
    };
    expect(decoded(encodedOf(all, { alias: 1, type, value: undefined }))).toEqual({
      timestamp: TIME,
      seq: 7,
      metrics: [
        {
          name: "Line/temp",
          alias: 300,
          timestamp: TIME,
          datatype: 10,
          isHistorical: true,
          properties: { Quality: { type: 3, value: 192 }, engUnit: { type: 12, value: "°C" }, Uncertain: { type: 11, value: true } },
          field: "doubleValue",
          value: 21.5,
        },
        { alias: 1, isNull: true },
      ],
    });
  });

  it("has no sequence number where none is given", () => {
    expect(decoded(payloadOf(new Uint8Array(), TIME, undefined))).toEqual({ timestamp: TIME, metrics: [] });
    expect(decoded(payloadOf(new Uint8Array(), -5, 0))).toEqual({ timestamp: 0, seq: 0, metrics: [] });
  });

  it("gives back each value of each type, 64-bit integers with all digits", () => {
    const typed = dataType.chain((type) => valueOfType(type).map((value) => ({ type, value })));
    fc.assert(
      fc.property(fc.array(typed, { maxLength: 6 }), (values) => {
        const taken = values.filter(({ type, value }) => valueProblem(sparkplugType(type), value) === undefined);
        const { metrics } = decoded(
          encodedOf(...taken.map(({ type, value }) => ({ type: sparkplugType(type), value, hasDatatype: true }))),
        );
        expect(metrics.map((metric) => valueIn(metric.datatype ?? 0, metric))).toEqual(taken.map(({ value }) => value));
        expect(metrics.map(({ datatype }) => datatype)).toEqual(taken.map(({ type }) => sparkplugType(type).datatype));
      }),
    );
  });

  it("has any number up to 2^53 - 1", () => {
    const number = fc
      .oneof(
        fc.maxSafeNat(),
        fc.nat(53).chain((bits) => fc.integer({ min: -1, max: 1 }).map((by) => 2 ** bits + by)),
      )
      .map((n) => Math.min(n, 2 ** 53 - 1));
    fc.assert(
      fc.property(number, number, (alias, timestamp) => {
        const [metric] = decoded(encodedOf({ alias, timestamp, type: typeOf("bool"), value: true })).metrics;
        expect(metric).toMatchObject({ alias, timestamp });
      }),
    );
  });

  it("has metrics of any length", () => {
    for (const length of [0, 1, 100, 127, 128, 129, 16_380, 16_384, 70_000, 2_200_000]) {
      const [metric] = decoded(encodedOf({ name: "a", type: typeOf("string(20)"), value: "ü".repeat(length) })).metrics;
      expect(metric?.value).toBe("ü".repeat(length));
    }
  });
});

describe("types", () => {
  it.each([
    ["int8", 1],
    ["int16", 2],
    ["int32", 3],
    ["int64", 4],
    ["uint8", 5],
    ["uint16", 6],
    ["uint32", 7],
    ["uint64", 8],
    ["float32", 9],
    ["float64", 10],
    ["bool", 11],
    ["string(8)", 12],
    ["int8[2]", 22],
    ["int16[2]", 23],
    ["int32[2]", 24],
    ["int64[2]", 25],
    ["uint8[2]", 26],
    ["uint16[2]", 27],
    ["uint32[2]", 28],
    ["uint64[2]", 29],
    ["float32[2x2]", 30],
    ["float64[2]", 31],
    ["bool[2]", 32],
    ["string(8)[2]", 33],
  ])("%s is the data type %i", (text, datatype) => {
    expect(typeOf(text).datatype).toBe(datatype);
  });

  it("packs arrays as Sparkplug 3.0 prints them", () => {
    expect(packArray("int8", [-23, 123]).toString("hex")).toBe("e97b");
    expect(packArray("int32", [123456789, 987654321]).toString("hex")).toBe("15cd5b07b168de3a");
    const bits = [false, false, true, true, false, true, false, false, true, true, false, true];
    expect(packArray("bool", bits).toString("hex")).toBe("0c00000034d0");
    expect(packArray("string", ["ABC", "hello"]).toString("hex")).toBe("4142430068656c6c6f00");
    expect(packArray("float32", [1.23, Number.NaN]).toString("hex")).toBe("a4709d3f0000c07f");
  });

  it("tells a value that its type cannot hold", () => {
    expect(valueProblem(typeOf("int16"), 3)).toBeUndefined();
    expect(valueProblem(typeOf("int16"), [3])).toMatch(/int16/);
    expect(valueProblem(typeOf("int64"), 3)).toMatch(/int64/);
    expect(valueProblem(typeOf("string(9)[2]"), ["a", "b\0c"])).toMatch(/NUL/);
    expect(valueProblem(typeOf("int16[2]"), 3)).toMatch(/array of int16/);
    expect(valueProblem(typeOf("int16[2]"), [3, "4"])).toMatch(/array of int16/);
  });
});
