import net, { type Socket } from "node:net";

export interface TcpServerOptions {
  /** Open connections; further ones end at once. */
  readonly maxConnections: number;
  /** First keep-alive probe after this long without traffic. */
  readonly keepAliveMs: number;
}

/** Takes the connections of devices that connect by themselves, at `address:port` of this machine. */
export class TcpServer {
  readonly #server: net.Server;
  readonly #host: string;
  readonly #port: number;

  constructor(at: string, { maxConnections, keepAliveMs }: TcpServerOptions, accept: (socket: Socket) => void) {
    this.#server = net.createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveMs }, accept);
    this.#server.maxConnections = maxConnections;
    const colon = at.lastIndexOf(":");
    this.#port = Number(at.slice(colon + 1));
    this.#host = at.slice(0, colon).replace(/^\[|\]$/g, "");
  }

  /** Rejects where it cannot listen there; `failed`: it listens, and something fails later. */
  listen(failed: (error: Error) => void): Promise<void> {
    return new Promise((ready, refuse) => {
      this.#server.once("error", refuse);
      this.#server.listen(this.#port, this.#host, () => {
        this.#server.removeListener("error", refuse);
        this.#server.on("error", failed);
        ready();
      });
    });
  }

  /** Takes no more; open connections stay. */
  close(): void {
    this.#server.close();
  }
}
