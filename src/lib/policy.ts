import net from "node:net";
import type { Permit, Policy } from "../model/policy.ts";

/** IANA special-purpose registries, and where clouds keep their metadata: closed unless the policy names them. */
const SPECIAL: readonly (readonly [words: string, networks: readonly string[]])[] = [
  ["a loopback address", ["127.0.0.0/8", "::1/128"]],
  ["an unspecified address", ["0.0.0.0/8", "::/128"]],
  ["a metadata address", ["169.254.169.254/32", "100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::254/128"]],
  ["a link-local address", ["169.254.0.0/16", "fe80::/10"]],
  ["a multicast or broadcast address", ["224.0.0.0/4", "255.255.255.255/32", "ff00::/8"]],
];

const special = SPECIAL.map(([words, networks]) => ({ words, list: listOf(networks) }));

/** Judges addresses for data sources or data sinks. Refuses a text that is not an IP address. */
export function permitOf(policy: Policy, what: "sources" | "sinks"): Permit {
  const { networks, ports } = policy[what];
  const open = networks && listOf(networks);
  const ranges = ports?.map((port) => String(port).split("-").map(Number));
  return (address, port) => {
    const plain = unmapped(address);
    if (plain === undefined) return `${JSON.stringify(address)} is not an IP address`;
    if (ranges && !ranges.some(([from = 0, to = from]) => port >= from && port <= to))
      return `port ${port} of ${address} is not among the ports that policy.yaml opens (${what}.ports)`;
    if (open) return contains(open, plain) ? undefined : `${address} is not within the networks that policy.yaml opens (${what}.networks)`;
    const closed = special.find(({ list }) => contains(list, plain));
    return closed && `${address} is ${closed.words}; it stays closed until policy.yaml opens it (${what}.networks)`;
  };
}

/** Why the collector may not listen on this address; undefined: it may. `host:port`, an IPv6 address in brackets. */
export function listenRefusal({ listen }: Policy, at: string): string | undefined {
  const host = at.slice(0, at.lastIndexOf(":")).replace(/^\[|\]$/g, "");
  const address = unmapped(host === "localhost" ? "127.0.0.1" : host);
  if (address === undefined) return `${host} is not an IP address; write one of this machine's`;
  return contains(listOf(listen), address) ? undefined : `${host} is not among the addresses that policy.yaml opens (listen)`;
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

  /** Whether devices may be asked what variables they have. */
  get mayDiscover(): boolean {
    return this.#policy.discovery;
  }

  /** See permitOf. */
  readonly permitSource: Permit = (address, port) => this.#sources(address, port);
  readonly permitSink: Permit = (address, port) => this.#sinks(address, port);

  /** See listenRefusal. */
  readonly listenRefusal = (at: string): string | undefined => listenRefusal(this.#policy, at);
}

function listOf(networks: readonly string[]): net.BlockList {
  const list = new net.BlockList();
  for (const text of networks) {
    const [address = "", bits] = text.split("/");
    const family = net.isIPv6(address) ? "ipv6" : "ipv4";
    list.addSubnet(address, Number(bits ?? (family === "ipv6" ? 128 : 32)), family);
  }
  return list;
}

const contains = (list: net.BlockList, address: string): boolean => list.check(address, net.isIPv6(address) ? "ipv6" : "ipv4");

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
