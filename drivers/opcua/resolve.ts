import { NodeId } from "node-opcua-client";
import { FaultError } from "../../src/model/fault.ts";
import type { DriverContext, Point, Prepared } from "../driver.ts";
import { type OpcuaAddress, pathText, type ResolvedAddress } from "./address.ts";
import type { CallContext, Channel } from "./client.ts";
import { describeCode } from "./failure.ts";
import { localNode } from "./local-node.ts";
import type { Namespaces } from "./namespaces.ts";
import { makeRequest, type RequestOf, type ResponseOf } from "./services.ts";
import { qualityOf } from "./status-codes.ts";
import { statusOf } from "./statuses.ts";

export interface ResolveOptions {
  readonly call: Channel["call"];
  readonly namespaces: Namespaces;
  /** Paths in one request. */
  readonly maxPaths: number;
  /** This many were not too many, after more had been. */
  onTooMany(maxPaths: number): void;
}

type PathAddress = Extract<OpcuaAddress, { kind: "path" }>;
type NodeAddress = Extract<OpcuaAddress, { kind: "node" }>;
type PreparedPoint = Prepared<OpcuaAddress>;
type PathResult = NonNullable<ResponseOf<"TranslateBrowsePathsToNodeIds">["results"]>[number];

/** A path that leads nowhere is looked for again after this long: the server may still be loading. */
const AGAIN_MS = 30_000;
/** What is under way when the signal aborts may end so long after: a request that is given up costs the connection. */
const GRACE_MS = 1000;
/** Points without a request in one batch. */
const BATCH = 1000;
const HIERARCHICAL_REFERENCES = 33;
const ROOT = 84;
const WHOLE_PATH = 0xffff_ffff;

const ID_TYPES = { i: NodeId.NodeIdType.NUMERIC, s: NodeId.NodeIdType.STRING, g: NodeId.NodeIdType.GUID, b: NodeId.NodeIdType.BYTESTRING };
const ID_LETTERS = new Map(Object.entries(ID_TYPES).map(([letter, type]) => [type, letter as keyof typeof ID_TYPES]));

/** The node of a resolved address. */
export const nodeIdOf = ({ namespace, id: { type, value } }: ResolvedAddress): NodeId =>
  new NodeId(ID_TYPES[type], type === "b" ? Buffer.from(value, "base64") : value, namespace);

/**
 * The place where each point is in this session: its node, or why there is none. Namespaces take no request; paths are asked for in what the
 * server takes at once, each once. Ends between two requests when the signal aborts. Throws as `Session.read` does.
 */
export async function* resolvePoints(
  points: readonly Point<OpcuaAddress>[],
  { call, namespaces, maxPaths, onTooMany }: ResolveOptions,
  ctx: DriverContext,
): AsyncGenerator<readonly PreparedPoint[]> {
  const paths = new Map<string, { readonly address: PathAddress; readonly points: Point<OpcuaAddress>[] }>();
  const known: PreparedPoint[] = [];
  for (const point of points) {
    const { address } = point;
    if (address.kind === "resolved") known.push({ point, address, type: point.type });
    else if (address.kind === "node") known.push(ofNode(point, address, namespaces));
    else {
      const lost = address.elements.find(({ namespace }) => namespaces.indexOf(namespace) === undefined);
      const text = pathText(address.elements);
      const same = paths.get(text);
      if (lost) known.push({ point, refusal: namespaces.missing(lost.namespace) });
      else if (same) same.points.push(point);
      else paths.set(text, { address, points: [point] });
    }
  }
  for (let at = 0; at < known.length; at += BATCH) yield known.slice(at, at + BATCH);
  const bound = withGrace(ctx);
  try {
    const queue = partsOf([...paths.values()], maxPaths);
    let refused: FaultError | undefined;
    for (let part = queue.shift(); part && !ctx.signal.aborted; part = queue.shift()) {
      let results: readonly PathResult[] = [];
      // A server that refuses the service as such is asked once.
      if (refused?.scope !== "everything") refused = undefined;
      try {
        if (refused) throw refused;
        const request = pathsRequest(
          part.map(({ address }) => address),
          namespaces,
        );
        results = (await call("TranslateBrowsePathsToNodeIds", request, bound)).results ?? [];
      } catch (error) {
        if (!(error instanceof FaultError) || (error.scope !== "points" && error.scope !== "everything")) throw error;
        if (part.length > 1 && error.scope === "points") {
          const fewer = Math.ceil(part.length / 2);
          onTooMany(fewer);
          queue.splice(0, queue.length, ...partsOf([...part, ...queue.flat()], fewer));
          continue;
        }
        refused = error;
      }
      yield part.flatMap(({ address, points: asked }, i) => {
        const found = refused ?? ofPath(results[i], address, namespaces);
        return asked.map(
          (point): PreparedPoint =>
            found instanceof FaultError
              ? { point, refusal: found, retryAfterMs: AGAIN_MS }
              : { point, address: { ...found, ...partOf(point.address) }, type: point.type },
        );
      });
    }
  } finally {
    bound.end();
  }
}

