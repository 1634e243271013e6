import dgram from "node:dgram";
import net from "node:net";

/** Clients of bytes for FINS, in hexadecimal with spaces wherever they help. */

export const bytesOfHex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
export const spaceless = (text: string): string => text.replaceAll(" ", "");

const WITHIN_MS = 5000;

/** Resolves once something is so; rejects with its words after five seconds. */
class Waiting {
  readonly #checks = new Set<() => void>();

  changed(): void {
    for (const check of this.#checks) check();
  }

  until(isSo: () => boolean, words: string): Promise<void> {
    if (isSo()) return Promise.resolve();
    return new Promise((done, failed) => {
      const end = (work: () => void) => {
        clearTimeout(timer);
        this.#checks.delete(check);
        work();
      };
      const check = () => isSo() && end(done);
      const timer = setTimeout(() => end(() => failed(new Error(`not within ${WITHIN_MS} ms: ${words}`))), WITHIN_MS);
      this.#checks.add(check);
    });
  }
}

export class FinsDatagrams {
  readonly #socket = dgram.createSocket("udp4");
  readonly #received: string[] = [];
  readonly #waiting = new Waiting();
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
    this.#socket.on("message", (datagram) => {
      this.#received.push(datagram.toString("hex"));
      this.#waiting.changed();
    });
  }

  send(text: string): void {
    this.#socket.send(bytesOfHex(text), this.#port, "127.0.0.1");
  }

  async next(): Promise<string> {
    await this.#waiting.until(() => this.#received.length > 0, "a datagram");
    return this.#received.shift() ?? "";
  }

  ask(text: string): Promise<string> {
    this.send(text);
    return this.next();
  }

  close(): void {
    this.#socket.close();
  }
}

export class FinsStream {
  hasEnded = false;
  readonly #socket: net.Socket;
  readonly #waiting = new Waiting();
  #received = "";

  constructor(port: number) {
    this.#socket = net.connect(port, "127.0.0.1");
    const ended = () => {
      this.hasEnded = true;
      this.#waiting.changed();
    };
    this.#socket.on("data", (chunk) => {
      this.#received += chunk.toString("hex");
      this.#waiting.changed();
    });
    this.#socket.on("error", () => {});
    this.#socket.on("close", ended);
    this.#socket.on("end", ended);
  }

  send(text: string): void {
    this.#socket.write(bytesOfHex(text));
  }

  /** The next bytes, fewer where the connection ends before them. */
  async ask(text: string, bytes: number): Promise<string> {
    this.send(text);
    await this.#waiting.until(() => this.#received.length >= bytes * 2 || this.hasEnded, `${bytes} bytes`);
    const answer = this.#received.slice(0, bytes * 2);
    this.#received = this.#received.slice(bytes * 2);
    return answer;
  }

  ended(): Promise<void> {
    return this.#waiting.until(() => this.hasEnded, "the end of the connection");
  }

  close(): void {
    this.#socket.destroy();
  }
}
