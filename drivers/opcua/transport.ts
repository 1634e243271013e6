import { EventEmitter } from "node:events";
import { messageOf } from "../../src/model/failure.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { Tap } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { quote } from "../lib/text.ts";

/** OPC 10000-6, 7.1.2.2: type, chunk, length. */
const HEADER_BYTES = 8;
/** Of a chunk that we take and of one that we send; the server may make the latter smaller (OPC 10000-6, 7.1.2.3). */
const BUFFER_BYTES = 65_536;
const LEAST_BUFFER_BYTES = 8192;
/** Chunks of one answer; told to the server in the HEL. */
const MAX_CHUNKS = 1000;
/** This many times what is taken of an answer is waited for until it ends: its channel is worth more than it. */
const DROPPED_TIMES = 4;
/** Fourth byte of a chunk: the message goes on, ends, or is given up (OPC 10000-6, 6.7.2.2). */
const [MORE, FINAL, ABORT] = [0x43, 0x46, 0x41];
/** First byte of what opens a channel. */
const OPEN = 0x4f;
const MAX_REASON_BYTES = 4096;

/** What the server said in its ERR message (OPC 10000-6, 7.1.2.5). */
export interface TransportError {
  readonly code: number;
  readonly reason: string | null;
}

export interface TransportOptions {
  readonly endpointUrl: string;
  readonly maxAnswerBytes: number;
  /** What an ERR message means. */
  onError(error: TransportError): ReasonError;
  /** An answer exceeds `maxAnswerBytes` by so much that its rest is not waited for. */
  onTooLarge(): void;
  /** A chunk came, and the answer has more. */
  onProgress(): void;
  /** Throws where the chunk must not leave; called before each. */
  before(chunk: Uint8Array): void;
  readonly tap?: Tap | undefined;
  /** What of the channel is encrypted: its opening is, unless nothing is secured. */
  readonly encrypted: "nothing" | "opening" | "all";
  /** True: a chunk that leaves unencrypted logs in. */
  isLogIn(chunk: Uint8Array): boolean;
}

/** Why the chunk that is handed on is made the last one of its message, which it is not. */
export interface EarlyEnd {
  /** `abort`: the server gives the message up. `too_large`: it exceeds what is taken. `dropped`: it is the rest of such a message. */
  readonly why: "abort" | "too_large" | "dropped";
  readonly words: string;
  /** The fourth byte of the chunk as it came, which its signature covers. */
  readonly kind: number;
}

/** What a server takes, from its ACK; 0: no limit. */
export interface Granted {
  readonly sendBufferSize: number;
  readonly maxMessageSize: number;
  readonly maxChunkCount: number;
}

/**
 * OPC UA's framing over a connection of ours (OPC 10000-6, 7.1): HEL and ACK, whole chunks, ERR. node-opcua's secure channel takes it in
 * place of its own socket, so that nothing but our connection touches the network, and what the server does wrong is its loss, with its
 * reason. The shape is that of node-opcua's IClientTransport.
 */
export class Transport extends EventEmitter {
  readonly name = "collector";
  protocolVersion = 0;
  timeout = 0;
  numberOfRetry = 0;
  endpointUrl: string;
  serverUri = "";
  bytesRead = 0;
  bytesWritten = 0;
  chunkReadCount = 0;
  chunkWrittenCount = 0;
  /** Ours bounds what is received; what the server takes is checked before node-opcua forms it. 0: node-opcua's own limits. */
  readonly maxMessageSize = 0;
  readonly maxChunkCount = 0;
  readonly receiveBufferSize = BUFFER_BYTES;
  sendBufferSize = BUFFER_BYTES;
  parameters: Granted | undefined;
  readonly #connection: Connection;
  readonly #options: TransportOptions;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #chunk: Buffer = this.#header;
  #filled = 0;
  #messageBytes = 0;
  #messageChunks = 0;
  #earlyEnd: EarlyEnd | undefined;
  #isDropping = false;
  #acknowledged: ((error?: Error) => void) | undefined;
  #ended = false;

  constructor(connection: Connection, options: TransportOptions) {
    super();
    this.#connection = connection;
    this.#options = options;
    this.endpointUrl = options.endpointUrl;
  }

