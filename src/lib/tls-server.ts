import { readFileSync } from "node:fs";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import type { Log } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";

/** How often the certificate's files are looked at. */
const CERTIFICATE_EVERY_MS = 60_000;

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** The certificate and its key. Throws an Error that names the setting (`setting` and what is below it) and the file. */
export function readTls({ certFile, keyFile }: TlsFiles, setting: string): { readonly cert: string; readonly key: string } {
  const read = (part: string, file: string): string => {
    try {
      return readFileSync(file, "utf8");
    } catch (error) {
      throw new Error(`${setting}.${part}: ${messageOf(error)}`, { cause: error });
    }
  };
  return { cert: read("cert_file", certFile), key: read("key_file", keyFile) };
}

/** Whose certificate it is. */
export interface CertificateOf {
  /** As the settings name it: `embedded_api.tls`. */
  readonly setting: string;
  /** As people name it: `the configuration API`. */
  readonly what: string;
}

/** Takes a renewed certificate over without a restart. A bad one is logged once, and the one in use stays. Milliseconds. */
export function followCertificate(
  server: Server,
  files: TlsFiles,
  used: { cert: string; key: string },
  { setting, what }: CertificateOf,
  log: Log,
  everyMs: number = CERTIFICATE_EVERY_MS,
): () => void {
  let current = JSON.stringify(used);
  let logged: string | undefined;
  const timer = setInterval(() => {
    try {
      const next = readTls(files, setting);
      if (JSON.stringify(next) === current || !(server instanceof TlsServer)) return;
      server.setSecureContext({ ...next, minVersion: "TLSv1.2" });
      current = JSON.stringify(next);
      logged = undefined;
      log.info({ file: files.certFile }, `${what} uses its new certificate`);
    } catch (error) {
      const problem = messageOf(error);
      if (problem !== logged)
        log.warn({ file: files.certFile }, `the new certificate of ${what} cannot be used, the one before stays: ${problem}`);
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
export function answerWithoutTls(server: Server, withinMs: number): () => void {
  const accept = server.listeners("connection");
  const open = new Set<Socket>();
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    const end = (): void => void socket.destroy();
    const timer = setTimeout(end, withinMs);
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
