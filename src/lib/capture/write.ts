import type { WireEvent, WirePeer, Withheld } from "../../model/wire.ts";
import { addressBytes } from "./addresses.ts";
import { type PacketEnd, TCP, tcpPacket, udpPacket } from "./frames.ts";
import { pcapngHead, pcapngPacket } from "./pcapng.ts";

/** What a capture says of where it comes from. */
export interface CaptureOrigin {
  /** Of the collector. */
  readonly version: string;
  readonly source: string;
  readonly type: string;
  /** Port by which tools know the protocol; undefined: the device's own is written. */
  readonly standardPort: number | undefined;
}

/** Of one packet: an IP packet holds no more than 65,535 bytes. */
const MAX_PAYLOAD_BYTES = 60_000;
/** So much is sent without an answer before an acknowledgement is written. */
const UNACKNOWLEDGED_BYTES = 32_768;
/** Ports of this machine: one for each connection, from the dynamic ones (RFC 6335). */
const [FIRST_PORT, PORTS] = [49_152, 16_384];
/** The clock is taken for set from here on; less is its usual correction. */
const CLOCK_SET_MS = 500;
const CLOCK_DRIFT_MS = 5;

/** Connections that are remembered, the last ones. */
const MAX_CONVERSATIONS = 64;

const OURS = [10, 0, 0, 1];
const OURS_OTHER = [10, 0, 0, 2];

const WITHHELD_WORDS: Readonly<Record<Withheld, string>> = {
  log_in: "this frame logs in, and may hold a password",
  tls: "this is inside TLS",
  encrypted: "this message is encrypted",
  secret: "this frame holds a secret of the data source",
};

/** What is known of a connection that is written. */
interface Conversation {
  readonly isTcp: boolean;
  readonly ours: PacketEnd;
  readonly device: PacketEnd;
  /** Who opened it. */
  readonly client: "out" | "in";
  /** For its next packet. */
  comments: string[];
  /** Its first packet is the attempt to open it. */
  readonly isWhole: boolean;
  /** What came in is passed over until something goes out: it may begin in the middle of a message. */
  isWaiting: boolean;
  readonly unacknowledged: { out: number; in: number };
  /** Has said that it sends no more. */
  readonly ended: { out: boolean; in: boolean };
}

/**
 * Writes events of connections as packets of a pcapng file: synthetic TCP or UDP over IP, so that tools take the protocol apart. The device
 * has its own address and the protocol's standard port, this machine 10.0.0.1. Bytes that are withheld are missing at the end of their
 * packet, which says how long it is and why.
 */
export class CaptureWriter {
  readonly #origin: CaptureOrigin;
  readonly #conversations = new Map<number, Conversation>();
  /** Of the clock, by the monotonic one. */
  #anchor: { wallMs: number; monotonicMs: number } | undefined;

  constructor(origin: CaptureOrigin) {
    this.#origin = origin;
  }

  /** The beginning of the file. */
  head(): Buffer {
    const { version, source, type } = this.#origin;
    return pcapngHead(
      `collector ${version}`,
      `What the collector exchanged with the device of the data source ${source} (${type}), as its sockets took and gave it. ` +
        "Headers of IP, TCP and UDP are made up; this machine is 10.0.0.1 or fd00::1. Passwords and what is encrypted are left out.",
    );
  }

  /** The packets of one event; empty: it has none. In the order of the events of one source. */
  take(event: WireEvent, peer: WirePeer | undefined): Buffer {
    const known = this.#conversations.get(event.connection) ?? (peer && this.#begin(event, peer));
    if (!known) return Buffer.alloc(0);
    const atMs = this.#timeOf(event, known);
    const write = (packet: ReturnType<typeof tcpPacket>, direction: "in" | "out", comments: readonly string[] = []): Buffer =>
      pcapngPacket(packet, atMs, direction, [...known.comments.splice(0), ...comments]);
    const blocks = known.isTcp ? this.#tcp(event, known, write) : this.#udp(event, known, write);
    return Buffer.concat(blocks);
  }

  #begin(event: WireEvent, { transport, address, port, listeningPort }: WirePeer): Conversation {
    const { standardPort } = this.#origin;
    const devicePort = listeningPort === undefined ? (standardPort ?? port) : port;
    const ownPort = listeningPort ?? FIRST_PORT + (event.connection % PORTS);
    const raw = addressBytes(address);
    const comments: string[] = [];
    if (devicePort !== port) comments.push(`The device's port ${port} is written as ${devicePort}, by which tools know the protocol.`);
    const isFirst = event.kind === "opening";
    if (!isFirst) comments.push("What this connection exchanged before is kept no more.");
    const conversation: Conversation = {
      isTcp: transport === "tcp",
      ours: { address: ownAddress(raw), port: ownPort },
      device: { address: raw, port: devicePort },
      client: listeningPort === undefined ? "out" : "in",
      comments,
      isWhole: isFirst,
      isWaiting: !isFirst && event.offset + event.otherOffset > 0,
      unacknowledged: { out: 0, in: 0 },
      ended: { out: false, in: false },
    };
    this.#conversations.set(event.connection, conversation);
    const [oldest] = this.#conversations.keys();
    if (this.#conversations.size > MAX_CONVERSATIONS && oldest !== undefined) this.#conversations.delete(oldest);
    return conversation;
  }

