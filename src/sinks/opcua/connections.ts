import type { Server, Socket } from "node:net";
import type { OPCUAServer } from "node-opcua-server";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import { LIMITS } from "./limits.ts";

const MAX_LOGGED = 300;
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

/** As much of the library as is looked at; it keeps these for itself. */
interface Listening {
  readonly _server?: Server;
}
interface Sending {
  _sent_notification_messages: { readonly notificationData?: readonly { readonly monitoredItems?: readonly unknown[] | null }[] | null }[];
}

/**
 * There are so many connections; beyond them the oldest that has no session makes room for the next (OPC 10000-4, 5.6.2.1), and where all
 * have one the next is refused. A client that does not take what it asked for is cut off; of notifications that it never acknowledges the oldest are forgotten (they are
 * for repeats, OPC 10000-4, 5.14.1.1). The library bounds the one by nothing, the other by messages and not by what is in them, and tells
 * the standard output of each connection that it refuses. To be called before the server listens.
 */
export function watchConnections(server: OPCUAServer, maxConnections: number, log: Log): Connections {
  const sockets = new Set<Socket>();
  const listeners = server.endpoints.flatMap((endpoint) => {
    const listener = (endpoint as unknown as Listening)._server;
    return listener ? [listener] : [];
  });
  let cutOff = 0;
  let refused = 0;

  /** Oldest first, as they came. */
  const admit = (socket: Socket): boolean => {
    if (sockets.size >= maxConnections) {
      const busy = new Set(
        server.endpoints.flatMap((endpoint) =>
          endpoint.getChannels().flatMap((channel) => (channel.hasSession ? [`${channel.remoteAddress} ${channel.remotePort}`] : [])),
        ),
      );
      const idle = [...sockets].find((other) => !busy.has(`${other.remoteAddress} ${other.remotePort}`));
      refused++;
      if (!idle) {
        socket.destroy();
        return false;
      }
      sockets.delete(idle);
      idle.destroy();
    }
    sockets.add(socket);
    contain(socket, log);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", (error) => log.debug({ err: error.message }, "a connection of an OPC UA client failed"));
    return true;
  };
  for (const endpoint of server.endpoints) endpoint.maxConnections = maxConnections * CLOSING;
  for (const listener of listeners) {
    listener.maxConnections = maxConnections * CLOSING;
    const taken = listener.listeners("connection");
    listener.removeAllListeners("connection");
    listener.on("connection", (socket) => {
      if (admit(socket)) for (const take of taken) take.call(listener, socket);
    });
  }

  const boundUnsent = (): void => {
    for (const socket of sockets) {
      if (socket.writableLength <= LIMITS.unsent) continue;
      cutOff++;
      log.warn(
        { client: socket.remoteAddress, bytes: socket.writableLength },
        "an OPC UA client does not take what it asked for: it is cut off",
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
        kept += (messages[i]?.notificationData ?? []).reduce((sum, { monitoredItems }) => sum + (monitoredItems?.length ?? 0), 0);
        if (kept <= LIMITS.unacknowledged) continue;
        messages.splice(0, i + 1);
        break;
      }
    }
  };

  return {
    bound() {
      boundUnsent();
      boundUnacknowledged();
    },
    isListening: () => listeners.every((listener) => listener.listening),
    warnings: () => [
      ...(cutOff > 0 ? [`${cutOff} times a client was cut off that did not take what it asked for`] : []),
      ...(refused > 0
        ? [
            `${refused} times there were too many connections of OPC UA clients: one without a session made room, or the next was refused; max_sessions raises the number`,
          ]
        : []),
    ],
    end() {
      for (const socket of sockets) socket.destroy();
      for (const listener of listeners) if (listener.listening) listener.close();
    },
  };
}

/** What a client sends makes the library throw out of its reading (a chunk larger than announced): that ends this connection, and nothing else. */
function contain(socket: Socket, log: Log): void {
  const emit = socket.emit.bind(socket) as (event: string | symbol, ...details: unknown[]) => boolean;
  socket.emit = (event: string | symbol, ...details: unknown[]): boolean => {
    try {
      return emit(event, ...details);
    } catch (error) {
      log.debug(
        { client: socket.remoteAddress, err: messageOf(error).slice(0, MAX_LOGGED) },
        "an OPC UA client sent what is not OPC UA: it is cut off",
      );
      socket.destroy();
      return false;
    }
  };
}

function sessionsOf(server: OPCUAServer) {
  const { _sessions } = server.engine as unknown as {
    _sessions: Readonly<Record<string, NonNullable<ReturnType<OPCUAServer["getSession"]>>>>;
  };
  return Object.values(_sessions);
}
