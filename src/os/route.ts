import { execFile } from "node:child_process";

/** Which way this machine takes to an address. */
export interface Route {
  /** `eth0`. */
  readonly device: string;
  /** The router that takes the packets first; undefined: the address is on a network of this machine. */
  readonly via: string | undefined;
  /** The address of this machine that the packets come from. */
  readonly from: string | undefined;
  /** The address is this machine's own. */
  readonly isLocal: boolean;
}

const TIMEOUT_MS = 2000;
const MAX_OUTPUT_BYTES = 64 * 1024;
/** What `ip` takes as an address, and nothing that it could take for a word of its own. */
const ADDRESS = /^[0-9a-f:.]+(?:%[\w.-]+)?$/i;

/**
 * What the kernel says of the way to an IP address; "none": it has no way there. Undefined: it cannot be asked (no `ip` command, no Linux).
 * Sends no packet. Never throws.
 */
export async function routeTo(address: string, signal: AbortSignal): Promise<Route | "none" | undefined> {
  const answer = await ip(["route", "get", address], address, signal);
  if (answer === undefined) return undefined;
  return "error" in answer ? (/unreachable|No route/i.test(answer.error) ? "none" : undefined) : parseRoute(answer.text);
}

/** What `ip route get` prints. Pure. */
export function parseRoute(text: string): Route | "none" | undefined {
  const [line = ""] = text.split("\n");
  if (/^(?:unreachable|prohibit|blackhole)\b/.test(line)) return "none";
  const words = line.trim().split(/\s+/);
  const after = (word: string): string | undefined => {
    const at = words.indexOf(word);
    return at === -1 ? undefined : words[at + 1];
  };
  const device = after("dev");
  if (device === undefined) return undefined;
  return { device, via: after("via"), from: after("src"), isLocal: words[0] === "local" || device === "lo" };
}

/** A device of the own network as the kernel knows it. */
export interface Neighbour {
  /** MAC address; undefined: nobody has answered for the address. */
  readonly mac: string | undefined;
  /** REACHABLE, STALE, DELAY, PROBE: it has answered. FAILED, INCOMPLETE: it has not. */
  readonly state: string;
}

/** What the kernel has found at an address of its own networks; undefined: it has not looked, or cannot be asked. Never throws. */
export async function neighbourAt(address: string, signal: AbortSignal): Promise<Neighbour | undefined> {
  const answer = await ip(["neigh", "show", address], address, signal);
  return answer === undefined || "error" in answer ? undefined : parseNeighbour(answer.text);
}

/** What `ip neigh show` prints. Pure. */
export function parseNeighbour(text: string): Neighbour | undefined {
  const [line = ""] = text.split("\n");
  const words = line.trim().split(/\s+/);
  const state = words.at(-1) ?? "";
  if (!/^[A-Z]+$/.test(state)) return undefined;
  const at = words.indexOf("lladdr");
  return { mac: at === -1 ? undefined : words[at + 1], state };
}

function ip(
  args: readonly string[],
  address: string,
  signal: AbortSignal,
): Promise<{ readonly text: string } | { readonly error: string } | undefined> {
  if (!ADDRESS.test(address)) return Promise.resolve(undefined);
  return new Promise((done) => {
    execFile("ip", args, { timeout: TIMEOUT_MS, maxBuffer: MAX_OUTPUT_BYTES, signal }, (error, stdout, stderr) => {
      if (!error) done({ text: stdout });
      else done(stderr === "" ? undefined : { error: stderr });
    });
  });
}
