import net from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { silentLog } from "../model/context.ts";
import { type PagesOptions, startHttpListener } from "./http-listener.ts";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

const page = (body: string) => ({ status: 200, contentType: "text/plain", body });
const start = (options: Partial<PagesOptions> = {}) => {
  const troubles: string[] = [];
  const listener = startHttpListener(
    { listen: "127.0.0.1:0", pages: { "/a": () => page("hello") }, onTrouble: ({ text }) => troubles.push(text), ...options },
    { signal: new AbortController().signal, log: silentLog },
  );
  open.push(() => listener.close());
  return { listener, troubles, url: async () => `http://127.0.0.1:${await expect.poll(listener.port).toBeDefined().then(listener.port)}` };
};

describe("HTTP listener", () => {
  it("answers GET and HEAD on its pages and nothing else", async () => {
    const url = await start().url();
    const good = await fetch(`${url}/a?x=1`);
    expect([good.status, await good.text()]).toEqual([200, "hello"]);
    const head = await fetch(`${url}/a`, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, "5", ""]);
    expect((await fetch(`${url}/a`, { method: "POST", body: "x" })).status).toBe(405);
    const unknown = await fetch(`${url}/toString`);
    expect([unknown.status, await unknown.text()]).toEqual([404, "nothing is served here; known: /a\n"]);
  });

  it("answers 500 without the words of what failed", async () => {
    const fails = () => {
      throw new Error("canary");
    };
    const answer = await fetch(`${await start({ pages: { "/a": fails } }).url()}/a`);
    expect([answer.status, await answer.text()]).toEqual([500, "the collector could not answer; see its log\n"]);
  });

  it("says once that the port is in use, and listens when it is free", async () => {
    const other = net.createServer();
    await new Promise<void>((done) => other.listen(0, "127.0.0.1", done));
    const { port } = other.address() as net.AddressInfo;
    const { listener, troubles } = start({ listen: `127.0.0.1:${port}`, retryMs: 20 });
    await expect.poll(() => troubles.length).toBe(1);
    await new Promise<void>((done) => other.close(() => done()));
    await expect.poll(listener.port).toBe(port);
    expect(troubles).toEqual([
      expect.stringMatching(/^http\.listen: 127\.0\.0\.1:\d+ cannot be listened on \(.*in use/),
      expect.stringMatching(/^http\.listen: 127\.0\.0\.1:\d+ is listened on now$/),
    ]);
    expect((await fetch(`http://127.0.0.1:${port}/a`)).status).toBe(200);
  });

  it("is closed while it still waits for its port", async () => {
    const other = net.createServer();
    await new Promise<void>((done) => other.listen(0, "127.0.0.1", done));
    open.push(() => other.close());
    const { port } = other.address() as net.AddressInfo;
    const { listener, troubles } = start({ listen: `127.0.0.1:${port}`, retryMs: 60_000 });
    await expect.poll(() => troubles.length).toBe(1);
    await listener.close();
    expect(listener.port()).toBeUndefined();
  });

  it("closes idle connections when it is closed", async () => {
    const { listener, url } = start();
    const { port } = new URL(await url());
    const idle = net.connect(Number(port), "127.0.0.1");
    open.push(() => idle.destroy());
    idle.on("error", () => undefined);
    const ended = new Promise((done) => idle.once("close", done));
    await new Promise((done) => idle.once("connect", done));
    idle.write("GET /a HT");
    await listener.close();
    await ended;
  });
});
