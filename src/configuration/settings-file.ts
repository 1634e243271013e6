import { dirname, join, resolve } from "node:path";
import * as z from "zod";
import { readBoundedFile } from "../lib/bounded-file.ts";
import { errorCode, messageOf } from "../model/failure.ts";
import { type Settings, settingsSchema } from "../model/settings.ts";
import { keptText } from "./kept-text.ts";
import { readYaml, SettingsError, type SettingsProblem, schemaProblems } from "./strict-yaml.ts";

export const DEFAULT_SETTINGS_FILE = "/etc/collector/collector.yaml";
const MAX_BYTES = 1024 * 1024;

export interface LoadedSettings {
  readonly settings: Settings;
  /** Absolute; undefined: there is no file, and these are the defaults. */
  readonly file: string | undefined;
  /** What the file holds; empty: there is none. */
  readonly text: string;
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
    if (path === undefined && isAbsent(error)) return { settings: settingsSchema.parse({}), file: undefined, text: "" };
    throw new SettingsError(
      file,
      [{ path: "", message: messageOf(error).replace(`${file}: `, "").replace(`${file} `, "the settings file ") }],
      { cause: error },
    );
  }
  return settingsOf(file, bytes);
}

/** Throws SettingsError. */
function settingsOf(file: string, bytes: Uint8Array): LoadedSettings {
  const parsed = parseSettings(bytes);
  if ("problems" in parsed) throw new SettingsError(file, parsed.problems);
  return { settings: absolute(parsed.settings, dirname(file)), file, text: Buffer.from(bytes).toString("utf8") };
}

/** Settings to start with. */
export interface StartSettings extends LoadedSettings {
  /** Why the file cannot be used, so that these are the last that could be; undefined: they are what it says. */
  readonly problem?: SettingsError;
}

/**
 * As `loadSettings`; where the file cannot be used, or is gone, the settings that it held when a service last ran with it, from the state
 * folder. Throws SettingsError where there are none: at the first start a person is there to read it.
 */
export function startSettings(path: string | undefined, usualFile = DEFAULT_SETTINGS_FILE): StartSettings {
  const file = resolve(path ?? usualFile);
  try {
    const loaded = loadSettings(path, usualFile);
    if (loaded.file !== undefined) return loaded;
    const problem = new SettingsError(file, [{ path: "", message: "does not exist any more; write an empty file for the defaults" }]);
    return lastGood(file, loaded.settings.state_dir, problem) ?? loaded;
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    const kept = lastGood(file, stateDirIn(file), error);
    if (kept) return kept;
    throw error;
  }
}

