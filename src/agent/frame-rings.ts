import { LEAST_RING_BYTES, Ring, recordIn, ringMemory } from "../lib/capture/ring.ts";
import type { Wire, WireRecord } from "../model/wire.ts";

/** Memory for frames. */
export interface FrameMemory {
  /** Of one connection, which sources that share it have together; 0: nothing is kept. */
  readonly sourceBytes: number;
  /** Of all together. */
  readonly totalBytes: number;
}

/** A configuration comes in rounds, each with more of its variables: what is expected holds until none has come for so long. */
const EXPECTED_FOR_MS = 60_000;

/** The ring of the connections that a source shares with those of the same key. */
export interface RingMember {
  /** Undefined: nothing is kept, since there is no memory for it. */
  readonly wire: Wire | undefined;
  readonly bytes: number;
  record(): WireRecord;
  /** Idempotent; the last one frees the memory. */
  leave(): void;
}

interface Shared {
  readonly key: string;
  readonly ring: Ring;
  members: number;
  /** Another thread writes it, until its next connection. */
  isElsewhere: boolean;
}

const NOTHING: WireRecord = { events: [], peers: new Map(), dropped: 0 };
const NO_MEMBER: RingMember = { wire: undefined, bytes: 0, record: () => NOTHING, leave: () => {} };

/** A source at the ring of its connections. */
class Member implements RingMember {
  readonly wire: Wire;
  readonly #shared: Shared;
  readonly #rings: { move(): void; leave(): void };
  #isMember = true;

  constructor(shared: Shared, rings: { move(): void; leave(): void }) {
    this.#shared = shared;
    this.#rings = rings;
    shared.members++;
    const { ring } = shared;
    this.wire = {
      opening: (peer) => ring.opening(peer),
      memory: () => {
        shared.isElsewhere = true;
        rings.move();
        return ring.memory();
      },
    };
  }

  get bytes(): number {
    return this.#shared.ring.memory().byteLength;
  }

  record(): WireRecord {
    return recordIn(this.#shared.ring.memory());
  }

  leave(): void {
    if (!this.#isMember) return;
    this.#isMember = false;
    this.#rings.leave();
  }
}

/**
 * A ring for each connection key. While all of them fit, each has as much as one may have; where they do not, all have the same: the largest
 * power of two with which they do. Those that have more or less then move, one in each turn of the event loop, with their newest frames; those
 * whose connection is in another thread with their next connection.
 */
export class FrameRings {
  readonly #memory: FrameMemory;
  readonly #rings = new Map<string, Shared>();
  #expected = 0;
  #settling: NodeJS.Timeout | undefined;
  #moving: NodeJS.Immediate | undefined;

  constructor(memory: FrameMemory) {
    this.#memory = memory;
  }

  /** Of all rings. */
  get bytes(): number {
    return [...this.#rings.values()].reduce((sum, { ring }) => sum + ring.memory().byteLength, 0);
  }

  /**
   * This many rings there will be at most once those have joined that are about to, within a minute: what all of them may have is given to the
   * first at once, since memory that rings have moved out of stays with the process.
   */
  expect(rings: number): void {
    this.#expected = Math.min(rings, Math.floor(this.#memory.totalBytes / LEAST_RING_BYTES));
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => this.#settle(), EXPECTED_FOR_MS);
    this.#settling.unref();
  }

  #settle(): void {
    this.#expected = 0;
    this.#moving ??= setImmediate(() => this.#moveNext());
  }

  /** The text of a key may hold secrets: it stays here. */
  join(key: string): RingMember {
    const shared = this.#rings.get(key) ?? this.#make(key);
    if (!shared) return NO_MEMBER;
    return new Member(shared, { move: () => this.#fit(shared), leave: () => this.#leave(shared) });
  }

  #leave(shared: Shared): void {
    shared.members--;
    if (shared.members === 0) this.#rings.delete(shared.key);
  }

  #make(key: string): Shared | undefined {
    const bytes = this.#share(this.#rings.size + 1);
    if (bytes < LEAST_RING_BYTES) return undefined;
    const shared: Shared = { key, ring: new Ring(ringMemory(bytes)), members: 0, isElsewhere: false };
    this.#rings.set(key, shared);
    this.#moving ??= setImmediate(() => this.#moveNext());
    return shared;
  }

  /** What each of so many rings may have, or of those that are expected. */
  #share(atLeast: number): number {
    const { sourceBytes, totalBytes } = this.#memory;
    const rings = Math.max(atLeast, this.#expected);
    if (rings * sourceBytes <= totalBytes) return sourceBytes;
    return Math.min(sourceBytes, 2 ** Math.floor(Math.log2(totalBytes / rings)));
  }

  #moveNext(): void {
    this.#moving = undefined;
    const share = this.#share(this.#rings.size);
    for (const shared of this.#rings.values()) {
      if (shared.isElsewhere || shared.ring.memory().byteLength === share) continue;
      this.#fit(shared);
      this.#moving = setImmediate(() => this.#moveNext());
      return;
    }
  }

  #fit({ ring }: Shared): void {
    const share = this.#share(this.#rings.size);
    if (ring.memory().byteLength !== share) ring.move(ringMemory(share));
  }
}
