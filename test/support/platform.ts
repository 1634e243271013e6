import { randomUUID } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { startApiServer } from "../../src/api/server/server.ts";
import { silentLog } from "../../src/model/context.ts";
import type { Layout } from "../../src/model/layout.ts";
import { apiOf } from "./api.ts";

/** The embedded API with one collector and one of its data sources, and in front of it what a test can hold and cut. */
export interface TestPlatform {
  readonly url: string;
  /** Of the collector. */
  readonly keyFile: string;
  /** The data source, with `variables` of uint16. */
  layout(variables: number): Layout;
  /** Identifiers of the batches of values that the API has answered with success, in order. */
  readonly ids: () => readonly string[];
  /** Losses that it has taken, in order. */
  readonly losses: () => readonly { readonly id: string; readonly count: number | null }[];
  /** Their requests. */
  readonly messages: () => readonly { readonly bytes: number; readonly values: number }[];
  /** While true requests with values or losses go no further than the front. */
  hold(on: boolean): void;
  /** Requests that wait for hold(false). */
  readonly held: () => number;
  /** Cuts every connection. */
  drop(): void;
  /** Nothing listens there any more; the key is still where it was. */
  leave(): Promise<void>;
  stop(): Promise<void>;
}

const COLLECTOR = randomUUID();

export async function startPlatform(): Promise<TestPlatform> {
  const folder = await mkdtemp(path.join(tmpdir(), "platform-"));
  const server = await startApiServer({
    databaseFile: path.join(folder, "api", "api.db"),
    keysDir: path.join(folder, "keys"),
    listen: "127.0.0.1:0",
    values: { maxBytes: 2 ** 30, maxAgeMs: 3650 * 86_400_000 },
    collector: COLLECTOR,
    readoutIntervalUnit: "seconds",
    publishIntervalUnit: "seconds",
    version: "0.0.0-test",
    log: silentLog,
  });
  const api = apiOf(server.url, (await readFile(server.keyFiles.admin, "utf8")).trim());
  const { uuid: source } = await api.post("/v2/data-sources", {
    name: "press-1",
    collector: COLLECTOR,
    machine: randomUUID(),
    details: { type: "modbus_tcp", host: "127.0.0.1", port: 1502 },
  });
  const ids: string[] = [];
  const losses: { readonly id: string; readonly count: number | null }[] = [];
  const messages: { readonly bytes: number; readonly values: number }[] = [];
  const waiting: (() => void)[] = [];
  const sockets = new Set<Socket>();
  let holding = false;

  const forward = (incoming: IncomingMessage, outgoing: ServerResponse, body: Buffer): void => {
    const { method, url = "/", headers } = incoming;
    const passed = request(`${server.url}${url}`, { ...(method !== undefined && { method }), headers, agent: false }, (answer) => {
      const isTaken = url === "/api/ext/v1/values" && answer.statusCode === 200;
      if (url === "/api/ext/v1/losses" && answer.statusCode === 200) losses.push(JSON.parse(body.toString("utf8")));
      if (isTaken) {
        const { id, values } = JSON.parse(body.toString("utf8")) as { readonly id: string; readonly values: readonly unknown[] };
        ids.push(id);
        messages.push({ bytes: body.length, values: values.length });
      }
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on("error", () => outgoing.destroy());
    passed.end(body);
  };

  const front = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("error", () => {});
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const go = () => (outgoing.destroyed ? undefined : forward(incoming, outgoing, Buffer.concat(chunks)));
      if (holding && /^\/api\/ext\/v1\/(values|losses)$/.test(incoming.url ?? "")) waiting.push(go);
      else go();
    });
  });
  front.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((done) => front.listen(0, "127.0.0.1", done));
  let leaving: Promise<void> | undefined;
  const drop = () => {
    for (const socket of sockets) socket.destroy();
  };
  const leave = () => {
    leaving ??= (async () => {
      drop();
      await new Promise((done) => front.close(done));
      await server.close();
    })();
    return leaving;
  };
  return {
    url: `http://127.0.0.1:${(front.address() as AddressInfo).port}`,
    keyFile: server.keyFiles.collector,
    layout: (variables) => ({
      source: { uuid: source, name: "press-1" },
      variables: Array.from({ length: variables }, (_, i) => ({
        uuid: randomUUID(),
        name: `v${i}`,
        address: `holding:${i}`,
        type: { scalar: "uint16" },
        unit: null,
        comment: null,
        exploration: false,
      })),
    }),
    ids: () => ids,
    losses: () => losses,
    messages: () => messages,
    hold(on) {
      holding = on;
      if (!on) for (const go of waiting.splice(0)) go();
    },
    held: () => waiting.length,
    drop,
    leave,
    async stop() {
      await leave();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
