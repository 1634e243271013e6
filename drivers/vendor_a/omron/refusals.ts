import { FaultError } from "../../../src/model/fault.ts";
import { about, busy, refusalOf, type StatusWords, statusCode } from "../refusals.ts";

const PUBLISH = "set Network Publish of the variable to Publish Only, Input or Output in Sysmac Studio, and compare its name";

/** By general status, where Omron W506 (8-7, pages 8-82 to 8-86) says more than CIP does. */
const OWN: ReadonlyMap<number, StatusWords> = new Map([
  [0x04, about("not_found", `no such variable, or an index or member that it does not have: ${PUBLISH}`)],
  [0x05, about("not_found", `no such variable on the network: ${PUBLISH}`)],
  [0x08, about("device_error", "the controller does not know this service")],
  [0x1f, about("device_error", "an error of the maker's own: look its code up in the manual of the built-in EtherNet/IP port")],
  [0x20, about("device_error", "the variable cannot be read in this form: name one element, or a shorter part")],
]);

const [STATE_CONFLICT, STARTING, TAG_MEMORY] = [0x0c, 0x8010, 0x8011];

/** The refusal of a variable or of a list; `what` in the field's words. Pure. */
export function variableRefusal(status: number, extended: number | undefined, what: string): FaultError {
  const own = status === STATE_CONFLICT ? stateWords(extended) : OWN.get(status);
  if (!own) return refusalOf(status, extended, what);
  const { fault, words, scope } = own;
  return new FaultError(fault, `${what}: ${statusCode(status, extended)} (${words})`, { scope });
}

/** The refusal of a type: it says nothing of the variable. Pure. */
export function typeRefusal(status: number, extended: number | undefined, what: string): FaultError {
  const refusal = variableRefusal(status, extended, what);
  if (refusal.scope !== "points") return refusal;
  const words = "the controller does not tell it; variables and their members can be read by name";
  return new FaultError("device_error", `${what}: ${statusCode(status, extended)} (${words})`);
}

function stateWords(extended: number | undefined): StatusWords | undefined {
  if (extended === STARTING) return busy("the controller starts, or a program is being loaded; it is read again as soon as that is over");
  if (extended === TAG_MEMORY) return busy("an error in the controller's memory of tags: look at its errors in Sysmac Studio");
  return undefined;
}
