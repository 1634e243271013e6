import type { Socket } from "node:net";
import { z } from "zod";
import type { Context } from "../../../src/model/context.ts";
import { toReasonError } from "../../../src/model/failure.ts";
import { ReasonError } from "../../../src/model/reason.ts";
import type { Warning } from "../../../src/model/warning.ts";
import { dial, withDeadline } from "../../../src/sinks/lib/dial.ts";
import { InFlightWindow } from "../../../src/sinks/lib/in-flight-window.ts";
import { publishIntervalMs } from "../../../src/sinks/lib/publish-interval.ts";
import { defineSink, type PublishedLoss, type Sink, type SinkBatch, type WriteResult } from "../../../src/sinks/sink.ts";
import { facts } from "./facts.ts";
import { answerOf, lossMessage, type Message, messagesOf } from "./messages.ts";

// cut: types
/** The API's details of this type of data sink. */
const details = z.object({
  type: z.literal("lines"),
  host: z.string().min(1),
  port: z.int().min(1).max(65_535),
  publish_interval: z.int().optional(),
});
type LinesDetails = z.infer<typeof details>;

/** The local options of a sink: strict, each with a description and a default. */
const settings = z.strictObject({
  in_flight: z.int().min(1).max(16).default(4).describe("Batches under way at once: 1 to 16"),
  answer_ms: z.int().min(100).max(60_000).default(5000).describe("Deadline of an answer, in ms: 100 to 60000"),
});
type LinesSettings = z.infer<typeof settings>;
// cut: end

const NAME_MS = 5000;
const CONNECT_MS = 5000;
/** The longest answer has an id and 200 characters of words; more without a line's end is not this protocol. */
const MAX_HELD_CHARACTERS = 1000;

// cut: kind
export default defineSink<LinesDetails, LinesSettings>({
  ...facts,
  details,
  settings,
  placeOf: (_, source, { name }) => `the lines of ${source}, variable ${name}`,
  endpoint: ({ host, port }) => `${host}:${port}`,
  publishIntervalMs: ({ publish_interval }, unit) => publishIntervalMs(publish_interval, unit),
  async open({ details: { host, port }, settings: { in_flight, answer_ms } }, ctx) {
    const socket = await dial({ host, port, nameMs: NAME_MS, connectMs: CONNECT_MS }, ctx);
    return new LinesSink(socket, in_flight, answer_ms);
  },
});
// cut: end

// cut: sink
/** One opening. The receiver answers each line with `ok ID` or `no ID WORDS`. */
class LinesSink implements Sink {
  readonly inFlight: number;
  readonly warnings: readonly Warning[] = [];
  readonly lost: Promise<Error>;
  readonly #socket: Socket;
  readonly #answerMs: number;
  readonly #slots: InFlightWindow;
  /** By the identifiers of the messages under way. */
  readonly #asked = new Map<string, PromiseWithResolvers<string | undefined>>();
  #held = "";

  constructor(socket: Socket, inFlight: number, answerMs: number) {
    this.#socket = socket;
    this.#answerMs = answerMs;
    this.inFlight = inFlight;
    this.#slots = new InFlightWindow(inFlight);
    this.lost = this.#slots.lost;
    socket.setEncoding("utf8");
    socket.on("data", (text: string) => this.#take(text));
    socket.on("error", (error) => this.#fail(toReasonError(error)));
    socket.on("close", () => this.#fail(new ReasonError("CONNECTION_CLOSED", "the receiver closed the connection")));
  }

  write(batch: SinkBatch, { signal }: Context): Promise<WriteResult> {
    return this.#slots.inTurn(async () => {
      let refused = 0;
      let detail: string | undefined;
      for (const message of messagesOf(batch)) {
        const refusal = await this.#send(message, signal);
        if (refusal === undefined) continue;
        refused += message.values;
        detail ??= `${batch.layout.source.name}: ${refusal}`;
      }
      return { refused, ...(detail !== undefined && { detail }) };
    });
  }

  publishLoss(loss: PublishedLoss, { signal }: Context): Promise<boolean> {
    return this.#slots.inTurn(async () => (await this.#send(lossMessage(loss), signal)) === undefined);
  }

  async close(): Promise<void> {
    this.#fail(new ReasonError("CONNECTION_CLOSED", "closed by the collector"));
  }

  /** The receiver's refusal, or undefined once it has the message. Throws ReasonError when the connection is lost. */
  async #send({ id, text }: Message, signal: AbortSignal): Promise<string | undefined> {
    const answer = Promise.withResolvers<string | undefined>();
    this.#asked.set(id, answer);
    this.#socket.write(`${text}\n`);
    const late = () => new ReasonError("TIMEOUT", `no answer to ${id} within ${this.#answerMs} ms`);
    try {
      return await withDeadline(answer.promise, this.#answerMs, signal, late);
    } catch (error) {
      // Nobody knows whether the receiver has it: the delivery sends the batch again after the next opening.
      this.#fail(toReasonError(error));
      throw this.#slots.failure() ?? error;
    } finally {
      this.#asked.delete(id);
    }
  }

  #take(text: string): void {
    const lines = (this.#held + text).split("\n");
    this.#held = lines.pop() ?? "";
    for (const line of lines) {
      const answer = answerOf(line);
      if (answer) this.#asked.get(answer.id)?.resolve(answer.refusal);
      else this.#fail(new ReasonError("UNKNOWN", "the receiver sent a line that is not an answer"));
    }
    if (this.#held.length > MAX_HELD_CHARACTERS) this.#fail(new ReasonError("UNKNOWN", "the receiver sent a line without an end"));
  }

  #fail(reason: ReasonError): void {
    if (!this.#slots.fail(reason)) return;
    this.#socket.destroy();
    for (const answer of this.#asked.values()) answer.reject(reason);
  }
}
// cut: end
