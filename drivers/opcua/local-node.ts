import { type ExpandedNodeId, NodeId } from "node-opcua-client";
import { quote } from "../lib/text.ts";
import type { Namespaces } from "./namespaces.ts";

/**
 * The node of this server that an ExpandedNodeId means (OPC 10000-6, 5.2.2.10), by the index of its namespace; words that go on after `a node`
 * where it is none of this server's. Pure.
 */
export function localNode(
  { identifierType, value, namespace, namespaceUri, serverIndex }: ExpandedNodeId,
  namespaces: Pick<Namespaces, "indexOf">,
): NodeId | string {
  if (serverIndex > 0) return "of another server; add that server as a data source of its own";
  const index = namespaceUri ? namespaces.indexOf({ uri: namespaceUri }) : namespace;
  return index === undefined
    ? `in the namespace ${quote(namespaceUri ?? "")}, which the server does not have`
    : new NodeId(identifierType, value, index);
}
