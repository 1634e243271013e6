import { once } from "node:events";
import net, { type AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { reset } from "./reset.ts";

/** Both ends of a connection. */
async function connected(): Promise<readonly [near: net.Socket, far: net.Socket]> {
  const server = net.createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection");
  const near = net.connect({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, allowHalfOpen: true });
  const [far] = (await accepted) as [net.Socket];
  if (near.connecting) await once(near, "connect");
  server.close();
  return [near, far];
}

/** What a socket meets until it is closed. */
async function untilClosed(socket: net.Socket): Promise<readonly string[]> {
  const errors: string[] = [];
  socket.on("error", ({ code = "" }: NodeJS.ErrnoException) => errors.push(code));
  await new Promise((closed) => socket.once("close", closed));
  return errors;
}

test("the other end of a connection that is reset learns of it", async () => {
  const [near, far] = await connected();
  const ends = Promise.all([untilClosed(near), untilClosed(far.resume())]);
  reset(near);
  expect(await ends).toEqual([[], ["ECONNRESET"]]);
});

test.for([
  ["in the moment of its FIN", 0, false],
  ["with bytes before its FIN", 10_000_000, false],
  ["after its FIN", 0, true],
] as const)("a connection that is reset %s is closed without an error", async ([, bytes, isLate]) => {
  const [near, far] = await connected();
  const closed = untilClosed(near);
  far.on("error", () => {});
  near.end(Buffer.alloc(bytes));
  if (isLate) await once(near, "finish");
  reset(near);
  expect(await closed).toEqual([]);
  far.destroy();
});
