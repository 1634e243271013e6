import { connect, createServer, type ListenOptions, type Server, type Socket } from "node:net";
import { pipeline } from "node:stream";
import { listenAt } from "./listen.ts";

/** Who waits at once; a client beyond is closed, and asks again. */
const MAX_WAITING = 64;
/** A client that waits longer is closed. */
const WAITED_MS = 10_000;

/**
 * Listens on a port of this machine until somebody comes, so that what answers there need not run before. Who has come waits, and is led on to it
 * when it listens in the doorway's place. Only for loopback without TLS: whoever is led on comes from this machine either way.
 */
export class Doorway {
  readonly #server: Server;
  readonly #waiting = new Set<Socket>();
  readonly #led = new Set<Socket>();
  #isKnocked = false;

  /** `onKnock`: somebody has come for the first time. */
  constructor(onKnock: () => void) {
    // A paused client keeps what it says until there is somebody to take it.
    this.#server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) => {
      this.#wait(socket);
      if (this.#isKnocked) return;
      this.#isKnocked = true;
      onKnock();
    });
    this.#server.maxConnections = MAX_WAITING;
    // A connection that cannot be taken is its client's to open again.
    this.#server.on("error", () => {});
  }

  /** Rejects where it cannot listen there. */
  listen(place: ListenOptions): Promise<void> {
    return listenAt(this.#server, place);
  }

  /** Undefined while it does not listen. */
  get port(): number | undefined {
    const at = this.#server.address();
    return typeof at === "object" && at !== null ? at.port : undefined;
  }

  /** How many wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** The port is free from now on; who waits goes on waiting. */
  vacate(): void {
    this.#server.close();
  }

  /** Leads on who waits to what listens there now. */
  lead(place: { readonly host: string; readonly port: number }): void {
    for (const socket of this.#waiting) this.#lead(socket, connect({ ...place, allowHalfOpen: true }));
    this.#waiting.clear();
  }

  /** Ends it, and who waits or was led on. */
  close(): void {
    this.#server.close();
    for (const socket of [...this.#waiting, ...this.#led]) socket.destroy();
  }

  #wait(socket: Socket): void {
    this.#waiting.add(socket);
    socket.setTimeout(WAITED_MS, () => socket.destroy());
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#waiting.delete(socket));
  }

  #lead(socket: Socket, on: Socket): void {
    socket.setTimeout(0);
    this.#led.add(socket);
    socket.once("close", () => this.#led.delete(socket));
    // Whatever breaks one way ends both.
    const ended = (error: unknown): void => {
      if (!error) return;
      socket.destroy();
      on.destroy();
    };
    pipeline(socket, on, ended);
    pipeline(on, socket, ended);
  }
}
