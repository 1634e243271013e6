import net from "node:net";
import { networkInterfaces } from "node:os";
import type { Permit, Policy } from "../model/policy.ts";
import { Networks } from "./networks.ts";

/** IANA special-purpose registries, and where clouds keep their metadata: closed unless the policy names them. */
const LOOPBACK = "a loopback address";
const SPECIAL: readonly (readonly [words: string, networks: readonly string[]])[] = [
  [LOOPBACK, ["127.0.0.0/8", "::1/128"]],
  ["an unspecified address", ["0.0.0.0/8", "::/128"]],
  ["a metadata address", ["169.254.169.254/32", "100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::254/128"]],
  ["a link-local address", ["169.254.0.0/16", "fe80::/10"]],
  ["a multicast or broadcast address", ["224.0.0.0/4", "255.255.255.255/32", "ff00::/8"]],
];

const SIX_TO_FOUR = new Networks(["2002::/16"]);
const TRANSLATED = new Networks(["64:ff9b:1::/48"]);

const special = SPECIAL.map(([words, networks]) => ({ words, list: new Networks(networks) }));

/**
 * Judges addresses for data sources or data sinks; its words name the file and the line that would open one. Refuses a text that is not an IP
 * address, but for a sink's server that a proxy looks up: its name is judged by its port, and refused where networks are named, which it may be
 * outside of.
 */
export function permitOf(policy: Policy, what: "sources" | "sinks"): Permit {
  const { networks, ports, loopback } = policy[what];
  const { file = "policy.yaml" } = policy;
  const open = networks && new Networks(networks);
  const ranges = ports?.map((port) => String(port).split("-").map(Number));
  return (host, port) => {
    const address = (what === "sinks" ? addressOfName(host) : undefined) ?? host;
    const plain = unmapped(address);
    const isName = what === "sinks" && plain === undefined && isHostName(host);
    if (plain === undefined && !isName) return `${JSON.stringify(address)} is not an IP address`;
    if (ranges && !ranges.some(([from = 0, to = from]) => port >= from && port <= to))
      return `port ${port} of ${address} is not among the ports that policy.yaml opens; to open it, add ${port} to ports of ${what} in ${file}`;
    if (plain === undefined)
      return open
        ? `${address} is a name that a proxy looks up, which the networks that policy.yaml opens cannot judge; write its address as host of the sink, and its name as tls.server_name`
        : undefined;
    const meant = [plain, ...translated(plain)];
    const closed = special.find(({ list }) => meant.some((one) => list.contains(one)));
    if (loopback && closed?.words === LOOPBACK && closed.list.contains(plain)) return undefined;
    if (open?.contains(plain)) return undefined;
    const isLoopback = closed?.words === LOOPBACK;
    // A section that is there already is not begun a second time.
    const switchOn = open || ranges ? `add \`loopback: true\` to ${what} in ${file}` : `put \`${what}: {loopback: true}\` into ${file}`;
    const remedy = isLoopback ? switchOn : `add ${address} to networks of ${what} in ${file}`;
    if (open) return `${address} is not within the networks that policy.yaml opens; to open it, ${remedy}`;
    const why = closed ?? (meant.some(isOwn) ? OWN : undefined);
    if (!why) return undefined;
    const rest = isLoopback ? "" : " (networks then says all that is open)";
    return `${address} is ${why.words}; it stays closed until policy.yaml opens it; to do so, ${remedy}${rest}`;
  };
}

const isHostName = (text: string): boolean => {
  const url = `http://${text}/`;
  return URL.canParse(url) && new URL(url).hostname === text.toLowerCase();
};

/** The address that a name means wherever it is looked up: one in other digits (inet_aton(3): 127.1, 0x7f000001), and localhost (RFC 6761, 6.3). */
function addressOfName(host: string): string | undefined {
  const bare = host.toLowerCase().replace(/\.$/, "");
  if (bare === "localhost" || bare.endsWith(".localhost")) return "127.0.0.1";
  const url = `http://${bare}/`;
  const named = !net.isIP(bare) && URL.canParse(url) ? new URL(url).hostname : "";
  return net.isIPv4(named) ? named : undefined;
}

/** What listens on this machine for others is as open by these as what listens on loopback. */
const OWN = { words: "an address of this machine" };

/** They change while the collector runs. */
const isOwn = (address: string): boolean =>
  Object.values(networkInterfaces()).some((addresses) => addresses?.some((own) => unmapped(own.address) === address));

