import { randomUUID } from "node:crypto";
import type { DataSinkCreate, DataSinkPatch, DataSinkResponse, Page } from "../../model/resources.ts";
import { type CreatedSinkDetails, defaultClientId, defaultPublishInterval, type SinkDetails } from "../../model/sink-details.ts";
import type { Collectors } from "./collectors.ts";
import type { Database } from "./database.ts";
import { mergeSinkDetails } from "./details.ts";
import { HttpProblem, notFound } from "./errors.ts";
import { type PageRequest, pageReader } from "./pages.ts";
import type { SecretStore } from "./secrets.ts";

/** `reach`: see PageRequest. Access by uuid throws HttpProblem 404; a name that is taken 409. */
export interface DataSinks {
  list(request: PageRequest): Page<DataSinkResponse>;
  get(uuid: string, reach: readonly string[] | undefined): DataSinkResponse;
  create(request: DataSinkCreate): DataSinkResponse;
  patch(uuid: string, reach: readonly string[] | undefined, patch: DataSinkPatch): void;
  delete(uuid: string, reach: readonly string[] | undefined): void;
  /** Uuids of a collector's data sinks. */
  uuidsOf(collector: string): string[];
}

interface Row {
  readonly id: number;
  readonly uuid: string;
  readonly collector: string;
  readonly name: string | null;
  readonly details: string;
}

export function openDataSinks(
  db: Database,
  collectors: Collectors,
  secrets: SecretStore,
  intervalUnit: "seconds" | "milliseconds",
): DataSinks {
  const select = "SELECT r.* FROM data_sinks r";
  const page = pageReader<Row, DataSinkResponse>(db, "listDataSinks", select, { uuid: "uuid", collector: "collector" }, toResponse);
  const byUuid = db.prepare<[string], Row>(`${select} WHERE r.uuid = ?`);
  const insert = db.prepare("INSERT INTO data_sinks (uuid, collector, name, details) VALUES (@uuid, @collector, @name, @details)");
  const update = db.prepare("UPDATE data_sinks SET name = @name, details = @details WHERE uuid = @uuid");
  const remove = db.prepare<[string]>("DELETE FROM data_sinks WHERE uuid = ?");
  const uuids = db.prepare<[string], { uuid: string }>("SELECT uuid FROM data_sinks WHERE collector = ? ORDER BY id");
  const named = db.prepare<[string, string], { uuid: string }>("SELECT uuid FROM data_sinks WHERE collector = ? AND name = ?");

  const find = (uuid: string, reach: readonly string[] | undefined): Row => {
    const row = byUuid.get(uuid);
    if (!row || (reach && !reach.includes(row.collector))) throw notFound("data sink");
    return row;
  };
  const requireFreeName = (uuid: string, collector: string, name: string | null | undefined): void => {
    if (name === null || name === undefined) return;
    const taken = named.get(collector, name);
    if (taken && taken.uuid !== uuid)
      throw new HttpProblem(409, `the name is taken by data sink ${taken.uuid} of this collector: choose another one`);
  };
  const complete = (uuid: string, details: CreatedSinkDetails): SinkDetails => ({
    ...details,
    client_id: details.client_id ?? defaultClientId(uuid),
    publish_interval: details.publish_interval ?? defaultPublishInterval(intervalUnit),
  });

  return {
    list: page,
    get: (uuid, reach) => toResponse(find(uuid, reach)),
    create: db.transaction((request: DataSinkCreate) => {
      const uuid = randomUUID();
      requireFreeName(uuid, request.collector, request.name);
      insert.run({
        uuid,
        collector: request.collector,
        name: request.name,
        details: JSON.stringify(complete(uuid, request.details)),
      });
      collectors.touch(request.collector);
      return toResponse(find(uuid, undefined));
    }).immediate,
    patch: db.transaction((uuid: string, reach: readonly string[] | undefined, patch: DataSinkPatch) => {
      const row = find(uuid, reach);
      requireFreeName(uuid, row.collector, patch.name);
      const stored = parseDetails(row.details);
      const details = patch.details ? mergeSinkDetails(stored.type, stored, patch.details) : stored;
      update.run({ uuid, name: patch.name ?? row.name, details: JSON.stringify(details) });
      collectors.touch(row.collector);
    }).immediate,
    delete: db.transaction((uuid: string, reach: readonly string[] | undefined) => {
      const row = find(uuid, reach);
      remove.run(uuid);
      secrets.replace(uuid, {});
      collectors.touch(row.collector);
    }).immediate,
    uuidsOf: (collector) => uuids.all(collector).map(({ uuid }) => uuid),
  };
}

const parseDetails = (text: string): SinkDetails => JSON.parse(text) as SinkDetails;

function toResponse(row: Row): DataSinkResponse {
  const details = parseDetails(row.details);
  return { uuid: row.uuid, name: row.name, collector: row.collector, type: details.type, details };
}
