import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface SocksProxy {
  readonly port: number;
  /** `host:port` of each request, an address or a name as it was sent. */
  readonly asked: readonly string[];
  /** `user:password` of each log-in. */
  readonly credentials: readonly string[];
  open(): number;
  stop(): Promise<void>;
}

/** A SOCKS5 proxy (RFC 1928, RFC 1929) on 127.0.0.1, whose every target is this port of it. With `user` it takes nobody else. */
export async function startSocksProxy(
  targetPort: number,
  user?: { readonly name: string; readonly password: string },
): Promise<SocksProxy> {
  const asked: string[] = [];
  const credentials: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    let rest = Buffer.alloc(0);
    let step: "methods" | "log-in" | "request" | "tunnel" = "methods";
    const take = (bytes: number): Buffer => {
      const taken = rest.subarray(0, bytes);
      rest = rest.subarray(bytes);
      return taken;
    };
    const onMethods = (): boolean => {
      if (rest.length < 2 || rest.length < 2 + (rest[1] ?? 0)) return false;
      const methods = [...take(2 + (rest[1] ?? 0)).subarray(2)];
      const wanted = user ? 2 : 0;
      if (!methods.includes(wanted)) socket.end(Buffer.from([5, 0xff]));
      else socket.write(Buffer.from([5, wanted]));
      step = user ? "log-in" : "request";
      return true;
    };
    const onLogIn = (): boolean => {
      const nameBytes = rest[1] ?? 0;
      const secretBytes = rest[2 + nameBytes];
      if (secretBytes === undefined || rest.length < 3 + nameBytes + secretBytes) return false;
      const all = take(3 + nameBytes + secretBytes);
      const given = `${all.subarray(2, 2 + nameBytes)}:${all.subarray(3 + nameBytes)}`;
      credentials.push(given);
      const isRight = given === `${user?.name}:${user?.password}`;
      socket.write(Buffer.from([1, isRight ? 0 : 1]));
      if (!isRight) socket.end();
      step = "request";
      return true;
    };
    const onRequest = (): boolean => {
      const type = rest[3];
      if (type === undefined) return false;
      const bytes = type === 1 ? 4 : type === 4 ? 16 : 1 + (rest[4] ?? 255);
      if (rest.length < 6 + bytes) return false;
      const all = take(6 + bytes);
      const address = all.subarray(4, 4 + bytes);
      const host =
        type === 1
          ? [...address].join(".")
          : type === 4
            ? (address.toString("hex").match(/.{4}/g) ?? []).join(":")
            : address.subarray(1).toString();
      asked.push(`${host}:${all.readUInt16BE(4 + bytes)}`);
      step = "tunnel";
      const upstream = connect(targetPort, "127.0.0.1", () => {
        // The bound address is a name here, which few proxies send.
        socket.write(Buffer.concat([Buffer.from([5, 0, 0, 3, 4]), Buffer.from("here"), Buffer.from([0, 80])]));
        upstream.pipe(socket).pipe(upstream);
      });
      upstream.on("error", () => socket.destroy());
      socket.on("close", () => upstream.destroy());
      return false;
    };
    const steps = { methods: onMethods, "log-in": onLogIn, request: onRequest, tunnel: () => false };
    socket.on("data", (bytes: Buffer) => {
      if (step === "tunnel") return;
      rest = Buffer.concat([rest, bytes]);
      while (steps[step]());
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: address !== null && typeof address === "object" ? address.port : 0,
    asked,
    credentials,
    open: () => sockets.size,
    async stop() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
