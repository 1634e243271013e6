import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DETAILS } from "../../src/model/details.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import { parseDataType } from "../../src/model/value.ts";
import { anyText } from "../../test/support/any-text.ts";
import type { Point } from "../driver.ts";
import { type GatewayAddress, parseAddress } from "./address.ts";
import { Doubts } from "./doubts.ts";
import driver from "./driver.ts";
import { readBody } from "./frames.ts";
import { answerBytes, describeRead, type GatewayLimits, plan } from "./plan.ts";

const LIMITS: GatewayLimits = { maxPoints: 1000, maxBytes: 1_000_000, inFlight: 1, maxRequestBytes: 1_000_000 };
const pointsOf = (...items: readonly string[]): Point<GatewayAddress>[] =>
  items.map((item, index) => ({ index, address: { item }, type: { scalar: "float64" } }));
const shape = (limits: Partial<GatewayLimits>, points: readonly Point<GatewayAddress>[], apart?: ReadonlySet<Point>) =>
  plan(points, { ...LIMITS, ...limits }, apart).map((request) => request.points.map(({ index }) => index));

describe("plan", () => {
  it("takes as many as fit, by number, by the bytes of the request and of the answer", () => {
    const points = pointsOf("a", "b", "c", "d", "e");
    expect(shape({}, points)).toEqual([[0, 1, 2, 3, 4]]);
    expect(shape({ maxPoints: 2 }, points)).toEqual([[0, 1], [2, 3], [4]]);
    expect(shape({ maxRequestBytes: 308 }, points)).toEqual([[0, 1], [2, 3], [4]]);
    expect(shape({ maxBytes: 600 }, points)).toEqual([[0, 1], [2, 3], [4]]);
    expect(shape({ maxBytes: 1 }, points)).toEqual([[0], [1], [2], [3], [4]]);
    expect(shape({}, points, new Set(points.filter(({ index }) => index === 1 || index === 4)))).toEqual([[0], [1, 2, 3], [4]]);
  });

  it("makes no request longer than the gateway takes", () => {
    fc.assert(
      fc.property(fc.array(anyText({ minLength: 1, maxLength: 200 }), { minLength: 1, maxLength: 50 }), (items) => {
        for (const { points } of plan(pointsOf(...items), { ...LIMITS, maxRequestBytes: 4000 })) {
          const body = readBody(
            "x".repeat(64),
            points.map(({ address }) => address.item),
            600_000,
          );
          expect(Buffer.byteLength(`{"id":9007199254740991,${body}`)).toBeLessThanOrEqual(4000);
        }
      }),
      { numRuns: 25 },
    );
  });

  it("counts arrays and texts for what they are", () => {
    const bytes = (type: string) =>
      answerBytes({ points: [{ index: 0, address: { item: "a" }, type: parseDataType(type) ?? { scalar: "auto" } }] });
    expect(bytes("float64[1000]")).toBeGreaterThan(20_000);
    expect(bytes("string")).toBeGreaterThan(bytes("float64"));
  });

  it("names a request in one line, however strange the names are", () => {
    expect(describeRead({ points: pointsOf("Press.Force") })).toBe("Press.Force");
    expect(describeRead({ points: pointsOf("a\u2028b", "c", "d".repeat(1000)) }).length).toBeLessThan(200);
  });
});

describe("addresses", () => {
  it.each(["Press.Force", "[Plc1]N7:0", "Channel1.Device 1.Größe", "@Pvi/LN1", "a".repeat(1024), " padded "])("takes %j", (text) => {
    expect(parseAddress(text, undefined)).toEqual({ address: { item: text.trim() }, type: { scalar: "auto" } });
  });
  it.each(["", "  ", "a\nb", "a\tb", "\u0000", "a\u0085", "\ud800", "a".repeat(1025)])("refuses %j", (text) => {
    expect(() => parseAddress(text, undefined)).toThrow(expect.objectContaining({ fault: "address_invalid" }));
  });
});

describe("doubts", () => {
  it("tells of each quality, and forgets what is well again", () => {
    const doubts = new Doubts();
    for (const item of ["a", "b", "c", "d"]) doubts.note(item, 0x44);
    doubts.note("e", 0xd8);
    doubts.note("f", 0x08);
    expect(textsOf(doubts.warnings())).toEqual([
      "OPC quality 0x0044 (uncertain, last usable value): a, b, c and 1 more",
      "OPC quality 0x00D8 (good, local override): e",
    ]);
    for (const item of ["a", "b", "c", "d"]) doubts.note(item, 0xc0);
    doubts.note("e", 0x00);
    expect(textsOf(doubts.warnings())).toEqual([]);
  });

  it("holds a bounded number", () => {
    const doubts = new Doubts();
    for (let i = 0; i < 5000; i++) doubts.note(`item ${i}`, 0x40);
    expect(textsOf(doubts.warnings())).toEqual(["OPC quality 0x0040 (uncertain): item 0, item 1, item 2 and 997 more"]);
  });
});

it("warns of a connection that anyone can read along, but not on this machine", () => {
  const warnings = (host: string, local: object) =>
    textsOf(
      driver.warningsOf?.(
        DETAILS.vendor_gateway.read.parse({ type: "vendor_gateway", host, port: 7000, protocol_details: { protocol: "PVI", path: "p" } }),
        driver.settings.parse(local),
      ),
    );
  expect(warnings("10.0.0.7", {})).toEqual(["security is `none`: anyone on the network can read along and change what is read"]);
  expect(warnings("10.0.0.7", { security: "psk" })).toEqual([]);
  expect(warnings("127.0.0.1", {})).toEqual([]);
});
