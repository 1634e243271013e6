import { NodeId, ReadValueId, resolveNodeId } from "node-opcua-client";
import { FaultError } from "../../src/model/fault.ts";
import { ExtensionBody, type RawValue } from "./binary.ts";
import { EXTENSION_OBJECT, wireType } from "./built-in.ts";
import type { CallContext, Channel } from "./client.ts";
import { localNode } from "./local-node.ts";
import type { Namespaces } from "./namespaces.ts";
import { makeRequest } from "./services.ts";
import { STANDARD_ENCODINGS, STANDARD_TYPES } from "./standard-structures.ts";
import { qualityOf } from "./status-codes.ts";
import { type Definition, decodeStructure, type Field, type FieldType, jsonText, MAX_FIELDS } from "./structures.ts";
import type { ToJson } from "./values.ts";

export interface JsonDeps {
  readonly call: Channel["call"];
  readonly namespaces: Pick<Namespaces, "indexOf">;
  read(nodes: readonly ReadValueId[], ctx: CallContext): Promise<readonly RawValue[]>;
}

/** What the server has refused to say of a structure is asked for again after this long. */
const AGAIN_MS = 30_000;
/** Structures that one session learns; what lies beyond stays bytes. */
const MAX_DEFINITIONS = 1000;
const HAS_ENCODING = 38;
const HAS_SUBTYPE = 45;
const INVERSE = 1;
const DATA_TYPE_DEFINITION = 23;
const MAX_ANCESTORS = 16;
/** StructureType (OPC 10000-3, 8.49); with subtyped values nothing is known of the layout of a field. */
const KINDS = ["structure", "optional", "union"] as const;
/** Its binary encoding (OPC 10000-6, A.3). */
const STRUCTURE_DEFINITION = "i=122";

/** Structures as JSON, by the definition that the server has of them (OPC 10000-3, 8.50); Base64 where it has none. */
export class Json {
  readonly #deps: JsonDeps;
  readonly #now: () => number;
  /** By the text of the encoding's node id; undefined: the server does not say what it is. */
  readonly #byEncoding = new Map<string, Definition | undefined>();
  readonly #byType = new Map<string, FieldType | undefined>();
  /** Until when those are not asked for of which the server has refused to say what they are: monotonic ms. */
  readonly #refusedUntilMs = new Map<string, number>();
  /** Met inside other structures: the next readout knows them. */
  readonly #unlearned = new Set<string>();

  /** `now`: monotonic ms. */
  constructor(deps: JsonDeps, now: () => number = () => performance.now()) {
    this.#deps = deps;
    this.#now = now;
  }

