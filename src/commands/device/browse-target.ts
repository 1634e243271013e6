import path from "node:path";
import * as z from "zod";
import type { AnyDriver } from "../../../drivers/driver.ts";
import { DRIVERS } from "../../../drivers/index.ts";
import { type SourceSpec, specOf } from "../../agent/source-spec.ts";
import { apiAccess } from "../../api/access.ts";
import { secretsSchema } from "../../api/routes/extensions.ts";
import { boundOptions, readProfile } from "../../configuration/bindings.ts";
import {
  createCredentials,
  credentialsFolder,
  loadCredentials,
  missingPassword,
  withLocalSecrets,
} from "../../configuration/credentials.ts";
import { optionsOf } from "../../configuration/kept-options.ts";
import type { LoadedPolicy } from "../../configuration/policy-file.ts";
import { readSecretFiles } from "../../configuration/secret-files.ts";
import { judgeSecrets, readSecretPlaces, secretPlacesFile, withheldWords } from "../../configuration/secret-places.ts";
import { type SecretUsesInput, secretUses } from "../../configuration/secret-uses.ts";
import { DEFAULT_SETTINGS_FILE } from "../../configuration/settings-file.ts";
import { permitOf } from "../../lib/policy.ts";
import { messageOf } from "../../model/failure.ts";
import { nameInCommand } from "../../model/name-in-command.ts";
import type { Permit } from "../../model/policy.ts";
import type { DataSource } from "../../model/resources.ts";
import type { Settings } from "../../model/settings.ts";
import type { Variable } from "../../model/variable.ts";
import { type ApiConnection, ApiError, askWithKey, namedOf } from "../configuration/api-connection.ts";
import { sourcesOf } from "../configuration/source.ts";
import { passwordFrom } from "../files.ts";
import { type CommandIo, complain, UsageError } from "../io.ts";
import { askHidden } from "../prompt.ts";
import { driverOf, permitOfPerson } from "./device.ts";
import { parseSourceInput, type TypedSource, withPassword } from "./read-input.ts";

/** A device that can be connected to. */
export interface Target extends Omit<TypedSource, "passwordOf" | "notes"> {
  readonly driver: AnyDriver;
  readonly permit: Permit | undefined;
  /** The data source's name, where it is configured. */
  readonly name?: string;
}

export interface TargetOptions {
  readonly config?: string;
  readonly keyFile?: string;
  readonly passwordFile?: string;
}

/** A device that no configuration knows. Throws UsageError. */
export async function typedTarget(
  type: string,
  words: readonly string[],
  options: TargetOptions,
  policy: LoadedPolicy,
  io: CommandIo,
): Promise<Target> {
  const driver = await driverOf(type).catch((error: unknown) => {
    if (!(error instanceof UsageError)) throw error;
    throw new UsageError(`${error.message}; a data source that is configured is browsed by its name alone`);
  });
  const typed = parseSourceInput(driver, words);
  for (const note of typed.notes) complain(io, note);
  const source = await withPassword(typed, options.passwordFile, io);
  return { ...source, driver, permit: permitOfPerson(policy) };
}

/** A data source as it is configured, with its place in the settings and its secret of this machine. Throws UsageError and ApiError. */
export async function configuredTarget(
  api: ApiConnection,
  name: string,
  options: TargetOptions,
  { policy }: LoadedPolicy,
  io: CommandIo,
): Promise<Target> {
  const sources = await sourcesOf(api);
  if (Object.hasOwn(DRIVERS, name) && !sources.some((source) => source.name === name))
    throw new UsageError(`${name} is a type; give its connection with it: collector browse ${name} key=value…`);
  const record = namedOf(sources, name, "data source");
  const { driver, connect, timeouts } = await specOfRecord({ record, sources, variables: [], settings: api.settings, api }, options, io);
  return { driver, ...connect, timeouts, permit: permitOf(policy, "sources"), name: record.name };
}

/** A data source of a configuration, and what that has beside it. */
export interface RecordOfSource {
  readonly record: DataSource;
  readonly sources: readonly DataSource[];
  readonly variables: readonly Variable[];
  readonly settings: Settings;
  /** Undefined: it does not answer, and nothing more can be had from it. */
  readonly api: ApiConnection | undefined;
}

/** What the service would make of it, with its secrets. Throws UsageError. */
export async function specOfRecord(
  { record, sources, variables, settings, api }: RecordOfSource,
  options: TargetOptions,
  io: CommandIo,
): Promise<SourceSpec> {
  const driver = await driverOf(record.type);
  const local = boundOptions(record.type, keptHere(settings, record), settings, readProfile);
  const secrets = await secretsHere({ record, desired: { sources, sinks: [] }, local, settings, api }, options, io);
  const prepared = await specOf(
    { record, variables, warnings: [], local, secrets, missingSecret: undefined, readoutIntervalUnit: settings.readout_interval_unit },
    driver,
  );
  if ("problem" in prepared) throw new UsageError(prepared.problem.detail);
  return prepared.spec;
}

