import { type DataValue, NodeId, ReadValueId } from "node-opcua-client";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { Reading } from "../../src/model/value.ts";
import type { Discovered, DriverContext, Endpoint, Limits, Session } from "../driver.ts";
import type { OpcuaAddress, ResolvedAddress } from "./address.ts";
import type { RawValue } from "./binary.ts";
import type { CallContext, Channel } from "./client.ts";
import type { OpenedSession } from "./create-session.ts";
import { discover } from "./discover.ts";
import { epochOf } from "./epoch.ts";
import { describeCode, protocolViolation } from "./failure.ts";
import { gonePath, LookUpGap } from "./gone-nodes.ts";
import { createJson } from "./json.ts";
import { ServerMemory } from "./memory.ts";
import { type Namespaces, namespacesOf } from "./namespaces.ts";
import { type OpcuaInput, openSession, ownWords } from "./open.ts";
import type { OpcuaRead } from "./plan.ts";
import { inParts, nodeIdOf, resolvePoints } from "./resolve.ts";
import { makeRequest } from "./services.ts";
import { codeOf, STATUS } from "./status-codes.ts";
import { statusOf } from "./statuses.ts";
import { createSubscription, type Subscription } from "./subscribe.ts";
import { toReading } from "./values.ts";

const VALUE = 13;
/** TimestampsToReturn (OPC 10000-4, 7.40). */
const SOURCE = 0;
const NEITHER = 3;
/** Of ns=0 (OPC 10000-6, A.3): the list of namespaces, when the server began, its state, and what it takes at once. */
const NODES = {
  namespaces: 2255,
  startTime: 2257,
  state: 2259,
  maxRead: 11705,
  maxBrowse: 11710,
  maxRegister: 11711,
  maxTranslate: 11712,
  maxItems: 11714,
} as const;
const LEAST_KEEP_ALIVE_MS = 1000;
const MOST_KEEP_ALIVE_MS = 20_000;
/** Above this the difference of the clocks is a warning: source time stamps are the server's. */
const SKEW_MS = 10_000;
const MAX_NAMESPACES = 65_536;
const MAX_LOGGED = 50;
/** In one request, where the server names no limit. */
const MAX_PATHS = 100;

export type OpcuaSession = Session<OpcuaAddress, OpcuaRead, Limits>;

/** An activated session that reads. Throws ReasonError or FaultError. */
export async function connect(input: OpcuaInput, endpoint: Endpoint, ctx: DriverContext): Promise<OpcuaSession> {
  const { details, settings } = input;
  const server = new ServerMemory(ctx.device, details.endpoint_url);
  const onTooLarge = () => {
    const most = Math.min(server.facts.maxPoints ?? settings.max_nodes, settings.max_nodes);
    server.learn({ maxPoints: Math.max(1, most >> 1) });
  };
  const onLost = () => server.lost(settings.session_timeout);
  const opened = await openSession({ input, endpoint, maxAnswerBytes: settings.max_answer_bytes, onTooLarge, onLost }, ctx).catch(
    async (error: unknown) => {
      throw await explained(error, server, settings.session_timeout, ctx);
    },
  );
  try {
    const capabilities = await readCapabilities(opened, ctx);
    return sessionOf(opened, capabilities, server, input, ctx);
  } catch (error) {
    await closeSession(opened, server);
    throw error;
  }
}

/** Adds to a failure what only this side knows: our certificate, our own lost session. */
async function explained(error: unknown, server: ServerMemory, sessionTimeoutMs: number, ctx: DriverContext): Promise<unknown> {
  if (!(error instanceof ReasonError) || error.reason.type !== "OPC_UA_ERROR_RESPONSE") return error;
  const { code, name } = error.reason;
  if (codeOf(code) === STATUS.BadTooManySessions) {
    const lostMs = server.facts.lostUntilMs - performance.now();
    const retryAfterMs = lostMs > 0 ? lostMs : sessionTimeoutMs;
    const ends = `a session that the collector has lost may be among them, and ends within ${Math.ceil(retryAfterMs / 1000)} s`;
    return new ReasonError(error.reason, `${error.message}; ${ends}`, { cause: error, retryAfterMs });
  }
  const words = await ownWords(ctx.pki, name);
  return words === "" ? error : new ReasonError(error.reason, `${error.message}; ${words}`, { cause: error });
}

