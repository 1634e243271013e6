import net, { type AddressInfo } from "node:net";
import type { Value } from "../src/model/value.ts";

/** A device for tests and the demo. Speaks the real protocol on a real socket; shares no frame code with its driver. */
export interface Simulator {
  readonly port: number;
  /** Connection details as the API would hold them, for the given way in (a proxy may stand between). */
  details(host: string, port: number): Record<string, unknown>;
  /** What the device holds: the address as a person types it, its type as written, and the value that a right driver reads. */
  readonly variables: readonly { readonly address: string; readonly type: string; readonly value: Value }[];
  /** Well-formed, but this device has no such variable. */
  readonly missing: { readonly address: string; readonly type: string };
  /** Addresses that the driver must refuse. */
  readonly malformed: readonly string[];
  /** TCP connections that clients have open now; over UDP 0, because no datagram tells a device of a closed socket. */
  connections(): number;
  close(): Promise<void>;
}

export type StartSimulator = (options?: Listening) => Promise<Simulator>;

/** The place where a device listens: port 0 or absent takes a free one; 127.0.0.1 unless told otherwise. */
export interface Listening {
  readonly port?: number;
  readonly host?: string;
}

/** The TCP end of a simulated device: what listens, and the connections that are open. */
export class DeviceServer<Connection extends { hangUp(how: "fin" | "rst"): void }> {
  readonly connections: ReadonlySet<Connection>;
  readonly #server: net.Server;

  /** `accept` makes a connection of a socket; `closed` is told when that has ended. */
  constructor(accept: (socket: net.Socket) => Connection, closed: (connection: Connection) => void = () => {}) {
    const open = new Set<Connection>();
    this.connections = open;
    this.#server = net.createServer({ noDelay: true }, (socket) => {
      const connection = accept(socket);
      open.add(connection);
      socket.on("close", () => {
        open.delete(connection);
        closed(connection);
      });
    });
  }

  /** Throws what listening fails with. */
  async listen({ port = 0, host = "127.0.0.1" }: Listening): Promise<void> {
    await new Promise<void>((ready, failed) =>
      this.#server.once("error", failed).listen(port, host, () => {
        this.#server.removeListener("error", failed);
        ready();
      }),
    );
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Ends all connections, as a restart or the network does. */
  drop(how: "fin" | "rst" = "rst"): void {
    for (const connection of this.connections) connection.hangUp(how);
  }

  async close(): Promise<void> {
    this.drop();
    await new Promise<void>((done) => this.#server.close(() => done()));
  }
}
