import { explainReason } from "../model/catalogue.ts";
import type { Log } from "../model/context.ts";
import type { ReasonError } from "../model/reason.ts";
import type { SinkReport } from "../model/report.ts";
import { isClose } from "../sinks/lib/in-flight-window.ts";

/** How one sink stands: what its report and the log say of it. A change is logged once. */
export interface Standing {
  opened(): void;
  /**
   * It cannot be reached, or was lost; tried again in `retryMs`. `hint`: what else may be the matter. `isIsolating`: it was lost on what is
   * known to be at fault, so that neither this nor the next opening is news.
   */
  lost(reason: ReasonError, retryMs: number, more?: { readonly hint?: string | undefined; readonly isIsolating?: boolean }): void;
  /** A write is through, with so many values refused for ever; the first `detail` since it was well is shown. */
  wrote(refused: number, detail: string | undefined): void;
  /** So many values are given up, because the far side failed on them and not on others: each time a line of the log. */
  dropped(values: number, detail: string): void;
  /** What the far side failed on, while that is kept to be tried again; undefined: nothing is. May be called often. */
  keeping(detail: string | undefined): void;
  stopped(): void;
  report(): Pick<SinkReport, "state" | "since" | "error" | "next_retry_at">;
}

/** After a refused write the sink is said to be in trouble for so long. */
const REFUSAL_MS = 60_000;
/** A close so soon after a refusal may be what the far side does about it. */
const CLOSED_ON_REFUSAL_MS = 2000;
/** Lines on dropped values in one minute; those beyond are counted in the next line. */
const DROP_LINES = 10;
const DROP_LINES_MS = 60_000;

const REFUSED = "the sink refuses values; they are dropped and counted";
const KEPT = "the sink fails on some values; they are kept and tried again by themselves";

type Trouble = NonNullable<SinkReport["error"]>;

/** `changed` is called with each change of the report, and may be called without one. */
export function createStanding(endpoint: string, log: Log, changed: () => void): Standing {
  let state: SinkReport["state"] = "CONNECTING";
  let trouble: Trouble | undefined;
  let since = new Date().toISOString();
  let nextRetryAt: string | null = null;
  let isOpen = false;
  /** Since the last opening. */
  let refusal: { readonly detail: string; atMs: number } | undefined;
  /** Over openings: it may have been lost for that. */
  let drop: { readonly detail: string; readonly atMs: number } | undefined;
  let kept: string | undefined;
  /** One line for all that is kept at a time. */
  let isKeptSaid = false;
  let wasIsolating = false;
  const lines = { sinceMs: Number.NEGATIVE_INFINITY, count: 0, unsaid: 0 };

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
  const fail = (error: Trouble, level: "debug" | "warn" | "error", message: string, more: object = {}): void => {
    if (!enter("ERROR", error)) return;
    const { nextStep } = explainReason(error.reason, error.condition, { endpoint });
    log[level]({ reason: error.reason, condition: error.condition, since, nextRetryAt, nextStep, detail: error.detail, ...more }, message);
  };
  const unknown = (detail: string): Trouble => ({ reason: { type: "UNKNOWN" }, condition: null, detail });

  /** What is to be shown while the sink is open. */
  const show = (): void => {
    if (!isOpen) return;
    const atMs = performance.now();
    if (drop && atMs - drop.atMs > REFUSAL_MS) drop = undefined;
    if (refusal && atMs - refusal.atMs > REFUSAL_MS) refusal = undefined;
    if (drop) fail(unknown(drop.detail), "debug", REFUSED);
    else if (refusal) {
      if (state !== "ERROR" || trouble?.detail !== refusal.detail) fail(unknown(refusal.detail), "error", REFUSED);
    } else if (kept !== undefined) {
      if (state !== "ERROR") fail(unknown(kept), isKeptSaid ? "debug" : "warn", KEPT);
      isKeptSaid = true;
    } else if (enter("OK")) log.info({ since }, "the sink is connected");
  };

  return {
    opened() {
      nextRetryAt = null;
      refusal = undefined;
      isOpen = true;
      if (enter("OK")) log[wasIsolating ? "debug" : "info"]({ since }, "the sink is connected");
      show();
    },
    lost({ reason, condition, message }, retryMs, { hint, isIsolating = false } = {}) {
      nextRetryAt = new Date(Date.now() + retryMs).toISOString();
      isOpen = false;
      const wasRefusing = refusal && isClose(reason.type) && performance.now() - refusal.atMs < CLOSED_ON_REFUSAL_MS;
      const more = [wasRefusing ? `right after this: ${refusal?.detail}` : undefined, hint];
      const detail = [message, ...more.filter((one) => one !== undefined)].join("; ");
      refusal = undefined;
      wasIsolating = isIsolating;
      const error = { reason, condition: condition ?? null, detail };
      fail(error, isIsolating ? "debug" : "warn", "the sink cannot be reached; values wait in the buffer");
    },
    wrote(refused, detail = "the sink refuses values") {
      if (refused > 0) refusal = { detail: refusal?.detail ?? detail, atMs: performance.now() };
      if (refused > 0 || state === "ERROR") show();
    },
    dropped(values, detail) {
      const atMs = performance.now();
      drop = { detail, atMs };
      if (atMs - lines.sinceMs > DROP_LINES_MS) Object.assign(lines, { sinceMs: atMs, count: 0 });
      lines.unsaid += values;
      if (lines.count < DROP_LINES) {
        lines.count++;
        log.error({ values: lines.unsaid, detail }, REFUSED);
        lines.unsaid = 0;
      }
      show();
    },
    keeping(detail) {
      if (detail === kept) return;
      kept = detail;
      isKeptSaid &&= detail !== undefined;
      show();
    },
    stopped() {
      nextRetryAt = null;
      isOpen = false;
      if (enter("STOPPED")) log.info({ since }, "the sink is closed");
    },
    report: () => ({ state, since, error: trouble ?? null, next_retry_at: nextRetryAt }),
  };
}
