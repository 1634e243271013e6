/** What is known of the way to a server. */
export interface LinkState {
  /** Bytes that may be under way at once. */
  readonly windowBytes: number;
  /** Undefined: nothing shows how much the link carries, because it has carried all so far. */
  readonly bytesPerS: number | undefined;
  /** Least time from a message to its acknowledgement; undefined: not known. */
  readonly roundTripMs: number | undefined;
}

/** One message under way. */
export interface Flight {
  readonly bytes: number;
  readonly sentMs: number;
  /** Acknowledged bytes when it was sent, and the time of the acknowledgement before. */
  readonly deliveredBytes: number;
  readonly deliveredMs: number;
}

/** Bounds of a window. Bytes. */
export const LEAST_WINDOW_BYTES = 1024;
export const MOST_WINDOW_BYTES = 2 ** 21;
/** Messages are not made smaller for a slow link: more than a quarter of them would be what all have in common. */
export const LEAST_MESSAGE_BYTES = 512;
/** Before anything is known: a link of 8 kbit/s carries it in 8 s. */
const FIRST_WINDOW_BYTES = 8192;
/** What may wait in the link in addition to what is on its way: enough to keep it busy, and little to wait for. */
const QUEUE_MS = 1000;
/** What an acknowledgement takes longer than the least round trip shows how much the link carries. Less may be chance. */
const SLOW_MS = 500;
/** A message without much weight: what it takes alone is the round trip. */
const LIGHT_BYTES = 512;
/** The greatest bandwidth of the last and the current period holds. Shorter ones may have no message in which the link was full. */
const PERIOD = { ms: 5000, samples: 4 } as const;

/**
 * Bounds the bytes under way over one link, by the bandwidth and the round trips that the acknowledgements show. The window grows with
 * each acknowledgement, at most twofold in a round trip, up to what the link carries in a round trip and a second; a time-out halves it.
 * Bandwidth is measured only while messages wait for the window, or arrive late: else it says how much is sent, not how much is carried.
 * Outlasts connections. Has no timer and no clock of its own: times are monotonic ms.
 */
export class LinkWindow {
  #windowBytes = FIRST_WINDOW_BYTES;
  #underWayBytes = 0;
  #deliveredBytes = 0;
  #deliveredMs = 0;
  /** When something last waited for the window. */
  #waitedMs = Number.NEGATIVE_INFINITY;
  #roundTripMs: number | undefined;
  /** It is that of another request, which the server may answer sooner. */
  #isRoundTripAGuess = true;
  /** Greatest bytes per ms of a message, by period. */
  #best = { now: 0, before: 0 };
  #period = { sinceMs: 0, samples: 0 };
  /** True: the bandwidth is the link's, or only of what was sent over it. */
  #isMeasured = false;

  /** A new connection; what was under way is lost. `roundTripMs`: of its first request and answer. */
  opened(roundTripMs: number): void {
    this.#underWayBytes = 0;
    this.#roundTripMs = Math.max(0, roundTripMs);
    this.#isRoundTripAGuess = true;
    this.#waitedMs = Number.NEGATIVE_INFINITY;
  }

  /** True: one more message may be sent now, of any size: a window that large messages fill badly would leave the link idle. */
  hasRoom(): boolean {
    return this.#underWayBytes < this.#windowBytes;
  }

  /** A message waits because there is no room. */
  waits(nowMs: number): void {
    this.#waitedMs = nowMs;
  }

