import type { Socket } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { Networks } from "../../src/lib/networks.ts";
import type { Log } from "../../src/model/context.ts";
import { toReasonError } from "../../src/model/failure.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { Wire } from "../../src/model/wire.ts";
import type { DriverContext } from "../driver.ts";
import { bounded, stoppedWhile } from "../lib/abort.ts";
import { StreamConnection } from "../lib/connection.ts";
import { TcpServer } from "../lib/tcp-server.ts";
import type { Compiled } from "./compiled.ts";
import { Inbox, staleMsOf } from "./inbox.ts";
import { ProfileLink } from "./link.ts";

/** A device that connects again while no session is open finds the listener for so long: longer than the agent's longest back-off, 60 s. */
const LINGER_MS = 75_000;
/** Open connections of one listener; those of strangers end at once. */
const MAX_CONNECTIONS = 64;
const KEEP_ALIVE_MS = 10_000;

/** Who may connect, and where to. */
export interface Expected {
  /** `address:port` of this machine. */
  readonly at: string;
  /** For messages: the host of the data source. */
  readonly from: string;
  /** Addresses and networks. */
  readonly peers: readonly string[];
}

/** By their place: sources whose devices connect to one port share it. */
const listeners = new Map<string, Listener>();

/**
 * A place at which one device is expected. It takes what the device sends, also between two sessions. Its newest connection counts: a device
 * that was without power connects again before this machine knows that the old connection is gone. Everybody else is refused at once.
 */
export class ExpectedPeer {
  readonly expected: Expected;
  readonly inbox: Inbox;
  readonly compiled: Compiled;
  readonly #listener: Listener;
  readonly #list: Networks;
  /** Of the source that reads it now. */
  #ctx: Pick<DriverContext, "wire" | "tap">;
  #newest: ProfileLink | undefined;
  /** Of the device that connected last. */
  #address: string | undefined;
  #isTaken = false;
  #waiting: ((link: ProfileLink) => void) | undefined;
  #holders = 0;
  #linger: ReturnType<typeof setTimeout> | undefined;

  constructor(expected: Expected, listener: Listener, compiled: Compiled, ctx: DriverContext) {
    this.expected = expected;
    this.compiled = compiled;
    this.inbox = new Inbox(expected.from, staleMsOf(compiled));
    this.#listener = listener;
    this.#list = new Networks(expected.peers.map(plain));
    this.#ctx = ctx;
  }

  get wire(): Wire | undefined {
    return this.#ctx.wire;
  }

  /** True: a session reads it. */
  get isHeld(): boolean {
    return this.#holders > 0;
  }

  allows(address: string): boolean {
    return this.#list.contains(address);
  }

  /** True: its device is one that this other place expects. */
  hasConnectionFor(other: ExpectedPeer): boolean {
    return other !== this && this.#address !== undefined && other.allows(this.#address);
  }

