import net, { type AddressInfo } from "node:net";
import tls from "node:tls";
import type { Backend } from "./backend.ts";
import { ClientConnection, type GatewayLimits, type Shared } from "./connection.ts";
import { GatewayError } from "./errors.ts";

/** How connections are protected. Absent: they are not. */
export type GatewaySecurity =
  | { readonly kind: "psk"; readonly identity: string /** 16 to 64 bytes */; readonly key: Uint8Array }
  | {
      readonly kind: "certificate";
      /** PEM. */
      readonly certificate: string | Buffer;
      readonly key: string | Buffer;
      /** Clients must show a certificate of these (PEM); absent: they need none. */
      readonly clientAuthorities?: string | Buffer;
    };

export interface GatewayOptions {
  readonly backend: Backend;
  /** 127.0.0.1 unless told otherwise. */
  readonly host?: string;
  /** 0 or absent: a free one. */
  readonly port?: number;
  readonly security?: GatewaySecurity;
  readonly limits?: Partial<GatewayLimits>;
  /** Default: 16. */
  readonly maxConnections?: number;
  readonly log?: (message: string) => void;
}

const LIMITS: GatewayLimits = { maxLineBytes: 1_048_576, maxItems: 1000, maxInFlight: 4, helloWithinMs: 10_000 };
const MAX_CONNECTIONS = 16;
/** Requests of all connections that the backend works on, those that nobody waits for any more among them. */
const MAX_WORKING = 64;
/** More than this at once are not even told so. */
const MAX_REFUSED = 16;

/**
 * Both sides give forward secrecy, so that a key that is found later opens nothing that was recorded: TLS 1.3, and of TLS 1.2 what
 * exchanges keys of its own for each connection.
 */
const PSK_CIPHERS = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:ECDHE-PSK-CHACHA20-POLY1305:DHE-PSK-AES128-GCM-SHA256";

/** A gateway that listens. */
export class Gateway {
  readonly #server: net.Server;
  readonly #connections = new Set<ClientConnection>();
  readonly #sockets = new Set<net.Socket>();
  readonly #shared: Shared;
  readonly #maxConnections: number;
  #working = 0;

  private constructor(options: GatewayOptions) {
    const { backend, limits = {}, log = () => {}, maxConnections = MAX_CONNECTIONS } = options;
    this.#maxConnections = maxConnections;
    this.#shared = {
      backend,
      limits: { ...LIMITS, ...limits },
      begin: () => this.#begin(),
      end: () => {
        this.#working--;
      },
      log,
    };
    this.#server = serverOf(options.security, (socket) => this.#accept(socket));
    this.#server.on("connection", (socket: net.Socket) => {
      if (this.#sockets.size >= this.#maxConnections + MAX_REFUSED) socket.destroy();
      socket.setNoDelay(true);
      socket.setKeepAlive(true, 10_000);
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.#sockets.delete(socket));
    });
    this.#server.on("tlsClientError", (error: Error) => log(`a client failed in TLS: ${error.message}`));
  }

  /** Throws what listening fails with. */
  static async start(options: GatewayOptions): Promise<Gateway> {
    const gateway = new Gateway(options);
    const { host = "127.0.0.1", port = 0 } = options;
    await new Promise<void>((ready, failed) => gateway.#server.once("error", failed).listen(port, host, ready));
    return gateway;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Open now. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** Ends all connections, as a restart or the network does. */
  drop(how: "fin" | "rst" = "rst"): void {
    for (const socket of this.#sockets)
      if (how === "fin") socket.end();
      else socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((done) => this.#server.close(() => done()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #begin(): boolean {
    if (this.#working >= MAX_WORKING) return false;
    this.#working++;
    return true;
  }

  #accept(socket: net.Socket): void {
    const refusal =
      this.#connections.size < this.#maxConnections
        ? undefined
        : new GatewayError("too_many_connections", `the gateway takes ${this.#maxConnections} connections`, { retryAfterMs: 10_000 });
    const connection = new ClientConnection(socket, this.#shared, refusal);
    if (refusal) return;
    this.#connections.add(connection);
    socket.on("close", () => this.#connections.delete(connection));
  }
}

function serverOf(security: GatewaySecurity | undefined, accept: (socket: net.Socket) => void): net.Server {
  if (!security) return net.createServer(accept);
  const options: tls.TlsOptions =
    security.kind === "psk"
      ? {
          minVersion: "TLSv1.2",
          ciphers: PSK_CIPHERS,
          pskCallback: (_socket, identity) => (identity === security.identity ? security.key : null),
        }
      : {
          minVersion: "TLSv1.2",
          cert: security.certificate,
          key: security.key,
          ...(security.clientAuthorities !== undefined && { ca: security.clientAuthorities, requestCert: true, rejectUnauthorized: true }),
        };
  return tls.createServer({ ...options, handshakeTimeout: 10_000 }, accept);
}
