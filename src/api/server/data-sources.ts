import { randomUUID } from "node:crypto";
import { toReadDetails } from "../../model/details.ts";
import type { DataSourceCreate, DataSourcePatch, DataSourceResponse, Page, ReadoutStatusReport } from "../../model/resources.ts";
import type { ReadoutState } from "../../model/status.ts";
import type { Collectors } from "./collectors.ts";
import { atomic, type Database } from "./database.ts";
import { mergeDetails } from "./details.ts";
import { finder, uuidsByCollector } from "./lookup.ts";
import type { PageText } from "./page-buffers.ts";
import { type PageRequest, pageReader, pageTextReader, type Reach } from "./pages.ts";
import type { SecretStore } from "./secrets.ts";
import { openSourceTexts, parseDetails, SELECT_SOURCES, type SourceRow, type StoredSourceRow, textOf, toSource } from "./source-rows.ts";

/** What a new data source starts with where the creation request has no field for it (DESIGN, 6): ten seconds, no limit. */
const READOUT_INTERVAL = { seconds: 10, milliseconds: 10_000 } as const;

export interface DataSources {
  list(request: PageRequest): Page<DataSourceResponse>;
  /** As list, each record as JSON. */
  listText(request: PageRequest): PageText;
  /** Throws HttpProblem 404, as every other access by uuid. `reach`: see PageRequest. */
  get(uuid: string, reach: Reach): DataSourceResponse;
  /** `text`: the record as JSON. */
  create(request: DataSourceCreate): { readonly record: DataSourceResponse; readonly text: string };
  patch(uuid: string, patch: DataSourcePatch): void;
  delete(uuid: string): void;
  /** Takes statuses over; unknown data sources are named, the others are not held up by them. */
  report(reports: ReadoutStatusReport, reach: Reach): { updated: number; unknown: string[] };
  /** Uuids of a collector's data sources. */
  uuidsOf(collector: string): string[];
}

/** What the creation request has no field for, as the database has it. */
const NEW = {
  readout_limit: null,
  variable_discovery: 0,
  last_readout_at: null,
  configured_variables: 0,
  state: JSON.stringify({ type: "UNKNOWN" } satisfies ReadoutState),
} as const;

export function openDataSources(
  db: Database,
  collectors: Collectors,
  secrets: SecretStore,
  intervalUnit: "seconds" | "milliseconds",
): DataSources {
  const byUuid = db.prepare<[string], StoredSourceRow>(`${SELECT_SOURCES} WHERE r.uuid = ?`);
  const byId = db.prepare<[number], StoredSourceRow>(`${SELECT_SOURCES} WHERE r.id = ?`);
  const texts = openSourceTexts(db);
  const ensureMachine = db.prepare<[string, string | null]>("INSERT INTO machines (uuid, site) VALUES (?, ?) ON CONFLICT DO NOTHING");
  const insert = db.prepare(`
    INSERT INTO data_sources (uuid, collector, machine, type, name, manufacturer, device_model, note, readout_interval, readout_limit, details,
      variable_discovery, last_readout_at, state, answer)
    VALUES (@uuid, @collector, @machine, @type, @name, @manufacturer, @device_model, @note, @readout_interval, @readout_limit, @details,
      @variable_discovery, @last_readout_at, @state, @answer)`);
  const update = db.prepare(`
    UPDATE data_sources SET machine = @machine, type = @type, name = @name, manufacturer = @manufacturer, device_model = @device_model,
      note = @note, readout_interval = @readout_interval, readout_limit = @readout_limit, details = @details,
      version = version + 1
    WHERE uuid = @uuid`);
  const remove = db.prepare<[string]>("DELETE FROM data_sources WHERE uuid = ?");
  const find = finder("data source", byUuid, ({ collector }) => collector);

  const paged = {
    operation: "listDataSources",
    reach: "r.collector",
    filters: { uuid: "r.uuid", machine: "r.machine", collector: "r.collector" },
  };
  return {
    list: pageReader<StoredSourceRow, DataSourceResponse>(db, { ...paged, select: SELECT_SOURCES, toRecord: toSource }),
    listText: pageTextReader(db, {
      ...paged,
      select: "SELECT r.id, r.answer FROM data_sources r",
      textOf: (id) => textIn(byId.get(id)),
    }),
    get: (uuid, reach) => toSource(find(uuid, reach)),
    create: atomic(db, (request: DataSourceCreate) => {
      const uuid = randomUUID();
      const { details, secrets: written } = toReadDetails(request.details);
      ensureMachine.run(request.machine, collectors.siteOf(request.collector));
      const row: SourceRow = {
        ...NEW,
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
      };
      const record = toSource(row);
      const text = JSON.stringify(record);
      insert.run({ ...row, answer: text });
      secrets.replace(uuid, written);
      collectors.touch(request.collector);
      return { record, text };
    }),
    patch: atomic(db, (uuid: string, patch: DataSourcePatch) => {
      const row = find(uuid, undefined);
      const { details, ...fields } = patch;
      const merged =
        details && mergeDetails({ type: row.type, details: parseDetails(row.details), hasPassword: secrets.has(uuid) }, details);
      if (patch.machine !== undefined) ensureMachine.run(patch.machine, collectors.siteOf(row.collector));
      update.run({ ...row, ...fields, details: merged ? JSON.stringify(merged.details) : row.details });
      texts.renew(uuid);
      if (merged?.secrets) secrets.replace(uuid, merged.secrets);
      collectors.touch(row.collector);
    }),
    delete: atomic(db, (uuid: string) => {
      const row = find(uuid, undefined);
      remove.run(uuid);
      secrets.replace(uuid, {});
      collectors.touch(row.collector);
    }),
    report: reportTaker(db, byUuid),
    uuidsOf: uuidsByCollector(db, "data_sources"),
  };
}

/** Of a record that was there a moment ago, in the same run of synchronous code. */
function textIn(row: SourceRow | undefined): string {
  if (!row) throw new Error("a data source went away while its page was read");
  return textOf(row);
}

/** Takes statuses over, all in one transaction. */
function reportTaker(db: Database, byUuid: { get(uuid: string): StoredSourceRow | undefined }): DataSources["report"] {
  const report = db.prepare(`
    UPDATE data_sources SET state = @state, reported_variables = @configured_variables, last_readout_at = @last_readout_at,
      variable_discovery = @variable_discovery, answer = @answer
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
      const reported: StoredSourceRow = {
        ...row,
        state: JSON.stringify(status.state),
        configured_variables,
        // A report without a time says that none was read since its sender started; it takes no earlier time away.
        last_readout_at: last_readout_at ?? row.last_readout_at,
        variable_discovery: capabilities === undefined ? row.variable_discovery : capabilities.variable_discovery ? 1 : 0,
      };
      report.run({ ...reported, answer: textOf(reported) });
    }
    return { updated: reports.length - unknown.length, unknown };
  }).immediate;
}
