import type { ReasonError, ReasonType } from "../../model/reason.ts";

/**
 * Bounds the writes under way of one opening of a sink: further ones wait in line. Once the opening has failed, all that wait and all that
 * come later get its reason.
 */
export class InFlightWindow {
  /** Settles once, with the reason of the failure. */
  readonly lost: Promise<ReasonError>;
  readonly #size: number;
  readonly #waiting: (() => void)[] = [];
  #underWay = 0;
  #failure: ReasonError | undefined;
  #settle: (reason: ReasonError) => void = () => {};

  /** `size`: writes under way at once, from 1. */
  constructor(size: number) {
    this.#size = size;
    this.lost = new Promise((done) => {
      this.#settle = done;
    });
  }

  failure(): ReasonError | undefined {
    return this.#failure;
  }

  /** True: this is the first failure, so its reason is the one that holds. */
  fail(reason: ReasonError): boolean {
    if (this.#failure) return false;
    this.#failure = reason;
    this.#settle(reason);
    // Each gets a place, finds the failure and leaves it.
    this.#underWay += this.#waiting.length;
    for (const go of this.#waiting.splice(0)) go();
    return true;
  }

  /** Does `work` when a place is free. Throws the failure instead if there is one by then, and what `work` throws. */
  async inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#failure) throw this.#failure;
    if (this.#underWay < this.#size) this.#underWay++;
    else await new Promise<void>((go) => this.#waiting.push(go));
    try {
      if (this.#failure) throw this.#failure;
      return await work();
    } finally {
      // The place goes to the next in line, or is free.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#underWay--;
    }
  }

  /** Nothing is under way. */
  isIdle(): boolean {
    return this.#underWay === 0;
  }
}

/** The server, or something between it and the collector, has ended the connection. */
export const isClose = (type: ReasonType): boolean => type === "CONNECTION_CLOSED" || type === "CONNECTION_RESET";