  sent(bytes: number, nowMs: number): Flight {
    if (this.#underWayBytes === 0) this.#deliveredMs = nowMs;
    this.#underWayBytes += bytes;
    return { bytes, sentMs: nowMs, deliveredBytes: this.#deliveredBytes, deliveredMs: this.#deliveredMs };
  }

  /** The server dropped it: it is not under way any more, and says nothing of the link. */
  gone({ bytes }: Flight): void {
    this.#underWayBytes = Math.max(0, this.#underWayBytes - bytes);
  }

  underWayBytes(): number {
    return this.#underWayBytes;
  }

  acknowledged(flight: Flight, nowMs: number): void {
    this.gone(flight);
    this.#deliveredBytes += flight.bytes;
    this.#deliveredMs = nowMs;
    const tookMs = Math.max(0, nowMs - flight.sentMs);
    this.#learnRoundTrip(flight, tookMs);
    this.#measure(flight, tookMs, nowMs);
    this.#move(flight.bytes);
  }

  /** The connection is lost for a time-out, with no progress for so long: `bytes` are of the message for which all others waited. */
  timedOut(bytes: number, ms: number): void {
    this.#windowBytes = Math.max(LEAST_WINDOW_BYTES, this.#windowBytes >> 1);
    this.#best = { now: this.#best.now / 2, before: this.#best.before / 2 };
    if (bytes <= FIRST_WINDOW_BYTES) return;
    // It was too large for the link as it is now, whatever that was before.
    const most = bytes / Math.max(1, ms) / 2;
    if (this.#isMeasured && this.#bytesPerMs() <= most) return;
    this.#isMeasured = true;
    this.#best = { now: most, before: 0 };
    this.#windowBytes = Math.max(LEAST_WINDOW_BYTES, Math.min(this.#windowBytes, Math.round(this.#aimBytes())));
  }

  /** The time in which the link carries so many bytes once more than twice; undefined: nothing shows that. */
  allowanceMs(bytes: number): number | undefined {
    return this.#isMeasured ? (2 * bytes) / this.#bytesPerMs() : undefined;
  }

  /** Bytes that the link carries in `ms`; undefined: nothing shows that it is slow. */
  bytesIn(ms: number): number | undefined {
    return this.#isMeasured ? Math.max(LEAST_MESSAGE_BYTES, Math.floor(this.#bytesPerMs() * ms)) : undefined;
  }

  /** The same of a link of which nothing is known: what it has carried so far, or what is harmless. */
  provedBytesIn(ms: number): number {
    return this.bytesIn(ms) ?? Math.max(FIRST_WINDOW_BYTES, Math.floor(this.#bytesPerMs() * ms));
  }

  state(): LinkState {
    return {
      windowBytes: this.#windowBytes,
      bytesPerS: this.#isMeasured ? Math.round(this.#bytesPerMs() * 1000) : undefined,
      roundTripMs: this.#roundTripMs,
    };
  }

  #learnRoundTrip({ bytes, sentMs, deliveredMs }: Flight, tookMs: number): void {
    const least = Math.min(this.#roundTripMs ?? tookMs, tookMs);
    const isAlone = sentMs === deliveredMs && bytes <= LIGHT_BYTES;
    // With the least window nothing waits in the link: the way itself has become longer.
    const isLonger = this.#windowBytes === LEAST_WINDOW_BYTES && tookMs > least + QUEUE_MS;
    this.#roundTripMs = isLonger || (this.#isRoundTripAGuess && isAlone) ? tookMs : least;
    if (isAlone) this.#isRoundTripAGuess = false;
  }

  #bytesPerMs(): number {
    return Math.max(this.#best.now, this.#best.before);
  }

  /** What the link carries in a round trip, and what may wait in it. */
  #aimBytes(): number {
    return this.#bytesPerMs() * ((this.#roundTripMs ?? 0) + QUEUE_MS);
  }

  #measure({ sentMs, deliveredBytes, deliveredMs }: Flight, tookMs: number, nowMs: number): void {
    const bytes = this.#deliveredBytes - deliveredBytes;
    // Within one turn of the event loop nothing can be told.
    const ms = Math.max(1, nowMs - deliveredMs);
    const lateMs = tookMs - (this.#roundTripMs ?? 0);
    if (this.#waitedMs >= sentMs) this.#sample(bytes / ms, nowMs);
    else if (lateMs >= SLOW_MS) this.#sample(bytes / Math.max(lateMs, ms - (this.#roundTripMs ?? 0)), nowMs);
    // What is sent bounds it: it may be more, and never less.
    else this.#best.now = Math.max(this.#best.now, bytes / ms);
  }

  #sample(bytesPerMs: number, nowMs: number): void {
    if (!this.#isMeasured) {
      this.#isMeasured = true;
      this.#period = { sinceMs: nowMs, samples: 0 };
    }
    const { sinceMs, samples } = this.#period;
    if (nowMs - sinceMs >= PERIOD.ms && samples >= PERIOD.samples) {
      this.#best = { now: 0, before: this.#best.now };
      this.#period = { sinceMs: nowMs, samples: 0 };
    }
    this.#period.samples++;
    this.#best.now = Math.max(this.#best.now, bytesPerMs);
  }

  #move(acknowledgedBytes: number): void {
    const aim = this.#aimBytes();
    const now = this.#windowBytes;
    // A window that is not full is not what limits it: what is known of the link then is too little.
    const next = !this.#isMeasured || now < aim ? now + acknowledgedBytes : Math.max(aim, now - acknowledgedBytes);
    this.#windowBytes = Math.round(Math.min(MOST_WINDOW_BYTES, Math.max(LEAST_WINDOW_BYTES, next)));
  }
}
