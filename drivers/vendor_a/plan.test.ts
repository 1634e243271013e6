import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { atOnce } from "../../src/base/timer.ts";
import type { Point } from "../driver.ts";
import { type CipAddress, parseTag } from "./address.ts";
import { type KnownSymbol, locate } from "./locate.ts";
import { type CipLimits, type CipRead, describeRead, maxDataBytes, planSteps } from "./plan.ts";
import { settingsSchema } from "./settings.ts";
import type { MemberType, Structure } from "./types.ts";

const SETTINGS = settingsSchema.parse({});
const plan = (...of: Parameters<typeof planSteps>): CipRead[] => atOnce(planSteps(...of));

const INNER: Structure = {
  id: 0x201,
  name: "Inner",
  handle: 0x2201,
  bytes: 16,
  members: ["A", "B", "C", "D"].map((name, i) => ({ name, offset: i * 4, type: { code: 0xc4 }, isHidden: false })),
};
const WIDE: Structure = {
  id: 0x202,
  name: "Wide",
  handle: 0x2202,
  bytes: 416,
  members: [
    { name: "Speed", offset: 0, type: { code: 0xca }, isHidden: false },
    { name: "On", offset: 4, type: { code: 0xc1 }, bit: 3, isHidden: false },
    { name: "Values", offset: 8, type: { code: 0xc4 }, count: 98, isHidden: false },
    { name: "Inner", offset: 400, type: { structure: INNER }, isHidden: false },
  ],
};
const symbol = (name: string, type: MemberType, ...dimensions: number[]): KnownSymbol => ({ name, type, dimensions });
const SYMBOLS = [
  ...Array.from({ length: 1000 }, (_, i) => symbol(`Tag_${String(i).padStart(4, "0")}`, { code: 0xc4 })),
  symbol("Arr", { code: 0xc4 }, 2000),
  symbol("Matrix", { code: 0xc3 }, 10, 10),
  symbol("Bits", { code: 0xd3, isBits: true }, 10),
  symbol("Inner", { structure: INNER }),
  symbol("Inners", { structure: INNER }, 50),
  symbol("Wide", { structure: WIDE }),
];
const byName = new Map(SYMBOLS.map((one) => [one.name, one]));

function pointOf(text: string, index: number): Point<CipAddress> {
  const { address, type } = parseTag(text, undefined, SETTINGS);
  const found = byName.get(String(address.steps[0]));
  if (!found) throw new Error(`no symbol ${text}`);
  const located = locate(address, type, found);
  return { index, address: { ...address, place: located.place }, type: located.type };
}

const limits = (messageBytes: number, more: Partial<CipLimits> = {}): CipLimits => ({
  maxPoints: 65_536,
  maxBytes: maxDataBytes(messageBytes),
  inFlight: 1,
  messageBytes,
  maxItems: 65_536,
  ...more,
});

const items = (requests: readonly CipRead[]): string[] => requests.flatMap((request) => request.items.map(({ name }) => name));
const planned = (texts: readonly string[], own: CipLimits = limits(4000), apart: readonly number[] = []): CipRead[] => {
  const points = texts.map(pointOf);
  return plan(points, own, new Set(apart.flatMap((at) => points[at] ?? [])));
};

