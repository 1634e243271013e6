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

/** The device (or the address parser) refuses one variable or one request. The source itself is well. */
export class FaultError extends Error {
  override readonly name = "FaultError";
  readonly fault: Fault;
  /** `detail` carries the protocol's own code and words; it becomes the message. */
  constructor(fault: Fault, detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.fault = fault;
  }
}
