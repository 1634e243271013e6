import { networkOf } from "./client-network.ts";

/** Failures of one address that are answered at once. */
const FREE = 10;
const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 5000;
/** Answers that may wait for one address; beyond them a failure is refused at once. */
const MAX_WAITING = 20;
/** A quiet address is forgotten after this. */
const FORGET_MS = 10 * 60_000;
/** Addresses that are remembered; the one that failed longest ago goes first. */
const MAX_ADDRESSES = 1000;

interface Failures {
  count: number;
  waiting: number;
  last: number;
}

/**
 * Slows those down who present keys that open nothing, by address. A key that opens is never held up by others of its address:
 * it is 256 random bits, and what this bounds is the load and the log of trying.
 */
export interface Throttle {
  /** How long the answer to this failure waits, in milliseconds; undefined: it is not to wait but to be refused with 429. */
  failed(address: string): { readonly delayMs: number; done(): void } | undefined;
}

/** `now` in milliseconds, monotonic. */
export function createThrottle(now: () => number = () => performance.now()): Throttle {
  const addresses = new Map<string, Failures>();
  return {
    failed(address) {
      const key = networkOf(address);
      const at = now();
      const known = addresses.get(key);
      const failures = known && at - known.last < FORGET_MS ? known : { count: 0, waiting: known?.waiting ?? 0, last: at };
      failures.last = at;
      addresses.delete(key);
      addresses.set(key, failures);
      if (addresses.size > MAX_ADDRESSES) for (const oldest of [...addresses.keys()].slice(0, 1)) addresses.delete(oldest);
      if (failures.waiting >= MAX_WAITING) return undefined;
      failures.count++;
      failures.waiting++;
      const delayMs = failures.count <= FREE ? 0 : Math.min(FIRST_DELAY_MS * 2 ** Math.min(failures.count - FREE - 1, 10), MAX_DELAY_MS);
      return { delayMs, done: () => void failures.waiting-- };
    },
  };
}
