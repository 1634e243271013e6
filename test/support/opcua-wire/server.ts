import net, { type AddressInfo } from "node:net";
import {
  all,
  array,
  bytes,
  Cursor,
  dataValue,
  f64,
  i64,
  localized,
  node,
  str,
  text,
  ticks,
  u8,
  u16,
  u32,
  variant,
  variantArray,
} from "./bytes.ts";

/** A request as it came, taken apart as far as its header. */
export interface WireRequest {
  readonly service: Service;
  readonly handle: number;
  /** Behind the request's header. */
  readonly body: Cursor;
}

/**
 * What the server does with a request. A Buffer is the response behind its header. `fault`: a ServiceFault. `abort`: so many chunks of an
 * answer, and then that there will be none. `endless`: chunks of one answer that never ends, so many bytes of it. `error`: an ERR message,
 * and hangs up.
 */
export type WireAnswer =
  | Buffer
  | { readonly fault: number; readonly words?: string }
  | { readonly abort: number; readonly words: string; readonly chunks?: number }
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
  CreateSubscription: [787, 790],
  Publish: [826, 829],
} as const;
type Service = keyof typeof SERVICES;
const BY_REQUEST = new Map(Object.entries(SERVICES).map(([name, [request]]) => [request as number, name as Service]));
const SERVICE_FAULT = 397;

const GOOD = 0;
export const BAD_NODE_ID_UNKNOWN = 0x8034_0000;
export const BAD_SERVICE_UNSUPPORTED = 0x800b_0000;
const NONE = "http://opcfoundation.org/UA/SecurityPolicy#None";
const NO_EXTRA = Buffer.of(0, 0, 0);
const VALUE = 13;
const CHUNK_BYTES = 60_000;
/** As sent; the driver takes what the specification lets any server do. */
const NAMESPACES = ["http://opcfoundation.org/UA/", "urn:wire:server", "urn:wire:plant"];

/**
 * An OPC UA server without security, of the bytes alone. It answers what a session and a Read need; `answers` has what it does otherwise,
 * by service, and `nodes` what it has: DataValues as they go over the wire, by node and attribute (`ns=2;s=A`, `ns=2;i=3#23`).
 */
export class WireServer {
  readonly nodes = new Map<string, Buffer>();
  readonly answers = new Map<Service, WireHandler>();
  /** Nodes that a path leads to, by the last name of the path: ExpandedNodeIds as they go over the wire. */
  readonly paths = new Map<string, Buffer>();
  /** ReferenceDescriptions as they go over the wire, by node, direction (0 forward, 1 inverse). */
  readonly references = new Map<string, readonly Buffer[]>();
  readonly asked: Service[] = [];
  /** Items of a subscription, by the client's handle. */
  readonly items = new Map<number, string>();
  port = 0;
  connections = 0;
  readonly #open = new Set<net.Socket>();
  /** Settles when there are items, of which the first Publish tells. */
  #items = Promise.withResolvers<void>();
  #hasPublished = false;

  async start(port = 0): Promise<this> {
    this.nodes.set("i=2255", dataValue({ value: variantArray(12, NAMESPACES.map(str)) }));
    this.nodes.set("i=2257", dataValue({ value: variant(13, i64(ticks(1_795_000_000_000))) }));
    this.nodes.set("i=2259", dataValue({ value: variant(6, u32(0)) }));
    this.#server.listen(port, "127.0.0.1");
    await new Promise((ready) => this.#server.once("listening", ready));
    this.port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  readonly #server = net.createServer((socket) => {
    this.connections++;
    this.#open.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => this.#open.delete(socket));
    new WireChannel(socket, (service, request) => this.#answer(service, request));
  });

  /** How often. */
  count(service: Service): number {
    return this.asked.filter((one) => one === service).length;
  }

  async close(): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    await new Promise((done) => this.#server.close(done));
  }

  #answer(service: Service, request: WireRequest): WireAnswer | Promise<WireAnswer> {
    this.asked.push(service);
    return (this.answers.get(service) ?? this.usual(service))(request);
  }

