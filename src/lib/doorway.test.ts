import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { connect, type Server } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { Doorway } from "./doorway.ts";
import { listenAt } from "./listen.ts";

const HOST = "127.0.0.1";

async function open(): Promise<{ readonly doorway: Doorway; readonly port: number; readonly knocks: () => number }> {
  let knocks = 0;
  const doorway = new Doorway(() => knocks++);
  onTestFinished(() => doorway.close());
  await doorway.listen({ host: HOST, port: 0 });
  return { doorway, port: doorway.port ?? 0, knocks: () => knocks };
}

async function serve(port: number): Promise<Server> {
  const server = createHttpServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => response.end(`${request.method} ${request.url} ${Buffer.concat(chunks)} `.repeat(2)));
  });
  onTestFinished(() => void server.close().closeAllConnections());
  await listenAt(server, { host: HOST, port });
  return server;
}

it("keeps who comes before the server, and leads them on with all that they have said", async () => {
  const { doorway, port, knocks } = await open();
  const asked = ["/one", "/two"].map(async (path) =>
    (await fetch(`http://${HOST}:${port}${path}`, { method: "POST", body: "said" })).text(),
  );
  await expect.poll(() => doorway.waiting).toBe(2);
  doorway.vacate();
  await serve(port);
  doorway.lead({ host: HOST, port });
  expect(await Promise.all(asked)).toEqual(["POST /one said POST /one said ", "POST /two said POST /two said "]);
  expect(await (await fetch(`http://${HOST}:${port}/three`)).text()).toBe("GET /three  GET /three  ");
  expect(knocks()).toBe(1);
});

it("brings a long answer whole to a client that has ended its own half", async () => {
  const { doorway, port, knocks } = await open();
  const client = connect({ host: HOST, port, allowHalfOpen: true });
  const chunks: Buffer[] = [];
  client.on("data", (chunk) => chunks.push(chunk));
  client.end("GET /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  await expect.poll(knocks).toBe(1);
  doorway.vacate();
  const long = createHttpServer((_, response) => response.end("x".repeat(5_000_000)));
  onTestFinished(() => void long.close());
  await listenAt(long, { host: HOST, port });
  doorway.lead({ host: HOST, port });
  await once(client, "close");
  expect(Buffer.concat(chunks).toString().split("\r\n\r\n")[1]).toHaveLength(5_000_000);
});

it("frees the port at once, and ends who waits when it is closed or nothing listens in its place", async () => {
  const { doorway, port, knocks } = await open();
  const left = fetch(`http://${HOST}:${port}/`).catch(() => "ended");
  await expect.poll(knocks).toBe(1);
  doorway.vacate();
  expect(await fetch(`http://${HOST}:${port}/`).catch(() => "refused")).toBe("refused");
  doorway.lead({ host: HOST, port });
  expect(await left).toBe("ended");

  const other = await open();
  const waits = fetch(`http://${HOST}:${other.port}/`).catch(() => "ended");
  await expect.poll(other.knocks).toBe(1);
  other.doorway.close();
  expect(await waits).toBe("ended");
});

it("says who has the port", async () => {
  const { port } = await open();
  const second = new Doorway(() => {});
  await expect(second.listen({ host: HOST, port })).rejects.toThrow(/^EADDRINUSE: the port is in use by process/);
});
