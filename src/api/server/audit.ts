import type { ConfigChange } from "../../model/service-status.ts";
import type { FieldChange } from "./audit-changes.ts";
import type { Database } from "./database.ts";
import type { Caller } from "./keys.ts";

/** Entries that are kept. */
const MAX_ENTRIES = 100_000;
/** By how much of that the trail may be longer until it is cut, which looks at every entry. */
const TRIM_SHARE = 0.01;

export interface AuditEntry {
  /** ISO 8601 UTC. */
  readonly at: string;
  readonly role: string;
  readonly key_id: number | null;
  readonly key_name: string | null;
  /** The place where the request came from; `local` for this machine's own command line. */
  readonly address: string;
  readonly operation: string;
  /** Uuid of the record. */
  readonly resource: string | null;
  /** Names of the fields that were given; of `refuseKey` how many requests there were. */
  readonly fields: readonly string[];
  /** Of the record, as it was before. */
  readonly name: string | null;
  /** What its fields were and are, never a secret. */
  readonly changes: readonly FieldChange[];
  /** The operating system's user, of this machine's own command line. */
  readonly os_user: string | null;
}

/** Who did it. */
export interface Actor {
  readonly role: Caller["role"] | "command_line" | "nobody";
  readonly key?: { readonly id: number; readonly name: string | null };
  readonly address: string;
  /** Who typed it, of this machine's own command line. */
  readonly osUser?: string | undefined;
}

/** Who types a command on this machine. */
export const commandLine = (osUser?: string): Actor => ({
  role: "command_line",
  address: "local",
  ...(osUser !== undefined && { osUser }),
});

/** Which record it was, and what has changed in it. */
export type Changed = Partial<Pick<AuditEntry, "name" | "changes">>;

/** The trail of changes: who, what, when. */
export interface Audit {
  /** Belongs into the transaction of the change itself. */
  record(actor: Actor, operation: string, resource: string | null, fields: readonly string[], changed?: Changed): void;
  /** The newest entries, newest first. */
  newest(limit: number): AuditEntry[];
  /** The newest entry of what has changed something; undefined: nothing has. */
  lastChange(): (ConfigChange & { readonly id: number }) | undefined;
}

/** Entries of what changes nothing. */
const NO_CHANGES = ["getSecrets", "refuseKey"];

/** Beyond `maxEntries` the oldest of who has the most go: a flood by one key pushes out its own entries alone. */
export function openAudit(db: Database, maxEntries: number = MAX_ENTRIES): Audit {
  const insert = db.prepare(`
    INSERT INTO audit (at, role, key_id, key_name, address, operation, resource, fields, name, changes, os_user)
    VALUES (@at, @role, @key_id, @key_name, @address, @operation, @resource, @fields, @name, @changes, @os_user)`);
  const count = db.prepare<[], ActorCount>("SELECT role, key_id, count(*) AS entries FROM audit GROUP BY role, key_id");
  const dropOldest = db.prepare<[string, number | null, number]>(
    "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE role = ? AND key_id IS ? ORDER BY id LIMIT ?)",
  );
  const atMost = db.prepare<[], { readonly entries: number }>("SELECT ifnull(max(id) - min(id), 0) + 1 AS entries FROM audit");
  const trim = (): void => {
    if ((atMost.get()?.entries ?? 0) <= maxEntries) return;
    const actors = count.all();
    const total = actors.reduce((sum, { entries }) => sum + entries, 0);
    if (total <= maxEntries) return;
    const most = actors.reduce((first, next) => (next.entries > first.entries ? next : first));
    dropOldest.run(most.role, most.key_id, total - maxEntries);
  };
  const lastChange = db.prepare<[string], ConfigChange & { readonly id: number }>(
    "SELECT id, at, role, key_name, address, os_user, operation, name FROM audit WHERE operation NOT IN (SELECT value FROM json_each(?)) ORDER BY id DESC LIMIT 1",
  );
  let untilTrim = 0;
  const select = db.prepare<[number], Omit<AuditEntry, "fields" | "changes"> & { readonly fields: string; readonly changes: string }>(
    "SELECT at, role, key_id, key_name, address, operation, resource, fields, name, changes, os_user FROM audit ORDER BY id DESC LIMIT ?",
  );
  return {
    record({ role, key, address, osUser = null }, operation, resource, fields, { name = null, changes = [] } = {}) {
      insert.run({
        at: new Date().toISOString(),
        role,
        key_id: key?.id ?? null,
        key_name: key?.name ?? null,
        address,
        operation,
        resource,
        fields: JSON.stringify(fields),
        name,
        changes: JSON.stringify(changes),
        os_user: osUser,
      });
      if (untilTrim-- > 0) return;
      untilTrim = Math.floor(maxEntries * TRIM_SHARE);
      trim();
    },
    lastChange: () => lastChange.get(JSON.stringify(NO_CHANGES)),
    newest: (limit) =>
      select.all(limit).map((row) => ({
        ...row,
        fields: JSON.parse(row.fields) as string[],
        changes: JSON.parse(row.changes) as FieldChange[],
      })),
  };
}

interface ActorCount {
  readonly role: string;
  readonly key_id: number | null;
  readonly entries: number;
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
