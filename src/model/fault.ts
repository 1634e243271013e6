import type { Reading } from "./value.ts";

/** What a device, or a plugin that reads one, can say of a variable. */
export const DEVICE_FAULTS = [
  "address_invalid",
  "not_found",
  "access_denied",
  "type_mismatch",
  "out_of_range",
  "not_a_number",
  "device_error",
  "stale",
  "no_answer",
  "program_changed",
] as const;

/** What can be wrong with one variable while its source answers. Ours and closed; never part of the API's status. */
export const FAULTS = [...DEVICE_FAULTS, "collector_error", "values_lost"] as const;

export type Fault = (typeof FAULTS)[number];

/**
 * What a refusal is about. `points`: something of what was asked for, so that asking for less finds it. `busy`: the device at this
 * moment, whatever is asked. `silent`: a unit behind the device, or what was asked of it, gives the device no answer. `everything`:
 * whatever this client asks (a missing privilege, an access that is switched off); asking for less never helps. `program`: what was
 * prepared, because the device has another program by now.
 */
export type RefusalScope = "points" | "busy" | "silent" | "everything" | "program";

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

/** Points of one request that the device refused as one: which of them it is about is not known. */
export interface RefusedItem {
  /** Places in `request.points`; one at least. */
  readonly places: readonly number[];
  /** Of the scope `points`. */
  readonly refusal: FaultError;
}

/** The device refused some items of a request and answered the others: only the refused ones are asked in halves. */
export class PartialRefusal extends FaultError {
  /** readings[i] belongs to request.points[i]; undefined: its item was refused. */
  readonly readings: readonly (Reading | undefined)[];
  /** One at least. */
  readonly items: readonly [RefusedItem, ...RefusedItem[]];
  constructor(readings: readonly (Reading | undefined)[], items: readonly [RefusedItem, ...RefusedItem[]]) {
    const [{ refusal }] = items;
    super(refusal.fault, refusal.message, { cause: refusal });
    this.readings = readings;
    this.items = items;
  }
}
