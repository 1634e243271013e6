import net, { type AddressInfo } from "node:net";

export interface RawServer {
  readonly port: number;
  close(): Promise<void>;
}

/** What answers each connection's first bytes with the given ones, and then hangs up. */
export async function startRawServer(answer: Uint8Array): Promise<RawServer> {
  const open = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    open.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => open.delete(socket));
    socket.once("data", () => socket.end(answer));
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((done) => {
        for (const socket of open) socket.destroy();
        server.close(() => done());
      }),
  };
}

/** An ERR message (OPC 10000-6, 7.1.2.5). */
export function errorMessage(code: number, reason: string): Buffer {
  const text = Buffer.from(reason);
  const frame = Buffer.alloc(16 + text.length);
  frame.write("ERRF", "latin1");
  frame.writeUInt32LE(frame.length, 4);
  frame.writeUInt32LE(code, 8);
  frame.writeInt32LE(text.length, 12);
  text.copy(frame, 16);
  return frame;
}
