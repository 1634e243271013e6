import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Permit } from "../model/policy.ts";
import { ReasonError } from "../model/reason.ts";

/** An address that a socket can connect to. */
export interface Address {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Asks the system for a name's addresses, the preferred first. Throws a system error with its `code` and `syscall`. */
export type LookUp = (host: string, signal: AbortSignal) => Promise<readonly Address[]>;

export interface ResolverOptions {
  readonly lookUp: LookUp;
  /** Monotonic ms. */
  readonly now: () => number;
  /** No answer came and the last good address is used instead; once per outage of a name. */
  readonly onStale?: (host: string, address: string, ageMs: number) => void;
}

/** Names to addresses, with a memory: a name server that is away stops nobody who has been connected before. */
export interface Resolver {
  /**
   * Rejects with the system's error. A look-up that nobody waits for any more ends by itself; how long a caller waits is its own
   * affair, and bounded by its signal.
   */
  resolve(host: string, signal: AbortSignal): Promise<Address>;
  /** Connecting to the address that was given failed: the next call looks the name up anew, and prefers another of its addresses. */
  suspect(host: string): void;
}

interface Entry {
  good: (Address & { readonly atMs: number }) | undefined;
  fresh: boolean;
  failed: string | undefined;
  underWay: Promise<Address> | undefined;
  stale: boolean;
}

/** A new address is seen within this. */
const FRESH_MS = 10_000;
/** With a good address at hand, an answer is waited for no longer than this. */
const GRACE_MS = 500;
const LOOK_UP_MS = 10_000;
const MAX_NAMES = 2000;

/** The name does not exist, and a name server says so; all other errors say that none could be asked. */
const DEFINITE = new Set(["ENOTFOUND", "ENODATA"]);

export function createResolver({ lookUp, now, onStale }: ResolverOptions): Resolver {
  const entries = new Map<string, Entry>();

  const entryOf = (host: string): Entry => {
    const known = entries.get(host);
    if (known) return known;
    const [oldest] = entries.keys();
    if (entries.size >= MAX_NAMES && oldest !== undefined) entries.delete(oldest);
    const entry: Entry = { good: undefined, fresh: false, failed: undefined, underWay: undefined, stale: false };
    entries.set(host, entry);
    return entry;
  };

  const look = async (host: string, entry: Entry): Promise<Address> => {
    try {
      const addresses = await within(LOOK_UP_MS, host, (signal) => lookUp(host, signal));
      const chosen = addresses.find(({ address }) => address !== entry.failed) ?? addresses[0];
      if (!chosen) throw systemError("ENODATA", `${host} has no address`);
      entry.good = { ...chosen, atMs: now() };
      entry.fresh = true;
      entry.failed = undefined;
      entry.stale = false;
      return chosen;
    } finally {
      entry.underWay = undefined;
    }
  };

  return {
    async resolve(host, signal) {
      signal.throwIfAborted();
      const entry = entryOf(host);
      const { good } = entry;
      if (good && entry.fresh && now() - good.atMs < FRESH_MS) return good;
      entry.underWay ??= look(host, entry);
      // Nobody may be waiting any more when it fails.
      entry.underWay.catch(() => {});
      if (!good) return await entry.underWay;
      const last = (): Address => {
        if (!entry.stale) onStale?.(host, good.address, now() - good.atMs);
        entry.stale = true;
        return good;
      };
      try {
        return (await Promise.race([entry.underWay, delayed(GRACE_MS)])) ?? last();
      } catch (error) {
        if (error instanceof Error && "code" in error && DEFINITE.has(String(error.code))) throw error;
        return last();
      }
    },
    suspect(host) {
      const entry = entries.get(host);
      if (!entry?.good) return;
      entry.fresh = false;
      entry.failed = entry.good.address;
    },
  };
}

/**
 * What a driver's context resolves with: the address that is connected to is the one that was judged. `resolver` absent: the system's
 * look-up; `permit` absent: every address is allowed. Rejects with ReasonError (condition forbidden_by_policy), or as the look-up does.
 */
export const permittedResolve =
  (resolver: Pick<Resolver, "resolve"> | undefined, permit: Permit | undefined, port: number) =>
  async (host: string, signal: AbortSignal): Promise<Address> => {
    const family = isIP(host);
    const address = family === 0 ? await (resolver?.resolve(host, signal) ?? systemAddress(host)) : literal(host, family);
    const refusal = permit?.(address.address, port);
    if (refusal === undefined) return address;
    throw new ReasonError("UNKNOWN", family === 0 ? `${host}: ${refusal}` : refusal, { condition: "forbidden_by_policy" });
  };

const literal = (address: string, family: number): Address => ({ address, family: family === 6 ? 6 : 4 });

async function systemAddress(host: string): Promise<Address> {
  const { address, family } = await lookup(host);
  return literal(address, family);
}

const delayed = (ms: number): Promise<undefined> => new Promise((done) => setTimeout(done, ms, undefined).unref());

async function within<T>(ms: number, host: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const end = new AbortController();
  const late = systemError("ETIMEOUT", `no answer for the name ${host} within ${ms} ms`);
  const timer = setTimeout(() => end.abort(late), ms);
  timer.unref();
  try {
    return await Promise.race([
      work(end.signal),
      new Promise<never>((_, fail) => end.signal.addEventListener("abort", () => fail(late), { once: true })),
    ]);
  } finally {
    clearTimeout(timer);
  }
}

const systemError = (code: string, message: string): Error => Object.assign(new Error(message), { code, syscall: "queryA" });
