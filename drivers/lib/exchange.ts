import { messageOf } from "../../src/model/failure.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { Deadline } from "../../src/model/timer.ts";
import type { DriverContext, Tap } from "../driver.ts";
import { stoppedWhile } from "./abort.ts";
import type { Connection } from "./connection.ts";

/** True for a request that only reads; else what the frame is, in words (`function 6 (write single register)`). Pure. */
export type Fence = (frame: Uint8Array) => true | string;

/** What a protocol tells the exchange. */
export interface Framing {
  readonly fence: Fence;
  /**
   * Length of the frame that begins at `start`; undefined: its header is not whole yet; a string: out of sync, and why.
   * Pure. Never above `maxFrameBytes`, so that nothing from outside makes the exchange hold more than one frame.
   */
  frameLength(bytes: Buffer, start: number): number | undefined | string;
  readonly maxFrameBytes: number;
  /** So many more bytes of a frame that is not whole are progress. Default: 1024; a device that dribbles makes none. */
  readonly progressBytes?: number;
  /** Takes each whole frame; valid during the call only. A string: what about it breaks the protocol. */
  onFrame(frame: Buffer): string | undefined;
  /** Requests under way at once; a hard bound. */
  readonly maxInFlight: number;
}

/** Frames over one connection: every byte out passes the fence, and every request ends. */
export interface Exchange {
  /**
   * Writes one frame. Throws ReasonError: the connection is lost, or the fence refused the frame; then nothing of it was
   * written and the connection is destroyed.
   */
  send(frame: Uint8Array): void;
  /**
   * `start` sends and arranges that `answer` or `refuse` is called; only the first call counts. Ends in any case: with these,
   * the connection's loss, the context's signal or its `answerMs`, counted from the last part of an answer (both TIMEOUT; the connection
   * is then closed, because a late answer must not meet a later request). `describe` names the request for messages.
   */
  request<T>(
    ctx: DriverContext,
    describe: () => string,
    start: (answer: (value: T) => void, refuse: (error: Error) => void) => void,
  ): Promise<T>;
  /**
   * What arrived is part of an answer that is not whole: requests under way have their `answerMs` again, up to their signal. Enough
   * bytes of a frame that is not whole count by themselves: see `Framing.progressBytes`.
   */
  progress(): void;
  /**
   * Ends taking frames, for another protocol on the same connection; what goes wrong from then on is not the exchange's. Gives the bytes
   * that arrived after the last frame it took.
   */
  release(): Buffer;
}

interface Pending {
  readonly describe: () => string;
  readonly deadline: Deadline;
  end(error: Error): void;
}

const NOTHING = Buffer.alloc(0);
const PROGRESS_BYTES = 1024;

export function createExchange(connection: Connection, tap: Tap | undefined, framing: Framing): Exchange {
  const pending = new Set<Pending>();
  // The signal is the readout's: listening once for all its requests costs less than once for each.
  const watched = new Set<AbortSignal>();
  let held: Buffer = NOTHING;
  /** Bytes of the frame that is held that have counted as progress. */
  let counted = 0;
  let isReleased = false;
  /** What is being taken apart, and where its next frame begins. */
  let bytes: Buffer = NOTHING;
  let start = 0;

  const onAbort = (event: Event) => {
    const [oldest] = pending;
    if (oldest && event.target instanceof AbortSignal)
      connection.fail(stoppedWhile(`waiting for the answer to ${oldest.describe()}`, event.target), "close");
  };
  const unwatch = () => {
    for (const signal of watched) signal.removeEventListener("abort", onAbort);
    watched.clear();
  };
  const watch = (signal: AbortSignal) => {
    if (watched.has(signal)) return;
    if (pending.size === 0) unwatch();
    watched.add(signal);
    signal.addEventListener("abort", onAbort);
  };
  connection.onLost((failure) => {
    unwatch();
    held = NOTHING;
    for (const request of [...pending]) request.end(failure);
  });

  const progress = () => {
    for (const { deadline } of pending) deadline.extend();
  };
  const outOfSync = (why: string) =>
    connection.fail(
      new ReasonError("UNKNOWN", `${connection.where} broke the protocol: ${why}`, { condition: "protocol_violation" }),
      "destroy",
    );
  const takeFrames = (chunk: Buffer) => {
    bytes = held.length > 0 ? Buffer.concat([held, chunk]) : chunk;
    start = 0;
    while (start < bytes.length && connection.alive() && !isReleased) {
      const length = framing.frameLength(bytes, start);
      if (typeof length === "string") return outOfSync(length);
      if (length === undefined || start + length > bytes.length) break;
      const frame = bytes.subarray(start, start + length);
      tap?.("in", Uint8Array.prototype.slice.call(frame));
      start += length;
      counted = 0;
      const wrong = framing.onFrame(frame);
      if (wrong !== undefined) return outOfSync(wrong);
    }
    held = start < bytes.length && connection.alive() && !isReleased ? Buffer.from(bytes.subarray(start)) : NOTHING;
    bytes = NOTHING;
    if (held.length === 0) return;
    if (held.length > framing.maxFrameBytes) outOfSync(`a frame of more than ${framing.maxFrameBytes} bytes`);
    else if (held.length - counted >= (framing.progressBytes ?? PROGRESS_BYTES)) {
      counted = held.length;
      progress();
    }
  };
  connection.onBytes((chunk) => {
    try {
      takeFrames(chunk);
    } catch (error) {
      connection.fail(
        new ReasonError("UNKNOWN", `taking an answer failed: ${messageOf(error)}`, { cause: error, condition: "internal_error" }),
        "destroy",
      );
    }
  });

  return {
    send(frame) {
      const failure = connection.failure();
      if (failure) throw failure;
      const allowed = framing.fence(frame);
      if (allowed !== true) {
        const refused = new ReasonError("UNKNOWN", `not sent: ${allowed}; only requests that read pass`, { condition: "internal_error" });
        connection.fail(refused, "destroy");
        throw refused;
      }
      tap?.("out", Uint8Array.prototype.slice.call(frame));
      connection.write(frame);
    },
    request(ctx, describe, start) {
      const failure = connection.failure();
      if (failure) return Promise.reject(failure);
      if (ctx.signal.aborted) return Promise.reject(stoppedWhile(`about to ask for ${describe()}`, ctx.signal));
      if (pending.size >= framing.maxInFlight)
        return Promise.reject(
          new ReasonError("UNKNOWN", `more than ${framing.maxInFlight} requests in flight on one connection`, {
            condition: "internal_error",
          }),
        );
      watch(ctx.signal);
      return new Promise((resolve, reject) => {
        const { answerMs } = ctx.timeouts;
        const deadline = new Deadline(answerMs, () =>
          connection.fail(new ReasonError("TIMEOUT", `no answer within ${answerMs} ms to ${describe()}`), "close"),
        );
        const request: Pending = {
          describe,
          deadline,
          end(error) {
            if (!pending.delete(request)) return;
            deadline.cancel();
            reject(error);
          },
        };
        pending.add(request);
        try {
          start((value) => {
            if (!pending.delete(request)) return;
            deadline.cancel();
            resolve(value);
          }, request.end);
        } catch (error) {
          request.end(error instanceof Error ? error : new Error(messageOf(error)));
        }
      });
    },
    progress,
    release() {
      const rest = Buffer.from(bytes.length > 0 ? bytes.subarray(start) : held);
      isReleased = true;
      held = NOTHING;
      connection.onBytes(undefined);
      return rest;
    },
  };
}
