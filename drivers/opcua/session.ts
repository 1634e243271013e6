import { type DataValue, type NodeId, ReadValueId } from "node-opcua-client";
import { formatDuration } from "../../src/base/duration.ts";
import { countOf } from "../../src/base/number.ts";
import { FaultError } from "../../src/model/fault.ts";
import { type PackedReadings, packReadings, unpackReadings } from "../../src/model/reading-columns.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { isSourceTime } from "../../src/model/source-time.ts";
import type { Reading } from "../../src/model/value.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import { isTrustOver, lifeWarnings } from "../../src/model/words/certificate-life.ts";
import type { Discovered, DriverContext, Endpoint, Limits, Point, Session } from "../driver.ts";
import { SilentHelp } from "../lib/silent-help.ts";
import { openTcp } from "../lib/tcp.ts";
import { isCounted, type OpcuaAddress, type ResolvedAddress } from "./address.ts";
import type { ReadAnswer } from "./answers.ts";
import type { RawValue } from "./binary.ts";
import { type Capabilities, isListDue, readCapabilities, stateNode } from "./capabilities.ts";
import type { CallContext, Channel } from "./client.ts";
import type { OpenedSession } from "./create-session.ts";
import { discover } from "./discover.ts";
import { epochOf } from "./epoch.ts";
import { describeCode, protocolViolation } from "./failure.ts";
import { firstNamespaces } from "./first-namespaces.ts";
import { gonePath, LookUpGap } from "./gone-nodes.ts";
import { Json } from "./json.ts";
import { KeptRead } from "./kept-read.ts";
import { ServerMemory } from "./memory.ts";
import { type Namespaces, namespacesOf } from "./namespaces.ts";
import { type OpcuaInput, openSession, ownWords } from "./open.ts";
import { type PlainAnswer, PlainValues } from "./plain-values.ts";
import { type Nodes, nodeKeyOf, type OpcuaRead } from "./plan.ts";
import { Registered } from "./registered.ts";
import { nodeIdOf, type ResolveOptions, resolvePoints } from "./resolve.ts";
import { AWAY_MS, type Candidate, isHealthy, openPreferred, ReturnWatch, secondOf } from "./second-server.ts";
import { ServerState } from "./server-state.ts";
import { makeRequest } from "./services.ts";
import { codeOf, STATUS } from "./status-codes.ts";
import { statusOf } from "./statuses.ts";
import { type Sent, Subscription } from "./subscribe.ts";
import { toPartReading, toReading } from "./values.ts";
import type { Waiting } from "./waiting.ts";

const VALUE = 13;
/** TimestampsToReturn (OPC 10000-4, 7.40). */
const NEITHER = 3;
const LEAST_KEEP_ALIVE_MS = 1000;
const MOST_KEEP_ALIVE_MS = 20_000;
/** Above this the difference of the clocks is a warning: source time stamps are the server's. */
const SKEW_MS = 10_000;
const MAX_LOGGED = 50;
/** In one request, where the server names no limit. */
const MAX_PATHS = 100;

/** An activated session that reads, at the first of two servers or the second. Throws ReasonError or FaultError. */
export async function connect(input: OpcuaInput, endpoint: Endpoint, ctx: DriverContext): Promise<OpcuaSession> {
  const second = secondOf(input, endpoint);
  if (!second) return connectTo({ input, endpoint }, ctx);
  const server = new ServerMemory(ctx.device, input.details.endpoint_url);
  const { session, why } = await openPreferred({
    first: { input, endpoint },
    second,
    awayUntilMs: server.facts.awayUntilMs,
    // Indexes of namespaces mean the same at both: one set of servers has one list.
    open: (candidate) => connectTo(candidate, ctx, input.details.endpoint_url),
    onAway: (awayUntilMs) => server.learn({ awayUntilMs }),
  });
  session.watch(why, async (bound) => {
    await (await openTcp(endpoint, bound)).close();
    server.learn({ awayUntilMs: Number.NEGATIVE_INFINITY });
  });
  return session;
}

