import * as z from "zod";
import { nearest } from "../../base/nearest.ts";
import { isSecretName } from "../../lib/loggable.ts";
import { REQUIRED } from "../../model/words/issue-words.ts";
import { UsageError } from "../io.ts";

/** As far as key=value words are fitted to a schema. */
export interface JsonSchema {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
}

export const toJsonSchema = (schema: z.ZodType): JsonSchema =>
  z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as JsonSchema;

/** Every key of an object that a word may set, those of an object inside joined by dots, in the order of the schema. */
export function keysOf(schema: JsonSchema, prefix = ""): ReadonlyMap<string, JsonSchema> {
  const keys = new Map<string, JsonSchema>();
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    const variants = inner.anyOf ?? inner.oneOf ?? [inner];
    if (!variants.some((variant) => variant.properties)) keys.set(prefix + name, inner);
    else
      for (const variant of variants)
        for (const [key, found] of keysOf(variant, `${prefix}${name}.`)) if (!keys.has(key)) keys.set(key, found);
  }
  return keys;
}

/** The text as its schema wants it: numbers and booleans are what they look like, a list is split at its commas, everything else is text. */
export function coerce(text: string, schema: JsonSchema): unknown {
  const types = (schema.anyOf ?? schema.oneOf ?? [schema]).map(({ type }) => type);
  if (types.includes("boolean") && /^(true|false)$/.test(text)) return text === "true";
  if ((types.includes("integer") || types.includes("number")) && /^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (types.every((type) => type === "boolean")) return new UsageError(`${JSON.stringify(text)} must be true or false`);
  if (types.every((type) => type === "integer" || type === "number")) return new UsageError(`${JSON.stringify(text)} must be a number`);
  if (types.every((type) => type === "array") && (schema.items?.enum || schema.items?.type === "string"))
    return text === "" ? [] : text.split(",").map((item) => item.trim());
  return text;
}

/** Sets a value at a key with dots. */
export function put(target: Record<string, unknown>, key: string, value: unknown): void {
  const [name = "", ...rest] = key.split(".");
  if (rest.length === 0) {
    target[name] = value;
    return;
  }
  const inner = target[name];
  const next: Record<string, unknown> = typeof inner === "object" && inner !== null ? (inner as Record<string, unknown>) : {};
  target[name] = next;
  put(next, rest.join("."), value);
}

/** One word of a command line: a key with its value, a word that no known key begins, or what is wrong with it. */
export type SortedWord = { readonly key: string; readonly value: unknown } | { readonly rest: string } | { readonly mistake: string };

/**
 * Sorts `key=value…`; the key of an inner object may omit the part before its dot. `passwordsBy` is how a password is given instead.
 * Pure.
 */
export function sortWords(words: readonly string[], keys: ReadonlyMap<string, JsonSchema>, passwordsBy: string): readonly SortedWord[] {
  const seen = new Set<string>();
  return words.map((word): SortedWord => {
    const [, written, text = ""] = /^([A-Za-z_][\w.]*)=(.*)$/s.exec(word) ?? [];
    const key = written === undefined ? undefined : fullKey(written, keys);
    const schema = key === undefined ? undefined : keys.get(key);
    if (key === undefined || !schema) return { rest: word };
    if (isSecret(key)) return { mistake: notOnCommandLine(key, passwordsBy) };
    if (seen.has(key)) return { mistake: `${key}: is given twice` };
    seen.add(key);
    const value = coerce(text, schema);
    return value instanceof UsageError ? { mistake: `${key}: ${value.message}` } : { key, value };
  });
}

/**
 * What `key=value…` sets, as an object with its inner objects. Pure. Throws UsageError, which names every mistake and the keys there are: a
 * word that is not a pair, an unknown key, a value of the wrong kind, a password.
 */
export function parseFields(words: readonly string[], keys: ReadonlyMap<string, JsonSchema>, passwordsBy: string): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  const mistakes: string[] = [];
  for (const word of sortWords(words, keys, passwordsBy)) {
    if ("mistake" in word) mistakes.push(word.mistake);
    else if ("rest" in word) mistakes.push(noField(word.rest, keys, passwordsBy));
    else put(fields, word.key, word.value);
  }
  if (mistakes.length > 0) throw new UsageError([...mistakes, knownWords(keys)].join("\n"));
  return fields;
}

/** What is wrong with a word that no known key begins. Pure. */
export function noField(word: string, keys: ReadonlyMap<string, unknown>, passwordsBy: string): string {
  const key = keyIn(word);
  if (key === undefined) return `${JSON.stringify(word)}: must be key=value`;
  if (isSecret(key)) return notOnCommandLine(key, passwordsBy);
  const meant = nearest(key, publicKeys(keys));
  return `${key}: there is no such key${meant === undefined ? "" : `; did you mean ${meant}?`}`;
}

const notOnCommandLine = (key: string, passwordsBy: string): string =>
  `${key}: a password does not belong on a command line, where others see it; ${passwordsBy}`;

/** The part of a word before its `=`, where it could be a key. */
export const keyIn = (word: string): string | undefined => /^([A-Za-z_][\w.]*)=/.exec(word)?.[1];

/** The keys that a command line may hold. */
export const publicKeys = (keys: ReadonlyMap<string, unknown>): readonly string[] => [...keys.keys()].filter((key) => !isSecret(key));

export const knownWords = (keys: ReadonlyMap<string, unknown>): string => `known keys: ${publicKeys(keys).join(", ")}`;

/** The key that is meant: itself, or the only one that it is the end of after a dot, such as security_mode of security_settings.security_mode. */
export function fullKey(key: string, keys: ReadonlyMap<string, unknown>): string {
  if (keys.has(key)) return key;
  const [only, ...others] = [...keys.keys()].filter((known) => known.endsWith(`.${key}`));
  return only !== undefined && others.length === 0 ? only : key;
}

const isSecret = (key: string): boolean => key.split(".").some(isSecretName);

/** The value in the form that the schema makes of it. Throws UsageError with every problem, in the words of `wordsOf`. */
export function checked<T extends z.ZodType>(
  schema: T,
  value: unknown,
  keys: ReadonlyMap<string, JsonSchema>,
  wordsOf: typeof issueWords = issueWords,
): z.output<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new UsageError([...wordsOf(result.error), knownWords(keys)].join("\n"));
}

/** One sentence for each issue, which begins with its field. */
export const issueWords = ({ issues }: Pick<z.ZodError, "issues">): string[] =>
  issues.map(({ path, message }) => {
    return `${path.join(".")}: ${message}`;
  });

/** True: nothing is given where something is required. */
export const isMissing = ({ code, message }: Pick<z.core.$ZodIssue, "code" | "message">): boolean =>
  code === "invalid_type" && message === REQUIRED;
