import { createHash } from "node:crypto";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import * as z from "zod";
import type { Throttle } from "../../lib/throttle.ts";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import { isLoopback } from "../loopback.ts";
import { OS_USER_HEADER, osUserIn } from "../os-user.ts";
import { ROUTES } from "../routes/index.ts";
import type { Method, Route } from "../routes/route.ts";
import type { AuditedHandlers } from "./audited.ts";
import { BodyRoom, NOTHING_TAKEN } from "./body-room.ts";
import { HttpProblem, invalid, invalidJson, malformedJson, notUtf8, type Part, validationEntries } from "./errors.ts";
import { matchesNone } from "./etags.ts";
import { hasLongInteger, parseExactly } from "./exact-json.ts";
import type { Incoming, Outgoing } from "./handlers.ts";
import { hasMoreParts } from "./json-parts.ts";
import { textOf } from "./json-text.ts";
import type { Authenticate, Caller } from "./keys.ts";
import { describeApi } from "./openapi.ts";
import type { CreatedExamples } from "./openapi-examples.ts";
import type { RefusedKeys } from "./refused-keys.ts";
import { seldom } from "./seldom.ts";

const BODY_BYTES = 2 ** 20;
/** Of all large bodies that are being received: four of the largest. */
const ALL_BODIES_BYTES = 32 * 2 ** 20;
/** Objects, lists and fields of a body: a batch of 50,000 values, each a list, has 300,000. */
const BODY_PARTS = 400_000;
/** Characters of a request's target: three filters of 50 uuids take 7,500. */
const URL_CHARACTERS = 10_000;
const JSON_TYPE = "application/json; charset=utf-8";
export const METHODS: readonly Method[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const PARTS: Readonly<Record<string, Part>> = { body: "body", querystring: "query", params: "path", headers: "header" };
/** Retry-After of a wrong key when too many of its address wait already, in seconds. */
const RETRY_AFTER_S = 5;
/** As RETRY_AFTER_S, where other bodies take all room. */
const RETRY_BODY_AFTER_S = 1;

export interface AppOptions {
  readonly handlers: AuditedHandlers;
  readonly authenticate: Authenticate;
  readonly throttle: Throttle;
  readonly refusedKeys: RefusedKeys;
  /** The connection has carried a valid key. */
  readonly trust: (socket: Socket) => void;
  /** True: what crosses the network is encrypted. */
  readonly isEncrypted: boolean;
  readonly version: string;
  readonly created: CreatedExamples;
  readonly log: Log;
}

/** The HTTP side of the API: routes, authorization, validation, errors, OpenAPI. It does not listen yet. */
export async function createApp(options: AppOptions): Promise<FastifyInstance> {
  const { handlers, isEncrypted, version, created, log } = options;
  const app = createFastify();
  const callers = new WeakMap<FastifyRequest, Caller>();
  setValidation(app, log);
  setBodyParser(app);
  checkRequests(app, options, callers);
  serveOpenApi(app, version, created);
  const taken = new Map<string, Method[]>([["/api/openapi.json", ["GET"]]]);
  for (const [operation, definition] of Object.entries(ROUTES) as [keyof AuditedHandlers, Route][]) {
    const url = toFastifyPath(definition.path);
    taken.set(url, [...(taken.get(url) ?? []), definition.method]);
    // The types of handler and route agree by Handlers' own definition; here all of them are treated alike.
    const handler = handlers[operation] as RouteToAdd["handler"];
    addRoute(app, { definition, url, handler, callers, isEncrypted });
  }
  refuseOtherMethods(app, taken);
  return app;
}

/** fastify's own compilers of JSON schemas take much memory: zod validates, and answers are written as they are. */
const noCompiler = (): never => {
  throw new Error("no JSON schema is compiled here");
};

/** It serves what listeners hand it, and listens nowhere itself. */
const createFastify = (): FastifyInstance =>
  fastify({
    logger: false,
    bodyLimit: BODY_BYTES,
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    frameworkErrors: (_error, _request, reply) => void problem(reply, new HttpProblem(404, "there is no such path")),
  });

function setValidation(app: FastifyInstance, log: Log): void {
  app.setValidatorCompiler(({ schema, httpPart }) => {
    const part = PARTS[httpPart ?? ""] ?? "body";
    const check = (data: unknown) => validate(schema as z.ZodType, part, data, FIXED.get(schema as z.ZodType));
    return part === "query" ? remembered(check) : check;
  });
  const failed = seldom(log);
  app.setErrorHandler((error: FastifyError, request, reply) => problem(reply, toProblem(error, request, failed)));
  app.setNotFoundHandler((_request, reply) => problem(reply, new HttpProblem(404, "there is no such path")));
}

function setBodyParser(app: FastifyInstance): void {
  app.removeContentTypeParser("text/plain");
  const parseJson = app.getDefaultJsonParser("error", "error");
  // A body that is not there is the schema's matter: a DELETE with a content type has none, and needs none.
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body: Buffer, done) => {
    const text = textOf(body);
    if (text === undefined) return void done(notUtf8());
    if (text === "") return void done(null, undefined);
    if (hasMoreParts(text, BODY_PARTS)) return void done(tooManyParts());
    return void parseJson(request, text, (error, value) =>
      error ? done(malformedJson(text)) : done(null, exactWhereGood(configOf(request).exactBody, text, value)),
    );
  });
}

