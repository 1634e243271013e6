import { randomUUID } from "node:crypto";
import type { DataSinkCreate, DataSinkPatch, DataSinkResponse, Page } from "../../model/resources.ts";
import { defaultClientId, defaultPublishInterval, type SinkDetails, toReadSinkDetails } from "../../model/sink-details.ts";
import type { Collectors } from "./collectors.ts";
import type { Database } from "./database.ts";
import { mergeSinkDetails } from "./details.ts";
import { finder, nameCheck, uuidsByCollector } from "./lookup.ts";
import { type PageRequest, pageReader, type Reach } from "./pages.ts";
import type { SecretStore } from "./secrets.ts";

/** `reach`: see PageRequest. Access by uuid throws HttpProblem 404; a name that is taken 409. */
export interface DataSinks {
  list(request: PageRequest): Page<DataSinkResponse>;
  get(uuid: string, reach: Reach): DataSinkResponse;
  create(request: DataSinkCreate): DataSinkResponse;
  patch(uuid: string, patch: DataSinkPatch): void;
  delete(uuid: string): void;
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
  const page = pageReader<Row, DataSinkResponse>(db, {
    operation: "listDataSinks",
    select,
    reach: "r.collector",
    filters: { uuid: "r.uuid", collector: "r.collector" },
    toRecord: toResponse,
  });
  const byUuid = db.prepare<[string], Row>(`${select} WHERE r.uuid = ?`);
  const insert = db.prepare("INSERT INTO data_sinks (uuid, collector, name, details) VALUES (@uuid, @collector, @name, @details)");
  const update = db.prepare("UPDATE data_sinks SET name = @name, details = @details, version = version + 1 WHERE uuid = @uuid");
  const remove = db.prepare<[string]>("DELETE FROM data_sinks WHERE uuid = ?");

  const find = finder("data sink", byUuid, ({ collector }) => collector);
  const requireFreeName = nameCheck(db, "data_sinks", "collector", { what: "data sink", within: "collector" });
  /** With what the server fills in (design/api-decisions). */
  const complete = (uuid: string, details: SinkDetails): SinkDetails => {
    if (details.type === "opcua") return details;
    const publish_interval = details.publish_interval ?? defaultPublishInterval(intervalUnit);
    return details.type === "mqtt"
      ? { ...details, publish_interval, client_id: details.client_id ?? defaultClientId(uuid) }
      : { ...details, publish_interval };
  };

  return {
    list: page,
    get: (uuid, reach) => toResponse(find(uuid, reach)),
    create: db.transaction((request: DataSinkCreate) => {
      const uuid = randomUUID();
      requireFreeName(uuid, request.collector, request.name);
      const { details, secrets: written } = toReadSinkDetails(request.details);
      insert.run({
        uuid,
        collector: request.collector,
        name: request.name,
        details: JSON.stringify(complete(uuid, details)),
      });
      secrets.replace(uuid, written);
      collectors.touch(request.collector);
      return toResponse(find(uuid, undefined));
    }).immediate,
    patch: db.transaction((uuid: string, patch: DataSinkPatch) => {
      const row = find(uuid, undefined);
      requireFreeName(uuid, row.collector, patch.name);
      const stored = parseDetails(row.details);
      const merged = patch.details && mergeSinkDetails(stored.type, stored, patch.details);
      update.run({ uuid, name: patch.name ?? row.name, details: JSON.stringify(merged?.details ?? stored) });
      if (merged?.secrets) secrets.replace(uuid, merged.secrets);
      collectors.touch(row.collector);
    }).immediate,
    delete: db.transaction((uuid: string) => {
      const row = find(uuid, undefined);
      remove.run(uuid);
      secrets.replace(uuid, {});
      collectors.touch(row.collector);
    }).immediate,
    uuidsOf: uuidsByCollector(db, "data_sinks"),
  };
}

const parseDetails = (text: string): SinkDetails => JSON.parse(text) as SinkDetails;

function toResponse(row: Row): DataSinkResponse {
  const details = parseDetails(row.details);
  return { uuid: row.uuid, name: row.name, collector: row.collector, type: details.type, details };
}
