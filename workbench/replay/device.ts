import dgram from "node:dgram";
import net from "node:net";
import type { Protocol } from "../../drivers/replay.ts";
import { RecentMap } from "../../src/base/recent-map.ts";
import type { MemoryFacts, ReplayCounts, RunningReplay, ServeOptions } from "../../src/model/workbench.ts";
import { DeviceMemory } from "./memory.ts";
import { answerFor, essenceOf, messageIn } from "./protocols.ts";
import type { RecordedDevice } from "./recording.ts";
import type { Script } from "./script.ts";

const MAX_CONNECTIONS = 64;
/** Answers that a client leaves unread. */
const MAX_UNREAD_BYTES = 1024 * 1024;
/** Clients over UDP whose last numbers are known. */
const MAX_CLIENTS = 256;

export interface ReplayOptions extends ServeOptions {
  readonly device: RecordedDevice;
}

/** Serves the answers of a recording as a device. It listens and answers; it connects to nothing. */
export class ReplayDevice implements RunningReplay {
  readonly counts: ReplayCounts = {
    connections: 0,
    refused: 0,
    requests: 0,
    answered: 0,
    byPlace: 0,
    fromMemory: 0,
    silent: 0,
    unknown: 0,
    ended: 0,
  };
  readonly #protocol: Protocol;
  readonly #script: Script;
  readonly #memory: DeviceMemory | undefined;
  readonly #onUnknown: ServeOptions["onUnknown"];
  readonly #sockets = new Set<net.Socket>();
  readonly #clients = new RecentMap<Map<string, Buffer>>(MAX_CLIENTS);
  #close: () => Promise<void> = () => Promise.resolve();

  /** Throws what listening fails with. */
  static async start(options: ReplayOptions): Promise<ReplayDevice> {
    const device = new ReplayDevice(options);
    if (options.device.transport === "tcp") await device.#listen(options);
    else await device.#bind(options);
    return device;
  }

  private constructor({ device, onUnknown }: ReplayOptions) {
    this.#protocol = device.protocol;
    this.#script = device.script;
    this.#memory = device.protocol.memory && new DeviceMemory(device.protocol.memory, device.script.asked());
    this.#onUnknown = onUnknown;
  }

  get memory(): MemoryFacts | undefined {
    return this.#memory?.facts;
  }

  /** The place where it listens. */
  port = 0;

  close(): Promise<void> {
    return this.#close();
  }

  async #listen({ host, port }: ReplayOptions): Promise<void> {
    const server = net.createServer({ noDelay: true }, (socket) => this.#serve(socket));
    await new Promise<void>((ready, failed) => server.once("error", failed).listen({ host, port, exclusive: true }, ready));
    // What accepting a connection fails with costs that connection.
    server.removeAllListeners("error").on("error", () => this.counts.refused++);
    this.port = (server.address() as net.AddressInfo).port;
    this.#close = async () => {
      for (const socket of this.#sockets) socket.destroy();
      await new Promise<void>((done) => server.close(() => done()));
    };
  }

  #serve(socket: net.Socket): void {
    socket.on("error", () => {});
    if (this.#sockets.size >= MAX_CONNECTIONS) {
      this.counts.refused++;
      socket.destroy();
      return;
    }
    this.counts.connections++;
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    const numbers = new Map<string, Buffer>();
    let held: Buffer = Buffer.alloc(0);
    const greeting = this.#script.greeting();
    if (greeting) socket.write(greeting);
    socket.on("data", (chunk) => {
      const taken = this.#take(Buffer.concat([held, chunk]), numbers, (answer) => {
        if (socket.writableLength <= MAX_UNREAD_BYTES) socket.write(answer);
      });
      if (taken === undefined || socket.writableLength > MAX_UNREAD_BYTES) {
        this.counts.ended++;
        socket.destroy();
        return;
      }
      held = taken;
    });
  }

  /** Answers each whole request; gives what is left, undefined where that is no message. */
  #take(bytes: Buffer, numbers: Map<string, Buffer>, send: (answer: Buffer) => void): Buffer | undefined {
    if (!this.#protocol.lengthOf) return this.#takeBytes(bytes, numbers, send);
    let rest = bytes;
    for (let message = messageIn(this.#protocol, rest); message !== undefined; message = messageIn(this.#protocol, rest)) {
      if (message === null) {
        this.counts.requests++;
        this.#missing(rest);
        return undefined;
      }
      this.#answer(message, numbers, send);
      rest = rest.subarray(message.length);
    }
    return Buffer.from(rest);
  }

  /** Of a protocol that is not known: a request of the recording, the beginning of one, or several one after the other. */
  #takeBytes(bytes: Buffer, numbers: Map<string, Buffer>, send: (answer: Buffer) => void): Buffer {
    let rest = bytes;
    while (rest.length > 0) {
      if (this.#script.isBeginning(rest)) return Buffer.from(rest);
      const request = this.#script.beginningOf(rest) ?? rest;
      this.#answer(request, numbers, send);
      rest = rest.subarray(request.length);
    }
    return rest;
  }

  async #bind({ host, port }: ReplayOptions): Promise<void> {
    const socket = dgram.createSocket(net.isIPv6(host) ? "udp6" : "udp4");
    socket.on("message", (message, { address, port: from }) => {
      const numbers = this.#clients.getOrMake(`${address} ${from}`, () => new Map());
      this.#answer(message, numbers, (answer) => {
        if (socket.getSendQueueSize() <= MAX_UNREAD_BYTES) socket.send(answer, from, address, () => {});
      });
    });
    await new Promise<void>((ready, failed) => socket.once("error", failed).bind({ address: host, port, exclusive: true }, ready));
    socket.removeAllListeners("error").on("error", () => {});
    this.port = socket.address().port;
    this.#close = () => new Promise((done) => socket.close(() => done()));
  }

  #answer(request: Buffer, numbers: Map<string, Buffer>, send: (answer: Buffer) => void): void {
    this.counts.requests++;
    const found = this.#script.find(request, numbers);
    if (found.kind === "unknown") this.#remember(request, numbers, send);
    else if (found.kind === "silent") this.counts.silent++;
    else {
      this.counts.answered++;
      if (found.isByPlace) this.counts.byPlace++;
      if (found.moment !== undefined) this.#memory?.moveTo(found.moment);
      for (const part of found.parts) send(part);
    }
  }

  /** Answers what the recording has not from what it tells of the device's memory. */
  #remember(request: Buffer, numbers: Map<string, Buffer>, send: (answer: Buffer) => void): void {
    const made = this.#memory?.answer(request);
    if (made && !made.isRefusal) {
      this.counts.answered++;
      this.counts.fromMemory++;
    } else this.#missing(request);
    if (made) send(answerFor(this.#protocol, made.message, request, numbers));
  }

  #missing(request: Buffer): void {
    this.counts.unknown++;
    this.#onUnknown({ request, essence: essenceOf(this.#protocol, request, false), nearest: this.#script.nearest(request) });
  }
}
