import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import { networkOf } from "../../lib/client-network.ts";

export interface ConnectionLimits {
  /** Of one address that have not shown a valid key; the oldest beyond are closed. */
  readonly strangersOfOne: number;
  /** As strangersOfOne, of all addresses; those of the address with the most go first. */
  readonly strangers: number;
  /** Of all, whatever they have shown. */
  readonly all: number;
  /** How long a burst may be over the limits of strangers: whoever has a key shows it in that time. Milliseconds. */
  readonly graceMs: number;
  /** How long the first request's headers may take, from the connect on. Milliseconds. */
  readonly headersMs: number;
}

/** The time for the headers is Node's, and a second for its answer. */
const LIMITS: ConnectionLimits = { strangersOfOne: 64, strangers: 256, all: 1024, graceMs: 250, headersMs: 11_000 };

interface Connection {
  readonly socket: Socket;
  /** Where it comes from, an IPv6 address by its network. */
  readonly from: string;
  /** Ends it where no request comes. */
  readonly headers: NodeJS.Timeout;
  isTrusted: boolean;
}

/**
 * Bounds the connections of a server, so that those which ask for nothing, or show no valid key, keep nobody out: they make room for whoever
 * comes, first those of the address that has the most. A connection that has carried a valid key is closed for nobody.
 */
export class ConnectionBound {
  readonly #limits: ConnectionLimits;
  /** By the other end: with TLS, connection and request have different sockets. The oldest first. */
  readonly #connections = new Map<string, Connection>();
  #trimming: NodeJS.Timeout | undefined;

  constructor(limits: Partial<ConnectionLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  /** Sees to the connections of a server before anything else does. */
  attach(server: Server): void {
    server.prependListener("connection", (socket: Socket) => this.#add(socket));
    server.prependListener("request", ({ socket }: IncomingMessage) => clearTimeout(this.#connections.get(peerOf(socket))?.headers));
  }

  /** The connection has carried a valid key. */
  trust(socket: Socket): void {
    const connection = this.#connections.get(peerOf(socket));
    if (connection) connection.isTrusted = true;
  }

  #add(socket: Socket): void {
    const { all, headersMs, graceMs } = this.#limits;
    if (this.#connections.size >= all && !this.#closeOne()) return void socket.destroy();
    const peer = peerOf(socket);
    const headers = setTimeout(() => socket.destroy(), headersMs);
    headers.unref();
    const connection: Connection = { socket, from: networkOf(socket.remoteAddress ?? ""), headers, isTrusted: false };
    this.#connections.set(peer, connection);
    socket.once("close", () => {
      clearTimeout(headers);
      if (this.#connections.get(peer) === connection) this.#connections.delete(peer);
    });
    this.#trimming ??= setTimeout(() => this.#trim(), graceMs).unref();
  }

  #trim(): void {
    const { strangersOfOne, strangers } = this.#limits;
    this.#trimming = undefined;
    let count = 0;
    for (const connections of this.#strangers().values()) {
      for (const connection of connections.slice(0, Math.max(0, connections.length - strangersOfOne))) this.#close(connection);
      count += Math.min(connections.length, strangersOfOne);
    }
    for (; count > strangers; count--) this.#closeOne();
  }

  /** The oldest of the address with the most; false: there is no stranger. */
  #closeOne(): boolean {
    const most = [...this.#strangers().values()].reduce((one, next) => (next.length > one.length ? next : one), []);
    const [oldest] = most;
    if (oldest) this.#close(oldest);
    return oldest !== undefined;
  }

  #close({ socket }: Connection): void {
    this.#connections.delete(peerOf(socket));
    socket.destroy();
  }

  /** By address, those that have not shown a valid key. */
  #strangers(): ReadonlyMap<string, Connection[]> {
    const strangers = [...this.#connections.values()].filter(({ isTrusted }) => !isTrusted);
    return Map.groupBy(strangers, ({ from }) => from);
  }
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
