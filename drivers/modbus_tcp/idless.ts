import { sleep } from "../../src/base/timer.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { DriverContext } from "../driver.ts";
import type { Fence } from "../lib/exchange.ts";
import { createDeviceMemory } from "../lib/ids.ts";
import { fence, frameLength, MAX_FRAME_BYTES, miscount, wrongAnswer } from "./frames.ts";
import { fromRtu, MAX_HELD_BYTES, rtuFence, toRtu } from "./rtu.ts";
import type { ModbusSettings } from "./settings.ts";

/** Framings whose answers do not name their request. */
export type IdlessFraming = "rtu" | "tcp_without_ids";

interface Framed {
  readonly fence: Fence;
  readonly maxFrameBytes: number;
  wrap(frame: Buffer): Buffer;
  /** The frame of Modbus TCP; undefined: the bytes are no frame. */
  unwrap(bytes: Buffer): Buffer | undefined;
}

export const FRAMED: Readonly<Record<IdlessFraming, Framed>> = {
  rtu: { fence: rtuFence, maxFrameBytes: MAX_HELD_BYTES, wrap: toRtu, unwrap: (bytes) => fromRtu(bytes, 0) },
  tcp_without_ids: {
    fence,
    maxFrameBytes: MAX_FRAME_BYTES,
    wrap: (frame) => frame,
    unwrap: (bytes) => (frameLength(bytes, 0) === bytes.length ? bytes : undefined),
  },
};

/**
 * Why a whole answer is not that of the request, in words; undefined: unit, function and byte count are right. A serial line has no units 0 and 255
 * that mean any device. An answer of another size may be that of an earlier request, and the right one still to come.
 */
export function otherAnswer(framing: IdlessFraming, request: Uint8Array, answer: Uint8Array, isWide: boolean): string | undefined {
  if (framing === "rtu" && answer[6] !== request[6]) return `unit ${answer[6]} answered a request to unit ${request[6]}`;
  return wrongAnswer(request, answer) ?? miscount(request, answer, isWide);
}

/** Counts of what came and was no answer to the request under way. */
export class Strays {
  #bytes = 0;
  #damaged = 0;
  #others = 0;
  #other = "";

  garbage(bytes: number): void {
    this.#bytes += bytes;
  }

  damaged(): void {
    this.#damaged++;
  }

  /** A whole frame that answers another request, and why. */
  other(why: string): void {
    this.#others++;
    this.#other = why;
  }

