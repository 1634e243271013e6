import { lookup } from "node:dns/promises";
import { type Address, deviceKey, literalAddress } from "../model/address.ts";
import { Deadline } from "../model/deadline.ts";
import { errorCode } from "../model/failure.ts";
import type { Permit } from "../model/policy.ts";
import { ReasonError } from "../model/reason.ts";

export type { Address } from "../model/address.ts";

/** Asks the system for a name's addresses, the preferred first. Throws a system error with its `code` and `syscall`. */
export type LookUp = (host: string, signal: AbortSignal) => Promise<readonly Address[]>;

export interface ResolverOptions {
  readonly lookUp: LookUp;
  /** Monotonic ms. */
  readonly now: () => number;
  /** No answer came and the last good addresses are used instead; once per outage of a name. */
  readonly onStale?: (host: string, address: string, ageMs: number) => void;
}

/** Names to addresses, with a memory: a name server that is away stops nobody who has been connected before. */
export interface Resolver {
  /**
   * At least one address, in the order in which they are to be tried. Rejects with the system's error. A look-up that nobody waits for any
   * more ends by itself; how long a caller waits is its own affair, and bounded by its signal.
   */
  resolve(host: string, signal: AbortSignal): Promise<readonly Address[]>;
  /** This address of the host took a connection: it comes first the next time. */
  connected(host: string, address: string): void;
  /**
   * Opening a session at the host failed: the next call looks the name up again, and what was connected last, or else the first of the
   * addresses, is tried last.
   */
  suspect(host: string): void;
  /** The address that the host was last connected at, or else all that it is known to have, without asking: empty where it has none. */
  addressesInUse(host: string): readonly Address[];
  /**
   * One text for one device, as far as is known without asking: the address that the host was last connected at, or else the first it is
   * known to have, so that two names of one address share it; where the name has not been looked up, `deviceKey` of the model. What a name
   * gives may change with each look-up and connect.
   */
  deviceKey(host: string): string;
}

interface Entry {
  /** As the look-up gave them. */
  addresses: readonly Address[];
  /** Of the last good look-up. */
  atMs: number;
  fresh: boolean;
  connected: string | undefined;
  failed: string | undefined;
  underWay: Promise<readonly Address[]> | undefined;
  stale: boolean;
}

/** A new address is seen within this. */
const FRESH_MS = 10_000;
/** With a good address at hand, an answer is waited for no longer than this. */
const GRACE_MS = 500;
const LOOK_UP_MS = 10_000;
const MAX_NAMES = 2000;
/** Of one name; a name server may say anything. */
const MAX_ADDRESSES = 16;

/** The name does not exist, and a name server says so; all other errors say that none could be asked. */
const DEFINITE = new Set(["ENOTFOUND", "ENODATA"]);

