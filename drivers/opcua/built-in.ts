import type { ScalarType } from "../../src/model/value.ts";

/** Numbers of the built-in types that are handled by name (OPC 10000-6, 5.1.2). */
export const BOOLEAN = 1;
export const FLOAT = 10;
export const DATE_TIME = 13;
export const EXTENSION_OBJECT = 22;
export const VARIANT = 24;
export const INT32 = 6;
const LAST_BUILT_IN = 25;
/** The data type of namespace 0 of which all enumerations are subtypes. */
const ENUMERATION = 29;

/** Names of the built-in types by their numbers; 0 is what no value has. */
export const BUILT_IN_NAMES: readonly string[] = [
  "Null Boolean SByte Byte Int16 UInt16 Int32 UInt32 Int64 UInt64 Float Double String DateTime Guid ByteString XmlElement NodeId",
  "ExpandedNodeId StatusCode QualifiedName LocalizedText ExtensionObject DataValue Variant DiagnosticInfo",
].flatMap((names) => names.split(" "));

/** By number of the built-in type; what is not here is text. */
const SCALARS: Readonly<Record<number, ScalarType>> = {
  1: "bool",
  2: "int8",
  3: "uint8",
  4: "int16",
  5: "uint16",
  6: "int32",
  7: "uint32",
  8: "int64",
  9: "uint64",
  10: "float32",
  11: "float64",
  /* StatusCode */ 19: "uint32",
};

/** What a reading of a built-in type becomes; DateTime, Guid, ByteString, ids, names and structures are their texts. */
export const scalarOfBuiltIn = (type: number): ScalarType => SCALARS[type] ?? "string";

/**
 * The built-in type as which values of a data type of namespace 0 travel, given its number (OPC 10000-6, 5.1.2 and 5.2.4): the built-in types
 * themselves, enumerations as Int32, and Number, Integer and UInteger, which are abstract, as Variants. Undefined for all others.
 */
export function wireType(dataType: number): number | undefined {
  if (dataType < 1 || dataType > ENUMERATION) return undefined;
  if (dataType === ENUMERATION) return INT32;
  return dataType <= LAST_BUILT_IN ? dataType : VARIANT;
}
