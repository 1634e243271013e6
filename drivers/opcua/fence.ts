/**
 * The services that the driver may call: what reads, and what belongs to its own session, registrations and subscriptions. By the number
 * of the request's binary encoding in namespace 0 (OPC 10000-6, 5.2.9 and the NodeIds file of the specification).
 */
export const ALLOWED_SERVICES: ReadonlyMap<number, string> = new Map([
  [428, "GetEndpoints"],
  [446, "OpenSecureChannel"],
  [452, "CloseSecureChannel"],
  [461, "CreateSession"],
  [467, "ActivateSession"],
  [473, "CloseSession"],
  [527, "Browse"],
  [533, "BrowseNext"],
  [554, "TranslateBrowsePathsToNodeIds"],
  [560, "RegisterNodes"],
  [631, "Read"],
  [751, "CreateMonitoredItems"],
  [781, "DeleteMonitoredItems"],
  [787, "CreateSubscription"],
  [826, "Publish"],
  [847, "DeleteSubscriptions"],
]);

/** Why a request with this encoding may not be sent; undefined: it may. `body` begins with the encoding's node id, as on the wire. */
export function fence(body: Uint8Array): string | undefined {
  const id = encodingOf(body);
  if (id === undefined) return "the request does not begin with a numeric node id of namespace 0";
  return ALLOWED_SERVICES.has(id) ? undefined : `a request with the encoding i=${id} is not one of those that only read`;
}

/** The two compact forms of a NodeId, and the numeric one (OPC 10000-6, 5.2.2.9); undefined for any other. */
export function encodingOf(body: Uint8Array): number | undefined {
  const [form = -1, b1 = 0, b2 = 0, b3 = 0] = body;
  if (form === 0 && body.length >= 2) return b1;
  if (form === 1 && body.length >= 4) return b1 === 0 ? b2 | (b3 << 8) : undefined;
  if (form === 2 && body.length >= 7)
    return b1 === 0 && b2 === 0 ? (b3 | ((body[4] ?? 0) << 8) | ((body[5] ?? 0) << 16)) + (body[6] ?? 0) * 2 ** 24 : undefined;
  return undefined;
}
