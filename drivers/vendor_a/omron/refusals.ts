import { type Fault, FaultError, type RefusalScope } from "../../../src/model/fault.ts";
import { refusalOf, statusCode } from "../refusals.ts";

interface Words {
  readonly fault: Fault;
  readonly words: string;
  readonly scope?: RefusalScope;
}

const PUBLISH = "set Network Publish of the variable to Publish Only, Input or Output in Sysmac Studio, and compare its name";

/** By general status, where Omron W506 (8-7, pages 8-82 to 8-86) says more than CIP does. */
const OWN: ReadonlyMap<number, Words> = new Map<number, Words>([
  [0x04, { fault: "not_found", words: `no such variable, or an index or member that it does not have: ${PUBLISH}` }],
  [0x05, { fault: "not_found", words: `no such variable on the network: ${PUBLISH}` }],
  [0x08, { fault: "device_error", words: "the controller does not know this service" }],
  [0x1f, { fault: "device_error", words: "an error of the maker's own: look its code up in the manual of the built-in EtherNet/IP port" }],
  [0x20, { fault: "device_error", words: "the variable cannot be read in this form: name one element, or a shorter part" }],
]);

const [STATE_CONFLICT, STARTING, TAG_MEMORY] = [0x0c, 0x8010, 0x8011];

/** The refusal of a variable or of a list; `what` in the field's words. Pure. */
export function variableRefusal(status: number, extended: number | undefined, what: string): FaultError {
  const own = status === STATE_CONFLICT ? stateWords(extended) : OWN.get(status);
  if (!own) return refusalOf(status, extended, what);
  const { fault, words, scope = "points" } = own;
  return new FaultError(fault, `${what}: ${statusCode(status, extended)} (${words})`, { scope });
}

/** The refusal of a type: it says nothing of the variable. Pure. */
export function typeRefusal(status: number, extended: number | undefined, what: string): FaultError {
  const refusal = variableRefusal(status, extended, what);
  if (refusal.scope !== "points") return refusal;
  const words = "the controller does not tell it; variables and their members can be read by name";
  return new FaultError("device_error", `${what}: ${statusCode(status, extended)} (${words})`);
}

function stateWords(extended: number | undefined): Words | undefined {
  if (extended === STARTING)
    return {
      fault: "device_error",
      words: "the controller starts, or a program is being loaded; it is read again as soon as that is over",
      scope: "busy",
    };
  if (extended === TAG_MEMORY)
    return {
      fault: "device_error",
      words: "an error in the controller's memory of tags: look at its errors in Sysmac Studio",
      scope: "busy",
    };
  return undefined;
}
