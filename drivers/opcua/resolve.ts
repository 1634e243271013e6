import { NodeId } from "node-opcua-client";
import { FaultError } from "../../src/model/fault.ts";
import type { Reading } from "../../src/model/value.ts";
import type { OpcuaAddress } from "./address.ts";
import type { CallContext, Channel } from "./client.ts";
import { describeCode } from "./failure.ts";
import type { Namespaces } from "./namespaces.ts";
import { makeRequest, type RequestOf } from "./services.ts";
import { qualityOf } from "./status-codes.ts";
import { statusOf } from "./statuses.ts";

export type Bad = Extract<Reading, { readonly quality: "bad" }>;

/** Where each address is in this session: a node, or why there is none. */
export type Resolve = (addresses: readonly OpcuaAddress[], ctx: CallContext) => Promise<readonly (NodeId | Bad)[]>;

export interface ResolveOptions {
  readonly call: Channel["call"];
  readonly namespaces: Namespaces;
  /** Paths in one request. */
  readonly maxPaths: number;
}

/** A path that leads nowhere is looked for again after this long: the server may still be loading. */
const AGAIN_MS = 30_000;
const HIERARCHICAL_REFERENCES = 33;
const ROOT = 84;
const WHOLE_PATH = 0xffff_ffff;

const ID_TYPES = { i: NodeId.NodeIdType.NUMERIC, s: NodeId.NodeIdType.STRING, g: NodeId.NodeIdType.GUID, b: NodeId.NodeIdType.BYTESTRING };

/** What addresses mean is asked for once in a session: namespace indexes and paths may be others in the next one. */
export function createResolve({ call, namespaces, maxPaths }: ResolveOptions): Resolve {
  const found = new Map<string, NodeId | Bad>();
  const lookedForAt = new Map<string, number>();

  const ofNode = (address: Extract<OpcuaAddress, { kind: "node" }>): NodeId | Bad => {
    const index = namespaces.indexOf(address.namespace);
    if (index === undefined) return { quality: "bad", fault: "not_found", detail: namespaces.missing(address.namespace) };
    const { type, value } = address.id;
    return new NodeId(ID_TYPES[type], type === "b" ? Buffer.from(value, "base64") : value, index);
  };

  type PathAddress = Extract<OpcuaAddress, { kind: "path" }>;
  const translate = async (paths: readonly PathAddress[], ctx: CallContext): Promise<void> => {
    const request: RequestOf<"TranslateBrowsePathsToNodeIds"> = makeRequest("TranslateBrowsePathsToNodeIds", {
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
    const { results } = await call("TranslateBrowsePathsToNodeIds", request, ctx);
    for (const [i, path] of paths.entries()) {
      const result = results?.[i];
      const targets = (result?.targets ?? []).filter(({ remainingPathIndex }) => remainingPathIndex === WHOLE_PATH);
      const ids = new Map(targets.map(({ targetId }) => [targetId.toString(), targetId]));
      const [id] = ids.values();
      if (!result || qualityOf(result.statusCode.value) === "bad" || !id)
        found.set(path.text, {
          quality: "bad",
          fault: "not_found",
          detail:
            result && qualityOf(result.statusCode.value) === "bad"
              ? describeCode(statusOf(result.statusCode.value, null))
              : "the path leads to no node of this server",
        });
      else if (ids.size > 1)
        found.set(path.text, {
          quality: "bad",
          fault: "not_found",
          detail: `the path leads to ${ids.size} nodes: ${[...ids.keys()].slice(0, 3).join(", ")}; take one of their ids`,
        });
      else found.set(path.text, new NodeId(id.identifierType, id.value, id.namespace));
    }
  };

  return async (addresses, ctx) => {
    const at = performance.now();
    const wanted = new Map<string, PathAddress>();
    for (const address of addresses) {
      const known = found.get(address.text);
      if (known instanceof NodeId) continue;
      if (address.kind === "node") {
        if (known === undefined) found.set(address.text, ofNode(address));
        continue;
      }
      if (known !== undefined && at - (lookedForAt.get(address.text) ?? 0) < AGAIN_MS) continue;
      const lost = address.elements.find(({ namespace }) => namespaces.indexOf(namespace) === undefined);
      lookedForAt.set(address.text, at);
      if (lost) found.set(address.text, { quality: "bad", fault: "not_found", detail: namespaces.missing(lost.namespace) });
      else wanted.set(address.text, address);
    }
    await inParts([...wanted.values()], maxPaths, (part) => translate(part, ctx));
    return addresses.map((address): NodeId | Bad => found.get(address.text) ?? { quality: "bad", fault: "not_found" });
  };
}

/** One part after the other; a part that the server refuses is halved, down to one. */
export async function inParts<T>(items: readonly T[], size: number, work: (part: readonly T[]) => Promise<void>): Promise<void> {
  const queue: (readonly T[])[] = [];
  for (let at = 0; at < items.length; at += Math.max(1, size)) queue.push(items.slice(at, at + Math.max(1, size)));
  for (let part = queue.shift(); part; part = queue.shift()) {
    try {
      await work(part);
    } catch (error) {
      if (!(error instanceof FaultError) || error.scope !== "points" || part.length < 2) throw error;
      const half = part.length >> 1;
      queue.unshift(part.slice(0, half), part.slice(half));
    }
  }
}
