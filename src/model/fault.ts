/** What can be wrong with one variable while its source answers. Ours and closed; never part of the API's status. */
export const FAULTS = [
  "address_invalid",
  "not_found",
  "access_denied",
  "type_mismatch",
  "out_of_range",
  "not_a_number",
  "device_error",
  "stale",
  "no_answer",
] as const;

export type Fault = (typeof FAULTS)[number];

/**
 * What a refusal is about. `points`: something of what was asked for, so that asking for less finds it. `busy`: the device at this
 * moment, whatever is asked. `silent`: what stands behind the device (a unit) does not answer, whatever it is asked.
 */
export type RefusalScope = "points" | "busy" | "silent";

/** The device (or the address parser) refuses one variable or one request. The source itself is well. */
export class FaultError extends Error {
  override readonly name = "FaultError";
  readonly fault: Fault;
  readonly scope: RefusalScope;
  /** `detail` carries the protocol's own code and words; it becomes the message. The scope is `points` unless said. */
  constructor(fault: Fault, detail: string, options?: ErrorOptions & { readonly scope?: RefusalScope }) {
    super(detail, options);
    this.fault = fault;
    this.scope = options?.scope ?? "points";
  }
}
