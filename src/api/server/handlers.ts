import type { z } from "zod";
import type { Log } from "../../model/context.ts";
import type { ROUTES } from "../routes/index.ts";
import type { Route } from "../routes/route.ts";
import type { Collectors } from "./collectors.ts";
import type { DataSinks } from "./data-sinks.ts";
import type { DataSources } from "./data-sources.ts";
import { HttpProblem, invalid, notFound } from "./errors.ts";
import type { Caller } from "./keys.ts";
import type { SecretStore } from "./secrets.ts";
import type { Variables } from "./variables.ts";

type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined;

/** A validated request. */
export interface Incoming<R extends Route> {
  readonly params: Parsed<R["params"]>;
  readonly query: Parsed<R["query"]>;
  readonly body: Parsed<R["body"]>;
  readonly caller: Caller;
  readonly ifNoneMatch: string | undefined;
}

export interface Outgoing {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Handlers = { readonly [O in keyof typeof ROUTES]: (request: Incoming<(typeof ROUTES)[O]>) => Outgoing };

export interface Resources {
  readonly collectors: Collectors;
  readonly dataSources: DataSources;
  readonly dataSinks: DataSinks;
  readonly variables: Variables;
  readonly secrets: SecretStore;
  readonly log: Log;
}

/** Collectors whose records a key reaches; undefined: all. What lies outside is absent: an empty page, 404 (DESIGN, 6). */
const reachOf = (caller: Caller): readonly string[] | undefined => (caller.role === "admin" ? undefined : [caller.collector]);

const ok = (body: unknown): Outgoing => ({ status: 200, body });
const created = (body: unknown): Outgoing => ({ status: 201, body });
const done: Outgoing = { status: 204 };

/** What each operation does. Throws HttpProblem for every answer that is no success. */
export function createHandlers({ collectors, dataSources, dataSinks, variables, secrets, log }: Resources): Handlers {
  const requireCollector = (uuid: string, caller: Caller): void => {
    const reach = reachOf(caller);
    if (!collectors.exists(uuid) || (reach && !reach.includes(uuid)))
      throw invalid({ loc: ["body", "collector"], msg: "there is no such collector for this key", type: "collector_unknown", input: uuid });
  };
  return {
    listDataSources: ({ query: { cursor, ...filters }, caller }) => ok(dataSources.list({ cursor, filters, reach: reachOf(caller) })),
    createDataSource: ({ body, caller }) => {
      requireCollector(body.collector, caller);
      return created(dataSources.create(body));
    },
    getDataSource: ({ params, caller }) => ok(dataSources.get(params.uuid, reachOf(caller))),
    patchDataSource: ({ params, body, caller }) => {
      dataSources.patch(params.uuid, reachOf(caller), body);
      return done;
    },
    deleteDataSource: ({ params, caller }) => {
      dataSources.delete(params.uuid, reachOf(caller));
      return done;
    },

    listDataSinks: ({ query: { cursor, ...filters }, caller }) => ok(dataSinks.list({ cursor, filters, reach: reachOf(caller) })),
    createDataSink: ({ body, caller }) => {
      requireCollector(body.collector, caller);
      return created(dataSinks.create(body));
    },
    getDataSink: ({ params, caller }) => ok(dataSinks.get(params.uuid, reachOf(caller))),
    patchDataSink: ({ params, body, caller }) => {
      dataSinks.patch(params.uuid, reachOf(caller), body);
      return done;
    },
    deleteDataSink: ({ params, caller }) => {
      dataSinks.delete(params.uuid, reachOf(caller));
      return done;
    },

    getExtensions: () => ok({ extension: "collector", version: 1 }),
    listVariables: ({ query: { cursor, ...filters }, caller }) => ok(variables.list({ cursor, filters, reach: reachOf(caller) })),
    createVariable: ({ body, caller }) => {
      const source = findSource(dataSources, body.data_source, caller);
      return created(variables.create(body, source.collector));
    },
    patchVariable: ({ params, body, caller }) => {
      variables.patch(params.uuid, reachOf(caller), body);
      return done;
    },
    deleteVariable: ({ params, caller }) => {
      variables.delete(params.uuid, reachOf(caller));
      return done;
    },
    putReadoutStatuses: ({ body, caller }) => ok(dataSources.report(body, reachOf(caller))),
    getRevision: ({ query, caller, ifNoneMatch }) => {
      const reach = reachOf(caller);
      const revision = collectors.revision(query.collector);
      if (revision === undefined || (reach && !reach.includes(query.collector))) throw notFound("collector");
      const headers = { etag: `"${revision}"` };
      return matches(ifNoneMatch, headers.etag) ? { status: 304, headers } : { status: 200, headers, body: { revision } };
    },
    getSecrets: ({ query, caller }) => {
      if (caller.role !== "collector" || caller.collector !== query.collector)
        throw new HttpProblem(403, "secrets are given to the key of that collector alone");
      const owners = [...dataSources.uuidsOf(query.collector), ...dataSinks.uuidsOf(query.collector)];
      const found = secrets.read(owners);
      log.info({ collector: query.collector, records: Object.keys(found) }, "secrets were read");
      return { status: 200, headers: { "cache-control": "no-store" }, body: { secrets: found } };
    },
  };
}

function findSource(dataSources: DataSources, uuid: string, caller: Caller): { readonly collector: string } {
  try {
    return dataSources.get(uuid, reachOf(caller));
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

/** RFC 9110, 13.1.2: a list of tags compared weakly, or `*`. */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag);
}
