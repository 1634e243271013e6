import { explainReason } from "../model/catalogue.ts";
import type { Log } from "../model/context.ts";
import type { ReasonError } from "../model/reason.ts";
import type { SinkReport } from "../model/report.ts";
import { isClose } from "./guard.ts";

/** How one sink stands: what its report and the log say of it. A change is logged once. */
export interface Standing {
  opened(): void;
  /** It cannot be reached, or was lost; tried again in `retryMs`. `hint`: what else may be the matter. */
  lost(reason: ReasonError, retryMs: number, hint?: string): void;
  /** A write is through, with so many values refused for ever; the first `detail` since it was well is shown. */
  wrote(refused: number, detail: string | undefined): void;
  stopped(): void;
  report(): Pick<SinkReport, "state" | "since" | "error" | "next_retry_at">;
}

/** After a refused write the sink is said to be in trouble for so long. */
const REFUSAL_MS = 60_000;
/** A close so soon after a refusal may be what the far side does about it. */
const CLOSED_ON_REFUSAL_MS = 2000;

type Trouble = NonNullable<SinkReport["error"]>;

/** `changed` is called with each change of the report, and may be called without one. */
export function createStanding(endpoint: string, log: Log, changed: () => void): Standing {
  let state: SinkReport["state"] = "CONNECTING";
  let trouble: Trouble | undefined;
  let since = new Date().toISOString();
  let nextRetryAt: string | null = null;
  /** Since the last opening. */
  let refusal: { readonly detail: string; atMs: number } | undefined;

  /** True: the log is to say it. */
  const enter = (next: SinkReport["state"], error?: Trouble): boolean => {
    const isSame = state === next && JSON.stringify(error) === JSON.stringify(trouble);
    changed();
    if (isSame) return false;
    state = next;
    trouble = error;
    since = new Date().toISOString();
    return true;
  };
  const fail = (error: Trouble, level: "warn" | "error", message: string): void => {
    if (!enter("ERROR", error)) return;
    const { nextStep } = explainReason(error.reason, error.condition, { endpoint });
    log[level]({ reason: error.reason, condition: error.condition, since, nextRetryAt, nextStep, detail: error.detail }, message);
  };
  const well = (): void => {
    if (enter("OK")) log.info({ since }, "the sink is connected");
  };

  return {
    opened() {
      nextRetryAt = null;
      refusal = undefined;
      well();
    },
    lost({ reason, condition, message }, retryMs, hint) {
      nextRetryAt = new Date(Date.now() + retryMs).toISOString();
      const wasRefusing = refusal && isClose(reason.type) && performance.now() - refusal.atMs < CLOSED_ON_REFUSAL_MS;
      const more = [wasRefusing ? `right after this: ${refusal?.detail}` : undefined, hint];
      const detail = [message, ...more.filter((one) => one !== undefined)].join("; ");
      refusal = undefined;
      fail({ reason, condition: condition ?? null, detail }, "warn", "the sink cannot be reached; values wait in the buffer");
    },
    wrote(refused, detail = "the sink refuses values") {
      const atMs = performance.now();
      if (refused > 0) {
        refusal = { detail: refusal?.detail ?? detail, atMs };
        if (state !== "ERROR")
          fail({ reason: { type: "UNKNOWN" }, condition: null, detail }, "error", "the sink refuses values; they are dropped and counted");
      } else if (refusal && atMs - refusal.atMs > REFUSAL_MS) {
        refusal = undefined;
        well();
      }
    },
    stopped() {
      nextRetryAt = null;
      if (enter("STOPPED")) log.info({ since }, "the sink is closed");
    },
    report: () => ({ state, since, error: trouble ?? null, next_retry_at: nextRetryAt }),
  };
}
