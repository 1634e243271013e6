import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { CREATE_DETAILS, CREATE_SINK_DETAILS, DATA_SINK_CREATE, DATA_SOURCE_CREATE, type Json } from "../contract/api-v2.ts";
import { problemsOf } from "./shape.ts";

/**
 * A platform that has only what API-V2 describes, written from that document alone: no extension, no ETag, no revision. What the document
 * leaves open is an option, so that the collector meets every answer that is legal.
 */

export type JsonObject = { readonly [key: string]: Json };

export interface PlatformOptions {
  /** Records of a page. */
  readonly pageSize?: number;
  /** Pages without a record before each page that has some. */
  readonly emptyPages?: number;
  /** Fields that the document does not have, in each object of an answer. */
  readonly unknownFields?: boolean;
  /** Fields in the reverse order. */
  readonly reversed?: boolean;
  /** Form in which the key is taken. */
  readonly keyForm?: "bare" | "bearer";
  /** Answer to what the document does not have; "hang": none at all, "reset": the connection is reset. */
  readonly unknownRoute?: number | "hang" | "reset" | "page" | "redirect";
  /** True: the list's filter is left aside, so that records of other collectors are listed too. */
  readonly unfiltered?: boolean;
  readonly delayMs?: number;
}

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly authorization: string | undefined;
  readonly userAgent: string | undefined;
  readonly ifNoneMatch: string | undefined;
  readonly body: string;
  readonly atMs: number;
}

/** An answer in the place of the platform's own; undefined: the platform's. */
export type Instead = (asked: Asked, response: ServerResponse) => boolean;

export interface DocumentPlatform {
  readonly url: string;
  readonly key: string;
  /** As the lists give them, in order; may be changed at any time. */
  sources: JsonObject[];
  sinks: JsonObject[];
  options: PlatformOptions;
  /** Answers first where it says so. */
  instead: Instead | undefined;
  readonly asked: readonly Asked[];
  /** What a request did that the document does not allow: a cursor with other filters, fifty-one values, an unknown parameter. */
  readonly violations: readonly string[];
  close(): Promise<void>;
}

export const KEY = "Document-key-4f1b9c7e02";
const LISTS: Readonly<Record<string, readonly string[]>> = {
  "/v2/data-sources": ["uuid", "machine", "collector"],
  "/v2/data-sinks": ["uuid", "collector"],
  "/v2/sites": [],
};
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const MAX_FILTER_ITEMS = 50;

export async function startDocumentPlatform(options: PlatformOptions = {}): Promise<DocumentPlatform> {
  const asked: Asked[] = [];
  const violations: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("error", () => {});
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const one = askedOf(request, Buffer.concat(chunks).toString("utf8"));
      asked.push(one);
      const { delayMs } = platform.options;
      if (delayMs === undefined) answer(platform, one, response, violations);
      else setTimeout(() => answer(platform, one, response, violations), delayMs);
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const platform: DocumentPlatform = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    key: KEY,
    sources: [],
    sinks: [],
    options,
    instead: undefined,
    asked,
    violations,
    close() {
      server.closeAllConnections();
      return new Promise((done) => server.close(() => done()));
    },
  };
  return platform;
}

function askedOf({ method = "", url = "/", headers }: IncomingMessage, body: string): Asked {
  const { pathname, searchParams } = new URL(url, "http://platform");
  return {
    method,
    path: pathname.replace(/^\/api/, ""),
    query: searchParams,
    authorization: headers.authorization,
    userAgent: headers["user-agent"],
    ifNoneMatch: headers["if-none-match"],
    body,
    atMs: performance.now(),
  };
}

/** Status and body. */
type Answer = readonly [status: number, body?: Json];

function answer(platform: DocumentPlatform, asked: Asked, response: ServerResponse, violations: string[]): void {
  if (response.destroyed || platform.instead?.(asked, response)) return;
  const answered = answerOf(platform, asked, violations);
  const [status, body] = answered ?? [];
  if (status === undefined) notThere(platform, response);
  else if (body === undefined) response.writeHead(status).end();
  else send(response, status, dressed(platform.options, body));
}

