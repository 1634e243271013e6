/** The packets of a capture file, read piece by piece: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng). */

/** A sentence for people: the file is no capture, or damaged. */
export class CaptureError extends Error {
  override readonly name = "CaptureError";
}

export interface CapturedPacket {
  /** Type of the link (tcpdump.org/linktypes.html). */
  readonly link: number;
  /** A view of what was pushed: copy what is to stay. */
  readonly bytes: Buffer;
  /** What the packet had on the wire and the file has not. */
  readonly missingBytes: number;
  readonly comment?: string;
}

/** Of one packet or block; capture programs write none above. */
const MAX_BLOCK_BYTES = 16 * 1024 * 1024;
/** Interfaces of one section of a pcapng file. */
const MAX_INTERFACES = 65_536;

const PCAP_HEADER_BYTES = 24;
const RECORD_BYTES = 16;
const SECTION = 0x0a0d0d0a;
const [INTERFACE, OLD_PACKET, SIMPLE_PACKET, ENHANCED_PACKET] = [1, 2, 3, 6];
const LITTLE_MAGIC = 0x4d3c2b1a;
const BIG_MAGIC = 0x1a2b3c4d;
/** Types, length and trailing length of a block. */
const BLOCK_BYTES = 12;
const COMMENT = 1;

interface Interface {
  readonly link: number;
  readonly snapBytes: number;
}

type Format = "pcap" | "pcapng";

/** Takes the bytes of a file in pieces of any length; keeps no more than one packet that has not ended. */
export class PacketParser {
  #held: Buffer = Buffer.alloc(0);
  /** Of `#held` in the file. */
  #offset = 0;
  #format: Format | undefined;
  #isLittle = false;
  #link = 0;
  #interfaces: Interface[] = [];

  /** Throws CaptureError. */
  push(chunk: Buffer): readonly CapturedPacket[] {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const packets: CapturedPacket[] = [];
    let at = this.#format === undefined ? this.#begin(bytes) : 0;
    while (this.#format !== undefined) {
      const taken = this.#format === "pcap" ? this.#record(bytes, at, packets) : this.#block(bytes, at, packets);
      if (taken === undefined) break;
      at += taken;
    }
    this.#held = Buffer.from(bytes.subarray(at));
    this.#offset += at;
    return packets;
  }

  /** Bytes at the end that are no whole packet: the file is cut. Throws CaptureError where it is no capture at all. */
  end(): number {
    if (this.#format === undefined) throw new CaptureError("it begins as neither pcap nor pcapng does");
    return this.#held.length;
  }

  #u32(bytes: Buffer, at: number): number {
    return this.#isLittle ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at);
  }