/**
 * IPv4 addresses that packets to an IPv6 address may end at: 6to4 (RFC 3056, 2), and translation in 64:ff9b:1::/48 (RFC 8215), which has one
 * at any of the places that RFC 6052, 2.2 knows for prefixes from 48 bits on. What begins with 0 is no address but the zeros around one.
 */
function translated(address: string): readonly string[] {
  if (!net.isIPv6(address)) return [];
  const bytes = bytesOf(address);
  const at = (...places: readonly number[]): string => places.map((place) => bytes[place] ?? 0).join(".");
  if (SIX_TO_FOUR.contains(address)) return [at(2, 3, 4, 5)];
  if (!TRANSLATED.contains(address)) return [];
  return [at(6, 7, 9, 10), at(7, 9, 10, 11), at(9, 10, 11, 12), at(12, 13, 14, 15)].filter((one) => !one.startsWith("0."));
}

/** Of an address as `unmapped` gives it: at most one run of zeros is left out. */
function bytesOf(address: string): readonly number[] {
  const [head = "", tail] = address.split("::");
  const groups = (text: string): readonly string[] => (text === "" ? [] : text.split(":"));
  const [before, after] = [groups(head), groups(tail ?? "")];
  const zeros = new Array<string>(Math.max(0, 8 - before.length - after.length)).fill("0");
  return [...before, ...zeros, ...after].map((group) => Number.parseInt(group, 16)).flatMap((group) => [group >> 8, group & 255]);
}

/** Why the collector may not listen on this address; undefined: it may. `host:port`, an IPv6 address in brackets. */
export function listenRefusal({ listen, file = "policy.yaml" }: Policy, at: string): string | undefined {
  const host = at.slice(0, at.lastIndexOf(":")).replace(/^\[|\]$/g, "");
  const address = unmapped(host === "localhost" ? "127.0.0.1" : host);
  if (address === undefined) return `${host} is not an IP address; write one of this machine's`;
  if (new Networks(listen).contains(address)) return undefined;
  const line = listText([...listen, address]);
  return `${host} is not among the addresses that policy.yaml opens; to open it, put \`listen: [${line}]\` into ${file}`;
}

/** A list as YAML has it between brackets. */
const listText = (networks: readonly string[]): string => networks.map((one) => (one.includes(":") ? `"${one}"` : one)).join(", ");

/** Why a person may not look for controllers at these addresses; undefined: at all of them. `network`: they as they were typed. Pure. */
export function findRefusal({ find, file = "policy.yaml" }: Policy, network: string, addresses: readonly string[]): string | undefined {
  const open = new Networks(find);
  if (addresses.every((address) => open.contains(address))) return undefined;
  return `policy.yaml does not open ${network} for a search; to open it, put \`find: [${listText([...find, network])}]\` into ${file}`;
}

/** The policy that is in force at any moment: its judges follow it. */
export class PolicyInForce {
  #policy: Policy;
  #sources: Permit;
  #sinks: Permit;

  constructor(policy: Policy) {
    this.#policy = policy;
    this.#sources = permitOf(policy, "sources");
    this.#sinks = permitOf(policy, "sinks");
  }

  use(policy: Policy): void {
    this.#policy = policy;
    this.#sources = permitOf(policy, "sources");
    this.#sinks = permitOf(policy, "sinks");
  }

  /** True: devices may be asked what variables they have. */
  get mayDiscover(): boolean {
    return this.#policy.discovery;
  }

  /** See permitOf. */
  readonly permitSource: Permit = (address, port) => this.#sources(address, port);
  readonly permitSink: Permit = (address, port) => this.#sinks(address, port);

  /** See listenRefusal. */
  readonly listenRefusal = (at: string): string | undefined => listenRefusal(this.#policy, at);
}

/** True: a host is an address within one of these networks; a name is in none. */
export function isWithin(networks: readonly string[], host: string): boolean {
  const address = unmapped(host);
  return address !== undefined && new Networks(networks).contains(address);
}

/** Without a zone; an IPv4 address inside an IPv6 one (RFC 4291, 2.5.5.2, and RFC 6052, 2.1) is judged as itself. */
function unmapped(address: string): string | undefined {
  const [bare = ""] = address.split("%");
  if (net.isIPv4(bare)) return bare;
  if (!net.isIPv6(bare)) return undefined;
  const canonical = new URL(`http://[${bare}]/`).hostname.slice(1, -1);
  const inside = /^(?:::ffff:|::|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical);
  if (!inside) return canonical;
  const [high, low] = [Number.parseInt(inside[1] ?? "0", 16), Number.parseInt(inside[2] ?? "0", 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}
