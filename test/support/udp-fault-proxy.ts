import dgram from "node:dgram";
import { mutate, seededRandom } from "./fault-proxy.ts";
import { socketsConnectedTo } from "./udp-sockets.ts";

/** What the proxy does to datagrams. */
export const DATAGRAM_FAULTS = [
  "none",
  /** swallows answers */ "silent",
  /** nobody listens: requests come back as ICMP port unreachable */ "gone",
  /** one bit of each answer turned over, by the seed */ "flip",
  /** bytes of each answer changed, cut off, doubled or added, by the seed */ "fuzz",
  /** answers come late by `delayMs` */ "delay",
  /** of every second request the first copy, of the others the first answer */ "lost",
  /** each request and each answer comes twice, the second one later */ "doubled",
  /** answers come after 0 to 30 ms each, by the seed */ "shuffled",
  /** datagrams that answer nothing before and after each answer */ "garbage",
] as const;
export type DatagramFault = (typeof DATAGRAM_FAULTS)[number];

/** As FaultProxy, for datagrams. */
export interface UdpFaultProxy {
  readonly port: number;
  /** What turns bits over; print it when a test fails. */
  readonly seed: number;
  readonly fault: DatagramFault;
  delayMs: number;
  misbehave(fault: DatagramFault): Promise<void>;
  /** Sockets that are connected to it now. */
  connections(): number;
  /** All that came from each socket, in order. */
  sent(): readonly Buffer[];
  close(): Promise<void>;
}

interface Client {
  readonly far: dgram.Socket;
  readonly received: Buffer[];
  /** Requests by content: what is sent again is the same. */
  readonly copies: Map<string, { readonly isRequestLost: boolean; copies: number; answers: number }>;
}

const DOUBLE_MS = 15;
const SHUFFLE_MS = 30;

export async function startUdpFaultProxy(targetPort: number, seed: number = Math.floor(Math.random() * 2 ** 32)): Promise<UdpFaultProxy> {
  const proxy = new UdpProxy(targetPort, seed);
  await proxy.listen();
  return proxy;
}

class UdpProxy implements UdpFaultProxy {
  readonly seed: number;
  fault: DatagramFault = "none";
  delayMs = 0;
  readonly #targetPort: number;
  readonly #random: () => number;
  readonly #clients = new Map<number, Client>();
  readonly #sent: Buffer[][] = [];
  readonly #timers = new Set<NodeJS.Timeout>();
  #near: dgram.Socket | undefined;
  #port = 0;

  constructor(targetPort: number, seed: number) {
    this.#targetPort = targetPort;
    this.seed = seed;
    this.#random = seededRandom(seed);
  }

  get port(): number {
    return this.#port;
  }

  async listen(): Promise<void> {
    const near = dgram.createSocket("udp4");
    near.on("error", () => {});
    near.on("message", (datagram, { port }) => this.#onRequest(port, datagram));
    await new Promise<void>((ready) => near.bind(this.#port, "127.0.0.1", ready));
    this.#port = near.address().port;
    this.#near = near;
  }

  async misbehave(fault: DatagramFault): Promise<void> {
    this.fault = fault;
    if (fault === "gone") {
      await new Promise<void>((done) => (this.#near ? this.#near.close(done) : done()));
      this.#near = undefined;
    } else if (!this.#near) await this.listen();
  }

  connections(): number {
    const open = new Set(socketsConnectedTo(this.#port));
    for (const [port, { far }] of this.#clients) {
      if (open.has(port)) continue;
      this.#clients.delete(port);
      far.close();
    }
    return open.size;
  }

  sent(): readonly Buffer[] {
    return this.#sent.map((datagrams) => Buffer.concat(datagrams));
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const { far } of this.#clients.values()) far.close();
    this.#clients.clear();
    await this.misbehave("gone");
  }

  #clientOf(port: number): Client {
    const known = this.#clients.get(port);
    if (known) return known;
    const far = dgram.createSocket("udp4");
    const received: Buffer[] = [];
    const client: Client = { far, received, copies: new Map() };
    far.on("error", () => {});
    far.on("message", (datagram) => this.#onAnswer(port, client, datagram));
    this.#clients.set(port, client);
    this.#sent.push(received);
    return client;
  }

  #onRequest(port: number, datagram: Buffer): void {
    const client = this.#clientOf(port);
    client.received.push(datagram);
    const forward = () => client.far.send(datagram, this.#targetPort, "127.0.0.1");
    if (this.fault === "lost" && this.#isFirstCopyLost(client, datagram)) return;
    forward();
    if (this.fault === "doubled") this.#later(DOUBLE_MS, forward);
  }

  /** Ids are the third word of a request and of its answer in every protocol that comes by here. */
  #isFirstCopyLost(client: Client, datagram: Buffer): boolean {
    const key = keyOf(datagram);
    const copy = client.copies.get(key) ?? { isRequestLost: client.copies.size % 2 === 0, copies: 0, answers: 0 };
    client.copies.set(key, copy);
    return copy.isRequestLost && copy.copies++ === 0;
  }

  #onAnswer(port: number, client: Client, datagram: Buffer): void {
    const give = (bytes: Uint8Array = datagram) => this.#near?.send(bytes, port, "127.0.0.1", () => {});
    switch (this.fault) {
      case "silent":
      case "gone":
        return;
      case "flip": {
        const at = Math.floor(this.#random() * datagram.length);
        datagram[at] = (datagram[at] ?? 0) ^ (1 << Math.floor(this.#random() * 8));
        give();
        return;
      }
      case "fuzz":
        give(mutate(datagram, this.#random));
        return;
      case "delay":
        this.#later(this.delayMs, give);
        return;
      case "lost": {
        const copy = client.copies.get(keyOf(datagram));
        if (copy && !copy.isRequestLost && copy.answers++ === 0) return;
        give();
        return;
      }
      case "doubled":
        give();
        this.#later(DOUBLE_MS, give);
        return;
      case "shuffled":
        this.#later(this.#random() * SHUFFLE_MS, give);
        return;
      case "garbage":
        give(Buffer.from(Array.from({ length: Math.floor(this.#random() * 40) }, () => Math.floor(this.#random() * 256))));
        give(datagram.subarray(0, datagram.length >> 1));
        give();
        give(Buffer.concat([datagram, Buffer.from([1, 2, 3])]));
        return;
      case "none":
        give();
    }
  }

  #later(ms: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      work();
    }, ms);
    this.#timers.add(timer);
  }
}

/** The same for a request and its answer. */
const keyOf = (datagram: Buffer): string => datagram.toString("hex", 4, 6);
