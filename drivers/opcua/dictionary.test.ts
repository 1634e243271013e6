import { expect, it } from "vitest";
import { dictionaryDefinition, parseDictionary } from "./dictionary.ts";
import { decodeStructure } from "./structures.ts";

const dictionaryOf = (types: string) => {
  const found = parseDictionary(`<?xml version="1.0" encoding="utf-8"?>
    <opc:TypeDictionary xmlns:opc="http://opcfoundation.org/BinarySchema/" xmlns:ua="http://opcfoundation.org/UA/" xmlns:tns="urn:plc"
      xmlns:x="urn:another" DefaultByteOrder="LittleEndian" TargetNamespace="urn:plc"><opc:Import Namespace="http://opcfoundation.org/UA/"/>
      <!-- <opc:StructuredType Name="Commented"/> -->${types}</opc:TypeDictionary>`);
  if (!found) throw new Error("not a dictionary");
  return found;
};
const field = (name: string, type: string, more = "") => `<opc:Field Name="${name}" TypeName="${type}" ${more}/>`;
const structure = (name: string, ...fields: string[]) =>
  `<opc:StructuredType Name="${name}" BaseType="ua:ExtensionObject">${fields.join("")}</opc:StructuredType>`;
const decoded = (types: string, name: string, hex: string) => {
  const definition = dictionaryDefinition(dictionaryOf(types), name);
  return definition && decodeStructure(definition, Buffer.from(hex.replaceAll(" ", ""), "hex"));
};

it("reads structures in structures, arrays, texts and enumerations", () => {
  const types = [
    structure("Axis", field("Speed", "opc:Float"), field("Mode", "tns:Mode")),
    structure("Press", field("Name", "opc:CharArray"), field("NoOfAxes", "opc:Int32"), field("Axes", "tns:Axis", 'LengthField="NoOfAxes"')),
    structure("&quot;DB1&quot;.&#x41;", field("R", "ua:Range")),
    '<opc:EnumeratedType Name="Mode" LengthInBits="32"><opc:EnumeratedValue Name="Off" Value="0"/></opc:EnumeratedType>',
  ].join("");
  expect(decoded(types, "Press", "02000000 4142 01000000 00000040 03000000")).toEqual({ Name: "AB", Axes: [{ Speed: 2, Mode: 3 }] });
  expect(decoded(types, '"DB1".A', "0000000000000000 000000000000F03F")).toEqual({ R: { Low: 0, High: 1 } });
});

it("reads optional fields and unions, which it tells by their switches", () => {
  const types = [
    structure(
      "Optional",
      field("BSpecified", "opc:Bit"),
      field("Reserved1", "opc:Bit", 'Length="31"'),
      field("A", "opc:Byte"),
      field("B", "opc:Byte", 'SwitchField="BSpecified"'),
    ),
    structure(
      "Union",
      field("SwitchField", "opc:UInt32"),
      field("A", "opc:Byte", 'SwitchField="SwitchField" SwitchValue="1"'),
      field("B", "opc:UInt16", 'SwitchField="SwitchField" SwitchValue="2"'),
    ),
  ].join("");
  expect(decoded(types, "Optional", "01000000 05 06")).toEqual({ A: 5, B: 6 });
  expect(decoded(types, "Optional", "00000000 05")).toEqual({ A: 5 });
  expect(decoded(types, "Union", "02000000 0700")).toEqual({ B: 7 });
});

it.each([
  ["a type of another dictionary", field("A", "x:Thing")],
  ["a type that is not there", field("A", "tns:Missing")],
  ["a length that stands nowhere on the wire", field("A", "opc:Byte", 'Length="4"')],
  ["bits that are no mask of optional fields", field("A", "opc:Bit") + field("B", "opc:Byte")],
  ["a type of bits", field("A", "opc:Nothing")],
])("leaves to bytes what it cannot know: %s", (_, fields) => {
  expect(dictionaryDefinition(dictionaryOf(structure("S", fields)), "S")).toBeUndefined();
});

it("takes other XML for no dictionary, and finds no name that it does not have", () => {
  expect(parseDictionary("<html><body>no</body></html>")).toBeUndefined();
  const dictionary = dictionaryOf(structure("S", field("A", "opc:Byte")));
  for (const name of ["Commented", "__proto__", "constructor", ""]) expect(dictionaryDefinition(dictionary, name)).toBeUndefined();
});

it("follows a structure that holds itself", () => {
  const types = structure("Node", field("V", "opc:Byte"), field("NoOfN", "opc:Int32"), field("N", "tns:Node", 'LengthField="NoOfN"'));
  expect(decoded(types, "Node", "01 01000000 02 00000000")).toEqual({ V: 1, N: [{ V: 2, N: [] }] });
});
