import type { z } from "zod";
import type { Log } from "../../model/context.ts";
import { CLOCK_OF_LOSSES, CLOCK_OF_VALUES, NULLS_IN_VALUES } from "../routes/extensions.ts";
import type { ROUTES } from "../routes/index.ts";
import type { Route } from "../routes/route.ts";
import type { Collectors } from "./collectors.ts";
import type { DataSinks } from "./data-sinks.ts";
import type { DataSources } from "./data-sources.ts";
import { HttpProblem, invalid, notFound } from "./errors.ts";
import { type Etags, matchesNone, requireMatch, type VersionedTable } from "./etags.ts";
import type { Inventory } from "./inventory.ts";
import type { Caller } from "./keys.ts";
import type { MachineReach } from "./machine-reach.ts";
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
  /** The place where it came from, for the audit trail. */
  readonly address: string;
  /** The operating system's user, as a command line on this machine says. */
  readonly osUser?: string | undefined;
  /** Nobody on the network reads along: TLS, loopback or the local socket. */
  readonly isPrivate: boolean;
  readonly ifNoneMatch: string | undefined;
  readonly ifMatch: string | undefined;
}

export interface Outgoing {
  readonly status: number;
  readonly body?: unknown;
  /** The body as JSON, instead of it. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Handlers = { readonly [O in keyof typeof ROUTES]: (request: Incoming<(typeof ROUTES)[O]>) => Outgoing };

export interface Resources {
  readonly collectors: Collectors;
  readonly collectorRecords: Inventory;
  readonly machines: Inventory;
  readonly machineReach: MachineReach;
  readonly sites: Sites;
  readonly dataSources: DataSources;
  readonly dataSinks: DataSinks;
  readonly variables: Variables;
  readonly secrets: SecretStore;
  readonly values: ValueStore;
  readonly etags: Etags;
  readonly log: Log;
}

/** Of a request for one record. */
type OfOne = Pick<Incoming<Route>, "caller" | "ifMatch" | "ifNoneMatch"> & { readonly params: { readonly uuid: string } };

/** Records of one table, by their uuid. */
interface Records<P> {
  get(uuid: string, reach: Reach): { readonly uuid: string };
  patch(uuid: string, patch: P): void;
  delete(uuid: string): void;
}

const ok = (body: unknown): Outgoing => ({ status: 200, body });

/** Keys, collectors, machines and sites change by admin (design/api-decisions). */
function requireAdmin(caller: Caller): void {
  if (caller.role !== "admin") throw new HttpProblem(403, "only an admin key may change this");
}

/** Of the collector that a key is bound to and of no other: statuses, secrets and values (design/api-decisions). */
const ownOf = (caller: Caller): Reach => (caller.role === "admin" ? undefined : [caller.collector]);

/** What handlers share: what a key reaches, and how one record is answered and changed. */
class HandlerBasics {
  readonly #collectors: Collectors;
  readonly #machineReach: MachineReach;
  readonly #etags: Etags;

  constructor({ collectors, machineReach, etags }: Pick<Resources, "collectors" | "machineReach" | "etags">) {
    this.#collectors = collectors;
    this.#machineReach = machineReach;
    this.#etags = etags;
  }

