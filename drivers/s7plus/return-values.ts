import { type Fault, FaultError, type RefusalScope } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";

/**
 * Return values of the device: an error code in the low 16 bits, a generic code in bits 40 to 46. Names after the public protocol dissector;
 * there is no published specification.
 */
const CODES: Readonly<Record<number, string>> = {
  [-1]: "unknown error",
  [-2]: "invalid value type",
  [-3]: "invalid argument",
  [-4]: "not enough memory",
  [-12]: "object not found",
  [-17]: "invalid CRC: the symbol has changed",
  [-22]: "no more data",
  [-30]: "invalid relation id",
  [-32]: "invalid attribute id",
  [-61]: "invalid value range",
  [-85]: "a structure, accessible only by its members",
  [-95]: "not implemented",
  [-100]: "access denied",
  [-102]: "disconnected",
  [-104]: "invalid address",
  [-105]: "invalid object",
  [-106]: "invalid session",
  [-107]: "service not allowed",
  [-108]: "not available",
  [-109]: "not connected",
  [-111]: "timeout",
  [-112]: "too many requests",
  [-113]: "too many sessions",
  [-115]: "unexpected response",
  [-118]: "session delegitimated",
  [-119]: "unknown request",
  [-120]: "request parsing error",
  [-123]: "request serialization error",
  [-135]: "service aborted",
  [-251]: "structure not accessible as a whole",
  [-255]: "invalid local id",
  [-256]: "invalid modification time of type information",
  [-263]: "invalid state",
  [-271]: "variable is obsolete",
  [-351]: "integrity error",
  [-352]: "security disconnect",
  [-353]: "SSL handshake failed",
  [-501]: "system limit exceeded",
  [-505]: "starting TLS failed",
  [-506]: "stopping TLS failed",
  [-507]: "no support for TLS",
  22: "session delegitimated",
  37: "temporarily out of resources",
  38: "legitimation level is disabled at the moment",
};

const GENERIC: Readonly<Record<number, string>> = {
  1: "general error",
  3: "access denied",
  8: "invalid attribute",
  9: "invalid data type",
  10: "invalid object",
  13: "invalid range",
  14: "invalid session",
  19: "invalid address",
  20: "not allowed",
  23: "too many requests",
  24: "too many sessions",
  25: "session delegitimated",
  26: "unknown service",
  38: "no memory",
  50: "error of get variable",
  54: "error of get multi variables",
  76: "integrity error",
  78: "temporarily out of resources",
  82: "SSL error",
  85: "not available",
  86: "TLS error",
};

/** Negative: an error; else a success, or information on one. */
export const codeOf = (value: bigint): number => Number(BigInt.asIntN(16, value));
const genericOf = (value: bigint): number => Number((value >> 40n) & 0x7fn);
export const isError = (value: bigint): boolean => codeOf(value) < 0;

/** `return value -100 (access denied), generic code 3 (access denied), 0x8009030000019CFF`. */
export function returnWords(value: bigint): string {
  const [code, generic] = [codeOf(value), genericOf(value)];
  const also = generic === 0 ? "" : `, generic code ${generic}${GENERIC[generic] === undefined ? "" : ` (${GENERIC[generic]})`}`;
  return `return value ${code}${CODES[code] === undefined ? "" : ` (${CODES[code]})`}${also}, 0x${value.toString(16).toUpperCase()}`;
}

const DENIED_CODES: ReadonlySet<number> = new Set([-100, -107, -118, 22]);
const DENIED_GENERIC: ReadonlySet<number> = new Set([3, 20, 25]);
/** Missing rights or a missing log-in. */
const isDenied = (value: bigint): boolean => DENIED_CODES.has(codeOf(value)) || (isError(value) && DENIED_GENERIC.has(genericOf(value)));

