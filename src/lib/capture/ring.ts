import {
  WIRE_ENDINGS,
  WITHHELD,
  type Wire,
  type WireEnding,
  type WireEvent,
  type WirePeer,
  type WireRecord,
  type WireTrace,
  type Withheld,
} from "../../model/wire.ts";
import { addressBytes, addressText } from "./addresses.ts";

/**
 * Layout of a ring's memory, in 32-bit words. Head: odd while something is written; place of the oldest event; place of the next; events;
 * number of the next; events dropped; last connection. Then the peers of the last connections, then the events.
 */
const HEAD = { version: 0, tail: 1, next: 2, count: 3, number: 4, dropped: 5, connection: 6 } as const;
const HEAD_WORDS = 8;
/** Connections whose peer is known. */
const PEERS = 16;
/** Number, flags, ports, address. */
const PEER_WORDS = 8;
const EVENTS_AT = (HEAD_WORDS + PEERS * PEER_WORDS) * 4;
/** Of an event, before its bytes: eight words, and two times. */
const EVENT_BYTES = 48;
const KINDS = ["opening", "opened", "data", "ended"] as const;
const ASK_EPOCH_MS = 50;
const DATA = KINDS.indexOf("data");
/** Looks at a ring that is written to in another thread meanwhile. */
const MAX_LOOKS = 50;

/** Least memory of a ring: enough for some short frames. */
export const LEAST_RING_BYTES = 4096;

/** Memory of an empty ring. `bytes`: at least `LEAST_RING_BYTES`, a multiple of 8. */
export const ringMemory = (bytes: number): SharedArrayBuffer => new SharedArrayBuffer(bytes);

/**
 * The last events of the connections of one source, in memory that another thread may read at any time, also after this one has died. One
 * thread at a time writes. The oldest give way; a frame longer than half of the ring is cut. Nothing is allocated for an event.
 */
export class Ring implements Wire {
  #words: Int32Array;
  #times: Float64Array;
  #bytes: Uint8Array;
  #capacity: number;
  readonly #now: () => number;
  readonly #epoch: () => number;
  /** When the epoch was asked for last, and by how much it was ahead of the monotonic clock. */
  #askedMs = Number.NaN;
  #aheadMs = 0;

