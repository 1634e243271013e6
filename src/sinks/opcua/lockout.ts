import net from "node:net";

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
  /** Whether the password may be evaluated. True takes one of the chances; `succeeded` gives it back. */
  tryOne(attempt: Attempt, nowMs: number): boolean;
  /** The password was right: this attempt counts for nothing. */
  succeeded(attempt: Attempt): void;
}

export function createLockout({ perPair, perAddress, windowMs, maxKeys }: LockoutLimits = LIMITS): Lockout {
  /** Times of the chances taken, by key; least recently touched first. */
  const taken = new Map<string, readonly number[]>();

  const recent = (key: string, nowMs: number): readonly number[] => (taken.get(key) ?? []).filter((ms) => nowMs - ms < windowMs);
  const keep = (key: string, times: readonly number[]): void => {
    taken.delete(key);
    if (times.length === 0) return;
    taken.set(key, times);
    const oldest = taken.keys().next().value;
    if (taken.size > maxKeys && oldest !== undefined) taken.delete(oldest);
  };

  return {
    tryOne(attempt, nowMs) {
      const [pair, address] = keysOf(attempt);
      const ofPair = recent(pair, nowMs);
      const ofAddress = recent(address, nowMs);
      const isOpen = ofPair.length < perPair && ofAddress.length < perAddress;
      keep(pair, isOpen ? [...ofPair, nowMs] : ofPair);
      keep(address, isOpen ? [...ofAddress, nowMs] : ofAddress);
      return isOpen;
    },
    succeeded(attempt) {
      for (const key of keysOf(attempt)) keep(key, (taken.get(key) ?? []).slice(0, -1));
    },
  };
}

function keysOf({ user, address }: Attempt): readonly [pair: string, address: string] {
  const network = networkOf(address);
  return [`${network}\n${user}`, network];
}

/** IPv4 addresses as they are, also inside IPv6; the first 64 bits of IPv6. */
export function networkOf(address: string): string {
  const [bare = ""] = address.split("%");
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)?.[1];
  if (mapped !== undefined) return mapped;
  if (!net.isIPv6(bare)) return bare;
  const [head = "", tail] = new URL(`http://[${bare}]/`).hostname.slice(1, -1).split("::");
  const groups = (text: string): string[] => (text === "" ? [] : text.split(":"));
  const front = groups(head);
  const back = groups(tail ?? "");
  const all = tail === undefined ? front : [...front, ...Array.from({ length: 8 - front.length - back.length }, () => "0"), ...back];
  return `${all.slice(0, 4).join(":")}::/64`;
}
