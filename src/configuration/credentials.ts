import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { shellWord } from "../base/shell-word.ts";
import type { SinkSpec } from "../delivery/messages.ts";
import { readBoundedFile } from "../lib/bounded-file.ts";
import { isAbsent } from "../lib/files.ts";
import { messageOf } from "../model/failure.ts";
import { nameInCommand } from "../model/name-in-command.ts";
import { proxyIn } from "../model/proxy-address.ts";
import { userSecretName } from "../model/sink-details.ts";
import { DEFAULT_SETTINGS_FILE } from "./settings-file.ts";

/** A data source or a data sink, as its secret is looked up. */
export interface Entry {
  readonly uuid: string;
  readonly name: string | null;
}

/** Longest secret, in bytes. */
export const MAX_SECRET_BYTES = 64 * 1024;
const MAX_SECRETS = 1000;
/** Of a file's name; systemd puts a prefix in front and takes 255 (systemd.exec(5)). */
const MAX_NAME_BYTES = 200;
/** What LoadCredential= of the unit calls its folders: plain files, and those that were decrypted at the start. */
const PREFIXES = ["secret_", "sealed_"];

/** The place where the secrets of people are kept: in the folder of the settings file. */
export const credentialsFolder = (settingsFile: string | undefined): string =>
  join(dirname(settingsFile ?? DEFAULT_SETTINGS_FILE), "credentials");

/** The place where those lie that are encrypted for this machine; the unit has them decrypted at each start. */
export const encryptedFolder = (settingsFile: string | undefined): string => `${credentialsFolder(settingsFile)}.encrypted`;

/** The name of the file that holds the secret of `key`, a uuid or name. Throws Error where it would be too long. */
export function credentialFileName(key: string): string {
  // A leading dot would hide the file, and a name of dots alone would leave the folder.
  const name = encodeURIComponent(key).replace(/^\./, "%2E");
  if (key === "" || name.length > MAX_NAME_BYTES)
    throw new Error(`${JSON.stringify(key.slice(0, 60))} cannot be the name of a file; use the uuid of the data source or data sink`);
  return name;
}

/** The reverse of `credentialFileName`; undefined: no such file is ours. */
export function credentialKey(fileName: string): string | undefined {
  try {
    return fileName.startsWith(".") ? undefined : decodeURIComponent(fileName);
  } catch {
    return undefined;
  }
}

export interface LoadedCredentials {
  /** By uuid or name. */
  readonly secrets: ReadonlyMap<string, string>;
  /** What cannot be read, in words; never what it holds. */
  readonly problems: readonly string[];
}

/**
 * The secrets that are here at the start: what the service manager handed over (`CREDENTIALS_DIRECTORY`, systemd.exec(5)), else those next to
 * the settings file that this user may read. Never throws.
 */
export function loadCredentials(handedOver: string | undefined, folder: string): LoadedCredentials {
  const secrets = new Map<string, string>();
  const problems: string[] = [];
  const take = (dir: string, file: string, key: string | undefined): void => {
    if (key === undefined) return;
    if (secrets.size >= MAX_SECRETS) {
      problems.push(`${dir} holds more than ${MAX_SECRETS} secrets; ${file} is not read`);
      return;
    }
    try {
      secrets.set(key, firstLine(readBoundedFile(join(dir, file), MAX_SECRET_BYTES)));
    } catch (error) {
      problems.push(messageOf(error));
    }
  };
  if (handedOver !== undefined) {
    for (const file of filesOf(handedOver, problems)) {
      const prefix = PREFIXES.find((text) => file.startsWith(text));
      if (prefix !== undefined) take(handedOver, file, credentialKey(file.slice(prefix.length)));
    }
  } else for (const file of filesOf(folder, problems)) take(folder, file, credentialKey(file));
  return { secrets, problems };
}

function filesOf(folder: string, problems: string[]): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    if (!isAbsent(error)) problems.push(`${folder}: ${messageOf(error)}`);
    return [];
  }
}

/** The first line, without its end. */
export const firstLine = (bytes: Uint8Array): string => new TextDecoder().decode(bytes).split(/\r?\n/, 1)[0] ?? "";

