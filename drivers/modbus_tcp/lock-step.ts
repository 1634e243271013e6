import { sleep } from "../../src/base/timer.ts";
import { FaultError } from "../../src/model/fault.ts";
import type { DriverContext } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { Exchange, type Fence, takeFor } from "../lib/exchange.ts";
import { createDeviceMemory } from "../lib/ids.ts";
import { fence, frameLength, MAX_FRAME_BYTES, wrongAnswer } from "./frames.ts";
import { type Ask, judge, type ModbusCarrier } from "./link.ts";
import { fromRtu, MAX_HELD_BYTES, nextRtu, rtuFence, toRtu } from "./rtu.ts";

/** Framings whose answers do not name their request. */
export type IdlessFraming = "rtu" | "tcp_without_ids";

/** How long a request that was given up may still be answered, ms; what comes meanwhile is dropped. */
export const lateMs = (answerMs: number): number => Math.min(1000, answerMs / 4);

/** By `host:port`: until when the answer to a request that was given up may come, monotonic ms. */
const lateOf = createDeviceMemory(() => ({ untilMs: 0 }));

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
 * Why a whole answer is not that of the request, in words; undefined: unit, function and form are right. A serial line has no units 0 and 255 that mean
 * any device.
 */
export function otherAnswer(framing: IdlessFraming, request: Uint8Array, answer: Uint8Array): string | undefined {
  if (framing === "rtu" && answer[6] !== request[6]) return `unit ${answer[6]} answered a request to unit ${request[6]}`;
  return wrongAnswer(request, answer);
}

interface Asked {
  readonly request: Buffer;
  readonly isWide: boolean;
  take(answer: Buffer): void;
}

/**
 * One request at a time over a stream whose answers do not name their request: an answer is the one that comes while its request is under way, with
 * its unit, its function and its byte count. After a request that was given up, the next one waits for what may still come.
 */
export function lockStepCarrier(connection: Connection, { tap }: Pick<DriverContext, "tap">, framing: IdlessFraming): ModbusCarrier {
  const { where } = connection;
  const { wrap, unwrap, ...rules } = FRAMED[framing];
  const late = lateOf(where);
  const strays = new Strays();
  let asked: Asked | undefined;
  let isDamaged = false;

  const exchange = new Exchange(connection, tap, {
    ...rules,
    maxInFlight: 1,
    frameLength(bytes, start) {
      if (framing !== "rtu") return frameLength(bytes, start);
      const step = nextRtu(bytes, start, asked?.request, asked?.isWide === true);
      if (step.length === undefined && step.isDamaged && !isDamaged) {
        isDamaged = true;
        strays.damaged();
      }
      return step.length;
    },
    onFrame(bytes) {
      const answer = unwrap(bytes);
      const why = answer && asked ? otherAnswer(framing, asked.request, answer) : "no request is under way";
      if (!answer) strays.garbage(bytes.length);
      else if (why !== undefined) strays.other(why);
      else asked?.take(answer);
      return undefined;
    },
  });

  return {
    where,
    async ask<T>(ctx: DriverContext, ask: Ask<T>) {
      const waitMs = late.untilMs - performance.now();
      if (waitMs > 0) await sleep(waitMs, ctx.signal);
      isDamaged = false;
      try {
        return await exchange.request<T>(
          ctx,
          () => `${ask.describe()}${strays.words}`,
          (answer, refuse) => {
            const request = ask.form(0);
            const take = (frame: Buffer): undefined => {
              asked = undefined;
              const judged = judge(ask, request, frame, where);
              if (judged instanceof FaultError) refuse(judged);
              else answer(judged);
            };
            asked = { request, isWide: ask.isWide, take: (frame) => void takeFor(refuse, () => take(frame)) };
            exchange.send(wrap(request));
          },
        );
      } catch (error) {
        if (!(error instanceof FaultError)) late.untilMs = performance.now() + lateMs(ctx.timeouts.answerMs);
        throw error;
      } finally {
        asked = undefined;
      }
    },
    alive: () => connection.alive(),
    close: () => connection.close(),
  };
}
