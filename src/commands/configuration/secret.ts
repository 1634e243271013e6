import { spawn } from "node:child_process";
import { accessSync, constants, existsSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import {
  canonicalKey,
  credentialFileName,
  credentialKey,
  credentialsFolder,
  encryptedFolder,
  firstLine,
  MAX_SECRET_BYTES,
  ownerOfKey,
} from "../../configuration/credentials.ts";
import { SecretPlacesFile, secretPlacesFile, withoutSecret, withPlace } from "../../configuration/secret-places.ts";
import { secretName } from "../../configuration/secret-uses.ts";
import { DEFAULT_SETTINGS_FILE } from "../../configuration/settings-file.ts";
import { isAbsent, makePrivateFolder, replaceFile, sweep } from "../../lib/files.ts";
import { silentLog } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import { type SecretPlace, secretPlace } from "../../model/secret-place.ts";
import type { ServiceStatus } from "../../model/service-status.ts";
import { asOwnerOf } from "../../os/owner.ts";
import { localSocketPath } from "../../service/local-socket.ts";
import { answer, answerList } from "../answer.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { askHidden } from "../prompt.ts";
import { askService, ServiceError, tellService } from "../service/local-client.ts";
import { settingsOrUsage } from "../service/run.ts";
import { readStdin } from "../stdin.ts";

export interface SecretOptions {
  readonly config?: string;
  readonly stdin?: boolean;
  readonly json?: boolean;
}

const CREDS_TIMEOUT_MS = 20_000;

/** `collector secret set`: keeps a secret for the next start and hands it to the running service. Throws UsageError. */
export async function secretSet(key: string, options: SecretOptions, io: CommandIo): Promise<ExitCode> {
  const place = placeOf(options);
  const file = fileNameOf(key);
  const known = await askEntries(place.socket, io);
  checkKey(key, known);
  const secret = options.stdin ? await readSecret(io) : await askHidden(`secret of ${key}`, "give it on stdin with --stdin", io, options);
  let kept: Kept;
  try {
    kept = await keep(place, file, secret);
  } catch (error) {
    complain(io, `the secret cannot be kept: ${messageOf(error)}.\nSecrets belong to root: type sudo collector secret set …`);
    return EXIT.ownFailure;
  }
  const handOver = await tell(place, { key, secret }, known, io);
  answer(
    io,
    options,
    { action: "kept", ...entryObject(key, known), ...kept, service: handOver.service, used_at: handOver.usedAt ?? [] },
    `Kept in ${kept.file}.\n${handOver.text}`,
  );
  return EXIT.good;
}

/** `collector secret rm`: forgets a secret, here and in the running service. Throws UsageError. */
export async function secretRemove(key: string, options: SecretOptions, io: CommandIo): Promise<ExitCode> {
  const place = placeOf(options);
  const file = fileNameOf(key);
  const before = keptKeys(place).some((kept) => kept.key === key);
  try {
    for (const folder of [place.plain, place.encrypted]) rmSync(path.join(folder, file), { force: true });
  } catch (error) {
    complain(io, `the secret of ${key} cannot be removed: ${messageOf(error)}.\nSecrets belong to root: type sudo collector secret rm …`);
    return EXIT.ownFailure;
  }
  const known = await askEntries(place.socket, io);
  const handOver = await tell(place, { key, secret: null }, known, io);
  const text = known ? handOver.text : "";
  answer(io, options, { action: before ? "removed" : "not_kept", ...entryObject(key, known), service: handOver.service }, text);
  if (before) return EXIT.good;
  complain(io, `there is no secret for ${key}; collector secret list names the kept ones`);
  return EXIT.usage;
}

/** Throws UsageError where this user may not keep secrets, before anything else is done that needs one. */
export function requireSecretsWritable(options: SecretOptions, command: string): void {
  const { plain, encrypted } = placeOf(options);
  try {
    for (const folder of [plain, encrypted]) {
      if (folder === plain) makePrivateFolder(folder);
      if (existsSync(folder)) accessSync(folder, constants.W_OK);
    }
  } catch (error) {
    throw new UsageError(`the password cannot be kept: ${messageOf(error)}.\nSecrets belong to root: type sudo collector ${command} …`);
  }
}

/**
 * Keeps the password of a data sink that a verb has just made or changed, for the place that the configuration has for it now, and hands it to
 * the running service. Returns what happened to it, for people. Throws Error where it cannot be kept.
 */
export async function keepSinkPassword(
  sink: KnownSink,
  secret: string,
  options: Pick<SecretOptions, "config">,
  io: CommandIo,
): Promise<string> {
  const place = placeOf(options);
  const { uuid, name, details } = sink;
  const kept = await keep(place, fileNameOf(uuid), secret);
  const known = await askEntries(place.socket, io);
  const at = secretPlace(details);
  const entry: KnownEntry = { uuid, name, words: `data sink ${name ?? uuid}` };
  const { text } = await tell(place, { key: uuid, secret, ...(at && { given: { uuid, place: at } }) }, known && [entry], io);
  return `Password kept in ${kept.file}.\n${text}`;
}

/** `collector secret list`: whose secrets are kept, never what they are. Throws UsageError. */
export async function secretList(options: SecretOptions, io: CommandIo): Promise<ExitCode> {
  const place = placeOf(options);
  const known = await askEntries(place.socket, io);
  const entries = keptKeys(place).map(({ key, encrypted }) => ({
    entry: key,
    encrypted,
    belongs_to: known?.find((entry) => fits(key, entry))?.words ?? null,
  }));
  answerList(io, options, entries, "No secrets are kept here.\n", {
    ENTRY: ({ entry }) => entry,
    ENCRYPTED: ({ encrypted }) => (encrypted ? "for this machine" : "no"),
    "BELONGS TO": ({ belongs_to }) => belongs_to ?? "-",
  });
  return EXIT.good;
}

interface KnownSink {
  readonly uuid: string;
  readonly name: string | null;
  /** As the API has them. */
  readonly details: unknown;
}

/** The place where this machine keeps secrets. */
export interface Place {
  readonly stateDir: string;
  readonly plain: string;
  readonly encrypted: string;
  readonly socket: string;
  /** Only the unit decrypts, and it does so in its usual place. */
  readonly decryptedAtStart: boolean;
}

/** Throws UsageError. */
export function placeOf({ config }: SecretOptions): Place {
  const { settings, file } = settingsOrUsage(config);
  const plain = credentialsFolder(file);
  return {
    stateDir: settings.state_dir,
    plain,
    encrypted: encryptedFolder(file),
    socket: localSocketPath(settings.state_dir),
    decryptedAtStart: plain === credentialsFolder(DEFAULT_SETTINGS_FILE),
  };
}

/** Throws UsageError. */
export function fileNameOf(key: string): string {
  try {
    return credentialFileName(key);
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

/** A data source or a data sink that the service knows. */
export interface KnownEntry {
  readonly uuid: string;
  readonly name: string | null;
  /** For people. */
  readonly words: string;
}

/** What the running service reads and publishes to; undefined: none runs. */
export async function askEntries(socket: string, io: CommandIo): Promise<readonly KnownEntry[] | undefined> {
  try {
    const { sources, sinks } = (await askService(socket, "/status", io.signal)) as ServiceStatus;
    return [
      ...sources.map(({ uuid, name }) => ({ uuid, name, words: `data source ${name}` })),
      ...sinks.map(({ uuid, name }) => ({ uuid, name, words: `data sink ${name ?? uuid}` })),
    ];
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}

/** True: a secret is for an entry, which may bear any name, also one that looks like another's user. Pure. */
export const fits = (key: string, { uuid, name }: Pick<KnownEntry, "uuid" | "name">): boolean =>
  [key, ownerOfKey(key)].some((owner) => uuid === owner.toLowerCase() || name === owner);

function checkKey(key: string, known: readonly KnownEntry[] | undefined): void {
  const fitting = known?.filter((entry) => fits(key, entry)) ?? [];
  if (fitting.length > 1)
    throw new UsageError(
      `${key} is the name of several; name the uuid:\n${fitting.map(({ uuid, words }) => `${uuid}  ${words}`).join("\n")}`,
    );
}

/** Whose secret it is, as far as the running service knows. */
function entryObject(key: string, known: readonly KnownEntry[] | undefined): object {
  const entry = known?.find((candidate) => fits(key, candidate));
  return { entry: key, uuid: entry?.uuid ?? null, name: entry?.name ?? null, belongs_to: entry?.words ?? null };
}

/** Absent: a service of an earlier version. */
const toldSchema = z.object({ used_at: z.array(z.string()).optional() });

interface HandOver {
  readonly service: "told" | "not_told" | "not_running";
  /** The place where it goes from now on, in words. */
  readonly usedAt?: readonly string[];
  /** For people. */
  readonly text: string;
}

/** Hands a change to the running service; prints a refusal on stderr. */
export async function tell(
  { socket, stateDir }: Place,
  change: { key: string; secret: string | null; given?: { uuid: string; place: SecretPlace } },
  known: readonly KnownEntry[] | undefined,
  io: CommandIo,
): Promise<HandOver> {
  if (!known) {
    await bindKept(stateDir, change);
    return { service: "not_running", text: "No collector is running here; it takes the secret when it starts.\n" };
  }
  try {
    const { used_at: places = [] } = toldSchema.parse(await tellService(socket, "/secret", change, io.signal));
    const entry = known.find((candidate) => fits(change.key, candidate));
    return {
      service: "told",
      usedAt: places,
      text: entry
        ? `The running collector uses it now, for ${entry.words}${places.length === 0 ? "" : `, at ${places.join(" and at ")}`}.\n`
        : `The running collector has it now, but no data source or data sink ${change.key} yet; check the name with collector status.\n`,
    };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    complain(io, `the running collector did not take the change and keeps the previous value: ${error.message}`);
    return { service: "not_told", text: "" };
  }
}

/** What the running service does with the places of its secrets: this one goes where it was given for, or where the next start has it. */
async function bindKept(
  stateDir: string,
  { key, given }: { readonly key: string; readonly given?: { readonly uuid: string; readonly place: SecretPlace } },
): Promise<void> {
  const file = secretPlacesFile(stateDir);
  if (!existsSync(stateDir)) return;
  await asOwnerOf(stateDir, async () => {
    const places = new SecretPlacesFile(file, silentLog);
    const secret = secretName(canonicalKey(key));
    const free = withoutSecret(places.places, secret);
    places.use(given ? withPlace(free, { ...given, secret }) : free);
  });
}

/** Whose secrets are kept here. Throws UsageError where this user may not look. */
export function keptKeys({ plain, encrypted }: Place): readonly { readonly key: string; readonly encrypted: boolean }[] {
  const list = (folder: string): string[] => {
    try {
      return readdirSync(folder).sort();
    } catch (error) {
      if (isAbsent(error)) return [];
      throw new UsageError(`${messageOf(error)}; secrets belong to root: type sudo collector secret …`);
    }
  };
  return [plain, encrypted].flatMap((folder) =>
    list(folder).flatMap((file) => {
      const key = credentialKey(file);
      return key === undefined ? [] : [{ key, encrypted: folder === encrypted }];
    }),
  );
}

/** The place where a secret was written. */
export interface Kept {
  readonly file: string;
  /** For this machine alone. */
  readonly encrypted: boolean;
}

/** Writes the secret where the next start finds it, encrypted where this machine can. Throws Error. */
export async function keep({ plain, encrypted, decryptedAtStart }: Place, file: string, secret: string): Promise<Kept> {
  const sealed = decryptedAtStart ? await encrypt(file, secret) : undefined;
  const [folder, other] = sealed ? [encrypted, plain] : [plain, encrypted];
  makePrivateFolder(folder);
  sweep(folder);
  const target = path.join(folder, file);
  // Under a name that begins with a dot until it is whole: none of those is taken for a secret.
  replaceFile(target, sealed ?? `${secret}\n`);
  // Two of them would leave it to the order of reading which one counts.
  rmSync(path.join(other, file), { force: true });
  return { file: target, encrypted: sealed !== undefined };
}

/** The secret, encrypted for this machine by its TPM or its host key; undefined where systemd has neither. The secret goes through a pipe. */
async function encrypt(name: string, secret: string): Promise<Buffer | undefined> {
  const sealed = await systemdCreds(["encrypt", `--name=${name}`, "-", "-"], secret);
  return sealed && sealed.length > 0 ? sealed : undefined;
}

/** Output of systemd-creds; undefined: it failed, or this machine lacks it. Never rejects. */
export function systemdCreds(args: readonly string[], input = ""): Promise<Buffer | undefined> {
  return new Promise((done) => {
    const child = spawn("systemd-creds", args, { stdio: ["pipe", "pipe", "ignore"], timeout: CREDS_TIMEOUT_MS });
    const chunks: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => void chunks.push(chunk));
    child.once("error", () => done(undefined));
    child.once("close", (code) => done(code === 0 ? Buffer.concat(chunks) : undefined));
    child.stdin.on("error", () => undefined).end(input);
  });
}

/** The first line of stdin. */
async function readSecret(io: CommandIo): Promise<string> {
  const bytes = await readStdin(io, MAX_SECRET_BYTES, { what: "the secret", untilLine: true });
  if (bytes.length === 0) throw new UsageError("nothing came on stdin; its first line must be the secret");
  return firstLine(bytes);
}
