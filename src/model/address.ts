/** An address that a socket can connect to. */
export interface Address {
  readonly address: string;
  readonly family: 4 | 6;
}

/** One end of a conversation over TCP or UDP. */
export interface End {
  readonly address: string;
  /** 0 to 65535. */
  readonly port: number;
}

/** `address:port`, an IPv6 address in brackets. Pure. */
export const endText = ({ address, port }: End): string => `${address.includes(":") ? `[${address}]` : address}:${port}`;

/**
 * The address that a host is, in its one canonical form; undefined: it is a name. Takes what the C library takes: IPv4 with parts left out,
 * in hex or octal (inet_aton(3): `127.1`, `0x7f.1`), IPv6 in any form, with its zone and in brackets; an IPv4 address inside an IPv6 one
 * (RFC 4291, 2.5.5.2) is itself. Pure.
 */
export function literalAddress(host: string): Address | undefined {
  const bare = /^\[.*\]$/.test(host) ? host.slice(1, -1) : host;
  if (!bare.includes(":")) {
    const address = /^[0-9][0-9a-fx.]*$/i.test(bare) ? hostnameOf(bare) : undefined;
    return address !== undefined && /^\d+\.\d+\.\d+\.\d+$/.test(address) ? { address, family: 4 } : undefined;
  }
  const [ip = "", ...zone] = bare.split("%");
  const address = hostnameOf(`[${ip}]`)?.slice(1, -1);
  if (address === undefined || zone.length > 1) return undefined;
  const inside = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(address);
  if (!inside) return { address: zone.length === 0 ? address : `${address}%${zone[0]}`, family: 6 };
  const [high, low] = [Number.parseInt(inside[1] ?? "0", 16), Number.parseInt(inside[2] ?? "0", 16)];
  return { address: [high >> 8, high & 255, low >> 8, low & 255].join("."), family: 4 };
}

/**
 * One text for one device, however its host is spelled: an address in its canonical form, a name in lower case (non-ASCII letters as they
 * are asked for, RFC 5891) without the dot at its end. Two names of one device are two texts: the resolver may know better. Pure.
 */
export function deviceKey(host: string): string {
  const literal = literalAddress(host);
  if (literal) return literal.address;
  const name = /^[\x20-\x7e]*$/.test(host) ? host : (hostnameOf(host) ?? host);
  return name.toLowerCase().replace(/\.$/, "");
}

/** As URLs have it (WHATWG URL, 3.5); undefined: no host. */
function hostnameOf(host: string): string | undefined {
  try {
    const { hostname } = new URL(`http://${host}`);
    return hostname === "" ? undefined : hostname;
  } catch {
    return undefined;
  }
}
