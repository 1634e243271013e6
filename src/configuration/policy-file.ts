import { dirname, join } from "node:path";
import { readBoundedFile } from "../lib/bounded-file.ts";
import { isAbsent } from "../lib/files.ts";
import { messageOf } from "../model/failure.ts";
import { type Policy, policySchema } from "../model/policy.ts";
import { DEFAULT_SETTINGS_FILE } from "./settings-file.ts";
import { readYaml, SettingsError, schemaProblems } from "./strict-yaml.ts";

const MAX_BYTES = 1024 * 1024;

export interface LoadedPolicy {
  readonly policy: Policy;
  /** Undefined: there is no file, and these are the defaults. */
  readonly file: string | undefined;
}

/** `policy.yaml` in the folder of the settings file, or at the usual place. */
export const policyFile = (settingsFile: string | undefined): string => join(dirname(settingsFile ?? DEFAULT_SETTINGS_FILE), "policy.yaml");

/** Reads the policy, or takes the defaults where there is no file. Throws SettingsError: a policy that cannot be read opens nothing. */
export function loadPolicy(file: string): LoadedPolicy {
  let bytes: Buffer;
  try {
    bytes = readBoundedFile(file, MAX_BYTES);
  } catch (error) {
    if (isAbsent(error)) return { policy: policySchema.parse({}), file: undefined };
    throw new SettingsError(file, [{ path: "", message: messageOf(error) }], { cause: error });
  }
  const yaml = readYaml(bytes);
  if ("problems" in yaml) throw new SettingsError(file, yaml.problems);
  const result = policySchema.safeParse(yaml.content);
  if (result.success) return { policy: result.data, file };
  const problems = schemaProblems(result.error.issues, yaml, knownKeys, () => undefined);
  throw new SettingsError(file, problems, { cause: result.error });
}

const knownKeys = (path: readonly string[]): readonly string[] => (path.length === 0 ? Object.keys(policySchema.shape) : REACH_KEYS);
const REACH_KEYS = Object.keys(policySchema.shape.sources.unwrap().shape);