  /** In parentheses behind a request that has no answer; empty: nothing came but answers. */
  get words(): string {
    const found = [
      ...(this.#damaged > 0 ? [`answers with a wrong CRC: ${this.#damaged}`] : []),
      ...(this.#others > 0 ? [`answers to other requests: ${this.#others}, the last: ${this.#other}`] : []),
      ...(this.#bytes > 0 ? [`bytes outside of answers: ${this.#bytes}`] : []),
    ];
    return found.length === 0 ? "" : ` (${found.join("; ")})`;
  }
}

/** An answer may come this much later than its time-out, and as long after it again as it was waited for; both at most: */
const MOST_LATE_MS = 1000;
const lateMs = (answerMs: number): number => Math.min(MOST_LATE_MS, answerMs / 4);

/** Answers that are remembered, 260 bytes each. */
const MAX_RECENT = 32;
/** Least time in which all that comes is dropped, before an answer that may be another's is asked for again, ms. */
const LEAST_QUIET_MS = 20;
/** A device that sent an answer that no request waited for is doubted for so long, ms. */
const DOUBTED_MS = 3_600_000;

/** Memory of a device across its connections. Times are monotonic ms. */
class Doubts {
  /** By what an answer is known by: until when that of a request that was given up may come. */
  readonly late = new Map<number, number>();
  unaskedMs = Number.NEGATIVE_INFINITY;
}

const doubtsOf = createDeviceMemory(() => new Doubts());

/** One answer; its bytes are all by which an answer without an id differs from another. */
export interface Once<T> {
  readonly result: T | FaultError;
  readonly request: Buffer;
  readonly bytes: Buffer;
}

type AskOnce<T> = (sent: () => void) => Promise<Once<T>>;

/**
 * Proves that answers without an id are those of their requests, as far as it can be proven: a request waits for what may still come to one that
 * was given up, and an answer with the bytes of another one is asked for again.
 */
export class Proof {
  readonly #framing: IdlessFraming;
  readonly #fullMs: number;
  readonly #pauseMs: number;
  readonly #doubles: boolean;
  readonly #doubts: Doubts;
  readonly #recent: Pick<Once<unknown>, "request" | "bytes">[] = [];
  #longestMs = 0;

  /** `doubles`: the transport itself may bring an answer twice. */
  constructor(where: string, framing: IdlessFraming, { min_pause }: ModbusSettings, { timeouts }: DriverContext, doubles: boolean) {
    this.#framing = framing;
    this.#fullMs = timeouts.answerMs;
    this.#pauseMs = min_pause;
    this.#doubles = doubles;
    this.#doubts = doubtsOf(where);
  }

  /** A whole answer came, and no request was under way. */
  unasked(): void {
    const nowMs = performance.now();
    const isLate = [...this.#doubts.late.values()].some((untilMs) => untilMs > nowMs);
    if (!isLate) this.#doubts.unaskedMs = nowMs;
  }

  warnings(): readonly Warning[] {
    if (!this.#isDoubted) return [];
    return [
      warning(
        "answers_unasked",
        "answers came that the collector had not asked for, and the framing does not tell whose they are: a value may be another one's",
      ),
    ];
  }

  /**
   * The result of this request, whose frame of Modbus TCP `request` is. `once` asks, and calls `sent` where the request has left. Throws what `once`
   * throws, and a refusal.
   */
  async ask<T>(ctx: DriverContext, request: Uint8Array, once: AskOnce<T>): Promise<T> {
    await this.#untilQuiet(request, ctx.signal);
    const result = await this.#proven(ctx, request, once);
    if (result instanceof FaultError) throw result;
    return result;
  }

  async #proven<T>(ctx: DriverContext, request: Uint8Array, once: AskOnce<T>): Promise<T | FaultError> {
    const first = await this.#timed(ctx, request, once);
    const mayBeDouble = this.#doubles || this.#isDoubted;
    const isDoubtful = mayBeDouble && this.#recent.some((one) => one.bytes.equals(first.bytes) && !one.request.equals(first.request));
    const last = isDoubtful ? await this.#again(ctx, request, once) : first;
    this.#recent.push({ request: last.request, bytes: last.bytes });
    if (this.#recent.length > MAX_RECENT) this.#recent.shift();
    return last.result;
  }

  /** The answer to the first question may be on its way: it is not to meet the request after the second one. */
  async #again<T>(ctx: DriverContext, request: Uint8Array, once: AskOnce<T>): Promise<Once<T>> {
    const quietMs = Math.max(LEAST_QUIET_MS, this.#pauseMs, Math.min(2 * this.#longestMs, lateMs(this.#fullMs)));
    await sleep(quietMs, ctx.signal);
    return this.#timed(ctx, request, once);
  }

  async #timed<T>({ timeouts }: DriverContext, request: Uint8Array, once: AskOnce<T>): Promise<Once<T>> {
    const beganMs = performance.now();
    let wasSent = false;
    try {
      const answer = await once(() => {
        wasSent = true;
      });
      this.#longestMs = Math.max(this.#longestMs, performance.now() - beganMs);
      return answer;
    } catch (error) {
      if (wasSent && !(error instanceof FaultError))
        this.#doubts.late.set(this.#keyOf(request), this.#lateUntil(error, beganMs, timeouts.answerMs));
      throw error;
    }
  }

  /** The time-out of a probe is a multiple of what the device takes, and may be shorter than it takes once. A device that hangs up is done. */
  #lateUntil(error: unknown, beganMs: number, answerMs: number): number {
    const nowMs = performance.now();
    const isHangUp = error instanceof ReasonError && error.reason.type !== "TIMEOUT";
    return nowMs + Math.max(lateMs(answerMs), isHangUp ? 0 : Math.min(MOST_LATE_MS, nowMs - beganMs));
  }

  async #untilQuiet(request: Uint8Array, signal: AbortSignal): Promise<void> {
    const nowMs = performance.now();
    for (const [key, untilMs] of this.#doubts.late) if (untilMs <= nowMs) this.#doubts.late.delete(key);
    const untilMs = this.#doubts.late.get(this.#keyOf(request));
    if (untilMs !== undefined) await sleep(untilMs - nowMs, signal);
  }

  /** Unit and function. A device may answer as unit 0 or 255 whatever was asked, but on a serial line. */
  #keyOf(request: Uint8Array): number {
    return (this.#framing === "rtu" ? (request[6] ?? 0) << 8 : 0) | (request[7] ?? 0);
  }

  get #isDoubted(): boolean {
    return performance.now() - this.#doubts.unaskedMs < DOUBTED_MS;
  }
}
