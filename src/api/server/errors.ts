import type { z } from "zod";
import { MAX_ISSUES } from "../../model/bounded.ts";
import { jsonErrorAt } from "./json-text.ts";

/** One entry of a 422 (API-V2, 7.1). */
export interface ValidationEntry {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
  readonly input?: string | number | boolean | null;
  readonly ctx?: Readonly<Record<string, unknown>>;
}

/** How `loc` names a part of a request. */
export type Part = "body" | "query" | "path" | "header";

/** An answer other than success; thrown by handlers, sent by the server as `{detail}`. The detail never holds a secret. */
export class HttpProblem extends Error {
  override readonly name = "HttpProblem";
  readonly status: number;
  readonly detail: string | readonly ValidationEntry[];
  constructor(status: number, detail: string | readonly ValidationEntry[]) {
    super(typeof detail === "string" ? detail : "the request does not validate");
    this.status = status;
    this.detail = detail;
  }
}

export const notFound = (what: string): HttpProblem => new HttpProblem(404, `there is no such ${what}`);

/** A 422 with one entry of our own. */
export const invalid = (entry: ValidationEntry): HttpProblem => new HttpProblem(422, [entry]);

/** A missing or wrong-shaped body: fixed words, nothing of what was sent (design/api-decisions). */
export const invalidJson = (expected: "object" | "array" = "object"): HttpProblem =>
  invalid({ loc: ["body"], msg: `the body is not a JSON ${expected}`, type: "json_invalid" });

/** A body that is no JSON: where, and nothing of what was sent. */
export function malformedJson(text: string): HttpProblem {
  const at = jsonErrorAt(text);
  if (!at) return invalidJson();
  const { line, column } = at;
  return invalid({
    loc: ["body"],
    msg: `the body is not JSON: look at line ${line}, column ${column}`,
    type: "json_invalid",
    ctx: { line, column },
  });
}

export const notUtf8 = (): HttpProblem =>
  invalid({ loc: ["body"], msg: "the body is not UTF-8: JSON is sent in no other encoding (RFC 8259, 8.1)", type: "json_invalid" });

/** Characters of an `input` or a `loc` part that are given back. */
const MAX_TEXT = 200;

const NONE: ReadonlySet<string> = new Set();

/**
 * The entries for what zod found wrong in one part of a request, the first MAX_ISSUES of them. `sent` is that part as it came; `fixed` are
 * fields that the record has and this request cannot change.
 */
export function validationEntries(part: Part, issues: readonly z.core.$ZodIssue[], sent: unknown, fixed = NONE): ValidationEntry[] {
  const entries: ValidationEntry[] = [];
  for (const issue of issues) {
    entries.push(...entriesOf(part, issue, { sent, fixed, atMost: MAX_ISSUES - entries.length }));
    if (entries.length === MAX_ISSUES) break;
  }
  return entries;
}

/** One issue can name each field of an object: `atMost` of them have an entry. */
function entriesOf(
  part: Part,
  issue: z.core.$ZodIssue,
  { sent, fixed, atMost }: { readonly sent: unknown; readonly fixed: ReadonlySet<string>; readonly atMost: number },
): ValidationEntry[] {
  const path = issue.path.map((key) => (typeof key === "symbol" ? String(key) : key));
  const loc = [part, ...path].map((key) => (typeof key === "string" ? key.slice(0, MAX_TEXT) : key));
  if (issue.code === "unrecognized_keys")
    return issue.keys.slice(0, atMost).map((key) => ({
      loc: [...loc, key.slice(0, MAX_TEXT)],
      ...(path.length === 0 && fixed.has(key)
        ? { msg: "cannot be changed", type: "immutable" }
        : { msg: part === "query" ? "unknown query parameter" : "unknown field", type: "extra_forbidden" }),
    }));
  const secret = isSecretPath(path);
  const value = valueAt(sent, path);
  if (value === undefined && (issue.code === "invalid_type" || issue.code === "invalid_union" || issue.code === "invalid_value"))
    return [{ loc, msg: "this field is required", type: "missing" }];
  const ctx = contextOf(issue);
  return [
    {
      loc,
      // Words of ours about a secret could quote it; zod's own never quote what was sent.
      msg: secret && issue.code === "custom" ? "not a valid value" : issue.message,
      type: issue.code,
      ...(!secret && isPlain(issue, value) && { input: value }),
      ...(Object.keys(ctx).length > 0 && { ctx }),
    },
  ];
}

/** Names whose values are write-only (API-V2, 2.4, 2.5), at any depth: what is below them is secret too. */
const SECRET_NAMES = /^(password|secret|secrets)$/i;

export function isSecretPath(path: readonly (string | number)[]): boolean {
  return path.some((key) => typeof key === "string" && SECRET_NAMES.test(key));
}

/** Types that a scalar can be meant for: anything else may be a whole object written as text, with a password in it. */
const SCALARS = new Set(["string", "number", "int", "boolean", "null", "bigint"]);

/** True: what was sent may be shown again: a scalar where a scalar belongs, short, and without a password inside. */
function isPlain(issue: z.core.$ZodIssue, value: unknown): value is string | number | boolean | null {
  if (issue.code === "invalid_type" && !SCALARS.has(issue.expected)) return false;
  // A union without a discriminator at this place may be meant for an object.
  if (issue.code === "invalid_union" && issue.discriminator === undefined) return false;
  if (typeof value === "string") return value.length <= MAX_TEXT && !/@|passw|secret|[{[]/i.test(value);
  return value === null || typeof value === "number" || typeof value === "boolean";
}

const CONTEXT = ["expected", "format", "minimum", "maximum", "inclusive", "divisor", "values", "options"] as const;

/** What the schema asks for; nothing of what was sent. */
function contextOf(issue: z.core.$ZodIssue): Record<string, unknown> {
  const from: Readonly<Record<string, unknown>> = { ...issue };
  return Object.fromEntries(
    CONTEXT.flatMap((name) => {
      const value = from[name];
      if (value === undefined) return [];
      return [[name, typeof value === "bigint" ? Number(value) : value]];
    }),
  );
}

function valueAt(sent: unknown, path: readonly (string | number)[]): unknown {
  let value = sent;
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Readonly<Record<string | number, unknown>>)[key];
  }
  return value;
}