/** Undefined: the document has no such operation. */
function answerOf(platform: DocumentPlatform, asked: Asked, violations: string[]): Answer | undefined {
  const { keyForm = "bare" } = platform.options;
  const { method, path } = asked;
  const list = LISTS[path];
  const [collection = "", uuid] = /^(\/v2\/data-s\w+)\/([^/]+)$/.exec(path)?.slice(1) ?? [];
  // A gateway may look for the route before it looks for the key.
  if (!list && !LISTS[collection]) return undefined;
  if (asked.authorization !== (keyForm === "bearer" ? `Bearer ${KEY}` : KEY)) return [401, { detail: "who are you?" }];
  if (list && method === "GET") return page(platform, asked, list, violations);
  if (list && method === "POST") return create(platform, asked);
  return uuid !== undefined && collection === "/v2/data-sinks" ? sink(platform, asked, uuid) : undefined;
}

function notThere({ options: { unknownRoute = 404 } }: DocumentPlatform, response: ServerResponse): void {
  if (unknownRoute === "reset") response.socket?.resetAndDestroy();
  else if (unknownRoute === "page") response.writeHead(200, { "content-type": "text/html" }).end("<html>Welcome</html>");
  else if (unknownRoute === "redirect") response.writeHead(302, { location: "https://login.invalid/" }).end();
  else if (unknownRoute !== "hang") send(response, unknownRoute, { detail: "no such path" });
}

/** API-V2, 4.5. The cursor is the place in the list, under a digest of the other parameters. */
function page(platform: DocumentPlatform, asked: Asked, filters: readonly string[], violations: string[]): Answer {
  const { pageSize = 50, emptyPages = 0, unfiltered = false } = platform.options;
  const others = [...asked.query].filter(([name]) => name !== "cursor").sort();
  const wrong = refusedQuery(asked.query, filters);
  const bound = createHash("sha1")
    .update(JSON.stringify([asked.path, others]))
    .digest("hex")
    .slice(0, 8);
  const cursor = asked.query.get("cursor");
  const [digest, place = "0"] = cursor === null ? [bound] : Buffer.from(cursor, "base64url").toString("utf8").split(":");
  if (digest !== bound) wrong.push({ loc: ["query", "cursor"], msg: "the cursor is not valid", type: "cursor" });
  if (wrong.length > 0) {
    violations.push(`${asked.method} ${asked.path}: ${wrong.map(({ loc }) => loc.join(".")).join(", ")}`);
    return [422, { detail: wrong }];
  }
  const all = asked.path === "/v2/data-sources" ? platform.sources : asked.path === "/v2/data-sinks" ? platform.sinks : [];
  const kept = all.filter((record) => unfiltered || filters.every((name) => fits(asked.query.getAll(name), record[name])));
  const step = Number(place);
  const isEmpty = step % (emptyPages + 1) !== emptyPages;
  const from = Math.floor(step / (emptyPages + 1)) * pageSize;
  const data = isEmpty ? [] : kept.slice(from, from + pageSize);
  const isLast = !isEmpty && from + pageSize >= kept.length;
  const next = isLast ? null : Buffer.from(`${bound}:${step + 1}`).toString("base64url");
  return [200, { data, metadata: { next_cursor: next } }];
}

