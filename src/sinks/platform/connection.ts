import { createRequester, type Requester } from "../../api/requester.ts";
import type { ApiAccess } from "../../model/api-access.ts";
import { messageOf } from "../../model/failure.ts";
import { ReasonError } from "../../model/reason.ts";
import { readBoundedFile } from "../../os/bounded-file.ts";

export interface Deadlines {
  /** Name, TCP and TLS together, in milliseconds. */
  readonly connectMs: number;
  /** One request as a whole, in milliseconds. */
  readonly requestMs: number;
}

const MAX_KEY_BYTES = 4096;
const MAX_CA_BYTES = 2 ** 20;

/** `host:port` of the API, for reports. */
export function endpointOf({ url }: ApiAccess): string {
  const { hostname, port, protocol } = new URL(url);
  return `${hostname}:${port === "" ? (protocol === "https:" ? 443 : 80) : port}`;
}

/**
 * Requests to the API with the collector's own key, which is read for each of them: a changed one needs no restart. Throws ReasonError where
 * the file of the authorities cannot be read.
 */
export function requesterOf(api: ApiAccess, { connectMs, requestMs }: Deadlines): Requester {
  return createRequester({
    url: api.url,
    readKey: () => readBoundedFile(api.keyFile, MAX_KEY_BYTES).toString("utf8"),
    authorization: api.authorization,
    ca: api.caFile === undefined ? undefined : authorities(api.caFile),
    socketPath: api.socketFile,
    insecure: api.insecure,
    timeouts: { connectMs, headersMs: requestMs, idleMs: requestMs, totalMs: requestMs },
  });
}

function authorities(file: string): string {
  try {
    return readBoundedFile(file, MAX_CA_BYTES).toString("utf8");
  } catch (error) {
    throw new ReasonError("UNKNOWN", `api.ca: ${messageOf(error)}`, { cause: error, condition: "configuration_invalid" });
  }
}
