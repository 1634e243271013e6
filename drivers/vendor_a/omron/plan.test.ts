import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { atOnce } from "../../../src/base/timer.ts";
import type { Scalar } from "../../../src/model/value.ts";
import type { Point } from "../../driver.ts";
import { type CipAddress, parseTag } from "../address.ts";
import { type CipLimits, maxDataBytes } from "../plan.ts";
import { settingsSchema } from "../settings.ts";
import { locateVariable } from "./locate.ts";
import { answerRoom, planVariables, type VariableRead } from "./plan.ts";
import { BOOL, ELEMENTARY, type Shape, STRING } from "./types.ts";

const SETTINGS = settingsSchema.parse({});
const COUNT = 300;
const FIRST = 7;
const array = (code: number, count = COUNT, bytes = ELEMENTARY.get(code)?.bytes ?? 0): Shape => ({
  code,
  bytes,
  dimensions: [count],
  firsts: [FIRST],
});
const SHAPES: Readonly<Record<string, Shape>> = {
  Total: { code: 0xc4, bytes: 4, dimensions: [], firsts: [] },
  Counts: array(0xc4),
  Bytes: array(0xc6),
  Flags: array(BOOL),
  Names: array(STRING, 20, 16),
  Grid: { ...array(0xc3), dimensions: [10, 30], firsts: [1, 0] },
};

const limits = (messageBytes: number, maxPoints = 65_536): CipLimits => ({
  maxPoints,
  maxBytes: maxDataBytes(messageBytes),
  inFlight: 1,
  messageBytes,
  maxItems: 1,
});

function pointOf(text: string, index: number): Point<CipAddress> {
  const { address, type } = parseTag(text, undefined, SETTINGS);
  const [name] = address.steps;
  const shape = SHAPES[String(name)];
  if (!shape) throw new Error(`no variable ${text}`);
  const located = locateVariable(address, type, { path: [String(name)], name: String(name), shape, steps: address.steps.slice(1) });
  return { index, address: { ...address, variable: located.place }, type: located.type };
}

const plan = (points: readonly Point<CipAddress>[], own = limits(500), apart?: ReadonlySet<Point>): VariableRead[] =>
  atOnce(planVariables(points, own, apart));
const names = (texts: readonly string[], own = limits(500)): string[] => plan(texts.map(pointOf), own).map(({ variable }) => variable.name);

