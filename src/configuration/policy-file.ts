import { dirname, join } from "node:path";
import { parse } from "yaml";
import { readBoundedFile } from "../lib/bounded-file.ts";
import { isAbsent } from "../lib/files.ts";
import { messageOf } from "../model/failure.ts";
import { nearest } from "../model/nearest.ts";
import { type Policy, policySchema } from "../model/policy.ts";
import { DEFAULT_SETTINGS_FILE, SettingsError, type SettingsProblem } from "./settings-file.ts";

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
  let text: string;
  try {
    text = readBoundedFile(file, MAX_BYTES).toString("utf8");
  } catch (error) {
    if (isAbsent(error)) return { policy: policySchema.parse({}), file: undefined };
    throw failed(file, [{ path: "", message: messageOf(error) }], error);
  }
  let content: unknown;
  try {
    content = parse(text, { uniqueKeys: true, maxAliasCount: 100 }) ?? {};
  } catch (error) {
    throw failed(file, [{ path: "", message: `not valid YAML: ${messageOf(error).split("\n")[0]}` }], error);
  }
  const result = policySchema.safeParse(content);
  if (result.success) return { policy: result.data, file };
  throw failed(
    file,
    result.error.issues.flatMap((issue): SettingsProblem[] => {
      const path = issue.path.map(String);
      if (issue.code !== "unrecognized_keys") return [{ path: path.join("."), message: issue.message }];
      const known = path.length === 0 ? Object.keys(policySchema.shape) : ["networks", "ports"];
      return issue.keys.map((key) => ({
        path: [...path, key].join("."),
        message: `this key is not known; did you mean ${nearest(key, known) ?? known.join(", ")}?`,
      }));
    }),
    result.error,
  );
}

const failed = (file: string, problems: readonly SettingsProblem[], cause: unknown): SettingsError =>
  new SettingsError(file, problems, { cause });