interface Capabilities {
  readonly namespaces: readonly (string | null)[];
  /** When the server began to run; undefined: it does not say. */
  readonly startTime: string | undefined;
  readonly maxRead: number;
  readonly maxBrowse: number;
  readonly maxRegister: number;
  readonly maxTranslate: number;
  readonly maxItems: number;
}

/** 0 where the server names no limit (OPC 10000-5, 6.3.11). */
async function readCapabilities(opened: OpenedSession, ctx: CallContext): Promise<Capabilities> {
  const limits = [NODES.maxRead, NODES.maxBrowse, NODES.maxRegister, NODES.maxTranslate, NODES.maxItems];
  const ids = [NODES.namespaces, ...limits, NODES.startTime];
  const nodes = ids.map((id) => new ReadValueId({ nodeId: new NodeId(NodeId.NodeIdType.NUMERIC, id, 0), attributeId: VALUE }));
  const results: RawValue[] = [];
  await inParts(nodes, nodes.length, async (part) => {
    results.push(...(await readNodes(opened, part, ctx)));
  });
  const number = (i: number): number => {
    const value: unknown = results[i]?.value;
    return typeof value === "number" && Number.isInteger(value) && value > 0 ? value : 0;
  };
  const list: unknown = results[0]?.value;
  const namespaces = Array.isArray(list) ? list.slice(0, MAX_NAMESPACES).map((uri: unknown) => (typeof uri === "string" ? uri : null)) : [];
  const began: unknown = results[ids.length - 1]?.value;
  return {
    namespaces,
    startTime: typeof began === "string" ? began : undefined,
    maxRead: number(1),
    maxBrowse: number(2),
    maxRegister: number(3),
    maxTranslate: number(4),
    maxItems: number(5),
  };
}

async function readNodes({ channel, call }: OpenedSession, nodes: readonly ReadValueId[], ctx: CallContext): Promise<readonly RawValue[]> {
  const request = makeRequest("Read", { maxAge: 0, timestampsToReturn: SOURCE });
  // Handed over as it is: copying a thousand nodes for each request costs as much as encoding them.
  request.nodesToRead = nodes as ReadValueId[];
  const { values } = await call("Read", request, ctx);
  if (values.length !== nodes.length)
    throw lost(channel, protocolViolation(`${channel.where} answers ${values.length} values to a Read of ${nodes.length}`));
  return values;
}

/** As node-opcua's own objects: for what describes, not for values. */
async function readObjects({ call }: OpenedSession, nodes: readonly ReadValueId[], ctx: CallContext): Promise<DataValue[]> {
  const request = makeRequest("ReadObjects", { maxAge: 0, timestampsToReturn: NEITHER });
  request.nodesToRead = nodes as ReadValueId[];
  const { results } = await call("ReadObjects", request, ctx);
  return results ?? [];
}

function lost(channel: Channel, failure: ReasonError): ReasonError {
  channel.lose(failure);
  return failure;
}

/** Ends the session; one that the server may still hold is remembered. */
async function closeSession({ channel, closeRequest, timeoutMs }: OpenedSession, server: ServerMemory): Promise<void> {
  const ended = await channel.close(closeRequest);
  if (!ended) server.lost(timeoutMs);
}

