import { randomInt } from "node:crypto";
import net from "node:net";

/** Below what Linux hands out by itself, to a server that lets it choose or to a client: nobody is given one of these meanwhile. */
const [FIRST, END] = [12_000, 32_000];

/** A port on 127.0.0.1 that nobody listens on just now. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, END);
    if (await isFree(port)) return port;
  }
}

/** True: nobody listens on this port of 127.0.0.1 just now. */
export async function isFree(port: number): Promise<boolean> {
  const server = net.createServer();
  const free = await new Promise<boolean>((done) => server.once("error", () => done(false)).listen(port, "127.0.0.1", () => done(true)));
  if (free) await new Promise<void>((done) => server.close(() => done()));
  return free;
}
