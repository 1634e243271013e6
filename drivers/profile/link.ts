import { parseDuration } from "../../src/base/duration.ts";
import { sleep } from "../../src/base/timer.ts";
import type { Profile } from "../../src/model/profile.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { Withheld } from "../../src/model/wire.ts";
import type { DriverContext } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { Exchange } from "../lib/exchange.ts";
import { type Answer, answerIn } from "./answer.ts";
import { bytesWith, type Compiled, type CompiledRequest, valuesFor } from "./compiled.ts";
import { fenceOf } from "./fence.ts";
import { frameOf, nextFrame, payloadOf } from "./framing.ts";
import type { Inbox } from "./inbox.ts";
import { describeRequest } from "./plan.ts";

/** Times of a profile, ms. */
interface Timing {
  readonly answerMs: number;
  readonly betweenBytesMs: number;
  readonly pauseMs: number;
}

const timingOf = ({ answer_within, between_bytes, pause }: Profile): Timing => ({
  answerMs: parseDuration(answer_within) ?? 0,
  betweenBytesMs: parseDuration(between_bytes) ?? 0,
  pauseMs: pause === undefined ? 0 : (parseDuration(pause) ?? 0),
});

type Known = NonNullable<Answer>;

interface Asked {
  readonly request: CompiledRequest;
  readonly args: readonly string[];
  take(answer: Known): void;
}

/** Requests and answers of a profile over one connection: one request at a time, and nothing that is not in the profile. */
export class ProfileLink {
  readonly #connection: Connection;
  readonly #compiled: Compiled;
  readonly #timing: Timing;
  readonly #exchange: Exchange;
  /** Requests that the device makes by itself. */
  readonly #pushed: readonly CompiledRequest[];
  readonly #inbox: Inbox;
  #asked: Asked | undefined;
  #isBegun = false;
  #readyAtMs = 0;
  #skippedBytes = 0;
  #damagedFrames = 0;
  #unknownFrames = 0;