/** Lets a request in where its target, its key, its method and the room for its body allow it; `callers` gets whose key it carries. */
function checkRequests(
  app: FastifyInstance,
  { authenticate, throttle, refusedKeys, trust }: Pick<AppOptions, "authenticate" | "throttle" | "refusedKeys" | "trust">,
  callers: WeakMap<FastifyRequest, Caller>,
): void {
  const room = new BodyRoom(ALL_BODIES_BYTES);
  // A callback, not a promise: what is allowed goes on at once.
  app.addHook("onRequest", (request, reply, done) => {
    if (request.raw.url !== undefined && request.raw.url.length > URL_CHARACTERS)
      return void problem(reply, new HttpProblem(414, `the request's target has more than ${URL_CHARACTERS} characters`));
    const caller = authenticate(request.headers.authorization);
    if (!caller) {
      refusedKeys.add(addressOf(request));
      return void refuseKey(throttle, request, reply);
    }
    callers.set(request, caller);
    trust(request.raw.socket);
    const { allow } = configOf(request);
    if (allow !== undefined) return void problem(reply.header("allow", allow), new HttpProblem(405, `this path takes ${allow}`));
    const release = room.take(bodyBytesOf(request));
    if (!release) {
      reply.header("retry-after", String(RETRY_BODY_AFTER_S));
      return void problem(reply, new HttpProblem(503, "the bodies of other requests take all the room there is: send this one again"));
    }
    if (release !== NOTHING_TAKEN) reply.raw.once("close", release);
    return done();
  });
}

/** 401 after a wait, or 429 where too many of its address wait already. */
async function refuseKey(throttle: Throttle, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const wait = throttle.failed(addressOf(request));
  if (!wait) {
    reply.header("retry-after", String(RETRY_AFTER_S));
    problem(reply, new HttpProblem(429, "too many requests with a wrong API key from this address"));
    return;
  }
  await delay(wait.delayMs, undefined, { ref: false });
  wait.done();
  reply.header("www-authenticate", "Bearer");
  problem(reply, new HttpProblem(401, "the Authorization header must carry a valid API key"));
}

/** The description is made when it is first asked for, and once. */
function serveOpenApi(app: FastifyInstance, version: string, created: CreatedExamples): void {
  let made: { readonly text: string; readonly etag: string } | undefined;
  app.get("/api/openapi.json", (request, reply) => {
    made ??= withEtag(JSON.stringify(describeApi(ROUTES, version, created)));
    reply.header("etag", made.etag);
    if (matchesNone(request.headers["if-none-match"], made.etag)) return reply.code(304).send();
    return reply
      .type(JSON_TYPE)
      .serializer((text: string) => text)
      .send(made.text);
  });
}

const withEtag = (text: string) => ({ text, etag: `"${createHash("sha256").update(text).digest("base64url").slice(0, 16)}"` });

interface RouteToAdd {
  readonly definition: Route;
  readonly url: string;
  readonly handler: (request: Incoming<Route>) => Outgoing | Promise<Outgoing>;
  readonly callers: WeakMap<FastifyRequest, Caller>;
  readonly isEncrypted: boolean;
}

