import type { NodeId } from "node-opcua-client";
import { type DataType, MAX_COUNT, type ScalarType } from "../../src/model/value.ts";
import { scalarOfBuiltIn, VARIANT, wireType } from "./built-in.ts";
import type { Asking } from "./discover-ask.ts";

const AUTO: DataType = { scalar: "auto" };

/** What a reading of a data type of namespace 0 becomes; those that travel as Variants say nothing before there is a value. */
function known(dataType: number): ScalarType | "auto" | undefined {
  const type = wireType(dataType);
  return type === undefined ? undefined : type === VARIANT ? "auto" : scalarOfBuiltIn(type);
}

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
      scalar = at.namespace === 0 && typeof at.value === "number" ? known(at.value) : undefined;
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
  if (!Number.isInteger(count) || count < 1 || count > MAX_COUNT || lengths.length > 8) return AUTO;
  return { scalar, count, ...(lengths.length > 1 && { dimensions: lengths }) };
}

const toNumbers = (value: unknown): number[] =>
  Array.isArray(value) || ArrayBuffer.isView(value) ? Array.from(value as ArrayLike<unknown>, Number).slice(0, 9) : [];
