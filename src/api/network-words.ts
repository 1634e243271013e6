import { errorCode, messageOf } from "../model/failure.ts";

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused: nothing listens there",
  ECONNRESET: "the connection was reset",
  EPIPE: "the connection was closed",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "the network is unreachable",
  ETIMEDOUT: "the connection timed out",
  ENOTFOUND: "the name is not known",
  EAI_AGAIN: "the name server does not answer",
};

/** The error that counts: of several addresses that were tried, the first one's. */
export const firstOf = (error: Error): Error =>
  error instanceof AggregateError && error.errors[0] instanceof Error ? error.errors[0] : error;

/** Why a connection failed, for people, with the system's code. */
export function networkWords(error: Error): string {
  const inner = firstOf(error);
  const code = errorCode(inner);
  if (code.startsWith("HPE_")) return `what answers does not speak HTTP (${code})`;
  const socket = "address" in inner && typeof inner.address === "string" && inner.address.startsWith("/") ? inner.address : undefined;
  if (socket !== undefined && (code === "ENOENT" || code === "ECONNREFUSED"))
    return `the collector that carries this API does not run: nothing listens on ${socket} (${code}); start it (systemctl start collector, or collector run)`;
  if (socket !== undefined && code === "EACCES")
    return `this user may not ask the collector on ${socket}: type the command with sudo, or become a member of its group (${code})`;
  const words = WORDS[code];
  return words === undefined ? messageOf(inner) : `${words} (${code})`;
}
