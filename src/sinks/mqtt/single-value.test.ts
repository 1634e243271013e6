import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { layoutAndReadout } from "../../buffer/testing/readouts.ts";
import { FAULTS } from "../../model/fault.ts";
import type { LayoutVariable } from "../../model/layout.ts";
import type { Reading, Readout } from "../../model/value.ts";
import type { SinkBatch } from "../sink.ts";
import { type MessageOptions, writeBatch } from "./message.ts";
import { PayloadPool } from "./payload-pool.ts";
import { type SinglePayload, writeSingles } from "./single-value.ts";
import { batchOf, good, layoutOf, readoutOf, TIME, variableOf } from "./testing.ts";

const packed = (batch: SinkBatch, options: MessageOptions) => writeBatch(batch, options, new PayloadPool());

const MAX = 1_000_000;
const all = (batch: SinkBatch, payload: SinglePayload, maxBytes = MAX) => [...writeSingles(batch, { payload, maxBytes })];
const one = (payload: SinglePayload, variable: LayoutVariable, reading: Reading, more: Partial<Readout> = {}) => {
  const [message] = all(batchOf(layoutOf(variable), readoutOf([reading], more)), payload);
  return { text: String(message?.payload), properties: message?.userProperties };
};

const TEMP = variableOf("temp", "float32", { unit: "°C" });
const COUNT = variableOf("count", "uint64");
const SPEED = variableOf("speed", "uint16", { unit: "1/min" });
const BAD: Reading = { quality: "bad", fault: "not_found", detail: "exception 2 at holding:12" };