async function connectTo({ input, endpoint }: Candidate, ctx: DriverContext, keptUrl?: string): Promise<OpcuaSession> {
  const { details, settings } = input;
  const server = new ServerMemory(ctx.device, details.endpoint_url);
  const onTooLarge = () => {
    const most = Math.min(server.facts.maxPoints ?? settings.max_nodes, settings.max_nodes);
    server.learn({ maxPoints: Math.max(1, most >> 1) });
  };
  const onLost = () => server.lost(settings.session_timeout);
  const { refusesPlain } = server.facts;
  const onRefusesPlain = (refuses: boolean) => server.learn({ refusesPlain: refuses });
  const limits = { maxAnswerBytes: settings.max_answer_bytes, onTooLarge };
  const opened = await openSession({ input, endpoint, ...limits, refusesPlain, onRefusesPlain, onLost }, ctx).catch(
    async (error: unknown) => {
      throw await explained(error, server, settings.session_timeout, ctx);
    },
  );
  try {
    const help = new SilentHelp(ctx.device);
    const read = async (nodes: readonly ReadValueId[], bound: CallContext) => (await readNodes(opened, nodes, bound)).values;
    const capabilities = await readCapabilities(read, help, server.facts.firstNamespaces !== undefined, ctx);
    return new OpcuaSession(opened, { ...capabilities, help }, server, { input, keptUrl: keptUrl ?? details.endpoint_url }, ctx);
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

async function readNodes(opened: OpenedSession, nodes: readonly ReadValueId[], ctx: CallContext): Promise<ReadAnswer> {
  return (await answerTo(opened, new KeptRead(nodes), ctx)) as ReadAnswer;
}

async function readPlain(opened: OpenedSession, nodes: readonly ReadValueId[], plain: PlainValues, ctx: CallContext): Promise<PlainAnswer> {
  return (await answerTo(opened, new KeptRead(nodes, plain), ctx)) as PlainAnswer;
}

async function answerTo({ channel, call }: OpenedSession, request: KeptRead, ctx: CallContext): Promise<ReadAnswer | PlainAnswer> {
  const answer = await call("Read", request, ctx);
  const wanted = request.nodesToRead?.length;
  if (answer.count !== wanted)
    throw lost(channel, protocolViolation(`${channel.where} answers ${answer.count} values to a Read of ${wanted}`));
  return answer;
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

const isEncoded = ({ address }: Point<OpcuaAddress>): boolean => address.kind === "resolved" && address.isEncoded === true;

class OpcuaSession implements Session<OpcuaAddress, OpcuaRead, Limits> {
  readonly limits: Limits;
  readonly #opened: OpenedSession;
  readonly #capabilities: Capabilities & { readonly help: SilentHelp };
  readonly #server: ServerMemory;
  readonly #log: DriverContext["log"];
  readonly #warnings: Warning[];
  readonly #call: Channel["call"];
  readonly #endpointUrl: string;
  readonly #namespaces: Namespaces;
  /** Of the program that runs in the server. */
  readonly #running: string;
  readonly #gap = new LookUpGap();
  readonly #json: Json;
  readonly #state: ServerState;
  readonly #registered: Registered | undefined;
  readonly #subscription: Subscription | undefined;
  /** The choice that led to this session, where there are two servers. */
  #choice: { readonly isHealthy: boolean; readonly atMs: number } | undefined;
  /** Absent: this is the first server. */
  #firstServer: ReturnWatch | undefined;
  /** Made once for as long as a request is read. */
  #nodes = new WeakMap<OpcuaRead, Nodes>();
  readonly #keepAlive: NodeJS.Timeout;
  #usedAt = performance.now();
  #closing: Promise<void> | undefined;

  constructor(
    opened: OpenedSession,
    capabilities: Capabilities & { readonly help: SilentHelp },
    server: ServerMemory,
    { input: { settings }, keptUrl }: { readonly input: OpcuaInput; readonly keptUrl: string },
    ctx: DriverContext,
  ) {
    const { channel, call } = opened;
    this.#opened = opened;
    this.#capabilities = capabilities;
    this.#server = server;
    this.#endpointUrl = keptUrl;
    this.#log = ctx.log;
    this.#warnings = [...opened.warnings];
    const first = server.facts.firstNamespaces ?? capabilities.namespaces ?? [];
    if (capabilities.namespaces) server.learn({ firstNamespaces: first });
    const namespaces = namespacesOf(first, capabilities.namespaces);
    const run = { namespaces: capabilities.namespaces ?? [], startTime: capabilities.startTime };
    if (Math.abs(channel.clockAheadMs) > SKEW_MS && isSourceTime(Date.now() + channel.clockAheadMs))
      this.#warn(
        warning(
          "device_clock_differs",
          `the server's clock is ${Math.round(Math.abs(channel.clockAheadMs) / 1000)} s ${channel.clockAheadMs > 0 ? "ahead of" : "behind"} the collector's: source time stamps are the server's`,
        ),
      );
    this.#call = call;
    this.#namespaces = namespaces;
    this.#running = epochOf({ ...run, firstNamespaces: first });
    const { startTime } = capabilities;
    this.#state = new ServerState({
      startTime,
      before: server.facts.startTime,
      now: () => performance.now(),
      onChange: (words, isGood) => (isGood ? ctx.log.info({}, words) : ctx.log.warn({}, words)),
    });
    if (startTime !== undefined) server.learn({ startTime });
    this.#state.take(capabilities.state, capabilities.serviceLevel);
    const read = async (nodes: readonly ReadValueId[], bound: CallContext) => (await readNodes(opened, nodes, bound)).values;
    server.types.hold(this.#running);
    this.#json = new Json(server.types, {
      call,
      read,
      namespaces,
      maxBrowse: capabilities.maxBrowse,
      maxRead: capabilities.maxRead,
      run,
      timeouts: ctx.timeouts,
      alive: () => this.alive(),
      onOtherRun: (words) => this.#beginAgain(words),
      ...(settings.read_mode === "subscribe" && {
        onOtherModels: () => this.#subscription?.renew("the server's models have other versions"),
        aside: () => this.#subscription?.next(),
      }),
      onState: (state, serviceLevel) => this.#state.take(state, serviceLevel),
      warn: (found) => this.#warn(found),
      logOnce: (words) => this.#logOnce(words),
      debug: (words) => this.#log.debug({}, words),
    });
    const { max_nodes: maxNodes, max_answer_bytes: maxBytes, in_flight: inFlight, read_mode: mode } = settings;
    const maxPoints = Math.max(1, Math.min(maxNodes, capabilities.maxRead || maxNodes, server.facts.maxPoints ?? maxNodes));
    this.limits = { maxPoints, maxBytes, inFlight };
    const warn = (found: Warning) => this.#warn(found);
    if (mode === "registered") this.#registered = new Registered(call, capabilities.maxRegister || 1000, warn);
    if (mode === "subscribe")
      this.#subscription = new Subscription({
        channel,
        call,
        settings,
        timeouts: ctx.timeouts,
        maxItems: capabilities.maxItems || 1000,
        maxNodes: maxPoints,
        waiting: server.waiting,
        read,
        logOnce: (words) => this.#logOnce(words),
      });
    this.#keepAlive = this.#startKeepAlive(ctx);
  }

  get epoch(): string {
    return `${this.#running} ${this.#server.facts.programs}`;
  }

  async read(request: OpcuaRead, ctx: DriverContext): Promise<readonly Reading[]> {
    return unpackReadings(await this.readColumns(request, ctx));
  }

  readColumns(request: OpcuaRead, ctx: DriverContext): Promise<PackedReadings> {
    this.#firstServer?.look(ctx);
    return this.#json.during(() => this.#read(request, ctx));
  }

  async #read(request: OpcuaRead, ctx: DriverContext): Promise<PackedReadings> {
    this.#usedAt = performance.now();
    const of = await this.#nodesFor(request, ctx);
    if (of.isEncoded) return packReadings(await this.#encodedOf(request, of, ctx));
    if (of.plain && !this.#subscription) return this.#plainOf(request, of.nodes, of.plain, ctx);
    const sent = await this.#sentOf(request, of, ctx);
    if (sent instanceof FaultError) return packReadings(request.points.map(() => refusedBy(sent)));
    const { values, earlier } = sent;
    this.#checkPaths(request, values);
    const all = earlier.size === 0 ? values : [...values, ...[...earlier.values()].flatMap(valuesIn)];
    const readings = await this.#json.decoded(all, () => request.points.map((point, i) => this.#readingAt(point, i, sent)));
    // A reader that has gone gets them with the next readout.
    if (!ctx.signal.aborted) sent.commit();
    return packReadings(readings);
  }

  /** Whole values that are asked for. Good numbers are in their columns already; what else there is becomes a reading here. */
  async #plainOf(request: OpcuaRead, nodes: readonly ReadValueId[], plain: PlainValues, ctx: DriverContext): Promise<PackedReadings> {
    const answer = await this.#unlessOne(nodes, () => readPlain(this.#opened, nodes, plain, ctx));
    if (answer instanceof FaultError) return packReadings([refusedBy(answer)]);
    const { columns, values } = answer;
    if (values.length === 0) return columns.packed();
    this.#checkPaths(request, values);
    const readingOf = (value: RawValue | undefined, place: number): Reading | undefined => {
      const point = request.points[place];
      return value && point && this.#readingOf(point, value);
    };
    const readings = await this.#json.decoded(values, () => values.map(readingOf));
    for (const [place, reading] of readings.entries()) if (reading) columns.set(place, reading);
    return columns.packed();
  }

  /** Values as the server encodes them, and beside them those of the same read. A subscription has no part in it. */
  async #encodedOf(request: OpcuaRead, { nodes, places }: Nodes, ctx: CallContext): Promise<readonly Reading[]> {
    const { values } = await readNodes(this.#opened, nodes, ctx);
    const readingOf = (point: Point<OpcuaAddress>, i: number): Reading => {
      const value = values[places[i] ?? 0];
      if (!isEncoded(point)) return this.#readingOf(point, value);
      if (value?.encoded) return { quality: "good", value: [...value.encoded] };
      return { quality: "bad", fault: "device_error", detail: "the value is too long to be shown as it is encoded" };
    };
    return this.#json.decoded(values, () => request.points.map(readingOf));
  }

  #readingAt(point: Point<OpcuaAddress>, place: number, { values, earlier, isSent }: Sent): Reading {
    const reading = this.#readingOf(point, values[place]);
    const before = earlier.get(place)?.map((one) => this.#readingOf(point, one));
    const seen: Reading = reading.quality !== "bad" && isSent(place) ? { ...reading, isSent: true } : reading;
    return before ? { ...seen, earlier: before } : seen;
  }

  #readingOf({ address: { select: steps }, type }: Point<OpcuaAddress>, value: Waiting | undefined): Reading {
    if (!value) return { quality: "bad", fault: "no_answer", detail: "the server gave no value" };
    if ("hole" in value) return { quality: "bad", fault: "values_lost", detail: value.hole };
    const { toJson, expand } = this.#json;
    return steps ? toPartReading(value, { steps, expand }, type, toJson, describe) : toReading(value, type, toJson, describe);
  }

  /** A refusal instead of values: what is wrong with the one variable that was asked for. */
  async #sentOf(request: OpcuaRead, of: Nodes, ctx: DriverContext): Promise<Sent | FaultError> {
    const { nodes, places } = of;
    return this.#unlessOne(nodes, async () => {
      if (this.#subscription) return this.#subscription.read(request, of, ctx);
      const { values } = await readNodes(this.#opened, nodes, ctx);
      // One value serves all variables that are parts of it.
      return { values: places.map((place) => values[place]), earlier: NOTHING_EARLIER, isSent: () => false, commit: () => {} };
    });
  }

  async #unlessOne<T>(nodes: readonly ReadValueId[], ask: () => Promise<T>): Promise<T | FaultError> {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof FaultError) || error.scope !== "points" || nodes.length > 1) throw error;
      return error;
    }
  }

  prepare(points: readonly Point<OpcuaAddress>[], ctx: DriverContext): ReturnType<typeof resolvePoints> {
    this.#usedAt = performance.now();
    const most = this.#capabilities.maxTranslate || MAX_PATHS;
    const namespaces = this.#namespacesFor(points, ctx);
    if (namespaces.warning !== undefined) this.#warn(namespaces.warning);
    const options: ResolveOptions = {
      call: this.#call,
      namespaces,
      maxPaths: Math.min(most, this.#server.facts.maxPaths ?? most),
      onTooMany: (maxPaths) => this.#server.learn({ maxPaths }),
    };
    return resolvePoints(points, options, ctx);
  }

  /** Sources that share this session may have seen the server first with other lists. */
  #namespacesFor(points: readonly Point<OpcuaAddress>[], { kept }: DriverContext): Namespaces {
    if (!kept || !points.some(({ address }) => isCounted(address))) return this.#namespaces;
    const { namespaces } = this.#capabilities;
    return namespacesOf(firstNamespaces(kept, this.#endpointUrl, namespaces ?? []), namespaces);
  }

  discover(ctx: DriverContext): AsyncIterable<Discovered> {
    return discoverWith(this.#opened, this.#capabilities, ctx);
  }

  /** False also where the trust in an expired certificate is over: the next session says so. */
  alive(): boolean {
    const { channel, life } = this.#opened;
    const isToAskAgain = isListDue(this.#capabilities, this.#capabilities.help);
    return channel.alive() && !(life && isTrustOver(life, Date.now())) && !this.#isToChoose && !isToAskAgain;
  }

  get serviceLevel(): number | undefined {
    return this.#state.serviceLevel;
  }

  /** There are two servers; `why`: why this is the second one, undefined: it is the first. `connect` opens a connection to the first and closes it. */
  watch(why: Warning | undefined, connect: (ctx: DriverContext) => Promise<void>): void {
    this.#choice = { isHealthy: isHealthy(this.serviceLevel), atMs: performance.now() };
    if (!why) return;
    this.#warn(why);
    this.#firstServer = new ReturnWatch(connect);
  }

  /** Another session may be at the better server by now. */
  get #isToChoose(): boolean {
    if (this.#firstServer?.isBack) return true;
    if (!this.#choice || isHealthy(this.serviceLevel)) return false;
    return this.#choice.isHealthy || performance.now() - this.#choice.atMs > AWAY_MS;
  }

  warnings(): readonly Warning[] {
    const { life } = this.#opened;
    return [
      ...this.#warnings,
      ...this.#capabilities.help.warnings(),
      ...(life ? lifeWarnings(life, Date.now()) : []),
      ...this.#state.warnings(),
      ...this.#json.warnings(),
      ...(this.#subscription?.warnings() ?? []),
    ];
  }

  get about(): string {
    return this.#state.words;
  }

  get granted(): string {
    const { maxRead, maxItems } = this.#capabilities;
    const nodes = maxRead === 0 ? "reads without a limit of nodes" : `reads of ${countOf(maxRead, "node")}`;
    const items = maxItems === 0 ? "" : `, subscriptions of ${countOf(maxItems, "variable")} in a request`;
    return `a session that ends ${formatDuration(this.#opened.timeoutMs)} after its last request; ${nodes}${items}`;
  }

  close(): Promise<void> {
    clearInterval(this.#keepAlive);
    this.#subscription?.stop();
    this.#json.stop();
    this.#closing ??= closeSession(this.#opened, this.#server);
    return this.#closing;
  }

  /** What is looked up in a session holds for one run of the server: the next session looks it up again. */
  #beginAgain(words: string): void {
    this.#log.info({}, `${words}: a new session is opened`);
    this.#opened.channel.lose(new ReasonError("CONNECTION_CLOSED", words, { sessionLost: true }));
  }

  #warn(found: Warning): void {
    if (this.#warnings.some(({ text }) => text === found.text)) return;
    this.#warnings.push(found);
    this.#logOnce(found.text);
  }

  #logOnce(words: string): void {
    // Of the words alone: what is measured is another number each time.
    const key = words.replaceAll(/\d+/g, "");
    const { logged } = this.#server.facts;
    if (logged.includes(key) || logged.length >= MAX_LOGGED) return;
    this.#server.learn({ logged: [...logged, key] });
    this.#log.warn({}, words);
  }

  async #nodesFor(request: OpcuaRead, ctx: CallContext): Promise<Nodes> {
    const known = this.#nodes.get(request);
    if (known) return known;
    const keys = new Map<string, number>();
    const hasParts = request.points.some((point) => point.address.select || isEncoded(point));
    const ids: NodeId[] = [];
    const places = request.points.map(({ address }, i) => {
      const at = resolved(address);
      const key = hasParts ? nodeKeyOf(at) : `${i}`;
      const same = keys.get(key);
      if (same !== undefined) return same;
      keys.set(key, ids.length);
      return ids.push(nodeIdOf(at)) - 1;
    });
    const used = this.#registered ? await this.#registered.idsOf(ids, ctx) : ids;
    const made: Nodes = {
      nodes: used.map((nodeId) => new ReadValueId({ nodeId, attributeId: VALUE })),
      places,
      isEncoded: request.points.some(isEncoded),
      ...(!hasParts && { plain: new PlainValues(request.points) }),
    };
    this.#nodes.set(request, made);
    return made;
  }

  /** Throws FaultError where the paths of a request have to be looked up again. */
  #checkPaths(request: OpcuaRead, values: readonly (RawValue | undefined)[]): void {
    if (this.#registered?.isForgotten(values)) {
      this.#nodes = new WeakMap();
      return;
    }
    const gone = gonePath(request, values);
    if (gone === undefined || !this.#gap.pass()) return;
    this.#server.learn({ programs: this.#server.facts.programs + 1 });
    throw new FaultError("not_found", `the server does not know the node that ${gone} led to: paths are looked up again`, {
      scope: "program",
    });
  }

  /** An idle session is kept alive, and a dead one found, long before the server gives it up. */
  #startKeepAlive({ timeouts, log }: DriverContext): NodeJS.Timeout {
    const everyMs = Math.min(MOST_KEEP_ALIVE_MS, Math.max(LEAST_KEEP_ALIVE_MS, this.#opened.timeoutMs / 3));
    const nodes = [stateNode()];
    const timer = setInterval(() => {
      if (!this.alive()) clearInterval(timer);
      else if (performance.now() - this.#usedAt >= everyMs / 2) {
        const bound = { signal: AbortSignal.timeout(timeouts.answerMs), timeouts };
        readNodes(this.#opened, nodes, bound).then(
          ({ values }) => this.#state.take(values[0]),
          (error: unknown) => log.debug({ err: error }, "the session could not be kept alive"),
        );
      }
    }, everyMs);
    return timer.unref();
  }
}

function resolved(address: OpcuaAddress): ResolvedAddress {
  if (address.kind === "resolved") return address;
  throw new ReasonError("UNKNOWN", `${address.text} was not looked up before it was read`, { condition: "internal_error" });
}

const refusedBy = ({ fault, message }: FaultError): Reading => ({ quality: "bad", fault, detail: message });
const valuesIn = (list: readonly Waiting[]): readonly RawValue[] => list.filter((one) => !("hole" in one)) as RawValue[];
const NOTHING_EARLIER: ReadonlyMap<number, readonly Waiting[]> = new Map();
const describe = (status: number): string => describeCode(statusOf(status, null));

function discoverWith(opened: OpenedSession, capabilities: Capabilities, ctx: DriverContext): AsyncIterable<Discovered> {
  const { call } = opened;
  return discover(
    {
      browse: async (nodesToBrowse, requestedMaxReferencesPerNode) =>
        (await call("Browse", makeRequest("Browse", { nodesToBrowse, requestedMaxReferencesPerNode }), ctx)).results ?? [],
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
      namespaces: (capabilities.namespaces ?? []).map((uri) => uri ?? ""),
      maxNodesPerBrowse: capabilities.maxBrowse,
      maxNodesPerRead: capabilities.maxRead,
    },
    ctx,
  );
}
