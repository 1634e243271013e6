import type { Duplex } from "node:stream";
import { answerLine, errorLine, pageAnswer, readAnswer, resolveAnswer, serversAnswer } from "./answers.ts";
import type { Backend, BackendServer } from "./backend.ts";
import { GatewayError } from "./errors.ts";
import { type Asked, type GatewayRequest, idOf, objectOf, requestOf } from "./requests.ts";

/** The versions of docs/gateway-protocol.md that are spoken. */
export const VERSIONS: readonly number[] = [1];

const NEWLINE = 0x0a;
const BRACE = 0x7b;
/** A client that takes no answers for so long has gone. */
const UNSENT_WITHIN_MS = 30_000;

/** What one connection may ask for. */
export interface GatewayLimits {
  /** Bytes of one line, its end included, in either direction. */
  readonly maxLineBytes: number;
  /** Items of one request. */
  readonly maxItems: number;
  /** Requests of one connection that are worked on at once; a client that sends more waits. */
  readonly maxInFlight: number;
  /** A connection that has not said hello within this is closed, ms. */
  readonly helloWithinMs: number;
}

/** What a connection shares with the others. */
export interface Shared {
  readonly backend: Backend;
  readonly limits: GatewayLimits;
  /** False: the backend has as much to do as it may have. */
  begin(): boolean;
  end(): void;
  log(message: string): void;
}

/** One client: takes lines, asks the backend, answers. */
export class ClientConnection {
  readonly #stream: Duplex;
  readonly #shared: Shared;
  readonly #refusal: GatewayError | undefined;
  readonly #ended = new AbortController();
  #held: Buffer = Buffer.alloc(0);
  /** Bytes of `#held` that have no end of a line in them. */
  #looked = 0;
  #isHello = false;
  /** Bytes of a line that the client takes. */
  #maxAnswerBytes: number;
  #server: BackendServer | undefined;
  #inFlight = 0;
  #unsent: NodeJS.Timeout | undefined;
  #helloDue: NodeJS.Timeout | undefined;

