import net, { type AddressInfo } from "node:net";
import {
  all,
  array,
  bytes,
  type Cursor,
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
import { NO_EXTRA, NONE, type Service, type WireAnswer, WireChannel, type WireHandler, type WireRequest } from "./channel.ts";
import { BASIC256SHA256, signedBy, type WireIdentity, WireSecurity } from "./security.ts";

export type { WireAnswer, WireHandler, WireRequest } from "./channel.ts";

const GOOD = 0;
export const BAD_NODE_ID_UNKNOWN = 0x8034_0000;
export const BAD_SERVICE_UNSUPPORTED = 0x800b_0000;
const UA_TCP = "http://opcfoundation.org/UA-Profile/Transport/uatcp-uasc-uabinary";
const RSA_SHA256 = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256";
const VALUE = 13;
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
  readonly #identity: WireIdentity | undefined;

  /** With an identity, its one endpoint wants channels that are signed and encrypted (Basic256Sha256); others are for GetEndpoints. */
  constructor(identity?: WireIdentity) {
    this.#identity = identity;
  }

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
    const security = this.#identity && new WireSecurity(this.#identity);
    new WireChannel(socket, (service, request) => this.#answer(service, request), security);
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
        return this.#session(body);
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
      case "DeleteMonitoredItems":
      case "DeleteSubscriptions":
        return all(array(body.array(() => u32(GOOD))), array([]));
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
    const { certificate = null, applicationUri = "urn:wire:server" } = this.#identity ?? {};
    const application = all(str(applicationUri), str(null), localized("wire"), u32(0), str(null), str(null), array([]));
    const anonymous = all(str("anonymous"), u32(0), str(null), str(null), str(null));
    const security = all(bytes(certificate), u32(certificate ? 3 : 1), str(certificate ? BASIC256SHA256 : NONE));
    return all(str(`opc.tcp://127.0.0.1:${this.port}`), application, security, array([anonymous]), str(UA_TCP), u8(0));
  }

  /** Session, token, time-out, nonce, certificate, endpoints, the server's signature (OPC 10000-4, 5.7.2). */
  #session(body: Cursor): Buffer {
    const ours = all(node("ns=1;i=1"), node("ns=1;i=2"), f64(60_000), bytes(Buffer.alloc(32, 1)));
    const rest = (signature: Buffer) => all(array([this.#endpoint()]), array([]), signature, u32(0));
    if (!this.#identity) return all(ours, bytes(null), rest(all(str(null), bytes(null))));
    const { certificate, key } = this.#identity;
    const { nonce, client } = createSessionOf(body);
    return all(ours, bytes(certificate), rest(all(str(RSA_SHA256), bytes(signedBy(all(client, nonce), key)))));
  }
}

/** What the server signs of a CreateSession request. */
function createSessionOf(body: Cursor): { readonly nonce: Buffer; readonly client: Buffer } {
  body.str();
  body.str();
  const mask = body.u8();
  for (const bit of [1, 2]) if (mask & bit) body.str();
  body.skip(4);
  for (let i = 0; i < 2; i++) body.str();
  body.array(() => body.str());
  for (let i = 0; i < 3; i++) body.str();
  const [nonce, client] = [body.bytesOf(), body.bytesOf()];
  return { nonce: nonce ?? Buffer.alloc(0), client: client ?? Buffer.alloc(0) };
}

export function readOf(body: Cursor): string {
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
