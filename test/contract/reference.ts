import { realpathSync } from "node:fs";
import { z } from "zod";
import { DRIVERS } from "../../drivers/index.ts";
import { type Operation, ROUTES } from "../../src/api/routes/index.ts";
import type { Route } from "../../src/api/routes/route.ts";
import { ANSWER_SCHEMAS } from "../../src/api/routes/schema-names.ts";
import { type Example, examplesOf } from "../../src/api/server/openapi-examples.ts";
import { DETAILS } from "../../src/model/details.ts";
import { SINK_DETAILS } from "../../src/model/sink-details.ts";
import { SINKS } from "../../src/sinks/index.ts";

const EXAMPLES = examplesOf({ sources: DRIVERS, sinks: SINKS });

/** `bin/collector-node test/contract/reference.ts > docs/api/reference.md`: the operations of the API, from the routes themselves. */

interface Schema {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly maxItems?: number;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

type Direction = "input" | "output";
const jsonSchema = (schema: z.ZodType, io: Direction): Schema => z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Schema;
const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");

const listWords = ({ maxItems }: Schema): string => (maxItems === undefined ? "list" : `list (at most ${maxItems})`);

function typeWords(schema: Schema): string {
  const variants = schema.anyOf ?? schema.oneOf;
  const tags = (schema.oneOf ?? []).flatMap(({ properties }) => Object.values(properties ?? {}).flatMap((field) => field.const ?? []));
  if (tags.length > 0) return tags.map((tag) => `\`${String(tag)}\``).join(" or ");
  if (variants) return [...new Set(variants.map(typeWords))].join(" or ");
  if (schema.const !== undefined) return `\`${String(schema.const)}\``;
  if (schema.enum) return schema.enum.map((value) => `\`${String(value)}\``).join(", ");
  if (schema.items) return `${listWords(schema)} of ${typeWords(schema.items)}`;
  return [schema.type ?? "any"].flat().join(" or ");
}

function* rowsOf(schema: Schema, prefix = "", depth = 0): Generator<string> {
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    const needed = schema.required?.includes(name) && inner.default === undefined ? "required" : "optional";
    const fallback = inner.default === undefined ? "" : `, default \`${JSON.stringify(inner.default)}\``;
    yield `| \`${prefix}${name}\` | ${cell(typeWords(inner))} | ${needed}${cell(fallback)} | ${cell(inner.description ?? "")} |`;
    if (depth > 1) continue;
    if (inner.properties) yield* rowsOf(inner, `${prefix}${name}.`, depth + 1);
    for (const variant of prefix === "" ? (inner.oneOf ?? []) : []) {
      const [tag] = Object.entries(variant.properties ?? {}).filter(([, field]) => field.const !== undefined);
      const { [tag?.[0] ?? ""]: _, ...rest } = variant.properties ?? {};
      // The variants of the details have tables of their own.
      if (tag && name !== "details") yield* rowsOf({ ...variant, properties: rest }, `${name}<${String(tag[1].const)}>.`, depth + 1);
    }
  }
}

function tableOf(title: string, schema: z.ZodType | undefined, io: Direction = "input"): string[] {
  if (!schema) return [];
  const said = jsonSchema(schema, io);
  const rows = [...rowsOf(said.items ?? said)];
  if (rows.length === 0) return [];
  return ["", `${title}${said.items ? `: a ${listWords(said)} of` : ""}:`, "", "| Field | Type | | |", "|---|---|---|---|", ...rows];
}

/** Types of answers by their schemas. */
const NAMES: ReadonlyMap<z.ZodType, string> = new Map(ANSWER_SCHEMAS.map(([name, schema]) => [schema, name]));
const link = (name: string): string => `[\`${name}\`](#${name.toLowerCase()})`;
const TIMESERIES_PAGE = "TimeseriesPage";
/** Name of the type that is answered, or of the records of a page. A time series has samples, in an object of its own. */
const recordOf = (name: string): string => (name === TIMESERIES_PAGE ? "Sample" : name.replace(/Page$/, ""));
const isPage = (name: string): boolean => recordOf(name) !== name;

