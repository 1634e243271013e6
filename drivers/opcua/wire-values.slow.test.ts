import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  all,
  array,
  bytes,
  dataValue,
  double,
  expandedNode,
  extension,
  f32,
  f64,
  i32,
  i64,
  int32,
  localized,
  node,
  qualified,
  str,
  text,
  ticks,
  u8,
  u16,
  u32,
  u64,
  variant,
  variantArray,
} from "../../test/support/opcua-wire/bytes.ts";
import { defineEnumeration, defineStructure, NOW, read, WireReader } from "../../test/support/opcua-wire/reader.ts";
import { BAD_SERVICE_UNSUPPORTED, type WireServer } from "../../test/support/opcua-wire/server.ts";

const wire = new WireReader();
let server: WireServer;
beforeEach(async () => {
  server = await wire.start();
});
afterEach(() => wire.end());

describe("structures", () => {
  it.each([
    ["Range", "i=886", all(f64(-1.5), f64(2.5)), '{"Low":-1.5,"High":2.5}'],
    [
      "EUInformation",
      "i=889",
      all(str("http://www.opcfoundation.org/UA/units/un/cefact"), i32(4_408_652), localized("°C"), localized("degree Celsius")),
      '{"NamespaceUri":"http://www.opcfoundation.org/UA/units/un/cefact","UnitId":4408652,"DisplayName":"°C","Description":"degree Celsius"}',
    ],
    [
      "Argument",
      "i=298",
      all(str("speed"), node("i=11"), i32(1), array([u32(3)]), localized("in mm/s")),
      '{"Name":"speed","DataType":"i=11","ValueRank":1,"ArrayDimensions":[3],"Description":"in mm/s"}',
    ],
    [
      "ServerStatusDataType",
      "i=864",
      all(
        i64(ticks(NOW)),
        i64(ticks(NOW)),
        u32(0),
        str("uri"),
        str("maker"),
        str("product"),
        str("1"),
        str("2"),
        i64(ticks(NOW)),
        u32(5),
        localized("bye"),
      ),
      '{"StartTime":"2026-11-18T11:06:40.000Z","CurrentTime":"2026-11-18T11:06:40.000Z","State":0,"BuildInfo":{"ProductUri":"uri","ManufacturerName":"maker","ProductName":"product","SoftwareVersion":"1","BuildNumber":"2","BuildDate":"2026-11-18T11:06:40.000Z"},"SecondsTillShutdown":5,"ShutdownReason":"bye"}',
    ],
    ["EnumValueType", "i=8251", all(i64(7n), localized("seven"), localized("")), '{"Value":7,"DisplayName":"seven","Description":""}'],
    ["OptionSet", "i=12765", all(bytes(Buffer.of(5)), bytes(Buffer.of(7))), '{"Value":"BQ==","ValidBits":"Bw=="}'],
    ["XVType", "i=12090", all(f64(1), f32(0.1)), '{"X":1,"Value":0.1}'],
  ])("of namespace 0 need no definition: %s", async (_, encoding, body, json) => {
    wire.put("ns=2;s=one", variant(22, extension(encoding, body)));
    server.answers.set("Browse", () => ({ fault: BAD_SERVICE_UNSUPPORTED }));
    expect(await read(await wire.open(), "ns=2;s=one", "ns=2;s=good")).toMatchObject([{ quality: "good", value: json }, { value: 1.5 }]);
    expect(server.count("Browse")).toBe(0);
  });

  const mine = (body: Buffer): void => wire.put("ns=2;s=mine", variant(22, extension("ns=2;i=11", body)));

  it.each([
    ["Byte", "i=3", u8(5), "5"],
    ["UInt16", "i=5", u16(5), "5"],
    ["UInt32", "i=7", u32(5), "5"],
    ["UInt64", "i=9", u64(2n ** 63n), "9223372036854775808"],
    ["Enumeration", "i=29", i32(-5), "-5"],
    ["OptionSet", "i=12755", all(bytes(Buffer.of(5)), bytes(Buffer.of(7))), '{"Value":"BQ==","ValidBits":"Bw=="}'],
  ])("with a set of options of %s have their other fields where they are", async (_, parent, bits, json) => {
    defineStructure(server, [
      ["Mask", "ns=2;i=20"],
      ["Count", "i=6"],
    ]);
    defineEnumeration(server, "ns=2;i=20", parent);
    mine(all(bits, i32(42)));
    expect(await read(await wire.open(), "ns=2;s=mine")).toMatchObject([{ value: `{"Mask":${json},"Count":42}` }]);
  });

  it.each([
    ["has bytes left over", all(i32(1), i32(2)), "4 bytes are left over"],
    ["ends before its definition does", u8(1), "4 bytes are wanted, 1 are left"],
  ])("whose body %s are a fault, and no value that looks right", async (_, body, words) => {
    defineStructure(server, [["Count", "i=6"]]);
    mine(body);
    expect(await read(await wire.open(), "ns=2;s=mine", "ns=2;s=good")).toMatchObject([
      { quality: "bad", fault: "device_error", detail: expect.stringContaining(words) },
      { value: 1.5 },
    ]);
  });

  it("whose type is on another server stay bytes: nothing of this server's is taken for it", async () => {
    defineStructure(server, [["Count", "i=6"]], expandedNode("ns=2;i=10", { server: 1 }));
    mine(i32(1));
    expect(await read(await wire.open(), "ns=2;s=mine")).toMatchObject([{ value: '{"encoding":"ns=2;i=11","body":"AQAAAA=="}' }]);
  });

  it("whose type is named by the URI of its namespace are looked up there", async () => {
    defineStructure(server, [["Count", "i=6"]], expandedNode("i=10", { uri: "urn:wire:plant" }));
    mine(i32(1));
    expect(await read(await wire.open(), "ns=2;s=mine")).toMatchObject([{ value: '{"Count":1}' }]);
  });

  it("whose definition cannot be taken apart stay bytes, beside good variables", async () => {
    defineStructure(server, [["Count", "i=6"]]);
    server.nodes.set("ns=2;i=10#23", dataValue({ value: variant(22, extension("i=122", u8(1))) }));
    mine(i32(1));
    expect(await read(await wire.open(), "ns=2;s=mine", "ns=2;s=good")).toMatchObject([
      { value: '{"encoding":"ns=2;i=11","body":"AQAAAA=="}' },
      { value: 1.5 },
    ]);
  });
});