  /** Differences are those of the monotonic clock; a clock that was set shows as such. */
  #timeOf({ kind, wallMs, monotonicMs }: WireEvent, conversation: Conversation): number {
    this.#anchor ??= { wallMs, monotonicMs };
    const expected = this.#anchor.wallMs + monotonicMs - this.#anchor.monotonicMs;
    const byMs = wallMs - expected;
    if (Math.abs(byMs) < CLOCK_DRIFT_MS) return expected;
    this.#anchor = { wallMs, monotonicMs };
    if (Math.abs(byMs) >= CLOCK_SET_MS && kind !== "opening")
      conversation.comments.push(`The clock of this machine was set by ${(byMs / 1000).toFixed(1)} s.`);
    return wallMs;
  }

  #udp({ kind, direction, bytes, length, withheld }: WireEvent, { ours, device }: Conversation, write: Write): readonly Buffer[] {
    if (kind !== "data") return [];
    const [from, to] = direction === "out" ? [ours, device] : [device, ours];
    return [write(udpPacket(from, to, bytes, length), direction, missingWords(withheld, bytes.length, length))];
  }

  #tcp(event: WireEvent, known: Conversation, write: Write): readonly Buffer[] {
    switch (event.kind) {
      case "opening":
        return [write(segmentOf(known, known.client, TCP.syn, 0, 0), known.client)];
      case "opened":
        return known.isWhole ? this.#opened(known, write) : [];
      case "data":
        return this.#data(event, known, write);
      case "ended":
        return this.#ended(event, known, write);
    }
  }

  #opened(known: Conversation, write: Write): readonly Buffer[] {
    const { client } = known;
    const server = other(client);
    return [write(segmentOf(known, server, TCP.syn | TCP.ack, 0, 1), server), write(segmentOf(known, client, TCP.ack, 1, 1), client)];
  }

  #data(event: WireEvent, known: Conversation, write: Write): readonly Buffer[] {
    const { direction, offset, otherOffset, bytes, length, withheld } = event;
    if (known.isWaiting && direction === "in" && otherOffset > 0) return [];
    known.isWaiting = false;
    const blocks: Buffer[] = [];
    const acknowledged = otherOffset + 1 + (known.ended[other(direction)] ? 1 : 0);
    for (let at = 0; at < length; at += MAX_PAYLOAD_BYTES) {
      const part = bytes.subarray(at, at + MAX_PAYLOAD_BYTES);
      const partLength = Math.min(MAX_PAYLOAD_BYTES, length - at);
      const packet = segmentOf(known, direction, TCP.psh | TCP.ack, offset + 1 + at, acknowledged, part, partLength);
      blocks.push(write(packet, direction, missingWords(withheld, part.length, partLength)));
      known.unacknowledged[direction] += partLength;
      known.unacknowledged[other(direction)] = 0;
      if (known.unacknowledged[direction] < UNACKNOWLEDGED_BYTES) continue;
      known.unacknowledged[direction] = 0;
      blocks.push(write(segmentOf(known, other(direction), TCP.ack, acknowledged, offset + 1 + at + partLength), other(direction)));
    }
    return blocks;
  }

  #ended({ ending, offset, otherOffset, direction }: WireEvent, known: Conversation, write: Write): readonly Buffer[] {
    const answering = other(direction);
    const acknowledged = otherOffset + 1 + (known.ended[answering] ? 1 : 0);
    if (ending === "unanswered") return [];
    if (ending === "refused") return [write(segmentOf(known, direction, TCP.rst | TCP.ack, 0, 1), direction)];
    if (ending === "reset_in") return [write(segmentOf(known, direction, TCP.rst | TCP.ack, offset + 1, acknowledged), direction)];
    if (known.ended[direction]) return [];
    known.ended[direction] = true;
    return [
      write(segmentOf(known, direction, TCP.fin | TCP.ack, offset + 1, acknowledged), direction),
      write(segmentOf(known, answering, TCP.ack, acknowledged, offset + 2), answering),
    ];
  }
}

type Write = (packet: ReturnType<typeof tcpPacket>, direction: "in" | "out", comments?: readonly string[]) => Buffer;

const NOTHING = new Uint8Array(0);
const other = (direction: "in" | "out"): "in" | "out" => (direction === "in" ? "out" : "in");

function segmentOf(
  { ours, device }: Conversation,
  direction: "in" | "out",
  flags: number,
  sequence: number,
  acknowledged: number,
  payload: Uint8Array = NOTHING,
  length = 0,
): ReturnType<typeof tcpPacket> {
  const [from, to] = direction === "out" ? [ours, device] : [device, ours];
  return tcpPacket({ from, to, flags, sequence, acknowledged }, payload, length);
}

function ownAddress(device: Uint8Array): Uint8Array {
  if (device.length === 16) return Uint8Array.of(0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
  return Uint8Array.from(device.every((byte, i) => byte === OURS[i]) ? OURS_OTHER : OURS);
}

function missingWords(withheld: Withheld | undefined, kept: number, length: number): readonly string[] {
  if (kept >= length) return [];
  const why = withheld ? WITHHELD_WORDS[withheld] : "the frame is too long for the memory that the source has";
  return [`${length - kept} bytes are left out: ${why}.`];
}
