import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { get } from "node:http";
import { connect, type NetConnectOpts, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { MessageChannel } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../test/support/free-port.ts";
import { askService } from "../commands/service/local-client.ts";
import { silentLog } from "../model/context.ts";
import { Health } from "./health.ts";
import { localSocketPath, startLocalSocket } from "./local-socket.ts";
import { runPage } from "./page/run-page.ts";

const HALF = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n";

/** Connections that send this, and what each was answered. */
async function waiting(place: NetConnectOpts, count: number, text: string) {
  const clients: { readonly socket: Socket; answer: string; isClosed: boolean; error: string | undefined }[] = [];
  onTestFinished(() => {
    for (const { socket } of clients) socket.destroy();
  });
  for (let n = 0; n < count; n++) {
    const socket = connect(place);
    const client = { socket, answer: "", isClosed: false, error: undefined as string | undefined };
    clients.push(client);
    socket
      .setEncoding("utf8")
      .on("data", (data) => {
        client.answer += data;
      })
      .on("error", ({ message }) => {
        client.error = message;
      })
      .on("close", () => {
        client.isClosed = true;
      });
    await once(socket, "connect");
    if (text !== "") socket.write(text);
  }
  return clients;
}

/** Of an answer; in words where there is none. */
const statusOf = (port: number, target: string): Promise<number | string | undefined> =>
  new Promise((done) => {
    get({ port, host: "127.0.0.1", path: target, timeout: 3000, agent: false }, (response) => {
      response.resume();
      done(response.statusCode);
    })
      .on("timeout", () => done("no answer"))
      .on("error", ({ message }) => done(message));
  });

async function startHealth(): Promise<number> {
  const port = await freePort();
  const health = new Health({
    listen: `127.0.0.1:${port}`,
    listenRefusal: () => undefined,
    metrics: { contentType: "text/plain", text: async () => "metrics" },
    isHealthy: () => true,
    notReady: () => undefined,
    log: silentLog,
    onTrouble: () => {},
  });
  onTestFinished(() => health.close());
  await expect.poll(() => statusOf(port, "/healthz"), { timeout: 5000 }).toBe(200);
  return port;
}

async function startPage(): Promise<number> {
  const port = await freePort();
  const { port1, port2 } = new MessageChannel();
  const asset = { contentType: "text/css", body: "a" };
  const running = runPage(port2, { listen: `127.0.0.1:${port}`, assets: { "/page.css": asset } });
  port1.postMessage({ type: "listen" });
  onTestFinished(async () => {
    port1.postMessage({ type: "stop" });
    await running;
    port1.close();
  });
  await expect.poll(() => statusOf(port, "/page.css"), { timeout: 5000 }).toBe(200);
  return port;
}

test.each([16, 300])("fault: %i half-open connections shut /metrics, /healthz and /readyz", async (count) => {
  const port = await startHealth();
  await waiting({ port, host: "127.0.0.1" }, count, HALF);
  for (const target of ["/metrics", "/healthz", "/readyz"]) expect([target, await statusOf(port, target)]).toEqual([target, 200]);
});

test("fault: connections that drip shut /metrics for ever", async () => {
  const port = await startHealth();
  const clients = await waiting({ port, host: "127.0.0.1" }, 16, HALF);
  const drip = setInterval(() => {
    for (const { socket } of clients) if (socket.writable) socket.write("A: b\r\n");
  }, 20);
  onTestFinished(() => clearInterval(drip));
  expect(await Promise.all(Array.from({ length: 5 }, () => statusOf(port, "/metrics")))).toEqual(Array(5).fill(200));
});

test("fault: 128 half-open connections shut the page", async () => {
  const port = await startPage();
  await waiting({ port, host: "127.0.0.1" }, 300, HALF);
  expect(await statusOf(port, "/page.css")).toBe(200);
});

async function startSocket(handlers: Readonly<Record<string, () => object>> = { "/status": () => ({ ok: true }) }): Promise<string> {
  const folder = mkdtempSync(path.join(tmpdir(), "waiting-"));
  const at = localSocketPath(folder);
  const socket = await startLocalSocket({ path: at, handlers }, { signal: new AbortController().signal, log: silentLog });
  onTestFinished(async () => {
    await socket.close();
    rmSync(folder, { recursive: true });
  });
  return at;
}

test("fault: 400 idle connections of its own group end every verb with EPIPE", async () => {
  const at = await startSocket();
  await waiting({ path: at }, 400, "");
  const asked = () => askService(at, "/status", new AbortController().signal).catch((error: unknown) => String(error));
  expect(await Promise.all(Array.from({ length: 10 }, asked))).toEqual(Array(10).fill({ ok: true }));
});

test("fault: a connection that waits is closed without a word: it is told, and none is reset", async () => {
  for (const place of [
    { port: await startHealth(), host: "127.0.0.1" },
    { port: await startPage(), host: "127.0.0.1" },
    { path: await startSocket() },
  ]) {
    const clients = await waiting(place, 130, HALF);
    const closed = () => clients.filter(({ isClosed }) => isClosed);
    await expect.poll(() => closed().length, { timeout: 5000 }).toBeGreaterThanOrEqual(66);
    for (const { answer, error } of closed())
      expect([answer, error]).toEqual([expect.stringMatching(/^HTTP\/1\.1 503 [\s\S]*"detail":"[a-z ]+: ask again"/), undefined]);
  }
});
