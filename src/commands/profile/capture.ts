import { messageOf } from "../../model/failure.ts";

/** Bytes that one end of a TCP connection sent, in order. */
export interface CapturedBytes {
  /** `address:port`. */
  readonly from: string;
  readonly to: string;
  readonly fromPort: number;
  readonly toPort: number;
  readonly bytes: Buffer;
}

interface Segment {
  readonly from: string;
  readonly to: string;
  readonly fromPort: number;
  readonly toPort: number;
  readonly sequence: number;
  readonly payload: Buffer;
}

/** Packets that are looked at. */
const MAX_PACKETS = 2_000_000;
/** Types of links (tcpdump.org/linktypes.html), with the bytes before the IP header. */
const LINK_BYTES: Readonly<Record<number, number>> = { 0: 4, 1: 14, 12: 0, 101: 0, 113: 16, 228: 0, 229: 0, 276: 20 };

/**
 * The bytes of the TCP connections in a capture, in the order in which they were sent, one entry for each turn of an end. What was sent twice
 * counts once. Throws an Error with a sentence where the file is neither pcap nor pcapng. Pure.
 */
export function captureOf(file: Buffer): readonly CapturedBytes[] {
  let packets: readonly (readonly [link: number, packet: Buffer])[];
  try {
    packets = packetsIn(file);
  } catch (error) {
    throw new Error(`the capture is cut or damaged: ${messageOf(error)}`, { cause: error });
  }
  const next = new Map<string, number>();
  const turns: { from: string; to: string; fromPort: number; toPort: number; parts: Buffer[] }[] = [];
  const last = new Map<string, (typeof turns)[number]>();
  for (const [link, packet] of packets) {
    const segment = segmentIn(link, packet);
    if (!segment || segment.payload.length === 0) continue;
    const { from, to, fromPort, toPort, sequence, payload } = segment;
    const way = `${from}>${to}`;
    const expected = next.get(way) ?? sequence;
    const seen = (expected - sequence) | 0;
    if (seen >= payload.length) continue;
    const fresh = seen > 0 ? payload.subarray(seen) : payload;
    next.set(way, (sequence + payload.length) >>> 0);
    const connection = [from, to].sort().join(" ");
    const turn = last.get(connection);
    if (turn?.from === from) turn.parts.push(fresh);
    else {
      const begun = { from, to, fromPort, toPort, parts: [fresh] };
      turns.push(begun);
      last.set(connection, begun);
    }
  }
  return turns.map(({ parts, ...ends }) => ({ ...ends, bytes: Buffer.concat(parts) }));
}

function packetsIn(file: Buffer): readonly (readonly [link: number, packet: Buffer])[] {
  const magic = file.length < 24 ? 0 : file.readUInt32BE(0);
  if (magic === 0x0a0d0d0a) return pcapngPackets(file);
  if (magic === 0xa1b2c3d4 || magic === 0xa1b23c4d) return pcapPackets(file, false);
  if (magic === 0xd4c3b2a1 || magic === 0x4d3cb2a1) return pcapPackets(file, true);
  throw new Error("it begins as neither pcap nor pcapng does");
}

function pcapPackets(file: Buffer, isLittle: boolean): readonly (readonly [number, Buffer])[] {
  const u32 = (at: number): number => (isLittle ? file.readUInt32LE(at) : file.readUInt32BE(at));
  const link = u32(20) & 0xffff;
  const packets: (readonly [number, Buffer])[] = [];
  for (let at = 24; at + 16 <= file.length && packets.length < MAX_PACKETS; ) {
    const length = u32(at + 8);
    packets.push([link, file.subarray(at + 16, at + 16 + length)]);
    at += 16 + length;
  }
  return packets;
}

/** draft-ietf-opsawg-pcapng: section header, interface description, enhanced and simple packet blocks; others are passed over. */
function pcapngPackets(file: Buffer): readonly (readonly [number, Buffer])[] {
  let isLittle = true;
  let links: number[] = [];
  const packets: (readonly [number, Buffer])[] = [];
  const u32 = (at: number): number => (isLittle ? file.readUInt32LE(at) : file.readUInt32BE(at));
  for (let at = 0; at + 12 <= file.length && packets.length < MAX_PACKETS; ) {
    if (file.readUInt32BE(at) === 0x0a0d0d0a) {
      isLittle = file.readUInt32BE(at + 8) === 0x4d3c2b1a;
      links = [];
    }
    const [type, length] = [u32(at), u32(at + 4)];
    if (length < 12) throw new Error(`a block of ${length} bytes at ${at}`);
    if (type === 1) links.push(isLittle ? file.readUInt16LE(at + 8) : file.readUInt16BE(at + 8));
    if (type === 6) packets.push([links[u32(at + 8)] ?? -1, file.subarray(at + 28, at + 28 + u32(at + 20))]);
    if (type === 3) packets.push([links[0] ?? -1, file.subarray(at + 12, at + length - 4)]);
    at += length;
  }
  return packets;
}

/** Of TCP over IPv4 or IPv6; undefined: another thing, or cut. */
function segmentIn(link: number, packet: Buffer): Segment | undefined {
  const before = LINK_BYTES[link];
  if (before === undefined) return undefined;
  const isTagged = link === 1 && packet.length > 18 && packet.readUInt16BE(12) === 0x8100;
  const ip = packet.subarray(before + (isTagged ? 4 : 0));
  if (ip.length < 40) return undefined;
  const version = ip.readUInt8(0) >> 4;
  if (version === 6) return ip[6] === 6 ? tcpIn(ip.subarray(40, 40 + ip.readUInt16BE(4)), address6(ip, 8), address6(ip, 24)) : undefined;
  const isTcp = version === 4 && ip[9] === 6 && (ip.readUInt16BE(6) & 0x3fff) === 0;
  if (!isTcp) return undefined;
  const headerBytes = (ip.readUInt8(0) & 15) * 4;
  return tcpIn(ip.subarray(headerBytes, ip.readUInt16BE(2)), [...ip.subarray(12, 16)].join("."), [...ip.subarray(16, 20)].join("."));
}

const address6 = (ip: Buffer, at: number): string =>
  `[${ip
    .toString("hex", at, at + 16)
    .match(/..../g)
    ?.join(":")}]`;

function tcpIn(tcp: Buffer, from: string, to: string): Segment | undefined {
  if (tcp.length < 20) return undefined;
  const [fromPort, toPort] = [tcp.readUInt16BE(0), tcp.readUInt16BE(2)];
  const dataAt = (tcp.readUInt8(12) >> 4) * 4;
  return {
    from: `${from}:${fromPort}`,
    to: `${to}:${toPort}`,
    fromPort,
    toPort,
    sequence: tcp.readUInt32BE(4),
    payload: tcp.subarray(dataAt),
  };
}