  /** Collectors whose records a key reaches: those of its site (API-V2, 1; design/api-decisions). */
  readonly reachOf = (caller: Caller): Reach => (caller.role === "admin" ? undefined : this.#collectors.atSameSite(caller.collector));

  /** Works as reachOf does, for what belongs to a site; the empty text means none. */
  readonly sitesOf = (caller: Caller): Reach => (caller.role === "admin" ? undefined : [this.#collectors.siteOf(caller.collector) ?? ""]);

  requireCollector(uuid: string, caller: Caller): void {
    const reach = this.reachOf(caller);
    if (!this.#collectors.exists(uuid) || (reach && !reach.includes(uuid)))
      throw invalid({ loc: ["body", "collector"], msg: "there is no such collector for this key", type: "collector_unknown", input: uuid });
  }

  /** A machine of another site, or one that another site's sources use, is out of reach of a collector's key; one that is not known is recorded. */
  requireMachine(uuid: string, caller: Caller): void {
    if (caller.role === "admin") return;
    if (this.#machineReach(uuid, this.#collectors.siteOf(caller.collector))) return;
    throw invalid({ loc: ["body", "machine"], msg: "the machine belongs to another site", type: "machine_out_of_reach", input: uuid });
  }

  created(table: VersionedTable, body: { readonly uuid: string }): Outgoing {
    return { status: 201, body, headers: { etag: this.#etags.ofContent(table, body) } };
  }

  /** What is done with one record of a table, within reach. `mayChange` throws HttpProblem where the key may not. */
  handlersOf<P>(
    table: VersionedTable,
    records: Records<P>,
    reach: (caller: Caller) => Reach,
    mayChange: (caller: Caller) => void = () => {},
  ) {
    const etags = this.#etags;
    const found = (uuid: string, caller: Caller): void => {
      // A record out of reach is absent, also for who may not change it.
      records.get(uuid, reach(caller));
      mayChange(caller);
    };
    return {
      get: ({ params: { uuid }, caller, ifNoneMatch }: OfOne): Outgoing => {
        const record = records.get(uuid, reach(caller));
        const headers = { etag: etags.ofContent(table, record) };
        return matchesNone(ifNoneMatch, headers.etag) ? { status: 304, headers } : { status: 200, headers, body: record };
      },
      patch: ({ params: { uuid }, body, caller, ifMatch }: OfOne & { readonly body: P }): Outgoing => {
        found(uuid, caller);
        requireMatch(ifMatch, etags.of(table, uuid));
        records.patch(uuid, body);
        return { status: 204, headers: { etag: etags.of(table, uuid) } };
      },
      delete: ({ params: { uuid }, caller, ifMatch }: OfOne): Outgoing => {
        found(uuid, caller);
        requireMatch(ifMatch, etags.of(table, uuid));
        records.delete(uuid);
        return { status: 204 };
      },
    };
  }
}

/** What each operation does. Throws HttpProblem for every answer but a success. */
export function createHandlers(resources: Resources): Handlers {
  const common = new HandlerBasics(resources);
  return {
    ...sourceHandlers(resources, common),
    ...sinkHandlers(resources, common),
    ...siteHandlers(resources, common),
    ...valueHandlers(resources, common),
    ...extensionHandlers(resources, common),
    ...inventoryHandlers(resources, common),
  };
}

function sourceHandlers({ dataSources }: Resources, common: HandlerBasics) {
  const ofSources = common.handlersOf("data_sources", dataSources, common.reachOf);
  return {
    listDataSources: ({ query: { cursor, ...filters }, caller }) => ({
      status: 200,
      text: dataSources.listText({ cursor, filters, reach: common.reachOf(caller) }),
    }),
    createDataSource: ({ body, caller }) => {
      common.requireCollector(body.collector, caller);
      common.requireMachine(body.machine, caller);
      return common.created("data_sources", dataSources.create(body));
    },
    getDataSource: ofSources.get,
    patchDataSource: (request) => {
      const { params, body, caller } = request;
      const { machine } = dataSources.get(params.uuid, common.reachOf(caller));
      if (body.machine !== undefined && body.machine !== machine) common.requireMachine(body.machine, caller);
      return ofSources.patch(request);
    },
    deleteDataSource: ofSources.delete,
  } satisfies Partial<Handlers>;
}

function sinkHandlers({ dataSinks }: Resources, common: HandlerBasics) {
  const ofSinks = common.handlersOf("data_sinks", dataSinks, common.reachOf);
  return {
    listDataSinks: ({ query: { cursor, ...filters }, caller }) => ok(dataSinks.list({ cursor, filters, reach: common.reachOf(caller) })),
    createDataSink: ({ body, caller }) => {
      common.requireCollector(body.collector, caller);
      return common.created("data_sinks", dataSinks.create(body));
    },
    getDataSink: ofSinks.get,
    patchDataSink: ofSinks.patch,
    deleteDataSink: ofSinks.delete,
  } satisfies Partial<Handlers>;
}

function siteHandlers({ sites }: Resources, common: HandlerBasics) {
  const ofSites = common.handlersOf("sites", sites, common.sitesOf, requireAdmin);
  return {
    listSites: ({ query: { cursor }, caller }) => ok(sites.list({ cursor, filters: {}, reach: common.sitesOf(caller) })),
    createSite: ({ body, caller }) => {
      requireAdmin(caller);
      return common.created("sites", sites.create(body));
    },
    getSite: ofSites.get,
    patchSite: ofSites.patch,
    deleteSite: ofSites.delete,
  } satisfies Partial<Handlers>;
}

function valueHandlers({ collectors, dataSources, variables, values }: Resources, common: HandlerBasics) {
  return {
    putLoss: ({ body, caller }) => {
      if (caller.role !== "collector")
        throw new HttpProblem(403, "a loss is reported with the key of the collector that has lost the values");
      values.addLoss(body, caller.collector);
      return ok({ id: body.id });
    },
    listLosses: ({ query: { collector }, caller }) => {
      const reach = common.reachOf(caller);
      if (collectors.revision(collector) === undefined || (reach && !reach.includes(collector))) throw notFound("collector");
      return ok({ data: values.losses(collector), metadata: { next_cursor: null } });
    },
    postValues: ({ body, caller }) => {
      const { collector, machine } = findSource(dataSources, body.data_source, ownOf(caller));
      return ok(values.take(body, { collector, machine, configuredFor: variables.sourceOf }));
    },
    listValues: ({ query: { data_source: sources, ...query }, caller }) =>
      ok(values.read({ ...query, sources, operation: "listValues" }, caller.role === "admin" ? undefined : caller.collector)),
    postTimeseries: ({ body, caller }) => ok(values.read(body, caller.role === "admin" ? undefined : caller.collector)),
  } satisfies Partial<Handlers>;
}

function extensionHandlers({ collectors, dataSources, dataSinks, variables, secrets, log }: Resources, common: HandlerBasics) {
  const ofVariables = common.handlersOf("variables", variables, common.reachOf);
  return {
    getExtensions: () => ok({ extension: "collector", version: 1, optional_fields: [CLOCK_OF_VALUES, CLOCK_OF_LOSSES, NULLS_IN_VALUES] }),
    listVariables: ({ query: { cursor, ...filters }, caller }) => ok(variables.list({ cursor, filters, reach: common.reachOf(caller) })),
    createVariable: ({ body, caller }) => {
      const source = findSource(dataSources, body.data_source, common.reachOf(caller));
      return common.created("variables", variables.create(body, source.collector));
    },
    changeVariables: ({ body, caller }) => {
      const source = findSource(dataSources, body.data_source, common.reachOf(caller));
      return ok(variables.changeMany(body, source.collector));
    },
    patchVariable: ofVariables.patch,
    deleteVariable: ofVariables.delete,
    putReadoutStatuses: ({ body, caller }) => ok(dataSources.report(body, ownOf(caller))),
    getRevision: ({ query, caller, ifNoneMatch }) => {
      const reach = common.reachOf(caller);
      const revision = collectors.revision(query.collector);
      if (revision === undefined || (reach && !reach.includes(query.collector))) throw notFound("collector");
      const headers = { etag: `"${revision}"` };
      return matchesNone(ifNoneMatch, headers.etag) ? { status: 304, headers } : { status: 200, headers, body: { revision } };
    },
    getSecrets: ({ query, caller, isPrivate }) => {
      if (caller.role !== "collector" || caller.collector !== query.collector)
        throw new HttpProblem(403, "only that collector's key may read secrets");
      if (!isPrivate) throw new HttpProblem(403, "secrets are given over TLS or loopback alone");
      const owners = [...dataSources.uuidsOf(query.collector), ...dataSinks.uuidsOf(query.collector)];
      const found = secrets.read(owners);
      log.debug({ collector: query.collector, records: Object.keys(found) }, "secrets were read");
      return { status: 200, headers: { "cache-control": "no-store" }, body: { secrets: found } };
    },
  } satisfies Partial<Handlers>;
}

function inventoryHandlers({ collectorRecords, machines }: Resources, common: HandlerBasics) {
  const ofCollectors = common.handlersOf("collectors", collectorRecords, common.reachOf, requireAdmin);
  const ofMachines = common.handlersOf("machines", machines, common.sitesOf, requireAdmin);
  return {
    listCollectors: ({ query: { cursor, ...filters }, caller }) =>
      ok(collectorRecords.list({ cursor, filters, reach: common.reachOf(caller) })),
    createCollector: ({ body, caller }) => {
      requireAdmin(caller);
      return common.created("collectors", collectorRecords.create(body));
    },
    getCollector: ofCollectors.get,
    patchCollector: ofCollectors.patch,
    deleteCollector: ofCollectors.delete,
    listMachines: ({ query: { cursor, ...filters }, caller }) => ok(machines.list({ cursor, filters, reach: common.sitesOf(caller) })),
    createMachine: ({ body, caller }) => {
      requireAdmin(caller);
      return common.created("machines", machines.create(body));
    },
    getMachine: ofMachines.get,
    patchMachine: ofMachines.patch,
    deleteMachine: ofMachines.delete,
  } satisfies Partial<Handlers>;
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
