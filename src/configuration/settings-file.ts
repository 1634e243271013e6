import { dirname, join, resolve } from "node:path";
import { type Document, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import * as z from "zod";
import { readBoundedFile } from "../lib/bounded-file.ts";
import { errorCode, messageOf } from "../model/failure.ts";
import { nearest } from "../model/nearest.ts";
import { type Settings, settingsSchema } from "../model/settings.ts";

export const DEFAULT_SETTINGS_FILE = "/etc/collector/collector.yaml";
const MAX_BYTES = 1024 * 1024;
const MAX_PROBLEMS = 50;

export interface SettingsProblem {
  /** From 1; absent where the whole file is meant. */
  readonly line?: number;
  /** Keys joined by dots; empty for the whole file. */
  readonly path: string;
  /** What is wrong and what would be right. */
  readonly message: string;
}

/** The settings cannot be used. The message names the file and each problem with its line and key, one a line. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
  readonly file: string;
  readonly problems: readonly SettingsProblem[];
  constructor(file: string, problems: readonly SettingsProblem[], options?: ErrorOptions) {
    const lines = problems.map(
      ({ line, path, message }) => `${file}${line === undefined ? "" : `:${line}`}: ${path === "" ? "" : `${path}: `}${message}`,
    );
    super(lines.join("\n"), options);
    this.file = file;
    this.problems = problems;
  }
}

export interface LoadedSettings {
  readonly settings: Settings;
  /** Absolute; undefined: there is no file, and these are the defaults. */
  readonly file: string | undefined;
}

/**
 * Reads the settings file at `path` (`--config`), else the one at its usual place, else takes the defaults.
 * Relative paths among the known keys count from the file's folder. Throws SettingsError.
 */
export function loadSettings(path: string | undefined, usualFile = DEFAULT_SETTINGS_FILE): LoadedSettings {
  const file = resolve(path ?? usualFile);
  let bytes: Buffer;
  try {
    bytes = readBoundedFile(file, MAX_BYTES);
  } catch (error) {
    if (path === undefined && isAbsent(error)) return { settings: settingsSchema.parse({}), file: undefined };
    throw new SettingsError(
      file,
      [{ path: "", message: messageOf(error).replace(`${file}: `, "").replace(`${file} `, "the settings file ") }],
      { cause: error },
    );
  }
  const parsed = parseSettings(bytes);
  if ("problems" in parsed) throw new SettingsError(file, parsed.problems);
  return { settings: absolute(parsed.settings, dirname(file)), file };
}

/** Where the local variable files are: `variables_dir`, else `variables` in the folder of the settings file. */
export function variablesDir({ settings, file }: LoadedSettings): string {
  return settings.variables_dir ?? join(dirname(file ?? DEFAULT_SETTINGS_FILE), "variables");
}

/** Pure. Never throws: whatever the bytes are, there are settings or problems. */
export function parseSettings(bytes: Uint8Array): { readonly settings: Settings } | { readonly problems: readonly SettingsProblem[] } {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return { problems: [{ line: lineOfBadByte(bytes), path: "", message: "is not UTF-8; save the file as UTF-8" }] };
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, strict: true, uniqueKeys: true, stringKeys: true });
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0)
    return {
      problems: faults
        .slice(0, MAX_PROBLEMS)
        .map(({ pos, code, message }) => ({ line: lines.linePos(pos[0]).line, path: "", message: yamlSentence(code, message) })),
    };
  let content: unknown;
  try {
    content = document.toJS({ maxAliasCount: 100 }) ?? {};
  } catch (error) {
    return { problems: [{ path: "", message: `${messageOf(error)}; write the values out instead of using aliases` }] };
  }
  const result = settingsSchema.safeParse(content);
  if (result.success) return { settings: result.data };
  const lineOf: LineOf = (path) => {
    const at = startOf(document, path);
    return at === undefined ? {} : { line: lines.linePos(at).line };
  };
  return { problems: result.error.issues.flatMap((issue) => problemsOf(issue, lineOf)).slice(0, MAX_PROBLEMS) };
}

