import type { Server, Socket } from "node:net";
import type { OPCUAServer } from "node-opcua-server";
import { budgetLog } from "../../lib/log-budget.ts";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import { type Channel, guardAnswers } from "./answers.ts";
import type { Refusal } from "./fence.ts";
import { Gate } from "./gate.ts";
import { LIMITS } from "./limits.ts";

const MAX_LOGGED = 300;
/** Clients that are refused or cut off; how often they come back is theirs. */
const LINES_PER_MINUTE = 10;
/** Those that are just being closed count with the library still. */
const CLOSING = 4;

/** What clients hold of this machine's memory, and what is taken back. */
export interface Connections {
  /** To be called every second or so. */
  bound(): void;
  readonly isListening: () => boolean;
  readonly warnings: () => readonly string[];
  /** Ends what is left. */
  end(): void;
}

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

/**
 * There are so many connections; beyond them the oldest that has no session makes room for the next (OPC 10000-4, 5.6.2.1), and where all
 * have one the next is refused. Each has a gate, which bounds what its client sends and leaves unread; one that reads nothing for long is
 * cut off. Of notifications that are never acknowledged the oldest are forgotten (they are for repeats, OPC 10000-4, 5.14.1.1). The library
 * bounds the one by nothing, the other by messages and not by what is in them, and prints each connection that it refuses. To be called
 * before the server listens.
 */
export function watchConnections(server: OPCUAServer, { maxConnections, offersNone, gates, log }: ConnectionsOptions): Connections {
  const sockets = new Map<Socket, Gate>();
  const listeners = server.endpoints.flatMap((endpoint) => {
    const listener = (endpoint as unknown as Listening)._server;
    return listener ? [listener] : [];
  });
  const budgeted = budgetLog(log, { linesPerMinute: LINES_PER_MINUTE, of: "the OPC UA server's clients" });
  let cutOff = 0;
  let refused = 0;
  let fenced = 0;
  let lastFenced = "";

  const onRefused = (socket: Socket, { words, isForeign }: Refusal): void => {
    const client = socket.remoteAddress;
    if (isForeign) {
      budgeted.debug({ client }, `a client of the OPC UA server sent what is not OPC UA and is cut off: ${words}`);
      return;
    }
    fenced++;
    lastFenced = words;
    budgeted.warn({ client }, `the OPC UA server refused a client: ${words}`);
  };

  /** Oldest first, as they came. */
  const admit = (socket: Socket): boolean => {
    if (sockets.size >= maxConnections) {
      const busy = new Set(
        server.endpoints.flatMap((endpoint) =>
          endpoint.getChannels().flatMap((channel) => (channel.hasSession ? [`${channel.remoteAddress} ${channel.remotePort}`] : [])),
        ),
      );
      const idle = [...sockets.keys()].find((other) => !busy.has(`${other.remoteAddress} ${other.remotePort}`));
      refused++;
      if (!idle) {
        socket.destroy();
        return false;
      }
      sockets.delete(idle);
      idle.destroy();
    }
    const gate = new Gate(socket, {
      offersNone,
      onRefused: (refusal) => onRefused(socket, refusal),
      onThrown: (error) =>
        budgeted.debug(
          { client: socket.remoteAddress, err: messageOf(error).slice(0, MAX_LOGGED) },
          "a client of the OPC UA server sent what is not OPC UA and is cut off",
        ),
    });
    sockets.set(socket, gate);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", (error) => budgeted.debug({ err: error.message }, "a connection of an OPC UA client failed"));
    return true;
  };

  for (const endpoint of server.endpoints) {
    endpoint.maxConnections = maxConnections * CLOSING;
    matchChannels(endpoint as unknown as Listening, (channel, socket) => {
      const gate = sockets.get(socket);
      if (!gate) return;
      gates.set(channel, gate);
      guardAnswers(channel, gate, budgeted);
    });
  }
  for (const listener of listeners) {
    listener.maxConnections = maxConnections * CLOSING;
    const taken = listener.listeners("connection");
    listener.removeAllListeners("connection");
    listener.on("connection", (socket) => {
      if (admit(socket)) for (const take of taken) take.call(listener, socket);
    });
  }

  const cutOffStuck = (): void => {
    const nowMs = performance.now();
    for (const [socket, gate] of sockets) {
      if (!gate.isStuck(nowMs)) continue;
      cutOff++;
      budgeted.warn(
        { client: socket.remoteAddress, bytes: socket.writableLength },
        `the OPC UA server cut off a client that read nothing of its answers for ${LIMITS.unread / 1000} s`,
      );
      socket.destroy();
    }
  };

  const boundUnacknowledged = (): void => {
    const subscriptions = [...sessionsOf(server)].flatMap((session) => session.publishEngine.subscriptions as unknown as Sending[]);
    let kept = 0;
    for (const subscription of subscriptions) {
      const messages = subscription._sent_notification_messages;
      for (let i = messages.length - 1; i >= 0; i--) {
        kept += (messages[i]?.notificationData ?? []).reduce((sum, { monitoredItems }) => sum + weightOf(monitoredItems ?? []), 0);
        if (kept <= LIMITS.unacknowledged) continue;
        messages.splice(0, i + 1);
        break;
      }
    }
  };

  return {
    bound() {
      cutOffStuck();
      boundUnacknowledged();
    },
    isListening: () => listeners.every((listener) => listener.listening),
    warnings: () => [
      ...(cutOff > 0 ? [`${cutOff} times a client was cut off that read nothing of its answers for ${LIMITS.unread / 1000} s`] : []),
      ...(fenced > 0 ? [`${fenced} times a client was refused for what it sent, the last time because ${lastFenced}`] : []),
      ...(refused > 0
        ? [
            `${refused} times there were too many connections of OPC UA clients: one without a session made room, or the next was refused; max_sessions raises the number`,
          ]
        : []),
    ],
    end() {
      for (const socket of sockets.keys()) socket.destroy();
      for (const listener of listeners) if (listener.listening) listener.close();
    },
  };
}

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

function sessionsOf(server: OPCUAServer) {
  const { _sessions } = server.engine as unknown as {
    _sessions: Readonly<Record<string, NonNullable<ReturnType<OPCUAServer["getSession"]>>>>;
  };
  return Object.values(_sessions);
}
