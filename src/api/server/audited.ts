import type { Operation } from "../routes/index.ts";
import { ROUTES } from "../routes/index.ts";
import type { Route } from "../routes/route.ts";
import { type Audit, fieldNames } from "./audit.ts";
import { changesBetween, nameIn } from "./audit-changes.ts";
import type { ChangeGroup } from "./change-group.ts";
import type { Handlers, Incoming, Outgoing } from "./handlers.ts";

/** Operations that change no configuration although their method might: what the collector sends all day, and reading by POST. */
const NOT_RECORDED: ReadonlySet<Operation> = new Set(["putReadoutStatuses", "postValues", "putLoss", "postTimeseries"]);
/** Reading that is recorded all the same. */
const RECORDED_READS: ReadonlySet<Operation> = new Set(["getSecrets"]);

/** As Handlers; those that change something answer once the change is durable. */
export type AuditedHandlers = {
  readonly [O in keyof Handlers]: (...request: Parameters<Handlers[O]>) => Outgoing | Promise<Outgoing>;
};

/** The handlers, those that change something each in one transaction with its entry in the audit trail: both are kept, or neither. */
export function auditedHandlers(handlers: Handlers, changes: ChangeGroup, audit: Audit): AuditedHandlers {
  const wrap = (operation: Operation, handler: (request: Incoming<Route>) => Outgoing) => {
    const isChange = ROUTES[operation].method !== "GET" && !NOT_RECORDED.has(operation);
    if (!isChange && !RECORDED_READS.has(operation)) return handler;
    const look = lookerOf(handlers, operation);
    const recorded = (request: Incoming<Route>): Outgoing => {
      const before = look?.(request);
      const answer = handler(request);
      const { caller, address, osUser, params, body } = request;
      const resource = uuidIn(params) ?? uuidIn(answer.body) ?? sourceIn(body) ?? null;
      const after = answer.status === 201 ? answer.body : look?.(request);
      const changed = look || answer.status === 201 ? { name: nameIn(before ?? after), changes: changesBetween(before, after) } : {};
      audit.record({ role: caller.role, key: caller.key, address, osUser }, operation, resource, fieldNames(body), changed);
      return answer;
    };
    return (request: Incoming<Route>) => changes.run(() => recorded(request));
  };
  // The types of handler and route agree by Handlers' own definition; here all of them are treated alike.
  const entries = Object.entries(handlers) as [Operation, (request: Incoming<Route>) => Outgoing][];
  return Object.fromEntries(entries.map(([operation, handler]) => [operation, wrap(operation, handler)])) as unknown as AuditedHandlers;
}

/** How the record that an operation changes is read, as it is at that moment; undefined: it changes none that there was. */
function lookerOf(handlers: Handlers, operation: Operation): ((request: Incoming<Route>) => unknown) | undefined {
  const kind = /^(?:patch|delete)(\w+)$/.exec(operation)?.[1];
  const name = `get${kind}`;
  if (kind === undefined || !Object.hasOwn(handlers, name)) return undefined;
  const get = handlers[name as Operation] as (request: Incoming<Route>) => Outgoing;
  return (request) => {
    try {
      return get({ ...request, ifMatch: undefined, ifNoneMatch: undefined }).body;
    } catch {
      return undefined;
    }
  };
}

/** Of a batch, which has no record of its own: the data source that it is about. */
const sourceIn = (body: unknown): string | undefined =>
  typeof body === "object" && body !== null && "data_source" in body && typeof body.data_source === "string" ? body.data_source : undefined;

function uuidIn(value: unknown): string | undefined {
  return typeof value === "object" && value !== null && "uuid" in value && typeof value.uuid === "string" ? value.uuid : undefined;
}
