import { type DataValue, NodeId, ReadValueId } from "node-opcua-client";
import { FaultError } from "../../src/model/fault.ts";
import { type CallContext, type Channel, makeRequest } from "./client.ts";
import { qualityOf } from "./status-codes.ts";
import { type Definition, decodeStructure, type Field, type FieldType, jsonText, MAX_FIELDS } from "./structures.ts";
import { qualifiedName, type RawDataValue, type ToJson, wide } from "./values.ts";

export interface JsonDeps {
  readonly channel: Channel;
  read(nodes: readonly ReadValueId[], ctx: CallContext): Promise<readonly DataValue[]>;
  sign<R extends { requestHeader: object }>(request: R): R;
}

/** Structures as JSON: those of the specification as node-opcua knows them, all others by the definition that the server has of them. */
export interface Json {
  readonly toJson: ToJson;
  /** Asks for the definitions that these values need and that are not known yet. */
  learn(values: readonly (RawDataValue | undefined)[], ctx: CallContext): Promise<void>;
}

/** Structures that one session learns; what lies beyond stays bytes. */
const MAX_DEFINITIONS = 1000;
const HAS_ENCODING = 38;
const HAS_SUBTYPE = 45;
const INVERSE = 1;
const DATA_TYPE_DEFINITION = 23;
const EXTENSION_OBJECT = 22;
const ENUMERATION = 29;
const INT32 = 6;
const VARIANT = 24;
/** The last of the built-in types; behind it come Number, Integer and UInteger, which are abstract and therefore travel as Variants. */
const LAST_BUILT_IN = 25;
const MAX_ANCESTORS = 16;
/** StructureType (OPC 10000-3, 8.49); with subtyped values nothing is known of the layout of a field. */
const KINDS = ["structure", "optional", "union"] as const;

/** As node-opcua hands on a structure that it does not know. */
interface Opaque {
  readonly nodeId: NodeId;
  readonly buffer: Buffer;
}
const isOpaque = (value: unknown): value is Opaque =>
  typeof value === "object" &&
  value !== null &&
  "buffer" in value &&
  Buffer.isBuffer(value.buffer) &&
  "nodeId" in value &&
  value.nodeId instanceof NodeId;

export function createJson({ channel, read, sign }: JsonDeps): Json {
  /** By the text of the encoding's node id; undefined: the server does not say what it is. */
  const byEncoding = new Map<string, Definition | undefined>();
  const byType = new Map<string, FieldType | undefined>();

  const structured = (encoding: string, body: Buffer): unknown => {
    const definition = byEncoding.get(encoding);
    if (definition) {
      try {
        return decodeStructure(definition, body, structured);
      } catch (error) {
        return { encoding, body: body.toString("base64"), error: error instanceof Error ? error.message : String(error) };
      }
    }
    return { encoding, body: body.toString("base64") };
  };

  const inverse = async (node: NodeId, reference: number, ctx: CallContext): Promise<NodeId | undefined> => {
    const request = makeRequest("Browse", {
      requestedMaxReferencesPerNode: 1,
      nodesToBrowse: [
        {
          nodeId: node,
          referenceTypeId: numeric(reference),
          browseDirection: INVERSE,
          includeSubtypes: true,
          nodeClassMask: 0,
          resultMask: 0,
        },
      ],
    });
    const { results } = await channel.call("Browse", sign(request), ctx);
    const target = results?.[0]?.references?.[0]?.nodeId;
    return target && new NodeId(target.identifierType, target.value, target.namespace);
  };

  const definitionOf = async (type: NodeId, ctx: CallContext): Promise<unknown> => {
    const [answer] = await read([new ReadValueId({ nodeId: type, attributeId: DATA_TYPE_DEFINITION })], ctx);
    return answer && qualityOf(answer.statusCode.value) !== "bad" ? answer.value?.value : undefined;
  };

  /** What a data type is on the wire; undefined where the server does not say. */
  const fieldType = async (type: NodeId, ctx: CallContext): Promise<FieldType | undefined> => {
    const key = type.toString();
    if (byType.has(key)) return byType.get(key);
    if (byType.size >= MAX_DEFINITIONS) return undefined;
    if (type.namespace === 0 && typeof type.value === "number" && type.value <= ENUMERATION) {
      const builtIn = type.value <= LAST_BUILT_IN ? type.value : type.value === ENUMERATION ? INT32 : VARIANT;
      return { builtIn };
    }
    const given = await definitionOf(type, ctx);
    if (isStructureDefinition(given)) {
      const kind = KINDS[given.structureType];
      if (!kind || (given.fields?.length ?? 0) > MAX_FIELDS) return undefined;
      const definition: Definition = { kind, fields: [] };
      // Before its fields: a structure may hold itself.
      byType.set(key, { structure: definition });
      for (const field of given.fields ?? []) {
        const inner = await fieldType(field.dataType, ctx);
        if (!inner) {
          byType.set(key, undefined);
          return undefined;
        }
        definition.fields.push({
          name: field.name ?? "",
          type: inner,
          valueRank: field.valueRank,
          isOptional: field.isOptional,
        } satisfies Field);
      }
      return { structure: definition };
    }
    const known = isEnumDefinition(given) ? { builtIn: INT32 } : await byAncestors(type, ctx);
    byType.set(key, known);
    return known;
  };

  /** A simple type (Duration, UtcTime, a vendor's own) is encoded as the built-in one that it comes from. */
  const byAncestors = async (type: NodeId, ctx: CallContext): Promise<FieldType | undefined> => {
    let node: NodeId | undefined = type;
    for (let i = 0; node && i < MAX_ANCESTORS; i++) {
      node = await inverse(node, HAS_SUBTYPE, ctx);
      if (node?.namespace !== 0 || typeof node.value !== "number" || node.value > ENUMERATION) continue;
      if (node.value === EXTENSION_OBJECT) return undefined;
      return { builtIn: node.value === ENUMERATION ? INT32 : node.value <= LAST_BUILT_IN ? node.value : VARIANT };
    }
    return undefined;
  };

  const learnOne = async (encoding: NodeId, ctx: CallContext): Promise<void> => {
    const key = encoding.toString().replace(/^ns=0;/, "");
    byEncoding.set(key, undefined);
    try {
      const type = await inverse(encoding, HAS_ENCODING, ctx);
      const found = type && (await fieldType(type, ctx));
      if (found && "structure" in found) byEncoding.set(key, found.structure);
    } catch (error) {
      if (!(error instanceof FaultError)) throw error;
    }
  };

  return {
    async learn(values, ctx) {
      for (const value of values) {
        if (value?.value?.dataType !== EXTENSION_OBJECT) continue;
        const content: unknown = value.value.value;
        for (const one of Array.isArray(content) ? content : [content])
          if (isOpaque(one) && !byEncoding.has(one.nodeId.toString().replace(/^ns=0;/, "")) && byEncoding.size < MAX_DEFINITIONS)
            await learnOne(one.nodeId, ctx);
      }
    },
    toJson: (value) => jsonText(plain(value, structured, 0)),
  };
}

