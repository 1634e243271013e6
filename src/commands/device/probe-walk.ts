import type { AnyDriver, AnySession, ConnectInput, DriverContext, Point, Timeouts } from "../../../drivers/driver.ts";
import { resolveHost } from "../../../drivers/lib/resolve.ts";
import { permittedResolve } from "../../lib/resolver.ts";
import { type Address, literalAddress } from "../../model/address.ts";
import type { Log } from "../../model/context.ts";
import { toFailure, toReasonError } from "../../model/failure.ts";
import { FaultError } from "../../model/fault.ts";
import type { Pki } from "../../model/pki.ts";
import type { Permit } from "../../model/policy.ts";
import { ReasonError, type ReasonType } from "../../model/reason.ts";
import { type DataType, formatDataType, type Reading } from "../../model/value.ts";
import type { Warning } from "../../model/warning.ts";
import { neighbourAt, type Route, routeTo } from "../../os/route.ts";
import type { CommandIo } from "../io.ts";
import { lookUpName } from "./device.ts";
import { keptOf, PassDeadline, readPass } from "./pass.ts";
import { askOtherProtocols, isUnread, type OtherProtocol } from "./probe-other.ts";
import { askOtherParts } from "./probe-parts.ts";
import { askOtherWays, mayHaveOtherWay } from "./probe-ways.ts";
import { textValue } from "./values.ts";

/** The way to a value, in the order in which it is walked. */
export const PROBE_STEPS = [
  "name",
  "policy",
  "route",
  "neighbour",
  "connection",
  "handshake",
  "tls",
  "log-in",
  "publish",
  "first value",
] as const;
export type ProbeStep = (typeof PROBE_STEPS)[number];

export interface StepResult {
  readonly step: ProbeStep;
  /** unknown: it cannot be looked at here, which says nothing of the device. */
  readonly result: "ok" | "failed" | "unknown";
  /** Null: it takes no time of its own. */
  readonly ms: number | null;
  readonly detail: string;
}

/** What is walked to, and what may be asked for there. */
export interface ProbeTarget extends ConnectInput<unknown, unknown> {
  readonly driver: AnyDriver;
  readonly timeouts: Timeouts;
  readonly prepareMs: number;
  readonly permit: Permit | undefined;
  readonly pki: Pki | undefined;
  /** The first of them that is good ends the walk. */
  readonly points: readonly ProbePoint[];
  /** Warnings of its configuration; absent: it has none. */
  readonly warnings?: readonly Warning[];
  /** Nothing is asked over the connection. */
  readonly endsAtConnection?: boolean;
  /** Name of its data source; absent: it is typed. */
  readonly source?: string;
  /** Only what is configured is asked, no other units, slots and protocols. */
  readonly isOnlyConfigured?: boolean;
}

export interface ProbePoint {
  /** As people call it. */
  readonly text: string;
  readonly address: unknown;
  readonly type: DataType;
}

/** The place where the walk ended. */
export interface Walked {
  readonly steps: readonly StepResult[];
  /** The source failed at the last step. */
  readonly failure: ReasonError | undefined;
  /** The device answers, and refuses what was asked for: the first refusal. */
  readonly fault: (Reading & { readonly quality: "bad" }) | undefined;
  /** The device about itself. */
  readonly notes: readonly string[];
  /** Sizes and rights that the device gave, a sentence. Absent: no session, or its driver does not say. */
  readonly granted?: string;
  /** Warnings of the configuration and of the session. */
  readonly warnings: readonly Warning[];
  /** A sentence that the walk found out, in the place of the usual advice. Absent: it found none. */
  readonly nextStep?: string;
}

/** Points that are asked for until one is good. */
export const MAX_PROBED = 20;
/** Of what a device sends first and nobody understands. */
const MAX_SHOWN_BYTES = 16;
/** What a failure without a connection is about; all else comes from the device. */
const NETWORK: ReadonlySet<ReasonType> = new Set([
  "NO_ROUTE_TO_HOST",
  "HOST_DOWN",
  "NETWORK_UNREACHABLE",
  "CONNECTION_REFUSED",
  "CONNECTION_RESET",
  "TIMEOUT",
]);

/**
 * Walks the whole way to a value with one connection of its own, step by step, and stops at the first that fails. Reads only. `tell` gets each
 * step as it ends. Never throws.
 */
export async function walk(
  target: ProbeTarget,
  { io, log, timeoutMs, tell }: { readonly io: CommandIo; readonly log: Log; readonly timeoutMs: number; tell(step: StepResult): void },
): Promise<Walked> {
  const deadline = new PassDeadline(timeoutMs, target.prepareMs, io);
  try {
    return await new Walk(target, log, deadline, tell).run();
  } finally {
    deadline.end();
  }
}

