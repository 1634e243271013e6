import { type End, endText } from "../../src/model/address.ts";
import type { Conversation, Piece } from "../../src/model/workbench.ts";
import type { Datagram, Segment } from "./network.ts";

/** Conversations that are followed at once; the one that began first is given up for a new one. */
const MAX_CONVERSATIONS = 10_000;
/** What waits for an earlier segment, of one end and of all. */
const MAX_HELD_BYTES = 1024 * 1024;
const MAX_ALL_HELD_BYTES = 16 * 1024 * 1024;
const MAX_HELD_SEGMENTS = 1024;
/** Beyond this a sequence number belongs to another connection between the same ports. */
const FAR = 1 << 26;

/** One end of a TCP connection: puts its segments in order. */
class Sender {
  #expected: number | undefined;
  #held: { readonly sequence: number; readonly payload: Buffer; readonly missingBytes: number }[] = [];
  #lost = 0;
  heldBytes = 0;

  begin(sequence: number): void {
    this.#expected = sequence;
  }

  /** True: a segment cannot belong to what this end has sent. */
  isElsewhere(sequence: number): boolean {
    return this.#expected !== undefined && Math.abs((sequence - this.#expected) | 0) > FAR;
  }

  /** Adds a segment; gives the bytes that are in order now, each with what is lost before it. */
  add(sequence: number, payload: Buffer, missingBytes: number): Ordered[] {
    this.#expected ??= sequence;
    if (payload.length + missingBytes === 0) return [];
    if (((sequence - this.#expected) | 0) > 0) {
      this.#held.push({ sequence, payload: Buffer.from(payload), missingBytes });
      this.#held.sort((a, b) => (a.sequence - b.sequence) | 0);
      this.heldBytes += payload.length;
      const isTooMuch = this.heldBytes > MAX_HELD_BYTES || this.#held.length > MAX_HELD_SEGMENTS;
      return isTooMuch ? this.flush() : [];
    }
    const ordered: Ordered[] = [];
    this.#take(sequence, payload, missingBytes, ordered);
    this.#drain(ordered);
    return ordered;
  }

  /** The other end has all before `sequence`: what is missing of it was not captured. */
  acknowledge(sequence: number): Ordered[] {
    const ordered: Ordered[] = [];
    for (let next = this.#held[0]; next && ((sequence - next.sequence) | 0) > 0; next = this.#held[0]) {
      this.#skipTo(next.sequence);
      this.#drain(ordered);
    }
    return ordered;
  }

  /** What waits for segments that do not come. */
  flush(): Ordered[] {
    const ordered: Ordered[] = [];
    for (let next = this.#held[0]; next; next = this.#held[0]) {
      this.#skipTo(next.sequence);
      this.#drain(ordered);
    }
    return ordered;
  }

  /** Bytes at the end that the capture has not. */
  get lostAtEnd(): number {
    return this.#lost;
  }

  #skipTo(sequence: number): void {
    this.#lost += (sequence - (this.#expected ?? sequence)) | 0;
    this.#expected = sequence;
  }

  #drain(ordered: Ordered[]): void {
    for (let next = this.#held[0]; next && ((next.sequence - (this.#expected ?? 0)) | 0) <= 0; next = this.#held[0]) {
      this.#held.shift();
      this.heldBytes -= next.payload.length;
      this.#take(next.sequence, next.payload, next.missingBytes, ordered);
    }
  }

  /** Of what was sent twice, the first counts. */
  #take(sequence: number, payload: Buffer, missingBytes: number, ordered: Ordered[]): void {
    const expected = this.#expected ?? sequence;
    const seen = (expected - sequence) | 0;
    const end = (sequence + payload.length + missingBytes) | 0;
    if (((end - expected) | 0) <= 0) return;
    if (seen < payload.length) {
      ordered.push({ bytes: Buffer.from(payload.subarray(seen)), lostBytes: this.#lost });
      this.#lost = 0;
    }
    this.#lost += missingBytes - Math.max(0, seen - payload.length);
    this.#expected = end >>> 0;
  }
}

interface Ordered {
  readonly bytes: Buffer;
  readonly lostBytes: number;
}

interface Followed {
  readonly conversation: Conversation;
  readonly first: Sender;
  readonly second: Sender;
  hasBytes: boolean;
}

/** Puts what a capture's packets carry in order. Keeps a bounded part of it. */
export class Streams {
  readonly #followed = new Map<string, Followed>();
  readonly #pieces: Piece[] = [];
  #conversations = 0;
  #heldBytes = 0;
  #lostBytes = 0;

