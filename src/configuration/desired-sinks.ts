import type { SinkSpec } from "../delivery/messages.ts";
import type { ApiAccess } from "../model/api-access.ts";
import { userLeftOutWords } from "../model/endpoint-url.ts";
import type { DataSink } from "../model/resources.ts";
import type { Settings } from "../model/settings.ts";
import { warning } from "../model/warning.ts";
import { withDetailsType } from "./details-type.ts";
import { fileSecretOf, type SecretFiles } from "./secret-files.ts";

/** What the configuration says of data sinks. */
export interface SinkConfiguration {
  readonly sinks: readonly DataSink[];
  /** By data sink uuid, then by field name. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/**
 * What is to run: each data sink with its place in the settings file and its secrets (a local one wins). Where the platform of a
 * platform sink is, this machine says (`api`), whatever else its details say. Pure.
 */
export function desiredSinks(
  { sinks, secrets }: SinkConfiguration,
  settings: Pick<Settings, "publish_interval_unit">,
  optionsOf: (sink: { readonly uuid: string; readonly name: string | null }) => Readonly<Record<string, unknown>>,
  secretFiles: SecretFiles,
  api: ApiAccess,
): readonly SinkSpec[] {
  return sinks.map((listed): SinkSpec => {
    const { record, warnings } = withDetailsType(listed);
    const { uuid, name, type, details, collector, user_left_out_of: leftOut } = record;
    const notes = leftOut ? [...warnings, warning("user_left_out", userLeftOutWords(leftOut))] : warnings;
    const local = optionsOf({ uuid, name });
    const password = fileSecretOf(local, secretFiles);
    return {
      uuid,
      name,
      type,
      details: type === "platform" ? { ...objectOf(details), api } : details,
      settings: local,
      secrets: { ...secrets[uuid], ...(password && "secret" in password && { password: password.secret }) },
      ...(password && "problem" in password && { missingSecret: password.problem }),
      publishIntervalUnit: settings.publish_interval_unit,
      ...(collector !== null && { collector }),
      ...(notes.length > 0 && { notes }),
    };
  });
}

/** Anything but an object is the sink's own error, which names the fields that are missing. */
const objectOf = (details: unknown): object => (typeof details === "object" && details !== null ? details : {});
