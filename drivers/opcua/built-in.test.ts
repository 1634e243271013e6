import { DataType } from "node-opcua-client";
import { expect, it } from "vitest";
import { scalarOfBuiltIn, wireType } from "./built-in.ts";

const builtIn = Array.from({ length: 25 }, (_, i) => i + 1);

it("knows every built-in type by the specification's number", () => {
  const scalars = Object.fromEntries(builtIn.map((type) => [DataType[type], scalarOfBuiltIn(type)]));
  const texts = ["String", "DateTime", "Guid", "ByteString", "XmlElement", "NodeId", "ExpandedNodeId", "QualifiedName", "LocalizedText"];
  expect(scalars).toEqual({
    ...Object.fromEntries([...texts, "ExtensionObject", "DataValue", "Variant", "DiagnosticInfo"].map((name) => [name, "string"])),
    Boolean: "bool",
    SByte: "int8",
    Byte: "uint8",
    Int16: "int16",
    UInt16: "uint16",
    Int32: "int32",
    UInt32: "uint32",
    Int64: "int64",
    UInt64: "uint64",
    Float: "float32",
    Double: "float64",
    StatusCode: "uint32",
  });
});

it("says how data types of namespace 0 travel", () => {
  expect(builtIn.map(wireType)).toEqual(builtIn);
  expect([26, 27, 28].map(wireType)).toEqual([DataType.Variant, DataType.Variant, DataType.Variant]);
  expect(wireType(29)).toBe(DataType.Int32);
  expect([0, 30, 296, -1].map(wireType)).toEqual([undefined, undefined, undefined, undefined]);
});