  /** Bytes that the capture has not, so far. */
  get lostBytes(): number {
    return this.#lostBytes;
  }

  get conversations(): number {
    return this.#conversations;
  }

  /** What is in order since the last call. */
  take(): readonly Piece[] {
    return this.#pieces.splice(0);
  }

  addDatagram(datagram: Datagram): void {
    const followed = this.#follow("udp", datagram.from, datagram.to, undefined);
    this.#lostBytes += datagram.missingBytes;
    this.#pieces.push({
      conversation: followed.conversation,
      isFromFirst: isSame(datagram.from, followed.conversation.first),
      bytes: Buffer.from(datagram.payload),
      lostBytes: 0,
    });
  }

  addSegment(segment: Segment): void {
    const { from, to, sequence, acknowledged, isSyn, isReset, payload, missingBytes } = segment;
    const followed = this.#connectionOf(segment);
    const isFromFirst = isSame(from, followed.conversation.first);
    const [own, other] = isFromFirst ? [followed.first, followed.second] : [followed.second, followed.first];
    if (isSyn) own.begin((sequence + 1) >>> 0);
    if (isReset) return;
    const heldBefore = own.heldBytes + other.heldBytes;
    const begin = isSyn ? (sequence + 1) >>> 0 : sequence;
    // What this end acknowledges was sent before what it says now.
    if (acknowledged !== undefined) this.#put(followed, !isFromFirst, other.acknowledge(acknowledged));
    this.#put(followed, isFromFirst, own.add(begin, payload, missingBytes));
    this.#heldBytes += own.heldBytes + other.heldBytes - heldBefore;
    if (this.#heldBytes > MAX_ALL_HELD_BYTES) this.#giveUp(keyOf("tcp", from, to), followed);
  }

  /** Everything that still waits, in the order in which the conversations began. */
  end(): void {
    for (const followed of this.#followed.values()) {
      this.#flush(followed);
      this.#lostBytes += followed.first.lostAtEnd + followed.second.lostAtEnd;
    }
    this.#followed.clear();
  }

  #connectionOf({ from, to, sequence, acknowledged, isSyn }: Segment): Followed {
    const key = keyOf("tcp", from, to);
    const known = this.#followed.get(key);
    const isAnswer = acknowledged !== undefined;
    const own = known && (isSame(from, known.conversation.first) ? known.first : known.second);
    const isNew = isSyn ? !isAnswer && known?.hasBytes === true : own?.isElsewhere(sequence) === true;
    if (known && isNew) this.#giveUp(key, known);
    // Who answers a SYN is the one that was asked.
    const [first, second] = isSyn && isAnswer ? [to, from] : [from, to];
    return this.#follow("tcp", first, second, isSyn);
  }

  #follow(transport: "tcp" | "udp", first: End, second: End, isOpening: boolean | undefined): Followed {
    const key = keyOf(transport, first, second);
    const known = this.#followed.get(key);
    if (known) return known;
    const conversation = { id: ++this.#conversations, transport, first, second, isOpeningSeen: isOpening === true };
    const followed: Followed = { conversation, first: new Sender(), second: new Sender(), hasBytes: false };
    this.#followed.set(key, followed);
    const [oldest] = this.#followed;
    if (this.#followed.size > MAX_CONVERSATIONS && oldest) this.#giveUp(...oldest);
    return followed;
  }

  #giveUp(key: string, followed: Followed): void {
    this.#heldBytes -= followed.first.heldBytes + followed.second.heldBytes;
    this.#flush(followed);
    this.#lostBytes += followed.first.lostAtEnd + followed.second.lostAtEnd;
    this.#followed.delete(key);
  }

  #flush(followed: Followed): void {
    this.#put(followed, true, followed.first.flush());
    this.#put(followed, false, followed.second.flush());
  }

  #put(followed: Followed, isFromFirst: boolean, ordered: readonly Ordered[]): void {
    for (const { bytes, lostBytes } of ordered) {
      followed.hasBytes = true;
      this.#lostBytes += lostBytes;
      this.#pieces.push({ conversation: followed.conversation, isFromFirst, bytes, lostBytes });
    }
  }
}

const isSame = (one: End, other: End): boolean => one.port === other.port && one.address === other.address;

/** The same for both directions. */
function keyOf(transport: string, one: End, other: End): string {
  const [a, b] = [endText(one), endText(other)];
  return a < b ? `${transport} ${a} ${b}` : `${transport} ${b} ${a}`;
}
