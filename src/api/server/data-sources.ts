import { randomUUID } from "node:crypto";
import { type Details, toReadDetails } from "../../model/details.ts";
import type { DataSourceCreate, DataSourcePatch, DataSourceResponse, Page, ReadoutStatusReport } from "../../model/resources.ts";
import type { Collectors } from "./collectors.ts";
import type { Database } from "./database.ts";
import { mergeDetails } from "./details.ts";
import { finder, uuidsByCollector } from "./lookup.ts";
import { type PageRequest, pageTextReader, type Reach } from "./pages.ts";
import type { SecretStore } from "./secrets.ts";

/** What a new data source starts with where the creation request has no field for it (design/api-decisions): ten seconds, no limit. */
const READOUT_INTERVAL = { seconds: 10, milliseconds: 10_000 } as const;

export interface DataSources {
  list(request: PageRequest): Page<DataSourceResponse>;
  /** As list, as JSON. */
  listText(request: PageRequest): string;
  /** Throws HttpProblem 404, as every other access by uuid. `reach`: see PageRequest. */
  get(uuid: string, reach: Reach): DataSourceResponse;
  create(request: DataSourceCreate): DataSourceResponse;
  patch(uuid: string, patch: DataSourcePatch): void;
  delete(uuid: string): void;
  /** Takes statuses over; unknown data sources are named, the others are not held up by them. */
  report(reports: ReadoutStatusReport, reach: Reach): { updated: number; unknown: string[] };
  /** Uuids of a collector's data sources. */
  uuidsOf(collector: string): string[];
}

interface StoredRow {
  readonly id: number;
  readonly uuid: string;
  readonly collector: string;
  readonly machine: string;
  readonly type: string;
  readonly name: string;
  readonly manufacturer: string | null;
  readonly device_model: string | null;
  readonly note: string | null;
  readonly readout_interval: number;
  readonly readout_limit: number | null;
  /** JSON. */
  readonly details: string | null;
  readonly variable_discovery: 0 | 1;
  readonly last_readout_at: string | null;
}

/** JSON as it is put together: text that is the same in every record, and SQL of what is not. */
type JsonPart = { readonly text: string } | { readonly sql: string };

/** A text that may hold any character. */
const quoted = (column: keyof StoredRow): JsonPart[] => [{ sql: `json_quote(r.${column})` }];
/** As quoted, often absent: a function is called for what is there alone. */
const quotedOrNull = (column: keyof StoredRow): JsonPart[] => [{ sql: `iif(r.${column} IS NULL, 'null', json_quote(r.${column}))` }];
/** A text whose schema lets nothing in that JSON would escape (uuids, types): quoting takes as long as reading the column. */
const plain = (column: keyof StoredRow): JsonPart[] => [{ text: '"' }, { sql: `r.${column}` }, { text: '"' }];
/** As plain, often absent. */
const plainOrNull = (column: keyof StoredRow): JsonPart[] => [{ sql: `coalesce('"' || r.${column} || '"', 'null')` }];
/** A number, or what is stored as JSON. */
const json = (column: keyof StoredRow | "state"): JsonPart[] => [{ sql: `r.${column}` }];
const jsonOrNull = (column: keyof StoredRow): JsonPart[] => [{ sql: `coalesce(r.${column}, 'null')` }];

function jsonObject<T>(fields: { readonly [F in keyof T]: readonly JsonPart[] }): JsonPart[] {
  const parts = Object.entries<readonly JsonPart[]>(fields).flatMap(([name, value], n) => [
    { text: `${n === 0 ? "{" : ","}"${name}":` },
    ...value,
  ]);
  return [...parts, { text: "}" }];
}

/** SQL of the JSON. Texts in a row become one: each argument of a function costs as much as its characters. */
function sqlOf(parts: readonly JsonPart[]): string {
  const args: string[] = [];
  let text = "";
  const flush = (): void => {
    if (text !== "") args.push(`'${text}'`);
    text = "";
  };
  for (const part of parts) {
    if ("text" in part) {
      text += part.text;
      continue;
    }
    flush();
    args.push(part.sql);
  }
  flush();
  return `concat(${args.join(", ")})`;
}

/**
 * SQL of a record as JSON, as it is answered: making it of a row in this program takes more than twice the time, and SQLite's own `json_object`
 * nearly as long.
 */
const RECORD = sqlOf(
  jsonObject<DataSourceResponse>({
    uuid: plain("uuid"),
    type: plain("type"),
    readout_limit: jsonOrNull("readout_limit"),
    readout_interval: json("readout_interval"),
    readout_status: jsonObject<DataSourceResponse["readout_status"]>({
      last_readout_at: plainOrNull("last_readout_at"),
      configured_variables: [
        {
          sql: `coalesce(r.reported_variables,
            (SELECT count(*) FROM variables v WHERE v.data_source = r.uuid AND v.status <> 'INACTIVE'))`,
        },
      ],
      state: json("state"),
    }),
    name: quoted("name"),
    collector: plain("collector"),
    manufacturer: quotedOrNull("manufacturer"),
    device_model: quotedOrNull("device_model"),
    note: quotedOrNull("note"),
    capabilities: jsonObject<DataSourceResponse["capabilities"]>({
      variable_discovery: [{ sql: "iif(r.variable_discovery, 'true', 'false')" }],
    }),
    machine: plain("machine"),
    last_readout_at: plainOrNull("last_readout_at"),
    details: jsonOrNull("details"),
  }),
);

