import type { ClientSecureChannelLayer } from "node-opcua-client";
import { type Answer, abortOf, cannotBeTakenApart, faultBody, type Own, takeAnswer } from "./answers.ts";
import { isKnown } from "./statuses.ts";
import type { EarlyEnd } from "./transport.ts";

type MessageBuilder = NonNullable<ReturnType<ClientSecureChannelLayer["_getMessageBuilder"]>>;

/** What node-opcua's message builder calls on itself for each chunk and each whole message: an instance may have its own. */
interface BuilderSteps {
  maxChunkCount: number;
  maxMessageSize: number;
  /** Deciphers a chunk, and checks its signature and its sequence number; the stream is at its body then. */
  _read_headersEx(chunk: { readonly buffer: Buffer; readonly length: number }): boolean | Promise<boolean>;
  _decodeMessageBody(body: Buffer): boolean;
}

export interface IncomingOptions {
  /** Why the message whose last chunk the builder gets just now ends early. */
  earlyEnd(): EarlyEnd | undefined;
  /** The request, where the driver takes its answer apart; asked once for each. */
  ownOf(requestId: number): Own | undefined;
  /** What comes is no answer at all: the channel is of no use any more. */
  onGarbled(error: unknown): void;
}

const BAD = 0x8000_0000;

/**
 * Looks at each message before node-opcua decodes it. What the driver takes apart itself, what the server has given up (an abort chunk), what
 * is too large and what cannot be taken apart become a service fault of that one request: the channel goes on.
 */
export class Incoming {
  readonly #builder: MessageBuilder;
  readonly #options: IncomingOptions;
  readonly #decode: (body: Buffer) => boolean;
  #current: Answer | undefined;
  /** Of the chunk with which a message ends early. */
  #lastBody: Buffer = Buffer.alloc(0);
  #isInvalid = false;

  constructor(builder: MessageBuilder, options: IncomingOptions) {
    this.#builder = builder;
    this.#options = options;
    const steps = builder as unknown as BuilderSteps;
    const readHeaders = steps._read_headersEx.bind(builder);
    this.#decode = steps._decodeMessageBody.bind(builder);
    // The transport bounds both, and ends what exceeds them in a way that keeps the channel.
    steps.maxChunkCount = Number.MAX_SAFE_INTEGER;
    steps.maxMessageSize = Number.MAX_SAFE_INTEGER;
    steps._read_headersEx = (chunk) => {
      const end = options.earlyEnd();
      // As it was signed: the transport has made it the last one of its message.
      if (end) chunk.buffer[3] = end.kind;
      const isRead = readHeaders(chunk);
      if (end && isRead === true) this.#lastBody = chunk.buffer.subarray(chunk.length);
      return isRead;
    };
    steps._decodeMessageBody = (body) => this.#take(body);
    // What it cannot take apart, or has no request for, node-opcua drops and then waits without end.
    builder.on("error", (error) => options.onGarbled(error));
    builder.on("invalid_message", () => {
      this.#isInvalid = true;
    });
  }

  /** The answer that node-opcua is taking just now. */
  get current(): Answer | undefined {
    return this.#current;
  }

  #take(body: Buffer): boolean {
    const end = this.#options.earlyEnd();
    if (end?.why === "dropped") return true;
    const requestId = this.#builder.sequenceHeader?.requestId ?? -1;
    const own = this.#options.ownOf(requestId);
    if (end) return this.#settle(requestId, end.why === "abort" ? abortOf(this.#lastBody) : undefined, end.words);
    try {
      this.#show(takeAnswer(body, own, isKnown));
    } catch (error) {
      this.#options.onGarbled(error);
      return false;
    }
    this.#isInvalid = false;
    const isDecoded = this.#decode(body);
    return this.#isInvalid ? this.#settle(requestId, undefined, cannotBeTakenApart(new Error("it is not of its type"))) : isDecoded;
  }

  /** `given`: what the server says of it; undefined: the driver says `words`. */
  #settle(requestId: number, given: { readonly status: number; readonly words: string | null } | undefined, words: string): boolean {
    const serviceResult = given?.status ?? BAD;
    this.#show({ requestHandle: requestId, serviceResult, content: undefined, ...(!given && { unusable: words }) });
    return this.#decode(faultBody(requestId, isKnown(serviceResult) ? serviceResult : BAD, given?.words ?? null));
  }

  #show(answer: Answer): void {
    this.#current = answer;
    queueMicrotask(() => {
      this.#current = undefined;
    });
  }
}