class Walk {
  readonly #target: ProbeTarget;
  readonly #log: Log;
  readonly #deadline: PassDeadline;
  readonly #tell: (step: StepResult) => void;
  readonly #steps: StepResult[] = [];
  readonly #frames = { out: 0, in: 0 };
  /** The first of it. */
  #heard = "";
  /** See Walked. */
  #nextStep: string | undefined;

  constructor(target: ProbeTarget, log: Log, deadline: PassDeadline, tell: (step: StepResult) => void) {
    this.#target = target;
    this.#log = log;
    this.#deadline = deadline;
    this.#tell = tell;
  }

  async run(): Promise<Walked> {
    let session: AnySession | undefined;
    let opened: AnySession | undefined;
    const about = () => this.#about(session ?? opened);
    try {
      const addresses = await this.#resolve();
      const route = await this.#route(addresses[0]);
      session = await this.#connect(addresses, route);
      opened = session;
      if (this.#target.endsAtConnection) return { steps: this.#steps, failure: undefined, fault: undefined, ...this.#about(undefined) };
      const { left, failure, ...found } = await this.#readFirst(session, addresses);
      session = left;
      const told = about();
      const identity = failure ? undefined : await this.#identity(session, addresses);
      return { steps: this.#steps, failure, ...told, notes: [...told.notes, ...(identity === undefined ? [] : [identity])], ...found };
    } catch (error) {
      const found = this.#nextStep === undefined ? {} : { nextStep: this.#nextStep };
      return { steps: this.#steps, failure: toReasonError(error), fault: undefined, ...about(), ...found };
    } finally {
      await session?.close();
    }
  }

  /** The addresses that may be connected to. */
  async #resolve(): Promise<readonly [Address, ...Address[]]> {
    const { driver, details, settings, permit } = this.#target;
    const { host, port } = driver.endpoint(details, settings);
    const literal = literalAddress(host);
    const beganMs = performance.now();
    const found = await resolveHost(host, this.#context()).catch((error: unknown) => this.#fail("name", beganMs, error));
    const named = found.map(({ address }) => address).join(", ");
    this.#done("name", beganMs, literal ? `${host} is an address: nothing to look up` : `${host} is ${named}`);
    const refusals = found.map(({ address }) => permit?.(address, port));
    const [first, ...rest] = found.filter((_, i) => refusals[i] === undefined);
    if (!first) throw this.#fail("policy", undefined, new ReasonError("UNKNOWN", refusals[0] ?? "", { condition: "forbidden_by_policy" }));
    const closed = refusals.filter((refusal) => refusal !== undefined);
    const open = permit ? `${first.address} port ${port} may be connected to` : "a person may type any address: there is no policy.yaml";
    this.#done("policy", undefined, [open, ...closed].join("; "));
    return [first, ...rest];
  }

  async #route({ address }: Address): Promise<Route | undefined> {
    const beganMs = performance.now();
    const route = await routeTo(address, this.#deadline.signal);
    if (route === "none") {
      const words = `this machine has no route to ${address}`;
      throw this.#fail("route", beganMs, new ReasonError("NETWORK_UNREACHABLE", words));
    }
    if (!route) this.#add({ step: "route", result: "unknown", ms: null, detail: "the kernel cannot be asked here (ip route get)" });
    else this.#done("route", beganMs, routeWords(route));
    return route;
  }

  async #connect(addresses: readonly Address[], route: Route | undefined): Promise<AnySession> {
    const { driver, details, settings, secrets } = this.#target;
    const { transport, port } = driver.endpoint(details, settings);
    await this.#deadline.load(driver);
    const beganMs = performance.now();
    const at: { connected?: { readonly ms: number; readonly address: string }; loggingIn?: number } = {};
    const ctx: DriverContext = {
      ...this.#context(addresses),
      connected: (_, address) => {
        at.connected ??= { ms: performance.now(), address };
      },
      loggingIn: () => {
        at.loggingIn ??= performance.now();
      },
    };
    const opened = await driver.connect({ details, settings, secrets }, ctx).catch((error: unknown) => toReasonError(error));
    const endedMs = performance.now();
    const failed = opened instanceof ReasonError ? opened : undefined;
    await this.#neighbour(addresses[0], route, failed !== undefined && !at.connected);
    const isNetworks = failed !== undefined && !at.connected && this.#frames.in === 0 && NETWORK.has(failed.reason.type);
    if (isNetworks) {
      // By UDP a wrong node and a device that is off are the same silence.
      const others = this.#frames.out > 0 ? await this.#others(failed, addresses) : [];
      throw this.#fail("connection", beganMs, failed, endedMs, others.length > 0 ? others.join("; ") : undefined);
    }
    const where = `${at.connected?.address ?? addresses[0]?.address} port ${port}`;
    const connectedMs = at.connected?.ms ?? beganMs;
    this.#done("connection", beganMs, transport === "udp" ? `${where}, UDP: nothing to open` : `to ${where}`, connectedMs);
    if (this.#target.endsAtConnection && !failed) return opened as AnySession;
    const isOfLogIn = failed?.condition === "secret_missing" || at.loggingIn !== undefined;
    if (failed && !isOfLogIn) {
      const more = [this.#heardWords(), ...(await this.#others(failed, addresses))].join("; ");
      throw this.#fail("handshake", connectedMs, failed, endedMs, more);
    }
    this.#done("handshake", connectedMs, this.#frameWords(), at.loggingIn ?? endedMs);
    if (failed) throw this.#fail("log-in", at.loggingIn, failed, endedMs);
    if (at.loggingIn !== undefined) this.#done("log-in", at.loggingIn, "the device lets the collector in", endedMs);
    return opened as AnySession;
  }

  /** What the packets of the connection have found at the address, or at the router on the way to it. */
  async #neighbour(address: Address | undefined, route: Route | undefined, hasNoConnection: boolean): Promise<void> {
    if (!route || route.isLocal || !address) return;
    const asked = route.via ?? address.address;
    const who = route.via === undefined ? asked : `the router ${asked}`;
    const found = await neighbourAt(asked, this.#deadline.signal);
    if (!found) this.#add({ step: "neighbour", result: "unknown", ms: null, detail: `the kernel has no entry for ${who}` });
    else if (found.mac !== undefined) this.#done("neighbour", undefined, `${who} is ${found.mac} (${found.state})`);
    else {
      const detail = `no device on ${route.device} answers for ${who} (${found.state})`;
      this.#add({ step: "neighbour", result: hasNoConnection ? "failed" : "unknown", ms: null, detail });
    }
  }

  async #readFirst(
    session: AnySession,
    addresses: readonly Address[],
  ): Promise<Pick<Walked, "fault" | "nextStep"> & { readonly failure?: ReasonError; readonly left: AnySession | undefined }> {
    const { driver, details, settings, secrets, points } = this.#target;
    const asked = points.slice(0, MAX_PROBED);
    if (asked.length === 0) {
      this.#add({ step: "first value", result: "unknown", ms: null, detail: "there is no variable to ask for" });
      return { fault: undefined, left: session };
    }
    const beganMs = performance.now();
    const kept = keptOf(
      asked.map(({ address, type }, index): Point => ({ index, address, type })),
      { driver, settings, log: this.#log },
    );
    const input = { details, settings, secrets };
    const read = await readPass(driver, input, this.#context(addresses), session, kept, this.#deadline);
    const { readings, failure } = read.pass;
    const place = readings.findIndex((reading) => reading !== undefined && reading.quality !== "bad");
    const [point, reading] = [asked[place], readings[place]];
    if (point && reading && reading.quality !== "bad") {
      const type = point.type.scalar === "auto" ? (reading.type ?? point.type) : point.type;
      const bad = readings.slice(0, place).filter((one) => one?.quality === "bad").length;
      const others = bad === 0 ? "" : `; ${bad} before it are bad`;
      this.#done("first value", beganMs, `${point.text} = ${textValue(reading.value, type)} (${formatDataType(type)})${others}`);
      return { fault: undefined, left: read.session };
    }
    const fault = readings.find((one): one is Reading & { quality: "bad" } => one?.quality === "bad");
    const reason = failure ?? (fault ? undefined : new ReasonError("TIMEOUT", "nothing was answered within the time"));
    const detail = reason?.message ?? `${asked[0]?.text}: ${fault?.fault}${fault?.detail === undefined ? "" : `: ${fault.detail}`}`;
    const isSilent = reason ? reason.reason.type === "TIMEOUT" : fault?.fault === "no_answer";
    const others =
      isSilent && !this.#target.isOnlyConfigured
        ? await askOtherParts(this.#target, asked[0], read.session, this.#context(addresses))
        : undefined;
    const ms = performance.now() - beganMs;
    const other =
      reason && others?.nextStep === undefined ? await this.#otherProtocol(reason, addresses, others?.left ?? read.session) : undefined;
    const none = asked.length > 1 ? `none of ${asked.length}: ` : "";
    const more = [others?.detail, other?.detail].flatMap((words) => (words === undefined ? [] : [`; ${words}`])).join("");
    this.#add({ step: "first value", result: "failed", ms, detail: `${none}${detail}${more}` });
    const { left = read.session } = others ?? {};
    const nextStep = others?.nextStep ?? other?.nextStep;
    return { fault: reason ? undefined : fault, ...(reason && { failure: reason }), ...(nextStep !== undefined && { nextStep }), left };
  }

  /** Words on the usual other ways to the device, or on the program at the port; the next step is kept. */
  async #others(failure: ReasonError, addresses: readonly Address[]): Promise<readonly string[]> {
    const mayAsk = !this.#target.isOnlyConfigured && mayHaveOtherWay(failure, this.#frames.out);
    const way = mayAsk ? await askOtherWays(this.#target, this.#context(addresses)) : undefined;
    this.#nextStep = way?.nextStep;
    if (way?.nextStep !== undefined) return [way.detail];
    const other = await this.#otherProtocol(failure, addresses);
    this.#nextStep = other?.nextStep;
    return [way?.detail, other?.detail].filter((words) => words !== undefined);
  }

  /** The program at the port, where nothing that came can be read; ends the connection that is open first. */
  async #otherProtocol(
    failure: ReasonError,
    addresses: readonly Address[],
    session?: AnySession | undefined,
  ): Promise<OtherProtocol | undefined> {
    if (this.#target.isOnlyConfigured || !isUnread(failure, this.#frames.in)) return undefined;
    await session?.close();
    return askOtherProtocols(this.#target, this.#context(addresses));
  }

  #context(addresses?: readonly Address[]): DriverContext {
    const { timeouts, pki } = this.#target;
    return {
      signal: this.#deadline.signal,
      log: this.#log,
      timeouts,
      ...(pki && { pki }),
      // The walk is to the first host; a second server is not asked past the policy.
      resolve: addresses ? (host, signal) => this.#again(host, addresses, signal) : lookUpName,
      tap: (direction, frame) => {
        this.#frames[direction]++;
        if (direction === "in" && this.#heard === "") this.#heard = Buffer.from(frame.subarray(0, MAX_SHOWN_BYTES)).toString("hex");
      },
    };
  }

  async #again(host: string, addresses: readonly Address[], signal: AbortSignal): Promise<readonly Address[]> {
    const { driver, details, settings, permit } = this.#target;
    const endpoint = driver.endpoint(details, settings);
    if (host === endpoint.host) return addresses;
    const resolver = { resolve: ({ host: name }: { readonly host: string }, during: AbortSignal) => lookUpName(name, during) };
    return permittedResolve(resolver, permit, endpoint.port)(host, signal);
  }

  #about(session: AnySession | undefined): Pick<Walked, "notes" | "warnings" | "granted"> {
    const warnings = [...(this.#target.warnings ?? []), ...(session?.warnings?.() ?? [])];
    const { about, granted } = session ?? {};
    return { notes: about === undefined ? [] : [about], warnings, ...(granted !== undefined && { granted }) };
  }

  /** The device's own words on itself, where its protocol has a request for them: last, since the connection may be lost over it. */
  async #identity(session: AnySession | undefined, addresses: readonly Address[]): Promise<string | undefined> {
    const [first] = this.#target.points;
    if (!session?.identify || !session.alive() || !first) return undefined;
    try {
      const words = await session.identify({ index: 0, address: first.address, type: first.type }, this.#context(addresses));
      return words === "" ? undefined : `the device says of itself: ${words}`;
    } catch (error) {
      const failure = toFailure(error);
      return failure instanceof FaultError ? undefined : `the device does not say what it is: ${failure.message}`;
    }
  }

  #frameWords(): string {
    const { out, in: back } = this.#frames;
    return out + back === 0 ? "the protocol has none" : `${out} frames sent, ${back} received`;
  }

  #heardWords(): string {
    return this.#heard === ""
      ? "the device sent nothing that could be read"
      : `the device sent first: ${this.#heard.replace(/..(?=.)/g, "$& ")}`;
  }

  #done(step: ProbeStep, beganMs: number | undefined, detail: string, endedMs = performance.now()): void {
    this.#add({ step, result: "ok", ms: beganMs === undefined ? null : endedMs - beganMs, detail });
  }

  /** Throws the failure, as a ReasonError. */
  #fail(step: ProbeStep, beganMs: number | undefined, error: unknown, endedMs = performance.now(), more?: string): never {
    const failure = toReasonError(error);
    const ms = beganMs === undefined ? null : endedMs - beganMs;
    this.#add({ step, result: "failed", ms, detail: more === undefined ? failure.message : `${failure.message}; ${more}` });
    throw failure;
  }

  #add(step: StepResult): void {
    this.#steps.push(step);
    this.#tell(step);
  }
}

function routeWords({ device, via, from, isLocal }: Route): string {
  if (isLocal) return "this machine itself";
  const source = from === undefined ? "" : `, from ${from}`;
  return via === undefined ? `${device}, the same network${source}` : `${device}, by the router ${via}${source}`;
}
