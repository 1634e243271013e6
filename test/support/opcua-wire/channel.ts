import type net from "node:net";
import { all, array, bytes, Cursor, i64, str, ticks, u8, u16, u32 } from "./bytes.ts";
import type { WireSecurity } from "./security.ts";

/** A request as it came, taken apart as far as its header. */
export interface WireRequest {
  readonly service: Service;
  readonly handle: number;
  /** Behind the request's header. */
  readonly body: Cursor;
}

/**
 * What the server does with a request. A Buffer is the response behind its header. `fault`: a ServiceFault. `abort`: so many chunks of an
 * answer, and then that there will be none. `large`: so many bytes that are no response. `endless`: the same, without an end. `error`: an ERR message,
 * and hangs up.
 */
export type WireAnswer =
  | Buffer
  | { readonly fault: number; readonly words?: string }
  | { readonly abort: number; readonly words: string; readonly chunks?: number }
  | { readonly large: number }
  | { readonly endless: number }
  | { readonly error: number; readonly words: string }
  | "silent"
  | "close";

export type WireHandler = (request: WireRequest) => WireAnswer | Promise<WireAnswer>;

/** By the numbers of their encodings: request and response (OPC 10000-6, A.3). */
const SERVICES = {
  OpenSecureChannel: [446, 449],
  CloseSecureChannel: [452, 455],
  GetEndpoints: [428, 431],
  CreateSession: [461, 464],
  ActivateSession: [467, 470],
  CloseSession: [473, 476],
  Browse: [527, 530],
  BrowseNext: [533, 536],
  TranslateBrowsePathsToNodeIds: [554, 557],
  RegisterNodes: [560, 563],
  Read: [631, 634],
  CreateMonitoredItems: [751, 754],
  DeleteMonitoredItems: [781, 784],
  CreateSubscription: [787, 790],
  Publish: [826, 829],
  DeleteSubscriptions: [847, 850],
} as const;
export type Service = keyof typeof SERVICES;
const BY_REQUEST = new Map(Object.entries(SERVICES).map(([name, [request]]) => [request as number, name as Service]));
const SERVICE_FAULT = 397;

export const NONE = "http://opcfoundation.org/UA/SecurityPolicy#None";
/** A header or a filter result of no kind. */
export const NO_EXTRA = Buffer.of(0, 0, 0);
const CHUNK_BYTES = 60_000;
const SERVER_NONCE = Buffer.alloc(32, 7);

/** One connection: framing, channel and headers (OPC 10000-6, 6.7 and 7.1). */
export class WireChannel {
  readonly #socket: net.Socket;
  readonly #answer: (service: Service, request: WireRequest) => WireAnswer | Promise<WireAnswer>;
  #received = Buffer.alloc(0);
  #body: Buffer[] = [];
  #sequence = 0;
  /** Of channels that the client secures. */
  readonly #security: WireSecurity | undefined;

  constructor(
    socket: net.Socket,
    answer: (service: Service, request: WireRequest) => WireAnswer | Promise<WireAnswer>,
    security?: WireSecurity,
  ) {
    this.#security = security;
    this.#socket = socket;
    this.#answer = answer;
    socket.on("data", (received) => {
      this.#received = Buffer.concat([this.#received, received]);
      for (let length = this.#length(); length !== undefined; length = this.#length()) {
        const chunk = this.#received.subarray(0, length);
        this.#received = this.#received.subarray(length);
        this.#take(chunk);
      }
    });
  }

