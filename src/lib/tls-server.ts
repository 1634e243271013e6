import { readFileSync } from "node:fs";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import type { Log } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";
import { type Refusal, refuse } from "./http-refusal.ts";

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

/** What a server of ours shows its clients. */
export interface Certificate extends CertificateOf {
  readonly files: TlsFiles;
  /** What is in the files at the start. */
  readonly pem: { readonly cert: string; readonly key: string };
  /** How often the files are looked at, milliseconds; absent: once a minute. */
  readonly everyMs?: number | undefined;
}

/** Takes a renewed certificate over without a restart. A bad one is logged once, and the one in use stays. */
export function followCertificate(
  server: Server,
  { files, pem: used, setting, what, everyMs = CERTIFICATE_EVERY_MS }: Certificate,
  log: Log,
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
const PLAIN: Refusal = { status: 400, detail: "this port speaks TLS: ask with https" };

/**
 * Tells who comes without TLS so in plain HTTP, where TLS alone would end the connection without a word. Nothing of what was asked is read.
 * Whoever sends nothing is the matter of the bound of connections.
 */
export function answerWithoutTls(server: Server): void {
  const accept = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    socket.once("data", (first) => {
      if (first[0] !== HANDSHAKE) return void refuse(socket, PLAIN);
      socket.pause();
      socket.unshift(first);
      for (const listener of accept) listener.call(server, socket);
    });
  });
}
