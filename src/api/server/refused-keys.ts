import { networkOf } from "../../lib/client-network.ts";

/** Addresses that are counted apart; all others of a minute are counted together. */
const MAX_ADDRESSES = 1000;
const OTHERS = "other addresses";
const EVERY_MS = 60_000;

/** What is told: where from, an IPv6 address by its network, and how many requests since it was told last. */
export type TellRefused = (address: string, count: number) => void;

/**
 * Counts requests without a valid key by address. The first of an address is told at once, and what else comes from there in the same minute
 * at its end: a flood leaves two lines a minute.
 */
export class RefusedKeys {
  readonly #tell: TellRefused;
  /** Requests since what was told, by address. */
  readonly #counts = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;

  constructor(tell: TellRefused) {
    this.#tell = tell;
    this.#timer = setInterval(() => this.flush(), EVERY_MS);
    this.#timer.unref();
  }

  add(address: string): void {
    const network = networkOf(address);
    const key = this.#counts.has(network) || this.#counts.size < MAX_ADDRESSES ? network : OTHERS;
    const known = this.#counts.get(key);
    this.#counts.set(key, known === undefined ? 0 : known + 1);
    if (known === undefined) this.#tell(key, 1);
  }

  /** Ends the minute. */
  flush(): void {
    const counts = [...this.#counts];
    this.#counts.clear();
    for (const [address, count] of counts) if (count > 0) this.#tell(address, count);
  }

  close(): void {
    clearInterval(this.#timer);
    this.flush();
  }
}
