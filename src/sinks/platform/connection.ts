import { requesterAccess } from "../../api/access.ts";
import { createRequester, type Requester } from "../../api/requester.ts";
import type { ApiAccess } from "../../model/api-access.ts";

export interface Deadlines {
  /** Name, TCP and TLS together, in milliseconds. */
  readonly connectMs: number;
  /** One request as a whole, in milliseconds. */
  readonly requestMs: number;
}

/** `host:port` of the API, for reports. */
export function endpointOf({ url }: ApiAccess): string {
  const { hostname, port, protocol } = new URL(url);
  return `${hostname}:${port === "" ? (protocol === "https:" ? 443 : 80) : port}`;
}

/** Requests to the API with the collector's own key. */
export function requesterOf(api: ApiAccess, { connectMs, requestMs }: Deadlines): Requester {
  return createRequester({
    ...requesterAccess(api),
    timeouts: { connectMs, headersMs: requestMs, idleMs: requestMs, totalMs: requestMs },
  });
}