/** Undefined: nothing is kept of this file in this state folder, or it is of no use to this version. */
function lastGood(file: string, stateDir: string, problem: SettingsError): StartSettings | undefined {
  const text = keptText(stateDir, "settings", file);
  if (!text) return undefined;
  try {
    const kept = settingsOf(file, Buffer.from(text));
    return kept.settings.state_dir === stateDir ? { ...kept, problem } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The state folder that a settings file names, whatever else is wrong with it, so that a service that runs can still be asked. Where it names
 * none, or cannot be read, the usual one.
 */
export function stateDirIn(path: string | undefined): string {
  const file = resolve(path ?? DEFAULT_SETTINGS_FILE);
  let text = "";
  try {
    text = readBoundedFile(file, MAX_BYTES).toString("utf8");
  } catch {}
  const [, quote, quoted, plain] = /^state_dir:[ \t]*(?:(["'])(.+?)\1|([^"'#\s][^#\n]*?))[ \t]*(?:#.*)?$/m.exec(text) ?? [];
  const named = quote === undefined ? plain : quoted;
  return named === undefined ? settingsSchema.parse({}).state_dir : resolve(dirname(file), named);
}

/** The place where the local variable files are: `variables_dir`, else `variables` in the folder of the settings file. */
export function variablesDir({ settings, file }: Pick<LoadedSettings, "settings" | "file">): string {
  return settings.variables_dir ?? join(dirname(file ?? DEFAULT_SETTINGS_FILE), "variables");
}

/** Pure. Never throws: whatever the bytes are, there are settings or problems. */
export function parseSettings(bytes: Uint8Array): { readonly settings: Settings } | { readonly problems: readonly SettingsProblem[] } {
  const yaml = readYaml(bytes);
  if ("problems" in yaml) return yaml;
  const result = settingsSchema.safeParse(withEarlierWords(yaml.content));
  if (result.success) return { settings: result.data };
  return { problems: schemaProblems(result.error.issues, yaml, knownKeys, describedAt) };
}

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly description?: string;
}

let shape: JsonSchema | undefined;

function schemaAt(path: readonly string[]): JsonSchema | undefined {
  // Made for the first problem: it takes 10 ms.
  shape ??= z.toJSONSchema(settingsSchema, { io: "input", unrepresentable: "any" }) as JsonSchema;
  let at: JsonSchema | undefined = shape;
  for (const key of path) {
    const properties: JsonSchema["properties"] = at?.properties;
    at = properties && Object.hasOwn(properties, key) ? properties[key] : undefined;
  }
  return at;
}

const knownKeys = (path: readonly string[]): string[] => Object.keys(schemaAt(path)?.properties ?? {});
const describedAt = (path: readonly string[]): string | undefined => (path.length === 0 ? undefined : schemaAt(path)?.description);

function absolute(settings: Settings, folder: string): Settings {
  const { api, bindings, embedded_api, page, sources, variables_dir } = settings;
  const { tls } = embedded_api;
  return {
    ...settings,
    state_dir: resolve(folder, settings.state_dir),
    bindings: withProfiles(bindings, folder),
    sources: withProfiles(sources, folder),
    page: {
      ...page,
      ...(page.token_file !== undefined && { token_file: resolve(folder, page.token_file) }),
      ...(page.tls && { tls: { cert_file: resolve(folder, page.tls.cert_file), key_file: resolve(folder, page.tls.key_file) } }),
    },
    ...(variables_dir !== undefined && { variables_dir: resolve(folder, variables_dir) }),
    ...(tls && {
      embedded_api: { ...embedded_api, tls: { cert_file: resolve(folder, tls.cert_file), key_file: resolve(folder, tls.key_file) } },
    }),
    ...(api && { api: absoluteApi(api, folder) }),
  };
}

function withProfiles<T extends Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>>(entries: T, folder: string): T {
  const resolved = Object.entries(entries).map(([key, entry]) => {
    const profile = entry?.["profile"];
    return [key, typeof profile === "string" ? { ...entry, profile: resolve(folder, profile) } : entry];
  });
  return Object.fromEntries(resolved) as T;
}

function absoluteApi(api: NonNullable<Settings["api"]>, folder: string): NonNullable<Settings["api"]> {
  const { key_file, tls, proxy_password_file } = api;
  const files = Object.entries(tls ?? {}).flatMap(([name, file]) => (file === undefined ? [] : [[name, resolve(folder, file)]]));
  return {
    ...api,
    key_file: resolve(folder, key_file),
    ...(tls && { tls: Object.fromEntries(files) }),
    ...(proxy_password_file !== undefined && { proxy_password_file: resolve(folder, proxy_password_file) }),
  };
}

/** `api.ca`, as files of earlier versions have it, is `api.tls.ca_file`. What names both is left for the schema to refuse. */
function withEarlierWords(content: unknown): unknown {
  const { api } = recordOf(content);
  const { ca, tls = {}, ...rest } = recordOf(api);
  if (ca === undefined || "ca_file" in recordOf(tls)) return content;
  return { ...recordOf(content), api: { ...rest, tls: { ...recordOf(tls), ca_file: ca } } };
}

const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};

const isAbsent = (error: unknown): boolean => error instanceof Error && ["ENOENT", "ENOTDIR"].includes(errorCode(error.cause));
