import { literalAddress } from "../../model/address.ts";

const MIN_BITS = 22;
/** From here on the first and the last address are devices too (RFC 3021). */
const POINT_TO_POINT_BITS = 31;

/** The addresses of devices in an IPv4 network of at most 1024, or the one address; a string: why it cannot be searched. Pure. */
export function addressesIn(network: string): readonly string[] | string {
  const [address = "", bitsText = "32", ...more] = network.split("/");
  const bits = /^\d{1,2}$/.test(bitsText) ? Number(bitsText) : Number.NaN;
  if (literalAddress(address)?.address !== address || address.includes(":") || more.length > 0 || !(bits <= 32))
    return `${network}: expected an IPv4 network such as 10.0.0.0/24`;
  if (bits < MIN_BITS) return `${network} has more than 1024 addresses: give a part of it, /${MIN_BITS} or smaller`;
  const count = 2 ** (32 - bits);
  const given = address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
  const first = given - (given % count);
  const all = Array.from({ length: count }, (_, i) => textOf(first + i));
  return bits >= POINT_TO_POINT_BITS ? all : all.slice(1, -1);
}

const textOf = (value: number): string => [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");

const MAX_PORTS = 16;

/** Ports of a list such as `502,1502`, each once; a string: what is wrong with it. Pure. */
export function portsIn(list: string): readonly number[] | string {
  const ports = new Set(list.split(",").map((text) => (/^\d{1,5}$/.test(text.trim()) ? Number(text) : Number.NaN)));
  if (![...ports].every((port) => port >= 1 && port <= 65_535)) return `${list}: expected ports such as 502,44818`;
  return ports.size > MAX_PORTS ? `${ports.size} ports are given, and at most ${MAX_PORTS} may be` : [...ports];
}
