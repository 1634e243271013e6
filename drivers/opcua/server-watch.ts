import { NodeId, ReadValueId } from "node-opcua-client";
import { FaultError } from "../../src/model/fault.ts";
import type { RawValue } from "./binary.ts";
import type { CallContext, Channel } from "./client.ts";
import { localNode } from "./local-node.ts";
import type { Namespaces } from "./namespaces.ts";
import { startTimeOf } from "./server-state.ts";
import { makeRequest, type ResponseOf } from "./services.ts";
import { qualityOf } from "./status-codes.ts";

export interface WatchDeps {
  readonly call: Channel["call"];
  readonly namespaces: Pick<Namespaces, "indexOf">;
  read(nodes: readonly ReadValueId[], ctx: CallContext): Promise<readonly RawValue[]>;
}

/** The run of a server as it was when the session began. */
export interface ServerRunNow {
  readonly namespaces: readonly (string | null)[];
  readonly startTime: string | undefined;
}

/** `otherRun`: what changed, in words. `models`: the versions of its models as one text; undefined: it has none. */
export interface Look {
  readonly otherRun: string | undefined;
  readonly models: string | undefined;
  /** Answers to Reads of its state and its ServiceLevel. */
  readonly state: RawValue | undefined;
  readonly serviceLevel: RawValue | undefined;
}

/** Nodes of ns=0 (OPC 10000-6, A.3): NamespaceArray, StartTime, State, and the folder with the metadata of each namespace (OPC 10000-5, 6.3.13). */
const NAMESPACE_ARRAY = 2255;
const START_TIME = 2257;
const STATE = 2259;
const SERVICE_LEVEL = 2267;
const NAMESPACES = 11_715;
const HAS_COMPONENT = 47;
const HAS_PROPERTY = 46;
const FORWARD = 0;
/** BrowseResultMask of the browse name. */
const BROWSE_NAME = 8;
const VALUE = 13;
/** Properties that another version of a model changes. */
const VERSIONS: ReadonlySet<string> = new Set(["NamespaceVersion", "NamespacePublicationDate", "ModelVersion"]);
const MAX_MODELS = 50;
const MAX_PROPERTIES = 50;

/** Looks whether a server is still the one that it was when the session began: its namespaces, when it began to run, its models. */
export class ServerWatch {
  readonly #deps: WatchDeps;
  readonly #run: ServerRunNow;
  /** Nodes with the versions of models; undefined: not looked for yet. */
  #versions: readonly NodeId[] | undefined;

  constructor(run: ServerRunNow, deps: WatchDeps) {
    this.#run = run;
    this.#deps = deps;
  }

  /** `withModels`: the versions of its models too, whose nodes are looked for until they are found. Throws what a call does. */
  async look(withModels: boolean, ctx: CallContext): Promise<Look> {
    if (withModels) this.#versions ??= await this.#findVersions(ctx).catch(unlessRefused);
    const versions = withModels ? (this.#versions ?? []) : [];
    const nodes = [numeric(NAMESPACE_ARRAY), numeric(START_TIME), numeric(STATE), numeric(SERVICE_LEVEL), ...versions].map(
      (nodeId) => new ReadValueId({ nodeId, attributeId: VALUE }),
    );
    const [namespaces, startTime, state, serviceLevel, ...models] = await this.#deps.read(nodes, ctx);
    const isAnswered = models.length > 0 && models.every(({ status }) => qualityOf(status) !== "bad");
    return {
      otherRun: this.#otherRun(namespaces, startTime),
      models: isAnswered ? JSON.stringify(models.map(({ value }) => value)) : undefined,
      state,
      serviceLevel,
    };
  }

  #otherRun(namespaces: RawValue | undefined, startTime: RawValue | undefined): string | undefined {
    const list = goodValue(namespaces);
    if (Array.isArray(list) && `${list}` !== `${this.#run.namespaces}`) return "the server has another list of namespaces";
    const began = startTimeOf(goodValue(startTime));
    const before = this.#run.startTime;
    return began !== undefined && before !== undefined && began !== before ? "the server has started again" : undefined;
  }

  async #findVersions(ctx: CallContext): Promise<readonly NodeId[]> {
    const [folder] = await this.#browse([numeric(NAMESPACES)], HAS_COMPONENT, MAX_MODELS, ctx);
    const models = (folder?.references ?? []).flatMap(({ nodeId }) => this.#local(nodeId)).slice(0, MAX_MODELS);
    if (models.length === 0) return [];
    const found = await this.#browse(models, HAS_PROPERTY, MAX_PROPERTIES, ctx);
    return found.flatMap(({ references }) =>
      (references ?? []).filter(({ browseName }) => VERSIONS.has(browseName.name ?? "")).flatMap(({ nodeId }) => this.#local(nodeId)),
    );
  }

  async #browse(nodes: readonly NodeId[], referenceType: number, most: number, ctx: CallContext): Promise<readonly BrowseResult[]> {
    const request = makeRequest("Browse", {
      requestedMaxReferencesPerNode: most,
      nodesToBrowse: nodes.map((nodeId) => ({
        nodeId,
        referenceTypeId: numeric(referenceType),
        browseDirection: FORWARD,
        includeSubtypes: true,
        nodeClassMask: 0,
        resultMask: BROWSE_NAME,
      })),
    });
    return (await this.#deps.call("Browse", request, ctx)).results ?? [];
  }

  #local(target: Parameters<typeof localNode>[0]): readonly NodeId[] {
    const node = localNode(target, this.#deps.namespaces);
    return typeof node === "string" ? [] : [node];
  }
}

/** A server that lets nobody browse tells of its namespaces and its start all the same. */
function unlessRefused(error: unknown): undefined {
  if (!(error instanceof FaultError)) throw error;
}

type BrowseResult = NonNullable<ResponseOf<"Browse">["results"]>[number];

const numeric = (id: number): NodeId => new NodeId(NodeId.NodeIdType.NUMERIC, id, 0);
/** Undefined where the server does not say it well. */
const goodValue = (raw: RawValue | undefined): unknown => (raw && qualityOf(raw.status) === "good" ? raw.value : undefined);
