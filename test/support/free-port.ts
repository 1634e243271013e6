import net, { type AddressInfo } from "node:net";

/** A port on 127.0.0.1 that nobody listens on just now. */
export async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((ready, failed) => server.once("error", failed).listen(0, "127.0.0.1", ready));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((done) => server.close(() => done()));
  return port;
}