  /** `refusal`: the connection is one too many, and its first request is told so. */
  constructor(stream: Duplex, shared: Shared, refusal?: GatewayError) {
    this.#stream = stream;
    this.#shared = shared;
    this.#refusal = refusal;
    this.#maxAnswerBytes = shared.limits.maxLineBytes;
    this.#helloDue = setTimeout(() => stream.destroy(), shared.limits.helloWithinMs);
    stream.on("data", (chunk: Buffer) => this.#received(chunk));
    stream.on("drain", () => this.#drained());
    stream.on("error", () => {});
    stream.on("close", () => this.#closed());
  }

  get isClosed(): boolean {
    return this.#ended.signal.aborted;
  }

  hangUp(how: "fin" | "rst" = "fin"): void {
    if (how === "fin") this.#stream.end();
    else this.#stream.destroy();
  }

  #closed(): void {
    clearTimeout(this.#helloDue);
    clearTimeout(this.#unsent);
    this.#ended.abort();
    this.#server?.close();
    this.#held = Buffer.alloc(0);
  }

  #received(chunk: Buffer): void {
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#takeLines();
  }

  /** Lines wait where the client has enough under way, or does not take its answers. */
  #takeLines(): void {
    const { maxInFlight, maxLineBytes } = this.#shared.limits;
    while (!this.isClosed && this.#inFlight < maxInFlight && !this.#stream.writableNeedDrain) {
      // Also of a line that has not ended: a client with TLS would wait for its answer.
      if (this.#held.length > 0 && this.#held[0] !== BRACE) {
        this.#refuseAndEnd(null, new GatewayError("bad_request", "a line begins with {"));
        return;
      }
      const end = this.#held.indexOf(NEWLINE, this.#looked);
      const length = end === -1 ? this.#held.length : end + 1;
      if (length > maxLineBytes) {
        this.#refuseAndEnd(null, new GatewayError("line_too_long", `a line has at most ${maxLineBytes} bytes`));
        return;
      }
      if (end === -1) break;
      const line = this.#held.subarray(0, end);
      this.#held = this.#held.subarray(end + 1);
      this.#looked = 0;
      this.#takeLine(line);
    }
    if (this.isClosed) return;
    const isWaiting = this.#inFlight >= maxInFlight || this.#stream.writableNeedDrain;
    if (isWaiting) this.#stream.pause();
    else {
      this.#looked = this.#held.length;
      this.#stream.resume();
    }
  }

  #drained(): void {
    clearTimeout(this.#unsent);
    this.#unsent = undefined;
    this.#takeLines();
  }

  #takeLine(line: Uint8Array): void {
    let id: number | null = null;
    try {
      const fields = objectOf(line);
      id = idOf(fields);
      if (this.#refusal) this.#refuseAndEnd(id, this.#refusal);
      else this.#start(requestOf(fields, this.#shared.limits.maxItems));
    } catch (error) {
      const refusal = asGatewayError(error);
      // Nobody can be answered, so that the client would wait.
      if (id === null) this.#refuseAndEnd(null, refusal);
      else this.#send(errorLine(id, refusal));
    }
  }

  #start({ id, body, withinMs }: Asked): void {
    if (body.request === "hello") {
      this.#send(answerLine(id, this.#hello(body)));
      return;
    }
    if (!this.#isHello) throw new GatewayError("bad_request", "the first request must be hello");
    if (!this.#shared.begin())
      throw new GatewayError("busy", "the gateway has as many requests under way as it takes", { retryAfterMs: 1000 });
    this.#inFlight++;
    void this.#answer(id, body, withinMs);
  }

  #hello(body: Extract<GatewayRequest, { request: "hello" }>): object {
    if (this.#isHello) throw new GatewayError("bad_request", "hello has been said");
    const version = VERSIONS.findLast((own) => body.versions.includes(own));
    if (version === undefined)
      throw new GatewayError("unsupported_version", `this gateway speaks version ${VERSIONS.join(", ")}`, { versions: VERSIONS });
    clearTimeout(this.#helloDue);
    this.#isHello = true;
    const { backend, limits } = this.#shared;
    this.#maxAnswerBytes = Math.min(limits.maxLineBytes, body.maxLineBytes);
    return {
      version,
      gateway: backend.title,
      protocols: backend.protocols,
      capabilities: ["servers", "browse"],
      limits: { max_line_bytes: limits.maxLineBytes, max_items: limits.maxItems, max_in_flight: limits.maxInFlight },
    };
  }

  /** Ends in any case within the client's time; what the backend says later is dropped. */
  async #answer(id: number, body: GatewayRequest, withinMs: number): Promise<void> {
    const late = new AbortController();
    const signal = AbortSignal.any([late.signal, this.#ended.signal]);
    const due = setTimeout(() => {
      this.#send(errorLine(id, new GatewayError("server_timeout", `the server gave no answer within ${withinMs} ms`)));
      late.abort();
    }, withinMs);
    let line: string;
    try {
      line = answerLine(id, await this.#work(body, signal));
      if (Buffer.byteLength(line) + 1 > this.#maxAnswerBytes)
        line = errorLine(id, new GatewayError("too_large", `the answer has more than ${this.#maxAnswerBytes} bytes; ask for fewer items`));
    } catch (error) {
      line = errorLine(id, asGatewayError(error));
    }
    clearTimeout(due);
    if (!signal.aborted) this.#send(line);
    this.#inFlight--;
    this.#shared.end();
    if (!this.isClosed) this.#takeLines();
  }

  async #work(body: GatewayRequest, signal: AbortSignal): Promise<object> {
    switch (body.request) {
      case "servers":
        return serversAnswer(await this.#shared.backend.servers(signal));
      case "open":
        return this.#open(body, signal);
      case "browse":
        return pageAnswer(await this.#opened().browse(body.path, body.after, body.max, signal));
      case "resolve": {
        const server = this.#opened();
        const { epoch } = server;
        const items = await server.resolve(body.items, signal);
        return resolveAnswer(epoch, items);
      }
      case "read": {
        const server = this.#opened();
        if (server.epoch !== body.epoch)
          throw new GatewayError("stale_epoch", "the server's items may be others by now; resolve them again", { epoch: server.epoch });
        return readAnswer(await server.read(body.items, signal));
      }
      case "hello":
        throw new GatewayError("bad_request", "hello has been said");
    }
  }

  async #open({ target }: Extract<GatewayRequest, { request: "open" }>, signal: AbortSignal): Promise<object> {
    if (this.#server) throw new GatewayError("bad_request", "a connection opens one server");
    const server = await this.#shared.backend.open(target, signal);
    if (signal.aborted || this.#server) {
      server.close();
      throw new GatewayError("bad_request", "a connection opens one server");
    }
    this.#server = server;
    return { server: server.title, epoch: server.epoch };
  }

  #opened(): BackendServer {
    if (!this.#server) throw new GatewayError("not_open", "open a server first");
    return this.#server;
  }

  #send(line: string): void {
    if (this.isClosed || this.#stream.writableEnded) return;
    if (this.#stream.write(`${line}\n`) || this.#unsent) return;
    this.#unsent = setTimeout(() => this.#stream.destroy(), UNSENT_WITHIN_MS);
  }

  #refuseAndEnd(id: number | null, refusal: GatewayError): void {
    this.#shared.log(`closed a connection: ${refusal.message}`);
    this.#send(errorLine(id, refusal));
    this.#held = Buffer.alloc(0);
    this.#ended.abort();
    this.#stream.end();
    // What it still sends is not looked at.
    this.#stream.removeAllListeners("data");
    this.#stream.resume();
    this.#unsent ??= setTimeout(() => this.#stream.destroy(), 1000);
  }
}

function asGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  return new GatewayError("internal_error", error instanceof Error ? error.message : "something failed in the gateway");
}
