import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type { Json, Row } from "./api-v2.ts";

/** strict: an unknown field is an error; stripping: it is dropped. */
export type Form = "strict" | "stripping";

interface JsonObject {
  readonly [key: string]: Json;
}

/**
 * Everything in which a schema differs from its rows, in words; an empty list when nothing does. Two views of one schema:
 * what it says of itself (JSON Schema: every field and no other), and what it does with right and wrong input.
 */
export function differences(schema: z.ZodType, shape: readonly Row[], form: Form): string[] {
  const said = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as unknown as JsonObject;
  return [...ofObject(said, shape, form, "", undefined), ...ofBehaviour(schema, shape, form)];
}

// What the schema says

function ofObject(
  said: Json | undefined,
  shape: readonly Row[],
  form: Form,
  at: string,
  constant: readonly [field: string, value: string] | undefined,
): string[] {
  if (!isObject(said)) return [`${at}: is not an object`];
  const properties = isObject(said["properties"]) ? said["properties"] : {};
  const found: string[] = [];
  const expected = [...shape.map(({ field }) => field), ...(constant ? [constant[0]] : [])];
  for (const field of expected) if (!(field in properties)) found.push(`${at}.${field}: is missing`);
  for (const field of Object.keys(properties)) if (!expected.includes(field)) found.push(`${at}.${field}: is not in the document`);
  if ((said["additionalProperties"] === false) !== (form === "strict")) found.push(`${at}: is not ${form}`);
  const required = Array.isArray(said["required"]) ? said["required"] : [];
  if (constant) {
    const [field, value] = constant;
    const own = properties[field];
    if (!isObject(own) || own["const"] !== value) found.push(`${at}.${field}: is not the constant ${value}`);
    if (!required.includes(field)) found.push(`${at}.${field}: is not required`);
  }
  for (const row of shape) {
    const own = properties[row.field];
    if (!isObject(own)) continue;
    if (required.includes(row.field) !== mustBeThere(row)) found.push(`${at}.${row.field}: required is ${required.includes(row.field)}`);
    if (typeof own["description"] !== "string") found.push(`${at}.${row.field}: has no description`);
    found.push(...ofField(own, row, form, `${at}.${row.field}`));
  }
  return found;
}

function ofField(own: JsonObject, row: Row, around: Form, at: string): string[] {
  const form = row.form ?? around;
  const found: string[] = [];
  const hold = (what: string, actual: Json | undefined, expected: Json | undefined) => {
    if (!isDeepStrictEqual(actual, expected)) found.push(`${at}: ${what} is ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`);
  };
  hold("default", own["default"], defaultOf(row));
  const { bare, nullable } = withoutNull(own);
  hold("nullable", nullable, isNullable(row));
  switch (row.type) {
    case "integer":
      hold("type", bare["type"], "integer");
      hold("minimum", bound(bare["minimum"], Number.MIN_SAFE_INTEGER), row.min ?? row.ours?.min);
      hold("maximum", bound(bare["maximum"], Number.MAX_SAFE_INTEGER), row.max ?? row.ours?.max);
      break;
    case "string":
      hold("type", bare["type"], "string");
      hold("enum", bare["enum"], undefined);
      hold("format", bare["format"], undefined);
      hold("minLength", bare["minLength"], row.minLength ?? row.ours?.minLength);
      hold("maxLength", bare["maxLength"], row.maxLength);
      break;
    case "uuid":
    case "date-time":
      hold("type", bare["type"], "string");
      hold("format", bare["format"], row.type);
      break;
    case "boolean":
      hold("type", bare["type"], "boolean");
      break;
    case "record":
      hold("type", bare["type"], "object");
      break;
    case "enum":
      hold("type", bare["type"], "string");
      hold("values", sorted(bare["enum"]), [...row.values].sort());
      break;
    case "list":
      hold("type", bare["type"], "array");
      hold("minItems", bare["minItems"], 1);
      hold("uniqueItems", bare["uniqueItems"], true);
      hold("values", sorted(isObject(bare["items"]) ? bare["items"]["enum"] : undefined), [...row.values].sort());
      break;
    case "object":
      found.push(...ofObject(bare, row.shape, form, at, undefined));
      break;
    case "array":
      hold("type", bare["type"], "array");
      found.push(...ofObject(bare["items"], row.shape, form, `${at}[]`, undefined));
      break;
    case "union": {
      const options = new Map(optionsOf(bare).map((option) => [constantOf(option, row.discriminator), option]));
      hold("variants", [...options.keys()].sort(), Object.keys(row.variants).sort());
      for (const [value, shape] of Object.entries(row.variants))
        if (options.has(value)) found.push(...ofObject(options.get(value), shape, form, `${at}<${value}>`, [row.discriminator, value]));
    }
  }
  return found;
}

