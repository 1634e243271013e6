import { type NodeId, type ReferenceDescription, resolveNodeId } from "node-opcua-client";
import { clip } from "../../src/model/bounded-failure.ts";
import type { Discovered, DriverContext } from "../driver.ts";
import { encodeUri, identifierText, type PathElement, pathText } from "./address.ts";
import { Asking, type DiscoveryLimits, type DiscoverySession } from "./discover-ask.ts";
import { createTypes, shaped } from "./discover-types.ts";
import { localNode } from "./local-node.ts";
import { type Namespaces, namespacesOf } from "./namespaces.ts";

export type { DiscoverySession } from "./discover-ask.ts";

export interface DiscoveryOptions extends DiscoveryLimits {
  /** The server's NamespaceArray in this session. */
  readonly namespaces: readonly string[];
}

/** A node that was seen and not yet looked into. */
interface Pending {
  readonly nodeId: NodeId | string;
  readonly name: string;
  readonly path: readonly string[];
  /** The path of what is in it, once something is. */
  below: readonly string[] | undefined;
  readonly isVariable: boolean;
  /** The way to it by browse names, where that is asked for. */
  readonly way: Way | undefined;
  /** A property has nothing below it (OPC 10000-3, 5.6.2). */
  readonly isLeaf: boolean;
}

interface Way {
  readonly above: Way | undefined;
  readonly element: PathElement;
}

const OBJECTS = "i=85";
const HAS_PROPERTY = 46;
/** Objects of namespace 0 about the server itself: Server (thousands of nodes that are no machine's), Aliases, Quantities. */
const OF_THE_SERVER: ReadonlySet<unknown> = new Set([2253, 23470, 32530]);
const OBJECT_CLASS = 1;
const VARIABLE_CLASS = 2;
/** OPC 10000-6, A.1. */
const ATTRIBUTE = { description: 5, value: 13, dataType: 14, valueRank: 15, arrayDimensions: 16, userAccessLevel: 18 } as const;
const OF_EACH = [ATTRIBUTE.dataType, ATTRIBUTE.valueRank, ATTRIBUTE.arrayDimensions, ATTRIBUTE.userAccessLevel, ATTRIBUTE.description];
/** IdType, OPC 10000-3, 8.2.3. */
const GUID_ID = 3;
/** AccessLevelType, OPC 10000-3, 8.57. */
const CURRENT_READ = 1;

/** Nodes that are looked into together. */
const AT_ONCE = 100;
/** Nodes that are remembered, so that none comes twice; beyond them nothing new is looked into. */
const MAX_NODES = 250_000;
/** Folders within folders: a bound against a server that invents them. */
const MAX_DEPTH = 64;
/** Characters of all node ids that are remembered, and of one (OPC 10000-3, 8.2.4, with its namespace). */
const MAX_KEYS = 64 * 2 ** 20;
const MAX_KEY = 4200;
const MAX_NAME = 200;
const MAX_UNIT = 50;
const MAX_COMMENT = 2000;

/**
 * Everything below Objects but the server's own objects, the nearer first, each node once whatever leads to it: folders and objects
 * (`type` undefined) and variables with type, unit and description. Addresses name their namespace by its URI (`nsu=…`), which outlives a
 * renumbering; where the server has none for it, by its index. Throws what the session throws, and ReasonError when the signal aborts.
 */
export function discover(session: DiscoverySession, options: DiscoveryOptions, ctx: DiscoveryContext): AsyncGenerator<Discovered> {
  return new Discovery(session, options, ctx).run();
}

type DiscoveryContext = Pick<DriverContext, "signal" | "log" | "progress" | "browsePaths">;

class Discovery {
  readonly #namespaces: readonly string[];
  readonly #ctx: DiscoveryContext;
  readonly #ask: Asking;
  readonly #scalarOf: ReturnType<typeof createTypes>;
  readonly #indexes: Pick<Namespaces, "indexOf">;
  readonly #seen = new Set<string>([resolveNodeId(OBJECTS).toString()]);
  readonly #queue: Pending[] = [];
  /** The node of a variable's unit, for those that are looked into. */
  readonly #units = new Map<Pending, NodeId>();
  readonly #top: Pending = { nodeId: OBJECTS, name: "", path: [], below: undefined, isVariable: false, way: undefined, isLeaf: false };
  #keys = 0;
  #isFull = false;

  constructor(session: DiscoverySession, options: DiscoveryOptions, ctx: DiscoveryContext) {
    this.#namespaces = options.namespaces;
    this.#indexes = namespacesOf(options.namespaces, options.namespaces);
    this.#ctx = ctx;
    this.#ask = new Asking(session, options, ctx.signal);
    this.#scalarOf = createTypes(this.#ask);
  }