function sessionOf(
  opened: OpenedSession,
  capabilities: Capabilities,
  server: ServerMemory,
  { settings }: OpcuaInput,
  ctx: DriverContext,
): OpcuaSession {
  const { channel, call } = opened;
  const firstNamespaces = server.facts.firstNamespaces ?? capabilities.namespaces;
  server.learn({ firstNamespaces });
  const namespaces: Namespaces = namespacesOf(firstNamespaces, capabilities.namespaces);
  const warnings = [...opened.warnings];
  const warn = (words: string | undefined): void => {
    if (words === undefined || warnings.includes(words)) return;
    warnings.push(words);
    // Of the words alone: what is measured is another number each time.
    const key = words.replaceAll(/\d+/g, "");
    const { logged } = server.facts;
    if (logged.includes(key) || logged.length >= MAX_LOGGED) return;
    server.learn({ logged: [...logged, key] });
    ctx.log.warn({}, words);
  };
  warn(namespaces.warning);
  if (Math.abs(channel.clockAheadMs) > SKEW_MS)
    warn(
      `the server's clock is ${Math.round(Math.abs(channel.clockAheadMs) / 1000)} s ${channel.clockAheadMs > 0 ? "ahead of" : "behind"} the collector's: source time stamps are the server's`,
    );

  const paths = { call, namespaces, maxPaths: capabilities.maxTranslate || MAX_PATHS };
  const running = epochOf({ firstNamespaces, ...capabilities });
  const gap = new LookUpGap();
  const json = createJson({ readObjects: (nodes, bound) => readObjects(opened, nodes, bound), call });
  const maxPoints = Math.max(
    1,
    Math.min(settings.max_nodes, capabilities.maxRead || settings.max_nodes, server.facts.maxPoints ?? settings.max_nodes),
  );
  const limits: Limits = { maxPoints, maxBytes: settings.max_answer_bytes, inFlight: settings.in_flight };
  let usedAt = performance.now();

  const registered = settings.read_mode === "registered" ? createRegistered(opened, capabilities, warn) : undefined;
  // Made once for as long as a request is read.
  let nodesOf = new WeakMap<OpcuaRead, readonly ReadValueId[]>();
  const nodesFor = async (request: OpcuaRead, bound: CallContext): Promise<readonly ReadValueId[]> => {
    const known = nodesOf.get(request);
    if (known) return known;
    const ids = request.points.map(({ address }) => nodeIdOf(resolved(address)));
    const used = registered ? await registered.idsOf(ids, bound) : ids;
    const made = used.map((nodeId) => new ReadValueId({ nodeId, attributeId: VALUE }));
    nodesOf.set(request, made);
    return made;
  };

  const subscription: Subscription | undefined =
    settings.read_mode === "subscribe"
      ? createSubscription({ channel, call, settings, maxItems: capabilities.maxItems || 1000, warn })
      : undefined;

  const read = async (request: OpcuaRead, readCtx: DriverContext): Promise<readonly Reading[]> => {
    usedAt = performance.now();
    const nodes = await nodesFor(request, readCtx);
    const values = subscription ? await subscription.read(nodes, readCtx) : await readNodes(opened, nodes, readCtx);
    const isForgotten = registered?.isForgotten(values) === true;
    if (isForgotten) nodesOf = new WeakMap();
    const gone = isForgotten ? undefined : gonePath(request, values);
    if (gone !== undefined && gap.pass()) {
      server.learn({ programs: server.facts.programs + 1 });
      throw new FaultError("not_found", `the server does not know the node that ${gone} led to: paths are looked up again`, {
        scope: "program",
      });
    }
    await json.learn(values, readCtx);
    return request.points.map((point, i): Reading => {
      const value = values[i];
      return value
        ? toReading(value, point.type, json.toJson, describe)
        : { quality: "bad", fault: "no_answer", detail: "the server has not sent a value yet" };
    });
  };

  // An idle session is kept alive, and a dead one found, long before the server gives it up.
  const keepAliveMs = Math.min(MOST_KEEP_ALIVE_MS, Math.max(LEAST_KEEP_ALIVE_MS, opened.timeoutMs / 3));
  const stateNode = [new ReadValueId({ nodeId: new NodeId(NodeId.NodeIdType.NUMERIC, NODES.state, 0), attributeId: VALUE })];
  const keepAlive = setInterval(() => {
    if (!channel.alive()) clearInterval(keepAlive);
    else if (performance.now() - usedAt >= keepAliveMs / 2) {
      const bound = { signal: AbortSignal.timeout(ctx.timeouts.answerMs), timeouts: ctx.timeouts };
      readNodes(opened, stateNode, bound).catch((error: unknown) => ctx.log.debug({ err: error }, "the session could not be kept alive"));
    }
  }, keepAliveMs);
  keepAlive.unref();

  let closing: Promise<void> | undefined;
  return {
    limits,
    read,
    prepare(points, prepareCtx) {
      usedAt = performance.now();
      return resolvePoints(points, paths, prepareCtx);
    },
    get epoch() {
      return `${running} ${server.facts.programs}`;
    },
    discover: (discoverCtx): AsyncIterable<Discovered> => discoverWith(opened, capabilities, discoverCtx),
    alive: () => channel.alive(),
    warnings: () => warnings,
    close() {
      clearInterval(keepAlive);
      subscription?.stop();
      closing ??= closeSession(opened, server);
      return closing;
    },
  };
}

