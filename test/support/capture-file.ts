/** Capture files as tests need them, written by hand after draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng; the reader shares nothing with it. */

export interface PacketOptions {
  readonly from?: string;
  readonly to?: string;
  readonly fromPort: number;
  readonly toPort: number;
  readonly payload?: Buffer | string;
}

export interface TcpOptions extends PacketOptions {
  readonly sequence: number;
  readonly acknowledged?: number;
  /** `S`, `A`, `F`, `R`. */
  readonly flags?: string;
}

const bytesOf = (payload: Buffer | string = ""): Buffer => (typeof payload === "string" ? Buffer.from(payload, "latin1") : payload);
const u16 = (...numbers: readonly number[]): Buffer => Buffer.from(numbers.flatMap((one) => [(one >> 8) & 255, one & 255]));

function addressOf(text: string): Buffer {
  if (!text.includes(":")) return Buffer.from(text.split(".").map(Number));
  const [head = "", tail] = text.split("::");
  const groups = (part: string): number[] => (part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16)));
  const [before, after] = [groups(head), groups(tail ?? "")];
  return u16(...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after);
}

/** An IP packet, version 4 or 6 by the addresses. */
export function ipPacket(
  protocol: number,
  { from = "10.0.0.1", to = "10.0.0.2" }: Pick<PacketOptions, "from" | "to">,
  body: Buffer,
): Buffer {
  if (from.includes(":"))
    return Buffer.concat([
      Buffer.from([0x60, 0, 0, 0]),
      u16(body.length),
      Buffer.from([protocol, 64]),
      addressOf(from),
      addressOf(to),
      body,
    ]);
  return Buffer.concat([
    Buffer.from([0x45, 0]),
    u16(20 + body.length, 0, 0),
    Buffer.from([64, protocol, 0, 0]),
    addressOf(from),
    addressOf(to),
    body,
  ]);
}

export function tcpPacket(options: TcpOptions): Buffer {
  const { fromPort, toPort, sequence, acknowledged, flags = acknowledged === undefined ? "" : "A", payload } = options;
  const header = Buffer.alloc(20);
  header.writeUInt16BE(fromPort, 0);
  header.writeUInt16BE(toPort, 2);
  header.writeUInt32BE(sequence >>> 0, 4);
  header.writeUInt32BE((acknowledged ?? 0) >>> 0, 8);
  header[12] = 5 << 4;
  const bits: Readonly<Record<string, number>> = { F: 1, S: 2, R: 4, A: 16 };
  header[13] = [...flags].reduce((sum, flag) => sum | (bits[flag] ?? 0), 0);
  return ipPacket(6, options, Buffer.concat([header, bytesOf(payload)]));
}

export function udpPacket(options: PacketOptions): Buffer {
  const payload = bytesOf(options.payload);
  return ipPacket(17, options, Buffer.concat([u16(options.fromPort, options.toPort, 8 + payload.length, 0), payload]));
}

const etherType = (ip: Buffer): number => ((ip[0] ?? 0) >> 4 === 6 ? 0x86dd : 0x0800);

/** What is before an IP packet on each type of link, by its number (tcpdump.org/linktypes.html); 1 with tags: VLANs. */
export function framed(link: number, ip: Buffer, tags: readonly number[] = []): Buffer {
  if (link === 0) return Buffer.concat([Buffer.from([2, 0, 0, 0]), ip]);
  if (link === 108) return Buffer.concat([Buffer.from([0, 0, 0, 2]), ip]);
  if (link === 1)
    return Buffer.concat([
      Buffer.alloc(12, 1),
      ...tags.map((tag) => u16(tag, 7)),
      u16(etherType(ip)),
      ip,
      Buffer.alloc(Math.max(0, 46 - ip.length)),
    ]);
  if (link === 113) return Buffer.concat([Buffer.alloc(14, 2), u16(etherType(ip)), ip]);
  if (link === 276) return Buffer.concat([u16(etherType(ip)), Buffer.alloc(18, 3), ip]);
  return ip;
}

