import type { SourceInput } from "../agent/source-spec.ts";
import type { Desired } from "../api/desired.ts";
import type { ApiAccess } from "../model/api-access.ts";
import type { Settings } from "../model/settings.ts";
import { createYielder } from "../model/timer.ts";
import type { SinkSpec } from "../threads/delivery/messages.ts";
import { type Credentials, missingPassword, overrideNote, withLocalSecrets } from "./credentials.ts";
import { desiredSinks } from "./desired-sinks.ts";
import { desiredSources } from "./desired-sources.ts";
import { localOptionsIn } from "./local-options.ts";
import { fileSecretOf, type SecretFiles } from "./secret-files.ts";
import type { VariableFiles } from "./variable-files.ts";

export interface DesiredStateInput {
  /** What the API configures. */
  readonly desired: Pick<Desired, "sources" | "sinks" | "variables" | "secrets" | "areSecretsAwaited">;
  /** The variables of local files, which win over the API's. */
  readonly files: VariableFiles;
  /** The secrets of this machine, which win over the API's. */
  readonly credentials: Pick<Credentials, "secretOf" | "userSecretsOf">;
  /** The password files that the settings name, which win over both. */
  readonly secretFiles: SecretFiles;
  readonly settings: Pick<Settings, "sources" | "sinks" | "readout_interval_unit" | "publish_interval_unit">;
  /** Where the platform is, for platform sinks. */
  readonly api: ApiAccess;
}

/** What runs on this machine. */
export interface DesiredState {
  readonly sources: readonly SourceInput[];
  readonly sinks: readonly SinkSpec[];
}

/** What is to run, of all that says so. A secret that is missing is named with the entry that needs it. Pure; goes by slices. */
export async function desiredState(input: DesiredStateInput): Promise<DesiredState> {
  const { desired, files, credentials, secretFiles, settings, api } = input;
  const secrets = withLocalSecrets(desired.secrets, [...desired.sources, ...desired.sinks], credentials);
  const localOf = localOptionsIn(settings.sinks);
  const sinks = desiredSinks({ sinks: desired.sinks, secrets }, settings, localOf, secretFiles, api).map((sink) => {
    const note = overrideNote(sink, desired.secrets[sink.uuid], sink.secrets, fileSecretOf(localOf(sink), secretFiles) !== undefined);
    const missing = sink.missingSecret === undefined ? missingPassword(sink, sink, desired.areSecretsAwaited) : undefined;
    return { ...sink, ...missing, ...(note !== undefined && { notes: [note] }) };
  });
  const yieldToEventLoop = createYielder();
  const sources: SourceInput[] = [];
  for (const source of await desiredSources({ ...desired, secrets }, files, settings, secretFiles)) {
    const { record, local } = source;
    const note = overrideNote(record, desired.secrets[record.uuid], source.secrets, fileSecretOf(local, secretFiles) !== undefined);
    const needed = { details: record.details, settings: local, secrets: source.secrets };
    const missing = source.missingSecret === undefined ? missingPassword(record, needed, desired.areSecretsAwaited) : undefined;
    sources.push({ ...source, ...missing, ...(note !== undefined && { warnings: [...source.warnings, note] }) });
    await yieldToEventLoop();
  }
  return { sources, sinks };
}
