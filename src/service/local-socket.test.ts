import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { askService } from "../commands/service/local-client.ts";
import { silentLog } from "../model/context.ts";
import { LocalRequestError, type LocalSocket, localSocketPath, startLocalSocket } from "./local-socket.ts";

let folder: string;
let path: string;
let open: { close(): unknown }[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "collector-socket-"));
  path = localSocketPath(folder);
  open = [];
});
afterEach(async () => {
  for (const one of open) await one.close();
  rmSync(folder, { recursive: true });
});

const never = new AbortController().signal;
const start = async (
  handlers: Record<string, () => object> = { "/status": () => ({ ok: true }) },
  signal: AbortSignal = never,
): Promise<LocalSocket> => {
  const socket = await startLocalSocket({ path, handlers }, { signal, log: silentLog });
  open.push(socket);
  return socket;
};
const ask = (what: string) => askService(path, what, never);

/** What the socket answers to these bytes. */
const raw = (bytes: string): Promise<string> =>
  new Promise((done) => {
    let text = "";
    const socket = connect(path, () => socket.write(bytes));
    socket.on("data", (chunk) => {
      text += chunk.toString();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => done(text));
  });

describe("what is posted", () => {
  const post = (body: string, path = "/do"): Promise<string> =>
    raw(`POST ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  const startWith = async (action: (body: unknown) => object): Promise<void> => {
    const handlers = { "/status": () => ({}) };
    open.push(await startLocalSocket({ path, handlers, actions: { "/do": action } }, { signal: never, log: silentLog }));
  };

  test("is done once and answered", async () => {
    const got: unknown[] = [];
    await startWith((body) => {
      got.push(body);
      return { done: true };
    });
    expect(await post('{"a":1}')).toMatch(/ 200 [\s\S]*\{"done":true\}$/);
    expect(got).toEqual([{ a: 1 }]);
    expect(await post("{}", "/status")).toMatch(/ 405 /);
    expect(await raw("GET /do HTTP/1.1\r\nhost: x\r\n\r\n")).toMatch(/ 405 /);
  });

  test("is refused where it is no JSON, too long or not what is expected", async () => {
    await startWith(() => {
      throw new LocalRequestError("expected something else");
    });
    expect(await post("{")).toMatch(/ 400 [\s\S]*JSON/);
    expect(await post(`"${"x".repeat(300 * 1024)}"`)).toMatch(/ 400 [\s\S]*bytes/);
    expect(await post("{}")).toMatch(/ 400 [\s\S]*expected something else/);
  });
});

describe("the socket", () => {
  test("answers JSON to its owner and group, and is gone once closed", async () => {
    const socket = await start();
    expect(await ask("/status")).toEqual({ ok: true });
    expect(statSync(path).mode & 0o777).toBe(0o660);
    await socket.close();
    await socket.close();
    expect(existsSync(path)).toBe(false);
  });

  test("closes when the signal aborts", async () => {
    const stop = new AbortController();
    await start(undefined, stop.signal);
    stop.abort();
    await expect.poll(() => existsSync(path)).toBe(false);
  });

  test("other paths, methods and bytes hurt nothing", async () => {
    await start();
    expect(await raw("GET /x HTTP/1.1\r\nhost: a\r\n\r\n")).toMatch(/^HTTP\/1\.1 404[\s\S]*known: \/status/);
    expect(await raw("GET /__proto__ HTTP/1.1\r\nhost: a\r\n\r\n")).toMatch(/^HTTP\/1\.1 404/);
    expect(await raw("POST /status HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc")).toMatch(/^HTTP\/1\.1 405[\s\S]*allow: GET/);
    expect(await raw("\0\x16nonsense\r\n\r\n")).toMatch(/^HTTP\/1\.1 4\d\d .*\r\nConnection: close/);
    expect(await ask("/status")).toEqual({ ok: true });
  });

  test("a handler that throws costs its own answer", async () => {
    let broken = true;
    await start({
      "/status": () => {
        if (broken) throw new Error("secret detail");
        return { ok: true };
      },
    });
    const answer = await raw("GET /status HTTP/1.1\r\nhost: a\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 500/);
    expect(answer).not.toContain("secret detail");
    broken = false;
    expect(await ask("/status")).toEqual({ ok: true });
  });

  test("what a killed service left is replaced", async () => {
    // A process that is killed removes nothing.
    spawnSync(process.execPath, [
      "-e",
      `require("net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, "SIGKILL"))`,
    ]);
    expect(statSync(path).isSocket()).toBe(true);
    await start();
    expect(await ask("/status")).toEqual({ ok: true });
  });

  test("another living service is left alone, and named", async () => {
    await start();
    await expect(start()).rejects.toThrow(/another collector is running with this state_dir \(it answers on .*collector\.sock\)/);
    expect(await ask("/status")).toEqual({ ok: true });
  });

  test("a path that cannot be one is named with what to do", async () => {
    writeFileSync(path, "precious");
    await expect(start()).rejects.toThrow(/is not a socket/);
    path = join(folder, "absent", "collector.sock");
    await expect(start()).rejects.toThrow(/cannot be opened \(.*\); its folder must exist/);
    path = join(folder, "x".repeat(120));
    await expect(start()).rejects.toThrow(/too long.*shorter state_dir/);
  });
});

describe("asking", () => {
  const serve = (answer: (request: unknown, response: import("node:http").ServerResponse) => void): Promise<Server> =>
    new Promise((done) => {
      const server = createServer(answer).listen(path, () => done(server));
      open.push({
        close: () => {
          server.closeAllConnections();
          return new Promise((closed) => server.close(closed));
        },
      });
    });

  test("nobody: the path and what to do", async () => {
    await expect(ask("/status")).rejects.toThrow(`nothing answers on ${path}.\nStart it (systemctl start collector`);
    mkdirSync(path);
    await expect(ask("/status")).rejects.toThrow(/the collector does not run here|cannot ask the collector/);
  });

  test("an answer that is no status ends in a sentence", async () => {
    const server = await serve((_, response) => response.end("<html>"));
    await expect(ask("/status")).rejects.toThrow(/the answer is not JSON/);
    server.removeAllListeners("request");
    server.on("request", (_, response) => response.writeHead(500).end("{}"));
    await expect(ask("/status")).rejects.toThrow(/status 500/);
    server.removeAllListeners("request");
    server.on("request", (_, response) => response.destroy());
    await expect(ask("/status")).rejects.toThrow(/cannot ask the collector/);
  });

  test("an answer that breaks off ends in a sentence", async () => {
    await serve((_, response) => {
      response.writeHead(200, { "content-length": 100 });
      response.write("{", () => response.destroy());
    });
    await expect(ask("/status")).rejects.toThrow(/cannot ask the collector/);
  });
});
