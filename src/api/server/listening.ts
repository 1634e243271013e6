import { rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { FastifyInstance } from "fastify";
import { isLoopback } from "../loopback.ts";
import { HTTP_OPTIONS } from "./app.ts";

/** sun_path of unix(7) with its end. */
const MAX_SOCKET_BYTES = 107;

/** Where to listen. Throws an Error that names the setting: keys and passwords go in the clear where it is neither loopback nor TLS. */
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

/** Serves the same on a unix socket: the collector on this machine reaches it whatever certificate the network sees. */
export async function listenLocally(app: FastifyInstance, file: string): Promise<Server> {
  if (Buffer.byteLength(file) > MAX_SOCKET_BYTES)
    throw new Error(`${file} is too long for a socket (${MAX_SOCKET_BYTES} bytes at most); choose a shorter state_dir`);
  rmSync(file, { force: true });
  const server = createServer({ ...HTTP_OPTIONS, requestTimeout: 30_000, keepAliveTimeout: 30_000 }, (request, response) =>
    app.routing(request, response),
  );
  await new Promise<void>((done, fail) => server.once("error", fail).listen(file, done));
  return server;
}