  #u16(bytes: Buffer, at: number): number {
    return this.#isLittle ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at);
  }

  #begin(bytes: Buffer): number {
    if (bytes.length < 4) return 0;
    const magic = bytes.readUInt32BE(0);
    if (magic === SECTION) {
      this.#format = "pcapng";
      return 0;
    }
    const isBig = magic === 0xa1b2c3d4 || magic === 0xa1b23c4d;
    this.#isLittle = magic === 0xd4c3b2a1 || magic === 0x4d3cb2a1;
    if (!isBig && !this.#isLittle) throw new CaptureError("it begins as neither pcap nor pcapng does");
    if (bytes.length < PCAP_HEADER_BYTES) return 0;
    // The upper half says how long a check sequence is at the end of each packet, which lengths inside tell too.
    this.#link = this.#u32(bytes, 20) & 0xffff;
    this.#format = "pcap";
    return PCAP_HEADER_BYTES;
  }

  #record(bytes: Buffer, at: number, packets: CapturedPacket[]): number | undefined {
    if (bytes.length - at < RECORD_BYTES) return undefined;
    const length = this.#u32(bytes, at + 8);
    if (length > MAX_BLOCK_BYTES) throw this.#damaged(`a packet of ${length} bytes`, at);
    if (bytes.length - at < RECORD_BYTES + length) return undefined;
    const from = at + RECORD_BYTES;
    const missingBytes = Math.max(0, this.#u32(bytes, at + 12) - length);
    packets.push({ link: this.#link, bytes: bytes.subarray(from, from + length), missingBytes });
    return RECORD_BYTES + length;
  }

  #block(bytes: Buffer, at: number, packets: CapturedPacket[]): number | undefined {
    if (bytes.length - at < BLOCK_BYTES) return undefined;
    const isSection = bytes.readUInt32BE(at) === SECTION;
    if (isSection) this.#beginSection(bytes, at);
    const type = this.#u32(bytes, at);
    const length = this.#u32(bytes, at + 4);
    if (length < BLOCK_BYTES || length > MAX_BLOCK_BYTES || length % 4 !== 0) throw this.#damaged(`a block of ${length} bytes`, at);
    if (bytes.length - at < length) return undefined;
    if (this.#u32(bytes, at + length - 4) !== length) throw this.#damaged("a block whose two lengths differ", at);
    const block = bytes.subarray(at, at + length - 4);
    if (type === INTERFACE) this.#describe(block, at);
    else if (type === ENHANCED_PACKET || type === OLD_PACKET) packets.push(this.#packet(block, at, type));
    else if (type === SIMPLE_PACKET) packets.push(this.#simple(block, at));
    return length;
  }

  #beginSection(bytes: Buffer, at: number): void {
    const magic = bytes.readUInt32BE(at + 8);
    if (magic !== LITTLE_MAGIC && magic !== BIG_MAGIC) throw this.#damaged("a section whose byte order is unknown", at);
    this.#isLittle = magic === LITTLE_MAGIC;
    this.#interfaces = [];
  }

  #describe(block: Buffer, at: number): void {
    if (block.length < 16) throw this.#damaged("an interface that is cut", at);
    if (this.#interfaces.length >= MAX_INTERFACES) throw this.#damaged(`more than ${MAX_INTERFACES} interfaces`, at);
    this.#interfaces.push({ link: this.#u16(block, 8), snapBytes: this.#u32(block, 12) });
  }

  #packet(block: Buffer, at: number, type: number): CapturedPacket {
    if (block.length < 28) throw this.#damaged("a packet that is cut", at);
    const number = type === ENHANCED_PACKET ? this.#u32(block, 8) : this.#u16(block, 8);
    const length = this.#u32(block, 20);
    if (length > block.length - 28) throw this.#damaged(`a packet of ${length} bytes in a block of ${block.length + 4}`, at);
    const comment = this.#comment(block, 28 + length + (-length & 3));
    return {
      link: this.#interface(number, at).link,
      bytes: block.subarray(28, 28 + length),
      missingBytes: Math.max(0, this.#u32(block, 24) - length),
      ...(comment !== undefined && { comment }),
    };
  }

  #simple(block: Buffer, at: number): CapturedPacket {
    if (block.length < 12) throw this.#damaged("a packet that is cut", at);
    const { link, snapBytes } = this.#interface(0, at);
    const onWire = this.#u32(block, 8);
    const length = Math.min(onWire, snapBytes || onWire, block.length - 12);
    return { link, bytes: block.subarray(12, 12 + length), missingBytes: onWire - length };
  }

  #interface(number: number, at: number): Interface {
    const found = this.#interfaces[number];
    if (!found) throw this.#damaged(`a packet of interface ${number}, which is not described`, at);
    return found;
  }

  /** Options follow the packet: code, length, value, filled to four bytes. */
  #comment(block: Buffer, from: number): string | undefined {
    for (let at = from; at + 4 <= block.length; ) {
      const code = this.#u16(block, at);
      const length = this.#u16(block, at + 2);
      if (code === 0 || at + 4 + length > block.length) return undefined;
      if (code === COMMENT) return block.toString("utf8", at + 4, at + 4 + length);
      at += 4 + length + (-length & 3);
    }
    return undefined;
  }

  #damaged(what: string, at: number): CaptureError {
    return new CaptureError(`the capture is cut or damaged: ${what} at ${this.#offset + at}`);
  }
}
