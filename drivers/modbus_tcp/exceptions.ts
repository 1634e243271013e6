import { type Fault, FaultError, type RefusalScope } from "../../src/model/fault.ts";

interface ExceptionWords {
  readonly fault: Fault;
  readonly words: string;
  readonly hint?: string;
  /** Absent: `points`. */
  readonly scope?: RefusalScope;
}

const NOT_LISTED = "not in the standard";

/** MODBUS Application Protocol V1.1b3, 7, by exception code. */
const EXCEPTIONS: Readonly<Record<number, ExceptionWords>> = {
  1: { fault: "not_found", words: "illegal function", hint: "the device does not offer this area" },
  2: { fault: "not_found", words: "illegal data address" },
  3: { fault: "out_of_range", words: "illegal data value", hint: "the device may take fewer at once: see max_registers and max_coils" },
  4: { fault: "device_error", words: "server device failure" },
  5: { fault: "device_error", words: "acknowledge", hint: "the device needs longer and has to be asked later", scope: "busy" },
  6: { fault: "device_error", words: "server device busy", hint: "the collector asks again at the next readout", scope: "busy" },
  7: { fault: "device_error", words: "negative acknowledge" },
  8: { fault: "device_error", words: "memory parity error" },
  10: { fault: "no_answer", words: "gateway path unavailable", scope: "silent" },
  11: { fault: "no_answer", words: "gateway target device failed to respond", scope: "silent" },
};

/** `exception 2 (illegal data address)`. Pure. */
export const exceptionWords = (code: number): string => `exception ${code} (${EXCEPTIONS[code]?.words ?? NOT_LISTED})`;

/**
 * The fault for an exception: a proper answer, so the connection is good. `gateway` is `host:port`, `unit` the one behind it, `unitHint` what to
 * try where it is silent.
 */
export function exceptionFault(code: number, read: string, gateway: string, unit: number, unitHint: string): FaultError {
  const known: ExceptionWords = EXCEPTIONS[code] ?? { fault: "device_error", words: NOT_LISTED };
  const { fault, hint, scope = "points" } = known;
  const because = fault === "no_answer" ? `the gateway ${gateway} answers, unit ${unit} behind it does not${unitHint}` : hint;
  return new FaultError(fault, `${exceptionWords(code)} for ${read}${because === undefined ? "" : `: ${because}`}`, { scope });
}