function addRoute(app: FastifyInstance, { definition, url, handler, callers, isEncrypted }: RouteToAdd): void {
  app.route({
    method: definition.method,
    url,
    schema: schemaOf(definition),
    ...(definition.bodyBytes !== undefined && { bodyLimit: definition.bodyBytes }),
    config: { exactBody: definition.exactIntegers && definition.body } satisfies RouteConfig,
    handler: (request, reply) => {
      const caller = callers.get(request);
      if (!caller) throw new HttpProblem(401, "the Authorization header must carry a valid API key");
      const address = addressOf(request);
      const here = isHere(address);
      const answer = handler({
        params: request.params as never,
        query: request.query as never,
        body: request.body as never,
        caller,
        address,
        osUser: here ? osUserIn(request.headers[OS_USER_HEADER]) : undefined,
        isPrivate: isEncrypted || here,
        ifNoneMatch: request.headers["if-none-match"],
        ifMatch: definition.conditional ? request.headers["if-match"] : undefined,
      });
      if (!(answer instanceof Promise)) return void respond(reply, url, answer);
      // Not returned: of a promise fastify would wait for the end of the reply too.
      answer.then((made) => respond(reply, url, made)).catch((error: unknown) => reply.send(error));
    },
  });
}

function respond(reply: FastifyReply, url: string, { status, headers, body, text }: Outgoing): void {
  reply.code(status);
  const made = status === 201 ? uuidIn(body) : undefined;
  // RFC 9110, 10.2.2.
  if (made !== undefined) reply.header("location", `${url}/${made}`);
  if (headers) reply.headers({ ...headers });
  if (text === undefined) reply.send(body);
  else reply.type(JSON_TYPE).send(text);
}

const uuidIn = (body: unknown): string | undefined =>
  typeof body === "object" && body !== null && "uuid" in body && typeof body.uuid === "string" ? body.uuid : undefined;

function refuseOtherMethods(app: FastifyInstance, taken: ReadonlyMap<string, readonly Method[]>): void {
  for (const [url, methods] of taken) {
    const others = [...METHODS, "OPTIONS", "TRACE", ...(methods.includes("GET") ? [] : ["HEAD"])].filter(
      (method) => !methods.some((taken) => taken === method),
    );
    app.route({
      method: others,
      url,
      config: { allow: methods.join(", ") } satisfies RouteConfig,
      handler: (_request, reply) => problem(reply, new HttpProblem(405, `this path takes ${methods.join(", ")}`)),
    });
  }
}

const tooManyParts = (): HttpProblem =>
  invalid({
    loc: ["body"],
    msg: `expected at most ${BODY_PARTS} objects, lists and fields`,
    type: "too_big",
    ctx: { maximum: BODY_PARTS },
  });

/** Reading all digits visits every value there is: only a body that is good, and so within its bounds, is worth that. */
function exactWhereGood(schema: z.ZodType | undefined, text: string, value: unknown): unknown {
  return schema && hasLongInteger(text) && schema.safeParse(value).success ? parseExactly(text, value) : value;
}

interface RouteConfig {
  /** The methods of the path, on the route that refuses all others. */
  readonly allow?: string;
  /** Of a body whose integers are kept in all their digits. */
  readonly exactBody?: z.ZodType | undefined;
}

const configOf = (request: FastifyRequest): RouteConfig => request.routeOptions.config as RouteConfig;

/** What the body takes at most: beyond its limit it is refused. */
function bodyBytesOf({ headers, routeOptions }: FastifyRequest): number {
  const limit = routeOptions.bodyLimit ?? BODY_BYTES;
  if (headers["transfer-encoding"] !== undefined) return limit;
  return Math.min(Number(headers["content-length"] ?? 0), limit);
}

/** This machine: over loopback or the local socket. */
const isHere = (address: string): boolean => address === LOCAL || isLoopback(address.replace(/^::ffff:/, ""));

/** The peer; over the local socket it has none. */
const addressOf = (request: FastifyRequest): string => request.raw.socket.remoteAddress ?? LOCAL;
const LOCAL = "local";

/** What is validated of a request. */
const schemaOf = ({ params, query, body }: Route): Record<string, unknown> => ({
  ...(params && { params }),
  querystring: query ?? z.strictObject({}),
  ...(body && { body }),
});

/** By the body of each PATCH: the fields that the record has, as its creation answers it, and no PATCH takes. */
const FIXED: ReadonlyMap<z.ZodType, ReadonlySet<string>> = new Map(
  (Object.values(ROUTES) as readonly Route[]).flatMap(({ method, path, body }) => {
    if (method !== "PATCH" || !body) return [];
    const created = (Object.values(ROUTES) as readonly Route[]).find((other) => other.method === "POST" && `${other.path}/{uuid}` === path);
    const record = created?.responses[201];
    return record instanceof z.ZodObject ? [[body, new Set(Object.keys(record.shape))]] : [];
  }),
);

