import type { DriverContext } from "../driver.ts";

/** A device whose first requests were never answered is tried so often; then it is silent, and not deaf for a moment. */
const MOST_TRIES = 3;
/** It may have become deaf since: one more try this often. */
const TRY_EACH_MS = 600_000;
/** A device that is known to be deaf at first gets the request again after this, and then after twice as long each time. */
const DEAF_MS = 300;
/** A deaf device that answered the first request of so many connections in a row is deaf no more. */
const PROMPT_CONNECTIONS = 10;
const MEMORY = "first_request";

/** Plain data, of one device. */
interface Known {
  /** Tries, and the time of the last one, monotonic ms. */
  readonly tries: number;
  readonly triedMs: number;
  /** Connections in a row whose first request was answered. */
  readonly prompt: number;
}

const NOTHING: Known = { tries: 0, triedMs: 0, prompt: 0 };

/**
 * How a device takes the first request of a connection. Some are deaf for a moment after they took it, and some drop what comes first (data
 * loggers of inverters, serial servers): the request is sent once more over the same connection.
 */
export class FirstRequest {
  readonly #ctx: Pick<DriverContext, "device" | "habit">;
  readonly #isDeaf: boolean;

  /** `isDeaf`: the device is known to drop the first request. */
  constructor(ctx: Pick<DriverContext, "device" | "habit">, isDeaf: boolean) {
    this.#ctx = ctx;
    this.#isDeaf = isDeaf;
  }

  /** Until the request is sent once more, ms; undefined: it is not. `sent`: how often it was. */
  repeatMs(sent: number, answerMs: number): number | undefined {
    if (this.#isDeaf) {
      const afterMs = DEAF_MS * 2 ** (sent - 1);
      return sent === 1 || afterMs < answerMs ? Math.min(afterMs, answerMs) : undefined;
    }
    const { tries, triedMs } = this.#known;
    if (sent > 1 || (tries >= MOST_TRIES && performance.now() - triedMs < TRY_EACH_MS)) return undefined;
    this.#keep({ tries: tries + 1, triedMs: performance.now() });
    return answerMs;
  }

  /** The first answer of a connection came. `isToFirst`: to its first request, as that was sent at first. */
  answered(isToFirst: boolean): void {
    if (!isToFirst) {
      this.#keep(NOTHING);
      if (!this.#isDeaf) this.#ctx.habit?.("deaf_at_first", true);
    } else if (!this.#isDeaf) {
      if (this.#known.tries < MOST_TRIES) this.#keep({ tries: MOST_TRIES, triedMs: performance.now() });
    } else if (this.#known.prompt + 1 < PROMPT_CONNECTIONS) this.#keep({ prompt: this.#known.prompt + 1 });
    else {
      this.#keep(NOTHING);
      this.#ctx.habit?.("deaf_at_first", false);
    }
  }

  get #known(): Known {
    return (this.#ctx.device?.get(MEMORY) as Known | undefined) ?? NOTHING;
  }

  #keep(known: Partial<Known>): void {
    this.#ctx.device?.set(MEMORY, { ...this.#known, ...known } satisfies Known);
  }
}