/** Where the innermost key of `path` that the document has begins, or its list item; the content where it has none. */
function startOf(document: Document, path: readonly PropertyKey[]): number | undefined {
  let node: unknown = document.contents;
  let start = isNode(node) ? node.range?.[0] : undefined;
  for (const key of path) {
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(key));
      if (!pair) return start;
      start = isScalar(pair.key) ? pair.key.range?.[0] : start;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(key)];
      start = (isNode(node) ? node.range?.[0] : undefined) ?? start;
    } else return start;
  }
  return start;
}

type LineOf = (path: readonly PropertyKey[]) => { readonly line?: number };

function problemsOf(issue: z.core.$ZodIssue, lineOf: LineOf): SettingsProblem[] {
  const where = issue.path.map(String);
  if (issue.code === "unrecognized_keys") {
    const known = knownKeys(where);
    return issue.keys.map((key) => {
      const meant = nearest(key, known);
      const right = meant === undefined ? `known here: ${known.join(", ")}` : `did you mean ${meant}?`;
      return { ...lineOf([...where, key]), path: [...where, key].join("."), message: `this key is not known; ${right}` };
    });
  }
  const described = describedAt(where);
  const missing = issue.code === "invalid_type" && issue.input === undefined && /received undefined/.test(issue.message);
  const message = missing ? "is required" : sentence(issue.message);
  return [{ ...lineOf(issue.path), path: where.join("."), message: described ? `${message} (${described})` : message }];
}

const sentence = (message: string): string => message.replace(/^Invalid input: /, "").replace(/^Invalid option: /, "");

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly description?: string;
}

const shape = z.toJSONSchema(settingsSchema, { io: "input", unrepresentable: "any" }) as JsonSchema;

function schemaAt(path: readonly string[]): JsonSchema | undefined {
  let at: JsonSchema | undefined = shape;
  for (const key of path) {
    const properties: JsonSchema["properties"] = at?.properties;
    at = properties && Object.hasOwn(properties, key) ? properties[key] : undefined;
  }
  return at;
}

const knownKeys = (path: readonly string[]): string[] => Object.keys(schemaAt(path)?.properties ?? {});
const describedAt = (path: readonly string[]): string | undefined => (path.length === 0 ? undefined : schemaAt(path)?.description);

function yamlSentence(code: string, message: string): string {
  if (code === "TAB_AS_INDENT") return "a tab indents this line; YAML takes spaces only";
  if (code === "DUPLICATE_KEY") return "this key occurs twice in the same place; keep one of them";
  return `not valid YAML: ${message.split("\n")[0]?.replace(/ at line \d+, column \d+:?$/, "") ?? ""}`;
}

/** The line of the first byte that is not UTF-8. */
function lineOfBadByte(bytes: Uint8Array): number {
  let line = 1;
  let start = 0;
  for (let i = 0; i <= bytes.length; i++) {
    if (i < bytes.length && bytes[i] !== 0x0a) continue;
    if (new TextDecoder().decode(bytes.subarray(start, i)).includes("\ufffd")) return line;
    start = i + 1;
    line++;
  }
  return 1;
}

function absolute(settings: Settings, folder: string): Settings {
  const { api, embedded_api, variables_dir } = settings;
  const { tls } = embedded_api;
  return {
    ...settings,
    state_dir: resolve(folder, settings.state_dir),
    ...(variables_dir !== undefined && { variables_dir: resolve(folder, variables_dir) }),
    ...(tls && {
      embedded_api: { ...embedded_api, tls: { cert_file: resolve(folder, tls.cert_file), key_file: resolve(folder, tls.key_file) } },
    }),
    ...(api && { api: { ...api, key_file: resolve(folder, api.key_file), ...(api.ca !== undefined && { ca: resolve(folder, api.ca) }) } }),
  };
}

const isAbsent = (error: unknown): boolean => error instanceof Error && ["ENOENT", "ENOTDIR"].includes(errorCode(error.cause));
