import net from "node:net";
import type { Log } from "../../src/model/context.ts";
import { toReasonError } from "../../src/model/failure.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { Wire } from "../../src/model/wire.ts";
import type { DriverContext } from "../driver.ts";
import { bounded, stoppedWhile } from "../lib/abort.ts";
import { StreamConnection } from "../lib/connection.ts";

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
 * A place at which one device is expected. Its newest connection counts: a device that was without power connects again before this machine
 * knows that the old connection is gone. Everybody else is refused at once.
 */
export class ExpectedPeer {
  readonly expected: Expected;
  readonly #listener: Listener;
  readonly #list: net.BlockList;
  /** Of the source that reads it now. */
  wire: Wire | undefined;
  #newest: StreamConnection | undefined;
  #isTaken = false;
  #waiting: ((connection: StreamConnection) => void) | undefined;
  #linger: ReturnType<typeof setTimeout> | undefined;

  constructor(expected: Expected, listener: Listener) {
    this.expected = expected;
    this.#listener = listener;
    this.#list = listOf(expected.peers);
  }

  allows(address: string): boolean {
    return this.#list.check(address, net.isIPv6(address) ? "ipv6" : "ipv4");
  }

  accept(connection: StreamConnection): void {
    this.#newest?.fail(new ReasonError("CONNECTION_CLOSED", `${connection.where} has connected again`), "destroy");
    this.#newest = connection;
    this.#isTaken = false;
    this.#waiting?.(connection);
  }

  /** Of strangers that were refused at this place, in words. */
  warnings(): readonly string[] {
    return this.#listener.warnings();
  }

  /** The connection of the device: the one that waits, or the next. Throws ReasonError: TIMEOUT after `connectMs`. */
  async connection({ signal, timeouts: { connectMs } }: DriverContext): Promise<StreamConnection> {
    const { at, from } = this.expected;
    const waiting = this.#newest;
    const found =
      waiting?.alive() && !this.#isTaken
        ? waiting
        : await bounded(
            new Promise<StreamConnection>((resolve) => {
              this.#waiting = resolve;
            }),
            {
              signal,
              timeoutMs: connectMs,
              onTimeout: () => new ReasonError("TIMEOUT", `${from} has not connected to ${at} within ${connectMs} ms`),
              onAbort: () => stoppedWhile(`waiting for ${from} at ${at}`, signal),
            },
          ).finally(() => {
            this.#waiting = undefined;
          });
    this.#isTaken = true;
    return found;
  }

  hold(): void {
    clearTimeout(this.#linger);
  }

  /** Nobody reads the device any more, unless it is held again before long. */
  release(): void {
    clearTimeout(this.#linger);
    this.#linger = setTimeout(() => this.end(), LINGER_MS);
    this.#linger.unref();
  }

  end(): void {
    clearTimeout(this.#linger);
    this.#newest?.fail(new ReasonError("CONNECTION_CLOSED", `${this.expected.at} is no longer listened at`), "destroy");
    this.#listener.remove(this);
  }
}

class Listener {
  readonly #at: string;
  readonly #server: net.Server;
  readonly #peers = new Map<string, ExpectedPeer>();
  readonly listening: Promise<void>;
  #log: Log;
  #refusalOf: DriverContext["listenRefusal"];
  #strangers = 0;
  #lastStranger = "";

  constructor(at: string, ctx: DriverContext) {
    this.#at = at;
    this.#log = ctx.log;
    this.#refusalOf = ctx.listenRefusal;
    this.#server = net.createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS }, (socket) =>
      this.#accept(socket),
    );
    this.#server.maxConnections = MAX_CONNECTIONS;
    const port = Number(at.slice(at.lastIndexOf(":") + 1));
    const host = at.slice(0, at.lastIndexOf(":")).replace(/^\[|\]$/g, "");
    this.listening = new Promise((ready, failed) => {
      this.#server.once("error", failed);
      this.#server.listen(port, host, () => {
        this.#server.removeListener("error", failed);
        this.#server.on("error", (error) => this.#log.warn({ err: error }, `listening at ${at} failed`));
        ready();
      });
    });
    // Whoever waits for it gets the error too.
    this.listening.catch(() => this.#close());
  }

  expect(expected: Expected, ctx: DriverContext): ExpectedPeer {
    this.#log = ctx.log;
    this.#refusalOf = ctx.listenRefusal;
    const key = JSON.stringify(expected);
    const peer = this.#peers.get(key) ?? new ExpectedPeer(expected, this);
    this.#peers.set(key, peer);
    peer.hold();
    peer.wire = ctx.wire;
    return peer;
  }

  remove(peer: ExpectedPeer): void {
    this.#peers.delete(JSON.stringify(peer.expected));
    if (this.#peers.size === 0) this.#close();
  }

  /** By a policy that closes the place. */
  end(): void {
    for (const peer of [...this.#peers.values()]) peer.end();
  }

  warnings(): readonly string[] {
    return this.#strangers === 0
      ? []
      : [
          `${this.#strangers} connections to ${this.#at} were refused, the last from ${this.#lastStranger}: only the host of a data source and its peers may connect`,
        ];
  }

  #close(): void {
    if (listeners.get(this.#at) === this) listeners.delete(this.#at);
    this.#server.close();
  }

  #accept(socket: net.Socket): void {
    socket.on("error", () => {});
    const address = plain(socket.remoteAddress ?? "");
    const isClosed = this.#refusalOf?.(this.#at) !== undefined;
    const peer = isClosed ? undefined : [...this.#peers.values()].find((one) => one.allows(address));
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
    peer.accept(connection);
  }
}

/**
 * Listens at a place for a device. The same place serves several devices, by their addresses. Throws ReasonError: the policy closes the place,
 * or this machine cannot listen there.
 */
export async function expectPeer(expected: Expected, ctx: DriverContext): Promise<ExpectedPeer> {
  const { at } = expected;
  const refusal = ctx.listenRefusal?.(at);
  if (refusal !== undefined) {
    listeners.get(at)?.end();
    throw new ReasonError("UNKNOWN", `listening at ${at}: ${refusal}`, { condition: "forbidden_by_policy" });
  }
  const listener = listeners.get(at) ?? new Listener(at, ctx);
  listeners.set(at, listener);
  const peer = listener.expect(expected, ctx);
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

function listOf(peers: readonly string[]): net.BlockList {
  const list = new net.BlockList();
  for (const text of peers) {
    const [address = "", bits] = plain(text).split("/");
    const family = net.isIPv6(address) ? "ipv6" : "ipv4";
    list.addSubnet(address, Number(bits ?? (family === "ipv6" ? 128 : 32)), family);
  }
  return list;
}

/** An IPv4 address that came over an IPv6 socket, as itself; without a zone. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");
