import net from "node:net";
import { errorCode } from "../model/failure.ts";

/** Why a TCP address of this machine cannot be listened on now; undefined: it can, and is not kept. Never throws. */
export function listenProblem(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((done) => {
    const server = net.createServer();
    server.once("error", done);
    server.listen({ host, port, exclusive: true }, () => server.close(() => done(undefined)));
  });
}

/** The code with which connecting to a local socket fails; undefined where it does not. Never throws. */
export function connectProblem(path: string, timeoutMs: number): Promise<string | undefined> {
  return new Promise((done) => {
    const socket = net.connect(path);
    const end = (code: string | undefined): void => {
      socket.destroy();
      done(code);
    };
    socket.setTimeout(timeoutMs, () => end("ETIMEDOUT"));
    socket.once("connect", () => end(undefined));
    socket.once("error", (error) => end(errorCode(error) || "UNKNOWN"));
  });
}