export function createResolver({ lookUp, now, onStale }: ResolverOptions): Resolver {
  const entries = new Map<string, Entry>();

  const entryOf = (host: string): Entry => {
    const key = keyOf(host);
    const known = entries.get(key);
    if (known) return known;
    const [oldest] = entries.keys();
    if (entries.size >= MAX_NAMES && oldest !== undefined) entries.delete(oldest);
    const entry: Entry = {
      addresses: [],
      atMs: 0,
      fresh: false,
      connected: undefined,
      failed: undefined,
      underWay: undefined,
      stale: false,
    };
    entries.set(key, entry);
    return entry;
  };

  const look = async (host: string, entry: Entry): Promise<readonly Address[]> => {
    try {
      const addresses = await within(LOOK_UP_MS, host, (signal) => lookUp(host, signal));
      if (addresses.length === 0) throw systemError("ENODATA", `${host} has no address`);
      entry.addresses = addresses.slice(0, MAX_ADDRESSES);
      entry.atMs = now();
      entry.fresh = true;
      entry.stale = false;
      return inOrder(entry);
    } finally {
      entry.underWay = undefined;
    }
  };

  return {
    async resolve(host, signal) {
      signal.throwIfAborted();
      const entry = entryOf(host);
      const known = entry.addresses.length > 0;
      if (known && entry.fresh && now() - entry.atMs < FRESH_MS) return inOrder(entry);
      entry.underWay ??= look(host, entry);
      // Nobody may be waiting any more when it fails.
      entry.underWay.catch(() => {});
      if (!known) return await entry.underWay;
      const last = (): readonly Address[] => {
        const addresses = inOrder(entry);
        if (!entry.stale) onStale?.(host, addresses[0]?.address ?? "", now() - entry.atMs);
        entry.stale = true;
        return addresses;
      };
      try {
        return (await Promise.race([entry.underWay, delayed(GRACE_MS)])) ?? last();
      } catch (error) {
        if (DEFINITE.has(errorCode(error))) throw error;
        return last();
      }
    },
    connected(host, address) {
      const entry = entries.get(keyOf(host));
      if (!entry?.addresses.some((known) => known.address === address)) return;
      entry.connected = address;
      if (entry.failed === address) entry.failed = undefined;
    },
    suspect(host) {
      const entry = entries.get(keyOf(host));
      if (!entry) return;
      entry.fresh = false;
      entry.failed = entry.connected ?? inOrder(entry)[0]?.address;
      entry.connected = undefined;
    },
    addressesInUse(host) {
      const entry = entries.get(keyOf(host));
      const connected = entry?.addresses.find(({ address }) => address === entry.connected);
      return connected ? [connected] : (entry?.addresses ?? []);
    },
    deviceKey(host) {
      const entry = entries.get(keyOf(host));
      const [first] = entry ? inOrder(entry) : [];
      return first ? deviceKey(first.address) : deviceKey(host);
    },
  };
}

/** Not the dot at the end: with it a name is not completed by the search list. */
const keyOf = (host: string): string => host.toLowerCase();

/** What took the last connection first, where the last one failed last, the others as the look-up gave them. */
function inOrder({ addresses, connected, failed }: Entry): readonly Address[] {
  const rank = ({ address }: Address): number => (address === connected ? 0 : address === failed ? 2 : 1);
  return [...addresses].sort((a, b) => rank(a) - rank(b));
}

/**
 * What a driver's context resolves with: the addresses that are connected to are those that were judged; those that the policy closes are
 * left out. `resolver` absent: the system's look-up; `permit` absent: every address is allowed. Rejects with ReasonError (condition
 * forbidden_by_policy) where no address is left, or as the look-up does.
 */
export const permittedResolve =
  (resolver: Pick<Resolver, "resolve"> | undefined, permit: Permit | undefined, port: number) =>
  async (host: string, signal: AbortSignal): Promise<readonly Address[]> => {
    const literal = literalAddress(host);
    const addresses = literal ? [literal] : await (resolver?.resolve(host, signal) ?? systemAddresses(host));
    if (!permit) return addresses;
    const refusals = addresses.map(({ address }) => permit(address, port));
    const [refusal] = refusals;
    const open = addresses.filter((_, i) => refusals[i] === undefined);
    if (open.length > 0 || refusal === undefined) return open;
    throw new ReasonError("UNKNOWN", literal ? refusal : `${host}: ${refusal}`, { condition: "forbidden_by_policy" });
  };

async function systemAddresses(host: string): Promise<readonly Address[]> {
  const found = await lookup(host, { all: true });
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
}

const delayed = (ms: number): Promise<undefined> => new Promise((done) => setTimeout(done, ms, undefined).unref());

async function within<T>(ms: number, host: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const end = new AbortController();
  const late = systemError("ETIMEOUT", `no answer for the name ${host} within ${ms} ms`);
  const deadline = new Deadline(ms, () => end.abort(late));
  try {
    return await Promise.race([
      work(end.signal),
      new Promise<never>((_, fail) => end.signal.addEventListener("abort", () => fail(late), { once: true })),
    ]);
  } finally {
    deadline.cancel();
  }
}

const systemError = (code: string, message: string): Error => Object.assign(new Error(message), { code, syscall: "queryA" });
