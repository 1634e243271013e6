import { isDeepStrictEqual } from "node:util";
import { placeChanges, secretPlace } from "../../model/secret-place.ts";
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

/** How a kind is stored in its table. */
interface Table {
  /** Columns that come from the record, with the uuid. */
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

/** Thrown to roll back a transaction whose result is of use all the same. */
class Rollback extends Error {
  readonly result: Imported;
  constructor(result: Imported) {
    super("rolled back");
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
    const recorded: Recorded = (kind, uuid, fields) => audit.record(actor, TABLES[kind].operation, uuid, fields);
    const result = new Import(db, collectors, records, recorded).run();
    if (dryRun || result.problems.length > 0) throw new Rollback(result);
    return result;
  });
  try {
    return transaction.immediate();
  } catch (error) {
    if (error instanceof Rollback) return error.result;
    throw error;
  }
}

type Recorded = (kind: Kind, uuid: string, fields: readonly string[]) => void;

/** A record that is to be written. */
interface PlannedRow {
  readonly uuid: string;
  /** The place where it is in the file, for messages. */
  readonly at: string;
  readonly row: Values;
  readonly before: Values | undefined;
  /** Those that change. */
  readonly fields: readonly string[];
}

/** One import, within a transaction: every kind is planned, then written as long as there is no problem. */
class Import {
  readonly #db: Database;
  readonly #collectors: Collectors;
  readonly #records: ImportedRecords;
  readonly #recorded: Recorded;
  readonly #problems: string[] = [];
  readonly #warnings: string[] = [];
  /** Collectors whose configuration changes. */
  readonly #touched = new Set<string>();
  readonly #statements: ReturnType<typeof prepareStatements>;
  readonly #missingSecrets: ReturnType<typeof secretsOf>;

  constructor(db: Database, collectors: Collectors, records: ImportedRecords, recorded: Recorded) {
    this.#db = db;
    this.#collectors = collectors;
    this.#records = records;
    this.#recorded = recorded;
    this.#statements = prepareStatements(db);
    this.#missingSecrets = secretsOf(db);
  }

