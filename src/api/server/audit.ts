import type { Database } from "./database.ts";
import type { Caller } from "./keys.ts";

/** Entries that are kept; the oldest go first. */
const MAX_ENTRIES = 100_000;

export interface AuditEntry {
  /** ISO 8601 UTC. */
  readonly at: string;
  readonly role: string;
  readonly key_id: number | null;
  readonly key_name: string | null;
  /** Where the request came from; `local` for this machine's own command line. */
  readonly address: string;
  readonly operation: string;
  /** Uuid of the record. */
  readonly resource: string | null;
  /** Names of the fields that were given; never a value. */
  readonly fields: readonly string[];
}

/** Who did it. */
export interface Actor {
  readonly role: Caller["role"] | "command_line";
  readonly key?: { readonly id: number; readonly name: string | null };
  readonly address: string;
}

/** The trail of changes: who, what, when. */
export interface Audit {
  /** Belongs into the transaction of the change itself. */
  record(actor: Actor, operation: string, resource: string | null, fields: readonly string[]): void;
  /** The newest entries, newest first. */
  newest(limit: number): AuditEntry[];
}

export function openAudit(db: Database): Audit {
  const insert = db.prepare(`
    INSERT INTO audit (at, role, key_id, key_name, address, operation, resource, fields)
    VALUES (@at, @role, @key_id, @key_name, @address, @operation, @resource, @fields)`);
  const trim = db.prepare<[number | bigint]>("DELETE FROM audit WHERE id <= ?");
  const select = db.prepare<[number], Omit<AuditEntry, "fields"> & { readonly fields: string }>(
    "SELECT at, role, key_id, key_name, address, operation, resource, fields FROM audit ORDER BY id DESC LIMIT ?",
  );
  return {
    record({ role, key, address }, operation, resource, fields) {
      const { lastInsertRowid } = insert.run({
        at: new Date().toISOString(),
        role,
        key_id: key?.id ?? null,
        key_name: key?.name ?? null,
        address,
        operation,
        resource,
        fields: JSON.stringify(fields),
      });
      trim.run(Number(lastInsertRowid) - MAX_ENTRIES);
    },
    newest: (limit) => select.all(limit).map((row) => ({ ...row, fields: JSON.parse(row.fields) as string[] })),
  };
}

/** Names of the fields in a body, those of an object inside by their path; no value, and nothing below a list. */
export function fieldNames(body: unknown): readonly string[] {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return [];
  return Object.entries(body).flatMap(([name, value]) => {
    if (value === undefined) return [];
    return typeof value === "object" && value !== null && !Array.isArray(value) && name === "details"
      ? Object.keys(value).map((inner) => `${name}.${inner}`)
      : [name];
  });
}
