import fc from "fast-check";
import { BinaryStream } from "node-opcua-binary-stream";
import {
  DataType,
  DataValue,
  LocalizedText,
  NodeId,
  QualifiedName,
  ReadResponse,
  StatusCodes,
  Variant,
  VariantArrayType,
} from "node-opcua-client";
import { describe, expect, it } from "vitest";
import { formatDataType, parseDataType, type Reading } from "../../src/model/value.ts";
import { READ, takeAnswer } from "./answers.ts";
import { BinaryReader, type ExtensionBody, type RawValue } from "./binary.ts";
import { jsonText } from "./structures.ts";
import { type ToJson, toReading } from "./values.ts";

/** node-opcua is the witness: what it encodes, the reader has to take apart. */
function encoded(value: ConstructorParameters<typeof DataValue>[0]): RawValue {
  const stream = new BinaryStream(100_000);
  new DataValue(value).encode(stream);
  const reader = new BinaryReader(stream.buffer.subarray(0, stream.length));
  const raw = reader.dataValue();
  expect(reader.left).toBe(0);
  return raw;
}
const json = (value: unknown) => jsonText(value, ({ encoding }: ExtensionBody) => ({ encoding }));
const reading = (value: ConstructorParameters<typeof DataValue>[0], type?: string): Reading =>
  toReading(
    encoded(value),
    type === undefined ? { scalar: "auto" } : (parseDataType(type) ?? { scalar: "auto" }),
    json,
    (status) => `status ${status.toString(16)}`,
  );
const scalar = (dataType: DataType, value: unknown, type?: string) =>
  reading({ value: new Variant({ dataType, value, arrayType: VariantArrayType.Scalar }) }, type);
const array = (dataType: DataType, value: unknown, dimensions?: number[], type?: string) =>
  reading(
    {
      value: new Variant({
        dataType,
        value,
        arrayType: dimensions ? VariantArrayType.Matrix : VariantArrayType.Array,
        ...(dimensions && { dimensions }),
      }),
    },
    type,
  );

/** As no library would encode it: six Int32 and these dimensions. */
function matrixOf(dimensions: readonly number[], length = 6): RawValue {
  const bytes = Buffer.alloc(6 + 4 * length + 4 + 4 * dimensions.length);
  bytes.writeUInt8(1, 0);
  bytes.writeUInt8(0xc0 | DataType.Int32, 1);
  bytes.writeInt32LE(length, 2);
  bytes.writeInt32LE(dimensions.length, 6 + 4 * length);
  dimensions.forEach((n, i) => void bytes.writeInt32LE(n, 10 + 4 * length + 4 * i));
  const reader = new BinaryReader(bytes);
  const raw = reader.dataValue();
  expect(reader.left).toBe(0);
  return raw;
}

