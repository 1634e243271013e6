import { randomBytes, hash as sha256, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { KeyFiles } from "../embedded.ts";
import { watchChanges } from "./changes.ts";
import type { Database } from "./database.ts";
import { createSecretFile } from "./secret-file.ts";

export type Role = "admin" | "collector";

/** What a key is good for. A collector's key is bound to one collector. */
export type Grant = { readonly role: "admin" } | { readonly role: "collector"; readonly collector: string };

/** Who sends a request: a grant, and the key that carries it. */
export type Caller = Grant & { readonly key: { readonly id: number; readonly name: string | null } };

export interface KeyInfo {
  readonly id: number;
  readonly role: Role;
  /** Bound to it; null for an admin's key. */
  readonly collector: string | null;
  readonly name: string | null;
  /** The name of the file in which this machine keeps it for its own use; null: somebody else has it. */
  readonly file: string | null;
  /** ISO 8601 UTC. */
  readonly created_at: string;
}

/** 256 bits: no salt and no slow hash is needed where the secret is random. */
const KEY_BYTES = 32;

/** Makes a key and returns it; the database keeps only its SHA-256. `name` tells people whose it is. */
export function createKey(db: Database, grant: Grant, name: string | null = null): string {
  const key = randomBytes(KEY_BYTES).toString("base64url");
  insertKey(db, key, grant, null, name);
  return key;
}

/** Every key, without its hash, in creation order. */
export function listKeys(db: Database): KeyInfo[] {
  return db.prepare<[], KeyInfo>("SELECT id, role, collector, name, file, created_at FROM api_keys ORDER BY id").all();
}

/** True: there was such a key. From then on it opens nothing. */
export function revokeKey(db: Database, id: number): boolean {
  return db.prepare<[number]>("DELETE FROM api_keys WHERE id = ?").run(id).changes > 0;
}

interface KeyRow extends Omit<KeyInfo, "created_at" | "file"> {
  readonly hash: Buffer;
}

/** Whose key an Authorization header carries. */
export type Authenticate = (header: string | undefined) => Caller | undefined;

const SELECT_KEYS = "SELECT id, hash, role, collector, name FROM api_keys";

/** Looks the keys up again when one was made or revoked, here or elsewhere: it counts at once. */
export function createAuthenticate(db: Database): Authenticate {
  const select = db.prepare<[], KeyRow>(SELECT_KEYS);
  const changes = watchChanges(db);
  let [rows, others, isOld]: [readonly KeyRow[], number, boolean] = [[], 0, true];
  changes.watch("api_keys", () => {
    isOld = true;
  });
  return (header) => {
    const now = changes.others();
    if (isOld || now !== others) [rows, others, isOld] = [select.all(), now, false];
    return callerOf(rows, header);
  };
}

/** Whose key the Authorization header carries: the key alone (API-V2, 5.1) or after `Bearer `. Undefined: nobody's. */
function callerOf(rows: readonly KeyRow[], header: string | undefined): Caller | undefined {
  const text = header?.trim() ?? "";
  const presented = hash(/^bearer /i.test(text) ? text.slice("bearer ".length).trim() : text);
  let found: Caller | undefined;
  // Every key is compared, each in constant time: the time taken says nothing about a hash.
  for (const row of rows)
    if (timingSafeEqual(row.hash, presented)) {
      const key = { id: row.id, name: row.name };
      found = row.collector === null ? { role: "admin", key } : { role: "collector", collector: row.collector, key };
    }
  return found;
}

/**
 * Sees to the two keys that a new installation needs, `admin.key` and `collector.key` in `folder` (0600). The admin's is written once:
 * whoever moved the file away keeps the key. The collector's is replaced whenever its file does not open this collector.
 */
export function ensureKeyFiles(db: Database, folder: string, collector: string): KeyFiles {
  const files: KeyFiles = { admin: join(folder, "admin.key"), collector: join(folder, "collector.key") };
  db.transaction(() => {
    const admins = db.prepare<[], { n: number }>("SELECT count(*) AS n FROM api_keys WHERE role = 'admin'").get();
    if (admins?.n === 0) adoptOrWrite(db, files.admin, { role: "admin" });
    const caller = callerNow(db, readKey(files.collector));
    if (caller?.role !== "collector" || caller.collector !== collector) {
      db.prepare("DELETE FROM api_keys WHERE file = ?").run("collector.key");
      adoptOrWrite(db, files.collector, { role: "collector", collector });
    }
  }).immediate();
  return files;
}

const callerNow = (db: Database, header: string | undefined): Caller | undefined =>
  callerOf(db.prepare<[], KeyRow>(SELECT_KEYS).all(), header);

/** A key file that outlived its database stays good; otherwise a new key is written to it. The file first: a key in the database alone opens nothing. */
function adoptOrWrite(db: Database, file: string, grant: Grant): void {
  const kept = readKey(file);
  const usable = kept !== undefined && Buffer.from(kept, "base64url").length === KEY_BYTES && callerNow(db, kept) === undefined;
  const key = usable ? kept : randomBytes(KEY_BYTES).toString("base64url");
  if (!usable) createSecretFile(file, key);
  const name = grant.role === "admin" ? "admin.key" : "collector.key";
  insertKey(db, key, grant, name, `file ${name}`);
}

function insertKey(db: Database, key: string, grant: Grant, file: string | null, name: string | null): void {
  db.prepare("INSERT INTO api_keys (hash, role, collector, file, name, created_at) VALUES (?, ?, ?, ?, ?, ?)").run(
    hash(key),
    grant.role,
    grant.role === "collector" ? grant.collector : null,
    file,
    name,
    new Date().toISOString(),
  );
}

function readKey(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return undefined;
  }
}

function hash(key: string): Buffer {
  return sha256("sha256", key, "buffer");
}
