import type { Address } from "../../model/address.ts";
import type { FromSessionWorker } from "./messages.ts";

/** Names are looked up by the other thread, which has the agent's memory and policy. */
export class LookUps {
  readonly #post: (message: FromSessionWorker) => void;
  readonly #waiting = new Map<number, (addresses: readonly Address[] | Error) => void>();
  #count = 0;

  constructor(post: (message: FromSessionWorker) => void) {
    this.#post = post;
  }

  /** Throws what the look-up there throws, or the signal's reason. */
  resolve(call: number, host: string, signal: AbortSignal): Promise<readonly Address[]> {
    return new Promise((resolve, reject) => {
      const lookUp = ++this.#count;
      const settle = (answer: readonly Address[] | Error): void => {
        this.#waiting.delete(lookUp);
        signal.removeEventListener("abort", onAbort);
        if (answer instanceof Error) reject(answer);
        else resolve(answer);
      };
      const onAbort = () => settle(signal.reason instanceof Error ? signal.reason : new Error("the look-up was stopped"));
      this.#waiting.set(lookUp, settle);
      if (signal.aborted) onAbort();
      else {
        signal.addEventListener("abort", onAbort, { once: true });
        this.#post({ type: "resolve", lookUp, call, host });
      }
    });
  }

  settle(lookUp: number, answer: readonly Address[] | Error): void {
    this.#waiting.get(lookUp)?.(answer);
  }
}