describe("a plan of variables", () => {
  it.each([
    ["elements that lie together", ["Counts[9]", "Counts[7]", "Counts[8].3"], ["Counts[7..9]"]],
    ["a gap that costs less than a request", ["Counts[7]", "Counts[39]"], ["Counts[7..39]"]],
    ["a gap that costs more", ["Counts[7]", "Counts[60]"], ["Counts[7]", "Counts[60]"]],
    ["parts that overlap", ["Counts[10]{20}", "Counts[15]{20}"], ["Counts[10..34]"]],
    ["elements over the end of a row", ["Grid[1,29]", "Grid[2,0]"], ["Grid[1,29] and 1 more elements"]],
    ["a BOOL and its neighbour", ["Flags[7]", "Flags[8]"], ["Flags[7..8]"]],
    ["bits of one number", ["Total.3", "Total", "Total.31"], ["Total"]],
    ["a whole array and an element of it, which come in other forms", ["Flags", "Flags[7]"], ["Flags", "Flags[7]"]],
    ["texts of an array", ["Names[7]", "Names[8]", "Names[7]"], ["Names[7]", "Names[8]"]],
  ])("joins %s only where that is shorter", (_, texts, expected) => expect(names(texts)).toEqual(expected));

  it("begins a request with a point that has to be apart, and takes no more points than allowed", () => {
    const points = ["Counts[7]", "Counts[8]", "Counts[9]"].map(pointOf);
    expect(plan(points, limits(500), new Set(points.slice(1, 2))).map(({ variable }) => variable.name)).toEqual([
      "Counts[7]",
      "Counts[8..9]",
    ]);
    expect(plan(points, limits(500, 2)).map(({ variable }) => variable.name)).toEqual(["Counts[7..8]", "Counts[9]"]);
  });

  it("refuses what was not looked up", () => {
    const { address, type } = parseTag("Total", undefined, SETTINGS);
    expect(() => plan([{ index: 0, address, type }])).toThrow(TypeError);
  });

  const index = fc.integer({ min: FIRST, max: FIRST + COUNT - 12 });
  const texts = fc.oneof(
    fc
      .tuple(fc.constantFrom("Counts", "Bytes", "Flags"), index, fc.integer({ min: 1, max: 10 }))
      .map(([name, at, n]) => `${name}[${at}]{${n}}`),
    fc.tuple(fc.constantFrom("Counts", "Bytes", "Flags"), index).map(([name, at]) => `${name}[${at}]`),
    fc.tuple(fc.constantFrom("Counts", "Bytes"), index, fc.nat(7)).map(([name, at, bit]) => `${name}[${at}].${bit}`),
    fc.tuple(fc.integer({ min: 1, max: 10 }), fc.nat(29)).map(([row, column]) => `Grid[${row},${column}]`),
    fc.constantFrom("Total", "Total.5", "Counts", "Flags", "Bytes", "Grid"),
    fc.integer({ min: FIRST, max: 20 }).map((at) => `Names[${at}]`),
  );

  it("has each point once, within what an answer has room for, whatever their order (property)", () => {
    fc.assert(
      fc.property(
        fc.array(texts, { minLength: 1, maxLength: 60 }),
        fc.constantFrom(100, 472, 502, 1992),
        fc.integer({ min: 1, max: 30 }),
        (some, bytes, most) => {
          const points = some.map(pointOf);
          const own = limits(bytes, most);
          const reads = plan(points, own);
          expect(reads.flatMap((read) => read.points.map((point) => point.index)).sort((a, b) => a - b)).toEqual(points.map((_, i) => i));
          for (const { points: together, variable } of reads) {
            expect(together.length).toBeLessThanOrEqual(most);
            const asked = together.map(({ address }) => address.variable?.count ?? 1);
            if (variable.bytes > answerRoom(bytes)) expect(Math.max(...asked)).toBe(variable.elements);
          }
          const shown = (all: readonly VariableRead[]) =>
            all.map(({ variable, points: together }) => [variable.name, together.map((point) => point.index)]);
          expect(shown(plan(points.toReversed(), own))).toEqual(shown(reads));
        },
      ),
      { numRuns: 300 },
    );
  });

  /** The value of an element: its number from the first one on. */
  const elementValue = (name: string, at: number): Scalar =>
    name === "Flags" ? at % 3 === 0 : name === "Bytes" ? at % 251 : at * 1000 - 70_000;
  /** The data that a controller sends for a read, by its form. */
  function answerTo({ variable: { name, shape, form, start = 0, elements, bytes } }: VariableRead): Buffer {
    const [array = ""] = name.split("[");
    const data = Buffer.alloc(bytes);
    for (let i = 0; i < elements; i++) {
      const value = elementValue(array, start + i);
      if (typeof value === "number") data.writeIntLE(value > 127 && shape.bytes === 1 ? value - 256 : value, i * shape.bytes, shape.bytes);
      else if (form === "whole") data[i >> 3] = (data[i >> 3] ?? 0) | (Number(value) << (i & 7));
      else data[form === "row" ? i : i * 2] = Number(value);
    }
    return data;
  }

  it("decodes each point out of the answer that the form of its request has (property)", () => {
    const elements = texts.filter((text) => /^(Counts|Bytes|Flags)/.test(text));
    fc.assert(
      fc.property(fc.array(elements, { minLength: 1, maxLength: 40 }), fc.constantFrom(100, 502, 1992), (some, bytes) => {
        for (const read of plan(some.map(pointOf), limits(bytes))) {
          const data = answerTo(read);
          for (const [i, { index: at, address }] of read.points.entries()) {
            const [, name = "", first = String(FIRST), bit, count] =
              /^(\w+)(?:\[(\d+)\])?(?:\.(\d+))?(?:\{(\d+)\})?$/.exec(some[at] ?? "") ?? [];
            const from = Number(first) - FIRST;
            const all = count === undefined && !(some[at] ?? "").includes("[") ? COUNT : count;
            const own = (n: number) =>
              bit === undefined ? elementValue(name, n) : ((Number(elementValue(name, n)) >> Number(bit)) & 1) === 1;
            const expected = all === undefined ? own(from) : Array.from({ length: Number(all) }, (_, n) => own(from + n));
            const reading = read.decoders[i]?.(data, read.offsets[i] ?? 0, data.length, { quality: "good", value: 0 });
            expect([some[at], address.steps.length, reading]).toEqual([
              some[at],
              address.steps.length,
              { quality: "good", value: expected },
            ]);
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});
