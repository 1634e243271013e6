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

/** Structures that one session learns; what lies beyond stays bytes. */
const MAX_DEFINITIONS = 1000;
const HAS_ENCODING = 38;
const HAS_SUBTYPE = 45;
const INVERSE = 1;
const DATA_TYPE_DEFINITION = 23;
const MAX_ANCESTORS = 16;
/** StructureType (OPC 10000-3, 8.49); with subtyped values nothing is known of the layout of a field. */
const KINDS = ["structure", "optional", "union"] as const;

/** Structures as JSON, by the definition that the server has of them (OPC 10000-3, 8.50); Base64 where it has none. */
export class Json {
  readonly #deps: JsonDeps;
  /** By the text of the encoding's node id; undefined: the server does not say what it is. */
  readonly #byEncoding = new Map<string, Definition | undefined>();
  readonly #byType = new Map<string, FieldType | undefined>();
  /** Met inside other structures: the next readout knows them. */
  readonly #unlearned = new Set<string>();

  constructor(deps: JsonDeps) {
    this.#deps = deps;
  }

  readonly toJson: ToJson = (value) => jsonText(value, this.#expand);

  /** Asks for the definitions that these values need and that are not known yet. */
  async learn(values: readonly (RawValue | undefined)[], ctx: CallContext): Promise<void> {
    for (const encoding of this.#unlearned) {
      this.#unlearned.delete(encoding);
      await this.#learnOne(encoding, ctx);
    }
    for (const value of values) {
      if (value?.type !== EXTENSION_OBJECT) continue;
      for (const one of value.isArray && Array.isArray(value.value) ? value.value : [value.value])
        if (one instanceof ExtensionBody && !this.#byEncoding.has(one.encoding)) await this.#learnOne(one.encoding, ctx);
    }
  }

  readonly #expand = ({ encoding, body }: ExtensionBody): unknown => {
    if (typeof body === "string") return body;
    const definition = this.#byEncoding.get(encoding);
    if (!this.#byEncoding.has(encoding) && this.#unlearned.size < MAX_DEFINITIONS) this.#unlearned.add(encoding);
    try {
      if (definition) return decodeStructure(definition, body);
    } catch (error) {
      return { encoding, body: body.toString("base64"), error: messageOf(error) };
    }
    return { encoding, body: body.toString("base64") };
  };

  async #learnOne(encoding: string, ctx: CallContext): Promise<void> {
    if (this.#byEncoding.has(encoding) || this.#byEncoding.size >= MAX_DEFINITIONS) return;
    this.#byEncoding.set(encoding, undefined);
    try {
      const type = await this.#inverse(resolveNodeId(encoding), HAS_ENCODING, ctx);
      const found = type && (await this.#fieldType(type, ctx));
      if (found && "structure" in found) this.#byEncoding.set(encoding, found.structure);
    } catch (error) {
      if (!(error instanceof FaultError)) throw error;
    }
  }

  /** What a data type is on the wire; undefined where the server does not say. */
  async #fieldType(type: NodeId, ctx: CallContext): Promise<FieldType | undefined> {
    const key = type.toString();
    if (this.#byType.has(key)) return this.#byType.get(key);
    if (this.#byType.size >= MAX_DEFINITIONS) return undefined;
    const builtIn = builtInOf(type);
    if (builtIn !== undefined) return { builtIn };
    const given = await this.#definitionOf(type, ctx);
    if (isStructureDefinition(given)) return this.#structure(key, given, ctx);
    const known = isEnumDefinition(given) ? { builtIn: INT32 } : await this.#byAncestors(type, ctx);
    this.#byType.set(key, known);
    return known;
  }

  async #structure(key: string, given: StructureDefinitionLike, ctx: CallContext): Promise<FieldType | undefined> {
    const kind = KINDS[given.structureType];
    if (!kind || (given.fields?.length ?? 0) > MAX_FIELDS) return undefined;
    const definition: Definition = { kind, fields: [] };
    // Before its fields: a structure may hold itself.
    this.#byType.set(key, { structure: definition });
    for (const { name, dataType, valueRank, isOptional } of given.fields ?? []) {
      const type = await this.#fieldType(dataType, ctx);
      if (!type) {
        this.#byType.set(key, undefined);
        return undefined;
      }
      definition.fields.push({ name: name ?? "", type, valueRank, isOptional } satisfies Field);
    }
    return { structure: definition };
  }

  /** A simple type (Duration, UtcTime, a vendor's own) is encoded as the built-in one that it comes from. */
  async #byAncestors(type: NodeId, ctx: CallContext): Promise<FieldType | undefined> {
    let node: NodeId | undefined = type;
    for (let i = 0; node && i < MAX_ANCESTORS; i++) {
      node = await this.#inverse(node, HAS_SUBTYPE, ctx);
      const builtIn = node && builtInOf(node);
      if (builtIn !== undefined) return builtIn === EXTENSION_OBJECT ? undefined : { builtIn };
    }
    return undefined;
  }

  /** A DataTypeDefinition as node-opcua knows it. */
  async #definitionOf(type: NodeId, ctx: CallContext): Promise<unknown> {
    const [answer] = await this.#deps.readObjects([new ReadValueId({ nodeId: type, attributeId: DATA_TYPE_DEFINITION })], ctx);
    return answer && qualityOf(answer.statusCode.value) !== "bad" ? answer.value?.value : undefined;
  }

  async #inverse(nodeId: NodeId, reference: number, ctx: CallContext): Promise<NodeId | undefined> {
    const wanted = { nodeId, referenceTypeId: numeric(reference), browseDirection: INVERSE, includeSubtypes: true };
    const request = makeRequest("Browse", {
      requestedMaxReferencesPerNode: 1,
      nodesToBrowse: [{ ...wanted, nodeClassMask: 0, resultMask: 0 }],
    });
    const { results } = await this.#deps.call("Browse", request, ctx);
    const target = results?.[0]?.references?.[0]?.nodeId;
    return target && new NodeId(target.identifierType, target.value, target.namespace);
  }
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