/** The secrets of this process, by uuid or name of a data source or data sink. */
export interface Credentials {
  /** Undefined: there is none, or its name fits several of `all`, which have to be told apart by uuid. */
  secretOf(entry: Entry, all: readonly Entry[]): string | undefined;
  /** The key that `secretOf` finds the secret under: the uuid or the name; undefined: there is none. */
  keyOf(entry: Entry, all: readonly Entry[]): string | undefined;
  /** By user: the passwords kept as `<uuid or name>/users/<user>`, of an entry that has several users of its own (an OPC UA server). As `secretOf`. */
  userSecretsOf(entry: Entry, all: readonly Entry[]): ReadonlyMap<string, string>;
  set(key: string, secret: string): void;
  remove(key: string): void;
}

export function createCredentials(loaded: ReadonlyMap<string, string>): Credentials {
  const secrets = new Map([...loaded].map(([key, secret]) => [canonicalKey(key), secret]));
  const isNameOfOne = (name: string | null, all: readonly Entry[]): name is string =>
    name !== null && all.filter((entry) => entry.name === name).length <= 1;
  const keyOf: Credentials["keyOf"] = ({ uuid, name }, all) => {
    if (secrets.has(canonicalKey(uuid))) return canonicalKey(uuid);
    const byName = name === null ? undefined : canonicalKey(name);
    if (byName === undefined || !secrets.has(byName) || !isNameOfOne(name, all)) return undefined;
    // Whoever is named like another's uuid does not get that one's.
    return all.some((entry) => canonicalKey(entry.uuid) === byName) ? undefined : byName;
  };
  return {
    keyOf,
    secretOf(entry, all) {
      const key = keyOf(entry, all);
      return key === undefined ? undefined : secrets.get(key);
    },
    userSecretsOf({ uuid, name }, all) {
      const owners = [...(isNameOfOne(name, all) ? [name] : []), canonicalKey(uuid)];
      const ofUsers = owners.flatMap((owner) => {
        const prefix = `${owner}${USERS}`;
        return [...secrets].flatMap(([key, secret]) => (key.startsWith(prefix) ? [[key.slice(prefix.length), secret] as const] : []));
      });
      return new Map(ofUsers);
    },
    set: (key, secret) => void secrets.set(canonicalKey(key), secret),
    remove: (key) => void secrets.delete(canonicalKey(key)),
  };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const USERS = "/users/";

/** The uuid or name of the entry that a key of `secret set` is for: all of it, but for the user in `<uuid or name>/users/<user>`. */
export function ownerOfKey(key: string): string {
  const at = key.indexOf(USERS);
  return at > 0 ? key.slice(0, at) : key;
}

/** How a key is kept: uuids are the same in either case, names are not. */
export const canonicalKey = (key: string): string => {
  const owner = ownerOfKey(key);
  return UUID.test(owner) ? `${owner.toLowerCase()}${key.slice(owner.length)}` : key;
};

/** The command that brings the missing secret of an entry, or of one user of its own. */
export const secretCommand = (entry: Entry, user?: string): string =>
  `sudo collector secret set ${user === undefined ? nameInCommand(entry) : shellWord(`${nameInCommand(entry)}${USERS}${user}`, "NAME/users/USER")}`;

/** The command that confirms that the secret of this machine is used where the configuration has it now. */
export const confirmCommand = (entry: Entry): string => `sudo collector secret confirm ${nameInCommand(entry)}`;

type Secrets = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** The secrets of the configuration, by uuid and field, with those of this machine, which win. Pure but for the look-ups. */
export function withLocalSecrets(
  remote: Secrets,
  entries: readonly Entry[],
  credentials: Pick<Credentials, "secretOf" | "userSecretsOf">,
): Secrets {
  const local = entries.flatMap((entry) => {
    const secret = credentials.secretOf(entry, entries);
    const users = [...credentials.userSecretsOf(entry, entries)].map(([user, password]) => [userSecretName(user), password] as const);
    if (secret === undefined && users.length === 0) return [];
    const own = { ...(secret !== undefined && { password: secret }), ...Object.fromEntries(users) };
    return [[entry.uuid, { ...remote[entry.uuid], ...own }] as const];
  });
  return { ...remote, ...Object.fromEntries(local) };
}

/**
 * Words for the secrets that an entry needs and does not have here, with the command that brings them, whatever its driver or kind of sink;
 * `isAwaited`: the API may still have them. An empty secret counts as one: some users have none. Pure.
 */
export function missingPassword(
  entry: Entry,
  {
    details,
    settings,
    secrets,
  }: { readonly details: unknown; readonly settings: unknown; readonly secrets: Readonly<Record<string, string>> },
  isAwaited = false,
): Pick<SinkSpec, "missingSecret" | "awaitedSecret"> | undefined {
  const own = secrets["password"] === undefined ? neededSecret(details, settings) : undefined;
  const [user, ...others] = own === undefined ? usersWithout(details, settings, secrets) : [];
  if (own === undefined && user === undefined) return undefined;
  const named = [user, ...others].map((name) => JSON.stringify(name)).join(", ");
  const [what, verb] =
    own !== undefined
      ? [own, "is"]
      : others.length > 0
        ? [`the passwords of users ${named}`, "are"]
        : [`the password of user ${named}`, "is"];
  // A secret that is set here meanwhile would win over the API's from then on.
  if (isAwaited) return { awaitedSecret: `${what} ${verb} asked for at the configuration API, which has not answered yet` };
  return { missingSecret: `${what} ${verb} not on this machine; type \`${secretCommand(entry, user)}\`` };
}

/**
 * What the secret `password` of an entry is, in words, where its details or its settings need one: they name a user, have a password
 * configured, or encrypt with a key that both sides have; undefined: they need none. Pure.
 */
function neededSecret(details: unknown, settings: unknown): string | undefined {
  // opcua has the user one level down, with the kind of identity; a certificate's has none.
  const user =
    [settings, details, fieldOf(details, "user_identity")].map(usernameIn).find((name) => name !== undefined) ?? textIn(settings, "user");
  if (user !== undefined) return `the password of user ${JSON.stringify(user)}`;
  if (fieldOf(fieldOf(details, "password"), "type") === "configured") return "the password that is configured";
  return fieldOf(settings, "security") === "psk" ? "the key of the gateway" : undefined;
}

/** Users of a server of ours, and of the proxy on the way to a server, whose password is not here. */
function usersWithout(details: unknown, settings: unknown, secrets: Readonly<Record<string, string>>): readonly string[] {
  const users = fieldOf(details, "users");
  const ofProxy = proxyIn(settings)?.user;
  const names = [...(Array.isArray(users) ? users.map(usernameIn) : []), ofProxy].filter((name) => name !== undefined);
  return names.filter((name) => secrets[userSecretName(name)] === undefined);
}

/** Words for secrets of this machine that are used instead of others that the API has; undefined: there are none. Pure. */
export function overrideNote(
  entry: Entry,
  api: Readonly<Record<string, string>> | undefined,
  used: Readonly<Record<string, string>>,
  isFromFile: boolean,
): string | undefined {
  const overridden = Object.keys(used).filter((field) => api?.[field] !== undefined && api[field] !== used[field]);
  if (overridden.length === 0) return undefined;
  const remedy = isFromFile ? "take password_file out of its settings" : `type \`sudo collector secret rm ${nameInCommand(entry)}\``;
  return `a password of this machine is used, which differs from the one in the configuration API; to use the API's, ${remedy}`;
}

const usernameIn = (value: unknown): string | undefined => {
  const name = fieldOf(value, "username");
  return typeof name === "string" ? name : undefined;
};

/** A text that is not empty. */
const textIn = (value: unknown, field: string): string | undefined => {
  const text = fieldOf(value, field);
  return typeof text === "string" && text !== "" ? text : undefined;
};

const fieldOf = (value: unknown, field: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, field)
    ? (value as Readonly<Record<string, unknown>>)[field]
    : undefined;
