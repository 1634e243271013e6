import { type Fault, FaultError, type RefusalScope } from "../../src/model/fault.ts";

type ItemWords = readonly [fault: Fault, words: string, hint: string];
const NOT_LISTED: ItemWords = ["device_error", "not in the protocol's list", "look it up in the controller's manual"];
/** By return code of an item. */
const ITEM_CODES: Readonly<Record<number, ItemWords>> = {
  1: ["device_error", "hardware error", "look at the diagnostic buffer of the controller"],
  3: ["access_denied", "access not allowed", "permit access with PUT/GET in the controller's properties, or lower its protection level"],
  5: ["out_of_range", "address out of range", "the block or area is shorter, or the block is optimised: read it by its symbol with s7plus"],
  6: ["type_mismatch", "data type not supported", "the controller does not know this area, or does not read it like this"],
  7: ["type_mismatch", "data type and length contradict each other", "the controller does not read this area like this"],
  10: [
    "not_found",
    "object does not exist",
    "the block is not loaded, or it is optimised: switch off optimised block access, or read it by its symbol with s7plus",
  ],
};

/** `item code 0x0A (object does not exist)`. */
export const itemWords = (code: number): string => `item code ${hex(code, 2)} (${(ITEM_CODES[code] ?? NOT_LISTED)[1]})`;

/** The refusal of one range; `range` in the field's words. */
export function itemRefusal(code: number, range: string): FaultError {
  const [fault, , hint] = ITEM_CODES[code] ?? NOT_LISTED;
  return new FaultError(fault, `${range}: ${itemWords(code)}: ${hint}`);
}

/** A range of which the device sent another number of bytes than was asked for. */
export const miscountRefusal = (sent: number, asked: number, range: string): FaultError =>
  new FaultError("device_error", `${range}: the device sent ${Math.max(0, sent)} bytes, ${asked} were asked for`);

interface ErrorWords {
  readonly fault: Fault;
  readonly words: string;
  readonly scope: RefusalScope;
}

const PERMIT =
  "the controller does not give access: permit access with PUT/GET communication from remote partners (Protection & Security), and check its protection level";
/** Other causes, of an S7-1200 or S7-1500. */
const NOT_LOADED =
  "where it is permitted in the project: is the hardware configuration loaded since, and is the project's firmware of the CPU not below the CPU's own?";
const closed = (words: string): ErrorWords => ({ fault: "access_denied", words, scope: "everything" });
const about = (fault: Fault, words: string): ErrorWords => ({ fault, words, scope: "points" });
const busy = (words: string): ErrorWords => ({ fault: "device_error", words, scope: "busy" });

/** By error class and code in the header of an answer; from independent implementations, not from a specification. */
const HEADER_ERRORS: ReadonlyMap<number, ErrorWords> = new Map([
  [0x8104, closed(`the service is not permitted or not known; ${PERMIT}; ${NOT_LOADED}`)],
  [0x8301, busy("not enough memory in the controller at this moment")],
  [0x8302, busy("not enough resources in the controller at this moment")],
  [0x8304, busy("not enough connections or resources in the controller at this moment")],
  [0x8305, busy("not possible at this moment")],
  [0x8404, about("device_error", "not possible in this state of the controller")],
  [0x8500, about("device_error", "wrong frame or PDU size")],
  [0x8701, about("out_of_range", "wrong address or length")],
  [0x8702, about("type_mismatch", "not supported")],
  // It may be about one range of several: halving finds out.
  [0x8703, about("access_denied", `access refused; ${PERMIT}`)],
  [0xd0a1, closed(`not permitted at this protection level; ${PERMIT}`)],
  [0xd209, about("not_found", "the item is not there")],
  [0xd241, closed(`a password is needed; ${PERMIT}`)],
  [0xd602, closed(`wrong password; ${PERMIT}`)],
  [0xdc01, about("out_of_range", "invalid value")],
]);

const BY_CLASS: ReadonlyMap<number, ErrorWords> = new Map([
  [0x81, about("device_error", "application relationship")],
  [0x82, about("not_found", "object definition")],
  [0x83, busy("not enough resources in the controller at this moment")],
  [0x84, about("device_error", "error in the service")],
  [0x85, about("device_error", "wrong frame")],
  [0x87, about("access_denied", "access error")],
]);

/** Too large a message for this controller. */
export const WRONG_PDU_SIZE = 0x8500;

/** The refusal of a whole job; `what` in the field's words. */
export function jobRefusal(error: number, what: string): FaultError {
  const known = HEADER_ERRORS.get(error) ?? BY_CLASS.get(error >> 8) ?? about("device_error", "not in the protocol's list");
  const { fault, words, scope } = known;
  // What holds for everything reads the same whatever was asked.
  const subject = scope === "everything" ? "" : ` for ${what}`;
  return new FaultError(fault, `error ${hex(error, 4)}${subject}: ${words}`, { scope });
}

const hex = (n: number, digits: number): string => `0x${n.toString(16).toUpperCase().padStart(digits, "0")}`;
