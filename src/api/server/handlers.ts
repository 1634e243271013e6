import type { z } from "zod";
import type { Log } from "../../model/context.ts";
import type { ROUTES } from "../routes/index.ts";
import type { Route } from "../routes/route.ts";
import type { Collectors } from "./collectors.ts";
import type { DataSinks } from "./data-sinks.ts";
import type { DataSources } from "./data-sources.ts";
import { HttpProblem, invalid, notFound } from "./errors.ts";
import { type Etags, matchesNone, requireMatch, type VersionedTable } from "./etags.ts";
import type { Inventory } from "./inventory.ts";
import type { Caller } from "./keys.ts";
import type { Reach } from "./pages.ts";
import type { SecretStore } from "./secrets.ts";
import type { Sites } from "./sites.ts";
import type { ValueStore } from "./values.ts";
import type { Variables } from "./variables.ts";

type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined;

/** A validated request. */
export interface Incoming<R extends Route> {
  readonly params: Parsed<R["params"]>;
  readonly query: Parsed<R["query"]>;
  readonly body: Parsed<R["body"]>;
  readonly caller: Caller;
  /** Where it came from, for the audit trail. */
  readonly address: string;
  /** Nobody on the network reads along: TLS, loopback or the local socket. */
  readonly isPrivate: boolean;
  readonly ifNoneMatch: string | undefined;
  readonly ifMatch: string | undefined;
}

export interface Outgoing {
  readonly status: number;
  readonly body?: unknown;
  /** The body as it is sent, instead of `body`. */
  readonly json?: Buffer;
  /** To be called once when `json` has been sent, or never will be. */
  readonly giveBack?: () => void;
  readonly headers?: Readonly<Record<string, string>>;
  /** To be called once the change is committed. */
  readonly committed?: () => void;
}

export type Handlers = { readonly [O in keyof typeof ROUTES]: (request: Incoming<(typeof ROUTES)[O]>) => Outgoing };

export interface Resources {
  readonly collectors: Collectors;
  readonly collectorRecords: Inventory;
  readonly machines: Inventory;
  readonly sites: Sites;
  readonly dataSources: DataSources;
  readonly dataSinks: DataSinks;
  readonly variables: Variables;
  readonly secrets: SecretStore;
  readonly values: ValueStore;
  readonly etags: Etags;
  readonly log: Log;
}

const ok = (body: unknown): Outgoing => ({ status: 200, body });

/** Keys, collectors, machines and sites change by admin (DESIGN, 6). */
function requireAdmin(caller: Caller): void {
  if (caller.role !== "admin") throw new HttpProblem(403, "this changes with an admin's key alone");
}

/** Of the collector that a key is bound to and of no other: statuses, secrets and values (DESIGN, 6). */
const ownOf = (caller: Caller): Reach => (caller.role === "admin" ? undefined : [caller.collector]);