  /** Sends HEL; settles with the ACK, or with the connection's loss. Time-outs are the caller's. */
  connect(_endpointUrl: string, callback: (error?: Error | null) => void): void {
    this.#acknowledged = callback;
    this.#connection.onBytes((bytes) => this.#take(bytes));
    this.#connection.onLost((failure) => this.#end(failure));
    this.#write(hello(this.endpointUrl, this.#options.maxAnswerBytes));
  }

  write(chunk: Buffer, callback?: (error?: Error | null) => undefined): void {
    if (this.#ended) {
      callback?.();
      return;
    }
    this.#options.before(chunk);
    this.#write(chunk);
    callback?.();
    // Nobody answers a CloseSecureChannel: what is left is to hang up.
    if (chunk[0] === 0x43) setImmediate(() => this.disconnect(() => {}));
  }

  #write(chunk: Buffer): void {
    this.bytesWritten += chunk.length;
    this.chunkWrittenCount++;
    this.#options.tap?.("out", chunk);
    const { encrypted, isLogIn } = this.#options;
    if (encrypted !== "nothing" && chunk[0] === OPEN) this.#connection.withhold("encrypted");
    if (encrypted !== "all" && isLogIn(chunk)) this.#connection.write(chunk, "log_in");
    else this.#connection.write(chunk);
  }

  disconnect(callback: (error?: Error | null) => void): void {
    void this.#connection.close();
    setImmediate(() => callback());
  }

  dispose(): void {
    this.#ended = true;
    this.#acknowledged = undefined;
    this.removeAllListeners();
    void this.#connection.close();
  }

  /** node-opcua gives up what arrived: it does not follow the protocol. */
  prematureTerminate(error: Error): void {
    this.#refuse(`the server's answer cannot be taken apart: ${error.message}`);
  }

  forceConnectionBreak(): void {
    this.#refuse("the connection was given up");
  }

  isValid(): boolean {
    return !this.#ended && this.#connection.alive();
  }

  isDisconnecting(): boolean {
    return !this.isValid();
  }

  getTransportSettings(): { maxMessageSize: number } {
    return { maxMessageSize: this.#options.maxAnswerBytes };
  }

  /** Of the chunk that is handed on just now. */
  earlyEnd(): EarlyEnd | undefined {
    return this.#earlyEnd;
  }

  #take(bytes: Buffer): void {
    this.bytesRead += bytes.length;
    let at = 0;
    while (at < bytes.length && this.#connection.alive()) {
      const taken = Math.min(this.#chunk.length - this.#filled, bytes.length - at);
      bytes.copy(this.#chunk, this.#filled, at, at + taken);
      this.#filled += taken;
      at += taken;
      if (this.#filled < this.#chunk.length) return;
      const wrong = this.#chunk === this.#header ? this.#startChunk() : this.#endChunk();
      if (wrong !== undefined) this.#refuse(wrong);
    }
  }

  /** What is wrong with the header, in words. */
  #startChunk(): string | undefined {
    const length = this.#header.readUInt32LE(4);
    if (!/^(?:ACK|ERR|MSG|OPN|CLO)[FCA]$/.test(this.#header.toString("latin1", 0, 4)))
      return `the server does not speak OPC UA: its answer begins with ${quote(this.#header.toString("latin1"))}`;
    if (length <= HEADER_BYTES || length > BUFFER_BYTES) return `a chunk of the server says that it has ${length} bytes`;
    // In memory of its own: what node-opcua decodes may keep parts of it.
    this.#chunk = Buffer.allocUnsafe(length);
    this.#header.copy(this.#chunk);
    return undefined;
  }

  #endChunk(): string | undefined {
    const chunk = this.#chunk;
    this.#chunk = this.#header;
    this.#filled = 0;
    this.chunkReadCount++;
    this.#options.tap?.("in", chunk);
    const type = chunk.toString("latin1", 0, 3);
    if (type === "OPN" && this.#options.encrypted === "opening") this.#connection.withhold(undefined);
    if (type === "ACK") return this.#acknowledge(chunk);
    if (type === "ERR") {
      this.#connection.fail(this.#options.onError(errorOf(chunk)), "close");
      return undefined;
    }
    if (this.#acknowledged) return `the server answers the HEL with ${type}`;
    return this.#handOn(chunk, type);
  }

  #handOn(chunk: Buffer, type: string): string | undefined {
    const kind = chunk[3] ?? FINAL;
    const { maxAnswerBytes } = this.#options;
    this.#messageBytes += chunk.length;
    this.#messageChunks++;
    const isTooLarge = this.#messageBytes > maxAnswerBytes || this.#messageChunks > MAX_CHUNKS;
    const words = `an answer of the server exceeds ${maxAnswerBytes} bytes (max_answer_bytes) or ${MAX_CHUNKS} chunks`;
    if (this.#messageBytes > DROPPED_TIMES * maxAnswerBytes || this.#messageChunks > DROPPED_TIMES * MAX_CHUNKS) {
      this.#options.onTooLarge();
      return `${words}, and does not end`;
    }
    if (this.#isDropping) this.#earlyEnd = { why: "dropped", words, kind };
    else if (kind === ABORT && type === "MSG")
      this.#earlyEnd = { why: "abort", words: "the server has given the answer up and does not say why", kind };
    else if (isTooLarge && type === "MSG") this.#earlyEnd = { why: "too_large", words, kind };
    else if (isTooLarge) return words;
    this.#isDropping = kind === MORE && this.#earlyEnd !== undefined;
    if (kind !== MORE) {
      this.#messageBytes = 0;
      this.#messageChunks = 0;
    }
    if (kind === MORE) this.#options.onProgress();
    // node-opcua would go on with what it has of the message.
    if (this.#earlyEnd) chunk[3] = FINAL;
    try {
      this.emit("chunk", chunk);
      return undefined;
    } catch (error) {
      return `the server's answer cannot be taken apart: ${messageOf(error)}`;
    } finally {
      this.#earlyEnd = undefined;
    }
  }

  /** OPC 10000-6, 7.1.2.4. */
  #acknowledge(chunk: Buffer): string | undefined {
    const settle = this.#acknowledged;
    if (!settle || chunk.length < HEADER_BYTES + 20) return "the server's ACK is not valid, or comes a second time";
    const receiveBufferSize = chunk.readUInt32LE(12);
    if (receiveBufferSize < LEAST_BUFFER_BYTES)
      return `the server takes chunks of ${receiveBufferSize} bytes, less than ${LEAST_BUFFER_BYTES}`;
    this.#acknowledged = undefined;
    this.sendBufferSize = Math.min(BUFFER_BYTES, receiveBufferSize);
    this.parameters = {
      sendBufferSize: this.sendBufferSize,
      maxMessageSize: chunk.readUInt32LE(20),
      maxChunkCount: chunk.readUInt32LE(24),
    };
    settle();
    return undefined;
  }

  #refuse(words: string): void {
    this.#connection.fail(new ReasonError("UNKNOWN", `${this.#connection.where}: ${words}`, { condition: "protocol_violation" }), "close");
  }

  #end(failure: ReasonError): void {
    const settle = this.#acknowledged;
    this.#acknowledged = undefined;
    settle?.(failure);
    if (this.#ended) return;
    this.#ended = true;
    this.emit("close", failure);
  }
}

/** OPC 10000-6, 7.1.2.3. */
function hello(endpointUrl: string, maxAnswerBytes: number): Buffer {
  const url = Buffer.from(endpointUrl);
  const frame = Buffer.alloc(32 + url.length);
  frame.write("HELF", "latin1");
  frame.writeUInt32LE(frame.length, 4);
  for (const [i, value] of [0, BUFFER_BYTES, BUFFER_BYTES, maxAnswerBytes, MAX_CHUNKS].entries()) frame.writeUInt32LE(value, 8 + 4 * i);
  frame.writeUInt32LE(url.length, 28);
  url.copy(frame, 32);
  return frame;
}

/** OPC 10000-6, 7.1.2.5; cut short where the server did. */
function errorOf(chunk: Buffer): TransportError {
  const code = chunk.length >= 12 ? chunk.readUInt32LE(8) : 0x8000_0000;
  const length = chunk.length >= 16 ? chunk.readInt32LE(12) : -1;
  if (length <= 0) return { code, reason: null };
  return { code, reason: chunk.toString("utf8", 16, Math.min(chunk.length, 16 + length, 16 + MAX_REASON_BYTES)) };
}