describe("values", () => {
  it.each([26, 27, 28, 29, 30, 31])("of the reserved type %i are byte strings", async (type) => {
    wire.put("ns=2;s=one", variant(type, bytes(Buffer.of(0, 255))));
    wire.put("ns=2;s=many", variantArray(type, [bytes(Buffer.of(0, 255)), bytes(null)]));
    expect(await read(await wire.open(), "ns=2;s=one", "ns=2;s=many", "ns=2;s=good")).toMatchObject([
      { value: "AP8=", type: { scalar: "string" } },
      { value: ["AP8=", ""], type: { scalar: "string", count: 2 } },
      { value: 1.5 },
    ]);
  });

  it("of arrays of Variant are JSON, each as it is", async () => {
    const elements = [
      int32(-7),
      text("Öl"),
      double(0.5),
      variant(10, f32(0.1)),
      variantArray(6, [i32(1), i32(2)]),
      variantArray(6, [1, 2, 3, 4].map(i32), [2, 2]),
      variant(8, i64(-(2n ** 60n))),
      u8(0),
      variant(20, qualified(2, "a")),
      variant(22, extension("i=886", all(f64(0), f64(1)))),
    ];
    wire.put("ns=2;s=many", variantArray(24, elements));
    expect(await read(await wire.open(), "ns=2;s=many")).toMatchObject([
      {
        value: [
          "-7",
          '"Öl"',
          "0.5",
          "0.1",
          "[1,2]",
          '{"dimensions":[2,2],"values":[1,2,3,4]}',
          "-1152921504606846976",
          "null",
          '"2:a"',
          '{"Low":0,"High":1}',
        ],
        type: { scalar: "string", count: 10 },
      },
    ]);
  });

  it("keep time stamps of any year, and a time at the end of the scale is uncertain", async () => {
    const far = { value: double(2), sourceTime: ticks(Date.UTC(12_026, 0)) };
    server.nodes.set("ns=2;s=far", dataValue(far));
    server.nodes.set("ns=2;s=past", dataValue({ value: double(3), sourceTime: -(2n ** 62n) }));
    wire.put("ns=2;s=date", variant(13, i64(ticks(Date.UTC(12_026, 0)))));
    const session = await wire.open();
    for (let i = 0; i < 3; i++)
      expect(await read(session, "ns=2;s=far", "ns=2;s=past", "ns=2;s=good", "ns=2;s=date")).toEqual([
        { quality: "good", value: 2, sourceTime: Date.UTC(12_026, 0), type: { scalar: "float64" } },
        { quality: "good", value: 3, sourceTime: expect.any(Number), type: { scalar: "float64" } },
        { quality: "good", value: 1.5, sourceTime: NOW, type: { scalar: "float64" } },
        {
          quality: "uncertain",
          value: "9999-12-31T23:59:59.000Z",
          type: { scalar: "string" },
          doubt: { fault: "out_of_range", detail: expect.stringContaining("the server has no time") },
        },
      ]);
  });

  it("of a matrix whose dimensions are negative are that variable's fault", async () => {
    wire.put("ns=2;s=matrix", variantArray(6, [1, 2, 3, 4, 5, 6].map(i32), [-2, -3]));
    expect(await read(await wire.open(), "ns=2;s=matrix", "ns=2;s=good")).toMatchObject([{ fault: "device_error" }, { value: 1.5 }]);
  });
});
