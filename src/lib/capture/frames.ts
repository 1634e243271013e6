/** One end of a synthetic packet. */
export interface PacketEnd {
  /** Four or sixteen bytes. */
  readonly address: Uint8Array;
  readonly port: number;
}

/** Flags of a TCP segment (RFC 9293, 3.1). */
export const TCP = { fin: 0x01, syn: 0x02, rst: 0x04, psh: 0x08, ack: 0x10 } as const;

export interface Segment {
  readonly from: PacketEnd;
  readonly to: PacketEnd;
  readonly flags: number;
  readonly sequence: number;
  readonly acknowledged: number;
}

/** Bytes of a packet, and how many it has with those that are not there. */
export interface Packet {
  readonly bytes: Buffer;
  readonly length: number;
}

const [PROTOCOL_TCP, PROTOCOL_UDP] = [6, 17];
const [TCP_BYTES, UDP_BYTES] = [20, 8];
const WINDOW = 0xffff;
const HOPS = 64;

/**
 * A TCP segment in an IP packet, with its checksums. `length`: bytes of the payload, of which `payload` has the first ones; where some are
 * missing there is no checksum of TCP, since nobody can check it. Pure.
 */
export function tcpPacket({ from, to, flags, sequence, acknowledged }: Segment, payload: Uint8Array, length: number): Packet {
  const header = Buffer.alloc(TCP_BYTES);
  header.writeUInt16BE(from.port, 0);
  header.writeUInt16BE(to.port, 2);
  header.writeUInt32BE(sequence >>> 0, 4);
  header.writeUInt32BE(acknowledged >>> 0, 8);
  header.writeUInt8((TCP_BYTES / 4) << 4, 12);
  header.writeUInt8(flags, 13);
  header.writeUInt16BE(WINDOW, 14);
  return ipPacket(PROTOCOL_TCP, from, to, header, 16, payload, length);
}

/** A UDP datagram in an IP packet; as `tcpPacket`. Pure. */
export function udpPacket(from: PacketEnd, to: PacketEnd, payload: Uint8Array, length: number): Packet {
  const header = Buffer.alloc(UDP_BYTES);
  header.writeUInt16BE(from.port, 0);
  header.writeUInt16BE(to.port, 2);
  header.writeUInt16BE(UDP_BYTES + length, 4);
  return ipPacket(PROTOCOL_UDP, from, to, header, 6, payload, length);
}

/** RFC 791 and RFC 8200; `sumAt`: where the transport's checksum is in its header. */
function ipPacket(
  protocol: number,
  from: PacketEnd,
  to: PacketEnd,
  header: Buffer,
  sumAt: number,
  payload: Uint8Array,
  length: number,
): Packet {
  const isIPv6 = from.address.length === 16;
  const carried = header.length + length;
  const ip = Buffer.alloc(isIPv6 ? 40 : 20);
  if (isIPv6) {
    ip.writeUInt8(0x60, 0);
    ip.writeUInt16BE(carried, 4);
    ip.writeUInt8(protocol, 6);
    ip.writeUInt8(HOPS, 7);
    ip.set(from.address, 8);
    ip.set(to.address, 24);
  } else {
    ip.writeUInt8(0x45, 0);
    ip.writeUInt16BE(ip.length + carried, 2);
    ip.writeUInt16BE(0x4000, 6);
    ip.writeUInt8(HOPS, 8);
    ip.writeUInt8(protocol, 9);
    ip.set(from.address, 12);
    ip.set(to.address, 16);
    ip.writeUInt16BE(checksum(sumOf(ip)), 10);
  }
  if (payload.length === length) {
    const sum = sumOf(from.address) + sumOf(to.address) + protocol + carried + sumOf(header) + sumOf(payload);
    // Of UDP, 0 means that there is none (RFC 768).
    header.writeUInt16BE(checksum(sum) || (protocol === PROTOCOL_UDP ? 0xffff : 0), sumAt);
  }
  return { bytes: Buffer.concat([ip, header, payload]), length: ip.length + carried };
}

/** Of 16-bit words, the last one filled up with zeros. */
function sumOf(bytes: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at + 1 < bytes.length; at += 2) sum += ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
  return bytes.length % 2 === 0 ? sum : sum + ((bytes.at(-1) ?? 0) << 8);
}

/** RFC 1071. */
function checksum(sum: number): number {
  let folded = sum;
  while (folded > 0xffff) folded = (folded & 0xffff) + Math.floor(folded / 0x10000);
  return ~folded & 0xffff;
}