/** A data source or data sink whose secrets are wanted. */
interface SecretOwner {
  readonly record: { readonly uuid: string; readonly name: string | null; readonly details: unknown };
  readonly desired: SecretUsesInput["desired"];
  readonly local: Readonly<Record<string, unknown>>;
  readonly settings: Settings;
  readonly api: ApiConnection | undefined;
}

/** Secrets of an entry, as the service would have them; a person is asked for a password that is missing. Throws UsageError. */
export async function secretsHere(
  { record, desired, local, settings, api }: SecretOwner,
  options: TargetOptions,
  io: CommandIo,
): Promise<Readonly<Record<string, string>>> {
  const settingsFile = options.config ?? DEFAULT_SETTINGS_FILE;
  const { secrets: loaded } = loadCredentials(io.env["CREDENTIALS_DIRECTORY"], credentialsFolder(settingsFile));
  const credentials = createCredentials(loaded);
  const input: SecretUsesInput = { desired, credentials, secretFiles: readSecretFiles(settings, path.dirname(settingsFile)), settings };
  const isWithheld = options.passwordFile === undefined && isWithheldFrom(record.uuid, input, settings.state_dir, io);
  const kept = isWithheld ? {} : (withLocalSecrets({}, [...desired.sources, ...desired.sinks], credentials)[record.uuid] ?? {});
  return { ...kept, ...(await passwordOf(api, record, isWithheld ? {} : local, kept, { ...options, settingsFile }, io)) };
}

/** True: the password of this machine stays where it was set for; says so to the person. */
function isWithheldFrom(uuid: string, input: SecretUsesInput, stateDir: string, io: CommandIo): boolean {
  const uses = secretUses(input);
  if (!uses.some((use) => use.uuid === uuid)) return false;
  try {
    const held = judgeSecrets(uses, readSecretPlaces(secretPlacesFile(path.resolve(stateDir)))).withheld.get(uuid);
    if (held) complain(io, withheldWords(held));
    return held !== undefined;
  } catch (error) {
    complain(io, `the password of this machine is not used: ${messageOf(error)}`);
    return true;
  }
}

/**
 * What is given with the command wins, then what the settings name, what is kept on this machine, and what the API keeps; where none is to
 * be had the person is asked.
 */
async function passwordOf(
  api: ApiConnection | undefined,
  record: SecretOwner["record"],
  local: Readonly<Record<string, unknown>>,
  kept: Readonly<Record<string, string>>,
  options: TargetOptions & { readonly settingsFile: string },
  io: CommandIo,
): Promise<Readonly<Record<string, string>>> {
  const { passwordFile, settingsFile } = options;
  if (passwordFile !== undefined) return { password: passwordFrom(passwordFile) };
  const named = local["password_file"];
  if (typeof named === "string") {
    try {
      return { password: passwordFrom(path.resolve(path.dirname(settingsFile), named), "password_file") };
    } catch (error) {
      throw new UsageError(`${nameInCommand(record)}: ${messageOf(error)}`);
    }
  }
  if (missingPassword(record, { details: record.details, settings: local, secrets: kept }) === undefined) return {};
  const fromApi = api ? await secretsOf(api, record.uuid, options, io) : {};
  if (fromApi["password"] !== undefined) return fromApi;
  return {
    password: await askHidden(`password of ${record.name ?? record.uuid}`, "give it with --password-file FILE, or try with sudo", io),
  };
}

/** Secrets that the API keeps: it gives them to the collector's own key only, which the embedded one has in a file next to the admin's. */
async function secretsOf(
  api: ApiConnection,
  uuid: string,
  { keyFile }: TargetOptions,
  io: CommandIo,
): Promise<Readonly<Record<string, string>>> {
  const target = `/ext/v1/secrets?collector=${await api.collector()}`;
  const own = apiAccess(api.settings, path.resolve(api.settings.state_dir));
  try {
    const answer =
      own.embedded && keyFile === undefined
        ? await askWithKey(api.settings, own.keyFile, target, io.signal)
        : await api.send("GET", target);
    return secretsSchema.parse(answer).secrets[uuid] ?? {};
  } catch (error) {
    // Another key, another machine, no such extension: whoever has it will type it.
    if (error instanceof ApiError || error instanceof z.ZodError) return {};
    throw error;
  }
}

/** Throws UsageError. */
function keptHere(settings: Settings, record: DataSource): Readonly<Record<string, unknown>> {
  try {
    return optionsOf(settings.sources, settings.state_dir, "source", record);
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}