  #length(): number | undefined {
    const length = this.#received.length < 8 ? undefined : this.#received.readUInt32LE(4);
    return length !== undefined && this.#received.length >= length ? length : undefined;
  }

  #take(chunk: Buffer): void {
    const type = chunk.toString("latin1", 0, 3);
    if (type === "HEL") {
      this.#socket.write(framed("ACKF", all(u32(0), u32(65_536), u32(65_536), u32(0), u32(0))));
      return;
    }
    const content = this.#security?.opened(chunk) ?? chunk.subarray(type === "OPN" ? securityHeaderEnd(chunk) : 16);
    const requestId = content.readUInt32LE(4);
    this.#body.push(content.subarray(8));
    if (chunk[3] !== 0x46) return;
    const body = new Cursor(Buffer.concat(this.#body.splice(0)));
    const service = BY_REQUEST.get(Number(body.node().slice(2)));
    if (!service || type === "CLO") {
      this.#socket.end();
      return;
    }
    const handle = headerOf(body);
    if (service === "OpenSecureChannel") {
      body.skip(12);
      this.#security?.agree(body.bytesOf() ?? Buffer.alloc(0), SERVER_NONCE);
    }
    const answer = this.#answer(service, { service, handle, body });
    const reply = (settled: WireAnswer) => this.#reply(type, service, requestId, handle, settled);
    if (answer instanceof Promise) void answer.then(reply);
    else reply(answer);
  }

  #reply(type: string, service: Service, requestId: number, handle: number, answer: WireAnswer): void {
    if (answer === "silent") return;
    if (answer === "close") this.#socket.end();
    else if (Buffer.isBuffer(answer)) {
      const content =
        service === "OpenSecureChannel" ? all(u32(0), u32(1), u32(1), i64(ticks(Date.now())), u32(3_600_000), bytes(SERVER_NONCE)) : answer;
      this.#message(type, requestId, all(responseHeader(SERVICES[service][1], handle, 0), content));
    } else if ("error" in answer) this.#socket.end(framed("ERRF", all(u32(answer.error), str(answer.words))));
    else if ("fault" in answer) this.#message(type, requestId, responseHeader(SERVICE_FAULT, handle, answer.fault, answer.words));
    else if ("abort" in answer) {
      const { abort, words, chunks = 0 } = answer;
      for (let i = 0; i < chunks; i++) this.#chunk("MSGC", requestId, Buffer.alloc(1000, 0xaa));
      this.#chunk("MSGA", requestId, all(u32(abort), str(words)));
    } else if ("large" in answer) this.#message("MSG", requestId, Buffer.alloc(answer.large));
    else for (let sent = 0; sent < answer.endless; sent += CHUNK_BYTES) this.#chunk("MSGC", requestId, Buffer.alloc(CHUNK_BYTES));
  }

  #message(type: string, requestId: number, body: Buffer): void {
    for (let at = 0; at === 0 || at < body.length; at += CHUNK_BYTES)
      this.#chunk(`${type}${at + CHUNK_BYTES < body.length ? "C" : "F"}`, requestId, body.subarray(at, at + CHUNK_BYTES));
  }

  #chunk(type: string, requestId: number, body: Buffer): void {
    const content = all(u32(++this.#sequence), u32(requestId), body);
    if (this.#security?.isOn) {
      this.#socket.write(this.#security.sealed(type, content));
      return;
    }
    const security = type.startsWith("OPN") ? all(u32(1), str(NONE), bytes(null), bytes(null)) : all(u32(1), u32(1));
    this.#socket.write(framed(type, all(security, content)));
  }
}

const framed = (type: string, rest: Buffer): Buffer => all(Buffer.from(type, "latin1"), u32(8 + rest.length), rest);

/** Of the asymmetric one: policy, certificate, thumbprint (OPC 10000-6, 6.7.2.3). */
function securityHeaderEnd(chunk: Buffer): number {
  const cursor = new Cursor(chunk);
  cursor.skip(12);
  for (let i = 0; i < 3; i++) cursor.str();
  return cursor.at;
}

/** Skips a request's header (OPC 10000-4, 7.32) and gives its handle. */
function headerOf(body: Cursor): number {
  body.node();
  body.skip(8);
  const handle = body.u32();
  body.skip(4);
  body.str();
  body.skip(4);
  body.node();
  if (body.u8() !== 0) body.str();
  return handle;
}

/** OPC 10000-4, 7.33. */
const responseHeader = (encoding: number, handle: number, result: number, words?: string): Buffer =>
  all(
    u8(1),
    u8(0),
    u16(encoding),
    i64(ticks(Date.now())),
    u32(handle),
    u32(result),
    u8(0),
    array(words === undefined ? [] : [str(words)]),
    NO_EXTRA,
  );