/** The session is gone. */
const LOST_CODES: ReadonlySet<number> = new Set([-102, -106, -118, 22, -352]);
const BUSY_CODES: ReadonlySet<number> = new Set([-112, 37]);
const SIZE_CODES: ReadonlySet<number> = new Set([-4, -501]);
/** The program that was looked up is another one by now. */
const PROGRAM_CODES: ReadonlySet<number> = new Set([-12, -17, -104, -105, -255, -256, -271]);

const PERMIT =
  "set the password of the data source, or give HMI access to anonymous users in the project (Protection & Security, Access level)";

export const s7plusError = (
  category: "AUTHENTICATION" | "UNKNOWN",
  message: string,
  options: ErrorOptions & { readonly sessionLost?: boolean; readonly retryAfterMs?: number } = {},
): ReasonError => new ReasonError({ type: "S7PLUS_ERROR", category }, message, options);

/** Why the device refused something without which there is no session. `what` in the field's words: `the set-up of the session`. */
export function sessionRefusal(value: bigint, what: string): ReasonError {
  const words = `the PLC refused ${what}: ${returnWords(value)}`;
  const sessionLost = LOST_CODES.has(codeOf(value));
  if (isDenied(value)) return s7plusError("AUTHENTICATION", `${words}; ${PERMIT}`, { sessionLost });
  const hint = codeOf(value) === -113 ? "; close other connections to it (HMI, engineering), or allow it more in the project" : "";
  return s7plusError("UNKNOWN", `${words}${hint}`, { sessionLost });
}

/** A read or a look-up was refused as a whole. A ReasonError: nothing more is to be had over this session. */
export function requestRefusal(value: bigint, what: string): ReasonError | FaultError {
  const code = codeOf(value);
  if (isDenied(value) || LOST_CODES.has(code)) return sessionRefusal(value, what);
  const about = (fault: Fault, scope: RefusalScope) => new FaultError(fault, `${what}: ${returnWords(value)}`, { scope });
  if (BUSY_CODES.has(code) || SIZE_CODES.has(code)) return about("device_error", "busy");
  if (PROGRAM_CODES.has(code)) return about("program_changed", "program");
  return about("device_error", "points");
}

/** The request holds more than the device has memory for. */
export const isTooLarge = (value: bigint): boolean => SIZE_CODES.has(codeOf(value));

/** The item may be elsewhere in another program. */
export const tellsOfProgram = (value: bigint): boolean => PROGRAM_CODES.has(codeOf(value));
export const isAccessDenied = (value: bigint): boolean => codeOf(value) === -100;

const ITEM_FAULTS: Readonly<Record<number, readonly [fault: Fault, hint: string]>> = {
  [-2]: ["type_mismatch", "the PLC does not read this as one value"],
  [-12]: ["not_found", "the PLC's program has no such variable"],
  [-17]: ["not_found", "the PLC's program has another variable there"],
  [-30]: ["not_found", "the PLC's program has no such block"],
  [-32]: ["not_found", "the PLC's program has no such variable"],
  [-61]: ["out_of_range", "the index is outside the array"],
  [-85]: ["type_mismatch", "name a member of it"],
  [-100]: ["access_denied", "make it accessible from HMI in the block's declaration, or log in with more rights"],
  [-104]: ["not_found", "the PLC's program has no such variable; look it up with collector browse"],
  [-105]: ["not_found", "the PLC's program has no such block; look it up with collector browse"],
  [-107]: ["access_denied", "log in with more rights"],
  [-251]: ["type_mismatch", "name a member of it"],
  [-255]: ["not_found", "the PLC's program has no such variable; look it up with collector browse"],
  [-271]: ["not_found", "the variable is no longer in the PLC's program"],
};

/** The refusal of one variable; `what` names it. */
export function itemRefusal(value: bigint, what: string): FaultError {
  const [fault, hint] = ITEM_FAULTS[codeOf(value)] ?? ["device_error", "look at the diagnostic buffer of the PLC"];
  return new FaultError(fault, `${what}: ${returnWords(value)}: ${hint}`);
}
