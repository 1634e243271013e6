import { FaultError } from "../../src/model/fault.ts";
import type { Kept } from "../../src/model/kept.ts";
import { withUris } from "./address.ts";

/** The list of namespaces that a server had when it was first read for a source: what ns= addresses of that source are held to mean. */
type First = readonly (string | null)[];

const KEY = "namespaces";
/** Characters of a list that is kept. */
const MAX_LENGTH = 65_536;

/** The first list of this server that was kept of the source; undefined: none was. Pure. */
function keptNamespaces(values: Kept["values"], endpointUrl: string): First | undefined {
  const kept = values[KEY];
  if (typeof kept !== "object" || kept === null || !("endpoint_url" in kept) || !("list" in kept)) return undefined;
  if (kept.endpoint_url !== endpointUrl) return undefined;
  const { list } = kept;
  return Array.isArray(list) && list.every((uri) => uri === null || typeof uri === "string") ? list : undefined;
}

/** The first list of the source: the kept one, or that of today, which is kept from now on. */
export function firstNamespaces(kept: Kept, endpointUrl: string, today: First): First {
  const known = keptNamespaces(kept.values, endpointUrl);
  if (known) return known;
  if (today.length > 0 && JSON.stringify(today).length <= MAX_LENGTH) kept.set(KEY, { endpoint_url: endpointUrl, list: today });
  return today;
}

/** See RenumberedAddresses. */
export function lastingAddress(address: string, kept: Kept["values"], endpointUrl: string): string | undefined {
  const first = keptNamespaces(kept, endpointUrl);
  if (!first)
    throw new FaultError(
      "address_invalid",
      `the collector has not read this source yet at ${endpointUrl}: which namespaces ns= means is not known`,
    );
  return withUris(address, first);
}