function answerWords([status, schema]: readonly [string, z.ZodType | null]): string {
  const name = schema && NAMES.get(schema);
  if (!name) return `${status} (no body)`;
  return isPage(name) ? `${status} a page of ${link(recordOf(name))}` : `${status} ${link(name)}`;
}

const fenced = (value: unknown): string[] => ["", "```json", JSON.stringify(value, null, 2), "```"];

/** The first request with what it is answered, as a test sends it. */
function exampleOf(name: string): string[] {
  const { requests, answer }: Example = EXAMPLES[name as Operation] ?? {};
  const [body] = Object.values(requests ?? {});
  return [
    ...(body === undefined ? [] : ["", "Example of a body:", ...fenced(body)]),
    ...(answer === undefined ? [] : ["", body === undefined ? "Example of an answer:" : "Its answer:", ...fenced(answer)]),
  ];
}

function sectionOf(name: string, route: Route): string[] {
  const whose = route.section === "ours" ? "an extension of ours" : `API-V2, ${route.section}${route.experimental ? ", experimental" : ""}`;
  const takes = [...(route.conditional ? ["`If-Match`"] : []), ...(route.responses[304] === null ? ["`If-None-Match`"] : [])];
  return [
    `## \`${route.method} ${route.path}\``,
    "",
    `${route.summary}. Operation \`${name}\`, ${whose}.${takes.length > 0 ? ` Takes ${takes.join(" and ")}.` : ""}`,
    ...tableOf("Query", route.query),
    ...tableOf("Body", route.body),
    "",
    `Answers: ${Object.entries(route.responses).map(answerWords).join(", ")}.`,
    ...exampleOf(name),
    "",
  ];
}

/** Each type that is answered as a whole, or in pages. */
function answerTypes(routes: readonly Route[]): string[] {
  const answered = new Set(
    routes.flatMap(({ responses }) => Object.values(responses).flatMap((schema) => (schema ? [NAMES.get(schema) ?? ""] : []))),
  );
  const wanted = new Set([...answered].map(recordOf));
  return ANSWER_SCHEMAS.filter(([name]) => wanted.has(name)).flatMap(([name, schema]) => [
    `## ${name}`,
    ...tableOf("Fields", schema, "output"),
    "",
  ]);
}

/** A body that creates a record with details of this type. */
const creationOf = (operation: Operation, type: string): string[] => {
  const body = EXAMPLES[operation]?.requests?.[type];
  return body === undefined ? [] : ["", "Example of a body:", ...fenced(body)];
};

/** The reference as Markdown. Pure. */
export function renderReference(): string {
  const routes = Object.entries(ROUTES) as [string, Route][];
  return `${[
    "# Operations of the configuration API",
    "",
    "Made from the routes by `bin/collector-node test/contract/reference.ts`; a test holds it to them. Paths are below `{base_url}/api`; every",
    "operation needs the `Authorization` header. `GET /api/openapi.json` gives the same with every schema, as OpenAPI 3.1. What is marked as an",
    "extension of ours is not a part of the platform's API; what is marked experimental may change without notice.",
    "",
    "Records carry an `ETag`; a change or deletion with `If-Match` is answered 412 where the record has changed since. A validation error is 422",
    'with a list of entries, every other problem has the body `{"detail": "…"}`. A test sends every example below and compares its answer.',
    "[Examples with curl](examples.md), run by a test as well.",
    "",
    ...routes.flatMap(([name, route]) => sectionOf(name, route)),
    "# Answers",
    "",
    "A page is an object with the records in `data` and `metadata.next_cursor`, null on the last page.",
    "",
    ...answerTypes(routes.map(([, route]) => route)),
    "# Details on creation",
    "",
    ...Object.entries(DETAILS).flatMap(([type, { create }]) => [
      `## Data source \`${type}\``,
      ...tableOf("Fields", create),
      ...creationOf("createDataSource", type),
      "",
    ]),
    ...Object.entries(SINK_DETAILS).flatMap(([type, { create }]) => [
      `## Data sink \`${type}\``,
      ...tableOf("Fields", create),
      ...creationOf("createDataSink", type),
      "",
    ]),
  ]
    .join("\n")
    .trimEnd()}\n`;
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === import.meta.filename) process.stdout.write(renderReference());
