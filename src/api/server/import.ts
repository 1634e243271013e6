import { isDeepStrictEqual } from "node:util";
import { userSecretName } from "../../model/sink-details.ts";
import type { Actor, Audit } from "./audit.ts";
import type { Collectors } from "./collectors.ts";
import type { Database } from "./database.ts";
import { type ImportedRecords, KINDS, type Kind } from "./import-file.ts";

export interface ImportCounts {
  readonly created: number;
  readonly changed: number;
  readonly same: number;
}

export interface Imported {
  readonly counts: Readonly<Record<Kind, ImportCounts>>;
  /** What hinders it, each by its record and field; nothing is written then. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

type Values = Readonly<Record<string, string | number | null>>;

/** How a kind lies in its table. */
interface Table {
  /** Columns that come from the record, besides the uuid. */
  readonly columns: readonly string[];
  /** Columns that stay what they are. */
  readonly fixed: readonly string[];
  /** Columns that hold JSON. */
  readonly json: readonly string[];
  /** The column that its name is unique within. */
  readonly uniqueIn?: string;
  readonly operation: string;
}

const TABLES: Readonly<Record<Kind, Table>> = {
  sites: { columns: ["name"], fixed: [], json: [], operation: "importSite" },
  collectors: { columns: ["name", "site"], fixed: [], json: [], operation: "importCollector" },
  machines: { columns: ["name", "site"], fixed: [], json: [], operation: "importMachine" },
  data_sources: {
    columns: [
      "collector",
      "machine",
      "type",
      "name",
      "manufacturer",
      "device_model",
      "note",
      "readout_interval",
      "readout_limit",
      "details",
    ],
    fixed: ["collector", "type"],
    json: ["details"],
    operation: "importDataSource",
  },
  data_sinks: {
    columns: ["collector", "name", "details"],
    fixed: ["collector"],
    json: ["details"],
    uniqueIn: "collector",
    operation: "importDataSink",
  },
  variables: {
    columns: ["data_source", "collector", "name", "address", "type", "unit", "scaling", "comment", "status"],
    fixed: ["data_source"],
    json: ["scaling"],
    uniqueIn: "data_source",
    operation: "importVariables",
  },
};

/** Thrown to undo a transaction whose result is of use all the same. */
class Undo extends Error {
  readonly result: Imported;
  constructor(result: Imported) {
    super("undone");
    this.result = result;
  }
}

/**
 * Puts records into the database under their own uuids, in one transaction: what is new is created, what differs is changed, what is not named
 * stays. The forms that only a read shows are taken (API-V2, 2.2 against 2.4). Secrets stay where the record still has their place. A second
 * time the same changes nothing. `dryRun`: says what would be done.
 */
export function importRecords(
  db: Database,
  { collectors, audit, actor }: { readonly collectors: Collectors; readonly audit: Audit; readonly actor: Actor },
  records: ImportedRecords,
  dryRun: boolean,
): Imported {
  const transaction = db.transaction((): Imported => {
    const result = putAll(db, collectors, records, (kind, uuid, fields) => audit.record(actor, TABLES[kind].operation, uuid, fields));
    if (dryRun || result.problems.length > 0) throw new Undo(result);
    return result;
  });
  try {
    return transaction.immediate();
  } catch (error) {
    if (error instanceof Undo) return error.result;
    throw error;
  }
}

function putAll(
  db: Database,
  collectors: Collectors,
  records: ImportedRecords,
  recorded: (kind: Kind, uuid: string, fields: readonly string[]) => void,
): Imported {
  const problems: string[] = [];
  const warnings: string[] = [];
  const touched = new Set<string>();
  const exists = (table: Kind) => {
    const statement = db.prepare<[string], number>(`SELECT 1 FROM ${table} WHERE uuid = ?`).pluck();
    return (uuid: string) => statement.get(uuid) !== undefined;
  };
  const [hasSite, hasCollector] = [exists("sites"), exists("collectors")];
  const collectorOf = db.prepare<[string], string>("SELECT collector FROM data_sources WHERE uuid = ?").pluck();
  const ensureMachine = db.prepare<[string, string | null]>("INSERT INTO machines (uuid, site) VALUES (?, ?) ON CONFLICT DO NOTHING");
  const forgetCount = db.prepare<[string]>("UPDATE data_sources SET reported_variables = NULL WHERE uuid = ?");
  const secrets = secretsOf(db);

  /** The row of a record; undefined where it refers to what is not there, which is a problem then. */
  const rowOf = (kind: Kind, record: ImportedRecords[Kind][number], at: string): Values | undefined => {
    const { columns, json } = TABLES[kind];
    const fields: Record<string, unknown> = { ...record };
    if ("site" in record && record.site !== null && !hasSite(record.site)) {
      problems.push(`${at}: site: there is no site ${record.site}, here or in the file`);
      return undefined;
    }
    if ("collector" in record && !hasCollector(record.collector)) {
      problems.push(
        `${at}: collector: there is no collector ${record.collector}, here or in the file; --adopt gives all records to this machine's own`,
      );
      return undefined;
    }
    if ("data_source" in record) {
      const collector = collectorOf.get(record.data_source);
      if (collector === undefined) {
        problems.push(`${at}: data_source: there is no data source ${record.data_source}, here or in the file`);
        return undefined;
      }
      fields["collector"] = collector;
    }
    return Object.fromEntries(
      columns.map((column) => {
        const value = fields[column];
        const stored = json.includes(column) && value !== null ? JSON.stringify(value) : value;
        return [column, (stored ?? null) as string | number | null];
      }),
    );
  };

  const put = (kind: Kind): ImportCounts => {
    const { columns, fixed, json, uniqueIn } = TABLES[kind];
    const select = db.prepare<[string], Values>(`SELECT ${columns.join(", ")} FROM ${kind} WHERE uuid = ?`);
    const insert = db.prepare(
      `INSERT INTO ${kind} (uuid, ${columns.join(", ")}) VALUES (@uuid, ${columns.map((one) => `@${one}`).join(", ")})`,
    );
    const update = db.prepare(
      `UPDATE ${kind} SET ${columns.map((one) => `${one} = @${one}`).join(", ")}, version = version + 1 WHERE uuid = @uuid`,
    );
    const parted = (column: string, value: string | number | null | undefined): unknown =>
      json.includes(column) && typeof value === "string" ? JSON.parse(value) : value;
    const planned: { uuid: string; at: string; row: Values; before: Values | undefined; fields: string[] }[] = [];
    let same = 0;
    for (const [n, record] of records[kind].entries()) {
      const { uuid } = record;
      const at = `${kind}[${n}]${record.name === null ? "" : ` (${record.name})`}`;
      const row = rowOf(kind, record, at);
      if (!row) continue;
      const before = select.get(uuid);
      const fields = columns.filter((one) => before && !isDeepStrictEqual(parted(one, row[one]), parted(one, before[one])));
      for (const one of fields.filter((field) => fixed.includes(field)))
        problems.push(`${at}: ${one}: is ${before?.[one]} here, and cannot change to ${row[one]}`);
      if (kind === "data_sinks" && "details" in record && before && typeOf(before["details"]) !== record.type)
        problems.push(`${at}: type: is ${typeOf(before["details"])} here, and cannot change to ${record.type}`);
      if (before && fields.length === 0) same++;
      else planned.push({ uuid, at, row, before, fields: before ? fields : columns.filter((one) => row[one] !== null) });
    }
    // Names that are exchanged between records would be taken for the moment: they are set aside first.
    if (uniqueIn !== undefined) {
      const setAside = db.prepare<[string]>(`UPDATE ${kind} SET name = uuid WHERE uuid = ?`);
      for (const { uuid, before, fields } of planned) if (before && fields.includes("name")) setAside.run(uuid);
    }
    const named =
      uniqueIn &&
      db.prepare<[unknown, unknown, string], string>(`SELECT uuid FROM ${kind} WHERE ${uniqueIn} = ? AND name = ? AND uuid <> ?`).pluck();
    const counts = { created: 0, changed: 0, same };
    const sources = new Set<string>();
    for (const { uuid, at, row, before, fields } of planned) {
      const taken = named && uniqueIn !== undefined && row["name"] !== null ? named.get(row[uniqueIn], row["name"], uuid) : undefined;
      if (taken !== undefined) {
        problems.push(`${at}: name: ${row["name"]} is the name of ${taken} already`);
        continue;
      }
      if (problems.length > 0) continue;
      if (typeof row["machine"] === "string") ensureMachine.run(row["machine"], collectors.siteOf(String(row["collector"])));
      (before ? update : insert).run({ uuid, ...row });
      counts[before ? "changed" : "created"]++;
      if (typeof row["collector"] === "string") touched.add(row["collector"]);
      if (typeof row["data_source"] === "string") sources.add(row["data_source"]);
      else recorded(kind, uuid, fields);
      if (kind === "data_sources" || kind === "data_sinks") {
        const missing = secrets(uuid, parted("details", before?.["details"]), parted("details", row["details"]));
        if (missing) warnings.push(`${at}: ${missing}: it is write-only and in no file; set it again`);
      }
    }
    // One entry for all variables of a data source: as many as there are would push everything else out of the trail.
    for (const uuid of sources) {
      forgetCount.run(uuid);
      recorded(kind, uuid, ["variables"]);
    }
    return counts;
  };
  const counts = Object.fromEntries(KINDS.map((kind) => [kind, put(kind)])) as Record<Kind, ImportCounts>;
  for (const collector of touched) collectors.touch(collector);
  return { counts, problems, warnings };
}

const typeOf = (details: string | number | null | undefined): string =>
  typeof details === "string" ? String((JSON.parse(details) as { readonly type: unknown }).type) : "unknown";

interface LooseDetails {
  readonly user_identity?: { readonly type: string };
  readonly password?: { readonly type: string };
  readonly users?: readonly { readonly username: string }[];
}

/** Drops the secrets that a changed record has no place for, and names what it has a place but no secret for. */
function secretsOf(db: Database): (owner: string, before: unknown, after: unknown) => string | undefined {
  const select = db.prepare<[string], string>("SELECT field FROM secrets WHERE owner = ?").pluck();
  const remove = db.prepare<[string, string]>("DELETE FROM secrets WHERE owner = ? AND field = ?");
  return (owner, before, after) => {
    const [old, now] = [(before ?? {}) as LooseDetails, (after ?? {}) as LooseDetails];
    const users = now.users?.map(({ username }) => userSecretName(username)) ?? [];
    const own = now.user_identity?.type === "UserNamePassword" || now.password?.type === "configured" ? ["password"] : [];
    // Another user's password is not this one's.
    const stays = isDeepStrictEqual([old.user_identity, old.password], [now.user_identity, now.password]);
    const places = [...users, ...own];
    const kept = select.all(owner).filter((field) => {
      if (places.includes(field) && (field !== "password" || stays)) return true;
      remove.run(owner, field);
      return false;
    });
    const missing = places.filter((place) => !kept.includes(place));
    return missing.length > 0 ? missing.join(", ") : undefined;
  };
}
