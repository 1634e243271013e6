import { type Fault, FaultError, type RefusalScope } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { endCodeOf, isRelayError, rawEndCode, relayOf } from "./frames.ts";

interface CodeWords {
  readonly fault: Fault;
  readonly words: string;
  /** What to do about it. */
  readonly hint: string;
  readonly scope: RefusalScope;
}

const ROUTE = "check remote_address, local_address and the routing tables of the nodes on the way";
const about = (fault: Fault, words: string, hint: string): CodeWords => ({ fault, words, hint, scope: "points" });
/** The node answers, and cannot be read at all. */
const unreadable = (words: string): CodeWords => ({
  fault: "device_error",
  words,
  hint: "what answers is not a CPU that can be read; check remote_address",
  scope: "everything",
});
const busy = (words: string): CodeWords => ({
  fault: "device_error",
  words,
  hint: "it is read again with the next readout",
  scope: "busy",
});
/** The node that was asked for cannot be reached, whatever it is asked. */
const unreachable = (words: string, hint = ROUTE): CodeWords => ({ fault: "no_answer", words, hint, scope: "everything" });

/** Omron W227, end codes. */
const CODES: ReadonlyMap<number, CodeWords> = new Map([
  [0x0001, busy("service cancelled")],
  [0x0101, unreachable("the local node is not in the network")],
  [0x0102, unreachable("token time-out in the local node")],
  [0x0103, unreachable("retries failed in the local node")],
  [0x0104, busy("too many frames to send in the local node")],
  [0x0105, unreachable("the node number of the local node is out of range")],
  [0x0106, unreachable("the node number of the local node is used twice")],
  [0x0201, unreachable("the destination node is not in the network")],
  [
    0x0202,
    unreachable(
      "there is no unit with this number at the destination",
      "check the unit number, the last part of remote_address: 0 is the CPU",
    ),
  ],
  [0x0203, unreachable("a third node is missing")],
  [0x0204, busy("the destination node is busy")],
  [0x0205, unreachable("the destination node did not answer in time")],
  [0x0301, unreachable("error of the communications controller", "look at the error indicators of the unit")],
  [0x0302, unreachable("error of the CPU at the destination", "look at the error indicators of the CPU")],
  [0x0303, unreachable("error of the controller", "look at the error indicators of the unit")],
  [0x0304, unreachable("the unit number is set wrong", "check the unit number switches")],
  [0x0401, unreadable("the command is not defined")],
  [0x0402, unreadable("the command is not supported by this model or version")],
  [0x0501, unreachable("the destination is not in the routing tables")],
  [0x0502, unreachable("there are no routing tables")],
  [0x0503, unreachable("error in the routing tables")],
  [0x0504, unreachable("too many relays on the way")],
  [0x1001, about("device_error", "the command is too long", "lower max_items")],
  [0x1002, about("device_error", "the command is too short", "the controller does not know this form")],
  [0x1003, about("device_error", "the number of elements does not match", "lower max_words and max_items")],
  [0x1004, about("device_error", "wrong command format", "the controller does not know this form; check target_plc")],
  [0x1005, unreachable("header error")],
  [0x1101, about("not_found", "there is no such area or bank", "check target_plc and the bank of the address")],
  [0x1102, about("type_mismatch", "wrong access size", "the controller does not read this area like this")],
  [0x1103, about("out_of_range", "the address is out of range", "the area of this controller is shorter")],
  [0x1104, about("out_of_range", "the end of the range is out of range", "the area of this controller is shorter")],
  [0x1106, about("not_found", "there is no such program", "check target_plc")],
  [0x1109, about("device_error", "relational error", "look it up in the controller's manual")],
  [0x110a, about("device_error", "the access is a duplicate", "it is read again with the next readout")],
  [0x110b, about("device_error", "the response is too long", "lower max_words and max_items")],
  [0x110c, about("device_error", "parameter error", "check target_plc")],
  [0x2002, about("access_denied", "protected", "release the protection in the controller")],
  [0x2003, about("not_found", "there is no such table", "look it up in the controller's manual")],
  [0x2004, about("not_found", "there are no data", "look it up in the controller's manual")],
  [0x2005, about("not_found", "there is no such program", "look it up in the controller's manual")],
  [0x2006, about("not_found", "there is no such file", "the bank is used as file memory")],
  [0x2007, about("device_error", "the data do not match", "look it up in the controller's manual")],
  [0x2301, about("not_found", "there is no file device", "the bank is used as file memory")],
  [0x2302, about("not_found", "there is no such memory", "check the bank of the address")],
  [0x2401, about("not_found", "the data link table is missing", "look at the data links of the unit")],
  [0x2502, about("device_error", "error in the memory", "look at the error log of the controller")],
  [0x2604, busy("protected, or too many commands at the destination")],
  [0x2605, busy("a service is under way")],
  [
    0x3001,
    { fault: "access_denied", words: "another device has the access right", hint: "wait until it is released", scope: "everything" },
  ],
  [0x4001, busy("the service was aborted")],
]);

