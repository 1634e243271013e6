import * as z from "zod";
import { readBoundedFile } from "../lib/bounded-file.ts";
import { messageOf } from "../model/failure.ts";
import { type Profile, profileSchema } from "../model/profile.ts";
import { readYaml, SettingsError, type SettingsProblem, schemaProblems } from "./strict-yaml.ts";

/** Of one profile. */
const MAX_PROFILE_BYTES = 1024 * 1024;

/** Reads a profile. Throws SettingsError, which names each problem with its line. */
export function loadProfile(file: string): Profile {
  let bytes: Buffer;
  try {
    bytes = readBoundedFile(file, MAX_PROFILE_BYTES);
  } catch (error) {
    throw new SettingsError(file, [{ path: "", message: messageOf(error).replace(`${file} `, "the profile ") }], { cause: error });
  }
  const parsed = parseProfile(bytes);
  if ("problems" in parsed) throw new SettingsError(file, parsed.problems);
  return parsed.profile;
}

/** Pure. Never throws: whatever the bytes are, there is a profile or there are problems. */
export function parseProfile(bytes: Uint8Array): { readonly profile: Profile } | { readonly problems: readonly SettingsProblem[] } {
  const yaml = readYaml(bytes);
  if ("problems" in yaml) return yaml;
  const result = profileSchema.safeParse(yaml.content);
  if (result.success) return { profile: result.data };
  return { problems: schemaProblems(result.error.issues, yaml, knownKeys, describedAt) };
}

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly oneOf?: readonly JsonSchema[];
  readonly description?: string;
}

let shape: JsonSchema | undefined;

/** Of a union, all that its variants have. */
function schemasAt(path: readonly string[]): readonly JsonSchema[] {
  // Made for the first problem: it takes 10 ms.
  shape ??= z.toJSONSchema(profileSchema, { io: "input", unrepresentable: "any" }) as JsonSchema;
  let at: readonly JsonSchema[] = [shape];
  for (const key of path) at = at.flatMap((schema) => [schema, ...(schema.oneOf ?? [])]).flatMap((schema) => innerOf(schema, key));
  return at.flatMap((schema) => [schema, ...(schema.oneOf ?? [])]);
}

function innerOf({ properties, additionalProperties, items }: JsonSchema, key: string): readonly JsonSchema[] {
  if (properties && Object.hasOwn(properties, key)) return properties[key] ? [properties[key]] : [];
  if (items && /^\d+$/.test(key)) return [items];
  return typeof additionalProperties === "object" ? [additionalProperties] : [];
}

const knownKeys = (path: readonly string[]): string[] => [
  ...new Set(schemasAt(path).flatMap(({ properties }) => Object.keys(properties ?? {}))),
];
const describedAt = (path: readonly string[]): string | undefined =>
  path.length === 0 ? undefined : schemasAt(path).find(({ description }) => description !== undefined)?.description;
