import { networkOf } from "../../lib/client-network.ts";

/** Who tries to log in, and from where. */
export interface Attempt {
  /** Bounded by the caller. */
  readonly user: string;
  /** IP address of the client; of IPv6 the network of 64 bits counts, as one machine has all of it. */
  readonly address: string;
}

export interface LockoutLimits {
  /** Failed evaluations within the window, by user and address. */
  readonly perPair: number;
  /** By address, over all users: guessing names costs as much as guessing passwords. */
  readonly perAddress: number;
  readonly windowMs: number;
  /** Pairs and addresses that are remembered; the longest untouched is forgotten first. */
  readonly maxKeys: number;
}

const LIMITS: LockoutLimits = { perPair: 10, perAddress: 100, windowMs: 60_000, maxKeys: 10_000 };

/** Counts what failed. No timer: what is older than the window is dropped when it is looked at. */
export interface Lockout {
  /** True: a password may be evaluated. */
  isOpen(attempt: Attempt, nowMs: number): boolean;
  /** When one may be again; not later than now: it may. */
  closedUntilMs(attempt: Attempt, nowMs: number): number;
  failed(attempt: Attempt, nowMs: number): void;
}

export function createLockout({ perPair, perAddress, windowMs, maxKeys }: LockoutLimits = LIMITS): Lockout {
  /** Times of failures by key; least recently touched first. */
  const failures = new Map<string, readonly number[]>();

  const recent = (key: string, nowMs: number): readonly number[] => (failures.get(key) ?? []).filter((ms) => nowMs - ms < windowMs);

  /** When the oldest failure that is one too many is older than the window. */
  const closedUntilMs = (attempt: Attempt, nowMs: number): number => {
    const [pair, address] = keysOf(attempt);
    const until = (key: string, limit: number): number => (recent(key, nowMs).at(-limit) ?? Number.NEGATIVE_INFINITY) + windowMs;
    return Math.max(until(pair, perPair), until(address, perAddress));
  };

  return {
    closedUntilMs,
    isOpen: (attempt, nowMs) => closedUntilMs(attempt, nowMs) <= nowMs,
    failed(attempt, nowMs) {
      for (const key of keysOf(attempt)) {
        const times = [...recent(key, nowMs), nowMs];
        failures.delete(key);
        failures.set(key, times);
        const oldest = failures.keys().next().value;
        if (failures.size > maxKeys && oldest !== undefined) failures.delete(oldest);
      }
    },
  };
}

function keysOf({ user, address }: Attempt): readonly [pair: string, address: string] {
  const network = networkOf(address);
  return [`${network}\n${user}`, network];
}
