import { dirname, join } from "node:path";
import { readBoundedFile } from "../lib/bounded-file.ts";
import { isAbsent } from "../lib/files.ts";
import { messageOf } from "../model/failure.ts";
import { type Policy, policySchema } from "../model/policy.ts";
import { keptText } from "./kept-text.ts";
import { DEFAULT_SETTINGS_FILE } from "./settings-file.ts";
import { readYaml, SettingsError, schemaProblems } from "./strict-yaml.ts";

const MAX_BYTES = 1024 * 1024;

export interface LoadedPolicy {
  readonly policy: Policy;
  /** Undefined: there is no file, and these are the defaults. */
  readonly file: string | undefined;
  /** What the file holds; empty: there is none. */
  readonly text: string;
}

/** A policy to start with. */
export interface StartPolicy extends LoadedPolicy {
  /** Why the file cannot be used, so that this is the last one that could be; undefined: it is what the file says. */
  readonly problem?: SettingsError;
}

/**
 * As `loadPolicy`; where the file cannot be used, the policy that was in force when a service last ran with it, from the state folder.
 * Throws SettingsError where there is none.
 */
export function startPolicy(file: string, stateDir: string): StartPolicy {
  try {
    return loadPolicy(file);
  } catch (error) {
    const text = error instanceof SettingsError ? keptText(stateDir, "policy", file) : undefined;
    if (text === undefined || !(error instanceof SettingsError)) throw error;
    return { ...policyOf(file, Buffer.from(text)), problem: error };
  }
}

/** `policy.yaml` in the folder of the settings file, or at the usual place. */
export const policyFile = (settingsFile: string | undefined): string => join(dirname(settingsFile ?? DEFAULT_SETTINGS_FILE), "policy.yaml");

/** Reads the policy, or takes the defaults where there is no file. Throws SettingsError: a policy that cannot be read opens nothing. */
export function loadPolicy(file: string): LoadedPolicy {
  let bytes: Buffer;
  try {
    bytes = readBoundedFile(file, MAX_BYTES);
  } catch (error) {
    if (isAbsent(error)) return { policy: { ...policySchema.parse({}), file }, file: undefined, text: "" };
    throw new SettingsError(file, [{ path: "", message: messageOf(error) }], { cause: error });
  }
  return policyOf(file, bytes);
}

/** Throws SettingsError. */
function policyOf(file: string, bytes: Uint8Array): LoadedPolicy {
  const yaml = readYaml(bytes);
  if ("problems" in yaml) throw new SettingsError(file, yaml.problems);
  const result = policySchema.safeParse(yaml.content);
  if (result.success) return { policy: { ...result.data, file }, file, text: Buffer.from(bytes).toString("utf8") };
  const problems = schemaProblems(result.error.issues, yaml, knownKeys, () => undefined);
  throw new SettingsError(file, problems, { cause: result.error });
}

const knownKeys = (path: readonly string[]): readonly string[] => (path.length === 0 ? Object.keys(policySchema.shape) : REACH_KEYS);
const REACH_KEYS = Object.keys(policySchema.shape.sources.unwrap().shape);
