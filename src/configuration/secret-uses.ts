import * as z from "zod";
import type { Desired } from "../api/desired.ts";
import { networkSchema } from "../model/policy.ts";
import { secretPlace } from "../model/secret-place.ts";
import type { Settings } from "../model/settings.ts";
import type { Credentials, Entry } from "./credentials.ts";
import { localOptionsIn } from "./local-options.ts";
import { fileSecretOf, type SecretFiles } from "./secret-files.ts";
import type { SecretUse } from "./secret-places.ts";

export interface SecretUsesInput {
  readonly desired: Pick<Desired, "sources" | "sinks">;
  readonly credentials: Pick<Credentials, "keyOf">;
  readonly secretFiles: SecretFiles;
  readonly settings: Pick<Settings, "sources" | "sinks">;
}

/** Bad ones open nothing; the entry's own settings say what is wrong with them. */
const networksSchema = z.array(networkSchema).catch([]);

/** The place where the passwords of this machine would go, as the configuration has it. Pure but for the look-ups. */
export function secretUses({ desired, credentials, secretFiles, settings }: SecretUsesInput): readonly SecretUse[] {
  const all = [...desired.sources, ...desired.sinks];
  const usesOf = (section: "sources" | "sinks"): readonly SecretUse[] => {
    const optionsOf = localOptionsIn(settings[section]);
    const keys = new Map(Object.entries(settings[section]).map(([key, options]) => [options, key]));
    const records: readonly (Entry & { readonly details: unknown })[] = desired[section];
    return records.flatMap(({ uuid, name, details }) => {
      const options = optionsOf({ uuid, name });
      const file = fileSecretOf(options, secretFiles);
      const key = credentials.keyOf({ uuid, name }, all);
      const fromFile = file && "secret" in file ? `${section}.${keys.get(options)}: ${String(options["password_file"])}` : undefined;
      const secret = fromFile ?? (key === undefined ? undefined : secretName(key));
      const place = secret === undefined ? undefined : secretPlace(details);
      if (secret === undefined || !place) return [];
      return [{ uuid, name, secret, place, networks: networksSchema.parse(options["password_networks"] ?? []) }];
    });
  };
  return [...usesOf("sources"), ...usesOf("sinks")];
}

/** The name under which the place of a stored secret is kept. */
export const secretName = (key: string): string => `secret: ${key}`;