/** What each operation does. Throws HttpProblem for every answer that is no success. */
export function createHandlers(resources: Resources): Handlers {
  const { collectors, collectorRecords, machines, sites, dataSources, dataSinks, variables, secrets, values, etags, log } = resources;

  /** Collectors whose records a key reaches: those of its site (API-V2, 1; DESIGN, 6). */
  const reachOf = (caller: Caller): Reach => (caller.role === "admin" ? undefined : collectors.atSameSite(caller.collector));
  /** As reachOf, for what is told apart by site; the empty text stands for none. */
  const sitesOf = (caller: Caller): Reach => (caller.role === "admin" ? undefined : [collectors.siteOf(caller.collector) ?? ""]);

  const requireCollector = (uuid: string, caller: Caller): void => {
    const reach = reachOf(caller);
    if (!collectors.exists(uuid) || (reach && !reach.includes(uuid)))
      throw invalid({ loc: ["body", "collector"], msg: "there is no such collector for this key", type: "collector_unknown", input: uuid });
  };

  const record = (table: VersionedTable, status: 200 | 201, body: { readonly uuid: string }): Outgoing => ({
    status,
    body,
    headers: { etag: etags.of(table, body.uuid) },
  });
  /** Changes a record that the key reaches (`found` throws otherwise), and that is as If-Match says. */
  const change = (table: VersionedTable, uuid: string, ifMatch: string | undefined, found: unknown, apply: () => void): Outgoing => {
    if (found === undefined) throw notFound("record");
    requireMatch(ifMatch, etags.of(table, uuid));
    apply();
    return { status: 204, headers: { etag: etags.of(table, uuid) } };
  };
  const remove = (...args: Parameters<typeof change>): Outgoing => {
    const { status } = change(...args);
    return { status };
  };

  return {
    listDataSources: ({ query: { cursor, ...filters }, caller }) => ({
      status: 200,
      ...dataSources.list({ cursor, filters, reach: reachOf(caller) }),
    }),
    createDataSource: ({ body, caller }) => {
      requireCollector(body.collector, caller);
      return record("data_sources", 201, dataSources.create(body));
    },
    getDataSource: ({ params, caller }) => record("data_sources", 200, dataSources.get(params.uuid, reachOf(caller))),
    patchDataSource: ({ params: { uuid }, body, caller, ifMatch }) => {
      const reach = reachOf(caller);
      let committed: (() => void) | undefined;
      const answer = change("data_sources", uuid, ifMatch, dataSources.get(uuid, reach), () => {
        committed = dataSources.patch(uuid, reach, body);
      });
      return { ...answer, ...(committed && { committed }) };
    },
    deleteDataSource: ({ params: { uuid }, caller, ifMatch }) => {
      const reach = reachOf(caller);
      return remove("data_sources", uuid, ifMatch, dataSources.get(uuid, reach), () => dataSources.delete(uuid, reach));
    },

    listDataSinks: ({ query: { cursor, ...filters }, caller }) => ok(dataSinks.list({ cursor, filters, reach: reachOf(caller) })),
    createDataSink: ({ body, caller }) => {
      requireCollector(body.collector, caller);
      return record("data_sinks", 201, dataSinks.create(body));
    },
    getDataSink: ({ params, caller }) => record("data_sinks", 200, dataSinks.get(params.uuid, reachOf(caller))),
    patchDataSink: ({ params: { uuid }, body, caller, ifMatch }) => {
      const reach = reachOf(caller);
      return change("data_sinks", uuid, ifMatch, dataSinks.get(uuid, reach), () => dataSinks.patch(uuid, reach, body));
    },
    deleteDataSink: ({ params: { uuid }, caller, ifMatch }) => {
      const reach = reachOf(caller);
      return remove("data_sinks", uuid, ifMatch, dataSinks.get(uuid, reach), () => dataSinks.delete(uuid, reach));
    },

    listSites: ({ query: { cursor }, caller }) => ok(sites.list({ cursor, filters: {}, reach: sitesOf(caller) })),
    createSite: ({ body, caller }) => {
      requireAdmin(caller);
      return record("sites", 201, sites.create(body));
    },
    getSite: ({ params, caller }) => record("sites", 200, sites.get(params.uuid, sitesOf(caller))),
    patchSite: ({ params: { uuid }, body, caller, ifMatch }) => {
      const found = sites.get(uuid, sitesOf(caller));
      requireAdmin(caller);
      return change("sites", uuid, ifMatch, found, () => sites.patch(uuid, body));
    },
    deleteSite: ({ params: { uuid }, caller, ifMatch }) => {
      const found = sites.get(uuid, sitesOf(caller));
      requireAdmin(caller);
      return remove("sites", uuid, ifMatch, found, () => sites.delete(uuid));
    },

    postValues: ({ body, caller }) => ok(values.take(body, findSource(dataSources, body.data_source, ownOf(caller)))),
    postTimeseries: ({ body, caller }) => ok(values.read(body, caller.role === "admin" ? undefined : caller.collector)),

    getExtensions: () => ok({ extension: "collector", version: 1 }),
    listVariables: ({ query: { cursor, ...filters }, caller }) => ok(variables.list({ cursor, filters, reach: reachOf(caller) })),
    createVariable: ({ body, caller }) => {
      const source = findSource(dataSources, body.data_source, reachOf(caller));
      return record("variables", 201, variables.create(body, source.collector));
    },
    patchVariable: ({ params: { uuid }, body, caller, ifMatch }) => {
      const reach = reachOf(caller);
      return change("variables", uuid, ifMatch, variables.get(uuid, reach), () => variables.patch(uuid, reach, body));
    },
    deleteVariable: ({ params: { uuid }, caller, ifMatch }) => {
      const reach = reachOf(caller);
      return remove("variables", uuid, ifMatch, variables.get(uuid, reach), () => variables.delete(uuid, reach));
    },
    putReadoutStatuses: ({ body, caller }) => ok(dataSources.report(body, ownOf(caller))),
    getRevision: ({ query, caller, ifNoneMatch }) => {
      const reach = reachOf(caller);
      const revision = collectors.revision(query.collector);
      if (revision === undefined || (reach && !reach.includes(query.collector))) throw notFound("collector");
      const headers = { etag: `"${revision}"` };
      return matchesNone(ifNoneMatch, headers.etag) ? { status: 304, headers } : { status: 200, headers, body: { revision } };
    },
    getSecrets: ({ query, caller, isPrivate }) => {
      if (caller.role !== "collector" || caller.collector !== query.collector)
        throw new HttpProblem(403, "secrets are given to the key of that collector alone");
      if (!isPrivate) throw new HttpProblem(403, "secrets are given over TLS or loopback alone");
      const owners = [...dataSources.uuidsOf(query.collector), ...dataSinks.uuidsOf(query.collector)];
      const found = secrets.read(owners);
      log.info({ collector: query.collector, records: Object.keys(found) }, "secrets were read");
      return { status: 200, headers: { "cache-control": "no-store" }, body: { secrets: found } };
    },

    listCollectors: ({ query: { cursor, ...filters }, caller }) => ok(collectorRecords.list({ cursor, filters, reach: reachOf(caller) })),
    createCollector: ({ body, caller }) => {
      requireAdmin(caller);
      return record("collectors", 201, collectorRecords.create(body));
    },
    getCollector: ({ params, caller }) => record("collectors", 200, collectorRecords.get(params.uuid, reachOf(caller))),
    patchCollector: ({ params: { uuid }, body, caller, ifMatch }) => {
      const found = collectorRecords.get(uuid, reachOf(caller));
      requireAdmin(caller);
      return change("collectors", uuid, ifMatch, found, () => collectorRecords.patch(uuid, body));
    },
    deleteCollector: ({ params: { uuid }, caller, ifMatch }) => {
      const found = collectorRecords.get(uuid, reachOf(caller));
      requireAdmin(caller);
      return remove("collectors", uuid, ifMatch, found, () => collectorRecords.delete(uuid));
    },
    listMachines: ({ query: { cursor, ...filters }, caller }) => ok(machines.list({ cursor, filters, reach: sitesOf(caller) })),
    createMachine: ({ body, caller }) => {
      requireAdmin(caller);
      return record("machines", 201, machines.create(body));
    },
    getMachine: ({ params, caller }) => record("machines", 200, machines.get(params.uuid, sitesOf(caller))),
    patchMachine: ({ params: { uuid }, body, caller, ifMatch }) => {
      const found = machines.get(uuid, sitesOf(caller));
      requireAdmin(caller);
      return change("machines", uuid, ifMatch, found, () => machines.patch(uuid, body));
    },
    deleteMachine: ({ params: { uuid }, caller, ifMatch }) => {
      const found = machines.get(uuid, sitesOf(caller));
      requireAdmin(caller);
      return remove("machines", uuid, ifMatch, found, () => machines.delete(uuid));
    },
  };
}

function findSource(dataSources: DataSources, uuid: string, reach: Reach): { readonly collector: string; readonly machine: string } {
  try {
    return dataSources.get(uuid, reach);
  } catch (error) {
    if (!(error instanceof HttpProblem)) throw error;
    throw invalid({
      loc: ["body", "data_source"],
      msg: "there is no such data source for this key",
      type: "data_source_unknown",
      input: uuid,
    });
  }
}
