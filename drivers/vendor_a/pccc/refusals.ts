import { FaultError } from "../../../src/model/fault.ts";
import { about, busy, hex, type StatusWords } from "../refusals.ts";

/** STS and EXT STS of PCCC replies. Rockwell 1770-6.5.16, 8-3; the local ones and EXT STS as independent clients quote 8-4. All pure. */

const silent = (words: string): StatusWords => ({ fault: "no_answer", words, scope: "silent" });
const device = (words: string): StatusWords => ({ fault: "device_error", words, scope: "everything" });

const NO_ADDRESS = "there is no such file or element: compare the address with the data files of the program";
const FILE_END = "the file is shorter, or the answer would be too large: compare the address with the length of the file";
const NODE = "look whether the path names the right node and whether it is switched on";
const PRIVILEGE = "permit reading in the controller: its protection or its mode forbids it";

const STATUS: ReadonlyMap<number, StatusWords> = new Map([
  [0x01, busy("the module on the way has no buffer left at this moment")],
  [0x02, silent(`the node does not take the message; ${NODE}`)],
  [0x03, device("a duplicate token holder: two nodes of the serial network have the same number")],
  [0x04, device("the port on the way is disconnected; look at the cable behind the module")],
  [0x05, silent(`the node does not answer in time; ${NODE}`)],
  [0x06, device("a duplicate node: two nodes of the serial network have the same number")],
  [0x07, silent(`the port on the way is offline; ${NODE}`)],
  [0x08, device("a hardware fault of the module on the way")],
  [0x10, about("device_error", "illegal command or format: set family to the kind of the controller if it is another one")],
  [0x20, device("the controller has a problem and does not communicate")],
  [0x30, silent(`the controller is missing, disconnected or shut down; ${NODE}`)],
  [0x40, device("the controller has a hardware fault")],
  [0x50, about("out_of_range", `address problem or memory protection: ${NO_ADDRESS}`)],
  [0x60, { fault: "access_denied", words: `the function is not allowed: ${PRIVILEGE}`, scope: "everything" }],
  [0x70, device("the controller is in program mode")],
  [0x80, device("the compatibility file is missing or faulty")],
  [0x90, busy("the module on the way cannot buffer the command at this moment")],
  [0xa0, busy("the controller asks to wait")],
  [0xb0, busy("a program is being downloaded")],
  [0xc0, busy("the controller asks to wait")],
]);

const EXTENDED: ReadonlyMap<number, StatusWords> = new Map([
  [0x01, about("device_error", "a field has an illegal value")],
  [0x02, about("address_invalid", "the address has too few levels")],
  [0x03, about("address_invalid", "the address has too many levels")],
  [0x04, about("not_found", `symbol not found: ${NO_ADDRESS}`)],
  [0x05, about("address_invalid", "the symbol has a wrong format")],
  [0x06, about("not_found", NO_ADDRESS)],
  [0x07, about("out_of_range", `the file is of the wrong size: ${FILE_END}`)],
  [0x08, busy("the situation has changed since the start of the command")],
  [0x09, about("out_of_range", `too large: ${FILE_END}`)],
  [0x0a, about("out_of_range", `size plus address is too large: ${FILE_END}`)],
  [0x0b, about("access_denied", PRIVILEGE)],
  [0x0c, about("device_error", "the resource is not available")],
  [0x0d, about("device_error", "the resource is already available")],
  [0x0e, about("device_error", "the command cannot be executed")],
  [0x0f, about("device_error", "overflow of a histogram")],
  [0x10, about("access_denied", `no access: ${PRIVILEGE}`)],
  [0x11, about("type_mismatch", "illegal data type: the file has another letter")],
  [0x12, about("device_error", "an invalid parameter")],
  [0x13, about("not_found", `a deleted area: ${NO_ADDRESS}`)],
  [0x14, about("device_error", "an unknown failure")],
  [0x15, about("device_error", "data could not be converted")],
  [0x16, about("device_error", "the scanner cannot communicate with a rack adapter")],
  [0x17, about("type_mismatch", "the file has another letter")],
  [0x18, about("device_error", "the module's response is not valid")],
  [0x19, about("device_error", "a duplicate label")],
  [0x1a, busy("another node has the file open")],
  [0x1b, busy("another node owns the program")],
  [0x1e, about("access_denied", "the element is protected by the program")],
  [0x1f, busy("not available at this moment")],
  [0x22, device("a rack fault")],
  [0x23, silent(`a time-out on the way; ${NODE}`)],
  [0x24, about("device_error", "an unknown error")],
]);

/** `PCCC status 0xF0/0x06`. */
const codeWords = (status: number, extended: number | undefined): string =>
  `PCCC status ${hex(status, 2)}${extended === undefined ? "" : `/${hex(extended, 2)}`}`;

function wordsOf(status: number, extended: number | undefined): StatusWords {
  const known = extended === undefined ? STATUS.get(status) : EXTENDED.get(extended);
  return known ?? about("device_error", "not in the protocol's list: look it up in the controller's manual");
}

/** A command that was refused; `what` in the field's words. */
export function fileRefusal(status: number, extended: number | undefined, what: string): FaultError {
  const { fault, words, scope } = wordsOf(status, extended);
  return new FaultError(fault, `${what}: ${codeWords(status, extended)} (${words})`, { scope });
}

/** Words of a status, for a frame. */
export const statusWords = (status: number, extended: number | undefined): string =>
  `${codeWords(status, extended)} (${wordsOf(status, extended).words})`;

/** True: asking for less of one range may help. */
export const mayBeTooLarge = (status: number, extended: number | undefined): boolean =>
  status === 0x10 || extended === 0x07 || extended === 0x09 || extended === 0x0a;

/** True: the type of the file is refused, of which there are two for inputs and outputs. */
export const isTypeRefused = (status: number, extended: number | undefined): boolean =>
  status === 0x10 || extended === 0x01 || extended === 0x11 || extended === 0x17;

/** True: the controller does not know the command. */
export const isCommandRefused = (status: number): boolean => status === 0x10;
