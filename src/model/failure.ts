import { withoutCredentials } from "../base/plain-text.ts";
import { FaultError } from "./fault.ts";
import { type PlainReasonType, ReasonError } from "./reason.ts";

/** Socket errors by the code string of the kernel's errno (design/failures). Codes that are not here are not a network's. */
const ERRNO: Readonly<Record<string, PlainReasonType>> = {
  EHOSTUNREACH: "NO_ROUTE_TO_HOST",
  EHOSTDOWN: "HOST_DOWN",
  ENONET: "HOST_DOWN",
  ENETUNREACH: "NETWORK_UNREACHABLE",
  ENETDOWN: "NETWORK_UNREACHABLE",
  ECONNREFUSED: "CONNECTION_REFUSED",
  ECONNRESET: "CONNECTION_RESET",
  ECONNABORTED: "CONNECTION_RESET",
  EPIPE: "CONNECTION_CLOSED",
  ETIMEDOUT: "TIMEOUT",
};

const OWN_HOST = new Set(["EMFILE", "ENFILE", "EADDRNOTAVAIL", "EADDRINUSE", "ENOBUFS", "ENOMEM", "EACCES", "EPERM", "EINVAL"]);

/** Errors looked at within one thrown value, so that a long chain costs no stack. */
const MAX_WALKED = 64;

/** Node's own words for writing to a connection that the peer has ended. */
const CLOSED = new Set(["ERR_STREAM_WRITE_AFTER_END", "ERR_STREAM_DESTROYED", "ERR_SOCKET_CLOSED", "ERR_STREAM_PREMATURE_CLOSE"]);

/** The code of an error of the system or of a library, such as ENOENT; the empty text where it has none. */
export const errorCode = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "");

/**
 * The boundary: whatever was thrown becomes a ReasonError (the source failed) or stays a FaultError (one request was refused).
 * Walks causes and the members of an AggregateError; the outermost known one wins. Total: never throws.
 */
export function toFailure(error: unknown): ReasonError | FaultError {
  const known = attempt(() => classify(error, new Set()));
  if (known) return known;
  return new ReasonError("UNKNOWN", messageOf(error), { cause: error, condition: "internal_error" });
}

/**
 * Works as `toFailure` does, of what was asked of an open session: what nobody has a name for is the collector's own mistake, and about what was
 * asked. Total: never throws.
 */
export const toReadFailure = (error: unknown): ReasonError | FaultError => attempt(() => classify(error, new Set())) ?? ownFault(error);

/** The collector's own mistake over what was asked, with its cause. */
export function ownFault(error: unknown): FaultError {
  const kind = attempt(() => (error instanceof Error && error.name !== "Error" ? `${String(error.name)}: ` : "")) ?? "";
  return new FaultError("collector_error", `the collector itself failed: ${kind}${messageOf(error)}`, { cause: error });
}

/** Works as `toFailure` does, where a fault cannot be the answer (connecting, opening): it becomes UNKNOWN. */
export function toReasonError(error: unknown): ReasonError {
  const failure = toFailure(error);
  return failure instanceof ReasonError
    ? failure
    : new ReasonError("UNKNOWN", failure.message, { cause: failure, condition: "protocol_violation" });
}

function classify(error: unknown, seen: Set<unknown>): ReasonError | FaultError | undefined {
  if (error instanceof ReasonError || error instanceof FaultError) return error;
  if (!(error instanceof Error) || seen.has(error) || seen.size >= MAX_WALKED) return undefined;
  seen.add(error);
  const own = ofSystemError(error);
  if (own) return own;
  if (error instanceof AggregateError && Array.isArray(error.errors))
    for (const member of error.errors) {
      const inner = classify(member, seen);
      if (inner) return inner;
    }
  return classify(error.cause, seen);
}

function ofSystemError(error: Error): ReasonError | undefined {
  const code = text(error, "code");
  const syscall = text(error, "syscall");
  if (syscall !== undefined && (syscall === "getaddrinfo" || syscall.startsWith("query")))
    return new ReasonError("LOOKUP_ERROR", messageOf(error), { cause: error });
  if (code === undefined) return undefined;
  if (CLOSED.has(code)) return new ReasonError("CONNECTION_CLOSED", messageOf(error), { cause: error });
  // Libraries make up errno strings; only a numeric errno is a kernel's.
  if (!("errno" in error) || typeof error.errno !== "number") return undefined;
  const reason = ERRNO[code];
  if (reason) return new ReasonError(reason, messageOf(error), { cause: error });
  if (OWN_HOST.has(code)) return new ReasonError("UNKNOWN", messageOf(error), { cause: error, condition: "collector_host_trouble" });
  return undefined;
}

function text(error: Error, key: "code" | "syscall"): string | undefined {
  const value: unknown = key in error ? (error as unknown as Record<string, unknown>)[key] : undefined;
  return typeof value === "string" ? value : undefined;
}

/** What Node adds to a refused certificate: advice for who starts the program, which nobody here does. */
const NODES_ADVICE = /[;,.]? if the root CA is installed locally, try running Node\.js with\s+--use-system-ca/gi;

/** The message of what was thrown, whatever it is, without the users and passwords of URLs. Total: never throws. */
export function messageOf(error: unknown): string {
  const words = attempt(() => String(error instanceof Error ? error.message : error)) ?? "something was thrown that cannot be shown";
  return withoutCredentials(words.includes("--use-system-ca") ? words.replaceAll(NODES_ADVICE, "") : words);
}

/** What is thrown may itself throw when it is looked at: a getter, a toString, a revoked proxy. */
function attempt<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
