import { type Fault, FaultError, type RefusalScope } from "../../src/model/fault.ts";

/** By return code of an item. */
const ITEM_CODES: Readonly<Record<number, readonly [fault: Fault, words: string, hint: string]>> = {
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

/** The refusal of one range; `range` in the field's words. */
export function itemRefusal(code: number, range: string): FaultError {
  const [fault, words, hint] = ITEM_CODES[code] ?? ["device_error", "not in the protocol's list", "look it up in the controller's manual"];
  return new FaultError(fault, `${range}: item code ${hex(code, 2)} (${words}): ${hint}`);
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
const closed = (words: string): ErrorWords => ({ fault: "access_denied", words, scope: "everything" });
const about = (fault: Fault, words: string): ErrorWords => ({ fault, words, scope: "points" });
const busy = (words: string): ErrorWords => ({ fault: "device_error", words, scope: "busy" });

/** By error class and code in the header of an answer; from independent implementations, not from a specification. */
const HEADER_ERRORS: Readonly<Record<number, ErrorWords>> = {
  33028: closed(`the service is not permitted or not known; ${PERMIT}`),
  33537: busy("not enough memory in the controller at this moment"),
  33538: busy("not enough resources in the controller at this moment"),
  33540: busy("not enough connections or resources in the controller at this moment"),
  33541: busy("not possible at this moment"),
  33796: about("device_error", "not possible in this state of the controller"),
  34048: about("device_error", "wrong frame or PDU size"),
  34561: about("out_of_range", "wrong address or length"),
  34562: about("type_mismatch", "not supported"),
  34563: closed(`access refused; ${PERMIT}`),
  53409: closed(`not permitted at this protection level; ${PERMIT}`),
  53769: about("not_found", "the item is not there"),
  53825: closed(`a password is needed; ${PERMIT}`),
  54786: closed(`wrong password; ${PERMIT}`),
  56321: about("out_of_range", "invalid value"),
};

const BY_CLASS: Readonly<Record<number, ErrorWords>> = {
  129: about("device_error", "application relationship"),
  130: about("not_found", "object definition"),
  131: busy("not enough resources in the controller at this moment"),
  132: about("device_error", "error in the service"),
  133: about("device_error", "wrong frame"),
  135: about("access_denied", "access error"),
};

/** Too large a message for this controller. */
export const WRONG_PDU_SIZE = 0x8500;

/** The refusal of a whole job; `what` in the field's words. */
export function jobRefusal(error: number, what: string): FaultError {
  const known = HEADER_ERRORS[error] ?? BY_CLASS[error >> 8] ?? about("device_error", "not in the protocol's list");
  const { fault, words, scope } = known;
  // What holds for everything reads the same whatever was asked.
  const subject = scope === "everything" ? "" : ` for ${what}`;
  return new FaultError(fault, `error ${hex(error, 4)}${subject}: ${words}`, { scope });
}

const hex = (n: number, digits: number): string => `0x${n.toString(16).toUpperCase().padStart(digits, "0")}`;
