import { readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { Server as TlsServer } from "node:tls";
import type { FastifyInstance } from "fastify";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import { isLoopback } from "../loopback.ts";
import { HTTP_OPTIONS } from "./app.ts";

/** How often the certificate's files are looked at. */
const CERTIFICATE_EVERY_MS = 60_000;
/** sun_path of unix(7) with its end. */
const MAX_SOCKET_BYTES = 107;

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

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

/** The certificate and its key. Throws an Error that names the file. */
export function readTls({ certFile, keyFile }: TlsFiles): { readonly cert: string; readonly key: string } {
  const read = (setting: string, file: string): string => {
    try {
      return readFileSync(file, "utf8");
    } catch (error) {
      throw new Error(`embedded_api.tls.${setting}: ${messageOf(error)}`, { cause: error });
    }
  };
  return { cert: read("cert_file", certFile), key: read("key_file", keyFile) };
}

/** Takes a renewed certificate over without a restart. A bad one is said, and the one in use stays. */
export function followCertificate(server: Server, files: TlsFiles, used: { cert: string; key: string }, log: Log): () => void {
  let current = JSON.stringify(used);
  const timer = setInterval(() => {
    try {
      const next = readTls(files);
      if (JSON.stringify(next) === current || !(server instanceof TlsServer)) return;
      current = JSON.stringify(next);
      server.setSecureContext({ ...next, minVersion: "TLSv1.2" });
      log.info({ file: files.certFile }, "the configuration API uses its new certificate");
    } catch (error) {
      log.warn({ file: files.certFile }, `the new certificate of the configuration API cannot be used: ${messageOf(error)}`);
    }
  }, CERTIFICATE_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Serves the same on a unix socket: the collector beside the API reaches it whatever certificate the network sees. */
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
