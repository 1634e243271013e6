import net from "node:net";

/** One message as the receiver has it. */
export interface Received {
  readonly id: string;
  readonly bytes: number;
  readonly values: number;
  /** Present: the message tells of a loss. */
  readonly count?: number | null;
}

/** The other end of the sink, on a real socket; it shares no line with it. */
export async function startReceiver() {
  const received: Received[] = [];
  const sockets = new Set<net.Socket>();
  let isHolding = false;
  let held: (() => void)[] = [];
  const server = net.createServer((socket) => {
    sockets.add(socket);
    let rest = "";
    socket.on("data", (bytes) => {
      const lines = (rest + bytes.toString("utf8")).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const { id, values, count, loss } = JSON.parse(line) as { id: string; values?: unknown[]; count?: number | null; loss?: string };
        const take = () => {
          received.push({
            id,
            bytes: Buffer.byteLength(line),
            values: values?.length ?? 0,
            ...(loss !== undefined && { count: count ?? null }),
          });
          socket.write(`ok ${id}\n`);
        };
        if (isHolding) held.push(take);
        else take();
      }
    });
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const drop = (): void => {
    held = [];
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as net.AddressInfo).port,
    received: received as readonly Received[],
    held: () => held.length,
    drop,
    hold(on: boolean) {
      isHolding = on;
      if (!on) for (const take of held.splice(0)) take();
    },
    async stop() {
      const closed = new Promise((done) => server.close(done));
      drop();
      await closed;
    },
  };
}
