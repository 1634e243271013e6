import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { knownStatus } from "../../src/model/words/opcua-statuses.ts";
import { quote } from "../lib/text.ts";
import { codeOf, faultOf, isBusy, isTooMuch, STATUS } from "./status-codes.ts";

/** A status that a server gave instead of doing what it was asked. */
export interface ServerStatus {
  readonly code: number;
  /** From the specification's list; null where it has none. */
  readonly name: string | null;
  readonly description: string | null;
  /** The server's own words. */
  readonly reason: string | null;
}

/** `0x80210000`. */
const hexCode = (code: number): string => `0x${(code >>> 0).toString(16).toUpperCase().padStart(8, "0")}`;

/** `BadNodeIdUnknown (0x80340000): The node id refers to …`. */
export function describeCode({ code, name, description }: Pick<ServerStatus, "code" | "name" | "description">): string {
  return `${name ?? "a status"} (${hexCode(code)}): ${description ?? "not in the specification"}`;
}

/** `BadIdentityTokenRejected (0x80210000) to ActivateSession: …; the server says: "…"`. */
function describeStatus({ code, name, description, reason }: ServerStatus, to: string): string {
  const words = knownStatus(name)?.cause ?? description ?? "not in the specification";
  const own = reason === null ? "" : `; the server says: ${quote(reason, 300)}`;
  return `${name ?? "a status"} (${hexCode(code)}) to ${to}: ${words}${own}`;
}

/** What a server says of a session or channel that it has ended or forgotten (OPC 10000-4, 7.39). */
const LOST: ReadonlySet<number> = new Set([
  STATUS.BadSessionIdInvalid,
  STATUS.BadSessionClosed,
  STATUS.BadSessionNotActivated,
  STATUS.BadSecureChannelIdInvalid,
  STATUS.BadSecureChannelClosed,
  STATUS.BadTcpSecureChannelUnknown,
]);

/** The server ends with all its sessions. */
const ENDING: ReadonlySet<number> = new Set([STATUS.BadShutdown, STATUS.BadServerHalted]);

/** The source failed with what the server said (API-V2, 2.3). */
export function errorResponse(status: ServerStatus, to: string): ReasonError {
  const { code, name, description, reason } = status;
  return new ReasonError({ type: "OPC_UA_ERROR_RESPONSE", code: code >>> 0, name, description, reason }, describeStatus(status, to), {
    sessionLost: LOST.has(codeOf(code)),
  });
}

/** What the server said instead of doing what a request asked for, in a good session. */
export class ServerRefusal extends FaultError {
  /** Unsigned. */
  readonly code: number;
  constructor(fault: FaultError["fault"], words: string, code: number, scope: FaultError["scope"] = "points") {
    super(fault, words, { scope });
    this.code = code;
  }
}

/** Without them the driver reads on in another way, or some of its variables: what the server says to them is no failure of the source. */
const DISPENSABLE: ReadonlySet<string> = new Set([
  "Browse",
  "BrowseNext",
  "TranslateBrowsePathsToNodeIds",
  "RegisterNodes",
  "CreateSubscription",
  "CreateMonitoredItems",
  "DeleteMonitoredItems",
  "DeleteSubscriptions",
  "Publish",
]);

/**
 * A refused request within a good session: the request's fault, or the end of the session. Missing rights end it too and are no
 * refusal of everything: roles are granted when a session is activated (OPC 10000-18, 4.3), so only the next one can have them, and
 * the API has a reason for what the server says. `service`: as the specification calls it. `isAside`: the source is read without it.
 */
export function requestFailure(status: ServerStatus, service: string, isAside = false): FaultError | ReasonError {
  const { code } = status;
  const words = describeStatus(status, service);
  if (isTooMuch(code)) return new ServerRefusal("device_error", words, code);
  if (isBusy(code)) return new ServerRefusal("device_error", words, code, "busy");
  if ((isAside || DISPENSABLE.has(service)) && !LOST.has(codeOf(code)) && !ENDING.has(codeOf(code)))
    return new ServerRefusal(faultOf(code), words, code, "everything");
  return errorResponse(status, service);
}

/** Certificates that we do not accept: the API has no reason for that. */
export const certificateRefused = (words: string): ReasonError => new ReasonError("UNKNOWN", words, { condition: "certificate_refused" });

export const protocolViolation = (words: string): ReasonError => new ReasonError("UNKNOWN", words, { condition: "protocol_violation" });
