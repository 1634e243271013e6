import { type DataValue, NodeId, ReadValueId, resolveNodeId } from "node-opcua-client";
import { messageOf } from "../../src/model/failure.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ExtensionBody, type RawValue } from "./binary.ts";
import { EXTENSION_OBJECT, INT32, wireType } from "./built-in.ts";
import type { CallContext, Channel } from "./client.ts";
import { makeRequest } from "./services.ts";
import { qualityOf } from "./status-codes.ts";
import { type Definition, decodeStructure, type Field, type FieldType, jsonText, MAX_FIELDS } from "./structures.ts";
import type { ToJson } from "./values.ts";

export interface JsonDeps {
  readonly call: Channel["call"];
  readObjects(nodes: readonly ReadValueId[], ctx: CallContext): Promise<readonly DataValue[]>;
}

/** Structures as JSON, by the definition that the server has of them (OPC 10000-3, 8.50); Base64 where it has none. */
export interface Json {
  readonly toJson: ToJson;
  /** Asks for the definitions that these values need and that are not known yet. */
  learn(values: readonly (RawValue | undefined)[], ctx: CallContext): Promise<void>;
}

/** Structures that one session learns; what lies beyond stays bytes. */
const MAX_DEFINITIONS = 1000;
const HAS_ENCODING = 38;
const HAS_SUBTYPE = 45;
const INVERSE = 1;
const DATA_TYPE_DEFINITION = 23;
const MAX_ANCESTORS = 16;
/** StructureType (OPC 10000-3, 8.49); with subtyped values nothing is known of the layout of a field. */
const KINDS = ["structure", "optional", "union"] as const;

export function createJson({ call, readObjects }: JsonDeps): Json {
  /** By the text of the encoding's node id; undefined: the server does not say what it is. */
  const byEncoding = new Map<string, Definition | undefined>();
  const byType = new Map<string, FieldType | undefined>();
  /** Met inside other structures: the next readout knows them. */
  const unlearned = new Set<string>();

  const expand = ({ encoding, body }: ExtensionBody): unknown => {
    if (typeof body === "string") return body;
    const definition = byEncoding.get(encoding);
    if (!byEncoding.has(encoding) && unlearned.size < MAX_DEFINITIONS) unlearned.add(encoding);
    try {
      if (definition) return decodeStructure(definition, body);
    } catch (error) {
      return { encoding, body: body.toString("base64"), error: messageOf(error) };
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
    const { results } = await call("Browse", request, ctx);
    const target = results?.[0]?.references?.[0]?.nodeId;
    return target && new NodeId(target.identifierType, target.value, target.namespace);
  };

  /** A DataTypeDefinition as node-opcua knows it. */
  const definitionOf = async (type: NodeId, ctx: CallContext): Promise<unknown> => {
    const [answer] = await readObjects([new ReadValueId({ nodeId: type, attributeId: DATA_TYPE_DEFINITION })], ctx);
    return answer && qualityOf(answer.statusCode.value) !== "bad" ? answer.value?.value : undefined;
  };

  /** What a data type is on the wire; undefined where the server does not say. */
  const fieldType = async (type: NodeId, ctx: CallContext): Promise<FieldType | undefined> => {
    const key = type.toString();
    if (byType.has(key)) return byType.get(key);
    if (byType.size >= MAX_DEFINITIONS) return undefined;
    const builtIn = builtInOf(type);
    if (builtIn !== undefined) return { builtIn };
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
      const builtIn = node && builtInOf(node);
      if (builtIn !== undefined) return builtIn === EXTENSION_OBJECT ? undefined : { builtIn };
    }
    return undefined;
  };

  const learnOne = async (encoding: string, ctx: CallContext): Promise<void> => {
    byEncoding.set(encoding, undefined);
    try {
      const type = await inverse(resolveNodeId(encoding), HAS_ENCODING, ctx);
      const found = type && (await fieldType(type, ctx));
      if (found && "structure" in found) byEncoding.set(encoding, found.structure);
    } catch (error) {
      if (!(error instanceof FaultError)) throw error;
    }
  };

  return {
    async learn(values, ctx) {
      for (const encoding of unlearned) {
        unlearned.delete(encoding);
        if (!byEncoding.has(encoding) && byEncoding.size < MAX_DEFINITIONS) await learnOne(encoding, ctx);
      }
      for (const value of values) {
        if (value?.type !== EXTENSION_OBJECT) continue;
        for (const one of value.isArray && Array.isArray(value.value) ? value.value : [value.value])
          if (one instanceof ExtensionBody && !byEncoding.has(one.encoding) && byEncoding.size < MAX_DEFINITIONS)
            await learnOne(one.encoding, ctx);
      }
    },
    toJson: (value) => jsonText(value, expand),
  };
}

const builtInOf = ({ namespace, value }: NodeId): number | undefined =>
  namespace === 0 && typeof value === "number" ? wireType(value) : undefined;

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