function resolved(address: OpcuaAddress): ResolvedAddress {
  if (address.kind === "resolved") return address;
  throw new ReasonError("UNKNOWN", `${address.text} was not looked up before it was read`, { condition: "internal_error" });
}

const describe = (status: number): string => describeCode(statusOf(status, null));

interface Registered {
  /** The server's own numbers for these nodes, in their order. */
  idsOf(nodes: readonly NodeId[], ctx: CallContext): Promise<readonly NodeId[]>;
  /** Whether it has forgotten them: they are registered again then. */
  isForgotten(values: readonly (RawValue | undefined)[]): boolean;
}

/** RegisterNodes (OPC 10000-4, 5.8.5). It belongs to the session and ends with it. */
function createRegistered({ call }: OpenedSession, { maxRegister }: Capabilities, warn: (words: string) => void): Registered {
  const known = new Map<string, NodeId>();
  let isRefused = false;
  return {
    async idsOf(nodes, ctx) {
      const wanted = isRefused ? [] : nodes.filter((node) => !known.has(node.toString()));
      try {
        await inParts(wanted, maxRegister || 1000, async (part) => {
          const { registeredNodeIds } = await call("RegisterNodes", makeRequest("RegisterNodes", { nodesToRegister: [...part] }), ctx);
          for (const [i, node] of part.entries()) known.set(node.toString(), registeredNodeIds?.[i] ?? node);
        });
      } catch (error) {
        if (!(error instanceof FaultError)) throw error;
        isRefused = true;
        warn(`the server registers no nodes (${error.message}): they are read without`);
      }
      return nodes.map((node) => known.get(node.toString()) ?? node);
    },
    isForgotten(values) {
      if (known.size === 0 || !values.some((value) => value && codeOf(value.status) === STATUS.BadNodeIdInvalid)) return false;
      known.clear();
      return true;
    },
  };
}

function discoverWith(opened: OpenedSession, capabilities: Capabilities, ctx: DriverContext): AsyncIterable<Discovered> {
  const { call } = opened;
  return discover(
    {
      browse: async (nodesToBrowse) => (await call("Browse", makeRequest("Browse", { nodesToBrowse }), ctx)).results ?? [],
      browseNext: async (continuationPoints, releaseContinuationPoints) =>
        (await call("BrowseNext", makeRequest("BrowseNext", { continuationPoints, releaseContinuationPoints }), ctx)).results ?? [],
      read: (nodes) =>
        readObjects(
          opened,
          nodes.map((node) => new ReadValueId(node)),
          ctx,
        ),
    },
    {
      namespaces: capabilities.namespaces.map((uri) => uri ?? ""),
      maxNodesPerBrowse: capabilities.maxBrowse,
      maxNodesPerRead: capabilities.maxRead,
    },
    ctx,
  );
}
