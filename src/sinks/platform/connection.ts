import { requesterAccess } from "../../api/access.ts";
import { createRequester, type Requester } from "../../api/requester.ts";
import type { ApiAccess } from "../../model/api-access.ts";
import { messageOf } from "../../model/failure.ts";
import { ReasonError } from "../../model/reason.ts";

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

/** Requests to the API with the collector's own key. Throws ReasonError where the file of the authorities cannot be read. */
export function requesterOf(api: ApiAccess, { connectMs, requestMs }: Deadlines): Requester {
  return createRequester({
    ...accessOf(api),
    timeouts: { connectMs, headersMs: requestMs, idleMs: requestMs, totalMs: requestMs },
  });
}

function accessOf(api: ApiAccess): ReturnType<typeof requesterAccess> {
  try {
    return requesterAccess(api);
  } catch (error) {
    throw new ReasonError("UNKNOWN", messageOf(error), { cause: error, condition: "configuration_invalid" });
  }
}