interface Refusal extends JsonObject {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

function refusedQuery(query: URLSearchParams, filters: readonly string[]): Refusal[] {
  const refusals: Refusal[] = [];
  for (const name of new Set(query.keys())) {
    const values = query.getAll(name);
    const isFilter = filters.includes(name);
    const isRight = isFilter
      ? values.length <= MAX_FILTER_ITEMS && new Set(values).size === values.length && values.every((value) => UUID.test(value))
      : name === "cursor" && values.length === 1;
    if (!isRight) refusals.push({ loc: ["query", name], msg: "not valid", type: "value_error" });
  }
  return refusals;
}

const fits = (wanted: readonly string[], value: Json | undefined): boolean => wanted.length === 0 || wanted.includes(String(value));

function create(platform: DocumentPlatform, { path, body }: Asked): Answer {
  const isSource = path === "/v2/data-sources";
  let value: Json;
  try {
    value = JSON.parse(body) as Json;
  } catch {
    return [422, { detail: [{ loc: ["body"], msg: "not JSON", type: "json_invalid" }] }];
  }
  const table = isSource ? DATA_SOURCE_CREATE : DATA_SINK_CREATE;
  const problems = problemsOf(value, table.shape, ["body"]);
  if (problems.length > 0) return [422, { detail: problems.map((loc) => ({ loc, msg: "not valid", type: "value_error" })) }];
  const record = value as JsonObject;
  const { type = "" } = record["details"] as { readonly type?: string };
  const rows = (isSource ? CREATE_DETAILS : CREATE_SINK_DETAILS)[type] ?? [];
  const defaults = Object.fromEntries(rows.flatMap((row) => (row.default === undefined ? [] : [[row.field, row.default]])));
  const made: JsonObject = {
    uuid: randomUUID(),
    ...(isSource ? { manufacturer: null, device_model: null, note: null } : { name: null }),
    ...record,
    type,
    details: { ...defaults, ...(record["details"] as JsonObject) },
    ...(isSource && sourceState()),
  };
  (isSource ? platform.sources : platform.sinks).push(made);
  return [201, made];
}

const sourceState = (): JsonObject => ({
  readout_limit: null,
  readout_interval: 1,
  readout_status: { last_readout_at: null, configured_variables: 0, state: { type: "UNKNOWN" } },
  last_readout_at: null,
  capabilities: { variable_discovery: false },
});

/** API-V2, 4.2: one data sink. */
function sink(platform: DocumentPlatform, { method, body }: Asked, uuid: string): Answer {
  const at = platform.sinks.findIndex((one) => one["uuid"] === uuid);
  const found = platform.sinks[at];
  if (!found) return [404, { detail: "no such data sink" }];
  if (method === "GET") return [200, found];
  if (method === "DELETE") platform.sinks.splice(at, 1);
  else if (method === "PATCH") {
    const { name, details } = JSON.parse(body) as { readonly name?: string; readonly details?: JsonObject };
    const merged = { ...(found["details"] as JsonObject), ...details };
    platform.sinks[at] = { ...found, ...(name !== undefined && { name }), details: merged };
  } else return [405, { detail: "not allowed" }];
  return [204];
}

/** The answer as the options want it to look. */
function dressed(options: PlatformOptions, value: Json): Json {
  if (Array.isArray(value)) return value.map((one: Json) => dressed(options, one));
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([name, inner]) => [name, dressed(options, inner)] as const);
  if (options.reversed) fields.reverse();
  return Object.fromEntries([...fields, ...(options.unknownFields ? [["x_of_next_year", { deep: [1, null] }] as const] : [])]);
}

const send = (response: ServerResponse, status: number, value: Json): void =>
  void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));

/** A data source as 2.1 gives it. */
export const sourceRecord = (collector: string, name: string, rest: JsonObject = {}): JsonObject => ({
  uuid: randomUUID(),
  type: "modbus_tcp",
  name,
  collector,
  manufacturer: null,
  device_model: null,
  note: null,
  machine: "00000000-0000-4000-8000-000000000001",
  details: { type: "modbus_tcp", host: "127.0.0.1", port: 502, ephemeral_connections: true },
  ...sourceState(),
  ...rest,
});

/** A data sink as 2.5 gives it. */
export const sinkRecord = (collector: string, name: string, rest: JsonObject = {}): JsonObject => ({
  uuid: randomUUID(),
  type: "mqtt",
  name,
  collector,
  details: { type: "mqtt", host: "127.0.0.1", port: 1883, client_id: name, topic: "plant/{source}", publish_interval: 1 },
  ...rest,
});
