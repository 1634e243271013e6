import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { request as httpsRequest } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { COLLECTOR, startTestServer, temporaryFolder } from "../api/server/testing.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "../api/server/testing-certificates.ts";
import { ConnectionBound, type ConnectionLimits } from "./connection-bound.ts";

/** Connections that send what is no whole request, from one address of this machine. */
async function halfOpen(port: number, count: number, localAddress: string, text = "GET / HTTP/1.1\r\nHost: x\r\n") {
  const sockets: Socket[] = [];
  const answers = new Map<Socket, string>();
  let closed = 0;
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (let n = 0; n < count; n++) {
    const socket = connect({ port, host: "127.0.0.1", localAddress });
    let answer = "";
    socket
      .on("error", () => {})
      .on("close", () => closed++)
      .on("data", (data) => {
        answer += data;
        answers.set(socket, answer);
      });
    sockets.push(socket);
    await once(socket, "connect");
    if (text !== "") socket.write(text);
  }
  return { sockets, closed: () => closed, answers: () => [...answers.values()] };
}

const portOf = (url: string): number => Number(new URL(url).port);

test("fault: 256 half-open connections of one address lock everybody out, itself included", async () => {
  const api = await startTestServer();
  const kept = await api.send("GET", "/v2/sites");
  expect(kept.status).toBe(200);
  const { closed } = await halfOpen(portOf(api.server.url), 300, "127.0.0.1");
  expect((await api.send("GET", "/v2/sites")).status).toBe(200);
  await expect.poll(closed, { timeout: 5000 }).toBe(300 - 64);
  const answers = await Promise.all(Array.from({ length: 30 }, () => api.send("GET", "/v2/sites")));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
});

test("with TLS too, where half a handshake is all that comes", async () => {
  const folder = temporaryFolder();
  const files = { certFile: join(folder, "api.crt"), keyFile: join(folder, "api.key") };
  writeFileSync(files.certFile, TEST_CERTIFICATE);
  writeFileSync(files.keyFile, TEST_KEY);
  const { server } = await startTestServer(folder, COLLECTOR, { tls: files });
  const port = portOf(server.url);
  const { closed } = await halfOpen(port, 100, "127.0.0.1", "\x16\x03\x01");
  await expect.poll(closed, { timeout: 5000 }).toBe(36);
  const status = await new Promise<number | undefined>((done, fail) =>
    httpsRequest(`${server.url}/api/v2/sites`, { ca: TEST_CERTIFICATE }, (response) => done(response.resume().statusCode))
      .on("error", fail)
      .end(),
  );
  expect(status).toBe(401);
});

/** A server whose connections are trusted where they ask for /key. */
async function bounded(limits: Partial<ConnectionLimits>) {
  const bound = new ConnectionBound({ graceMs: 20, ...limits });
  const server = createServer((request, response) => {
    if (!bound.admits(request, response)) return;
    if (request.url === "/key") bound.trust(request.socket);
    if (request.url !== "/slow") response.end();
  });
  bound.attach(server);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const isOpen = ({ sockets }: { readonly sockets: readonly Socket[] }): number => sockets.filter(({ destroyed }) => !destroyed).length;
const KEY = "GET /key HTTP/1.1\r\nHost: x\r\n\r\n";

test("those of the address with the most go first, the oldest of them; one with a key is closed for nobody", async () => {
  const port = await bounded({ strangersOfOne: 10, strangers: 12 });
  const keyed = await halfOpen(port, 15, "127.0.0.1", KEY);
  const few = await halfOpen(port, 3, "127.0.0.2");
  const many = await halfOpen(port, 30, "127.0.0.3");
  await expect.poll(() => isOpen(many), { timeout: 5000 }).toBe(9);
  expect([isOpen(keyed), isOpen(few)]).toEqual([15, 3]);
  expect(many.sockets.slice(-9).every(({ destroyed }) => !destroyed)).toBe(true);
});

test("where all room is taken a stranger makes it, and where none is one who comes is refused", async () => {
  const port = await bounded({ strangersOfOne: 100, strangers: 100, all: 10 });
  const keyed = await halfOpen(port, 8, "127.0.0.1", KEY);
  const strangers = await halfOpen(port, 5, "127.0.0.2");
  await expect.poll(() => isOpen(strangers), { timeout: 5000 }).toBe(2);
  const more = await halfOpen(port, 2, "127.0.0.1", KEY);
  await expect.poll(() => isOpen(strangers), { timeout: 5000 }).toBe(0);
  const last = await halfOpen(port, 1, "127.0.0.1", KEY);
  await expect.poll(() => isOpen(last), { timeout: 5000 }).toBe(0);
  expect(last.answers()).toEqual([
    expect.stringMatching(/^HTTP\/1\.1 503 Service Unavailable\r\n[\s\S]*too many connections are open here/),
  ]);
  expect([isOpen(keyed), isOpen(more)]).toEqual([8, 2]);
});

test("fault: a connection that asks for nothing, or byte by byte, is open longer than the headers may take", async () => {
  const port = await bounded({ headersMs: 200 });
  const silent = await halfOpen(port, 3, "127.0.0.1", "");
  const slow = await halfOpen(port, 3, "127.0.0.1");
  const asked = await halfOpen(port, 3, "127.0.0.1", KEY);
  await expect.poll(() => isOpen(silent) + isOpen(slow), { timeout: 5000 }).toBe(0);
  expect(isOpen(asked)).toBe(3);
});

test("one who asks while slow answers take all room is told; an answer that has had its time makes room", async () => {
  const port = await bounded({ answers: 2, answerMs: 300 });
  const slow = await halfOpen(port, 2, "127.0.0.1", "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  const early = await halfOpen(port, 1, "127.0.0.1", KEY);
  await expect
    .poll(early.answers)
    .toEqual([expect.stringMatching(/^HTTP\/1\.1 503 .*\r\n[\s\S]*too many answers are under way: ask again/)]);
  expect(isOpen(slow)).toBe(2);
  await delay(300);
  const later = await halfOpen(port, 1, "127.0.0.1", KEY);
  await expect.poll(later.answers).toEqual([expect.stringMatching(/^HTTP\/1\.1 200 /)]);
  await expect.poll(() => isOpen(slow), { timeout: 5000 }).toBe(1);
});