  /** `now`: monotonic ms. `epoch`: epoch ms. */
  constructor(memory: SharedArrayBuffer, now: () => number = () => performance.now(), epoch: () => number = Date.now) {
    this.#now = now;
    this.#epoch = epoch;
    this.#words = new Int32Array(memory);
    this.#times = new Float64Array(memory);
    this.#bytes = new Uint8Array(memory);
    this.#capacity = memory.byteLength - EVENTS_AT;
    // Its last writer died in the middle of an event.
    if ((this.#head("version") & 1) === 1) {
      this.#words.fill(0, HEAD.tail, HEAD.number);
      this.#setHead("version", this.#head("version") + 1);
    }
  }

  memory(): SharedArrayBuffer {
    return this.#words.buffer as SharedArrayBuffer;
  }

  /** Goes on in other memory, with as many of the newest events as it takes. */
  move(memory: SharedArrayBuffer): void {
    const { events, peers, dropped } = recordIn(this.memory());
    const [number, connection] = [this.#head("number"), this.#head("connection")];
    this.#words = new Int32Array(memory);
    this.#times = new Float64Array(memory);
    this.#bytes = new Uint8Array(memory);
    this.#capacity = memory.byteLength - EVENTS_AT;
    this.#setHead("dropped", dropped);
    this.#setHead("connection", connection);
    for (const [one, peer] of peers) this.#keepPeer(one, peer);
    for (const event of events) {
      this.#setHead("number", event.number);
      this.#append(event, event.wallMs, event.monotonicMs);
    }
    this.#setHead("number", number);
  }

  opening(peer: WirePeer): WireTrace {
    const connection = (this.#head("connection") + 1) >>> 0;
    this.#setHead("connection", connection);
    this.#begin();
    this.#keepPeer(connection, peer);
    this.#end();
    const trace = new Trace(connection, (event) => {
      const nowMs = this.#now();
      this.#append(event, this.#wallAt(nowMs), nowMs);
    });
    trace.begin();
    return trace;
  }

  /** Asked for seldom: a call costs as much as the rest of an event. */
  #wallAt(nowMs: number): number {
    if (!(nowMs - this.#askedMs < ASK_EPOCH_MS)) {
      this.#askedMs = nowMs;
      this.#aheadMs = this.#epoch() - nowMs;
    }
    return nowMs + this.#aheadMs;
  }

  #append(event: Appended, wallMs: number, monotonicMs: number): void {
    const kept = Math.min(event.withheld === undefined ? event.bytes.length : 0, (this.#capacity >> 1) - EVENT_BYTES);
    const size = (EVENT_BYTES + kept + 7) & ~7;
    this.#begin();
    const at = this.#makeRoom(size);
    const word = (EVENTS_AT + at) >> 2;
    const [words, times] = [this.#words, this.#times];
    words[word] = size;
    words[word + 1] =
      (event.kind === "data" ? DATA : KINDS.indexOf(event.kind)) |
      (event.direction === "in" ? 1 << 8 : 0) |
      ((event.withheld === undefined ? 0 : WITHHELD.indexOf(event.withheld) + 1) << 16) |
      ((event.ending === undefined ? 0 : WIRE_ENDINGS.indexOf(event.ending) + 1) << 24);
    words[word + 2] = event.connection;
    words[word + 3] = event.offset;
    words[word + 4] = event.otherOffset;
    words[word + 5] = event.length;
    words[word + 6] = kept;
    words[word + 7] = this.#head("number");
    times[(word + 8) >> 1] = wallMs;
    times[(word + 10) >> 1] = monotonicMs;
    if (kept > 0) this.#bytes.set(event.bytes.length > kept ? event.bytes.subarray(0, kept) : event.bytes, EVENTS_AT + at + EVENT_BYTES);
    this.#setHead("next", at + size);
    this.#setHead("count", this.#head("count") + 1);
    this.#setHead("number", this.#head("number") + 1);
    this.#end();
  }

  /** Drops the oldest until `size` bytes follow each other; gives where. */
  #makeRoom(size: number): number {
    let at = this.#head("next");
    if (at + size > this.#capacity) {
      while (this.#head("count") > 0 && this.#head("tail") >= at) this.#dropOldest();
      if (at < this.#capacity) this.#words[(EVENTS_AT + at) >> 2] = 0;
      at = 0;
    }
    while (this.#head("count") > 0 && this.#head("tail") >= at && this.#head("tail") < at + size) this.#dropOldest();
    if (this.#head("count") === 0) this.#setHead("tail", at);
    return at;
  }

  #dropOldest(): void {
    const tail = this.#head("tail");
    const next = tail + (this.#words[(EVENTS_AT + tail) >> 2] ?? 0);
    this.#setHead("count", this.#head("count") - 1);
    this.#setHead("dropped", this.#head("dropped") + 1);
    const isEnd = this.#head("count") > 0 && (next >= this.#capacity || this.#words[(EVENTS_AT + next) >> 2] === 0);
    this.#setHead("tail", isEnd ? 0 : next);
  }

  #keepPeer(connection: number, { transport, address, port, listeningPort }: WirePeer): void {
    const at = HEAD_WORDS + (connection % PEERS) * PEER_WORDS;
    const raw = addressBytes(address);
    this.#words[at] = connection;
    this.#words[at + 1] = (transport === "udp" ? 1 : 0) | (raw.length << 8) | (listeningPort === undefined ? 0 : 1 << 16);
    this.#words[at + 2] = port;
    this.#words[at + 3] = listeningPort ?? 0;
    this.#bytes.set(raw, (at + 4) * 4);
  }

  #begin(): void {
    Atomics.add(this.#words, HEAD.version, 1);
  }

  #end(): void {
    Atomics.add(this.#words, HEAD.version, 1);
  }

  #head(field: keyof typeof HEAD): number {
    return (this.#words[HEAD[field]] ?? 0) >>> 0;
  }

  #setHead(field: keyof typeof HEAD, value: number): void {
    this.#words[HEAD[field]] = value;
  }
}

type Appended = Omit<WireEvent, "number" | "wallMs" | "monotonicMs">;
const NOTHING = new Uint8Array(0);

/** One connection. The event is the same object each time: it is copied at once. */
class Trace implements WireTrace {
  readonly #append: (event: Appended) => void;
  readonly #event: { -readonly [K in keyof Appended]: Appended[K] };
  #sent = 0;
  #received = 0;

  constructor(connection: number, append: (event: Appended) => void) {
    this.#append = append;
    this.#event = {
      connection,
      kind: "opening",
      direction: "out",
      offset: 0,
      otherOffset: 0,
      length: 0,
      bytes: NOTHING,
      withheld: undefined,
      ending: undefined,
    };
  }

  begin(): void {
    this.#note("opening", "out", NOTHING);
  }

  opened(): void {
    this.#note("opened", "out", NOTHING);
  }

  data(direction: "out" | "in", bytes: Uint8Array, withheld?: Withheld): void {
    this.#event.withheld = withheld;
    this.#note("data", direction, bytes);
    this.#event.withheld = undefined;
    if (direction === "out") this.#sent = (this.#sent + bytes.length) >>> 0;
    else this.#received = (this.#received + bytes.length) >>> 0;
  }

  ended(how: WireEnding): void {
    this.#event.ending = how;
    this.#note("ended", how === "fin_out" || how === "unanswered" ? "out" : "in", NOTHING);
    this.#event.ending = undefined;
  }

  #note(kind: Appended["kind"], direction: "out" | "in", bytes: Uint8Array): void {
    const event = this.#event;
    const isOut = direction === "out";
    event.kind = kind;
    event.direction = direction;
    event.offset = isOut ? this.#sent : this.#received;
    event.otherOffset = isOut ? this.#received : this.#sent;
    event.length = bytes.length;
    event.bytes = bytes;
    this.#append(event);
    event.bytes = NOTHING;
  }
}

/** What a ring holds, as of one moment; empty where its writer died in the middle of an event. */
export function recordIn(memory: SharedArrayBuffer): WireRecord {
  const shared = new Int32Array(memory);
  for (let look = 0; look < MAX_LOOKS; look++) {
    const before = Atomics.load(shared, HEAD.version);
    if ((before & 1) === 1) continue;
    const copy = memory.slice(0);
    if (Atomics.load(shared, HEAD.version) === before) return decode(new Int32Array(copy), new Float64Array(copy), new Uint8Array(copy));
  }
  return { events: [], peers: new Map(), dropped: 0 };
}

function decode(words: Int32Array, times: Float64Array, bytes: Uint8Array): WireRecord {
  const word = (at: number): number => (words[at] ?? 0) >>> 0;
  const events: WireEvent[] = [];
  let at = word(HEAD.tail);
  for (let left = word(HEAD.count); left > 0; left--) {
    if (EVENTS_AT + at >= bytes.length || word((EVENTS_AT + at) >> 2) === 0) at = 0;
    const from = (EVENTS_AT + at) >> 2;
    const [size, flags, kept] = [word(from), word(from + 1), word(from + 6)];
    const start = EVENTS_AT + at + EVENT_BYTES;
    events.push({
      number: word(from + 7),
      connection: word(from + 2),
      kind: KINDS[flags & 0xff] ?? "data",
      direction: ((flags >> 8) & 0xff) === 1 ? "in" : "out",
      offset: word(from + 3),
      otherOffset: word(from + 4),
      length: word(from + 5),
      bytes: bytes.slice(start, start + kept),
      withheld: WITHHELD[((flags >> 16) & 0xff) - 1],
      ending: WIRE_ENDINGS[((flags >> 24) & 0xff) - 1],
      wallMs: times[(from + 8) >> 1] ?? 0,
      monotonicMs: times[(from + 10) >> 1] ?? 0,
    });
    at += size;
  }
  const peers = new Map<number, WirePeer>();
  for (let slot = 0; slot < PEERS; slot++) {
    const from = HEAD_WORDS + slot * PEER_WORDS;
    const flags = word(from + 1);
    if (word(from) === 0) continue;
    const address = addressText(bytes.subarray((from + 4) * 4, (from + 4) * 4 + ((flags >> 8) & 0xff)));
    const isListening = (flags >> 16) & 1;
    peers.set(word(from), {
      transport: flags & 1 ? "udp" : "tcp",
      address,
      port: word(from + 2),
      ...(isListening && { listeningPort: word(from + 3) }),
    });
  }
  return { events, peers, dropped: word(HEAD.dropped) };
}