describe("the plan", () => {
  it.each([
    ["neighbours of an array", ["Arr[3]", "Arr[1]", "Arr[2]"], ["Arr[1..3]"]],
    ["a gap that is shorter than another item", ["Arr[1]", "Arr[5]"], ["Arr[1..5]"]],
    ["a gap that is longer", ["Arr[1]", "Arr[50]"], ["Arr[1]", "Arr[50]"]],
    ["parts that overlap", ["Arr[1]{10}", "Arr[5]{10}", "Arr[3].7"], ["Arr[1..14]"]],
    ["neighbours in a matrix", ["Matrix[1,9]", "Matrix[2,0]"], ["Matrix[1,9] and 1 more elements"]],
    ["bits of one array", ["Bits[1]", "Bits[30]", "Bits[40]"], ["Bits[0..1]"]],
    ["a tag that is asked for twice", ["Tag_0001", "Tag_0001.3"], ["Tag_0001"]],
    ["many members of a structure", ["Inner.A", "Inner.B", "Inner.D"], ["Inner"]],
    ["one member of a structure", ["Wide.Speed"], ["Wide.Speed"]],
    ["few members of a large structure", ["Wide.Speed", "Wide.On"], ["Wide.Speed", "Wide.On"]],
    ["members of a structure in a structure", ["Wide.Inner.A", "Wide.Inner.B"], ["Wide.Inner"]],
    ["structures of an array", ["Inners[4].A", "Inners[4].B", "Inners[5].C", "Inners[5].D"], ["Inners[4..5]"]],
    ["a structure and its members", ["Inner", "Inner.A"], ["Inner"]],
  ])("joins %s where that is shorter", (_, texts, names) => {
    expect(items(planned(texts))).toEqual(names);
  });

  it("reads a structure by its members once one of them is apart", () => {
    expect(items(planned(["Inner.A", "Inner.B", "Inner.D"], limits(4000), [1]))).toEqual(["Inner.A", "Inner.B", "Inner.D"]);
    expect(items(planned(["Arr[1]", "Arr[2]", "Arr[3]"], limits(4000), [1]))).toEqual(["Arr[1]", "Arr[2..3]"]);
  });

  it("knows where a value is in what is read", () => {
    const [request] = planned(["Arr[3]", "Arr[1].9", "Inner.A", "Inner.B", "Inner.D", "Bits[40]"]);
    const places = request?.points.map(({ index }, i) => [index, request.offsets[i]]);
    expect(places).toEqual([
      [1, 1],
      [0, 8],
      [5, 1],
      [2, 0],
      [3, 4],
      [4, 12],
    ]);
    expect(request?.items.map(({ firstPoint, points, bytes }) => [firstPoint, points, bytes])).toEqual([
      [0, 2, 12],
      [2, 1, 4],
      [3, 3, 16],
    ]);
  });

  it.each([4000, 502, 472])("takes no more requests of %s bytes than a thousand scattered tags need", (messageBytes) => {
    const texts = Array.from({ length: 1000 }, (_, i) => `Tag_${String((i * 377) % 1000).padStart(4, "0")}`);
    // Offset, service and length, the symbol and its padding, count; a reply is shorter.
    const most = Math.floor((messageBytes - 8) / (2 + 2 + 10 + 2));
    expect(planned(texts, limits(messageBytes))).toHaveLength(Math.ceil(1000 / most));
  });

  it("puts what no answer has room for alone, and one tag in each request where packets are not taken", () => {
    const large = planned(["Tag_0001", "Arr", "Tag_0002"]);
    expect(large.map((request) => request.items.map(({ name }) => name))).toEqual([["Tag_0001", "Tag_0002"], ["Arr[0..1999]"]]);
    expect(planned(["Tag_0001", "Tag_0002", "Arr[1]", "Arr[2]"], limits(500, { maxItems: 1 }))).toHaveLength(3);
  });

  it("has every point once, within the limits, whatever the order", () => {
    const texts = fc.oneof(
      fc.nat(999).map((i) => `Tag_${String(i).padStart(4, "0")}`),
      fc.tuple(fc.nat(1990), fc.integer({ min: 1, max: 10 })).map(([i, n]) => `Arr[${i}]{${n}}`),
      fc.tuple(fc.nat(49), fc.constantFrom("", ".A", ".B", ".C.3")).map(([i, member]) => `Inners[${i}]${member}`),
      fc.constantFrom("Wide.Speed", "Wide.On", "Wide.Values[7]", "Wide.Inner.C", "Wide.Inner"),
      fc.nat(319).map((i) => `Bits[${i}]`),
    );
    fc.assert(
      fc.property(
        fc.array(texts, { minLength: 1, maxLength: 80 }),
        fc.constantFrom(502, 1000, 4000),
        fc.integer({ min: 1, max: 40 }),
        (some, bytes, most) => {
          const points = some.map(pointOf);
          const own = limits(bytes, { maxPoints: most });
          const requests = plan(points, own);
          expect(requests.flatMap((request) => request.points.map(({ index }) => index)).sort((a, b) => a - b)).toEqual(
            points.map((_, i) => i),
          );
          for (const request of requests) {
            const { items: asked } = request;
            expect(request.points.length).toBeLessThanOrEqual(most);
            if (asked.length === 1) continue;
            expect(asked.reduce((sum, item) => sum + 2 + item.request.length, 8)).toBeLessThanOrEqual(bytes);
            expect(asked.reduce((sum, item) => sum + 2 + 4 + (item.handle === 0 ? 2 : 4) + item.bytes, 6)).toBeLessThanOrEqual(bytes);
          }
          expect(plan(points.toReversed(), own).map(describeRead)).toEqual(requests.map(describeRead));
        },
      ),
      { numRuns: 200 },
    );
  });

  it("refuses what was not looked up", () => {
    const { address, type } = parseTag("Tag", undefined, SETTINGS);
    expect(() => plan([{ index: 0, address, type }], limits(500))).toThrow(TypeError);
  });

  it("names a request in short", () => {
    const [request] = planned(["Tag_0001", "Tag_0002", "Tag_0003", "Tag_0004", "Tag_0005"]);
    expect(request && describeRead(request)).toBe("Tag_0001, Tag_0002, Tag_0003 and 2 more tags");
    expect(describeRead({ items: [{ name: `${"a".repeat(40)}.${"b".repeat(40)}` }] })).toHaveLength(48);
  });
});
