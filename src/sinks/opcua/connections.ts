import { createHash } from "node:crypto";
import type { Server, Socket } from "node:net";
import type { OPCUAServer } from "node-opcua-server";
import { budgetLog } from "../../lib/log-budget.ts";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import { type Warning, warning } from "../../model/warning.ts";
import { type Channel, guardAnswers } from "./answers.ts";
import type { Refusal } from "./fence.ts";
import { Gate } from "./gate.ts";
import { LIMITS } from "./limits.ts";
import { sessionsOf } from "./sessions.ts";

const MAX_LOGGED = 300;
/** Clients that are refused or cut off; how often they come back is theirs. */
const LINES_PER_MINUTE = 10;
/** Those that are just being closed count with the library still. */
const CLOSING = 4;

export interface ConnectionsOptions {
  readonly maxConnections: number;
  /** `security_modes` has None. */
  readonly offersNone: boolean;
  /** Filled as channels come: the gate between a channel and its socket. */
  readonly gates: WeakMap<object, Gate>;
  readonly log: Log;
}

/** As much of the library's endpoint as is looked at; it keeps these for itself. */
interface Listening {
  readonly _server?: Server;
  maxConnections: number;
  _preregisterChannel?(channel: Channel): void;
}
interface Sending {
  _sent_notification_messages: { readonly notificationData?: readonly { readonly monitoredItems?: readonly Notified[] | null }[] | null }[];
}
interface Notified {
  readonly value?: { readonly value?: { readonly value?: unknown } | null } | null;
}

/** Elements and characters of a value that take as much memory as what the library puts around each value. */
const ELEMENTS_OF_A_VALUE = 16;
const UNREAD_S = LIMITS.unread / 1000;

/**
 * What clients hold of this machine's memory, and what is taken back. There are so many connections; beyond them the oldest that has no session makes room for the next (OPC 10000-4, 5.6.2.1), and where all
 * have one the next is refused. Each has a gate, which bounds what its client sends and leaves unread; one that reads nothing for long is
 * cut off. Of notifications that are never acknowledged the oldest are forgotten (they are for repeats, OPC 10000-4, 5.14.1.1). The library
 * bounds the one by nothing, the other by messages and not by what is in them, and prints each connection that it refuses. To be made
 * before the server listens.
 */
export class Connections {
  readonly #server: OPCUAServer;
  readonly #options: ConnectionsOptions;
  /** Oldest first, as they came. */
  readonly #sockets = new Map<Socket, Gate>();
  readonly #listeners: readonly Server[];
  readonly #log: Log;
  #cutOff = 0;
  #refused = 0;
  #fenced = 0;
  #lastFenced = "";

