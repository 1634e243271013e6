import { NodeId, ReadValueId, resolveNodeId } from "node-opcua-client";
import { messageOf } from "../../src/model/failure.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { ExtensionBody, type RawValue } from "./binary.ts";
import type { CallContext, Channel } from "./client.ts";
import { parseDictionary } from "./dictionary.ts";
import { describeCode, ServerRefusal } from "./failure.ts";
import type { Ask, LearnedTypes, StructureDefinition, Told } from "./learned-types.ts";
import { localNode } from "./local-node.ts";
import type { Namespaces } from "./namespaces.ts";
import { makeRequest, type ResponseOf } from "./services.ts";
import { STANDARD_ENCODINGS } from "./standard-structures.ts";
import { codeOf, faultOf, isBusy, isTooMuch, qualityOf, STATUS } from "./status-codes.ts";
import { statusOf } from "./statuses.ts";
import { decodeStructure } from "./structures.ts";

export interface AskTypesDeps {
  readonly call: Channel["call"];
  readonly namespaces: Pick<Namespaces, "indexOf">;
  read(nodes: readonly ReadValueId[], ctx: CallContext): Promise<readonly RawValue[]>;
  /** Nodes in one request. */
  readonly maxBrowse: number;
  readonly maxRead: number;
  /** The collector itself ends the session. */
  isEnding(): boolean;
}

type BrowseResult = NonNullable<ResponseOf<"Browse">["results"]>[number];

/** Nodes in one request where the server names no limit: what is asked beside the readouts is to be short. */
export const MAX_ASKS = 100;
const FORWARD = 0;
const INVERSE = 1;
/** The reference that answers each question: HasEncoding, HasSubtype, HasDescription, HasComponent (OPC 10000-6, A.3). */
const BROWSED = {
  encoding: { referenceType: 38, browseDirection: INVERSE },
  parent: { referenceType: 45, browseDirection: INVERSE },
  description: { referenceType: 39, browseDirection: FORWARD },
  dictionary: { referenceType: 47, browseDirection: INVERSE },
} as const;
const VALUE = 13;
const DATA_TYPE_DEFINITION = 23;
const MAX_DICTIONARY_BYTES = 4 * 2 ** 20;
/** Binary encoding of StructureDefinition (OPC 10000-6, A.3). */
const STRUCTURE_DEFINITION = "i=122";
const UNANSWERED: Told = { type: "failed", words: "the server has not answered it" };
const TOO_MANY = "the server says that even one question is too much";

/** Asks a server what its types are, some questions in one request, and tells the store each answer. */
export class AskTypes {
  readonly #deps: AskTypesDeps;
  readonly #types: LearnedTypes;
  /** Questions in one request; fewer after a server had too many. */
  #most: number;

  constructor(types: LearnedTypes, deps: AskTypesDeps) {
    this.#types = types;
    this.#deps = deps;
    this.#most = Math.min(MAX_ASKS, deps.maxBrowse, deps.maxRead);
  }

  /** How many are asked at once. */
  get most(): number {
    return this.#most;
  }

