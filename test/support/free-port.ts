import net, { type AddressInfo } from "node:net";

/** A port on 127.0.0.1 that nobody listens on just now. */
export async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((ready, failed) => server.once("error", failed).listen(0, "127.0.0.1", ready));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((done) => server.close(() => done()));
  return port;
}

/** Whether nobody listens on this port of 127.0.0.1 just now. */
export async function isFree(port: number): Promise<boolean> {
  const server = net.createServer();
  const free = await new Promise<boolean>((done) => server.once("error", () => done(false)).listen(port, "127.0.0.1", () => done(true)));
  if (free) await new Promise<void>((done) => server.close(() => done()));
  return free;
}
