import { readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
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

/** Takes a renewed certificate over without a restart. A bad one is logged once, and the one in use stays. Milliseconds. */
export function followCertificate(
  server: Server,
  files: TlsFiles,
  used: { cert: string; key: string },
  log: Log,
  everyMs: number = CERTIFICATE_EVERY_MS,
): () => void {
  let current = JSON.stringify(used);
  let logged: string | undefined;
  const timer = setInterval(() => {
    try {
      const next = readTls(files);
      if (JSON.stringify(next) === current || !(server instanceof TlsServer)) return;
      server.setSecureContext({ ...next, minVersion: "TLSv1.2" });
      current = JSON.stringify(next);
      logged = undefined;
      log.info({ file: files.certFile }, "the configuration API uses its new certificate");
    } catch (error) {
      const problem = messageOf(error);
      if (problem !== logged)
        log.warn({ file: files.certFile }, `the new certificate of the configuration API cannot be used, the one before stays: ${problem}`);
      logged = problem;
    }
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}

/** First byte of a TLS handshake record (RFC 8446, 5.1). */
const HANDSHAKE = 0x16;
const PLAIN = JSON.stringify({ detail: "this port speaks TLS: ask with https" });
const PLAIN_ANSWER = `HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${PLAIN.length}\r\n\r\n${PLAIN}`;

/**
 * Tells who comes without TLS so in plain HTTP, where TLS alone would end the connection without a word. Nothing of what was asked is read.
 * Returns what ends every connection: those that have sent nothing, or only a part of a handshake, do not belong to a server yet.
 */
export function answerWithoutTls(server: Server): () => void {
  const accept = server.listeners("connection");
  const open = new Set<Socket>();
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    const end = (): void => void socket.destroy();
    const timer = setTimeout(end, HTTP_OPTIONS.headersTimeout);
    socket.once("error", end);
    socket.once("close", () => {
      clearTimeout(timer);
      open.delete(socket);
    });
    socket.once("data", (first) => {
      clearTimeout(timer);
      if (first[0] !== HANDSHAKE) return void socket.end(PLAIN_ANSWER, end);
      socket.pause();
      socket.off("error", end);
      socket.unshift(first);
      for (const listener of accept) listener.call(server, socket);
    });
  });
  return () => {
    for (const socket of open) socket.destroy();
  };
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