const toFastifyPath = (path: string): string => `/api${path.replaceAll(/\{(\w+)\}/g, ":$1")}`;

function validate(schema: z.ZodType, part: Part, data: unknown, fixed?: ReadonlySet<string>): { value: unknown } | { error: Error } {
  if (part === "body") {
    const array = schema instanceof z.ZodArray;
    if (typeof data !== "object" || data === null || Array.isArray(data) !== array)
      return { error: invalidJson(array ? "array" : "object") };
  }
  const sent = part === "query" ? repeatedAsArrays(schema, data) : data;
  const parsed = schema.safeParse(sent);
  return parsed.success
    ? { value: parsed.data }
    : { error: new HttpProblem(422, validationEntries(part, parsed.error.issues, sent, fixed)) };
}

const MAX_REMEMBERED = 256;
const MAX_REMEMBERED_CHARACTERS = 1000;

/** The same query comes again and again, with every poll: what was found good once is not looked at again. */
function remembered(check: (data: unknown) => { value: unknown } | { error: Error }) {
  const good = new Map<string, { value: unknown }>();
  return (data: unknown) => {
    const key = JSON.stringify(data);
    const known = good.get(key);
    if (known) return known;
    const result = check(data);
    if ("value" in result && key.length <= MAX_REMEMBERED_CHARACTERS) {
      if (good.size >= MAX_REMEMBERED) good.clear();
      good.set(key, result);
    }
    return result;
  };
}

/** A key that occurs once is an array of one where the parameter is an array (design/api-decisions: arrays by repeated keys). */
function repeatedAsArrays(schema: z.ZodType, data: unknown): unknown {
  if (!(schema instanceof z.ZodObject) || typeof data !== "object" || data === null) return data;
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => {
      const parameter: unknown = schema.shape[name];
      const isArray = parameter instanceof z.ZodOptional && parameter.unwrap() instanceof z.ZodArray;
      return [name, isArray && typeof value === "string" ? [value] : value];
    }),
  );
}

/** Fastify's own refusals, by their code. */
const REFUSALS: Readonly<Record<string, () => HttpProblem>> = {
  FST_ERR_CTP_INVALID_JSON_BODY: invalidJson,
  FST_ERR_CTP_EMPTY_JSON_BODY: invalidJson,
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: invalidJson,
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => new HttpProblem(415, "the body must be application/json"),
  FST_ERR_CTP_BODY_TOO_LARGE: () => new HttpProblem(413, "the body is larger than this operation takes"),
};

function toProblem(error: unknown, request: FastifyRequest, failed: ReturnType<typeof seldom>): HttpProblem {
  if (error instanceof HttpProblem) return error;
  const code = typeof error === "object" && error !== null && "code" in error ? String(error.code) : "";
  const refusal = REFUSALS[code];
  if (refusal) return refusal();
  const status = typeof error === "object" && error !== null && "statusCode" in error ? Number(error.statusCode) : 500;
  // The JSON parser's own refusals (syntax, forbidden keys) come with a 400.
  if (status === 400) return invalidJson();
  // Words of SQLite and of ours only; a request's content is in neither.
  const detail = messageOf(error);
  failed(code || detail, { method: request.method, path: request.routeOptions.url, code, detail }, "a request to the API failed");
  if (code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_NOTADB")
    return new HttpProblem(503, "the database is damaged: restore a backup with `collector api restore`");
  if (code.startsWith("SQLITE_CONSTRAINT_UNIQUE")) return new HttpProblem(409, "a record with this name exists");
  if (code.startsWith("SQLITE_"))
    return new HttpProblem(503, `the configuration database does not answer (${code}): is the disk full or read-only?`);
  return new HttpProblem(500, "the collector failed to answer; its log says why");
}

/**
 * Bypasses the response schemas: problems have one shape everywhere. The connection stays open, so that who is still sending a body gets to
 * read the answer; the rest of it is discarded, for as long as a request may take.
 */
function problem(reply: FastifyReply, { status, detail }: HttpProblem): FastifyReply {
  return reply
    .removeHeader("connection")
    .code(status)
    .type(JSON_TYPE)
    .serializer((body) => JSON.stringify(body))
    .send({ detail });
}
