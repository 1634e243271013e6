import * as z from "zod";
import type { Operation } from "../routes/index.ts";
import { type Route, tagOf } from "../routes/route.ts";
import { ANSWER_SCHEMAS, REQUEST_SCHEMAS } from "../routes/schema-names.ts";
import { type CreatedExamples, type Example, examplesOf, PROBLEM_EXAMPLES } from "./openapi-examples.ts";

/** JSON of any shape: OpenAPI is a format of others, which tests hold. */
type Json = Readonly<Record<string, unknown>>;

const refTo = (kind: "schemas" | "responses" | "headers", name: string): Json => ({ $ref: `#/components/${kind}/${name}` });
const json = (schema: Json, more: Json = {}): Json => ({ "application/json": { schema, ...more } });

/** Schemas in one direction, each with those inside it by reference. */
class Schemas {
  readonly definitions: Readonly<Record<string, Json>>;
  readonly #names = new Map<z.ZodType, string>();

  constructor(named: readonly (readonly [name: string, schema: z.ZodType])[], io: "input" | "output") {
    const registry = z.registry<{ id: string }>();
    for (const [id, schema] of named) {
      registry.add(schema, { id });
      this.#names.set(schema, id);
    }
    const { schemas } = z.toJSONSchema(registry, {
      ...CONVERSION,
      io,
      uri: (id) => `#/components/schemas/${id}`,
      override: ({ zodSchema, jsonSchema }) => {
        CONVERSION.override({ zodSchema, jsonSchema });
        const { def } = zodSchema._zod;
        if (def.type !== "union" || !jsonSchema.oneOf || !("discriminator" in def)) return;
        jsonSchema["discriminator"] = this.#discriminatorOf(String(def.discriminator), (def as z.core.$ZodUnionDef).options);
      },
    });
    this.definitions = Object.fromEntries(
      Object.entries(schemas).map(([name, { $schema: _, $id: __, ...definition }]) => [name, definition as Json]),
    );
  }

  /** Throws Error where the schema has no name, so that no type of a generated client is without one. */
  of(schema: z.ZodType, where: string): Json {
    const name = this.#names.get(schema);
    if (name === undefined) throw new Error(`the schema of ${where} has no name in src/api/routes/schema-names.ts`);
    return refTo("schemas", name);
  }

  #discriminatorOf(propertyName: string, options: readonly z.core.$ZodType[]): Json {
    const entries = options.map((option) => {
      const tag = (option as z.ZodObject).shape[propertyName] as z.ZodLiteral;
      return [String(tag.value), this.of(option as z.ZodType, `${propertyName} ${String(tag.value)}`)["$ref"]];
    });
    return { propertyName, mapping: Object.fromEntries(entries) };
  }
}

const CONVERSION = {
  unrepresentable: "any",
  override({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodType; jsonSchema: z.core.JSONSchema.BaseSchema }): void {
    if (zodSchema._zod.def.type === "bigint") jsonSchema.type = "integer";
    // What a double holds exactly goes without saying.
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  },
} as const;

/** Answers that are the same wherever they occur, by status. */
const PROBLEMS: Readonly<Record<number, readonly [name: string, description: string, headers?: readonly string[]]>> = {
  401: ["Unauthorized", "The Authorization header carries no valid API key", ["WWW-Authenticate"]],
  403: ["Forbidden", "This key may not do that"],
  404: ["NotFound", "There is no such record within the reach of this key"],
  409: ["Conflict", "The name is taken, or other records refer to this one"],
  412: ["PreconditionFailed", "The record has changed since it was read (If-Match)"],
  413: ["TooLarge", "The body is larger than this operation takes"],
  414: ["TargetTooLong", "The path and the query have too many characters"],
  415: ["NotJson", "The body is not application/json"],
  422: ["Invalid", "The request is not as described; each problem has an entry"],
  429: ["TooManyRequests", "Too many requests with a wrong API key from this address", ["Retry-After"]],
  500: ["Failed", "The collector failed to answer; its log says why"],
  503: ["Unavailable", "The database does not answer, or other requests take all room", ["Retry-After"]],
};
/** Of every operation, and of those with a body or with parameters of the query. Each by its status: beside a default no client could tell answers apart. */
const EVERYWHERE = [500];
const WITH_BODY = [413, 415];
const WITH_QUERY = [414];

/** Headers of answers. Those of problems are there where they say something. */
const HEADERS: Readonly<Record<string, string>> = {
  ETag: "Version of what is answered, for If-None-Match and If-Match",
  Location: "Path of the record that was made",
  "Retry-After": "After how many seconds it is worth another try",
  "WWW-Authenticate": "How to send a key",
};

const DONE: Readonly<Record<number, string>> = {
  200: "Done",
  201: "Created",
  204: "Done; there is no body",
  304: "Unchanged since the version of If-None-Match; there is no body",
};

