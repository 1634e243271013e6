import { isLoopback } from "../loopback.ts";

/** The place where to listen. Throws an Error that names the setting: keys and passwords go in the clear where it is neither loopback nor TLS. */
export function parseListen(
  listen: string,
  secured: { readonly tls: boolean; readonly insecure: boolean },
): { readonly host: string; readonly port: number } {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:\s]+)):(\d{1,5})$/.exec(listen);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65_535)
    throw new Error(`embedded_api.listen: "${listen}" is not address:port, for example 127.0.0.1:8420`);
  if (!isLoopback(host) && !secured.tls && !secured.insecure)
    throw new Error(
      `embedded_api.listen: "${listen}" is not a loopback address: name a certificate in embedded_api.tls, or set embedded_api.insecure: true`,
    );
  return { host, port };
}