  /** Takes what comes from now on, asked for or not; `inbox` gets what the device sends by itself. */
  constructor(connection: Connection, tap: DriverContext["tap"], compiled: Compiled, inbox: Inbox) {
    this.#connection = connection;
    this.#compiled = compiled;
    this.#timing = timingOf(compiled.profile);
    this.#inbox = inbox;
    this.#pushed = [...compiled.requests.values()].filter(({ send }) => send === undefined);
    const { framing } = compiled;
    this.#exchange = new Exchange(connection, tap, {
      fence: fenceOf(compiled),
      frameLength: (bytes, start) => {
        const found = nextFrame(framing, bytes, start);
        return typeof found === "object" ? found.length : found;
      },
      maxFrameBytes: framing.maxBytes,
      // What comes is no progress: one deadline is for the whole answer.
      progressBytes: Number.POSITIVE_INFINITY,
      betweenBytesMs: this.#timing.betweenBytesMs,
      maxInFlight: 1,
      onFrame: (frame) => this.#onFrame(frame),
    });
    inbox.opened();
    connection.onLost((failure) => inbox.lost(failure));
  }

  alive(): boolean {
    return this.#connection.alive();
  }

  failure(): ReasonError | undefined {
    return this.#connection.failure();
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  /** Of a device that connects by itself. */
  end(failure: ReasonError): void {
    this.#connection.fail(failure, "destroy");
  }

  /**
   * Sends, once in the life of the connection, what the profile sends when connected; a request that carries a parameter may log in, and no
   * capture has it. Throws ReasonError.
   */
  async begin(ctx: DriverContext): Promise<void> {
    if (this.#isBegun) return;
    for (const name of this.#compiled.profile.connect) {
      const request = this.#compiled.requests.get(name);
      if (!request) continue;
      const hasParameter = request.send?.some((part) => "placeholder" in part) === true;
      const answer = await this.ask(ctx, request, [], hasParameter ? "log_in" : undefined);
      if ("error" in answer) {
        const { reason = "UNKNOWN", meaning } = answer.error.answer;
        throw new ReasonError(reason, `${describeRequest({ name, args: [] })}: ${meaning}`);
      }
    }
    this.#isBegun = true;
  }

  /** Sends a request and waits for its answer. What the device sends by itself is in the inbox. */
  async ask(ctx: DriverContext, request: CompiledRequest, args: readonly string[], withheld?: Withheld): Promise<Known> {
    const frame = this.#frameOf(request.send ?? [], request, args);
    const waitMs = this.#readyAtMs - performance.now();
    if (waitMs > 0) await sleep(waitMs, ctx.signal);
    const answerMs = Math.min(ctx.timeouts.answerMs, this.#timing.answerMs);
    const bounded = { ...ctx, timeouts: { ...ctx.timeouts, answerMs } };
    try {
      return await this.#exchange.request<Known>(
        bounded,
        () => describeRequest({ name: request.name, args }),
        (answer) => {
          this.#asked = { request, args, take: answer };
          this.#exchange.send(frame, withheld);
        },
      );
    } finally {
      this.#asked = undefined;
      this.#readyAtMs = performance.now() + this.#timing.pauseMs;
    }
  }

  /** What a person should know of what came. */
  warnings(): readonly Warning[] {
    const found: Warning[] = [];
    const skipped = (text: string, about: string) => found.push(warning("frames_skipped", text, about));
    if (this.#skippedBytes > 0) skipped(`${this.#skippedBytes} bytes between frames were skipped since connecting`, "bytes");
    if (this.#damagedFrames > 0) skipped(`${this.#damagedFrames} frames with a wrong checksum were skipped since connecting`, "checksum");
    if (this.#unknownFrames > 0) skipped(`${this.#unknownFrames} frames that nothing in the profile fits came since connecting`, "unknown");
    return found;
  }

  #frameOf(send: NonNullable<CompiledRequest["send"]>, request: CompiledRequest, args: readonly string[]): Buffer {
    const payload = bytesWith(send, valuesFor(this.#compiled, request, args));
    const { framing } = this.#compiled;
    const frame = framing.isForRequests ? frameOf(framing, payload) : payload;
    if (typeof frame === "string")
      throw new ReasonError("UNKNOWN", `${describeRequest({ name: request.name, args })}: ${frame}`, {
        condition: "configuration_invalid",
      });
    return frame;
  }

  /** A text breaks the protocol. */
  #onFrame(frame: Buffer): string | undefined {
    const { framing } = this.#compiled;
    const found = nextFrame(framing, frame, 0);
    if (typeof found !== "object" || found.kind === "noise") {
      this.#skippedBytes += frame.length;
      return undefined;
    }
    const payload = payloadOf(framing, frame);
    if (typeof payload === "string") {
      this.#damagedFrames++;
      return framing.skips ? undefined : payload;
    }
    this.#inbox.heard();
    return this.#takeAnswer(payload) || this.#takePushed(payload) ? undefined : this.#unknown(payload);
  }

  #takeAnswer(payload: Buffer): boolean {
    const asked = this.#asked;
    if (!asked) return false;
    const answer = answerIn(this.#compiled, asked.request, asked.args, payload);
    if (!answer) return false;
    this.#asked = undefined;
    const { finish } = asked.request;
    if (finish) this.#exchange.send(bytesWith(finish, this.#compiled.parameters));
    asked.take("body" in answer ? { body: Buffer.from(answer.body) } : answer);
    return true;
  }

  #takePushed(payload: Buffer): boolean {
    for (const request of this.#pushed) {
      const answer = answerIn(this.#compiled, request, [], payload);
      if (!answer) continue;
      if ("body" in answer) this.#inbox.take(request.name, Buffer.from(answer.body));
      else this.#inbox.takeError(answer);
      return true;
    }
    return false;
  }

  /** What a device sends by itself may be more than the profile knows; what comes instead of an answer may not. */
  #unknown(payload: Buffer): string | undefined {
    this.#unknownFrames++;
    const isAnswer = this.#asked !== undefined && !this.#compiled.framing.skips;
    return isAnswer ? `an answer that the profile does not know: ${payload.toString("hex", 0, 32)}` : undefined;
  }
}