  run(): Imported {
    const counts = Object.fromEntries(KINDS.map((kind) => [kind, this.#put(kind)])) as Record<Kind, ImportCounts>;
    for (const collector of this.#touched) this.#collectors.touch(collector);
    return { counts, problems: this.#problems, warnings: this.#warnings };
  }

  #put(kind: Kind): ImportCounts {
    const { planned, same } = this.#plan(kind);
    this.#setNamesAside(kind, planned);
    return { ...this.#write(kind, planned), same };
  }

  #plan(kind: Kind): { readonly planned: readonly PlannedRow[]; readonly same: number } {
    const { columns } = TABLES[kind];
    const select = this.#db.prepare<[string], Values>(`SELECT ${columns.join(", ")} FROM ${kind} WHERE uuid = ?`);
    const planned: PlannedRow[] = [];
    let same = 0;
    for (const [n, record] of this.#records[kind].entries()) {
      const { uuid } = record;
      const at = `${kind}[${n}]${record.name === null ? "" : ` (${record.name})`}`;
      const row = this.#rowOf(kind, record, at);
      if (!row) continue;
      const before = select.get(uuid);
      const fields = columns.filter((one) => before && !isDeepStrictEqual(parted(kind, one, row[one]), parted(kind, one, before[one])));
      this.#refuseFixed(kind, record, { uuid, at, row, before, fields });
      if (before && fields.length === 0) same++;
      else planned.push({ uuid, at, row, before, fields: before ? fields : columns.filter((one) => row[one] !== null) });
    }
    return { planned, same };
  }

  /** The row of a record; undefined where it refers to a record that does not exist, which is a problem then. */
  #rowOf(kind: Kind, record: ImportedRecords[Kind][number], at: string): Values | undefined {
    const { columns, json } = TABLES[kind];
    const { hasSite, hasCollector, collectorOf } = this.#statements;
    const fields: Record<string, unknown> = { ...record };
    if ("site" in record && record.site !== null && hasSite.get(record.site) === undefined) {
      this.#problems.push(`${at}: site: there is no site ${record.site}, here or in the file`);
      return undefined;
    }
    if ("collector" in record && hasCollector.get(record.collector) === undefined) {
      this.#problems.push(
        `${at}: collector: there is no collector ${record.collector}, here or in the file; --adopt gives all records to this machine's own`,
      );
      return undefined;
    }
    if ("data_source" in record) {
      const collector = collectorOf.get(record.data_source);
      if (collector === undefined) {
        this.#problems.push(`${at}: data_source: there is no data source ${record.data_source}, here or in the file`);
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
  }

  #refuseFixed(kind: Kind, record: ImportedRecords[Kind][number], { at, row, before, fields }: PlannedRow): void {
    for (const one of fields.filter((field) => TABLES[kind].fixed.includes(field)))
      this.#problems.push(`${at}: ${one}: is ${before?.[one]} here, and cannot change to ${row[one]}`);
    if (kind === "data_sinks" && "details" in record && before && typeOf(before["details"]) !== record.type)
      this.#problems.push(`${at}: type: is ${typeOf(before["details"])} here, and cannot change to ${record.type}`);
  }

  /** Names that are exchanged between records would be taken for the moment. */
  #setNamesAside(kind: Kind, planned: readonly PlannedRow[]): void {
    if (TABLES[kind].uniqueIn === undefined) return;
    const setAside = this.#db.prepare<[string]>(`UPDATE ${kind} SET name = uuid WHERE uuid = ?`);
    for (const { uuid, before, fields } of planned) if (before && fields.includes("name")) setAside.run(uuid);
  }

  #write(kind: Kind, planned: readonly PlannedRow[]): Omit<ImportCounts, "same"> {
    const { insert, update } = prepareWrites(this.#db, kind);
    const nameOwner = this.#nameOwner(kind);
    const counts = { created: 0, changed: 0 };
    const sources = new Set<string>();
    for (const { uuid, at, row, before, fields } of planned) {
      const taken = nameOwner(uuid, row);
      if (taken !== undefined) this.#problems.push(`${at}: name: ${row["name"]} is the name of ${taken} already`);
      if (this.#problems.length > 0) continue;
      if (typeof row["machine"] === "string")
        this.#statements.ensureMachine.run(row["machine"], this.#collectors.siteOf(String(row["collector"])));
      (before ? update : insert).run({ uuid, ...row });
      counts[before ? "changed" : "created"]++;
      if (typeof row["collector"] === "string") this.#touched.add(row["collector"]);
      if (typeof row["data_source"] === "string") sources.add(row["data_source"]);
      else this.#recorded(kind, uuid, fields);
      if (kind === "data_sources" || kind === "data_sinks") this.#checkSecrets(kind, { uuid, at, row, before, fields });
    }
    // One entry for all variables of a data source: as many as there are would push everything else out of the trail.
    for (const uuid of sources) {
      this.#statements.forgetCount.run(uuid);
      this.#recorded(kind, uuid, ["variables"]);
    }
    return counts;
  }

  /** Which other record has the name of a row, where names are unique. */
  #nameOwner(kind: Kind): (uuid: string, row: Values) => string | undefined {
    const { uniqueIn } = TABLES[kind];
    if (uniqueIn === undefined) return () => undefined;
    const named = this.#db
      .prepare<[unknown, unknown, string], string>(`SELECT uuid FROM ${kind} WHERE ${uniqueIn} = ? AND name = ? AND uuid <> ?`)
      .pluck();
    return (uuid, row) => (row["name"] === null ? undefined : named.get(row[uniqueIn], row["name"], uuid));
  }

  #checkSecrets(kind: Kind, { uuid, at, row, before }: PlannedRow): void {
    const missing = this.#missingSecrets(uuid, parted(kind, "details", before?.["details"]), parted(kind, "details", row["details"]));
    if (missing) this.#warnings.push(`${at}: ${missing}: it is write-only and in no file; set it again`);
  }
}

function prepareStatements(db: Database) {
  return {
    hasSite: db.prepare<[string], number>("SELECT 1 FROM sites WHERE uuid = ?").pluck(),
    hasCollector: db.prepare<[string], number>("SELECT 1 FROM collectors WHERE uuid = ?").pluck(),
    collectorOf: db.prepare<[string], string>("SELECT collector FROM data_sources WHERE uuid = ?").pluck(),
    ensureMachine: db.prepare<[string, string | null]>("INSERT INTO machines (uuid, site) VALUES (?, ?) ON CONFLICT DO NOTHING"),
    forgetCount: db.prepare<[string]>("UPDATE data_sources SET reported_variables = NULL WHERE uuid = ?"),
  };
}

function prepareWrites(db: Database, kind: Kind) {
  const { columns } = TABLES[kind];
  return {
    insert: db.prepare(`INSERT INTO ${kind} (uuid, ${columns.join(", ")}) VALUES (@uuid, ${columns.map((one) => `@${one}`).join(", ")})`),
    update: db.prepare(
      `UPDATE ${kind} SET ${columns.map((one) => `${one} = @${one}`).join(", ")}, version = version + 1 WHERE uuid = @uuid`,
    ),
  };
}

/** The content of a column that holds JSON, the value of another. */
const parted = (kind: Kind, column: string, value: string | number | null | undefined): unknown =>
  TABLES[kind].json.includes(column) && typeof value === "string" ? JSON.parse(value) : value;

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
    const [from, to] = [secretPlace(before), secretPlace(after)];
    // Neither another user's password nor one for another address is this one's.
    const isSamePlace = !to || (from !== undefined && placeChanges(from, to).length === 0);
    const stays = isSamePlace && isDeepStrictEqual([old.user_identity, old.password], [now.user_identity, now.password]);
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
