import { Deadline } from "../base/deadline.ts";
import { formatDuration } from "../base/duration.ts";
import { type Address, deviceKey, literalAddress } from "../model/address.ts";
import { errorCode, toReasonError } from "../model/failure.ts";
import type { Permit } from "../model/policy.ts";
import { ReasonError } from "../model/reason.ts";
import { systemAddresses } from "./system-lookup.ts";

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

/** A host's port: where one of several addresses answers, another may be the one for another port. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Names to addresses, with a memory: a name server that is away stops nobody who has been connected before. */
export interface Resolver {
  /**
   * At least one address, in the order in which they are to be tried. Rejects with the system's error. A look-up that nobody waits for any
   * more ends by itself; how long a caller waits is its own affair, and bounded by its signal.
   */
  resolve(at: HostPort, signal: AbortSignal): Promise<readonly Address[]>;
  /** This address of the host took a connection: it comes first the next time. */
  connected(at: HostPort, address: string): void;
  /**
   * Opening a session at the host failed: the next call looks the name up again, and `address`, or else the one that comes first, is tried
   * after all that did not fail, or failed longer ago.
   */
  suspect(at: HostPort, address?: string): void;
  /** Works as `suspect` does, where a connection was open and brought no answer. Where the host has one address, nothing changes. */
  unanswered(at: HostPort, address?: string): void;
  /** The address that the host was last connected at, or else all that it is known to have, without asking: empty where it has none. */
  addressesInUse(at: HostPort): readonly Address[];
  /** The device answered at this address: `deviceKey` goes by it until it answers at another. */
  answered(at: HostPort, address: string): void;
  /**
   * One text for one device, as far as is known without asking: the address where it answered last, or else the least that its name has, so
   * that two names of one address share it whatever the order of a look-up; where the name has not been looked up, `deviceKey` of the model.
   */
  deviceKey(at: HostPort): string;
}

interface Entry {
  /** As the look-up gave them. */
  addresses: readonly Address[];
  /** See Resolver.deviceKey; undefined: it was never looked up. */
  deviceKey: string | undefined;
  /** Time of the last good look-up. */
  atMs: number;
  fresh: boolean;
  /** By port. */
  readonly marks: Map<number, Marks>;
  underWay: Promise<void> | undefined;
  stale: boolean;
}

/** What is known of a host's addresses at one port. */
interface Marks {
  connected: string | undefined;
  /** The place where no session could be opened or nothing was answered since, the latest last. */
  failed: readonly string[];
  answered: { readonly address: string; readonly deviceKey: string } | undefined;
}

/** A new address is seen within this. */
const FRESH_MS = 10_000;
/** With a good address at hand, an answer is waited for no longer than this. */
const GRACE_MS = 500;
const LOOK_UP_MS = 10_000;
const MAX_NAMES = 2000;
/** Addresses of one name; a name server may say anything. */
const MAX_ADDRESSES = 16;
/** Ports of one name that something is remembered of. */
const MAX_PORTS = 64;

/** The name does not exist, and a name server says so; all other errors say that none could be asked. */
const DEFINITE = new Set(["ENOTFOUND", "ENODATA"]);

