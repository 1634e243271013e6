import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";

/** RFC 6455, 5.2. */
export const OPCODES = { text: 1, binary: 2, close: 8, ping: 9, pong: 10, continuation: 0 } as const;

/** A frame of a server, unmasked. */
export function frame(opcode: number, payload: Buffer, { fin = true, bits = 0 } = {}): Buffer {
  const first = (fin ? 0x80 : 0) | bits | opcode;
  if (payload.length < 126) return Buffer.concat([Buffer.from([first, payload.length]), payload]);
  if (payload.length < 65_536) return Buffer.concat([Buffer.from([first, 126, payload.length >> 8, payload.length & 0xff]), payload]);
  const head = Buffer.from([first, 127, 0, 0, 0, 0, 0, 0, 0, 0]);
  head.writeUInt32BE(payload.length, 6);
  return Buffer.concat([head, payload]);
}

/** The close frame with a code and its reason. */
export const closeFrame = (code: number, reason = ""): Buffer =>
  frame(OPCODES.close, Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason)]));

/** The answer that opens a WebSocket for MQTT, for the request whose head is given (RFC 6455, 4.2.2). */
export function accept(head: string, more: readonly string[] = ["Sec-WebSocket-Protocol: mqtt"]): string {
  const key = /^sec-websocket-key: *(\S+)/im.exec(head)?.[1] ?? "";
  const digest = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  return [
    "HTTP/1.1 101 Switching Protocols",
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Accept: ${digest}`,
    ...more,
    "",
    "",
  ].join("\r\n");
}

export interface ClientFrame {
  readonly opcode: number;
  readonly fin: boolean;
  readonly isMasked: boolean;
  readonly payload: Buffer;
}

export interface WebSocketServer {
  readonly port: number;
  /** Heads of the requests, in order. */
  readonly heads: readonly string[];
  readonly frames: readonly ClientFrame[];
  /** Connections that are open now. */
  open(): number;
  stop(): Promise<void>;
}

export interface WebSocketServerOptions {
  /** Port of a broker on 127.0.0.1 that gets the content of the messages; absent: `onFrame` answers. */
  readonly target?: number;
  readonly tls?: TlsOptions;
  /** Gets each request instead of the answer that opens; true: it has answered so that the WebSocket is open. */
  readonly onRequest?: (head: string, socket: Socket) => boolean;
  readonly onFrame?: (frame: ClientFrame, socket: Socket) => void;
}

/** A server's side of WebSocket on 127.0.0.1, byte by byte. */
export async function startWebSocketServer({ target, tls, onRequest, onFrame }: WebSocketServerOptions): Promise<WebSocketServer> {
  const heads: string[] = [];
  const frames: ClientFrame[] = [];
  const sockets = new Set<Socket>();
  const serve = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    let rest: Buffer = Buffer.alloc(0);
    let isOpen = false;
    const upstream = target === undefined ? undefined : connect(target, "127.0.0.1");
    upstream?.on("error", () => socket.destroy()).on("close", () => socket.destroy());
    upstream?.on("data", (bytes) => socket.write(frame(OPCODES.binary, bytes)));
    socket.on("close", () => upstream?.destroy());
    const onOneFrame = (one: ClientFrame): void => {
      frames.push(one);
      onFrame?.(one, socket);
      if (one.opcode === OPCODES.binary) upstream?.write(one.payload);
      if (one.opcode === OPCODES.close && !onFrame) socket.end(frame(OPCODES.close, one.payload));
    };
    socket.on("data", (bytes: Buffer) => {
      rest = Buffer.concat([rest, bytes]);
      const end = rest.indexOf("\r\n\r\n");
      if (!isOpen && end !== -1) {
        const head = rest.toString("latin1", 0, end + 2);
        rest = rest.subarray(end + 4);
        heads.push(head);
        if (onRequest) isOpen = onRequest(head, socket);
        else isOpen = socket.write(accept(head)) || true;
      }
      for (let one = isOpen ? take() : undefined; one; one = take()) onOneFrame(one);
    });
    const take = (): ClientFrame | undefined => {
      if (rest.length < 2) return undefined;
      const [first, second] = [rest.readUInt8(0), rest.readUInt8(1)];
      const short = second & 0x7f;
      const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
      const isMasked = (second & 0x80) !== 0;
      const start = 2 + lengthBytes + (isMasked ? 4 : 0);
      if (rest.length < start) return undefined;
      const length = lengthBytes === 2 ? rest.readUInt16BE(2) : lengthBytes === 8 ? rest.readUInt32BE(6) : short;
      if (rest.length < start + length) return undefined;
      const mask = rest.subarray(start - 4, start);
      const payload = Buffer.from(rest.subarray(start, start + length));
      if (isMasked) for (let i = 0; i < length; i++) payload[i] = (payload[i] ?? 0) ^ (mask[i % 4] ?? 0);
      rest = rest.subarray(start + length);
      return { opcode: first & 0xf, fin: (first & 0x80) !== 0, isMasked, payload };
    };
  };
  const server = tls ? createTlsServer(tls, serve) : createServer(serve);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: address !== null && typeof address === "object" ? address.port : 0,
    heads,
    frames,
    open: () => sockets.size,
    async stop() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
