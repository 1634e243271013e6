import { existsSync, rmSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import { plain } from "../../base/plain-text.ts";
import { canonicalKey, type Entry, firstLine, MAX_SECRET_BYTES, ownerOfKey } from "../../configuration/credentials.ts";
import { readSecretPlaces, secretPlacesFile } from "../../configuration/secret-places.ts";
import { secretName } from "../../configuration/secret-uses.ts";
import { readBoundedFile } from "../../lib/bounded-file.ts";
import { messageOf } from "../../model/failure.ts";
import { uuidSchema } from "../../model/uuid.ts";
import { type CommandIo, complain } from "../io.ts";
import { type ApiConnection, isNotOffered } from "./api-connection.ts";
import { askEntries, fileNameOf, keep, keptKeys, type Place, placeOf, type SecretOptions, systemdCreds, tell } from "./secret.ts";

/** What became of the secrets of an entry. */
export interface EntrySecrets {
  /** The keys that they were kept under. */
  readonly keys: readonly string[];
  /** For people; empty: none were kept. */
  readonly text: string;
}

const NONE: EntrySecrets = { keys: [], text: "" };

/**
 * Forgets the secrets that this machine keeps for an entry that has been deleted: under its uuid, and under its name unless another
 * entry has that, too. Never throws: says on stderr what stays.
 */
export async function forgetSecrets(entry: Entry, api: ApiConnection, options: SecretOptions, io: CommandIo): Promise<EntrySecrets> {
  if (!existsSync(api.settings.state_dir)) return NONE;
  return attempt("a password that this machine may keep for it stays", io, async () => {
    const place = placeOf(options);
    const { own, shared } = await keysOf(place, entry, api);
    const known = own.length > 0 ? await askEntries(place.socket, io) : undefined;
    for (const key of own) {
      forget(place, key);
      await tell(place, { key, secret: null }, known, io);
    }
    const who = entry.name ?? entry.uuid;
    const gone = own.length === 0 ? "" : plain`The password that this machine kept for ${who} is gone, too\n`;
    const stays = shared.map((key) => plain`The secret ${key} stays on this machine: another entry has the name ${who}, too\n`);
    return { keys: own, text: gone + stays.join("") };
  });
}

/**
 * Before an entry gets a new name: what this machine keeps under the old one is kept under its uuid from now on, for where it was used. Never
 * throws: says on stderr what does not follow.
 */
export async function followRename(
  entry: Entry,
  name: string | undefined,
  api: ApiConnection,
  options: SecretOptions,
  io: CommandIo,
): Promise<EntrySecrets> {
  if (name === undefined || name === entry.name || !existsSync(api.settings.state_dir)) return NONE;
  return attempt("a password that this machine may keep under the old name does not follow", io, async () => {
    const place = placeOf(options);
    const { own, shared } = await keysOf(place, entry, api);
    const byName = own.filter((key) => ownerOfKey(key) === entry.name);
    const known = byName.length > 0 ? await askEntries(place.socket, io) : undefined;
    for (const key of byName) await move(place, key, entry, known, io);
    const stays = shared.map(
      (key) => plain`The secret ${key} stays under that name: another entry has it, too; sudo collector secret set ${entry.uuid}\n`,
    );
    return { keys: byName, text: (byName.length === 0 ? "" : "The password that this machine keeps for it follows\n") + stays.join("") };
  });
}

async function attempt(what: string, io: CommandIo, work: () => Promise<EntrySecrets>): Promise<EntrySecrets> {
  try {
    return await work();
  } catch (error) {
    complain(io, `${what}: ${messageOf(error)}`);
    return NONE;
  }
}

/** The kept keys of an entry; `shared`: those under a name that another entry has. */
async function keysOf(
  place: Place,
  { uuid, name }: Entry,
  api: ApiConnection,
): Promise<{ readonly own: readonly string[]; readonly shared: readonly string[] }> {
  const kept = keptKeys(place).map(({ key }) => key);
  const byUuid = kept.filter((key) => ownerOfKey(key).toLowerCase() === uuid);
  const byName = kept.filter((key) => name !== null && [key, ownerOfKey(key)].includes(name));
  if (byName.length === 0) return { own: byUuid, shared: [] };
  const names = new Set((await entriesOf(api)).filter((other) => other.uuid !== uuid).map((other) => other.name));
  // An entry may bear any name, also one that looks like another's user.
  const isShared = (key: string): boolean => names.has(key) || names.has(ownerOfKey(key));
  return { own: [...byUuid, ...byName.filter((key) => !isShared(key))], shared: byName.filter(isShared) };
}

/** All data sources and data sinks; an API may offer no sinks. */
async function entriesOf(api: ApiConnection): Promise<readonly Entry[]> {
  const collector = await api.collector();
  const sources = await api.list("/v2/data-sources", entrySchema, { collector });
  try {
    return [...sources, ...(await api.list("/v2/data-sinks", entrySchema, { collector }))];
  } catch (error) {
    if (isNotOffered(error)) return sources;
    throw error;
  }
}

const entrySchema = z.object({ uuid: uuidSchema, name: z.string().nullable() });

function forget({ plain: folder, encrypted }: Place, key: string): void {
  for (const one of [folder, encrypted]) rmSync(path.join(one, fileNameOf(key)), { force: true });
}

/** A place that the configuration has left stays the place of the secret: nobody confirms it by a new name. */
async function move(place: Place, key: string, { uuid, name }: Entry, known: Parameters<typeof tell>[2], io: CommandIo): Promise<void> {
  const next = uuid + key.slice(name?.length ?? 0);
  const was = readSecretPlaces(secretPlacesFile(place.stateDir))
    .get(secretName(canonicalKey(key)))
    ?.get(uuid);
  const secret = await secretIn(place, fileNameOf(key));
  await keep(place, fileNameOf(next), secret);
  await tell(place, { key: next, secret, ...(was && { given: { uuid, place: was } }) }, known, io);
  forget(place, key);
  await tell(place, { key, secret: null }, known, io);
}

/** Throws Error. */
async function secretIn({ plain: folder, encrypted }: Place, file: string): Promise<string> {
  const open = path.join(folder, file);
  return firstLine(existsSync(open) ? readBoundedFile(open, MAX_SECRET_BYTES) : await decrypt(file, path.join(encrypted, file)));
}

async function decrypt(name: string, file: string): Promise<Buffer> {
  const secret = await systemdCreds(["decrypt", `--name=${name}`, file, "-"]);
  if (!secret) throw new Error(`systemd-creds cannot decrypt ${file}`);
  return secret;
}