/** Words of a warning that the addresses of a name are old; `ageMs`: since the last good look-up. */
export const staleWords = (host: string, ageMs: number): string =>
  `no name server answers for ${host}: its last address is used, ${formatDuration(ageMs)} old`;

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
      deviceKey: undefined,
      atMs: 0,
      fresh: false,
      marks: new Map(),
      underWay: undefined,
      stale: false,
    };
    entries.set(key, entry);
    return entry;
  };

  const look = async (host: string, entry: Entry): Promise<void> => {
    try {
      const addresses = await within(LOOK_UP_MS, host, (signal) => lookUp(host, signal));
      if (addresses.length === 0) throw systemError("ENODATA", `${host} has no address`);
      entry.addresses = addresses.slice(0, MAX_ADDRESSES);
      entry.deviceKey = leastOf(entry.addresses);
      entry.atMs = now();
      entry.fresh = true;
      entry.stale = false;
    } finally {
      entry.underWay = undefined;
    }
  };

  return {
    async resolve({ host, port }, signal) {
      signal.throwIfAborted();
      const entry = entryOf(host);
      const known = entry.addresses.length > 0;
      if (known && entry.fresh && now() - entry.atMs < FRESH_MS) return inOrder(entry, port);
      entry.underWay ??= look(host, entry);
      const { underWay } = entry;
      // Nobody may be waiting any more when it fails.
      underWay.catch(() => {});
      if (!known) {
        await underWay;
        return inOrder(entry, port);
      }
      const last = (): readonly Address[] => {
        const addresses = inOrder(entry, port);
        if (!entry.stale) onStale?.(host, addresses[0]?.address ?? "", now() - entry.atMs);
        entry.stale = true;
        return addresses;
      };
      try {
        const isAnswered = await Promise.race([underWay.then(() => true), delayed(GRACE_MS)]);
        return isAnswered ? inOrder(entry, port) : last();
      } catch (error) {
        if (DEFINITE.has(errorCode(error))) throw error;
        return last();
      }
    },
    connected({ host, port }, address) {
      const entry = entries.get(keyOf(host));
      if (!entry?.addresses.some((known) => known.address === address)) return;
      const marks = marksOf(entry, port);
      marks.connected = address;
      marks.failed = marks.failed.filter((failed) => failed !== address);
    },
    suspect({ host, port }, address) {
      const entry = entries.get(keyOf(host));
      if (!entry) return;
      entry.fresh = false;
      putLast(entry, port, address);
    },
    unanswered({ host, port }, address) {
      const entry = entries.get(keyOf(host));
      if (entry && entry.addresses.length > 1) putLast(entry, port, address);
    },
    addressesInUse({ host, port }) {
      const entry = entries.get(keyOf(host));
      const connected = entry?.addresses.find(({ address }) => address === entry.marks.get(port)?.connected);
      return connected ? [connected] : (entry?.addresses ?? []);
    },
    answered({ host, port }, address) {
      const entry = entries.get(keyOf(host));
      if (!entry) return;
      const marks = marksOf(entry, port);
      if (marks.answered?.address !== address) marks.answered = { address, deviceKey: deviceKey(address) };
    },
    deviceKey({ host, port }) {
      const entry = entries.get(keyOf(host));
      return entry?.marks.get(port)?.answered?.deviceKey ?? entry?.deviceKey ?? deviceKey(host);
    },
  };
}

/** Not the dot at the end: with it a name is not completed by the search list. */
const keyOf = (host: string): string => host.toLowerCase();

function marksOf({ marks }: Entry, port: number): Marks {
  const known = marks.get(port);
  if (known) return known;
  const [oldest] = marks.keys();
  if (marks.size >= MAX_PORTS && oldest !== undefined) marks.delete(oldest);
  const made: Marks = { connected: undefined, failed: [], answered: undefined };
  marks.set(port, made);
  return made;
}

/** What took the last connection first, then the others as the look-up gave them, last where it failed, the longest ago before the others. */
function inOrder({ addresses, marks }: Entry, port: number): readonly Address[] {
  const { connected, failed = [] } = marks.get(port) ?? {};
  const rank = ({ address }: Address): number => (address === connected ? -1 : failed.indexOf(address) + 1);
  return [...addresses].sort((a, b) => rank(a) - rank(b));
}

/** One of IPv4 where there is one: a device is rather configured by that. */
function leastOf(addresses: readonly Address[]): string | undefined {
  const [least] = [...addresses].sort((a, b) => a.family - b.family || (a.address < b.address ? -1 : 1));
  return least && deviceKey(least.address);
}

function putLast(entry: Entry, port: number, address = inOrder(entry, port)[0]?.address): void {
  if (address === undefined) return;
  const marks = marksOf(entry, port);
  marks.failed = [...marks.failed.filter((failed) => failed !== address), address].slice(-MAX_ADDRESSES);
  if (marks.connected === address) marks.connected = undefined;
}

/**
 * Waits until an address of the host is known, for so long at most. Undefined: it is, or the signal has aborted; else why it cannot be
 * looked up. Never rejects.
 */
export function lookedUp(
  resolver: Pick<Resolver, "resolve">,
  at: HostPort,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<ReasonError | undefined> {
  return new Promise((done) => {
    const end = (failure?: ReasonError) => {
      deadline.cancel();
      signal.removeEventListener("abort", onAbort);
      done(failure);
    };
    const onAbort = () => end();
    const late = () => end(new ReasonError("LOOKUP_ERROR", `no answer for the name ${at.host} within ${timeoutMs} ms`));
    const deadline = new Deadline(timeoutMs, late);
    signal.addEventListener("abort", onAbort, { once: true });
    resolver.resolve(at, signal).then(
      () => end(),
      (error: unknown) => end(signal.aborted ? undefined : toReasonError(error)),
    );
  });
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
    const addresses = literal ? [literal] : await (resolver?.resolve({ host, port }, signal) ?? systemAddresses(host));
    if (!permit) return addresses;
    const refusals = addresses.map(({ address }) => permit(address, port));
    const [refusal] = refusals;
    const open = addresses.filter((_, i) => refusals[i] === undefined);
    if (open.length > 0 || refusal === undefined) return open;
    throw new ReasonError("UNKNOWN", literal ? refusal : `${host}: ${refusal}`, { condition: "forbidden_by_policy" });
  };

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