describe("a matrix whose dimensions contradict its elements is that variable's fault (-2 x -3 ended the hosted server)", () => {
  const MAX = 2 ** 31 - 1;
  it.each([
    [[-2, -3]],
    [[2, 2]],
    [[6, 0]],
    [[-1, -6]],
    [[0, 0]],
    [[5]],
    [[-6]],
    [[MAX, MAX, MAX, MAX, MAX, MAX, MAX, MAX]],
    [[65_536, 65_536, 65_536, 65_536, 6]],
  ])("%j", (dimensions) => {
    const raw = matrixOf(dimensions);
    for (const wanted of [{ scalar: "auto" }, { scalar: "int32", count: 6 }, { scalar: "int32", count: 6, dimensions }] as const)
      expect(toReading(raw, wanted, json, String)).toMatchObject({ quality: "bad", fault: "device_error" });
  });

  it.each([[[0, 3]], [[0]], [[]], [[0, 0]]])("%j without elements is an empty array", (dimensions) => {
    expect(toReading(matrixOf(dimensions, 0), { scalar: "auto" }, json, String)).toEqual({
      quality: "good",
      value: [],
      type: { scalar: "int32", count: 1 },
    });
    expect(toReading(matrixOf([2, 3], 0), { scalar: "auto" }, json, String)).toMatchObject({ quality: "bad" });
    expect(toReading(matrixOf([-1, 0], 0), { scalar: "auto" }, json, String)).toMatchObject({ quality: "bad" });
  });

  it("more dimensions than a type can have are a mismatch; a good matrix beside it is read", () => {
    expect(toReading(matrixOf([1, 1, 1, 1, 1, 1, 1, 1, 6]), { scalar: "auto" }, json, String)).toMatchObject({ fault: "type_mismatch" });
    expect(toReading(matrixOf([2, 3]), { scalar: "auto" }, json, String)).toMatchObject({ type: { count: 6, dimensions: [2, 3] } });
    expect(toReading(matrixOf([6]), { scalar: "auto" }, json, String)).toMatchObject({ type: { scalar: "int32", count: 6 } });
  });

  it("whatever dimensions pass can be written as a type and read back", () => {
    const some = fc.oneof(fc.integer({ min: -3, max: 7 }), fc.integer({ min: -(2 ** 31), max: MAX }));
    fc.assert(
      fc.property(fc.array(some, { maxLength: 10 }), fc.integer({ min: 0, max: 12 }), (dimensions, length) => {
        const read = toReading(matrixOf(dimensions, length), { scalar: "auto" }, json, String);
        if (read.quality === "bad" || !read.type) return;
        expect(parseDataType(formatDataType(read.type))).toEqual(read.type);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("toReading", () => {
  it.each([
    [DataType.Boolean, true, true, "bool"],
    [DataType.SByte, -128, -128, "int8"],
    [DataType.Byte, 255, 255, "uint8"],
    [DataType.Int16, -32_768, -32_768, "int16"],
    [DataType.UInt16, 65_535, 65_535, "uint16"],
    [DataType.Int32, -2_147_483_648, -2_147_483_648, "int32"],
    [DataType.UInt32, 4_294_967_295, 4_294_967_295, "uint32"],
    [DataType.Int64, [0xffdf_ffff, 0xffff_ffff], -9_007_199_254_740_993n, "int64"],
    [DataType.UInt64, [0xffff_ffff, 0xffff_ffff], 2n ** 64n - 1n, "uint64"],
    [DataType.Float, 0.1, Math.fround(0.1), "float32"],
    [DataType.Double, -2.25e-300, -2.25e-300, "float64"],
    [DataType.String, "Öl", "Öl", "string"],
    [DataType.String, null, "", "string"],
    [DataType.DateTime, new Date("2026-11-20T09:00:00.123Z"), "2026-11-20T09:00:00.123Z", "string"],
    [DataType.Guid, "72962B91-FA75-4AE6-8D28-B404DC7DAF63", "72962b91-fa75-4ae6-8d28-b404dc7daf63", "string"],
    [DataType.ByteString, Buffer.from([0, 255]), "AP8=", "string"],
    [DataType.XmlElement, "<a/>", "<a/>", "string"],
    [DataType.NodeId, new NodeId(NodeId.NodeIdType.STRING, "a", 3), "ns=3;s=a", "string"],
    [DataType.NodeId, new NodeId(NodeId.NodeIdType.NUMERIC, 2258, 0), "i=2258", "string"],
    [DataType.StatusCode, StatusCodes.BadSensorFailure, 0x808c_0000, "uint32"],
    [DataType.QualifiedName, new QualifiedName({ namespaceIndex: 2, name: "a" }), "2:a", "string"],
    [DataType.LocalizedText, new LocalizedText({ locale: "de", text: "Drehzahl" }), "Drehzahl", "string"],
  ])("reads a scalar of type %i: %o", (dataType, value, expected, type) => {
    expect(scalar(dataType, value)).toEqual({ quality: "good", value: expected, type: { scalar: type } });
  });

  it.each([
    ["1601-01-01T00:00:00.000Z", 0n],
    ["1601-01-01T00:00:00.000Z", -5n],
    ["9999-12-31T23:59:59.000Z", 2n ** 63n - 1n],
    ["9999-12-31T23:59:59.000Z", 2_650_467_743_990_000_000n],
  ])("a time at an end of the scale or beyond it is %s, and uncertain", (text, ticks) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(ticks);
    const raw = { status: 0, type: 13, dimensions: null, sourceTime: undefined };
    const value = new BinaryReader(bytes).dateTime();
    const doubt = (path: string) => ({ fault: "out_of_range", detail: `${path} is ${text}, an end of the scale: the server has no time` });
    for (const wanted of [{ scalar: "auto" }, { scalar: "string" }] as const)
      expect(toReading({ ...raw, isArray: false, value }, wanted, json, String)).toMatchObject({
        quality: "uncertain",
        value: text,
        doubt: doubt("the time"),
      });
    const good = "2026-11-20T09:00:00.000Z";
    expect(toReading({ ...raw, isArray: true, value: [good, value] }, { scalar: "auto" }, json, String)).toMatchObject({
      quality: "uncertain",
      value: [good, text],
      doubt: doubt("[1]"),
    });
  });

  it("reads arrays and matrices, with their dimensions", () => {
    expect(array(DataType.Int16, new Int16Array([1, -2]))).toEqual({
      quality: "good",
      value: [1, -2],
      type: { scalar: "int16", count: 2 },
    });
    expect(array(DataType.Double, new Float64Array(6).fill(1), [2, 3])).toMatchObject({
      type: { scalar: "float64", count: 6, dimensions: [2, 3] },
    });
    expect(array(DataType.Double, new Float64Array(0))).toEqual({ quality: "good", value: [], type: { scalar: "float64", count: 1 } });
    expect(array(DataType.Double, new Float64Array(6).fill(1), [2, 3], "float64[2x3]")).toMatchObject({ quality: "good" });
    expect(array(DataType.Double, new Float64Array(6).fill(1), [2, 3], "float64[3x2]")).toMatchObject({
      quality: "bad",
      fault: "type_mismatch",
    });
    expect(array(DataType.Int16, new Int16Array([1, 2]), undefined, "int16[3]")).toMatchObject({ fault: "type_mismatch" });
    expect(array(DataType.Int16, new Int16Array([1, 2]), undefined, "int16")).toMatchObject({ fault: "type_mismatch" });
    expect(scalar(DataType.Int16, 1, "int16[1]")).toMatchObject({ fault: "type_mismatch" });
    expect(array(DataType.Byte, Buffer.alloc(65_536))).toMatchObject({ fault: "type_mismatch" });
  });

  it.each([
    [DataType.Int16, 7, "float64", 7],
    [DataType.Int16, 7, "int64", 7n],
    [DataType.Int64, [0, 7], "int16", 7],
    [DataType.UInt16, 65_535, "int32", 65_535],
    [DataType.Double, 7, "int16", 7],
    [DataType.Float, 0.5, "float64", 0.5],
    [DataType.Double, 0.1, "float32", Math.fround(0.1)],
  ])("takes %i %o as %s where it fits", (dataType, value, type, expected) => {
    expect(scalar(dataType, value, type)).toEqual({ quality: "good", value: expected });
  });

  it.each([
    [DataType.Int32, 70_000, "int16", "out_of_range"],
    [DataType.Int16, -1, "uint16", "out_of_range"],
    [DataType.Double, 7.5, "int16", "out_of_range"],
    [DataType.UInt64, [0xffff_ffff, 0xffff_ffff], "float64", "out_of_range"],
    [DataType.Boolean, true, "int16", "type_mismatch"],
    [DataType.Int16, 1, "bool", "type_mismatch"],
    [DataType.String, "1", "int16", "type_mismatch"],
    [DataType.Int16, 1, "string", "type_mismatch"],
    [DataType.Double, Number.NaN, "float64", "not_a_number"],
    [DataType.Float, Number.NEGATIVE_INFINITY, "float32", "not_a_number"],
  ])("faults %i %o as %s", (dataType, value, type, fault) => {
    expect(scalar(dataType, value, type)).toMatchObject({ quality: "bad", fault });
  });

  it("tells good from uncertain from bad, never publishes a bad value, and keeps the source's time", () => {
    const value = new Variant({ dataType: DataType.Double, value: 1 });
    const sourceTimestamp = new Date(1_795_290_548_306);
    expect(reading({ value, sourceTimestamp })).toMatchObject({ quality: "good", value: 1, sourceTime: 1_795_290_548_306 });
    expect(reading({ value, statusCode: StatusCodes.UncertainLastUsableValue })).toMatchObject({ quality: "uncertain", value: 1 });
    expect(reading({ value, statusCode: StatusCodes.BadSensorFailure })).toEqual({
      quality: "bad",
      fault: "device_error",
      detail: "status 808c0000",
    });
    expect(reading({ statusCode: StatusCodes.BadNodeIdUnknown })).toMatchObject({ quality: "bad", fault: "not_found" });
    expect(reading({ value: new Variant({ dataType: DataType.Null }) })).toMatchObject({ quality: "bad", fault: "device_error" });
    expect(reading({ statusCode: StatusCodes.UncertainLastUsableValue })).toMatchObject({ quality: "bad", fault: "no_answer" });
  });

  it("judges a status that is in no list by its severity", () => {
    const raw = (status: number): RawValue => ({ status, type: 6, isArray: false, dimensions: null, value: 1, sourceTime: undefined });
    const of = (status: number) => toReading(raw(status), { scalar: "auto" }, json, String).quality;
    expect([0x0fff_0000, 0x4fff_0000, 0x8fff_0000, 0xcfff_0000].map(of)).toEqual(["good", "uncertain", "bad", "bad"]);
  });
});

describe("takeAnswer", () => {
  const body = (results: DataValue[], status = StatusCodes.Good): Buffer => {
    const stream = new BinaryStream(100_000);
    stream.writeUInt8(1);
    stream.writeUInt8(0);
    stream.writeUInt16(READ);
    new ReadResponse({ responseHeader: { requestHandle: 7, serviceResult: status, stringTable: ["a", null] }, results }).encode(stream);
    return Buffer.from(stream.buffer.subarray(0, stream.length));
  };
  const values = [
    new DataValue({ value: new Variant({ dataType: DataType.Int32, value: 5 }) }),
    new DataValue({ statusCode: StatusCodes.BadNodeIdUnknown }),
  ];

  it("takes the values and leaves node-opcua a fault with the same header", () => {
    const bytes = body(values);
    const answer = takeAnswer(bytes, {}, () => true);
    expect(answer).toMatchObject({
      requestHandle: 7,
      serviceResult: 0,
      content: {
        values: [
          { type: 6, value: 5 },
          { type: 0, status: 0x8034_0000 },
        ],
      },
    });
    expect(bytes.readUInt16LE(2)).toBe(397);
  });

  it("leaves alone what is not its own, and keeps a status that node-opcua does not know", () => {
    const bytes = body(values);
    const before = Buffer.from(bytes);
    expect(takeAnswer(bytes, undefined, () => true).content).toBeUndefined();
    expect(bytes).toEqual(before);
    const refused = body([], StatusCodes.BadTooManyOperations);
    refused.writeUInt32LE(0x8fed_0000, 16);
    expect(takeAnswer(refused, {}, (code) => code !== 0x8fed_0000)).toEqual({
      requestHandle: 7,
      serviceResult: 0x8fed_0000,
      content: undefined,
    });
    expect(refused.readUInt32LE(16)).toBe(0x8000_0000);
  });

  it("answers any bytes with values or a RangeError", () => {
    const whole = body(values);
    const changed = fc.tuple(fc.nat(whole.length - 1), fc.nat(255), fc.nat(whole.length)).map(([at, byte, cut]) => {
      const bytes = Buffer.from(whole.subarray(0, Math.max(1, cut)));
      if (at < bytes.length) bytes[at] = byte;
      return bytes;
    });
    fc.assert(
      fc.property(
        fc.oneof(
          changed,
          fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
        ),
        (bytes) => {
          try {
            takeAnswer(bytes, {}, () => true);
          } catch (error) {
            expect(error).toBeInstanceOf(RangeError);
          }
        },
      ),
      { numRuns: 5000 },
    );
  });

  it("bounds what a length or a depth announces", () => {
    const bomb = Buffer.from([0x01, 0x96, 0xff, 0xff, 0xff, 0x7f]);
    expect(() => new BinaryReader(bomb).dataValue()).toThrow(RangeError);
    const deep = Buffer.alloc(100_000, 0x18);
    expect(() => new BinaryReader(Buffer.concat([Buffer.of(1), deep])).dataValue()).toThrow(RangeError);
    const diagnostics = Buffer.alloc(100_000, 64);
    expect(() => new BinaryReader(diagnostics).diagnosticInfo()).toThrow(RangeError);
  });
});

describe("numbers that are none", () => {
  it("one NaN in an array is that element's, whatever float type is wanted", () => {
    expect(array(DataType.Float, [1, Number.NaN])).toMatchObject({ quality: "good", value: [1, Number.NaN] });
    expect(array(DataType.Double, [1, Number.NaN], undefined, "float32[2]")).toMatchObject({ quality: "good", value: [1, Number.NaN] });
    expect(array(DataType.Double, [1, Number.NaN], undefined, "int16[2]")).toMatchObject({ quality: "bad", fault: "not_a_number" });
    expect(scalar(DataType.Double, Number.NaN)).toMatchObject({ quality: "bad", fault: "not_a_number" });
  });

  it("a structure with a NaN is uncertain and names the field", () => {
    const structure: ToJson = (_value, odd, path) => {
      odd?.push(`${path}.speed is NaN`);
      return '{"speed":null}';
    };
    const raw: RawValue = { type: 22, isArray: true, dimensions: null, value: [{}], status: 0 } as unknown as RawValue;
    expect(toReading(raw, { scalar: "auto" }, structure, String)).toMatchObject({
      ...{ quality: "uncertain", value: ['{"speed":null}'] },
      doubt: { fault: "not_a_number", detail: "[0].speed is NaN" },
    });
    expect(toReading({ ...raw, isArray: false, value: {} }, { scalar: "string" }, structure, String)).toMatchObject({
      quality: "uncertain",
    });
  });
});