/** The API as OpenAPI 3.1: every schema by a name, unions by their discriminators, each answer with its headers and an example. Pure. */
export function describeApi(routes: Readonly<Record<string, Route>>, version: string, created: CreatedExamples): Json {
  const examples = examplesOf(created);
  const requests = new Schemas(REQUEST_SCHEMAS, "input");
  const answers = new Schemas(ANSWER_SCHEMAS, "output");
  const paths: Record<string, Record<string, Json>> = {};
  for (const [operation, route] of Object.entries(routes)) {
    const described = describeOperation(operation as Operation, route, examples[operation as Operation], requests, answers);
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: described };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Industrial Data Acquisition Configuration API",
      version,
      description: "Version 2 of the API as the collector serves it. What is tagged `extension` is the collector's own.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/api" }],
    security: [{ apiKey: [] }],
    tags: [
      { name: "v2", description: "Version 2 of the API" },
      { name: "experimental", description: "Version 2 of the API; may change without notice" },
      { name: "extension", description: "The collector's own; no part of the platform's API" },
    ],
    paths,
    components: {
      securitySchemes: { apiKey: { type: "apiKey", in: "header", name: "Authorization" } },
      headers: Object.fromEntries(
        Object.entries(HEADERS).map(([name, description]) => [name, { description, schema: { type: "string" } }]),
      ),
      responses: Object.fromEntries(
        Object.entries(PROBLEMS).map(([status, [name, description, headers = []]]) => [
          name,
          {
            description,
            ...headersOf(headers),
            content: json(refTo("schemas", status === "422" ? "ValidationProblem" : "Problem"), { example: PROBLEM_EXAMPLES[status] }),
          },
        ]),
      ),
      schemas: joined(requests.definitions, answers.definitions),
    },
  };
}

/** One definition for each name. Throws Error where a request and an answer differ under one name. */
function joined(requests: Readonly<Record<string, Json>>, answers: Readonly<Record<string, Json>>): Json {
  for (const [name, schema] of Object.entries(requests))
    if (answers[name] && JSON.stringify(answers[name]) !== JSON.stringify(schema))
      throw new Error(`the schema ${name} is another one in requests than in answers: give it two names`);
  return Object.fromEntries(Object.entries({ ...requests, ...answers }).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function describeOperation(operation: Operation, route: Route, example: Example | undefined, requests: Schemas, answers: Schemas): Json {
  const answerWith = (status: number, schema: z.ZodType | null): Json => answerOf({ operation, route, example }, status, schema, answers);
  return {
    operationId: operation,
    summary: route.summary,
    tags: [tagOf(route)],
    ...(route.params || route.query || route.conditional || route.responses[304] === null ? { parameters: parametersOf(route) } : {}),
    ...(route.body && {
      requestBody: { required: true, content: json(requests.of(route.body, `the body of ${operation}`), bodyExamples(example)) },
    }),
    responses: {
      ...Object.fromEntries(Object.entries(route.responses).map(([status, schema]) => [status, answerWith(Number(status), schema)])),
      ...Object.fromEntries(
        [...EVERYWHERE, ...(route.body ? WITH_BODY : []), ...(route.query ? WITH_QUERY : [])].map((status) => [
          status,
          answerWith(status, null),
        ]),
      ),
    },
  };
}

interface Described {
  readonly operation: Operation;
  readonly route: Route;
  readonly example: Example | undefined;
}

function answerOf({ operation, route, example }: Described, status: number, schema: z.ZodType | null, answers: Schemas): Json {
  const problem = PROBLEMS[status];
  if (problem) return refTo("responses", problem[0]);
  const answer = example?.answer;
  return {
    description: DONE[status] ?? String(status),
    ...headersOf([...(hasEtag(route, status) ? ["ETag"] : []), ...(status === 201 ? ["Location"] : [])]),
    ...(schema && { content: json(answers.of(schema, `${status} of ${operation}`), answer === undefined ? {} : { example: answer }) }),
  };
}

/** A record that can be asked for with If-None-Match, made, or changed with If-Match, is answered with its version. */
const hasEtag = ({ method, conditional, responses }: Route, status: number): boolean =>
  responses[304] === null || status === 201 || (conditional === true && method === "PATCH");

const headersOf = (names: readonly string[]): Json =>
  names.length === 0 ? {} : { headers: Object.fromEntries(names.map((name) => [name, refTo("headers", name)])) };

function bodyExamples(example: Example | undefined): Json {
  if (!example?.requests) return {};
  return { examples: Object.fromEntries(Object.entries(example.requests).map(([name, value]) => [name, { value }])) };
}

function parametersOf({ params, query, conditional, responses }: Route): readonly Json[] {
  const fields = (schema: z.ZodObject | undefined, place: "path" | "query"): readonly Json[] => {
    if (!schema) return [];
    const { properties = {}, required = [] } = z.toJSONSchema(schema, { ...CONVERSION, io: "input" });
    return Object.entries(properties).map(([name, described]) => {
      const { description, ...inner } = described as Json;
      return { name, in: place, required: required.includes(name), description, schema: inner };
    });
  };
  const header = (name: string, description: string): Json => ({
    name,
    in: "header",
    required: false,
    description,
    schema: { type: "string" },
  });
  return [
    ...fields(params, "path"),
    ...fields(query, "query"),
    ...(conditional ? [header("If-Match", "ETag of the record as it was read; 412 where it has changed since")] : []),
    ...(responses[304] === null ? [header("If-None-Match", "ETag of what is already known; 304 where it has not changed")] : []),
  ];
}
