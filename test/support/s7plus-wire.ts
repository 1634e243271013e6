import net from "node:net";
import { Duplex } from "node:stream";
import tls from "node:tls";

/** Bytes from hex with blanks. */
export const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ""), "hex");

const CONNECT = {
  "SIMATIC-ROOT-HMI": "03000024 1fe0 0000 0001 00 c0010a c1020600 c210",
  "SIMATIC-ROOT-ES": "03000023 1ee0 0000 0001 00 c0010a c1020600 c20f",
};
export type Tsap = keyof typeof CONNECT;
export const connectRequest = (tsap: Tsap = "SIMATIC-ROOT-HMI"): Buffer => Buffer.concat([hex(CONNECT[tsap]), Buffer.from(tsap)]);
export const INIT_SSL = "72010012 31 0000 05b3 0000 0001 00000000 30 00000000 72010000";
export const QUALIFIER = "000004e8 8969 0012 00000000 896a 0013 00 896b 0004 00 00";

/** How node's TLS is asked as the specification says; a test may ask otherwise. */
export const CLIENT_TLS: tls.ConnectionOptions = {
  rejectUnauthorized: false,
  minVersion: "TLSv1.3",
  maxVersion: "TLSv1.3",
  ecdhCurve: "X25519",
};

/** A client of bytes: TPKT and COTP by hand, TLS by node, and frames as they come. */
export class S7PlusWire {
  readonly socket: net.Socket;
  /** Payloads of data packets before TLS, and other packets whole. */
  readonly packets: Buffer[] = [];
  /** Frames inside TLS. */
  readonly frames: Buffer[] = [];
  /** How the connection ended, once it did. */
  ended: string | undefined;
  tls: tls.TLSSocket | undefined;
  #stream: Duplex | undefined;
  #received = Buffer.alloc(0);
  #plain = Buffer.alloc(0);
  #sequence = 1;
  readonly #counters = { read: 0, set: 0 };
  sessionId = 0;

  constructor(port: number) {
    this.socket = net.connect(port, "127.0.0.1");
    this.socket.setNoDelay(true);
    this.socket.on("error", (error: NodeJS.ErrnoException) => {
      this.ended ??= error.code ?? "error";
    });
    this.socket.on("end", () => {
      this.ended ??= "end";
    });
    this.socket.on("data", (chunk) => this.#onData(chunk));
  }

  #onData(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    while (this.#received.length >= 4 && this.#received.length >= this.#received.readUInt16BE(2)) {
      const packet = this.#received.subarray(0, this.#received.readUInt16BE(2));
      this.#received = this.#received.subarray(packet.length);
      const payload = packet.subarray(7);
      if (packet[5] !== 0xf0) this.packets.push(packet);
      else if (!this.#stream) this.packets.push(payload);
      else if (payload.length > 0) this.#stream.push(payload);
    }
  }

  /** Sends the payload in a data packet. */
  data(payload: Uint8Array): void {
    const head = Buffer.from([3, 0, 0, 0, 2, 0xf0, 0x80]);
    head.writeUInt16BE(7 + payload.length, 2);
    this.socket.write(Buffer.concat([head, payload]));
  }

  async until(isSo: () => boolean, what: string): Promise<void> {
    const deadline = performance.now() + 5000;
    while (!isSo()) {
      if (performance.now() > deadline) throw new Error(`no ${what} within 5 s; ${this.ended ?? "open"}`);
      await new Promise((done) => setTimeout(done, 2));
    }
  }

  /** The next packet, or what ended the connection. */
  async packet(): Promise<string> {
    await this.until(() => this.packets.length > 0 || this.ended !== undefined, "packet");
    return this.packets.shift()?.toString("hex") ?? this.ended ?? "";
  }

  async connect(tsap?: Tsap): Promise<string> {
    this.socket.write(connectRequest(tsap));
    return this.packet();
  }

  async initSsl(): Promise<string> {
    this.data(hex(INIT_SSL));
    return this.packet();
  }

