import net, { type AddressInfo } from "node:net";
import type { Listening } from "../../drivers/simulator.ts";

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

  get isListening(): boolean {
    return this.#server.listening;
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