export function openDataSources(
  db: Database,
  collectors: Collectors,
  secrets: SecretStore,
  intervalUnit: "seconds" | "milliseconds",
): DataSources {
  const listText = pageTextReader(db, {
    operation: "listDataSources",
    table: "data_sources",
    record: RECORD,
    reach: "r.collector",
    filters: { uuid: "r.uuid", machine: "r.machine", collector: "r.collector" },
  });
  const recordByUuid = db.prepare<[string], { collector: string; record: string }>(
    `SELECT r.collector, ${RECORD} AS record FROM data_sources r WHERE r.uuid = ?`,
  );
  const findRecord = finder("data source", recordByUuid, ({ collector }) => collector);
  const get: DataSources["get"] = (uuid, reach) => JSON.parse(findRecord(uuid, reach).record) as DataSourceResponse;
  const ensureMachine = db.prepare<[string, string | null]>("INSERT INTO machines (uuid, site) VALUES (?, ?) ON CONFLICT DO NOTHING");
  const insert = db.prepare(`
    INSERT INTO data_sources (uuid, collector, machine, type, name, manufacturer, device_model, note, readout_interval, details)
    VALUES (@uuid, @collector, @machine, @type, @name, @manufacturer, @device_model, @note, @readout_interval, @details)`);
  const update = db.prepare(`
    UPDATE data_sources SET machine = @machine, type = @type, name = @name, manufacturer = @manufacturer, device_model = @device_model,
      note = @note, readout_interval = @readout_interval, readout_limit = @readout_limit, details = @details,
      version = version + 1
    WHERE uuid = @uuid`);
  const remove = db.prepare<[string]>("DELETE FROM data_sources WHERE uuid = ?");
  const find = finder(
    "data source",
    db.prepare<[string], StoredRow>("SELECT * FROM data_sources WHERE uuid = ?"),
    ({ collector }) => collector,
  );

  return {
    list: (request) => JSON.parse(listText(request)) as Page<DataSourceResponse>,
    listText,
    get,
    create: db.transaction((request: DataSourceCreate) => {
      const uuid = randomUUID();
      const { details, secrets: written } = toReadDetails(request.details);
      ensureMachine.run(request.machine, collectors.siteOf(request.collector));
      insert.run({
        uuid,
        collector: request.collector,
        machine: request.machine,
        type: details.type,
        name: request.name,
        manufacturer: request.manufacturer,
        device_model: request.device_model,
        note: request.note,
        readout_interval: READOUT_INTERVAL[intervalUnit],
        details: JSON.stringify(details),
      });
      secrets.replace(uuid, written);
      collectors.touch(request.collector);
      return get(uuid, undefined);
    }).immediate,
    patch: db.transaction((uuid: string, patch: DataSourcePatch) => {
      const row = find(uuid, undefined);
      const { details, ...fields } = patch;
      const merged =
        details && mergeDetails({ type: row.type, details: parseDetails(row.details), hasPassword: secrets.has(uuid) }, details);
      if (patch.machine !== undefined) ensureMachine.run(patch.machine, collectors.siteOf(row.collector));
      update.run({ ...row, ...fields, details: merged ? JSON.stringify(merged.details) : row.details });
      if (merged?.secrets) secrets.replace(uuid, merged.secrets);
      collectors.touch(row.collector);
    }).immediate,
    delete: db.transaction((uuid: string) => {
      const row = find(uuid, undefined);
      remove.run(uuid);
      secrets.replace(uuid, {});
      collectors.touch(row.collector);
    }).immediate,
    report: reportTaker(db),
    uuidsOf: uuidsByCollector(db, "data_sources"),
  };
}

/** Takes statuses over, all in one transaction. */
function reportTaker(db: Database): DataSources["report"] {
  const byUuid = db.prepare<[string], Pick<StoredRow, "id" | "collector" | "last_readout_at" | "variable_discovery">>(
    "SELECT id, collector, last_readout_at, variable_discovery FROM data_sources WHERE uuid = ?",
  );
  const report = db.prepare(`
    UPDATE data_sources SET state = @state, reported_variables = @configured_variables, last_readout_at = @last_readout_at,
      variable_discovery = @variable_discovery
    WHERE id = @id`);
  return db.transaction((reports: ReadoutStatusReport, reach: Reach) => {
    const unknown: string[] = [];
    for (const { data_source: uuid, readout_status: status, capabilities } of reports) {
      const row = byUuid.get(uuid);
      if (!row || (reach && !reach.includes(row.collector))) {
        unknown.push(uuid);
        continue;
      }
      const { last_readout_at, configured_variables } = status;
      report.run({
        id: row.id,
        state: JSON.stringify(status.state),
        configured_variables,
        // A report without a time says that none was read since its sender started; it takes no earlier time away.
        last_readout_at: last_readout_at ?? row.last_readout_at,
        variable_discovery: capabilities === undefined ? row.variable_discovery : capabilities.variable_discovery ? 1 : 0,
      });
    }
    return { updated: reports.length - unknown.length, unknown };
  }).immediate;
}

const parseDetails = (text: string | null): Details | null => (text === null ? null : (JSON.parse(text) as Details));