  /** TLS over the connection; what its failure is called, if it fails. */
  async startTls(options: tls.ConnectionOptions = CLIENT_TLS): Promise<string | undefined> {
    const stream = new Duplex({
      read() {},
      write: (chunk: Buffer, _, done) => {
        for (let at = 0; at < chunk.length; at += 1017) this.data(chunk.subarray(at, at + 1017));
        done();
      },
    });
    this.#stream = stream;
    const secured = tls.connect({ socket: stream, ...options });
    let failure: string | undefined;
    let isSecure = false;
    secured.on("error", (error: NodeJS.ErrnoException) => {
      failure ??= error.code ?? error.message;
    });
    secured.once("secureConnect", () => {
      isSecure = true;
    });
    secured.on("data", (chunk: Buffer) => this.#onPlain(chunk));
    await this.until(() => isSecure || failure !== undefined || this.ended !== undefined, "TLS");
    if (!isSecure) return failure ?? this.ended;
    this.tls = secured;
    return undefined;
  }

  #onPlain(chunk: Buffer): void {
    this.#plain = Buffer.concat([this.#plain, chunk]);
    while (this.#plain.length >= 4 && this.#plain.length >= 4 + this.#plain.readUInt16BE(2)) {
      const end = 4 + this.#plain.readUInt16BE(2);
      this.frames.push(this.#plain.subarray(0, end));
      this.#plain = this.#plain.subarray(end);
    }
  }

  /** Sends a request in one frame: everything behind its transport flags. */
  send(
    functionId: string,
    body: string,
    { version = "02", flags = "34", sessionId = this.sessionId, sequence = this.#sequence++ } = {},
  ): void {
    const number = (value: number, bytes: number) => value.toString(16).padStart(bytes * 2, "0");
    const data = hex(`31 0000 ${functionId} 0000 ${number(sequence, 2)} ${number(sessionId, 4)} ${flags} ${body}`);
    this.tls?.write(Buffer.concat([hex(`72 ${version} ${number(data.length, 2)}`), data, hex(`72 ${version} 0000`)]));
  }

  /** The next message joined from its frames, from its opcode on; an event with `event` before it. */
  async message(): Promise<string> {
    let joined = "";
    for (;;) {
      await this.until(() => this.frames.length > 0 || this.ended !== undefined, "message");
      const frame = this.frames.shift();
      if (!frame) return this.ended ?? "";
      if (frame[1] === 0xfe) return `event ${frame.toString("hex", 4)}`;
      if (frame.length === 4) return joined;
      joined += frame.toString("hex", 4);
    }
  }

  async ask(...request: Parameters<S7PlusWire["send"]>): Promise<string> {
    this.send(...request);
    return this.message();
  }

  /** The next integrity id as hex; below 128. */
  next(counter: "read" | "set"): string {
    this.#counters[counter]++;
    return this.#counters[counter].toString(16).padStart(2, "0");
  }

  create(flags = "36"): Promise<string> {
    const body = "0000011d 0004 00 00000000 a1 000000d3 821f 00 00 a3 822c 00 12 80c3c901 a1 000000d3 817f 00 00 a2 a2 00000000";
    return this.ask("04ca", body, { version: "01", flags, sessionId: 0x120 });
  }

  /** Everything up to a session that can be used; gives what the creation was answered with. */
  async open(): Promise<string> {
    await this.connect();
    await this.initSsl();
    await this.startTls();
    const created = await this.create();
    const [, id = "", attribute = ""] =
      /^3200000 ?4ca0000....36(?:.*?)02(87(?:[89a-f].){3}..).*a38232(0017.*)a200000000$/.exec(created) ?? [];
    this.sessionId = hex(id).reduce((value, byte) => value * 128 + (byte & 0x7f), 0);
    await this.ask("0542", `${id4(this.sessionId)} 01018232 01 ${attribute} 00 ${QUALIFIER} 00000000`);
    return created;
  }

  /** Reads items: `[area, sub-area, ...ids]`. */
  read(items: readonly (readonly number[])[], crcs: readonly number[] = []): Promise<string> {
    const fields = items.reduce((sum, one) => sum + 2 + one.length, 0);
    const written = items.map(([area = 0, ...ids], i) => [crcs[i] ?? 0, area, ids.length, ...ids].map(vlq).join(""));
    return this.ask("054c", `00000000 ${vlq(items.length)} ${vlq(fields)} ${written.join("")} ${QUALIFIER} ${this.next("read")} 00000000`);
  }

  explore(id: string, attributes = "00", filter = "00"): Promise<string> {
    return this.ask("04bb", `${id} 00 01 01 00 ${filter} ${attributes} ${this.next("read")} 0000000000`);
  }

  attribute(id: string): Promise<string> {
    return this.ask("0586", `${id4(this.sessionId)} 200401 ${id} ${QUALIFIER} 0001 ${this.next("read")} 00000000`);
  }

  setAttribute(id: string, value: string): Promise<string> {
    return this.ask("04f2", `${id4(this.sessionId)} 01 ${id} ${value} ${QUALIFIER} 00 ${this.next("set")} 00000000`);
  }

  remove(): Promise<string> {
    return this.ask("04d4", `${id4(this.sessionId)} 00 ${QUALIFIER} ${this.next("set")} 00000000`);
  }

  close(): void {
    this.tls?.destroy();
    this.socket.destroy();
  }
}

/** Four bytes, as hex. */
export const id4 = (value: number): string => value.toString(16).padStart(8, "0");

/** As hex. */
export function vlq(value: number): string {
  const groups: number[] = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) groups.unshift((rest % 128) | 0x80);
  return Buffer.from(groups).toString("hex");
}
