import { shellWord } from "../../base/shell-word.ts";
import type { Fault } from "../fault.ts";
import type { Explanation } from "./catalogue.ts";

/** Which variable it is about, as far as it is known. */
export interface FaultPlace {
  /** Name of its data source; absent: a device that was typed. */
  readonly source?: string;
  /** Name of the variable: the next step looks at it closely. */
  readonly variable?: string;
  /** Its address, where it has been looked at closely: the next step reads another one. */
  readonly address?: string;
}

/** Sentence, cause, and what to do first. */
const FAULTS: { readonly [F in Fault]: Explanation } = {
  address_invalid: {
    sentence: "The address does not have the form that this type of device needs.",
    cause: "A typing error, or an address in the notation of another type of device.",
    nextStep: "Correct the address; the detail says what would be right.",
  },
  not_found: {
    sentence: "The device has no such variable.",
    cause: "The address is wrong, or the program in the device has changed.",
    nextStep: "Compare the address with the program of the device.",
  },
  access_denied: {
    sentence: "The device does not let the collector read this variable.",
    cause: "Access protection in the device, or a user without the rights.",
    nextStep: "Permit reading in the device.",
  },
  type_mismatch: {
    sentence: "The value does not have the configured type.",
    cause: "The type of the variable is wrong, or the program in the device has changed.",
    nextStep: "Correct the type of the variable.",
  },
  out_of_range: {
    sentence: "The value or address is outside the permitted range.",
    cause: "The address is behind the end of the memory, or the value does not fit its type.",
    nextStep: "Compare address and length with the memory of the device.",
  },
  not_a_number: {
    sentence: "The device holds bytes that are not a number or a date, infinity or NaN.",
    cause: "A sensor is broken or missing, no program has written the value yet, or type, address or byte order are wrong.",
    nextStep: "Check the sensor, then type, address and byte order.",
  },
  device_error: {
    sentence: "The device refuses this variable with an error of its own.",
    cause: "The device or a part of it is in a state in which it does not answer; the code in the detail says which.",
    nextStep: "Look the device's own code, which the detail holds, up in its manual.",
  },
  stale: {
    sentence: "The device reports that the value is old.",
    cause: "The device has lost its connection to the source of the value.",
    nextStep: "Check the source of the value behind the device.",
  },
  no_answer: {
    sentence: "The unit that holds this variable did not answer.",
    cause: "The unit behind the device is off or not connected, or the unit number is wrong.",
    nextStep: "Check power, bus cable and number of that unit.",
  },
  collector_error: {
    sentence: "The collector itself failed over this variable.",
    cause: "The collector has a fault; the device and its other variables probably have none.",
    nextStep: "Keep the log of the service and the address of the variable, and report them.",
  },
  program_changed: {
    sentence: "The device got another program: what was read may be the value of another variable.",
    cause: "A download to the device, which gave its variables other places.",
    nextStep:
      "Wait for the next readout, which looks the variable up again; where this stays, compare the address with the program of the device.",
  },
  values_lost: {
    sentence: "Values of this variable between the one before and the next one did not come.",
    cause: "The device sends each change, and its queue overflowed or its connection was lost meanwhile; the detail says which.",
    nextStep: "Give the queue more room where it overflows (queue_size); what is lost does not come back.",
  },
};

/** Explains what is wrong with one variable, and names the command that shows more of it where its data source is known. Pure. */
export function explainFault(fault: Fault, { source, variable, address }: FaultPlace = {}): Explanation {
  const known = FAULTS[fault];
  if (source === undefined) return known;
  const at = shellWord(source, "SOURCE");
  if (address !== undefined)
    return {
      ...known,
      nextStep: `${known.nextStep} \`collector read ${at} ${shellWord(address, "ADDRESS")}\` asks for this address alone.`,
    };
  if (variable === undefined) return known;
  const look = `\`collector explain ${at} ${shellWord(variable, "VARIABLE")}\``;
  return { ...known, nextStep: `${known.nextStep} ${look} shows the requests and the answers.` };
}
