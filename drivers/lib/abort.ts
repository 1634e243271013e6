import { Deadline } from "../../src/base/deadline.ts";
import { ReasonError } from "../../src/model/reason.ts";

/** How long to wait for something on the outside. */
export interface Bound {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** What is thrown when the time has run out. */
  onTimeout(): Error;
  /** What is thrown when the signal aborts. */
  onAbort(): Error;
  /** Called once, at the beginning: calling `extend` gives the work all of its time again, up to the signal. */
  onBegin?(extend: () => void): void;
}

/**
 * Settles with `work`, or as soon as the time runs out or the signal aborts; what `work` does afterwards is ignored.
 * Leaves no listener and no timer behind.
 */
export function bounded<T>(work: Promise<T>, bound: Bound): Promise<T> {
  return new Promise((resolve, reject) => {
    const release = () => {
      deadline.cancel();
      bound.signal.removeEventListener("abort", onAbort);
    };
    const onAbort = () => {
      release();
      reject(bound.onAbort());
    };
    const deadline = new Deadline(bound.timeoutMs, () => {
      release();
      reject(bound.onTimeout());
    });
    bound.onBegin?.(() => deadline.extend());
    work.then(
      (value) => {
        release();
        resolve(value);
      },
      (error: unknown) => {
        release();
        reject(error);
      },
    );
    if (bound.signal.aborted) onAbort();
    else bound.signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** The readout was stopped or its deadline came while `doing` (for example `connecting to 10.0.0.7:502`). */
export function stoppedWhile(doing: string, signal: AbortSignal): ReasonError {
  return new ReasonError("TIMEOUT", `the readout's deadline came while ${doing}`, { cause: signal.reason });
}