describe("the page shows", () => {
  const page = readFileSync(new URL("./README.md", import.meta.url), "utf8");

  const lines = new Set(page.split("\n"));

  test.each([
    ["a good value", TEMP, { ...good(21.5), sourceTime: TIME - 23 }, {}],
    ["a 64-bit integer", COUNT, good(18446744073709551615n), {}],
    ["a bad value", SPEED, BAD, {}],
    ["an uncertain value stamped by a clock that was wrong", TEMP, { quality: "uncertain", value: 21.5 }, { clockSynced: false }],
  ] as const)("%s as value has it", (_, variable, reading, more) => {
    const { text } = one("value", variable, reading as Reading, more);
    expect(lines.has(text), text).toBe(true);
  });

  test.each<[string, LayoutVariable, Reading]>([
    ["a good value", TEMP, good(21.5)],
    ["a 64-bit integer", COUNT, good(18446744073709551615n)],
    ["a text", variableOf("order", "string(20)"), good('4711 "B"')],
    ["an array", variableOf("zones", "int16[3]"), good([1, 2, 3])],
    ["a bad value", SPEED, BAD],
  ])("%s as raw has it", (_, variable, reading) => {
    const { text, properties = {} } = one("raw", variable, reading);
    const words = Object.entries(properties).map(([name, value]) => `${name}=${value}`);
    const row = `| ${text === "" ? "(empty)" : `\`${text}\``} | ${words.map((word) => `\`${word}\``).join(" ")} |`;
    expect(lines.has(row), row).toBe(true);
  });

  test("the readout of an envelope", () => {
    const readings = [{ quality: "uncertain", value: 21.5, sourceTime: TIME - 23 } as const, good(18446744073709551615n), BAD];
    const batch = batchOf(layoutOf(TEMP, COUNT, SPEED), readoutOf(readings));
    const options = { int64: "number", maxBytes: MAX, partBytes: MAX, splitBytes: MAX } as const;
    const { messages } = packed({ ...batch, id: "3f2a9c01-118-127" }, options);
    const shown = /```json\n(\{\n {2}"v": 1,\n {2}"id": "3f2a9c01-118-127"[^`]*)```/.exec(page)?.[1] ?? "";
    expect(
      shown
        .replaceAll(/\n */g, "")
        .replaceAll(/([{,:[]) /g, "$1")
        .replaceAll(/ ([}\]])/g, "$1"),
    ).toBe(String(messages[0]?.payload).replace(/"source_id":"[^"]*"/, '"source_id":"…"'));
  });

  test("every word of quality, fault and clock", () => {
    for (const word of ["good", "uncertain", "bad", ...FAULTS, "synchronised", "corrected", "unsynchronised"])
      expect(page.includes(`\`${word}\``), word).toBe(true);
  });
});

test("one message for each reading that is published, in order, with its place in batch and layout", () => {
  const layout = layoutOf(SPEED, variableOf("x", "uint16", { exploration: true }), TEMP);
  const messages = all(batchOf(layout, readoutOf([good(1), good(2), good(0.1)]), readoutOf([good(3), undefined, BAD])), "value");
  expect(messages.map(({ place, values, fits }) => [place, values, fits])).toEqual([0, 2, 0, 2].map((place) => [place, 1, true]));
  expect(messages.map(({ parts }) => parts)).toEqual(
    [
      [0, 0],
      [0, 2],
      [1, 0],
      [1, 2],
    ].map(([readout = 0, from = 0]) => [{ readout, from, to: from + 1 }]),
  );
  expect(messages.map(({ payload }) => JSON.parse(String(payload)).value)).toEqual([1, 0.1, 3, null]);
});

test("what is read comes back: the value in its type, its quality, and nothing beside it", () => {
  fc.assert(
    fc.property(layoutAndReadout, ({ layout, readout }) => {
      for (const { place, payload, userProperties } of all(batchOf(layout, readout), "value")) {
        const reading = readout.readings[place] as Reading;
        const found = JSON.parse(String(payload));
        const { scalar, count } = layout.variables[place]?.type ?? {};
        expect(userProperties).toBeUndefined();
        expect(found.q).toBe(reading.quality);
        if (reading.quality === "bad") expect(found).toMatchObject({ value: null, fault: reading.fault });
        else if (scalar === "int64" || scalar === "uint64")
          expect(found.value).toEqual(count === undefined ? String(reading.value) : (reading.value as readonly bigint[]).map(String));
        else if (scalar !== "float32" && scalar !== "float64") expect(found.value).toEqual(reading.value);
        else if (count === undefined) expect(Math.fround(found.value)).toBe(Math.fround(Number(reading.value)));
      }
    }),
  );
});

test("raw has the same quality and time as value, as properties, and its text reads back", () => {
  fc.assert(
    fc.property(layoutAndReadout, ({ layout, readout }) => {
      const batch = { ...batchOf(layout, readout), backlog: true };
      const values = all(batch, "value");
      for (const [i, { place, payload, userProperties = {} }] of all(batch, "raw").entries()) {
        const { value, ...rest } = JSON.parse(String(values[i]?.payload));
        const { unit: _, ...words } = rest;
        const shown = Object.entries(words).flatMap(([name, text]) => (text === null ? [] : [[name, String(text)]]));
        expect(userProperties).toEqual(Object.fromEntries(shown));
        const { scalar, count } = layout.variables[place]?.type ?? {};
        if (value === null) expect(payload).toHaveLength(0);
        else if (count === undefined && typeof value === "string") expect(String(payload)).toBe(value.toWellFormed());
        else if (scalar !== "string" || count !== undefined) expect(JSON.parse(String(payload))).toEqual(value);
      }
    }),
  );
});

test("NaN and the infinities are bad, and a time that no calendar has is left out", () => {
  expect(JSON.parse(one("value", TEMP, good(Number.NaN), { time: 1e300 }).text)).toMatchObject({
    value: null,
    ts: null,
    q: "bad",
    fault: "not_a_number",
  });
  const doubt = { fault: "not_a_number" as const, detail: "element 1 is NaN" };
  const array: Reading = { quality: "uncertain", value: [1, Number.NaN], doubt };
  expect(one("raw", TEMP, array, { time: 1e300 })).toMatchObject({ text: "[1,null]", properties: { q: "uncertain", ...doubt } });
  expect(JSON.parse(one("value", TEMP, array, { time: 1e300 }).text)).toMatchObject({ value: [1, null], q: "uncertain", ...doubt });
  expect(one("raw", TEMP, good(1), { time: 1e300 }).properties).not.toHaveProperty("ts");
});

test("a device's words become properties that a broker takes: without NUL, well-formed, of a bounded length", () => {
  const detail = `a\0b\ud800${"x".repeat(100_000)}`;
  const { properties = {} } = one("raw", { ...TEMP, unit: "\0" }, { quality: "bad", fault: "device_error", detail });
  expect(properties["detail"]).toMatch(/^a\ufffdb\ufffdx+$/);
  expect(properties["detail"]?.length).toBeLessThanOrEqual(1000);
  expect(properties["unit"]).toBe("\ufffd");
});

test("a value fits or not with all its bytes, properties included", () => {
  const text = variableOf("t", "string(500)", { unit: "u".repeat(40) });
  const batch = batchOf(layoutOf(text), readoutOf([good("é".repeat(100))]));
  for (const payload of ["value", "raw"] as const) {
    const least = Array.from({ length: 600 }, (_, bytes) => bytes).find((bytes) => all(batch, payload, bytes)[0]?.fits) ?? 0;
    expect(least).toBeGreaterThan(payload === "raw" ? 200 + 40 + 24 : 200 + 40);
    expect(all(batch, payload, least - 1)[0]?.fits).toBe(false);
  }
});