const mustBeThere = (row: Row): boolean => (row.ours?.required ?? row.required) && defaultOf(row) === undefined;
const defaultOf = (row: Row): Json | undefined => (row.default === undefined ? row.ours?.default : row.default);
const isNullable = (row: Row): boolean => row.nullable ?? row.ours?.nullable ?? false;
const isObject = (value: Json | undefined): value is JsonObject => typeof value === "object" && value !== null && !Array.isArray(value);
/** A safe integer is as wide as JSON's numbers are exact: no bound. */
const bound = (value: Json | undefined, none: number): Json | undefined => (value === none ? undefined : value);
const sorted = (value: Json | undefined): Json | undefined => (Array.isArray(value) ? [...value].sort() : value);
const optionsOf = (bare: JsonObject): JsonObject[] => {
  const options = bare["oneOf"] ?? bare["anyOf"];
  return Array.isArray(options) ? options.filter(isObject) : [bare];
};

function constantOf(option: JsonObject, discriminator: string): string {
  const own = isObject(option["properties"]) ? option["properties"][discriminator] : undefined;
  return isObject(own) ? String(own["const"]) : "";
}

function withoutNull(own: JsonObject): { readonly bare: JsonObject; readonly nullable: boolean } {
  const { anyOf, type } = own;
  if (Array.isArray(anyOf)) {
    const rest = anyOf.filter(isObject).filter((option) => option["type"] !== "null");
    if (rest.length < anyOf.length) return { bare: rest.length === 1 && rest[0] ? rest[0] : { anyOf: rest }, nullable: true };
  }
  if (Array.isArray(type) && type.includes("null")) {
    const rest = type.filter((name) => name !== "null");
    return { bare: { ...own, type: rest.length === 1 ? (rest[0] ?? null) : rest }, nullable: true };
  }
  return { bare: own, nullable: false };
}

// What the schema does

type Path = readonly (string | number)[];

/** One edit of a valid input, and what must come of it. */
interface Trial {
  readonly input: Json;
  readonly at: Path;
  /** The output at `at` (undefined: absent), or `refused` with an issue there. */
  readonly expected: { readonly output: Json | undefined } | "refused" | "unknown field refused";
}

function ofBehaviour(schema: z.ZodType, shape: readonly Row[], form: Form): string[] {
  const found: string[] = [];
  for (const { input, at, expected } of trialsOf(shape, form, [], sampleOf(shape), (value) => value)) {
    const result = schema.safeParse(input);
    const place = `.${at.join(".")} given ${shorten(get(input, at))}`;
    if (expected === "refused" || expected === "unknown field refused") {
      const parent = at.slice(0, -1);
      const told = result.error?.issues.some((issue) =>
        expected === "refused"
          ? isDeepStrictEqual(issue.path, at)
          : issue.code === "unrecognized_keys" && isDeepStrictEqual(issue.path, parent),
      );
      if (result.success) found.push(`${place}: is taken`);
      else if (!told) found.push(`${place}: is refused, but no issue stands there: ${shorten(result.error.issues as unknown as Json)}`);
    } else if (!result.success) found.push(`${place}: is refused: ${result.error.issues[0]?.message}`);
    else if (!isDeepStrictEqual(get(result.data as Json, at), expected.output))
      found.push(`${place}: becomes ${shorten(get(result.data as Json, at))}, not ${shorten(expected.output)}`);
  }
  return found;
}

