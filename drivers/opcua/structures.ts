import { toJson } from "../../src/base/json.ts";
import { shortFloat32 } from "../../src/base/number.ts";
import { isSourceTime } from "../../src/model/source-time.ts";
import { areDimensionsOf } from "../../src/model/value.ts";
import { BinaryReader, ExtensionBody, NestedValue } from "./binary.ts";
import { FLOAT } from "./built-in.ts";

/** A field of a structure, of what the server's DataTypeDefinition says (OPC 10000-3, 8.51 and 8.52). */
export interface Field {
  readonly name: string;
  readonly type: FieldType;
  /** -1 a scalar, 1 an array, above a matrix. */
  readonly valueRank: number;
  readonly isOptional: boolean;
}

/** What a field holds: a built-in type by its number (enumerations are Int32), or another structure. */
export type FieldType = { readonly builtIn: number } | { readonly structure: Definition };

export interface Definition {
  readonly kind: "structure" | "optional" | "union";
  /** Its own fields behind those of what it is derived from. Filled after it is made: structures may hold themselves. */
  readonly fields: Field[];
}

/** Fields a server may define for one structure. */
export const MAX_FIELDS = 1000;

/**
 * The body of a structure as an object (OPC 10000-6, 5.2.6 to 5.2.8): of a union its one field, of absent optional fields nothing. Throws
 * RangeError where the bytes are not of this definition. Pure.
 */
export function decodeStructure(definition: Definition, body: Uint8Array): Record<string, unknown> {
  const reader = new BinaryReader(body);
  const object = structure(reader, definition);
  // A definition that is not that of the bytes shows here, where each of its fields has found something.
  if (reader.left > 0) throw new RangeError(`${reader.left} bytes are left over behind the fields that its definition has`);
  return object;
}

function structure(reader: BinaryReader, { kind, fields }: Definition): Record<string, unknown> {
  return reader.nested(() => {
    // No prototype: a server names the fields.
    const object: Record<string, unknown> = Object.create(null);
    if (kind === "union") {
      const chosen = reader.uint32();
      const field = fields[chosen - 1];
      if (field) object[field.name] = fieldValue(reader, field);
      else if (chosen !== 0) throw new RangeError(`the field ${chosen} is chosen of a union with ${fields.length}`);
      return object;
    }
    const present = kind === "optional" ? reader.uint32() : 0;
    let bit = 0;
    for (const field of fields) {
      if (kind === "optional" && field.isOptional) {
        // The mask has 32 bits: which of more are there cannot be said.
        if (bit >= 32) throw new RangeError("its definition has more than 32 optional fields");
        if ((present & (1 << bit++)) === 0) continue;
      }
      object[field.name] = fieldValue(reader, field);
    }
    return object;
  });
}

function fieldValue(reader: BinaryReader, { type, valueRank }: Field): unknown {
  const one = (): unknown => {
    if ("structure" in type) return structure(reader, type.structure);
    const value = reader.builtIn(type.builtIn);
    return type.builtIn === FLOAT ? shortFloat32(Number(value)) : value;
  };
  if (valueRank < 1) return one();
  if (valueRank === 1) return reader.array(one);
  // A matrix in a structure: its dimensions, then its elements (OPC 10000-6, 5.2.5).
  const dimensions = (reader.array(() => reader.int32()) ?? []).map(Number);
  if (dimensions.length === 0) return { dimensions, values: [] };
  const count = dimensions.reduce((product, n) => product * n, 1);
  if (!areDimensionsOf(dimensions, count) || count > reader.left)
    throw new RangeError(`a matrix of ${dimensions.join("x")} does not fit into what is left`);
  return { dimensions, values: Array.from({ length: count }, one) };
}

/**
 * As `toJson`; `expand` says what stands for a structure. `odd` gets the numbers that are none, and null in the JSON: `path.speed[2] is NaN`.
 * Throws what `expand` throws.
 */
export function jsonText(value: unknown, expand: (body: ExtensionBody) => unknown, odd: string[] = [], path = ""): string {
  let hasOdd = false;
  const plain = (one: unknown): unknown => {
    if (one instanceof ExtensionBody) return plain(expand(one));
    if (one instanceof NestedValue) return plain(plainNested(one));
    if (typeof one === "number" && !Number.isFinite(one)) hasOdd = true;
    return one;
  };
  const text = toJson(value, plain);
  if (hasOdd) nameOdd(plain(value), plain, path, odd);
  return text;
}

function nameOdd(value: unknown, plain: (one: unknown) => unknown, path: string, odd: string[]): void {
  if (typeof value === "number") {
    if (!Number.isFinite(value)) odd.push(`${path} is ${value}`);
  } else if (Array.isArray(value)) for (const [i, element] of value.entries()) nameOdd(plain(element), plain, `${path}[${i}]`, odd);
  else if (typeof value === "object" && value !== null)
    for (const [name, field] of Object.entries(value)) nameOdd(plain(field), plain, path === "" ? name : `${path}.${name}`, odd);
}

/** A Variant as what it holds; a DataValue with its status and time, where it has them. */
function plainNested({ raw, isDataValue }: NestedValue): unknown {
  const { type, isArray, dimensions, status, sourceTime } = raw;
  const one = (element: unknown): unknown => (type === FLOAT ? shortFloat32(Number(element)) : element);
  const all = isArray && Array.isArray(raw.value) ? raw.value.map(one) : one(raw.value);
  if (dimensions && isArray && !areDimensionsOf(dimensions, (raw.value as readonly unknown[]).length))
    throw new RangeError(`a matrix of [${dimensions.join(", ")}] has other dimensions than elements`);
  const value = type === 0 ? null : dimensions ? { dimensions, values: all } : all;
  if (!isDataValue) return value;
  return {
    value,
    ...(status !== 0 && { status }),
    ...(sourceTime !== undefined && isSourceTime(sourceTime) && { source_time: new Date(sourceTime).toISOString() }),
  };
}
