import { isIPv6 } from "node:net";

/** Four or sixteen bytes; of an IPv4 address in an IPv6 one its own four. A text that is none: 0.0.0.0. Pure. */
export function addressBytes(text: string): Uint8Array {
  const plain = text.replace(/%.*$/, "").replace(/^\[|\]$/g, "");
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1] ?? plain;
  if (/^\d+\.\d+\.\d+\.\d+$/.test(mapped)) return Uint8Array.from(mapped.split(".").map(Number));
  if (!isIPv6(mapped)) return new Uint8Array(4);
  // The URL parser writes every IPv6 address in its short form, without dots.
  const [head = "", tail] = new URL(`http://[${mapped}]`).hostname.slice(1, -1).split("::");
  const groupsOf = (part: string | undefined): number[] => (part ? part.split(":").map((group) => Number.parseInt(group, 16)) : []);
  const [before, after] = [groupsOf(head), groupsOf(tail)];
  const groups = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
  return Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}

/** As people write it; IPv6 in its short form. Pure. */
export function addressText(bytes: Uint8Array): string {
  if (bytes.length !== 16) return [...bytes].join(".");
  const groups = Array.from({ length: 8 }, (_, i) => (((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0)).toString(16));
  return new URL(`http://[${groups.join(":")}]`).hostname.slice(1, -1);
}