/** `put` sets a value at the place of this object within the whole input. */
function* trialsOf(shape: readonly Row[], form: Form, path: Path, sample: JsonObject, put: (value: Json) => Json): Generator<Trial> {
  const unknown = [...path, "unheard_of"];
  yield {
    input: put({ ...sample, unheard_of: 1 }),
    at: unknown,
    expected: form === "strict" ? "unknown field refused" : { output: undefined },
  };
  for (const row of shape) {
    const at = [...path, row.field];
    const within = row.form ?? form;
    const set = (value: Json): Json => put({ ...sample, [row.field]: value });
    const { [row.field]: _left, ...rest } = sample;
    yield { input: put(rest), at, expected: mustBeThere(row) ? "refused" : { output: defaultOf(row) } };
    yield { input: set(null), at, expected: isNullable(row) ? { output: null } : "refused" };
    for (const value of rightOf(row)) yield { input: set(value), at, expected: { output: value } };
    for (const value of wrongOf(row)) yield { input: set(value), at, expected: "refused" };
    if (row.type === "object") yield* trialsOf(row.shape, within, at, sampleOf(row.shape), set);
    if (row.type === "array") yield* trialsOf(row.shape, within, [...at, 0], sampleOf(row.shape), (value) => set([value]));
    if (row.type === "union") {
      const { discriminator, variants } = row;
      for (const [value, inner] of Object.entries(variants))
        yield* trialsOf(inner, within, at, { [discriminator]: value, ...sampleOf(inner) }, set);
      for (const wrong of [{}, { [discriminator]: "unheard_of" }, { [discriminator]: null }])
        yield { input: set(wrong), at: [...at, discriminator], expected: "refused" };
    }
  }
}

function rightOf(row: Row): readonly Json[] {
  switch (row.type) {
    case "integer":
      return [row.min ?? row.ours?.min ?? -100_000, row.max ?? row.ours?.max ?? 100_000, 1];
    case "string": {
      if (row.ours?.takes) return row.ours.takes;
      const shortest = row.minLength ?? row.ours?.minLength ?? 0;
      // Characters, not UTF-16 units.
      return ["x".repeat(shortest), "ä ö", ...(row.maxLength === undefined ? [] : ["😀".repeat(row.maxLength)])];
    }
    case "boolean":
      return [true, false];
    case "uuid":
      return ["0d4ae1f6-6c4a-4f0e-9b66-0c3c6ad1f0a1", "00000000-0000-0000-0000-000000000001"];
    case "date-time":
      return ["2026-11-20T09:00:00.123Z", "2026-11-20T09:00:00Z", "2026-11-20T10:00:00+01:00"];
    case "record":
      return [{}, { port: 1, inside: { a: [1] } }];
    case "enum":
      return row.values;
    case "list":
      return [...row.values.map((value) => [value]), row.values];
    case "object":
      return [sampleOf(row.shape)];
    case "array":
      return [[], row.unique === undefined ? [sampleOf(row.shape), sampleOf(row.shape)] : [sampleOf(row.shape)]];
    case "union":
      return Object.entries(row.variants).map(([value, shape]) => ({ [row.discriminator]: value, ...sampleOf(shape) }));
  }
}

function wrongOf(row: Row): readonly Json[] {
  switch (row.type) {
    case "integer": {
      const [min, max] = [row.min ?? row.ours?.min, row.max ?? row.ours?.max];
      return [1.5, "1", true, [], {}, ...(min === undefined ? [] : [min - 1]), ...(max === undefined ? [] : [max + 1])];
    }
    case "string": {
      const shortest = row.minLength ?? row.ours?.minLength ?? 0;
      return [
        1,
        true,
        [],
        {},
        ...(row.ours?.refuses ?? []),
        ...(shortest > 0 ? ["x".repeat(shortest - 1)] : []),
        ...(row.maxLength === undefined ? [] : ["x".repeat(row.maxLength + 1)]),
      ];
    }
    case "boolean":
      return ["true", 1, 0, "", {}];
    case "uuid":
      return ["", "0d4ae1f6", "press-1", 1, {}];
    case "date-time":
      return ["", "yesterday", "2026-11-20", "2026-13-20T09:00:00Z", 1_700_000_000_000];
    case "enum":
      return ["", "unheard_of", 1, true, ...row.values.map((value) => `${value}x`)];
    case "record":
    case "object":
    case "union":
      return ["", 1, true, []];
    case "list":
      return ["", 1, {}, [], row.values[0] ?? "", [row.values[0] ?? "", row.values[0] ?? ""]];
    case "array":
      // The form on read has no rule on what is in the list: only creation refuses it.
      return ["", 1, {}];
  }
}

/** A valid object with every field. */
export function sampleOf(shape: readonly Row[]): JsonObject {
  return Object.fromEntries(shape.map((row) => [row.field, row.sample ?? rightOf(row)[0] ?? null]));
}

function get(value: Json | undefined, path: Path): Json | undefined {
  let at = value;
  for (const key of path) at = Array.isArray(at) ? at[Number(key)] : isObject(at) ? at[key] : undefined;
  return at;
}

function shorten(value: Json | undefined): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}
