import type { ApiAccess } from "../model/api-access.ts";
import type { DataSink } from "../model/resources.ts";
import type { Settings } from "../model/settings.ts";
import type { SinkSpec } from "../threads/delivery/messages.ts";

/** What the configuration says of data sinks. */
export interface SinkConfiguration {
  readonly sinks: readonly DataSink[];
  /** By data sink uuid, then by field name. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** A secret from a local file, or why it cannot be had. */
type ReadSecret = (file: string) => { readonly secret: string } | { readonly problem: string };

/**
 * What is to run: each data sink with its place in the settings file and its secrets (a local one wins). A platform sink is told where the
 * platform is by this machine (`api`), whatever else its details say. Pure but for `readSecret`.
 */
export function wantedSinks(
  { sinks, secrets }: SinkConfiguration,
  settings: Pick<Settings, "publish_interval_unit">,
  optionsOf: (sink: { readonly uuid: string; readonly name: string | null }) => Readonly<Record<string, unknown>>,
  readSecret: ReadSecret,
  api: ApiAccess,
): readonly SinkSpec[] {
  return sinks.map(({ uuid, name, type, details }): SinkSpec => {
    const local = optionsOf({ uuid, name });
    const password = typeof local["password_file"] === "string" ? readSecret(local["password_file"]) : undefined;
    return {
      uuid,
      name,
      type,
      details: type === "platform" ? { ...objectOf(details), api } : details,
      settings: local,
      secrets: { ...secrets[uuid], ...(password && "secret" in password && { password: password.secret }) },
      ...(password && "problem" in password && { missingSecret: password.problem }),
      publishIntervalUnit: settings.publish_interval_unit,
    };
  });
}

/** What is no object is the sink's own error, which names the fields that are missing. */
const objectOf = (details: unknown): object => (typeof details === "object" && details !== null ? details : {});
