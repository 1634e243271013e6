import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { readFileSync, renameSync } from "node:fs";
import type { Log } from "../../model/context.ts";
import { errorCode } from "../../model/failure.ts";
import type { Database } from "./database.ts";
import { createSecretFile } from "./secret-file.ts";

const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Write-only secrets of data sources and sinks, by the field's name, encrypted in the database with a key outside of it. */
export interface SecretStore {
  /** Replaces all secrets of one record; an empty object deletes them. */
  replace(owner: string, secrets: Readonly<Record<string, string>>): void;
  /** True: the record has secrets here, also where they cannot be decrypted. */
  has(owner: string): boolean;
  /** The secrets of these records. One that cannot be decrypted is left out and logged by its owner and field. */
  read(owners: readonly string[]): Record<string, Record<string, string>>;
}

/**
 * AES-256-GCM with a random 96-bit nonce per secret (NIST SP 800-38D, 8.2.2); owner and field are authenticated with it, so that
 * a sealed value moved to another record does not open. A key file that is damaged is set aside, and what it sealed stays unreadable.
 */
export function openSecretStore(db: Database, keyFile: string, log: Log): SecretStore {
  const key = loadKey(keyFile, log);
  const remove = db.prepare<[string]>("DELETE FROM secrets WHERE owner = ?");
  const exists = db.prepare<[string], number>("SELECT 1 FROM secrets WHERE owner = ? LIMIT 1").pluck();
  const insert = db.prepare<[string, string, Buffer]>("INSERT INTO secrets (owner, field, sealed) VALUES (?, ?, ?)");
  const select = db.prepare<[string], { owner: string; field: string; sealed: Buffer }>(
    "SELECT owner, field, sealed FROM secrets WHERE owner IN (SELECT value FROM json_each(?)) ORDER BY owner, field",
  );
  return {
    replace(owner, secrets) {
      remove.run(owner);
      for (const [field, secret] of Object.entries(secrets)) insert.run(owner, field, seal(key, owner, field, secret));
    },
    has: (owner) => exists.get(owner) !== undefined,
    read(owners) {
      const found: Record<string, Record<string, string>> = {};
      for (const { owner, field, sealed } of select.all(JSON.stringify(owners))) {
        const secret = open(key, owner, field, sealed);
        if (secret === undefined)
          log.error({ record: owner, field, file: keyFile }, "a stored secret cannot be decrypted with this key file: set it again");
        else found[owner] = { ...found[owner], [field]: secret };
      }
      return found;
    },
  };
}

function seal(key: Uint8Array, owner: string, field: string, secret: string): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, iv);
  cipher.setAAD(Buffer.from(JSON.stringify([owner, field])));
  const body = Buffer.concat([cipher.update(secret, "utf8"), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), body]);
}

function open(key: Uint8Array, owner: string, field: string, sealed: Buffer): string | undefined {
  if (sealed.length < IV_BYTES + TAG_BYTES) return undefined;
  const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(JSON.stringify([owner, field])));
  decipher.setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString("utf8");
  } catch {
    return undefined;
  }
}

function loadKey(file: string, log: Log): Uint8Array {
  let text: string | undefined;
  try {
    text = readFileSync(file, "utf8").trim();
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
  }
  if (text !== undefined) {
    const key = Buffer.from(text, "base64url");
    if (key.length === KEY_BYTES && key.toString("base64url") === text) return key;
    const aside = `${file}.damaged-${Date.now()}`;
    renameSync(file, aside);
    log.error({ file, aside }, "the key file of the stored secrets is damaged and was set aside: passwords must be set again");
  }
  const key = randomBytes(KEY_BYTES);
  createSecretFile(file, key.toString("base64url"));
  return key;
}
