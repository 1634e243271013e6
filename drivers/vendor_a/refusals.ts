import { type Fault, FaultError, type RefusalScope } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { STATUS } from "./cip.ts";

/** A status in words: what it is a fault of, and what else is refused with it. */
export interface StatusWords {
  readonly fault: Fault;
  readonly words: string;
  readonly scope: RefusalScope;
}

export const about = (fault: Fault, words: string): StatusWords => ({ fault, words, scope: "points" });
export const busy = (words: string): StatusWords => ({ fault: "device_error", words, scope: "busy" });

const NO_SUCH_TAG = "no such tag; look with browse how it is called, and whether it is a tag of a program (Program:Main.Tag)";
const NO_ACCESS = "access denied: set External Access of the tag to Read Only or Read/Write";

/** By general status. CIP Vol. 1, appendix B; Rockwell 1756-PM020. */
const GENERAL: ReadonlyMap<number, StatusWords> = new Map([
  [0x01, about("device_error", "connection failure")],
  [0x02, busy("the controller has no resources left for it at this moment")],
  [0x03, about("device_error", "bad parameter value")],
  [0x04, about("not_found", NO_SUCH_TAG)],
  [0x05, about("not_found", `path destination unknown: ${NO_SUCH_TAG}`)],
  [0x06, about("device_error", "the answer is only a part")],
  [0x08, about("device_error", "service not supported: is it a Logix or Micro800 controller?")],
  [0x09, about("device_error", "bad attribute value")],
  [0x0a, about("device_error", "an attribute is not there")],
  [0x0b, about("device_error", "already in that state")],
  [0x0c, busy("not possible in the state that it is in")],
  [0x0f, about("access_denied", NO_ACCESS)],
  [0x10, busy("not possible in the state that the device is in")],
  [0x11, about("device_error", "the answer is too large")],
  [0x12, about("device_error", "a value would be split")],
  [0x13, about("device_error", "not enough data in the request")],
  [0x14, about("device_error", "attribute not supported")],
  [0x15, about("device_error", "too much data in the request")],
  [0x16, about("not_found", "object does not exist")],
  [0x1a, about("device_error", "the request is too large for a bridge on the way")],
  [0x1b, about("device_error", "the answer is too large for a bridge on the way")],
  [0x1c, about("device_error", "too few attributes")],
  [0x1e, about("device_error", "a request in the packet was refused")],
  [0x1f, about("device_error", "an error of the vendor's own")],
  [0x20, about("device_error", "invalid parameter")],
  [0x22, about("device_error", "invalid reply")],
  [0x25, about("device_error", "key failure in the path")],
  [0x26, about("not_found", "the path has a wrong size")],
  [0x28, about("not_found", "no such member")],
  [0x2c, about("access_denied", "the attribute cannot be read")],
  [0xff, about("device_error", "general error")],
]);

/** By extended status, with the general status FF. Rockwell 1756-PM020. */
const EXTENDED_FF: ReadonlyMap<number, StatusWords> = new Map([
  [0x2001, about("device_error", "the path is too long")],
  [0x2002, about("device_error", "bad parameter value")],
  [0x2100, about("access_denied", NO_ACCESS)],
  [0x2101, busy("the key switch or the mode of the controller does not permit it")],
  [0x2104, about("out_of_range", "beyond the end of the tag")],
  [0x2105, about("out_of_range", "beyond the end of the array")],
  [0x2106, busy("in use by somebody else")],
  [0x2107, about("type_mismatch", "the type is another one")],
  [0x2108, busy("a program is being loaded; it is read again as soon as that is over")],
  [0x210b, about("not_found", NO_SUCH_TAG)],
  [0x2113, busy("the controller has a fault")],
]);

