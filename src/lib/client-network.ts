import net from "node:net";

/** By which a client is counted: IPv4 addresses as they are, also inside IPv6; of IPv6 the first 64 bits (RFC 6177: a site gets at least a /64). Pure. */
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