  /** What it does with this service where nothing else is said. */
  usual(service: Service): WireHandler {
    return (request) => this.#usual(service, request.body);
  }

  #usual(service: Service, body: Cursor): WireAnswer | Promise<WireAnswer> {
    switch (service) {
      case "GetEndpoints":
        return array([this.#endpoint()]);
      case "CreateSession":
        this.#items = Promise.withResolvers();
        this.#hasPublished = false;
        this.items.clear();
        return all(
          node("ns=1;i=1"),
          node("ns=1;i=2"),
          f64(60_000),
          bytes(Buffer.alloc(32, 1)),
          bytes(null),
          array([this.#endpoint()]),
          array([]),
          str(null),
          bytes(null),
          u32(0),
        );
      case "ActivateSession":
        return all(bytes(Buffer.alloc(32, 2)), array([]), array([]));
      case "CloseSession":
      case "CloseSecureChannel":
      case "OpenSecureChannel":
        return Buffer.alloc(0);
      case "Read":
        return all(array(readsOf(body).map((key) => this.value(key))), array([]));
      case "Browse":
        return all(array(browsesOf(body).map((key) => all(u32(GOOD), bytes(null), array(this.references.get(key) ?? [])))), array([]));
      case "BrowseNext":
        return all(array([]), array([]));
      case "TranslateBrowsePathsToNodeIds":
        return all(array(pathsOf(body).map((name) => this.#target(name))), array([]));
      case "RegisterNodes":
        return array(body.array(() => node(body.node())));
      case "CreateSubscription":
        return all(u32(7), f64(50), u32(1000), u32(100));
      case "CreateMonitoredItems":
        return all(array(this.#monitored(body)), array([]));
      case "Publish":
        return this.#notification();
    }
  }

  /** `ns=2;s=A` or `ns=2;s=A#23`. */
  value(key: string): Buffer {
    return this.nodes.get(key) ?? dataValue({ status: BAD_NODE_ID_UNKNOWN });
  }

  #target(name: string): Buffer {
    const found = this.paths.get(name);
    return found ? all(u32(GOOD), array([all(found, u32(0xffff_ffff))])) : all(u32(0x806f_0000), array([]));
  }

  #monitored(body: Cursor): Buffer[] {
    // After the answer to this request.
    setImmediate(() => this.#items.resolve());
    body.skip(8);
    return body.array(() => {
      const key = readOf(body);
      body.skip(4);
      const handle = body.u32();
      body.skip(8);
      body.node();
      if (body.u8() !== 0) body.str();
      body.skip(5);
      this.items.set(handle, key);
      return all(u32(GOOD), u32(handle), f64(50), u32(1), NO_EXTRA);
    });
  }

  /** The values of all items, once; then the server has nothing to say. */
  async #notification(): Promise<WireAnswer> {
    await this.#items.promise;
    if (this.#hasPublished) return "silent";
    this.#hasPublished = true;
    const changes = all(array([...this.items].map(([handle, key]) => all(u32(handle), this.value(key)))), array([]));
    const notification = all(node("i=811"), u8(1), bytes(changes));
    return all(u32(7), array([]), u8(0), u32(1), i64(ticks(1_795_000_000_000)), array([notification]), array([]), array([]));
  }

  #endpoint(): Buffer {
    const application = all(str("urn:wire:server"), str(null), localized("wire"), u32(0), str(null), str(null), array([]));
    const anonymous = all(str("anonymous"), u32(0), str(null), str(null), str(null));
    const url = str(`opc.tcp://127.0.0.1:${this.port}`);
    return all(
      url,
      application,
      bytes(null),
      u32(1),
      str(NONE),
      array([anonymous]),
      str("http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary"),
      u8(0),
    );
  }
}

/** One connection: framing, channel and headers (OPC 10000-6, 6.7 and 7.1). */
class WireChannel {
  readonly #socket: net.Socket;
  readonly #answer: (service: Service, request: WireRequest) => WireAnswer | Promise<WireAnswer>;
  #received = Buffer.alloc(0);
  #body: Buffer[] = [];
  #sequence = 0;

  constructor(socket: net.Socket, answer: (service: Service, request: WireRequest) => WireAnswer | Promise<WireAnswer>) {
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
    const at = type === "OPN" ? securityHeaderEnd(chunk) : 16;
    const requestId = chunk.readUInt32LE(at + 4);
    this.#body.push(chunk.subarray(at + 8));
    if (chunk[3] !== 0x46) return;
    const body = new Cursor(Buffer.concat(this.#body.splice(0)));
    const service = BY_REQUEST.get(Number(body.node().slice(2)));
    if (!service || type === "CLO") {
      this.#socket.end();
      return;
    }
    const handle = headerOf(body);
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
        service === "OpenSecureChannel"
          ? all(u32(0), u32(1), u32(1), i64(ticks(Date.now())), u32(3_600_000), bytes(Buffer.alloc(32)))
          : answer;
      this.#message(type, requestId, all(responseHeader(SERVICES[service][1], handle, GOOD), content));
    } else if ("error" in answer) this.#socket.end(framed("ERRF", all(u32(answer.error), str(answer.words))));
    else if ("fault" in answer) this.#message(type, requestId, responseHeader(SERVICE_FAULT, handle, answer.fault, answer.words));
    else if ("abort" in answer) {
      const { abort, words, chunks = 0 } = answer;
      for (let i = 0; i < chunks; i++) this.#chunk("MSGC", requestId, Buffer.alloc(1000, 0xaa));
      this.#chunk("MSGA", requestId, all(u32(abort), str(words)));
    } else for (let sent = 0; sent < answer.endless; sent += CHUNK_BYTES) this.#chunk("MSGC", requestId, Buffer.alloc(CHUNK_BYTES));
  }

  #message(type: string, requestId: number, body: Buffer): void {
    for (let at = 0; at === 0 || at < body.length; at += CHUNK_BYTES)
      this.#chunk(`${type}${at + CHUNK_BYTES < body.length ? "C" : "F"}`, requestId, body.subarray(at, at + CHUNK_BYTES));
  }

  #chunk(type: string, requestId: number, body: Buffer): void {
    const security = type.startsWith("OPN") ? all(u32(1), str(NONE), bytes(null), bytes(null)) : all(u32(1), u32(1));
    this.#socket.write(framed(type, all(security, u32(++this.#sequence), u32(requestId), body)));
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

function readOf(body: Cursor): string {
  const id = body.node();
  const attribute = body.u32();
  body.str();
  body.skip(2);
  body.str();
  return attribute === VALUE ? id : `${id}#${attribute}`;
}

/** What a Read asks for, as the keys of `nodes`. */
export function readsOf(body: Cursor): string[] {
  body.skip(12);
  return body.array(() => readOf(body));
}

/** What a Browse asks for, as the keys of `references`. */
export function browsesOf(body: Cursor): string[] {
  body.node();
  body.skip(16);
  return body.array(() => {
    const id = body.node();
    const direction = body.u32();
    body.node();
    body.skip(9);
    return direction === 0 ? id : `${id} inverse`;
  });
}

/** Of each path that is asked for, its last name. */
export function pathsOf(body: Cursor): string[] {
  return body.array(() => {
    body.node();
    const names = body.array(() => {
      body.node();
      body.skip(4);
      return body.str() ?? "";
    });
    return names.at(-1) ?? "";
  });
}

/** As `references` has them (OPC 10000-4, 7.29); `target` is an ExpandedNodeId. */
export const reference = (
  target: Buffer,
  name: string,
  { isVariable = true, type = "i=47" }: { readonly isVariable?: boolean; readonly type?: string } = {},
): Buffer => all(node(type), u8(1), target, u16(2), str(name), localized(name), u32(isVariable ? 2 : 1), node("i=63"));

/** A value that everybody can read. */
export const plainText = (words: string): Buffer => dataValue({ value: text(words) });
