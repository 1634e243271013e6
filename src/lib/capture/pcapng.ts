import type { Packet } from "./frames.ts";

/** Types of blocks and codes of options (draft-ietf-opsawg-pcapng, 4 and 3.5). */
const BLOCK = { section: 0x0a0d0d0a, interface: 1, packet: 6 } as const;
const OPTION = { comment: 1, application: 4, name: 2, flags: 2, resolution: 9 } as const;
/** Packets begin with an IP header (tcpdump.org/linktypes.html). */
const LINKTYPE_RAW = 101;
/** Times are in 10^-6 s. */
const MICROSECONDS = 6;

/** Section header and one interface. Pure. */
export function pcapngHead(application: string, comment: string): Buffer {
  const section = Buffer.alloc(16);
  section.writeUInt32LE(0x1a2b3c4d, 0);
  section.writeUInt16LE(1, 4);
  // The length of the section is not known.
  section.fill(0xff, 8);
  const link = Buffer.alloc(8);
  link.writeUInt16LE(LINKTYPE_RAW, 0);
  return Buffer.concat([
    block(BLOCK.section, [section, option(OPTION.comment, comment), option(OPTION.application, application), END]),
    block(BLOCK.interface, [link, option(OPTION.name, "collector"), option(OPTION.resolution, Buffer.of(MICROSECONDS)), END]),
  ]);
}

/** One packet. `epochMs` may have a fraction. Pure. */
export function pcapngPacket(packet: Packet, epochMs: number, direction: "in" | "out", comments: readonly string[]): Buffer {
  const { bytes, length } = packet;
  const head = Buffer.alloc(20);
  const microseconds = Math.max(0, Math.round(epochMs * 1000));
  head.writeUInt32LE(Math.floor(microseconds / 2 ** 32), 4);
  head.writeUInt32LE(microseconds % 2 ** 32, 8);
  head.writeUInt32LE(bytes.length, 12);
  head.writeUInt32LE(length, 16);
  const flags = Buffer.of(direction === "in" ? 1 : 2, 0, 0, 0);
  const options = [...comments.map((comment) => option(OPTION.comment, comment)), option(OPTION.flags, flags), END];
  return block(BLOCK.packet, [head, padded(bytes), ...options]);
}

const END = Buffer.alloc(4);

function block(type: number, parts: readonly Buffer[]): Buffer {
  const length = 12 + parts.reduce((sum, part) => sum + part.length, 0);
  const [begin, end] = [Buffer.alloc(8), Buffer.alloc(4)];
  begin.writeUInt32LE(type, 0);
  begin.writeUInt32LE(length, 4);
  end.writeUInt32LE(length, 0);
  return Buffer.concat([begin, ...parts, end]);
}

function option(code: number, value: string | Buffer): Buffer {
  const bytes = Buffer.from(value);
  const head = Buffer.alloc(4);
  head.writeUInt16LE(code, 0);
  head.writeUInt16LE(bytes.length, 2);
  return Buffer.concat([head, padded(bytes)]);
}

const padded = (bytes: Buffer): Buffer => (bytes.length % 4 === 0 ? bytes : Buffer.concat([bytes, Buffer.alloc(4 - (bytes.length % 4))]));
