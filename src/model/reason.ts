import type { Condition } from "./condition.ts";
import type { PlainReasonType, Reason } from "./reason-schema.ts";

// Types alone: every thread has reasons, and few have use for the library of the schemas.
export type { PlainReasonType, Reason, ReasonType } from "./reason-schema.ts";

/**
 * The source failed; what is open to it is thrown away. The message is for people and becomes the local detail,
 * the reason is for programs. `condition` names what the API has no reason for (then the reason is UNKNOWN).
 */
export class ReasonError extends Error {
  override readonly name = "ReasonError";
  readonly reason: Reason;
  readonly condition: Condition | undefined;
  /** The peer asks not to be tried again before. Milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** The peer has ended or forgotten what was open, which says nothing against a new one at once. */
  readonly sessionLost: boolean;
  /** The peer does not have what is asked of it: where it goes on saying so, it is asked less and less often (lastingRestMs). */
  readonly isLasting: boolean;
  /** The peer ended it over a limit of its own for all that comes: no message is at fault, and none is to be tried apart. */
  readonly isOfLimit: boolean;
  /** A sentence or two, better than the usual next step: it knows the case. Also that of the cause. */
  readonly nextStep: string | undefined;
  constructor(
    reason: Reason | PlainReasonType,
    message: string,
    options?: ErrorOptions & {
      condition?: Condition;
      retryAfterMs?: number | undefined;
      sessionLost?: boolean;
      isLasting?: boolean;
      isOfLimit?: boolean;
      nextStep?: string | undefined;
    },
  ) {
    super(message, options);
    this.reason = typeof reason === "string" ? { type: reason } : reason;
    this.condition = options?.condition;
    this.retryAfterMs = options?.retryAfterMs;
    this.sessionLost = options?.sessionLost ?? (this.reason.type === "CONNECTION_CLOSED" || this.reason.type === "CONNECTION_RESET");
    this.isLasting = options?.isLasting ?? false;
    this.isOfLimit = options?.isOfLimit ?? false;
    this.nextStep = options?.nextStep ?? stepOf(options?.cause);
  }
}

/** Total: a cause may be anything, and throw where it is looked at. */
function stepOf(cause: unknown): string | undefined {
  try {
    return cause instanceof ReasonError ? cause.nextStep : undefined;
  } catch {
    return undefined;
  }
}

/** A peer that asks for more time is tried again after this all the same. */
const LONGEST_REST_MS = 3_600_000;

/** How long the peer asks not to be tried again: 0 ms to an hour, whatever it says. Pure. */
export const restMsOf = ({ retryAfterMs = 0 }: ReasonError): number => Math.min(Math.max(0, retryAfterMs), LONGEST_REST_MS);

/** How long a peer that has said for so long that it does not have what is asked is not asked again: as long, and an hour at most. Pure. */
export const lastingRestMs = (saidForMs: number): number => Math.min(Math.max(0, saidForMs), LONGEST_REST_MS);