const numeric = (id: number): NodeId => new NodeId(NodeId.NodeIdType.NUMERIC, id, 0);

interface StructureDefinitionLike {
  readonly structureType: number;
  readonly fields:
    | readonly { readonly name: string | null; readonly dataType: NodeId; readonly valueRank: number; readonly isOptional: boolean }[]
    | null;
}
const isStructureDefinition = (value: unknown): value is StructureDefinitionLike =>
  typeof value === "object" && value !== null && "structureType" in value && typeof value.structureType === "number" && "fields" in value;
const isEnumDefinition = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "fields" in value && !("structureType" in value);

const MAX_PLAIN_DEPTH = 32;

interface SchemaLike {
  readonly fields: readonly { readonly name: string; readonly originalName?: string; readonly fieldType: string }[];
  getBaseSchema?(): SchemaLike | null | undefined;
}

/** What node-opcua made of a value as what JSON can say, with the same words as `BinaryReader`. */
function plain(value: unknown, structured: (encoding: string, body: Buffer) => unknown, depth: number, type = ""): unknown {
  if (depth > MAX_PLAIN_DEPTH) return null;
  const inner = (one: unknown, innerType = "") => plain(one, structured, depth + 1, innerType);
  if (value === null || value === undefined) return null;
  if (type === "Int64" || type === "UInt64") {
    if (Array.isArray(value) && Array.isArray(value[0])) return value.map((one: unknown) => inner(one, type));
    return type === "Int64" ? BigInt.asIntN(64, wide(value)) : wide(value);
  }
  if (typeof value !== "object") return value;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (Buffer.isBuffer(value)) return value.toString("base64");
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<number>);
  if (Array.isArray(value)) return value.map((one: unknown) => inner(one, type));
  if (value instanceof NodeId) return value.toString().replace(/^ns=0;/, "");
  if (isOpaque(value)) return structured(value.nodeId.toString().replace(/^ns=0;/, ""), value.buffer);
  if ("text" in value && "locale" in value) return value.text;
  if ("name" in value && "namespaceIndex" in value) return qualifiedName(value);
  if ("dataType" in value && "arrayType" in value && "value" in value)
    return inner(value.value, value.dataType === 8 ? "Int64" : value.dataType === 9 ? "UInt64" : "");
  if ("statusCode" in value && "sourceTimestamp" in value && "value" in value)
    return { value: inner(value.value), status: inner(value.statusCode), sourceTimestamp: inner(value.sourceTimestamp) };
  if ("value" in value && "description" in value && typeof value.value === "number") return value.value;
  if (!("schema" in value)) return null;
  const object: Record<string, unknown> = Object.create(null);
  for (const field of fieldsOf(value.schema as SchemaLike))
    object[field.originalName ?? `${field.name.slice(0, 1).toUpperCase()}${field.name.slice(1)}`] = inner(
      (value as Record<string, unknown>)[field.name],
      field.fieldType,
    );
  return object;
}

function fieldsOf(schema: SchemaLike): readonly SchemaLike["fields"][number][] {
  const fields: SchemaLike["fields"][number][] = [];
  for (let at: SchemaLike | null | undefined = schema, i = 0; at && i < MAX_ANCESTORS; at = at.getBaseSchema?.(), i++)
    fields.unshift(...at.fields);
  return fields;
}
