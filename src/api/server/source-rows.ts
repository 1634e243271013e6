import type { Details } from "../../model/details.ts";
import type { DataSourceResponse } from "../../model/resources.ts";
import type { ReadoutState } from "../../model/status.ts";
import type { Database } from "./database.ts";

/** A data source as the database has it. */
export interface SourceRow {
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
  readonly details: string | null;
  readonly variable_discovery: 0 | 1;
  readonly last_readout_at: string | null;
  readonly configured_variables: number;
  readonly state: string;
}

export type StoredSourceRow = SourceRow & { readonly id: number };

export const SELECT_SOURCES = `
  SELECT r.id, r.uuid, r.collector, r.machine, r.type, r.name, r.manufacturer, r.device_model, r.note, r.readout_interval, r.readout_limit,
    r.details, r.variable_discovery, r.last_readout_at, r.state, coalesce(r.reported_variables,
    (SELECT count(*) FROM variables v WHERE v.data_source = r.uuid AND v.status <> 'INACTIVE')) AS configured_variables
  FROM data_sources r`;

/**
 * Keeps the text of each record beside its row, so that a page of them is nothing but joined. Triggers of the schema take it away where
 * something of it changes: who changes a row, or the variables of one, writes it again in the same transaction.
 */
export interface SourceTexts {
  /** The text of a record without one is made from its row each time it is read. */
  renew(uuid: string): void;
  /** Those that are missing; `all`: also those that another version of this program wrote otherwise. */
  renewMany(which: "missing" | "all"): void;
}

export function openSourceTexts(db: Database): SourceTexts {
  const byUuid = db.prepare<[string], StoredSourceRow>(`${SELECT_SOURCES} WHERE r.uuid = ?`);
  const next = db.prepare<[number], StoredSourceRow>(`${SELECT_SOURCES} WHERE r.id > ? ORDER BY r.id LIMIT 1`);
  const nextMissing = db.prepare<[number], StoredSourceRow>(`${SELECT_SOURCES} WHERE r.id > ? AND r.answer IS NULL ORDER BY r.id LIMIT 1`);
  const write = db.prepare<[string, number, string]>("UPDATE data_sources SET answer = ? WHERE id = ? AND answer IS NOT ?");
  const put = (row: StoredSourceRow): void => {
    const text = textOf(row);
    write.run(text, row.id, text);
  };
  return {
    renew(uuid) {
      const row = byUuid.get(uuid);
      if (row) put(row);
    },
    renewMany: db.transaction((which: "missing" | "all") => {
      const statement = which === "all" ? next : nextMissing;
      for (let row = statement.get(0); row; row = statement.get(row.id)) put(row);
    }).immediate,
  };
}

/** The record of a row as JSON. Pure. */
export const textOf = (row: SourceRow): string => JSON.stringify(toSource(row));

export const parseDetails = (text: string | null): Details | null => (text === null ? null : (JSON.parse(text) as Details));

/** The record of a row. Pure. */
export function toSource(row: SourceRow): DataSourceResponse {
  return {
    uuid: row.uuid,
    type: row.type,
    readout_limit: row.readout_limit,
    readout_interval: row.readout_interval,
    readout_status: {
      last_readout_at: row.last_readout_at,
      configured_variables: row.configured_variables,
      state: JSON.parse(row.state) as ReadoutState,
    },
    name: row.name,
    collector: row.collector,
    manufacturer: row.manufacturer,
    device_model: row.device_model,
    note: row.note,
    capabilities: { variable_discovery: row.variable_discovery === 1 },
    machine: row.machine,
    last_readout_at: row.last_readout_at,
    details: parseDetails(row.details),
  };
}
