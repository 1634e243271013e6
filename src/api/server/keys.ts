import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { KeyFiles } from "../messages.ts";
import type { Database } from "./database.ts";
import { createSecretFile } from "./secret-file.ts";

export type Role = "admin" | "collector";

/** Who sends a request. A collector's key is bound to one collector. */
export type Caller = { readonly role: "admin" } | { readonly role: "collector"; readonly collector: string };

/** 256 bits: no salt and no slow hash is needed where the secret is random. */
const KEY_BYTES = 32;

/** Makes a key and returns it; the database keeps only its SHA-256. `file` names where the key is kept, if anywhere. */
export function createKey(db: Database, caller: Caller, file: string | null = null): string {
  const key = randomBytes(KEY_BYTES).toString("base64url");
  insertKey(db, key, caller, file);
  return key;
}

/** Whose key the Authorization header carries: the key alone (API-V2, 5.1) or after `Bearer `. Undefined: nobody's. */
export function authenticate(db: Database, header: string | undefined): Caller | undefined {
  const text = header?.trim() ?? "";
  const presented = hash(/^bearer /i.test(text) ? text.slice("bearer ".length).trim() : text);
  let found: Caller | undefined;
  // Every key is compared, each in constant time: the time taken says nothing about a hash.
  for (const row of db
    .prepare<[], { hash: Buffer; role: Role; collector: string | null }>("SELECT hash, role, collector FROM api_keys")
    .all())
    if (timingSafeEqual(row.hash, presented))
      found = row.collector === null ? { role: "admin" } : { role: "collector", collector: row.collector };
  return found;
}

/**
 * Sees to the two keys that a new installation needs, `admin.key` and `collector.key` in `folder` (0600). The admin's is written once:
 * whoever moved the file away keeps the key. The collector's is made anew whenever its file does not open this collector.
 */
export function ensureKeyFiles(db: Database, folder: string, collector: string): KeyFiles {
  const files: KeyFiles = { admin: join(folder, "admin.key"), collector: join(folder, "collector.key") };
  db.transaction(() => {
    const admins = db.prepare<[], { n: number }>("SELECT count(*) AS n FROM api_keys WHERE role = 'admin'").get();
    if (admins?.n === 0) adoptOrWrite(db, files.admin, { role: "admin" });
    const caller = authenticate(db, readKey(files.collector));
    if (caller?.role !== "collector" || caller.collector !== collector) {
      db.prepare("DELETE FROM api_keys WHERE file = ?").run("collector.key");
      adoptOrWrite(db, files.collector, { role: "collector", collector });
    }
  }).immediate();
  return files;
}

/** A key file that outlived its database stays good; otherwise a new key is written to it. The file first: a key in the database alone opens nothing. */
function adoptOrWrite(db: Database, file: string, caller: Caller): void {
  const kept = readKey(file);
  const usable = kept !== undefined && Buffer.from(kept, "base64url").length === KEY_BYTES && authenticate(db, kept) === undefined;
  const key = usable ? kept : randomBytes(KEY_BYTES).toString("base64url");
  if (!usable) createSecretFile(file, key);
  insertKey(db, key, caller, caller.role === "admin" ? "admin.key" : "collector.key");
}

function insertKey(db: Database, key: string, caller: Caller, file: string | null): void {
  db.prepare("INSERT INTO api_keys (hash, role, collector, file, created_at) VALUES (?, ?, ?, ?, ?)").run(
    hash(key),
    caller.role,
    caller.role === "collector" ? caller.collector : null,
    file,
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
  return createHash("sha256").update(key).digest();
}
