import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A TCP port before another one, which a test opens and shuts: who is to connect only after somebody else, comes through it. */
export interface Gate {
  readonly port: number;
  /** It forwards from now on. */
  open(): Promise<void>;
  /** It refuses, and what came through is cut off. */
  shut(): Promise<void>;
}

/** Shut at first. */
export async function startGate(targetPort: number): Promise<Gate> {
  const sockets = new Set<Socket>();
  let server: Server | undefined;
  const serve = (near: Socket): void => {
    const far = connect({ port: targetPort, host: "127.0.0.1", noDelay: true });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on("error", () => {});
      one.once("close", () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  };
  const listen = async (port: number): Promise<Server> => {
    const next = createServer({ noDelay: true }, serve).listen(port, "127.0.0.1");
    await once(next, "listening");
    return next;
  };
  const shut = async (): Promise<void> => {
    const was = server;
    server = undefined;
    if (!was) return;
    const closed = once(was, "close");
    was.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  server = await listen(0);
  const { port } = server.address() as AddressInfo;
  await shut();
  return {
    port,
    async open() {
      server ??= await listen(port);
    },
    shut,
  };
}