  async *run(): AsyncGenerator<Discovered> {
    const { log, progress } = this.#ctx;
    await this.#ask.below([this.#top], this.#take);
    let head = 0;
    let done = 0;
    while (head < this.#queue.length) {
      const batch = this.#queue.slice(head, head + AT_ONCE);
      head += batch.length;
      if (head > 10_000) {
        this.#queue.splice(0, head);
        head = 0;
      }
      const open = batch.filter(({ isLeaf }) => !isLeaf);
      await this.#ask.below(open, this.#take);
      done += batch.length;
      // How many there are is known at the end only.
      progress?.(done, undefined);
      yield* await this.#describe(batch);
      this.#units.clear();
    }
    if (this.#isFull)
      log.warn(
        { nodes: MAX_NODES, depth: MAX_DEPTH },
        "the server has more nodes, or deeper ones, than are looked into; the rest was not found",
      );
  }

  readonly #take = (parent: Pending, reference: ReferenceDescription): void => {
    const { nodeClass, browseName, referenceTypeId } = reference;
    const isVariable = nodeClass === VARIABLE_CLASS;
    if (!isVariable && nodeClass !== OBJECT_CLASS) return;
    const nodeId = localNode(reference.nodeId, this.#indexes);
    if (typeof nodeId === "string") return;
    const isProperty = referenceTypeId.namespace === 0 && referenceTypeId.value === HAS_PROPERTY;
    if (isProperty && parent.isVariable) {
      if (browseName.name === "EngineeringUnits" && browseName.namespaceIndex === 0) this.#units.set(parent, nodeId);
      return;
    }
    if (nodeId.namespace === 0 && OF_THE_SERVER.has(nodeId.value)) return;
    const key = nodeId.toString();
    if (this.#seen.has(key)) return;
    parent.below ??= parent === this.#top ? [] : [...parent.path, parent.name];
    if (this.#seen.size >= MAX_NODES || this.#keys >= MAX_KEYS || key.length > MAX_KEY || parent.below.length >= MAX_DEPTH) {
      this.#isFull = true;
      return;
    }
    this.#seen.add(key);
    this.#keys += key.length;
    const name = clip(reference.displayName.text || browseName.name || key, MAX_NAME);
    const way = this.#ctx.browsePaths && this.#wayTo(parent, browseName);
    this.#queue.push({ nodeId, name, path: parent.below, below: undefined, isVariable, way, isLeaf: isProperty });
  };

  /** By the URIs of the namespaces, where the server has them. */
  #wayTo({ way: above }: Pending, { namespaceIndex, name }: ReferenceDescription["browseName"]): Way {
    const uri = namespaceIndex === 0 ? undefined : this.#namespaces[namespaceIndex];
    return { above, element: { namespace: uri ? { uri } : namespaceIndex, name: name ?? "" } };
  }

  async #describe(batch: readonly Pending[]): Promise<Discovered[]> {
    const variables = batch.filter(({ isVariable }) => isVariable);
    const wanted = variables.flatMap((variable) => {
      const unit = this.#units.get(variable);
      return [
        ...OF_EACH.map((attributeId) => ({ nodeId: variable.nodeId, attributeId })),
        ...(unit ? [{ nodeId: unit, attributeId: ATTRIBUTE.value }] : []),
      ];
    });
    const values = await this.#ask.values(wanted);
    const details = new Map<Pending, Pick<Discovered, "type" | "unit" | "comment">>();
    let at = 0;
    for (const variable of variables) {
      const [dataType, rank, dimensions, access, description] = values.slice(at, at + OF_EACH.length);
      at += OF_EACH.length;
      const unit = this.#units.has(variable) ? textOf((values[at++] as { readonly displayName?: unknown } | undefined)?.displayName) : "";
      const comment = clip(textOf(description), MAX_COMMENT);
      const readable = typeof access !== "number" || (access & CURRENT_READ) !== 0;
      details.set(variable, {
        type: readable ? shaped(await this.#scalarOf(dataType), rank, dimensions) : undefined,
        ...(unit !== "" && { unit: clip(unit, MAX_UNIT) }),
        ...(comment !== "" && { comment }),
      });
    }
    return batch.map((pending) => ({
      address: addressOf(pending.nodeId, this.#namespaces),
      name: pending.name,
      path: pending.path,
      type: undefined,
      ...details.get(pending),
      ...(pending.way && { browsePath: wayText(pending.way) }),
    }));
  }
}

function wayText(way: Way): string {
  const elements: PathElement[] = [];
  for (let at: Way | undefined = way; at; at = at.above) elements.unshift(at.element);
  return pathText([{ namespace: 0, name: "Objects" }, ...elements]);
}

const textOf = (value: unknown): string => {
  const text: unknown = typeof value === "object" && value !== null && "text" in value ? value.text : undefined;
  return typeof text === "string" ? text : "";
};

/** As the driver's addresses are written. Pure. */
export function addressOf(nodeId: NodeId | string, namespaces: readonly string[]): string {
  if (typeof nodeId === "string") return nodeId;
  const { namespace, value } = nodeId;
  const uri = namespace === 0 ? undefined : namespaces[namespace];
  const before = namespace === 0 ? "" : uri ? `nsu=${encodeUri(uri)};` : `ns=${namespace};`;
  if (typeof value === "number") return `${before}i=${value}`;
  if (Buffer.isBuffer(value)) return `${before}b=${value.toString("base64")}`;
  return nodeId.identifierType === GUID_ID
    ? `${before}g=${String(value).toLowerCase()}`
    : `${before}${identifierText({ type: "s", value: String(value) })}`;
}