export interface FileOptions {
  readonly link?: number;
  readonly isLittle?: boolean;
  /** The most that is kept of a packet. */
  readonly snapBytes?: number;
  /** By the number of the packet; pcapng alone. */
  readonly comments?: ReadonlyMap<number, string>;
}

export function pcap(packets: readonly Buffer[], { link = 101, isLittle = true, snapBytes = 262_144 }: FileOptions = {}): Buffer {
  const u32 = (...numbers: readonly number[]): Buffer => wordsOf(numbers, isLittle);
  const version = isLittle ? Buffer.from([2, 0, 4, 0]) : Buffer.from([0, 2, 0, 4]);
  const records = packets.flatMap((packet) => {
    const kept = packet.subarray(0, snapBytes);
    return [u32(0, 0, kept.length, packet.length), kept];
  });
  return Buffer.concat([u32(0xa1b2c3d4), version, u32(0, 0, snapBytes, link), ...records]);
}

/** With a block in between that no reader knows. */
export function pcapng(packets: readonly Buffer[], options: FileOptions = {}): Buffer {
  const { link = 101, isLittle = true, snapBytes = 262_144, comments = new Map() } = options;
  const u32 = (...numbers: readonly number[]): Buffer => wordsOf(numbers, isLittle);
  const half = (number: number): Buffer => (isLittle ? Buffer.from([number & 255, number >> 8]) : u16(number));
  const padded = (bytes: Buffer): Buffer => Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)]);
  const block = (type: number, body: Buffer): Buffer => {
    const whole = padded(body);
    return Buffer.concat([u32(type, whole.length + 12), whole, u32(whole.length + 12)]);
  };
  const section = block(0x0a0d0d0a, Buffer.concat([u32(0x1a2b3c4d), half(1), half(0), u32(0xffff_ffff, 0xffff_ffff)]));
  const description = block(1, Buffer.concat([half(link), half(0), u32(snapBytes)]));
  const enhanced = packets.map((packet, i) => {
    const kept = packet.subarray(0, snapBytes);
    const comment = comments.get(i);
    const text = Buffer.from(comment ?? "");
    const noted = comment === undefined ? [] : [half(1), half(text.length), padded(text), half(0), half(0)];
    return block(6, Buffer.concat([u32(0, 0, 0, kept.length, packet.length), padded(kept), ...noted]));
  });
  return Buffer.concat([section, description, block(0xbad, Buffer.alloc(3)), ...enhanced]);
}

function wordsOf(numbers: readonly number[], isLittle: boolean): Buffer {
  const bytes = Buffer.alloc(numbers.length * 4);
  for (const [i, number] of numbers.entries()) {
    if (isLittle) bytes.writeUInt32LE(number >>> 0, i * 4);
    else bytes.writeUInt32BE(number >>> 0, i * 4);
  }
  return bytes;
}

/** What one TCP connection says, as packets: opened, and each turn in one segment that acknowledges what came before. */
export class RecordedConnection {
  readonly #client: PacketOptions;
  readonly #device: PacketOptions;
  readonly #packets: Buffer[];
  readonly #next = { client: 1000, device: 5_000_000 };

  /** Adds to `packets`. */
  constructor(packets: Buffer[], devicePort: number, clientPort = 50_000) {
    this.#packets = packets;
    this.#client = { from: "10.0.0.1", to: "10.0.0.2", fromPort: clientPort, toPort: devicePort };
    this.#device = { from: "10.0.0.2", to: "10.0.0.1", fromPort: devicePort, toPort: clientPort };
    packets.push(
      tcpPacket({ ...this.#client, sequence: this.#next.client - 1, flags: "S" }),
      tcpPacket({ ...this.#device, sequence: this.#next.device - 1, acknowledged: this.#next.client, flags: "SA" }),
    );
  }

  says(who: "client" | "device", payload: Buffer): void {
    const [ends, other] = who === "client" ? ([this.#client, "device"] as const) : ([this.#device, "client"] as const);
    this.#packets.push(tcpPacket({ ...ends, sequence: this.#next[who], acknowledged: this.#next[other], payload }));
    this.#next[who] += payload.length;
  }
}
