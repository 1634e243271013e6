import { randomUUID } from "node:crypto";
import type { z } from "zod";
import type { Page } from "../../model/resources.ts";
import type { Variable, variableCreateSchema } from "../../model/variable.ts";
import type { VariablePatch, VariablesBatch, variablesChangedSchema } from "../routes/extensions.ts";
import type { Collectors } from "./collectors.ts";
import type { Database } from "./database.ts";
import { notFound } from "./errors.ts";
import { finder, nameCheck } from "./lookup.ts";
import { type PageRequest, pageReader, type Reach } from "./pages.ts";

type VariableCreate = z.output<typeof variableCreateSchema>;

/** `reach`: see PageRequest. Access by uuid throws HttpProblem 404; a name that is taken in its data source 409. */
export interface Variables {
  list(request: PageRequest): Page<Variable>;
  /** Throws HttpProblem 404. */
  get(uuid: string, reach: Reach): Variable;
  /** The data source must be there. */
  create(request: VariableCreate, collector: string): Variable;
  patch(uuid: string, patch: VariablePatch): void;
  delete(uuid: string): void;
  /** All of it, or nothing. The data source must be there; a variable of another one is HttpProblem 404. */
  changeMany(batch: VariablesBatch, collector: string): z.output<typeof variablesChangedSchema>;
  /** The data source of a variable; undefined: there is no such variable. */
  sourceOf(uuid: string): string | undefined;
}

interface Row extends Omit<Variable, "scaling"> {
  readonly id: number;
  readonly collector: string;
  readonly scaling: string | null;
}

export function openVariables(db: Database, collectors: Collectors): Variables {
  const select = `
    SELECT r.id, r.uuid, r.data_source, r.collector, r.name, r.address, r.type, r.unit, r.scaling, r.comment, r.status FROM variables r`;
  const page = pageReader<Row, Variable>(db, {
    operation: "listVariables",
    select,
    reach: "r.collector",
    filters: { data_source: "r.data_source", collector: "r.collector" },
    toRecord: toResponse,
  });
  const byUuid = db.prepare<[string], Row>(`${select} WHERE r.uuid = ?`);
  const sourceOf = db.prepare<[string], string>("SELECT data_source FROM variables WHERE uuid = ?").pluck();
  const insert = db.prepare(`
    INSERT INTO variables (uuid, data_source, collector, name, address, type, unit, scaling, comment, status)
    VALUES (@uuid, @data_source, @collector, @name, @address, @type, @unit, @scaling, @comment, @status)`);
  const update = db.prepare(`
    UPDATE variables SET name = @name, address = @address, type = @type, unit = @unit, scaling = @scaling, comment = @comment,
      status = @status, version = version + 1 WHERE uuid = @uuid`);
  const remove = db.prepare<[string]>("DELETE FROM variables WHERE uuid = ?");
  // What the collector counted before the change no longer holds; it reports the new count itself.
  const forgetCount = db.prepare<[string]>("UPDATE data_sources SET reported_variables = NULL WHERE uuid = ?");

  const find = finder("variable", byUuid, ({ collector }) => collector);
  const requireFreeName = nameCheck(db, "variables", "data_source", { what: "variable", within: "data source" });
  const changed = (row: Pick<Row, "data_source" | "collector">): void => {
    forgetCount.run(row.data_source);
    collectors.touch(row.collector);
  };

  const create = (request: VariableCreate, collector: string): string => {
    const uuid = randomUUID();
    requireFreeName(uuid, request.data_source, request.name);
    insert.run({ ...request, uuid, collector, scaling: toText(request.scaling) });
    return uuid;
  };
  const patchRow = (row: Row, patch: VariablePatch): void => {
    requireFreeName(row.uuid, row.data_source, patch.name);
    update.run({ ...row, ...patch, scaling: patch.scaling === undefined ? row.scaling : toText(patch.scaling) });
  };

  return {
    list: page,
    get: (uuid, reach) => toResponse(find(uuid, reach)),
    create: db.transaction((request: VariableCreate, collector: string) => {
      const uuid = create(request, collector);
      changed({ data_source: request.data_source, collector });
      return toResponse(find(uuid, undefined));
    }).immediate,
    patch: db.transaction((uuid: string, patch: VariablePatch) => {
      const row = find(uuid, undefined);
      patchRow(row, patch);
      changed(row);
    }).immediate,
    delete: db.transaction((uuid: string) => {
      const row = find(uuid, undefined);
      remove.run(uuid);
      changed(row);
    }).immediate,
    changeMany: db.transaction((batch: VariablesBatch, collector: string) => {
      const { data_source } = batch;
      const own = (uuid: string): Row => {
        const row = find(uuid, undefined);
        if (row.data_source !== data_source) throw notFound("variable");
        return row;
      };
      for (const uuid of batch.delete) remove.run(own(uuid).uuid);
      for (const { uuid, ...patch } of batch.change) patchRow(own(uuid), patch);
      for (const input of batch.create) create({ ...input, data_source }, collector);
      changed({ data_source, collector });
      return { deleted: batch.delete.length, changed: batch.change.length, created: batch.create.length };
    }).immediate,
    sourceOf: (uuid) => sourceOf.get(uuid),
  };
}

const toText = (scaling: Variable["scaling"]): string | null => (scaling === null ? null : JSON.stringify(scaling));

function toResponse({ id: _, collector: __, ...row }: Row): Variable {
  return { ...row, scaling: row.scaling === null ? null : (JSON.parse(row.scaling) as Variable["scaling"]) };
}
