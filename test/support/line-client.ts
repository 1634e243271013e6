import net from "node:net";
import type { Duplex } from "node:stream";

/** A connection that sends lines as they are, and gives those that come. */
export class LineClient {
  readonly stream: Duplex;
  readonly #waiting: (() => void)[] = [];
  #held = "";
  #isEnded = false;

  constructor(stream: Duplex) {
    this.stream = stream;
    stream.setEncoding("utf8");
    const wake = () => {
      for (const go of this.#waiting.splice(0)) go();
    };
    stream.on("data", (text: string) => {
      this.#held += text;
      wake();
    });
    stream.on("error", () => {});
    stream.on("close", () => {
      this.#isEnded = true;
      wake();
    });
  }

  static to(port: number): LineClient {
    return new LineClient(net.connect(port, "127.0.0.1"));
  }

  send(line: string | Uint8Array): void {
    this.stream.write(typeof line === "string" ? `${line}\n` : line);
  }

  /** The next line; undefined: the connection has ended. */
  async next(): Promise<string | undefined> {
    while (!this.#held.includes("\n")) {
      if (this.#isEnded) return undefined;
      await new Promise<void>((go) => this.#waiting.push(go));
    }
    const end = this.#held.indexOf("\n");
    const line = this.#held.slice(0, end);
    this.#held = this.#held.slice(end + 1);
    return line;
  }

  async ask(line: string): Promise<unknown> {
    this.send(line);
    return JSON.parse((await this.next()) ?? "null");
  }

  close(): void {
    this.stream.destroy();
  }
}