const BY_MAIN_CODE: ReadonlyMap<number, CodeWords> = new Map([
  [0x01, unreachable("error in the local node")],
  [0x02, unreachable("error at the destination node")],
  [0x03, unreachable("error of a controller")],
  [0x05, unreachable("routing error")],
  [0x10, about("device_error", "error in the form of the command", "check target_plc")],
  [0x11, about("device_error", "error in the parameters", "check target_plc")],
  [0x20, about("device_error", "it cannot be read", "look it up in the controller's manual")],
  [0x22, busy("not possible in this mode of the controller")],
  [0x25, about("device_error", "error of a unit", "look at the error log of the controller")],
  [0x26, about("access_denied", "command error", "look it up in the controller's manual")],
]);

const IS_NJ_OR_NX = /^N[JX]/i;
const MEMORY_FOR_CJ =
  "a controller of the series NJ or NX has these areas only where Sysmac Studio sets up memory for CJ-series units (Memory Settings for CJ-series Units) and variables lie there with AT; read other variables by their name with vendor_a";
/** Next steps that depend on the model. Not verified against hardware. */
const NJ_NX_HINTS: ReadonlyMap<number, string> = new Map([
  [0x1004, MEMORY_FOR_CJ],
  [0x1101, MEMORY_FOR_CJ],
  [0x1103, MEMORY_FOR_CJ],
]);

const UNLISTED = about("device_error", "not in the protocol's list", "look it up in the controller's manual");

const wordsOf = (code: number): CodeWords => CODES.get(code) ?? BY_MAIN_CODE.get(code >> 8) ?? UNLISTED;

export const hexCode = (code: number): string => `0x${code.toString(16).toUpperCase().padStart(4, "0")}`;

/** `end code 0x1103 (the address is out of range)`. */
export const explain = (code: number): string => `end code ${hexCode(code)} (${wordsOf(code).words})`;

/** The command is not one of the controller's. */
export const isUnknownCommand = (code: number): boolean => code >> 8 === 0x04;

/** Less may be granted: W227 names these for commands and answers that are too long, and controllers for too many elements. */
export const isTooLarge = (code: number): boolean => code === 0x1001 || code === 0x1003 || code === 0x110b;

/** Another try may go well at once. */
export const isBusy = (code: number): boolean => wordsOf(code).scope === "busy";

/** The node cannot be reached at all. */
export const isUnreachable = (code: number): boolean => wordsOf(code).scope === "everything" && wordsOf(code).fault === "no_answer";

/**
 * What an answer with an end code other than 0 says of the request for `what`. FaultError: the node refused it; ReasonError: a node on the
 * way could not pass it on. `requestedNode`: the one that the request went to. `model`: of the controller, where it is known.
 */
export function refusalOf(frame: Buffer, what: string, requestedNode: number, model?: string): FaultError | ReasonError {
  const raw = rawEndCode(frame);
  const code = endCodeOf(raw);
  if (isRelayError(raw)) return relayError(frame, code, requestedNode);
  const { fault, hint, scope } = wordsOf(code);
  // What holds for everything reads the same whatever was asked.
  const subject = scope === "everything" ? "" : ` for ${what}`;
  const own = model !== undefined && IS_NJ_OR_NX.test(model) ? NJ_NX_HINTS.get(code) : undefined;
  return new FaultError(fault, `${explain(code)}${subject}: ${own ?? hint}`, { scope });
}

function relayError(frame: Buffer, code: number, requestedNode: number): ReasonError {
  const relay = relayOf(frame);
  const raw = `the answer holds ${hexCode(rawEndCode(frame))}`;
  if (!relay)
    return new ReasonError("UNKNOWN", `relay error, ${explain(code)}, on the way to node ${requestedNode}; it does not say where (${raw})`);
  return new ReasonError(
    {
      type: "FINS_NETWORK_RELAY_ERROR",
      response_code: code,
      requested_node: requestedNode,
      relay_network: relay.network,
      relay_node: relay.node,
    },
    `relay error at network ${relay.network}, node ${relay.node}, on the way to node ${requestedNode}: ${explain(code)} (${raw})`,
  );
}

/** A node that cannot be asked at all. */
export const unreachableError = (code: number, where: string): ReasonError =>
  new ReasonError("UNKNOWN", `${where} answered with ${explain(code)}: ${wordsOf(code).hint}`);
