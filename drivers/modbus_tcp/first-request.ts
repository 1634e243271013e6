import type { DriverContext } from "../driver.ts";

/** A device that was never answered at once is tried so often; then it is silent, and not deaf for a moment. */
const MOST_TRIES = 3;
/** A device that is known to be deaf at first is asked again after this, and then after twice as long each time. */
const DEAF_MS = 300;
const MEMORY = "first_request";

/** `prompt`: the first request of a connection is answered. `deaf`: the one after it is. A number: so many tries were in vain. */
type Known = "prompt" | "deaf" | number;

/**
 * How a device takes the first request of a connection. Some are deaf for a moment after they took it, and some drop what comes first (data
 * loggers of inverters, serial servers): the request is sent once more over the same connection. Kept with the device, and with the source
 * over restarts.
 */
export class FirstRequest {
  readonly #ctx: Pick<DriverContext, "device" | "kept" | "log">;

  constructor(ctx: Pick<DriverContext, "device" | "kept" | "log">) {
    this.#ctx = ctx;
  }

  /** Until the request is sent once more, ms; undefined: it is not. `sent`: how often it was. */
  repeatMs(sent: number, answerMs: number): number | undefined {
    const known = this.#known;
    if (known === "prompt") return undefined;
    if (known === "deaf") {
      const afterMs = DEAF_MS * 2 ** (sent - 1);
      return sent === 1 || afterMs < answerMs ? Math.min(afterMs, answerMs) : undefined;
    }
    if (sent > 1 || known >= MOST_TRIES) return undefined;
    this.#keep(known + 1);
    return answerMs;
  }

  /** The first answer of a connection came, after so many requests. */
  answered(requests: number): void {
    const before = this.#known;
    const known = requests === 1 ? "prompt" : "deaf";
    if (known === before) return;
    this.#keep(known);
    if (known === "deaf" || before === "deaf") this.#ctx.kept?.set(MEMORY, known);
    if (known === "prompt") return;
    this.#ctx.log.info({}, "the device leaves the first request of a connection without an answer: it is sent once more from now on");
  }

  get #known(): Known {
    const known = this.#ctx.device?.get(MEMORY) ?? this.#ctx.kept?.values[MEMORY];
    return known === "prompt" || known === "deaf" || typeof known === "number" ? known : 0;
  }

  #keep(known: Known): void {
    this.#ctx.device?.set(MEMORY, known);
  }
}
