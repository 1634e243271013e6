import type { OpcuaDetails } from "../../src/model/details.ts";
import { endpointParts } from "../../src/model/endpoint-url.ts";
import { messageOf } from "../../src/model/failure.ts";
import { ReasonError, type ReasonType } from "../../src/model/reason.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { DriverContext, Endpoint } from "../driver.ts";
import type { OpcuaInput } from "./open.ts";
import type { OpcuaSettings } from "./settings.ts";
import { codeOf, STATUS } from "./status-codes.ts";

/** One of two servers that have the same variables (OPC 10000-4, 6.6.2). */
export interface Candidate {
  readonly input: OpcuaInput;
  readonly endpoint: Endpoint;
}

/** From this ServiceLevel on a server is healthy (OPC 10000-4, 6.6.2.4); one that does not say counts as the best. */
const HEALTHY = 200;
const BEST = 255;
/** A first server that was away is not waited for again so soon. */
export const AWAY_MS = 60_000;

export const levelOf = (serviceLevel: number | undefined): number => serviceLevel ?? BEST;
export const isHealthy = (serviceLevel: number | undefined): boolean => levelOf(serviceLevel) >= HEALTHY;

/** The second server of a source; undefined: it has none. Pure. */
export function secondOf({ details, settings, secrets }: OpcuaInput, endpoint: Endpoint): Candidate | undefined {
  const url = settings.second_endpoint_url;
  const parts = endpointParts(url);
  if (!parts) return undefined;
  const { host } = parts;
  return { input: { details: { ...details, host, endpoint_url: url }, settings, secrets }, endpoint: { ...endpoint, host } };
}

/** Why the second URL does not fit the first; undefined: it does. The policy is asked for one port of a source. Pure. */
export function secondProblem({ endpoint_url, port }: OpcuaDetails, { second_endpoint_url: url }: OpcuaSettings): string | undefined {
  const parts = endpointParts(url);
  if (!parts) return undefined;
  if (url === endpoint_url) return "second_endpoint_url is endpoint_url: name another server, or leave it out";
  return parts.port === port ? undefined : `second_endpoint_url has port ${parts.port}; it must be ${port}, as that of the data source`;
}

/** A session as far as choosing between two matters. */
interface Chosen {
  readonly serviceLevel: number | undefined;
  close(): Promise<void>;
}

interface Choosing<S extends Chosen> {
  readonly first: Candidate;
  readonly second: Candidate;
  /** Monotonic ms until which the first is not waited for; it was away before. */
  readonly awayUntilMs: number;
  open(candidate: Candidate): Promise<S>;
  /** The first was away: it is not waited for until then. */
  onAway(untilMs: number): void;
}

/** `why`: why the second server is used; undefined: the first one is. */
export interface Choice<S> {
  readonly session: S;
  readonly why: Warning | undefined;
}

/**
 * Opens the first server, or the second where the first is away; where the first answers and is not healthy, the one with the higher
 * ServiceLevel. Throws ReasonError that tells both failures, or the first's where it is not away: a certificate or a password that is refused
 * is not mended by another server.
 */
export async function openPreferred<S extends Chosen>({ first, second, awayUntilMs, open, onAway }: Choosing<S>): Promise<Choice<S>> {
  const [firstUrl, secondUrl] = [first, second].map(({ input }) => input.details.endpoint_url) as [string, string];
  const inUse = (why: string) =>
    warning("second_endpoint_in_use", `values are read at ${secondUrl}, because ${firstUrl} ${why}`, secondUrl);
  const away = (failure: string) => inUse(`is away: ${failure}; the collector looks every ${AWAY_MS / 1000} s whether it is back`);
  if (performance.now() < awayUntilMs) {
    const opened = await open(second).catch(reasonOrThrow);
    if (!(opened instanceof ReasonError)) return { session: opened, why: away("it did not answer a short while ago") };
  }
  const one = await open(first).catch(reasonOrThrow);
  if (one instanceof ReasonError) {
    if (!isAway(one)) throw one;
    onAway(performance.now() + AWAY_MS);
    const other = await open(second).catch(reasonOrThrow);
    if (other instanceof ReasonError) {
      const { condition, retryAfterMs } = one;
      const options = { cause: one, ...(condition && { condition }), ...(retryAfterMs !== undefined && { retryAfterMs }) };
      throw new ReasonError(one.reason, `${one.message}; the second server ${secondUrl}: ${other.message}`, options);
    }
    return { session: other, why: away(one.message) };
  }
  if (isHealthy(one.serviceLevel)) return { session: one, why: undefined };
  const other = await open(second).catch(() => undefined);
  const [level, otherLevel] = [levelOf(one.serviceLevel), other ? levelOf(other.serviceLevel) : -1];
  if (!other || otherLevel <= level) {
    await other?.close();
    return { session: one, why: undefined };
  }
  await one.close();
  return { session: other, why: inUse(`says ServiceLevel ${level}, and the second ${otherLevel}`) };
}

function reasonOrThrow(error: unknown): ReasonError {
  if (error instanceof ReasonError) return error;
  throw error;
}

const NETWORK: ReadonlySet<ReasonType> = new Set([
  "NO_ROUTE_TO_HOST",
  "HOST_DOWN",
  "NETWORK_UNREACHABLE",
  "CONNECTION_REFUSED",
  "CONNECTION_RESET",
  "CONNECTION_CLOSED",
  "LOOKUP_ERROR",
  "TIMEOUT",
]);
const AWAY: ReadonlySet<number> = new Set([
  STATUS.BadShutdown,
  STATUS.BadServerHalted,
  STATUS.BadTooManySessions,
  STATUS.BadTcpServerTooBusy,
  STATUS.BadTimeout,
]);

/** The server cannot be used at this moment, whoever asks. */
export const isAway = ({ reason, condition }: ReasonError): boolean =>
  condition !== "forbidden_by_policy" &&
  (NETWORK.has(reason.type) || (reason.type === "OPC_UA_ERROR_RESPONSE" && AWAY.has(codeOf(reason.code))));

/** Looks in the time of a readout, now and then, for a server that was away: `connect` opens a connection to it and closes it. */
export class ReturnWatch {
  readonly #connect: (ctx: DriverContext) => Promise<void>;
  readonly #now: () => number;
  #nextMs: number;
  #isLooking = false;
  #isBack = false;

  constructor(connect: (ctx: DriverContext) => Promise<void>, now: () => number = () => performance.now()) {
    this.#connect = connect;
    this.#now = now;
    this.#nextMs = now() + AWAY_MS;
  }

  get isBack(): boolean {
    return this.#isBack;
  }

  /** Never throws, and nobody waits for it. */
  look(ctx: DriverContext): void {
    if (this.#isBack || this.#isLooking || this.#now() < this.#nextMs) return;
    this.#isLooking = true;
    // The look is at another address than the readout.
    const { connected: _, ...rest } = ctx;
    this.#connect({ ...rest, signal: AbortSignal.timeout(ctx.timeouts.connectMs + ctx.timeouts.nameMs) })
      .then(
        () => {
          this.#isBack = true;
        },
        (error: unknown) => ctx.log.debug({}, `the first server is still away: ${messageOf(error)}`),
      )
      .finally(() => {
        this.#isLooking = false;
        this.#nextMs = this.#now() + AWAY_MS;
      });
  }
}
