import net from "node:net";

/** A device that the sample plugins read: `GET name` and `LIST`, in lines over TCP. */
export interface LineDevice extends AsyncDisposable {
  readonly port: number;
  /** What it was asked, in order. */
  readonly asked: string[];
}

export async function startLineDevice(values: Readonly<Record<string, string>>): Promise<LineDevice> {
  const asked: string[] = [];
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    let rest = "";
    socket.on("data", (bytes) => {
      const lines = (rest + bytes.toString("latin1")).split("\r\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        asked.push(line);
        const name = line.replace(/^GET /, "");
        socket.write(line === "LIST" ? `${Object.keys(values).join(",")}\r\n` : `${name}=${values[name] ?? "?"}\r\n`);
      }
    });
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return {
    port: (server.address() as net.AddressInfo).port,
    asked,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}
