import type { Server, Socket } from "node:net";
import type { OPCUAServer } from "node-opcua-server";
import type { Log } from "../../model/context.ts";
import { LIMITS } from "./limits.ts";

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
 * A client that does not take what it asked for is cut off; of notifications that it never acknowledges the oldest are forgotten (they are
 * for repeats, OPC 10000-4, 5.14.1.1). The library bounds the former by nothing and the latter by messages, not by what is in them.
 */
export function watchConnections(server: OPCUAServer, log: Log): Connections {
  const sockets = new Set<Socket>();
  const listeners = server.endpoints.flatMap((endpoint) => {
    const listener = (endpoint as unknown as Listening)._server;
    return listener ? [listener] : [];
  });
  let cutOff = 0;
  let refused = 0;
  for (const listener of listeners)
    listener.on("connection", (socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
      socket.on("error", (error) => log.debug({ err: error.message }, "a connection of an OPC UA client failed"));
    });
  server.on("connectionRefused", () => {
    refused++;
  });

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
      ...(refused > 0 ? [`${refused} connections were refused because there were too many; max_sessions raises the number`] : []),
    ],
    end() {
      for (const socket of sockets) socket.destroy();
      for (const listener of listeners) if (listener.listening) listener.close();
    },
  };
}

function sessionsOf(server: OPCUAServer) {
  const { _sessions } = server.engine as unknown as {
    _sessions: Readonly<Record<string, NonNullable<ReturnType<OPCUAServer["getSession"]>>>>;
  };
  return Object.values(_sessions);
}
