import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { networkOf } from "./client-network.ts";
import { refuse } from "./http-refusal.ts";

export interface ConnectionLimits {
  /** Of one address that have not shown a valid key; the oldest beyond are closed. */
  readonly strangersOfOne: number;
  /** Works as strangersOfOne does, of all addresses; those of the address with the most go first. */
  readonly strangers: number;
  /** Of all, whatever they have shown. */
  readonly all: number;
  /** How long a burst may be over the limits of strangers: whoever has a request sends it in that time. Milliseconds. */
  readonly graceMs: number;
  /** How long the first request's headers may take, from the connect on. Milliseconds. */
  readonly headersMs: number;
  /** Answers under way at once. */
  readonly answers: number;
  /** An answer that takes longer than this makes room for the next one. Milliseconds. */
  readonly answerMs: number;
}

/** The time for the headers is Node's, and a second for its answer. */
const LIMITS: ConnectionLimits = {
  strangersOfOne: 64,
  strangers: 256,
  all: 1024,
  graceMs: 250,
  headersMs: 11_000,
  answers: Number.POSITIVE_INFINITY,
  answerMs: 1000,
};
const FULL = { status: 503, retryAfterS: 1 } as const;
const NO_ROOM = { ...FULL, detail: "too many connections are open here: ask again" };
const MADE_ROOM = { ...FULL, detail: "this connection asked for nothing and made room for others: ask again" };
const TOO_MANY_ANSWERS = { ...FULL, detail: "too many answers are under way: ask again" };

interface Connection {
  readonly peer: string | Socket;
  readonly socket: Socket;
  /** The place where it comes from, an IPv6 address by its network. */
  readonly from: string;
  /** Ends it where no request comes. */
  readonly headers: NodeJS.Timeout;
  /** What can be told to it in plain HTTP; with TLS only after the handshake. */
  speaks: Socket | undefined;
  isTrusted: boolean;
  hasAsked: boolean;
  /** Its requests under way. */
  answers: number;
}

/**
 * Bounds the connections of a server, so that those which ask for nothing, or show no valid key, keep nobody out: they make room for whoever
 * comes, first those of the address that has the most. A connection that has carried a valid key, or has a request under way, is closed for
 * nobody. Whoever is closed or refused is told so, as far as it can be told.
 */
export class ConnectionBound {
  readonly #limits: ConnectionLimits;
  /** By the other end: with TLS, connection and request have different sockets. The oldest first. */
  readonly #connections = new Map<string | Socket, Connection>();
  /** Since when each answer is under way, monotonic ms; the oldest first. */
  readonly #answers = new Map<ServerResponse, number>();
  #trimming: NodeJS.Timeout | undefined;

  constructor(limits: Partial<ConnectionLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  /** Sees to the connections of a server before anything else does. */
  attach(server: Server): void {
    const accept = server.listeners("connection");
    const isPlain = server.listenerCount("secureConnection") === 0;
    server.removeAllListeners("connection");
    server.on("connection", (socket: Socket) => {
      if (this.#add(socket, isPlain)) for (const listener of accept) listener.call(server, socket);
    });
    server.on("secureConnection", (socket: Socket) => {
      const connection = this.#connections.get(peerOf(socket));
      if (connection) connection.speaks = socket;
    });
  }

  /** False: the request is not to be answered any more, and whoever sent it knows. */
  admits({ socket }: IncomingMessage, response: ServerResponse): boolean {
    const connection = this.#connections.get(peerOf(socket));
    if (!connection) return false;
    clearTimeout(connection.headers);
    connection.hasAsked = true;
    if (this.#answers.size >= this.#limits.answers && !this.#endOldestAnswer()) {
      refuse(socket, TOO_MANY_ANSWERS);
      return false;
    }
    connection.answers++;
    this.#answers.set(response, performance.now());
    response.once("close", () => {
      connection.answers--;
      this.#answers.delete(response);
    });
    return true;
  }

  /** The connection has carried a valid key. */
  trust(socket: Socket): void {
    const connection = this.#connections.get(peerOf(socket));
    if (connection) connection.isTrusted = true;
  }

  /** Ends all at once, those too that no server knows yet. */
  close(): void {
    clearTimeout(this.#trimming);
    for (const { socket } of this.#connections.values()) socket.destroy();
  }

  #add(socket: Socket, isPlain: boolean): boolean {
    const { all, headersMs, graceMs } = this.#limits;
    socket.on("error", () => socket.destroy());
    if (this.#connections.size >= all && !this.#closeOne()) {
      if (isPlain) refuse(socket, NO_ROOM);
      else socket.destroy();
      return false;
    }
    const peer = peerOf(socket);
    const headers = setTimeout(() => socket.destroy(), headersMs);
    headers.unref();
    const connection: Connection = {
      peer,
      socket,
      from: networkOf(socket.remoteAddress ?? ""),
      headers,
      speaks: isPlain ? socket : undefined,
      isTrusted: false,
      hasAsked: false,
      answers: 0,
    };
    this.#connections.set(peer, connection);
    socket.once("close", () => {
      clearTimeout(headers);
      if (this.#connections.get(peer) === connection) this.#connections.delete(peer);
    });
    this.#trimming ??= setTimeout(() => this.#trim(), graceMs).unref();
    return true;
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

  #close({ peer, socket, speaks, hasAsked, headers }: Connection): void {
    clearTimeout(headers);
    this.#connections.delete(peer);
    if (speaks && !hasAsked) refuse(speaks, MADE_ROOM);
    else socket.destroy();
  }

  /** False: the oldest has not had its time yet. */
  #endOldestAnswer(): boolean {
    const [oldest] = this.#answers;
    if (!oldest || performance.now() - oldest[1] < this.#limits.answerMs) return false;
    const [response] = oldest;
    this.#answers.delete(response);
    response.destroy();
    return true;
  }

  /** By address, those that have not shown a valid key and wait for no answer. */
  #strangers(): ReadonlyMap<string, Connection[]> {
    const strangers = [...this.#connections.values()].filter(({ isTrusted, answers }) => !isTrusted && answers === 0);
    return Map.groupBy(strangers, ({ from }) => from);
  }
}

/** A client of a local socket has no address. */
const peerOf = (socket: Socket): string | Socket =>
  socket.remotePort === undefined ? socket : `${socket.remoteAddress} ${socket.remotePort}`;
