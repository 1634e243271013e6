/** Longest host name (RFC 1035, 2.3.4). */
const MAX_HOST = 255;
const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])$/;

/** The server's URL with the host and port of the URL that the client came by, where that can be one; else as it is. Pure. */
export function adaptEndpointUrl(own: string, requested: string | null): string {
  const from = partsOf(requested ?? "");
  const to = partsOf(own);
  return from && to ? `opc.tcp://${from.host}:${from.port}${to.path}` : own;
}

function partsOf(url: string): { readonly host: string; readonly port: string; readonly path: string } | undefined {
  const match = /^opc\.tcp:\/\/(\[[^\]/]*\]|[^:/]*)(?::(\d{1,5}))?(\/.*)?$/i.exec(url);
  const host = match?.[1] ?? "";
  if (!match || host.length > MAX_HOST || !HOST.test(host)) return undefined;
  return { host, port: match[2] ?? "4840", path: match[3] ?? "" };
}