  /**
   * One request at most for each service. Every question gets an answer, whatever fails, but where fewer at once may be answered. Throws
   * ReasonError where the session is lost.
   */
  async ask(asks: readonly Ask[], ctx: CallContext): Promise<void> {
    this.#types.begin(asks);
    const left = new Set(asks);
    const tell: Tell = (ask, told, count) => {
      if (told === "less" && count > 1) return;
      left.delete(ask);
      this.#types.tell(ask, told === "less" ? { type: "failed", words: TOO_MANY } : told);
    };
    try {
      await this.#browse(asks.filter(isBrowsed), tell, ctx);
      await this.#read(
        asks.filter((ask) => !isBrowsed(ask)),
        tell,
        ctx,
      );
    } catch (error) {
      const words = messageOf(error);
      const isLess = error instanceof FaultError && error.scope === "points" && asks.length > 1;
      if (this.#deps.isEnding()) return this.#types.release(left);
      // Also where the session was lost: what these questions do to a server, they are not to do to each next session at once.
      if (!isLess) for (const ask of left) this.#types.tell(ask, { type: isRefusal(error) ? "refused" : "failed", words });
      if (error instanceof ReasonError) throw error;
    }
    const isAnswered = [...left].every((ask) => !this.#types.isAsked(ask));
    if (isAnswered) return;
    this.#most = Math.max(1, Math.min(this.#most, asks.length >> 1));
    this.#types.release(left);
  }

  async #browse(asks: readonly BrowsedAsk[], tell: Tell, ctx: CallContext): Promise<void> {
    if (asks.length === 0) return;
    const request = makeRequest("Browse", {
      requestedMaxReferencesPerNode: 1,
      nodesToBrowse: asks.map(({ about, node }) => ({
        nodeId: resolveNodeId(node),
        referenceTypeId: new NodeId(NodeId.NodeIdType.NUMERIC, BROWSED[about].referenceType, 0),
        browseDirection: BROWSED[about].browseDirection,
        includeSubtypes: true,
        nodeClassMask: 0,
        resultMask: 0,
      })),
    });
    const { results } = await this.#deps.call("Browse", request, ctx);
    for (const [i, ask] of asks.entries()) tell(ask, toldByBrowse(results?.[i], this.#deps.namespaces), asks.length);
  }

  async #read(asks: readonly Ask[], tell: Tell, ctx: CallContext): Promise<void> {
    if (asks.length === 0) return;
    const nodes = asks.map(
      ({ about, node }) => new ReadValueId({ nodeId: resolveNodeId(node), attributeId: about === "fields" ? DATA_TYPE_DEFINITION : VALUE }),
    );
    const values = await this.#deps.read(nodes, ctx);
    for (const [i, ask] of asks.entries()) tell(ask, toldByRead(ask, values[i]), asks.length);
  }
}

/** `less`: the server may answer where fewer are asked at once. */
type Judged = Told | "less";
type Tell = (ask: Ask, told: Judged, count: number) => void;

interface BrowsedAsk extends Ask {
  readonly about: keyof typeof BROWSED;
}

const isBrowsed = (ask: Ask): ask is BrowsedAsk => ask.about in BROWSED;

function toldByRead({ about }: Ask, answer: RawValue | undefined): Judged {
  if (!answer) return UNANSWERED;
  if (qualityOf(answer.status) === "bad") return toldByStatus(answer.status);
  if (about === "fields") return toldByDefinition(answer.value);
  if (typeof answer.value !== "string") return { type: "none" };
  return about === "name" ? { type: "name", name: answer.value } : toldByContent(answer.value);
}

/** `content`: the dictionary's XML, as Base64. */
function toldByContent(content: string): Told {
  const bytes = Buffer.from(content, "base64");
  const dictionary = bytes.length <= MAX_DICTIONARY_BYTES ? parseDictionary(bytes.toString("utf8")) : undefined;
  return dictionary ? { type: "content", dictionary } : { type: "none" };
}

function toldByBrowse(result: BrowseResult | undefined, namespaces: Pick<Namespaces, "indexOf">): Judged {
  if (!result) return UNANSWERED;
  if (qualityOf(result.statusCode.value) === "bad") return toldByStatus(result.statusCode.value);
  const target = result.references?.[0]?.nodeId;
  const node = target && localNode(target, namespaces);
  return node === undefined || typeof node === "string" ? { type: "none" } : { type: "node", node: node.toString() };
}

/** Servers before OPC UA 1.04 have no such attribute. */
function toldByStatus(status: number): Judged {
  if (codeOf(status) === STATUS.BadAttributeIdInvalid) return { type: "none" };
  if (isTooMuch(status)) return "less";
  return { type: isOfTheMoment(status) ? "failed" : "refused", words: describeCode(statusOf(status, null)) };
}

/** The same question may be answered later. */
const isOfTheMoment = (status: number): boolean => isBusy(status) || isTooMuch(status) || faultOf(status) === "no_answer";

/** A service that the server refuses whatever is asked, or an answer that cannot be used. */
function isRefusal(error: unknown): boolean {
  if (error instanceof ServerRefusal) return !isOfTheMoment(error.code);
  return error instanceof FaultError && error.scope !== "silent";
}

/** Enumerations have another definition: they are what they are derived from. */
function toldByDefinition(value: unknown): Told {
  const definition = STANDARD_ENCODINGS.get(STRUCTURE_DEFINITION);
  if (!definition || !(value instanceof ExtensionBody) || value.encoding !== STRUCTURE_DEFINITION) return { type: "none" };
  try {
    if (typeof value.body === "string") throw new RangeError("it is XML");
    return { type: "fields", definition: structureDefinition(decodeStructure(definition, value.body)) };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { type: "refused", words: `its definition cannot be taken apart: ${error.message}` };
  }
}

function structureDefinition({ StructureType, Fields }: Readonly<Record<string, unknown>>): StructureDefinition {
  const fields = (Array.isArray(Fields) ? Fields : []) as readonly Record<string, unknown>[];
  return {
    structureType: Number(StructureType),
    fields: fields.map(({ Name, DataType, ValueRank, IsOptional }) => ({
      name: typeof Name === "string" ? Name : "",
      dataType: resolveNodeId(String(DataType)).toString(),
      valueRank: Number(ValueRank),
      isOptional: IsOptional === true,
    })),
  };
}