  accept(connection: StreamConnection, address: string): void {
    this.#address = address;
    this.#newest?.end(new ReasonError("CONNECTION_CLOSED", `${connection.where} has connected again`));
    const link = new ProfileLink(connection, (direction, frame) => this.#ctx.tap?.(direction, frame), this.compiled, this.inbox);
    this.#newest = link;
    this.#isTaken = false;
    this.#waiting?.(link);
  }

  /** Of strangers that were refused at this place, in words. */
  warnings(): readonly Warning[] {
    return this.#listener.warnings();
  }

  /** The device is not connected, and what it sent last is not stale. */
  isAway(): boolean {
    return !this.#hasNext() && this.inbox.hasFresh();
  }

  /**
   * The connection of the device: the one that waits, or the next. Undefined: it is away, and nothing but what it sent last is read from it.
   * Throws ReasonError: TIMEOUT after `connectMs`.
   */
  async link({ signal, timeouts: { connectMs } }: DriverContext): Promise<ProfileLink | undefined> {
    const { at, from } = this.expected;
    const isAsked = [...this.compiled.requests.values()].some(({ send }) => send !== undefined);
    if (!isAsked && this.isAway()) return undefined;
    const found =
      this.#newest && this.#hasNext()
        ? this.#newest
        : await bounded(
            new Promise<ProfileLink>((resolve) => {
              this.#waiting = resolve;
            }),
            {
              signal,
              timeoutMs: connectMs,
              onTimeout: () => new ReasonError("TIMEOUT", `${from} has not connected to ${at} within ${connectMs} ms${this.#lastWords()}`),
              onAbort: () => stoppedWhile(`waiting for ${from} at ${at}`, signal),
            },
          ).finally(() => {
            this.#waiting = undefined;
          });
    this.#isTaken = true;
    return found;
  }

  hold(ctx: DriverContext): void {
    clearTimeout(this.#linger);
    this.#ctx = ctx;
    this.#holders++;
  }

  /** Once for each `hold`, with what `link` gave. Nobody reads the device any more, unless it is held again before long. */
  release(link: ProfileLink | undefined): void {
    if (link && link === this.#newest) this.#isTaken = false;
    this.#holders--;
    if (this.isHeld) return;
    clearTimeout(this.#linger);
    this.#linger = setTimeout(() => this.end(), LINGER_MS);
    this.#linger.unref();
  }

  end(): void {
    clearTimeout(this.#linger);
    this.#newest?.end(new ReasonError("CONNECTION_CLOSED", `${this.expected.at} is no longer listened at`));
    this.#listener.remove(this);
  }

  #hasNext(): boolean {
    return this.#newest?.alive() === true && !this.#isTaken;
  }

  #lastWords(): string {
    const failure = this.#newest?.failure();
    return failure ? `; its last connection ended: ${failure.message}` : "";
  }
}

class Listener {
  readonly #at: string;
  readonly #server: TcpServer;
  readonly #peers = new Set<ExpectedPeer>();
  readonly listening: Promise<void>;
  #log: Log;
  #refusalOf: DriverContext["listenRefusal"];
  #strangers = 0;
  #lastStranger = "";

  constructor(at: string, ctx: DriverContext) {
    this.#at = at;
    this.#log = ctx.log;
    this.#refusalOf = ctx.listenRefusal;
    this.#server = new TcpServer(at, { maxConnections: MAX_CONNECTIONS, keepAliveMs: KEEP_ALIVE_MS }, (socket) => this.#accept(socket));
    this.listening = this.#server.listen((error) => this.#log.warn({ err: error }, `listening at ${at} failed`));
    // Whoever waits for it gets the error too.
    this.listening.catch(() => this.#close());
  }

  expect(expected: Expected, compiled: Compiled, ctx: DriverContext): ExpectedPeer {
    this.#log = ctx.log;
    this.#refusalOf = ctx.listenRefusal;
    const known = [...this.#peers].find((one) => isDeepStrictEqual(one.expected, expected) && isSameProfile(one.compiled, compiled));
    const peer = known ?? new ExpectedPeer(expected, this, compiled, ctx);
    this.#peers.add(peer);
    peer.hold(ctx);
    // One that nobody reads any more must not keep the device that is expected now.
    for (const other of [...this.#peers]) if (!other.isHeld && other.hasConnectionFor(peer)) other.end();
    return peer;
  }

  remove(peer: ExpectedPeer): void {
    this.#peers.delete(peer);
    if (this.#peers.size === 0) this.#close();
  }

  /** By a policy that closes the place. */
  end(): void {
    for (const peer of [...this.#peers]) peer.end();
  }

  warnings(): readonly Warning[] {
    return this.#strangers === 0
      ? []
      : [
          warning(
            "stranger_refused",
            `${this.#strangers} connections to ${this.#at} were refused, the last from ${this.#lastStranger}: only the host of a data source and its peers may connect`,
          ),
        ];
  }

  #close(): void {
    if (listeners.get(this.#at) === this) listeners.delete(this.#at);
    this.#server.close();
  }

  #accept(socket: Socket): void {
    socket.on("error", () => {});
    const address = plain(socket.remoteAddress ?? "");
    const isClosed = this.#refusalOf?.(this.#at) !== undefined;
    const allowed = isClosed ? [] : [...this.#peers].filter((one) => one.allows(address));
    const peer = allowed.find(({ isHeld }) => isHeld) ?? allowed[0];
    if (!peer) {
      this.#strangers++;
      this.#lastStranger = address;
      this.#log.debug({ address }, `a connection to ${this.#at} was refused`);
      socket.resetAndDestroy();
      return;
    }
    const listeningPort = Number(this.#at.slice(this.#at.lastIndexOf(":") + 1));
    const trace = peer.wire?.opening({ transport: "tcp", address, port: socket.remotePort ?? 0, listeningPort });
    const connection = new StreamConnection(socket, `${address} at ${this.#at}`, trace);
    socket.on("error", (error) => connection.lose(toReasonError(error)));
    socket.on("data", (bytes) => connection.received(bytes));
    peer.accept(connection, address);
  }
}

/**
 * Listens at a place for a device. The same place serves several devices, by their addresses. Throws ReasonError: the policy closes the place,
 * or this machine cannot listen there.
 */
export async function expectPeer(expected: Expected, compiled: Compiled, ctx: DriverContext): Promise<ExpectedPeer> {
  const { at } = expected;
  const refusal = ctx.listenRefusal?.(at);
  if (refusal !== undefined) {
    listeners.get(at)?.end();
    throw new ReasonError("UNKNOWN", `listening at ${at}: ${refusal}`, { condition: "forbidden_by_policy" });
  }
  const listener = listeners.get(at) ?? new Listener(at, ctx);
  listeners.set(at, listener);
  const peer = listener.expect(expected, compiled, ctx);
  try {
    await listener.listening;
  } catch (error) {
    peer.end();
    throw new ReasonError("UNKNOWN", `listening at ${at}: ${toReasonError(error).message}`, {
      cause: error,
      condition: "collector_host_trouble",
    });
  }
  return peer;
}

/** True: both make the same of what a device sends. */
const isSameProfile = (one: Compiled, other: Compiled): boolean =>
  isDeepStrictEqual([one.profile, one.parameters], [other.profile, other.parameters]);

const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");
