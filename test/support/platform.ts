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

/** What happens to a request with values or losses: it passes, is cut, its answer is lost, or it is answered with this status. */
export type FrontFault = "pass" | "cut" | "lose" | number;

export interface TestPlatformOptions {
  /** Names of data sources; default: press-1. */
  readonly sources?: readonly string[];
  /** `bytes`: of the body. */
  readonly fault?: (request: { readonly path: string; readonly bytes: number }) => FrontFault;
  /** Each batch of values that the API has taken, not as a duplicate; nothing of it is kept then. */
  readonly onTaken?: (batch: PostedBatch) => void;
}

export interface PostedBatch {
  readonly id: string;
  readonly data_source: string;
  readonly values: readonly { readonly time: string; readonly variable: string; readonly value: unknown; readonly clock?: string }[];
}

/** The embedded API with one collector and one of its data sources, and in front of it what a test can hold and cut. */
export interface TestPlatform {
  readonly url: string;
  /** Of the collector. */
  readonly keyFile: string;
  /** Identifiers of the data sources, by the places of their names. */
  readonly sources: readonly string[];
  /** The first data source, with `variables` of uint16. */
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
  /** Requests that the API has not answered yet. */
  readonly underWay: () => number;
  /** Cuts every connection. */
  drop(): void;
  /** Cuts every connection, and while true each new one at once. */
  away(on: boolean): void;
  /** Nothing listens there any more; the key is still where it was. */
  leave(): Promise<void>;
  stop(): Promise<void>;
}

const COLLECTOR = randomUUID();
const IS_DATA = /^\/api\/ext\/v1\/(values|losses)$/;

export async function startPlatform(options: TestPlatformOptions = {}): Promise<TestPlatform> {
  const { sources: names = ["press-1"], fault = () => "pass", onTaken } = options;
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
  const machine = randomUUID();
  const created: string[] = [];
  for (const name of names) {
    const details = { type: "modbus_tcp", host: "127.0.0.1", port: 1502 };
    const { uuid } = await api.post("/v2/data-sources", { name, collector: COLLECTOR, machine, details });
    created.push(uuid);
  }
  const [source = ""] = created;
  const ids: string[] = [];
  const losses: { readonly id: string; readonly count: number | null }[] = [];
  const messages: { readonly bytes: number; readonly values: number }[] = [];
  const waiting: (() => void)[] = [];
  const sockets = new Set<Socket>();
  let holding = false;
  let isAway = false;
  let underWay = 0;

  const onValues = (body: Buffer, answered: string): void => {
    const batch = JSON.parse(body.toString("utf8")) as PostedBatch;
    if (onTaken) {
      if (!(JSON.parse(answered) as { readonly duplicate: boolean }).duplicate) onTaken(batch);
      return;
    }
    ids.push(batch.id);
    messages.push({ bytes: body.length, values: batch.values.length });
  };

  const forward = (incoming: IncomingMessage, outgoing: ServerResponse, body: Buffer): void => {
    const { method, url = "/", headers } = incoming;
    const what = IS_DATA.test(url) ? fault({ path: url, bytes: body.length }) : "pass";
    if (what === "cut") {
      outgoing.destroy();
      return;
    }
    if (typeof what === "number") {
      outgoing.writeHead(what, { "content-type": "application/json" }).end('{"detail":"not now"}');
      return;
    }
    underWay++;
    const passed = request(`${server.url}${url}`, { ...(method !== undefined && { method }), headers, agent: false }, (answer) => {
      const isTaken = url === "/api/ext/v1/values" && answer.statusCode === 200;
      if (url === "/api/ext/v1/losses" && answer.statusCode === 200) losses.push(JSON.parse(body.toString("utf8")));
      const answered: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => answered.push(chunk));
      answer.on("end", () => {
        const text = Buffer.concat(answered);
        if (isTaken) onValues(body, text.toString("utf8"));
        if (what === "lose") outgoing.destroy();
        else outgoing.writeHead(answer.statusCode ?? 502, answer.headers).end(text);
      });
    });
    passed.on("close", () => underWay--);
    passed.on("error", () => outgoing.destroy());
    passed.end(body);
  };

  const front = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("error", () => {});
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const go = () => (outgoing.destroyed ? undefined : forward(incoming, outgoing, Buffer.concat(chunks)));
      if (holding && IS_DATA.test(incoming.url ?? "")) waiting.push(go);
      else go();
    });
  });
  front.on("connection", (socket) => {
    if (isAway) socket.resetAndDestroy();
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
    sources: created,
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
    underWay: () => underWay,
    drop,
    away(on) {
      isAway = on;
      if (on) drop();
    },
    leave,
    async stop() {
      await leave();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