  constructor(server: OPCUAServer, options: ConnectionsOptions) {
    this.#server = server;
    this.#options = options;
    this.#log = budgetLog(options.log, { linesPerMinute: LINES_PER_MINUTE, of: "the OPC UA server's clients" });
    const endpoints = server.endpoints as unknown as readonly Listening[];
    this.#listeners = endpoints.flatMap(({ _server }) => _server ?? []);
    const maxConnections = options.maxConnections * CLOSING;
    for (const endpoint of endpoints) {
      endpoint.maxConnections = maxConnections;
      matchChannels(endpoint, (channel, socket) => this.#match(channel, socket));
    }
    for (const listener of this.#listeners) {
      listener.maxConnections = maxConnections;
      const taken = listener.listeners("connection");
      listener.removeAllListeners("connection");
      listener.on("connection", (socket) => {
        if (this.#admit(socket)) for (const take of taken) take.call(listener, socket);
      });
    }
  }

  /** To be called every second or so. */
  bound(): void {
    this.#cutOffStuck();
    this.#boundUnacknowledged();
  }

  /** Ends the connections that were opened with one of these certificates (SHA-1, upper-case hex). */
  endOf(thumbprints: ReadonlySet<string>): void {
    if (thumbprints.size === 0) return;
    const channels = this.#server.endpoints.flatMap((endpoint) => endpoint.getChannels());
    const ended = new Set(channels.filter(({ clientCertificate: der }) => der && thumbprints.has(thumbprintOf(der))).map(addressOf));
    for (const socket of [...this.#sockets.keys()].filter((one) => ended.has(addressOf(one)))) {
      this.#log.warn(
        { client: socket.remoteAddress },
        "ended the connection of an OPC UA client: the trust in its expired certificate is over",
      );
      socket.destroy();
    }
  }

  isListening(): boolean {
    return this.#listeners.every((listener) => listener.listening);
  }

  warnings(): readonly Warning[] {
    return [
      ...(this.#cutOff > 0
        ? [warning("client_cut_off", `${this.#cutOff} times a client was cut off that read nothing of its answers for ${UNREAD_S} s`)]
        : []),
      ...(this.#fenced > 0
        ? [
            warning(
              "client_refused",
              `${this.#fenced} times a client was refused for what it sent, the last time because ${this.#lastFenced}`,
            ),
          ]
        : []),
      ...(this.#refused > 0
        ? [
            warning(
              "connections_exhausted",
              `${this.#refused} times there were too many connections of OPC UA clients: one without a session made room, or the next was refused; max_sessions raises the number`,
            ),
          ]
        : []),
    ];
  }

  /** Ends what is left. */
  end(): void {
    for (const socket of this.#sockets.keys()) socket.destroy();
    for (const listener of this.#listeners) if (listener.listening) listener.close();
  }

  #match(channel: Channel, socket: Socket): void {
    const gate = this.#sockets.get(socket);
    if (!gate) return;
    this.#options.gates.set(channel, gate);
    guardAnswers(channel, gate, this.#log);
  }

  #admit(socket: Socket): boolean {
    if (this.#sockets.size >= this.#options.maxConnections && !this.#makeRoom()) {
      socket.destroy();
      return false;
    }
    const gate = new Gate(socket, {
      offersNone: this.#options.offersNone,
      onRefused: (refusal) => this.#onRefused(socket, refusal),
      onThrown: (error) =>
        this.#log.debug(
          { client: socket.remoteAddress, err: messageOf(error).slice(0, MAX_LOGGED) },
          "a client of the OPC UA server sent what is not OPC UA and is cut off",
        ),
    });
    this.#sockets.set(socket, gate);
    socket.once("close", () => this.#sockets.delete(socket));
    socket.on("error", (error) => this.#log.debug({ err: error.message }, "a connection of an OPC UA client failed"));
    return true;
  }

  /** Closes the oldest connection without a session; false: each has one. */
  #makeRoom(): boolean {
    this.#refused++;
    const channels = this.#server.endpoints.flatMap((endpoint) => endpoint.getChannels());
    const busy = new Set(channels.filter(({ hasSession }) => hasSession).map(addressOf));
    const idle = [...this.#sockets.keys()].find((socket) => !busy.has(addressOf(socket)));
    if (!idle) return false;
    this.#sockets.delete(idle);
    idle.destroy();
    return true;
  }

  #onRefused({ remoteAddress: client }: Socket, { words, isForeign }: Refusal): void {
    if (isForeign) {
      this.#log.debug({ client }, `a client of the OPC UA server sent what is not OPC UA and is cut off: ${words}`);
      return;
    }
    this.#fenced++;
    this.#lastFenced = words;
    this.#log.warn({ client }, `the OPC UA server refused a client: ${words}`);
  }

  #cutOffStuck(): void {
    const nowMs = performance.now();
    for (const [socket, gate] of this.#sockets) {
      if (!gate.isStuck(nowMs)) continue;
      this.#cutOff++;
      this.#log.warn(
        { client: socket.remoteAddress, bytes: socket.writableLength },
        `the OPC UA server cut off a client that read nothing of its answers for ${UNREAD_S} s`,
      );
      socket.destroy();
    }
  }

  #boundUnacknowledged(): void {
    const subscriptions = sessionsOf(this.#server).flatMap((session) => session.publishEngine.subscriptions as unknown as Sending[]);
    let kept = 0;
    for (const { _sent_notification_messages: messages } of subscriptions) {
      for (let i = messages.length - 1; i >= 0; i--) {
        kept += (messages[i]?.notificationData ?? []).reduce((sum, { monitoredItems }) => sum + weightOf(monitoredItems ?? []), 0);
        if (kept <= LIMITS.unacknowledged) continue;
        messages.splice(0, i + 1);
        break;
      }
    }
  }
}

const thumbprintOf = (der: Uint8Array): string => createHash("sha1").update(der).digest("hex").toUpperCase();

const addressOf = ({ remoteAddress, remotePort }: { readonly remoteAddress?: unknown; readonly remotePort?: unknown }): string =>
  `${remoteAddress} ${remotePort}`;

/** Calls `onMatch` with each channel and the socket it gets, before it reads from it; the library hides that. */
function matchChannels(endpoint: Listening, onMatch: (channel: Channel, socket: Socket) => void): void {
  const register = endpoint._preregisterChannel;
  if (!register) return;
  endpoint._preregisterChannel = (channel) => {
    const init = channel.init.bind(channel);
    channel.init = (socket, done) => {
      onMatch(channel, socket as unknown as Socket);
      init(socket, done);
    };
    register.call(endpoint, channel);
  };
}

/** As so many single values; a notification of long arrays counts as a large one. */
function weightOf(items: readonly (Notified | undefined)[]): number {
  return items.reduce((sum, item) => {
    const value = item?.value?.value?.value;
    const length = typeof value === "object" && value !== null && "length" in value ? Number(value.length) : String(value ?? "").length;
    return sum + 1 + Math.floor(length / ELEMENTS_OF_A_VALUE);
  }, 0);
}
