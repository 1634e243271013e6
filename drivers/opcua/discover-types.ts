import type { NodeId } from "node-opcua-client";
import type { DataType, ScalarType } from "../../src/model/value.ts";
import type { Asking } from "./discover-ask.ts";

const AUTO: DataType = { scalar: "auto" };
const MAX_ELEMENTS = 65_535;

/**
 * What a reading of each data type of namespace 0 becomes (OPC 10000-6, 5.1.2): the built-in types, and the abstract ones that say nothing
 * before there is a value. Their subtypes follow them.
 */
const KNOWN: ReadonlyMap<number, ScalarType | "auto"> = new Map<number, ScalarType | "auto">([
  [1, "bool"],
  [2, "int8"],
  [3, "uint8"],
  [4, "int16"],
  [5, "uint16"],
  [6, "int32"],
  [7, "uint32"],
  [8, "int64"],
  [9, "uint64"],
  [10, "float32"],
  [11, "float64"],
  // Text as it is; DateTime, Guid, ByteString, XmlElement, ids, names and structures as their texts.
  ...[12, 13, 14, 15, 16, 17, 18, 20, 21, 22, 23, 25].map((id) => [id, "string"] as const),
  /* StatusCode */ [19, "uint32"],
  /* Enumeration */ [29, "int32"],
  /* BaseDataType, Number, Integer, UInteger */ ...[24, 26, 27, 28].map((id) => [id, "auto"] as const),
]);

const MAX_SUPERTYPES = 20;
/** Data types that are remembered: a bound against a server that invents one for each variable. */
const MAX_REMEMBERED = 10_000;

/**
 * Settles what a reading of a data type becomes, given the DataType attribute's value: asks for its supertypes until one is known, and
 * remembers. `auto` where that leads nowhere.
 */
export function createTypes(ask: Pick<Asking, "supertype">): (dataType: unknown) => Promise<ScalarType | "auto"> {
  const remembered = new Map<string, ScalarType | "auto">();
  return async (dataType) => {
    const passed: string[] = [];
    let scalar: ScalarType | "auto" | undefined;
    let at = isNodeId(dataType) ? dataType : undefined;
    for (let i = 0; at && scalar === undefined && i < MAX_SUPERTYPES; i++) {
      const key = at.toString();
      scalar = at.namespace === 0 && typeof at.value === "number" ? KNOWN.get(at.value) : undefined;
      scalar ??= remembered.get(key);
      if (scalar !== undefined) break;
      passed.push(key);
      at = await ask.supertype(at);
    }
    if (remembered.size + passed.length > MAX_REMEMBERED) remembered.clear();
    for (const key of passed) remembered.set(key, scalar ?? "auto");
    return scalar ?? "auto";
  };
}

const isNodeId = (value: unknown): value is NodeId =>
  typeof value === "object" && value !== null && "namespace" in value && "value" in value;

/**
 * The type of a variable, from its ValueRank and ArrayDimensions (OPC 10000-3, 5.6.2). An array whose length the server does not fix
 * takes its type from the first value: `auto`. Pure.
 */
export function shaped(scalar: ScalarType | "auto", valueRank: unknown, arrayDimensions: unknown): DataType {
  if (scalar === "auto") return AUTO;
  if (valueRank === -1 || typeof valueRank !== "number") return { scalar };
  const lengths = toNumbers(arrayDimensions);
  if (valueRank < 1 || lengths.length !== valueRank) return AUTO;
  const count = lengths.reduce((product, length) => product * length, 1);
  if (!Number.isInteger(count) || count < 1 || count > MAX_ELEMENTS || lengths.length > 8) return AUTO;
  return { scalar, count, ...(lengths.length > 1 && { dimensions: lengths }) };
}

const toNumbers = (value: unknown): number[] =>
  Array.isArray(value) || ArrayBuffer.isView(value) ? Array.from(value as ArrayLike<unknown>, Number).slice(0, 9) : [];
