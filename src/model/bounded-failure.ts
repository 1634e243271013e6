import { FaultError, PartialRefusal, type RefusedItem } from "./fault.ts";
import { type Reason, ReasonError } from "./reason.ts";

/** Most UTF-16 units of a text that a device or a driver chose: a fault's, a reason's, a warning's. */
export const MAX_WORDS = 8192;

/** At most so many UTF-16 units of a text. Copied where it is cut: a part of a string keeps all of it in memory. Pure. */
export const clip = (text: string, max: number = MAX_WORDS): string =>
  text.length <= max ? text : Buffer.from(text.slice(0, max), "utf16le").toString("utf16le");

/**
 * The failure with words that have an end, whatever the device sent: itself, or one without a cause, which holds the same text mostly.
 * Pure.
 */
export function bounded(failure: FaultError): FaultError;
export function bounded(failure: ReasonError): ReasonError;
export function bounded(failure: ReasonError | FaultError): ReasonError | FaultError;
export function bounded(failure: ReasonError | FaultError): ReasonError | FaultError {
  if (failure instanceof ReasonError) return boundedReasonError(failure);
  if (failure instanceof PartialRefusal) return boundedPartial(failure);
  const { fault, message, scope } = failure;
  return isLong(message) ? new FaultError(fault, clip(message), { scope }) : failure;
}

const isLong = (value: unknown): boolean => typeof value === "string" && value.length > MAX_WORDS;

function boundedReasonError(failure: ReasonError): ReasonError {
  const { reason, message, condition, retryAfterMs, sessionLost } = failure;
  if (!isLong(message) && !Object.values(reason).some(isLong)) return failure;
  const options = { ...(condition && { condition }), retryAfterMs, sessionLost };
  return new ReasonError(boundedReason(reason), clip(message), options);
}

const boundedReason = (reason: Reason): Reason =>
  Object.fromEntries(Object.entries(reason).map(([key, value]) => [key, typeof value === "string" ? clip(value) : value])) as Reason;

function boundedPartial(failure: PartialRefusal): PartialRefusal {
  const { readings, items } = failure;
  if (!items.some(({ refusal }) => isLong(refusal.message))) return failure;
  // Many items may share one refusal.
  const known = new Map<FaultError, FaultError>();
  const boundedOf = (refusal: FaultError): FaultError => {
    const one = known.get(refusal) ?? bounded(refusal);
    known.set(refusal, one);
    return one;
  };
  const ofItem = ({ places, refusal }: RefusedItem): RefusedItem => ({ places, refusal: boundedOf(refusal) });
  const [first, ...others] = items;
  return new PartialRefusal(readings, [ofItem(first), ...others.map(ofItem)]);
}
