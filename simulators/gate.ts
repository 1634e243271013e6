import dgram from "node:dgram";
import net, { type AddressInfo } from "node:net";
import type { SimulatedFault } from "../src/model/simulation.ts";
import { reset } from "./reset.ts";

/** Stands before a simulated device, and does to its answers what a network and a device in trouble do. */

export interface GateOptions {
  readonly host: string;
  readonly port: number;
  /** Of the device, on 127.0.0.1. */
  readonly devicePort: number;
  /** True: datagrams pass too. */
  readonly hasUdp: boolean;
  readonly slowMs?: number;
  readonly dropEveryMs?: number;
}

const SLOW_MS = 3000;
const DROP_EVERY_MS = 5000;
const HURRIED_MS = 50;
const MAX_CONNECTIONS = 100;
/** Answers that are under way. */
const MAX_DELAYED = 1000;
const HERE = "127.0.0.1";

export class Gate {
  readonly #options: GateOptions;
  readonly #sockets = new Set<net.Socket>();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #clients = new Map<string, dgram.Socket>();
  #faults: ReadonlySet<SimulatedFault> = new Set();
  #server: net.Server | undefined;
  #udp: dgram.Socket | undefined;
  #dropping: NodeJS.Timeout | undefined;

  /** Throws what listening fails with. */
  static async start(options: GateOptions): Promise<Gate> {
    const gate = new Gate(options);
    await gate.#open(options.port);
    return gate;
  }

  private constructor(options: GateOptions) {
    this.#options = options;
  }

  /** The place where it listens, also while it does not. */
  port = 0;

  /** From now on exactly these are in force. Throws what listening fails with, where the port was taken meanwhile. */
  async plant(faults: readonly SimulatedFault[]): Promise<void> {
    this.#faults = new Set(faults);
    clearInterval(this.#dropping);
    if (this.#faults.has("drop")) this.#dropping = setInterval(() => this.#reset(), this.#options.dropEveryMs ?? DROP_EVERY_MS);
    if (this.#faults.has("refuses")) await this.#shut();
    else if (!this.#server) await this.#open(this.port);
  }

  async close(): Promise<void> {
    clearInterval(this.#dropping);
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    await this.#shut();
  }

  async #open(port: number): Promise<void> {
    const { host, hasUdp } = this.#options;
    const server = net.createServer({ noDelay: true }, (near) => this.#connect(near));
    await new Promise<void>((ready, failed) => server.once("error", failed).listen({ host, port, exclusive: true }, ready));
    server.removeAllListeners("error").on("error", () => {});
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    if (hasUdp) await this.#bind(host, this.port);
  }

  async #shut(): Promise<void> {
    this.#reset();
    const server = this.#server;
    const udp = this.#udp;
    this.#server = undefined;
    this.#udp = undefined;
    for (const far of this.#clients.values()) far.close();
    this.#clients.clear();
    await Promise.all([
      server && new Promise<void>((done) => server.close(() => done())),
      udp && new Promise<void>((done) => udp.close(() => done())),
    ]);
  }

  #reset(): void {
    for (const socket of this.#sockets) reset(socket);
  }

  #connect(near: net.Socket): void {
    near.on("error", () => {});
    if (this.#sockets.size >= MAX_CONNECTIONS) {
      near.destroy();
      return;
    }
    const far = net.connect({ host: HERE, port: this.#options.devicePort, noDelay: true });
    this.#sockets.add(near);
    far.on("error", () => {});
    near.on("close", () => {
      this.#sockets.delete(near);
      far.destroy();
    });
    near.on("end", () => far.end());
    far.on("end", () => near.end());
    far.on("close", () => near.destroySoon());
    let isFirst = true;
    let answeredMs = Number.NEGATIVE_INFINITY;
    near.on("data", (bytes) => {
      const isUnheard =
        (isFirst && this.#faults.has("deaf")) || (this.#faults.has("hurried") && performance.now() - answeredMs < HURRIED_MS);
      isFirst = false;
      if (isUnheard) return;
      if (!far.write(bytes)) near.pause();
    });
    far.on("drain", () => near.resume());
    far.on("data", (bytes) =>
      this.#answer(() => {
        answeredMs = performance.now();
        if (!near.destroyed && !near.write(bytes)) far.pause();
      }),
    );
    near.on("drain", () => far.resume());
  }

  async #bind(host: string, port: number): Promise<void> {
    const near = dgram.createSocket(net.isIPv6(host) ? "udp6" : "udp4");
    near.on("message", (request, { address, port: from }) => {
      const far = this.#farOf(`${address} ${from}`, (answer) => near.send(answer, from, address, () => {}));
      far.send(request, this.#options.devicePort, HERE, () => {});
    });
    await new Promise<void>((ready, failed) => near.once("error", failed).bind({ address: host, port, exclusive: true }, ready));
    near.removeAllListeners("error").on("error", () => {});
    this.#udp = near;
  }

  /** The socket towards the device of one client; the one that came first makes room for a new one. */
  #farOf(client: string, send: (answer: Buffer) => void): dgram.Socket {
    const known = this.#clients.get(client);
    if (known) return known;
    const far = dgram.createSocket("udp4");
    far.on("error", () => {});
    far.on("message", (answer) => this.#answer(() => this.#clients.get(client) === far && send(answer)));
    this.#clients.set(client, far);
    const [oldest] = this.#clients;
    if (this.#clients.size > MAX_CONNECTIONS && oldest) {
      oldest[1].close();
      this.#clients.delete(oldest[0]);
    }
    return far;
  }

  #answer(send: () => void): void {
    if (this.#faults.has("silent") || this.#timers.size >= MAX_DELAYED) return;
    if (!this.#faults.has("slow")) {
      send();
      return;
    }
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      send();
    }, this.#options.slowMs ?? SLOW_MS);
    this.#timers.add(timer);
  }
}
