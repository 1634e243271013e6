import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FaultError } from "../../src/model/fault.ts";
import { isCounted, parseAddress, withUris } from "./address.ts";

const parse = (text: string) => parseAddress(text, undefined).address;
const refusal = (text: string): unknown => {
  try {
    return parse(text);
  } catch (error) {
    return error;
  }
};

describe("parseAddress", () => {
  it.each([
    ["i=2258", 0, { type: "i", value: 2258 }, "i=2258"],
    ["ns=0;i=4294967295", 0, { type: "i", value: 4_294_967_295 }, "i=4294967295"],
    ["ns=2;s=Plant.Temp", 2, { type: "s", value: "Plant.Temp" }, "ns=2;s=Plant.Temp"],
    ['ns=3;s="DB"."values"[3];x=1', 3, { type: "s", value: '"DB"."values"[3];x=1' }, 'ns=3;s="DB"."values"[3];x=1'],
    [
      "ns=4;g=09087E75-8E5E-499B-954F-F2A9603DB28A",
      4,
      { type: "g", value: "09087e75-8e5e-499b-954f-f2a9603db28a" },
      "ns=4;g=09087e75-8e5e-499b-954f-f2a9603db28a",
    ],
    ["ns=1;b=M/RbKBsRVkePCePcx24oRA==", 1, { type: "b", value: "M/RbKBsRVkePCePcx24oRA==" }, "ns=1;b=M/RbKBsRVkePCePcx24oRA=="],
    [
      "nsu=http://example.com/plant;s=a",
      { uri: "http://example.com/plant" },
      { type: "s", value: "a" },
      "nsu=http://example.com/plant;s=a",
    ],
    ["nsu=urn:a%3Bb%25;i=1", { uri: "urn:a;b%" }, { type: "i", value: 1 }, "nsu=urn:a%3Bb%25;i=1"],
    ["  ns=2;s= spaced ", 2, { type: "s", value: " spaced " }, "ns=2;s= spaced%20"],
  ])("reads the node id %s", (text, namespace, id, canonical) => {
    expect(parse(text)).toEqual({ kind: "node", text: canonical, namespace, id });
  });

  it.each([
    [
      "/Objects/2:Plant/2:Temp",
      [
        [0, "Objects"],
        [2, "Plant"],
        [2, "Temp"],
      ],
      "/Objects/2:Plant/2:Temp",
    ],
    [
      "/0:Objects/3:a.b",
      [
        [0, "Objects"],
        [3, "a.b"],
      ],
      "/Objects/3:a.b",
    ],
    [
      "/Objects/nsu=http://example.com/a&b;Plant/nsu=urn:x%3By;2:Temp/&nsu=a;b",
      [
        [0, "Objects"],
        [{ uri: "http://example.com/a&b" }, "Plant"],
        [{ uri: "urn:x;y" }, "2:Temp"],
        [0, "nsu=a;b"],
      ],
      "/Objects/nsu=http://example.com/a&b;Plant/nsu=urn:x%3By;2&:Temp/&nsu=a;b",
    ],
    [
      "/Objects/2:a&/b&&c",
      [
        [0, "Objects"],
        [2, "a/b&c"],
      ],
      "/Objects/2:a&/b&&c",
    ],
    [
      "/Objects/12&:30",
      [
        [0, "Objects"],
        [0, "12:30"],
      ],
      "/Objects/12&:30",
    ],
  ])("reads the browse path %s", (text, elements, canonical) => {
    expect(parse(text)).toEqual({ kind: "path", text: canonical, elements: elements.map(([namespace, name]) => ({ namespace, name })) });
  });

  it.each([
    ["ns=65536;i=1", "0 to 65535"],
    ["i=4294967296", "4294967295"],
    ["i=abc", "number"],
    ["g=123", "GUID"],
    ["b=a", "Base64"],
    ["b= ", "Base64"],
    ["s=", "node id"],
    ["svr=1;i=1", "data source"],
    ["nsu=urn:a%20b;i=1", "%25"],
    ["Temp", "node id"],
    ["/Objects//x", "empty"],
    ["/", "empty"],
    ["/Objects/2:", "no name"],
    ["/Objects/a&", "&&"],
    [`/${Array(33).fill("a").join("/")}`, "32"],
  ])("refuses %s", (text, words) => {
    const error = refusal(text);
    expect(error).toBeInstanceOf(FaultError);
    expect(error).toMatchObject({ fault: "address_invalid" });
    expect((error as Error).message).toContain(words);
  });

  it.each([
    ["ns=2;i=5#Speed", "ns=2;i=5#Speed", [{ field: "Speed" }]],
    ["ns=2;i=5[2]", "ns=2;i=5#[2]", [{ places: [2] }]],
    ["ns=2;s=Axes#[2].Speed", "ns=2;s=Axes#[2].Speed", [{ places: [2] }, { field: "Speed" }]],
    ["ns=2;s=M#Rows[1,0]", "ns=2;s=M#Rows[1,0]", [{ field: "Rows" }, { places: [1, 0] }]],
    ["nsu=urn:x;s=A#[2:5]", "nsu=urn:x;s=A#[2:5]", [{ places: [{ from: 2, to: 5 }] }]],
    ["/Objects/2:a#B.C", "/Objects/2:a#B.C", [{ field: "B" }, { field: "C" }]],
    ["/Objects/nsu=http://x#y;a#B&.C", "/Objects/nsu=http://x#y;a#B&.C", [{ field: "B.C" }]],
  ])("takes a part of a value: %s", (text, canonical, select) => {
    expect(parse(text)).toMatchObject({ text: canonical, select });
  });

  it.each([
    ['ns=3;s="DB"."arr"[2]', '"DB"."arr"[2]', 'ns=3;s="DB"."arr"[2]'],
    ["ns=2;s=Tank%231", "Tank#1", "ns=2;s=Tank%231"],
    ["ns=2;s=100%25", "100%25", "ns=2;s=100%25"],
    ["ns=2;s=Speed%20", "Speed ", "ns=2;s=Speed%20"],
    ["ns=2;s=Speed ", "Speed ", "ns=2;s=Speed%20"],
    ["ns=2;s=a%20b", "a%20b", "ns=2;s=a%20b"],
    ["ns=2;s=a%2520", "a%20", "ns=2;s=a%2520"],
  ])("reads the string identifier of %s as %j, to the last space", (text, value, canonical) => {
    expect(parse(text)).toMatchObject({ text: canonical, id: { type: "s", value } });
    expect(parse(text)).not.toHaveProperty("select");
  });

  it.each(["/Objects/a&#b", "/Objects/a& ", "/Objects/a &/& "])("keeps what & escapes in a browse path: %s", (text) => {
    expect(parse(text)).toMatchObject({ text });
  });

  it.each([
    "ns=2;i=5#",
    "i=5[2",
    "i=5[]",
    "i=5[2:2]",
    "i=5[5:2]",
    "i=5[0:65535,1]",
    "i=5[1:2].a",
    "i=5#.a",
    "i=5#a..b",
    "ns=2;s=#a",
    "i=5[x]",
  ])("refuses the part %s, with a word on how to write one", (text) =>
    expect((refusal(text) as Error).message).toMatch(/#\[2|range|names no elements/),
  );

  it("takes a value's own type where none is configured", () => {
    expect(parseAddress("i=1", undefined).type).toEqual({ scalar: "auto" });
    expect(parseAddress("i=1", { scalar: "int16" }).type).toEqual({ scalar: "int16" });
  });

  it("means the same by the canonical form, and fails with faults only", () => {
    const near = fc.oneof(
      fc.string(),
      fc
        .tuple(
          fc.constantFrom(
            "ns=2;s=",
            "ns=2;s=a%20",
            "i=1#",
            "/a#b[1].",
            "ns=2;s=%2523#",
            "nsu=urn:x;s=",
            "/Objects/2:",
            "/Objects/nsu=urn:x;",
            "/nsu=",
            "i=",
            "ns=9;b=",
          ),
          fc.string(),
        )
        .map(([head, tail]) => head + tail),
    );
    fc.assert(
      fc.property(near, (text) => {
        const parsed = refusal(text);
        if (parsed instanceof Error) expect(parsed).toBeInstanceOf(FaultError);
        else {
          const again = parse((parsed as { text: string }).text);
          expect({ ...again, text: "" }).toEqual({ ...(parsed as object), text: "" });
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe("addresses that a server may renumber", () => {
  const LIST = ["http://opcfoundation.org/UA/", "urn:server", "http://example.com/a;b", null];

  it.each([
    ["ns=2;s=x", "nsu=http://example.com/a%3Bb;s=x"],
    ["ns=2;b=AAE=", "nsu=http://example.com/a%3Bb;b=AAE="],
    ["/Objects/2:Plant/1:x/2:a&/b", "/Objects/nsu=http://example.com/a%3Bb;Plant/1:x/nsu=http://example.com/a%3Bb;a&/b"],
  ])("are written with URIs: %s", (text, expected) => {
    expect(isCounted(parse(text))).toBe(true);
    expect(withUris(text, LIST)).toBe(expected);
    expect(isCounted(parse(expected))).toBe(false);
    expect(withUris(expected, LIST)).toBeUndefined();
  });

  it.each(["i=2258", "ns=1;s=x", "/Objects/Server", "nsu=urn:x;i=1"])("are not %s", (text) => {
    expect(isCounted(parse(text))).toBe(false);
    expect(withUris(text, LIST)).toBeUndefined();
  });

  it.each(["ns=3;s=x", "/Objects/9:x"])("are refused where the list does not have their namespace: %s", (text) => {
    expect(() => withUris(text, LIST)).toThrow(FaultError);
  });
});
