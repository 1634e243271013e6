import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { Aedes, type PublishPacket } from "aedes";
import { freePort } from "./free-port.ts";

export interface Received {
  readonly topic: string;
  readonly payload: string;
  readonly retain: boolean;
}

/** A real MQTT 3.1.1 broker (aedes) on 127.0.0.1, and what was published to it. */
export interface TestBroker {
  readonly port: number;
  /** In order of arrival; a new broker on the same port starts from none. */
  readonly received: readonly Received[];
  /** What a late subscriber would get. */
  readonly retained: ReadonlyMap<string, string>;
  /** Connections accepted so far. */
  readonly connections: () => number;
  /** While true publishes are neither taken nor acknowledged. */
  hold(on: boolean): void;
  /** Publishes that wait for hold(false). */
  readonly held: () => number;
  /** Cuts every connection. */
  drop(): void;
  stop(): Promise<void>;
}

export interface BrokerOptions {
  /** Absent: a free one, which stays free for the same broker while it is stopped. */
  readonly port?: number;
  /** Who may connect; absent: all. */
  readonly user?: { readonly name: string; readonly password: string };
  /** Absent: plain TCP. */
  readonly tls?: TlsOptions;
  /** Gets what is published instead of `received`, which stays empty: for more than one wants to keep. */
  readonly onPublish?: (message: Received) => void;
  /** Subscribers have a message before it is acknowledged: aedes acknowledges first, and what ends it in between takes the message along. */
  readonly handsOnFirst?: boolean;
}

/** What is handed on already goes this way, on which nobody listens. */
const HANDED_ON = "$handed-on";

export async function startBroker({ port, user, tls, onPublish, handsOnFirst = false }: BrokerOptions = {}): Promise<TestBroker> {
  const received: Received[] = [];
  const retained = new Map<string, string>();
  const sockets = new Set<Socket>();
  const waiting: (() => void)[] = [];
  let connections = 0;
  let holding = false;
  const aedes = await Aedes.createBroker({
    authenticate: (_client, name, password, done) => done(null, !user || (name === user.name && password?.toString() === user.password)),
    authorizePublish: (_client, packet, done) => {
      const go = () => (handsOnFirst ? handOn(packet, done) : done(null));
      if (holding) waiting.push(go);
      else go();
    },
  });
  const handOn = (packet: PublishPacket, done: (error?: Error | null) => void): void => {
    aedes.publish({ ...packet }, (error) => {
      Object.assign(packet, { topic: HANDED_ON, retain: false });
      done(error ?? null);
    });
  };
  aedes.on("publish", ({ topic, payload, retain }) => {
    if (topic.startsWith("$")) return;
    const message = { topic, payload: payload.toString(), retain };
    if (onPublish) onPublish(message);
    else received.push(message);
    if (retain && payload.length > 0) retained.set(topic, payload.toString());
    else if (retain) retained.delete(topic);
  });
  aedes.on("clientError", () => {});
  aedes.on("connectionError", () => {});
  const serve = (socket: Socket) => {
    connections++;
    socket.setNoDelay(true);
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
    aedes.handle(socket);
  };
  const server = tls ? createTlsServer(tls, serve) : createServer(serve);
  server.listen(port ?? (await freePort()), "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const drop = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: address !== null && typeof address === "object" ? address.port : 0,
    received,
    retained,
    connections: () => connections,
    hold(on) {
      holding = on;
      if (!on) for (const go of waiting.splice(0)) go();
    },
    held: () => waiting.length,
    drop,
    async stop() {
      const closed = once(server, "close");
      server.close();
      drop();
      await closed;
      await new Promise<void>((done) => aedes.close(() => done()));
    },
  };
}
