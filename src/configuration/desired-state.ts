import type { SourceInput } from "../agent/source-spec.ts";
import type { Desired } from "../api/desired.ts";
import { createYielder } from "../base/timer.ts";
import type { SinkSpec } from "../delivery/messages.ts";
import type { ApiAccess } from "../model/api-access.ts";
import type { Settings } from "../model/settings.ts";
import { type Warning, warning } from "../model/warning.ts";
import { boundOptions, type ProfileFiles } from "./bindings.ts";
import { type Credentials, type Entry, missingPassword, overrideNote, withLocalSecrets } from "./credentials.ts";
import { desiredSinks } from "./desired-sinks.ts";
import { desiredSources } from "./desired-sources.ts";
import { localOptionsIn } from "./local-options.ts";
import { fileSecretOf, type SecretFiles } from "./secret-files.ts";
import { type WithheldSecret, withheldWords } from "./secret-places.ts";
import type { VariableFiles } from "./variable-files.ts";

export interface DesiredStateInput {
  /** What the API configures. */
  readonly desired: Pick<Desired, "sources" | "sinks" | "variables" | "secrets" | "areSecretsAwaited">;
  /** The variables of local files, which win over the API's. */
  readonly files: VariableFiles;
  /** The secrets of this machine, which win over the API's. */
  readonly credentials: Pick<Credentials, "secretOf" | "userSecretsOf">;
  /** By uuid: entries that get no password of this machine where they are now. */
  readonly withheld: ReadonlyMap<string, WithheldSecret>;
  /** The password files that the settings name, which win over both. */
  readonly secretFiles: SecretFiles;
  /** The profiles that the settings name. */
  readonly profileFiles: ProfileFiles;
  readonly settings: Pick<Settings, "bindings" | "sources" | "sinks" | "readout_interval_unit" | "publish_interval_unit">;
  /** The place where the platform is, for platform sinks. */
  readonly api: ApiAccess;
  /** Why it is not known which options of this machine data sources or data sinks have: none of them runs then. */
  readonly optionsProblems?: { readonly sources: string | undefined; readonly sinks: string | undefined };
}

/** What runs on this machine. */
export interface DesiredState {
  readonly sources: readonly SourceInput[];
  readonly sinks: readonly SinkSpec[];
}

/** What is to run, of all that says so. A secret that is missing is named with the entry that needs it. Pure; goes by slices. */
export async function desiredState(input: DesiredStateInput): Promise<DesiredState> {
  const { desired, files, withheld, secretFiles, profileFiles, settings, api } = input;
  const credentials: typeof input.credentials = {
    ...input.credentials,
    secretOf: (entry, all) => (withheld.has(entry.uuid) ? undefined : input.credentials.secretOf(entry, all)),
  };
  const secrets = withLocalSecrets(desired.secrets, [...desired.sources, ...desired.sinks], credentials);
  /** The secrets of an entry, and what a person is told of them. */
  const secretsFor = (
    entry: NeededSecrets,
  ): Pick<SinkSpec, "secrets" | "missingSecret" | "awaitedSecret" | "withheldSecret"> & { readonly note?: Warning } => {
    const { uuid, local, details, missingSecret } = entry;
    const held = withheld.get(uuid);
    const own = held ? (secrets[uuid] ?? {}) : entry.secrets;
    if (held && own["password"] === undefined) return { secrets: own, withheldSecret: withheldWords(held) };
    const isFromFile = fileSecretOf(local, secretFiles) !== undefined;
    // The API's own password goes where the API says.
    const overridden = overrideNote(entry, desired.secrets[uuid], own, isFromFile);
    const note = held
      ? warning("secret_withheld", withheldWords(held))
      : overridden === undefined
        ? undefined
        : warning("secret_overridden", overridden);
    const missing =
      missingSecret === undefined
        ? missingPassword(entry, { details, settings: local, secrets: own }, desired.areSecretsAwaited)
        : undefined;
    return { secrets: own, ...missing, ...(note !== undefined && { note }) };
  };
  const problemOf = (kind: "sources" | "sinks"): { readonly optionsProblem?: string } => {
    const optionsProblem = input.optionsProblems?.[kind];
    return optionsProblem === undefined ? {} : { optionsProblem };
  };
  const localOf = localOptionsIn(settings.sinks);
  const sinks = desiredSinks({ sinks: desired.sinks, secrets }, settings, localOf, secretFiles, api).map((sink) => {
    const { note, ...own } = secretsFor({ ...sink, local: localOf(sink) });
    return {
      ...sink,
      ...own,
      ...problemOf("sinks"),
      ...(note !== undefined && { notes: [...(sink.notes ?? []), note] }),
    };
  });
  const yieldToEventLoop = createYielder();
  const sources: SourceInput[] = [];
  for (const source of await desiredSources({ ...desired, secrets }, files, settings, secretFiles)) {
    const { uuid, name, details } = source.record;
    const { note, ...own } = secretsFor({ ...source, uuid, name, details });
    const local = boundOptions(source.record.type, source.local, settings, (file) => profileFiles.get(file));
    sources.push({
      ...source,
      ...own,
      local,
      ...problemOf("sources"),
      ...(note !== undefined && { warnings: [...source.warnings, note] }),
    });
    await yieldToEventLoop();
  }
  return { sources, sinks };
}

/** What is looked at to find the secrets of an entry. */
interface NeededSecrets extends Entry {
  readonly local: Readonly<Record<string, unknown>>;
  readonly details: unknown;
  /** Those that it has where none is withheld. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly missingSecret?: string | undefined;
}
