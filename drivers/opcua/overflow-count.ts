import { NodeId, ReadValueId } from "node-opcua-client";
import { ExtensionBody, type RawValue } from "./binary.ts";
import { STANDARD_ENCODINGS } from "./standard-structures.ts";
import { qualityOf } from "./status-codes.ts";
import { decodeStructure } from "./structures.ts";

/** SubscriptionDiagnosticsArray (OPC 10000-5, 6.3.3), and the encoding of its elements. */
const DIAGNOSTICS = 2290;
const ELEMENT = "i=876";
const VALUE = 13;

/** The node by which a server may say how many values its queues have dropped. */
export const diagnosticsNode = (): ReadValueId =>
  new ReadValueId({ nodeId: new NodeId(NodeId.NodeIdType.NUMERIC, DIAGNOSTICS, 0), attributeId: VALUE });

/** Values that the queues of this subscription have dropped so far, by the server's diagnostics; undefined: it does not say. Pure. */
export function overflowsIn(diagnostics: RawValue | undefined, subscriptionId: number): number | undefined {
  const definition = STANDARD_ENCODINGS.get(ELEMENT);
  if (!definition || !diagnostics || qualityOf(diagnostics.status) === "bad" || !Array.isArray(diagnostics.value)) return undefined;
  for (const one of diagnostics.value as readonly unknown[]) {
    if (!(one instanceof ExtensionBody) || one.encoding !== ELEMENT || typeof one.body === "string") continue;
    try {
      const { SubscriptionId: id, MonitoringQueueOverflowCount: count } = decodeStructure(definition, one.body);
      if (id === subscriptionId && typeof count === "number") return count;
    } catch {
      // Bytes that are not of the definition say nothing.
    }
  }
  return undefined;
}