  readonly toJson: ToJson = (value) => jsonText(value, this.#expand);

  /** Asks for the definitions that these values need and that are not known yet. */
  async learn(values: readonly (RawValue | undefined)[], ctx: CallContext): Promise<void> {
    for (const value of values) {
      if (value?.type !== EXTENSION_OBJECT) continue;
      for (const one of value.isArray && Array.isArray(value.value) ? value.value : [value.value])
        if (one instanceof ExtensionBody && typeof one.body !== "string") await this.#learnOne(one.encoding, ctx);
    }
  }

  /** Asks for the definitions of structures that were met inside others; false: none was. */
  async learnMet(ctx: CallContext): Promise<boolean> {
    if (this.#unlearned.size === 0) return false;
    for (const encoding of this.#unlearned) {
      this.#unlearned.delete(encoding);
      await this.#learnOne(encoding, ctx);
    }
    return true;
  }

  /** Throws RangeError where the bytes are not of the definition: what such fields say may be anything. */
  readonly #expand = ({ encoding, body }: ExtensionBody): unknown => {
    if (typeof body === "string") return body;
    const definition = STANDARD_ENCODINGS.get(encoding) ?? this.#byEncoding.get(encoding);
    if (definition) return decodeStructure(definition, body);
    const isAsked = this.#byEncoding.has(encoding) || this.#isResting(encoding);
    if (!isAsked && this.#unlearned.size < MAX_DEFINITIONS) this.#unlearned.add(encoding);
    return { encoding, body: body.toString("base64") };
  };

  async #learnOne(encoding: string, ctx: CallContext): Promise<void> {
    if (STANDARD_ENCODINGS.has(encoding) || this.#byEncoding.has(encoding) || this.#byEncoding.size >= MAX_DEFINITIONS) return;
    if (this.#isResting(encoding)) return;
    this.#byEncoding.set(encoding, undefined);
    try {
      const type = await this.#inverse(resolveNodeId(encoding), HAS_ENCODING, ctx);
      const found = type && (await this.#fieldType(type, ctx));
      if (found && "structure" in found) this.#byEncoding.set(encoding, found.structure);
    } catch (error) {
      if (!(error instanceof FaultError)) throw error;
      this.#byEncoding.delete(encoding);
      if (this.#refusedUntilMs.size >= MAX_DEFINITIONS) this.#refusedUntilMs.clear();
      this.#refusedUntilMs.set(encoding, this.#now() + AGAIN_MS);
    }
  }

  /** The server has refused to say what it is, and is not asked again yet. */
  #isResting(encoding: string): boolean {
    return this.#now() < (this.#refusedUntilMs.get(encoding) ?? Number.NEGATIVE_INFINITY);
  }

  /** What a data type is on the wire; undefined where the server does not say. */
  async #fieldType(type: NodeId, ctx: CallContext): Promise<FieldType | undefined> {
    const key = type.toString();
    if (this.#byType.has(key)) return this.#byType.get(key);
    if (this.#byType.size >= MAX_DEFINITIONS) return undefined;
    const standard = standardType(type);
    if (standard) return standard;
    const given = await this.#definitionOf(type, ctx);
    if (given) return this.#structure(key, given, ctx);
    const known = await this.#byAncestors(type, ctx);
    this.#byType.set(key, known);
    return known;
  }

  async #structure(key: string, { structureType, fields }: StructureDefinition, ctx: CallContext): Promise<FieldType | undefined> {
    const kind = KINDS[structureType];
    if (!kind || fields.length > MAX_FIELDS) return undefined;
    const definition: Definition = { kind, fields: [] };
    // Before its fields: a structure may hold itself.
    this.#byType.set(key, { structure: definition });
    let isKnown = false;
    try {
      for (const { dataType, ...field } of fields) {
        const type = await this.#fieldType(resolveNodeId(dataType), ctx);
        if (!type) return undefined;
        definition.fields.push({ ...field, type } satisfies Field);
      }
      isKnown = true;
    } finally {
      // With some of its fields it would read others' bytes for them; those that hold it were made meanwhile.
      if (!isKnown) this.#byType.clear();
    }
    return { structure: definition };
  }

  /**
   * A simple type (Duration, UtcTime, a vendor's own) is encoded as the built-in one that it comes from, and so are enumerations and sets of
   * options: those of numbers as the number (OPC 10000-3, 8.40), those of the structure OptionSet as it.
   */
  async #byAncestors(type: NodeId, ctx: CallContext): Promise<FieldType | undefined> {
    let node: NodeId | undefined = type;
    for (let i = 0; node && i < MAX_ANCESTORS; i++) {
      node = await this.#inverse(node, HAS_SUBTYPE, ctx);
      const standard = node && standardType(node);
      if (standard) return "builtIn" in standard && standard.builtIn === EXTENSION_OBJECT ? undefined : standard;
    }
    return undefined;
  }

  /** Undefined: it is no structure, or the server does not say. */
  async #definitionOf(type: NodeId, ctx: CallContext): Promise<StructureDefinition | undefined> {
    const [answer] = await this.#deps.read([new ReadValueId({ nodeId: type, attributeId: DATA_TYPE_DEFINITION })], ctx);
    return answer && qualityOf(answer.status) !== "bad" ? structureDefinition(answer.value) : undefined;
  }

  async #inverse(nodeId: NodeId, reference: number, ctx: CallContext): Promise<NodeId | undefined> {
    const wanted = { nodeId, referenceTypeId: numeric(reference), browseDirection: INVERSE, includeSubtypes: true };
    const request = makeRequest("Browse", {
      requestedMaxReferencesPerNode: 1,
      nodesToBrowse: [{ ...wanted, nodeClassMask: 0, resultMask: 0 }],
    });
    const { results } = await this.#deps.call("Browse", request, ctx);
    const target = results?.[0]?.references?.[0]?.nodeId;
    const node = target && localNode(target, this.#deps.namespaces);
    return typeof node === "string" ? undefined : node;
  }
}

const builtInOf = ({ namespace, value }: NodeId): number | undefined =>
  namespace === 0 && typeof value === "number" ? wireType(value) : undefined;

/** Of namespace 0; undefined: it has to be asked for. */
function standardType(type: NodeId): FieldType | undefined {
  const builtIn = builtInOf(type);
  if (builtIn !== undefined) return { builtIn };
  const structure = type.namespace === 0 ? STANDARD_TYPES.get(`i=${type.value}`) : undefined;
  return structure && { structure };
}

const numeric = (id: number): NodeId => new NodeId(NodeId.NodeIdType.NUMERIC, id, 0);

interface StructureDefinition {
  /** Place in KINDS. */
  readonly structureType: number;
  readonly fields: readonly (Omit<Field, "type"> & { readonly dataType: string })[];
}

/** Undefined for enumerations, and for what cannot be taken apart. */
function structureDefinition(value: unknown): StructureDefinition | undefined {
  const definition = STANDARD_ENCODINGS.get(STRUCTURE_DEFINITION);
  if (!definition || !(value instanceof ExtensionBody) || value.encoding !== STRUCTURE_DEFINITION || typeof value.body === "string")
    return undefined;
  try {
    const { StructureType, Fields } = decodeStructure(definition, value.body);
    const fields = (Array.isArray(Fields) ? Fields : []) as readonly Record<string, unknown>[];
    return {
      structureType: Number(StructureType),
      fields: fields.map(({ Name, DataType, ValueRank, IsOptional }) => ({
        name: typeof Name === "string" ? Name : "",
        dataType: String(DataType),
        valueRank: Number(ValueRank),
        isOptional: IsOptional === true,
      })),
    };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return undefined;
  }
}
