import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";

/** What an HTTP proxy does with the next requests. */
export type ProxyManner =
  /** Opens tunnels, and forwards plain requests. */
  | "serves"
  /** Answers 407 unless the right user comes. */
  | "wants_user"
  | "forbids"
  /** Takes the request and never answers. */
  | "silent"
  /** Answers with headers that never end. */
  | "endless"
  | "no_http"
  /** Ends the connection without an answer. */
  | "hangs_up";

export interface ConnectProxy {
  readonly port: number;
  /** Targets of CONNECT, and addresses of plain requests, in order. */
  readonly asked: readonly string[];
  /** Proxy-Authorization of each. */
  readonly credentials: readonly (string | undefined)[];
  /** Connections that are open now. */
  readonly open: () => number;
  behave(manner: ProxyManner): void;
  close(): Promise<void>;
}

/** An HTTP proxy on 127.0.0.1, whose every target is this port of it, whatever name is asked for. */
export async function startConnectProxy(targetPort: number, authorization = ""): Promise<ConnectProxy> {
  const asked: string[] = [];
  const credentials: (string | undefined)[] = [];
  const sockets = new Set<Socket>();
  let manner: ProxyManner = "serves";
  const note = ({ url = "", headers }: IncomingMessage): number | "tunnel" => {
    asked.push(url);
    credentials.push(headers["proxy-authorization"]);
    if (manner === "forbids") return 403;
    return manner === "wants_user" && headers["proxy-authorization"] !== authorization ? 407 : "tunnel";
  };
  const server = createServer((request, response) => {
    const verdict = note(request);
    if (verdict !== "tunnel") return void response.writeHead(verdict).end();
    const { pathname, search } = new URL(request.url ?? "");
    const upstream = connect(targetPort, "127.0.0.1", () =>
      upstream.write(
        `${request.method} ${pathname}${search} HTTP/1.1\r\nhost: ${request.headers.host}\r\nauthorization: ${request.headers.authorization}\r\nconnection: close\r\n\r\n`,
      ),
    );
    upstream.pipe(request.socket);
  });
  server.on("connect", (request: IncomingMessage, socket: Duplex) => {
    socket.on("error", () => {});
    const verdict = note(request);
    if (manner === "silent") return void socket.on("end", () => socket.destroy()).resume();
    if (manner === "hangs_up") return void socket.destroy();
    if (manner === "no_http") return void socket.end("SSH-2.0-other\r\n");
    if (manner === "endless") return endless(socket);
    if (verdict !== "tunnel") return void socket.end(`HTTP/1.1 ${verdict} No\r\ncontent-length: 0\r\n\r\n`);
    const upstream = connect(targetPort, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      upstream.pipe(socket).pipe(upstream);
    });
    upstream.on("error", () => socket.destroy());
    socket.on("close", () => upstream.destroy());
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    credentials,
    open: () => sockets.size,
    behave: (next) => {
      manner = next;
    },
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function endless(socket: Duplex): void {
  socket.write("HTTP/1.1 200 Connection established\r\n");
  const more = (): void => {
    while (!socket.destroyed && socket.write(`x-more: ${"x".repeat(1000)}\r\n`));
  };
  socket.on("drain", more);
  more();
}
