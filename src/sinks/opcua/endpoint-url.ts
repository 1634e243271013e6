import { endpointParts } from "../../model/endpoint-url.ts";

/** Longest host name (RFC 1035, 2.3.4). */
const MAX_HOST = 255;
const HOST = /^(?:[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+)$/;

/** The server's URL with the host and port of the URL that the client came by, where that can be one; else as it is. Pure. */
export function adaptEndpointUrl(own: string, requested: string | null): string {
  const from = endpointParts(requested ?? "");
  const to = endpointParts(own);
  if (!from || !to || from.host.length > MAX_HOST || !HOST.test(from.host)) return own;
  const host = from.host.includes(":") ? `[${from.host}]` : from.host;
  return `opc.tcp://${host}:${from.port}${to.path}`;
}