function ofNode(point: Point<OpcuaAddress>, { namespace, id }: NodeAddress, namespaces: Namespaces): PreparedPoint {
  const index = namespaces.indexOf(namespace);
  return index === undefined
    ? { point, refusal: namespaces.missing(namespace) }
    : { point, address: { kind: "resolved", namespace: index, id, ...partOf(point.address) }, type: point.type };
}

const partOf = ({ select }: OpcuaAddress): Pick<ResolvedAddress, "select"> => (select ? { select } : {});

const pathsRequest = (paths: readonly PathAddress[], namespaces: Namespaces): RequestOf<"TranslateBrowsePathsToNodeIds"> =>
  makeRequest("TranslateBrowsePathsToNodeIds", {
    browsePaths: paths.map(({ elements }) => ({
      startingNode: new NodeId(NodeId.NodeIdType.NUMERIC, ROOT, 0),
      relativePath: {
        elements: elements.map(({ namespace, name }) => ({
          referenceTypeId: new NodeId(NodeId.NodeIdType.NUMERIC, HIERARCHICAL_REFERENCES, 0),
          isInverse: false,
          includeSubtypes: true,
          targetName: { namespaceIndex: namespaces.indexOf(namespace) ?? 0, name },
        })),
      },
    })),
  });

function ofPath(result: PathResult | undefined, { elements }: PathAddress, namespaces: Namespaces): ResolvedAddress | FaultError {
  if (result && qualityOf(result.statusCode.value) === "bad")
    return new FaultError("not_found", describeCode(statusOf(result.statusCode.value, null)));
  const targets = (result?.targets ?? []).filter(({ remainingPathIndex }) => remainingPathIndex === WHOLE_PATH);
  const ids = new Map(targets.map(({ targetId }) => [targetId.toString(), targetId]));
  const [target] = ids.values();
  if (!target) return new FaultError("not_found", "the path leads to no node of this server");
  if (ids.size > 1) {
    const some = [...ids.keys()].slice(0, 3).join(", ");
    return new FaultError("not_found", `the path leads to ${ids.size} nodes: ${some}; take one of their ids`);
  }
  const id = localNode(target, namespaces);
  if (typeof id === "string") return new FaultError("not_found", `the path leads to a node ${id}`);
  return { kind: "resolved", namespace: id.namespace, id: identifierOf(id), path: pathText(elements) };
}

/** As plain data. */
function identifierOf({ identifierType, value }: NodeId): ResolvedAddress["id"] {
  if (typeof value === "number") return { type: "i", value };
  if (Buffer.isBuffer(value)) return { type: "b", value: value.toString("base64") };
  return { type: ID_LETTERS.get(identifierType) === "g" ? "g" : "s", value: String(value) };
}

/** The context of calls that may end a little after the signal's abort. */
function withGrace({ signal, timeouts }: DriverContext): CallContext & { end(): void } {
  const late = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    timer = setTimeout(() => late.abort(signal.reason), GRACE_MS);
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  const end = () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  };
  return { signal: late.signal, timeouts, end };
}

function partsOf<T>(items: readonly T[], size: number): (readonly T[])[] {
  const parts: (readonly T[])[] = [];
  for (let at = 0; at < items.length; at += Math.max(1, size)) parts.push(items.slice(at, at + Math.max(1, size)));
  return parts;
}

const halvesOf = <T>(part: readonly T[]): readonly (readonly T[])[] => [part.slice(0, part.length >> 1), part.slice(part.length >> 1)];

/** One part after the other; a part that the server refuses is halved, down to one. */
export async function inParts<T>(items: readonly T[], size: number, work: (part: readonly T[]) => Promise<void>): Promise<void> {
  const queue = partsOf(items, size);
  for (let part = queue.shift(); part; part = queue.shift()) {
    try {
      await work(part);
    } catch (error) {
      if (!(error instanceof FaultError) || error.scope !== "points" || part.length < 2) throw error;
      queue.unshift(...halvesOf(part));
    }
  }
}