/** By extended status, with the general status 01. CIP Vol. 1, 3-5.6. */
const EXTENDED_01: Readonly<Record<number, string>> = {
  256: "the connection is in use or opened twice",
  259: "transport class not supported",
  262: "owner conflict",
  263: "connection not found",
  264: "wrong kind of connection",
  265: "connection size not supported",
  273: "packet interval not supported",
  274: "packet interval out of range",
  275: "no connection left: close other clients (HMIs, programming devices), or read unconnected",
  276: "another device than its electronic key says",
  277: "another kind of device than its electronic key says",
  278: "another revision than its electronic key says",
  282: "the controller has no connection left: close other clients (HMIs, programming devices), or read unconnected",
  284: "transport class not supported",
  295: "connection size to the controller not supported",
  296: "connection size from the controller not supported",
  307: "time-out multiplier not supported",
  515: "the connection timed out",
  516: "nothing answers there: is the slot right, and is the module running?",
  517: "unconnected send with wrong parameters",
  518: "the message is too large",
  769: "no buffers left",
  785: "there is no such port: is the path right?",
  786: "there is no such slot or address: is the path right?",
  789: "the path is wrong",
  790: "the path to close is another one",
  792: "the path leads back to the device itself",
};

export const hex = (n: number, digits: number): string => `0x${n.toString(16).toUpperCase().padStart(digits, "0")}`;

/** `status 0x01/0x0312`. */
export const statusCode = (status: number, extended: number | undefined): string =>
  `status ${hex(status, 2)}${extended === undefined ? "" : `/${hex(extended, 4)}`}`;

function wordsOf(status: number, extended: number | undefined): StatusWords {
  const special = status === STATUS.general && extended !== undefined ? EXTENDED_FF.get(extended) : undefined;
  return special ?? GENERAL.get(status) ?? about("device_error", "not in the protocol's list: look it up in the controller's manual");
}

/** The refusal of one tag or of one request; `what` in the field's words. */
export function refusalOf(status: number, extended: number | undefined, what: string): FaultError {
  const { fault, words, scope } = wordsOf(status, extended);
  return new FaultError(fault, `${what}: ${statusCode(status, extended)} (${words})`, { scope });
}

/** A refusal that says nothing of the tag whose structure it is about. */
export function templateRefusal(status: number, extended: number | undefined, what: string): FaultError {
  const { words, scope } = wordsOf(status, extended);
  if (scope !== "points") return refusalOf(status, extended, what);
  const isOfTags = words.includes(NO_SUCH_TAG) || words === NO_ACCESS;
  const why = `the controller does not tell this structure${isOfTags ? "" : `: ${words}`}; its members can be read by name`;
  return new FaultError("device_error", `${what}: ${statusCode(status, extended)} (${why})`);
}

/** `status 0x01/0x0113 (no connection left: …)`: why a connection or a route failed. */
export function connectionWords(status: number, extended: number | undefined): string {
  const words = (status === STATUS.connectionFailure ? EXTENDED_01[extended ?? -1] : undefined) ?? wordsOf(status, extended).words;
  return `${statusCode(status, extended)} (${words})`;
}

/** Silence behind a bridge. */
const UNCONNECTED_TIMEOUT = 0x0204;
/** There is no way there, whatever is asked. */
const NO_WAY: ReadonlySet<number> = new Set([UNCONNECTED_TIMEOUT, 0x0311, 0x0312, 0x0315, 0x0318]);

export const isNoWay = (status: number, extended: number | undefined): boolean =>
  status === STATUS.connectionFailure && extended !== undefined && NO_WAY.has(extended);

/** A message that did not come through: TIMEOUT where the target is silent; for any other reason the path is not right. */
export function routeFailure(status: number, extended: number | undefined, what: string): ReasonError {
  const isSilent = status === STATUS.connectionFailure && extended === UNCONNECTED_TIMEOUT;
  const words = `${what}: ${connectionWords(status, extended)}`;
  return isSilent ? new ReasonError("TIMEOUT", words) : new ReasonError("UNKNOWN", words, { condition: "configuration_invalid" });
}
