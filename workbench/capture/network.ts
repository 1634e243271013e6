import type { End } from "../../src/model/address.ts";
import type { Unread } from "../../src/model/workbench.ts";
import type { CapturedPacket } from "./packets.ts";

/** What is inside a captured packet: TCP or UDP over IPv4 or IPv6. All pure. */

export interface Segment {
  readonly kind: "tcp";
  readonly from: End;
  readonly to: End;
  readonly sequence: number;
  /** What the sender has of the other end; undefined: it does not say. */
  readonly acknowledged: number | undefined;
  readonly isSyn: boolean;
  readonly isReset: boolean;
  readonly payload: Buffer;
  /** Of the payload's end, that were not captured. */
  readonly missingBytes: number;
}

export interface Datagram {
  readonly kind: "udp";
  readonly from: End;
  readonly to: End;
  readonly payload: Buffer;
  readonly missingBytes: number;
}

/** Every reason why nothing of a packet is read. */
export const UNREAD: readonly Unread[] = ["link", "fragment", "cut", "damaged", "other"];

const [IPV4, IPV6] = [0x0800, 0x86dd];
const VLAN_TAGS: ReadonlySet<number> = new Set([0x8100, 0x88a8, 0x9100]);
const [TCP, UDP] = [6, 17];
/** Headers of IPv6 between the first one and what it carries (RFC 8200, 4): hop-by-hop, routing, destination. */
const EXTENSIONS: ReadonlySet<number> = new Set([0, 43, 60]);
const FRAGMENT = 44;
const [SYN, RESET, ACK] = [0x02, 0x04, 0x10];

/** What a packet carries. */
export function contentOf({ link, bytes }: CapturedPacket): Segment | Datagram | Unread {
  const found = ipIn(link, bytes);
  if (typeof found === "string") return found;
  const version = (bytes[found] ?? 0) >> 4;
  const ip = bytes.subarray(found);
  if (version === 4) return ofIpv4(ip);
  if (version === 6) return ofIpv6(ip);
  return ip.length === 0 ? "cut" : "damaged";
}

/** The place where the IP header begins. */
function ipIn(link: number, bytes: Buffer): number | Unread {
  switch (link) {
    case 1: // Ethernet
      return afterTags(bytes, 12);
    case 12: // Raw IP, as some systems number it
    case 14:
    case 101:
    case 228:
    case 229:
      return 0;
    case 0: // Loopback of BSD: the address family, which the IP header tells too
    case 108:
      return bytes.length < 4 ? "cut" : 4;
    case 113: // Linux "any" device
      return afterTags(bytes, 14);
    case 276:
      return bytes.length < 20 ? "cut" : afterTags(bytes, 0, 20);
    default:
      return "link";
  }
}

/** The type of what follows is at `at`; `from`: where that begins, absent right behind it. Tags of VLANs are passed over. */
function afterTags(bytes: Buffer, at: number, from = at + 2): number | Unread {
  let [typeAt, start] = [at, from];
  for (;;) {
    if (bytes.length < start) return "cut";
    const type = bytes.readUInt16BE(typeAt);
    if (type === IPV4 || type === IPV6) return start;
    if (!VLAN_TAGS.has(type)) return "other";
    // Two bytes of the tag, and the type of what it tags.
    if (bytes.length < start + 4) return "cut";
    [typeAt, start] = [start + 2, start + 4];
  }
}

function ofIpv4(ip: Buffer): Segment | Datagram | Unread {
  if (ip.length < 20) return "cut";
  const headerBytes = (ip.readUInt8(0) & 15) * 4;
  if (headerBytes < 20) return "damaged";
  if ((ip.readUInt16BE(6) & 0x3fff) !== 0) return "fragment";
  // Network cards that cut segments by themselves show them with no length.
  const length = ip.readUInt16BE(2) || ip.length;
  if (length < headerBytes) return "damaged";
  return ofTransport(ip.readUInt8(9), ip, headerBytes, length, ipv4Text(ip, 12), ipv4Text(ip, 16));
}

function ofIpv6(ip: Buffer): Segment | Datagram | Unread {
  if (ip.length < 40) return "cut";
  const payloadBytes = ip.readUInt16BE(4);
  const length = payloadBytes === 0 ? ip.length : 40 + payloadBytes;
  let next = ip.readUInt8(6);
  let at = 40;
  while (EXTENSIONS.has(next) || next === FRAGMENT) {
    if (ip.length < at + 8) return "cut";
    // An atomic fragment is whole (RFC 6946).
    if (next === FRAGMENT && (ip.readUInt16BE(at + 2) & 0xfff9) !== 0) return "fragment";
    const bytes = next === FRAGMENT ? 8 : 8 + ip.readUInt8(at + 1) * 8;
    next = ip.readUInt8(at);
    at += bytes;
  }
  return length < at ? "damaged" : ofTransport(next, ip, at, length, ipv6Text(ip, 8), ipv6Text(ip, 24));
}

/** `length`: of the IP packet on the wire. */
function ofTransport(
  protocol: number,
  ip: Buffer,
  at: number,
  length: number,
  fromAddress: string,
  toAddress: string,
): Segment | Datagram | Unread {
  if (protocol !== TCP && protocol !== UDP) return "other";
  const whole = ip.subarray(at, length);
  const isTcp = protocol === TCP;
  if (whole.length < (isTcp ? 20 : 8)) return length - at < (isTcp ? 20 : 8) ? "damaged" : "cut";
  const ends = { from: { address: fromAddress, port: whole.readUInt16BE(0) }, to: { address: toAddress, port: whole.readUInt16BE(2) } };
  const headerBytes = isTcp ? (whole.readUInt8(12) >> 4) * 4 : 8;
  const declared = isTcp ? length - at : whole.readUInt16BE(4) || length - at;
  if (headerBytes < (isTcp ? 20 : 8) || declared < headerBytes || declared > length - at) return "damaged";
  const payload = whole.subarray(headerBytes, declared);
  const missingBytes = declared - Math.max(headerBytes, Math.min(whole.length, declared));
  if (!isTcp) return { kind: "udp", ...ends, payload, missingBytes };
  const flags = whole.readUInt8(13);
  return {
    kind: "tcp",
    ...ends,
    sequence: whole.readUInt32BE(4),
    acknowledged: (flags & ACK) === 0 ? undefined : whole.readUInt32BE(8),
    isSyn: (flags & SYN) !== 0,
    isReset: (flags & RESET) !== 0,
    payload,
    missingBytes,
  };
}

const ipv4Text = (ip: Buffer, at: number): string => `${ip[at]}.${ip[at + 1]}.${ip[at + 2]}.${ip[at + 3]}`;

/** As RFC 5952 writes it: the longest run of zeros is left out. */
function ipv6Text(ip: Buffer, at: number): string {
  const text = Array.from({ length: 8 }, (_, i) => ip.readUInt16BE(at + i * 2).toString(16)).join(":");
  const runs = [...text.matchAll(/\b0(:0)+\b/g)].sort((a, b) => b[0].length - a[0].length);
  const [run] = runs;
  if (!run) return text;
  const head = text.slice(0, run.index).replace(/:$/, "");
  const tail = text.slice(run.index + run[0].length).replace(/^:/, "");
  return `${head}::${tail}`;
}
