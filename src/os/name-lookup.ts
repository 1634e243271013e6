import { lookup, Resolver } from "node:dns/promises";
import { open } from "node:fs/promises";
import net from "node:net";
import { sleep } from "../base/timer.ts";
import { type Address, literalAddress } from "../model/address.ts";
import { errorCode } from "../model/failure.ts";

export interface NameLookupOptions {
  readonly hostsFile?: string;
  readonly resolvConf?: string;
  /** `address:port` of the name servers; default: the system's. */
  readonly servers?: readonly string[];
}

const TRY_MS = 1500;
const TRIES = 3;
/** Once one kind of address is known, the answer about the other is waited for no longer than this (RFC 8305, 3: resolution delay). */
const OTHER_KIND_MS = 50;
const MAX_FILE_BYTES = 1024 * 1024;
const MAX_SEARCH = 6;

/**
 * Looks names up without the thread pool: hosts file, then the name servers with the search list of resolv.conf (resolver(5)).
 * The C library is asked only for what these do not know and it may (`.local`, names without a dot), one name at a time and one more
 * that failed before: it runs two look-ups at once in the whole process, and one for a dead name can take half a minute.
 */
export function createNameLookup(options: NameLookupOptions = {}) {
  const { hostsFile = "/etc/hosts", resolvConf = "/etc/resolv.conf", servers } = options;
  const first = createGate();
  const again = createGate();
  const failedBefore = new Set<string>();

  const askSystem = async (host: string, signal: AbortSignal): Promise<readonly Address[]> => {
    const release = await (failedBefore.has(host) ? again : first)(signal);
    try {
      const found = await lookup(host, { all: true });
      failedBefore.delete(host);
      return found.flatMap(({ address, family }) => (family === 4 || family === 6 ? [{ address, family }] : []));
    } catch (error) {
      if (failedBefore.size > 10_000) failedBefore.clear();
      failedBefore.add(host);
      throw error;
    } finally {
      release();
    }
  };

  return async (host: string, signal: AbortSignal): Promise<readonly Address[]> => {
    const literal = literalAddress(host);
    if (literal) return [literal];
    const name = host.toLowerCase().replace(/\.$/, "");
    const known = fromHosts(await textOf(hostsFile), name);
    if (known.length > 0) return known;
    if (name === "localhost" || name.endsWith(".localhost")) return [{ address: "127.0.0.1", family: 4 }];
    const absolute = host.endsWith(".");
    const resolver = new Resolver({ timeout: TRY_MS, tries: TRIES });
    if (servers) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      return await askServers(resolver, absolute ? [name] : candidates(name, await textOf(resolvConf)));
    } catch (error) {
      if (signal.aborted || absolute || !isUnknown(error) || (name.includes(".") && !name.endsWith(".local"))) throw error;
      return await askSystem(name, signal);
    } finally {
      signal.removeEventListener("abort", cancel);
      // What nobody waits for any more.
      cancel();
    }
  };
}

const isUnknown = (error: unknown): boolean => errorCode(error) === "ENOTFOUND" || errorCode(error) === "ENODATA";

/** The first candidate that has an address; the error of the first one where none has. */
async function askServers(resolver: Resolver, names: readonly string[]): Promise<readonly Address[]> {
  let first: unknown;
  for (const name of names) {
    const { addresses, error } = await askBothKinds(resolver, name);
    if (addresses.length > 0) return addresses;
    first ??= error;
    if (!isUnknown(error)) throw error ?? new Error(`${name} has no address`);
  }
  throw first;
}

interface Found {
  readonly addresses: readonly Address[];
  /** Why there is none. */
  readonly error?: unknown;
}

/**
 * IPv4 first; the error is that of the question for IPv4. A name server that leaves one of the questions without an answer, as some do with
 * that for IPv6, delays the other by no more than OTHER_KIND_MS.
 */
async function askBothKinds(resolver: Resolver, name: string): Promise<Found> {
  const settled = (asked: Promise<string[]>, family: 4 | 6): Promise<Found> =>
    asked.then(
      (found) => ({ addresses: found.map((address) => ({ address, family })) }),
      (error: unknown) => ({ addresses: [], error }),
    );
  const v4 = settled(resolver.resolve4(name), 4);
  const v6 = settled(resolver.resolve6(name), 6);
  const otherwise = async (other: Promise<Found>): Promise<Found> => {
    const stop = new AbortController();
    const found = await Promise.race([other, sleep(OTHER_KIND_MS, stop.signal).then((): Found => ({ addresses: [] }))]);
    stop.abort();
    return found;
  };
  const [isV4, first] = await Promise.race([v4.then((found) => [true, found] as const), v6.then((found) => [false, found] as const)]);
  const isEnough = first.addresses.length > 0 || (isV4 && errorCode(first.error) === "ENOTFOUND");
  const other = isV4 ? v6 : v4;
  const second = isEnough ? await otherwise(other) : await other;
  const [four, six] = isV4 ? [first, second] : [second, first];
  return { addresses: [...four.addresses, ...six.addresses], error: four.error };
}

/** Addresses of a name in a hosts file, IPv4 first. Pure. */
export function fromHosts(text: string, name: string): readonly Address[] {
  const found: Address[] = [];
  for (const line of text.split("\n")) {
    const [address = "", ...names] = (line.split("#")[0] ?? "").trim().split(/\s+/);
    const family = net.isIP(address);
    if ((family === 4 || family === 6) && names.some((known) => known.toLowerCase() === name)) found.push({ address, family });
  }
  return found.sort((a, b) => a.family - b.family);
}

/** The names to ask for, in order, by `search`, `domain` and `ndots` of resolv.conf. Pure. */
export function candidates(name: string, resolvConf: string): readonly string[] {
  let search: readonly string[] = [];
  let ndots = 1;
  for (const line of resolvConf.split("\n")) {
    const [word, ...rest] = line.trim().split(/\s+/);
    if (word === "search" || word === "domain") search = rest.slice(0, MAX_SEARCH);
    if (word === "options")
      ndots = Number(rest.map((option) => /^ndots:(\d{1,2})$/.exec(option)?.[1]).find((n) => n !== undefined) ?? ndots);
  }
  const completed = search.filter((domain) => domain !== ".").map((domain) => `${name}.${domain.replace(/^\.|\.$/g, "")}`);
  return name.split(".").length - 1 >= ndots ? [name, ...completed] : [...completed, name];
}

/** What a file of the system holds, at most its first MAX_FILE_BYTES; empty where it cannot be read. */
async function textOf(file: string): Promise<string> {
  try {
    const handle = await open(file);
    try {
      const { size } = await handle.stat();
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(size, MAX_FILE_BYTES)), { position: 0 });
      return buffer.toString("utf8", 0, bytesRead);
    } finally {
      await handle.close();
    }
  } catch {
    return "";
  }
}

/** Lets one in at a time, in order of asking; rejects those whose signal aborts while they wait. */
function createGate(): (signal: AbortSignal) => Promise<() => void> {
  let last: Promise<void> = Promise.resolve();
  return async (signal) => {
    let release = () => {};
    const before = last;
    last = new Promise((done) => {
      release = done;
    });
    await before;
    if (signal.aborted) {
      release();
      throw signal.reason;
    }
    return release;
  };
}
