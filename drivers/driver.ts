import type { z } from "zod";
import { type Steps, sleep } from "../src/base/timer.ts";
import type { Address } from "../src/model/address.ts";
import { bounded, clip } from "../src/model/bounded-failure.ts";
import type { Condition } from "../src/model/condition.ts";
import type { Context } from "../src/model/context.ts";
import { messageOf, toFailure, toReadFailure, toReasonError } from "../src/model/failure.ts";
import { FaultError } from "../src/model/fault.ts";
import type { HabitName } from "../src/model/habit.ts";
import type { Kept } from "../src/model/kept.ts";
import type { PackedReadings } from "../src/model/reading-columns.ts";
import { type Reason, ReasonError } from "../src/model/reason.ts";
import { type DataType, parseDataType, type Reading } from "../src/model/value.ts";
import { type Warning, warning } from "../src/model/warning.ts";
import type { Wire } from "../src/model/wire.ts";
import type { TypeFacts } from "./facts.ts";

/** One variable to read, its address already parsed. `index` is its place in the source's layout. */
export interface Point<A = unknown> {
  readonly index: number;
  readonly address: A;
  readonly type: DataType;
  /**
   * Numbers that differ by no more count as equal: a device that sends changes may leave such a difference out. As the device has the number,
   * before scaling. Absent: each change counts.
   */
  readonly deadband?: number;
}

/** One exchange with the device. A driver adds what it needs to form it. */
export interface Request<A = unknown> {
  readonly points: readonly Point<A>[];
  /**
   * What behind the endpoint answers (`unit 3`), where several do: no request mixes two. One that is silent is asked seldom and
   * costs the others nothing. Absent: the device itself.
   */
  readonly part?: string;
}

/** What one request may hold: the smaller of what the device grants and what the settings say. A driver may add its own. */
export interface Limits {
  readonly maxPoints: number;
  /** Payload bytes in one answer. */
  readonly maxBytes: number;
  /** Requests in flight at once; 1 for most controllers. */
  readonly inFlight: number;
}

export interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly transport: "tcp" | "udp";
}

export type Direction = "out" | "in";
/** Takes every frame, before encryption where there is one. */
export type Tap = (direction: Direction, frame: Uint8Array) => void;

/** Milliseconds for one step each; the whole readout is bounded by `signal`. */
export interface Timeouts {
  /** Name look-up; running out of it is LOOKUP_ERROR. */ readonly nameMs: number;
  /** TCP connect; below 3.1 s a failed ARP shows as TIMEOUT. */ readonly connectMs: number;
  /** One request to its answer. */ readonly answerMs: number;
}

/**
 * Promises of the agent: one deadline per readout in `signal`; no call overlaps another on one session beyond `limits.inFlight`. `tap`,
 * `listenRefusal`, `habit` and `loggingIn` are not passed on to the session worker.
 */
export interface DriverContext extends Pick<Context, "signal" | "log" | "pki" | "listenRefusal"> {
  readonly timeouts: Timeouts;
  /** Absent: the frames are not shown. */
  readonly tap?: Tap;
  /** Records the bytes of the connections that the driver opens, as their sockets send and receive them. Absent: not recorded. */
  readonly wire?: Wire;
  /**
   * Name (or address) to its addresses, at least one, in the order in which they are tried, with the agent's memory and policy: no connection
   * goes past it. Absent: the system's look-up.
   */
  readonly resolve?: (host: string, signal: AbortSignal) => Promise<readonly Address[]>;
  /** This of the addresses that `resolve` gave for the host took the connection: it is preferred the next time. */
  readonly connected?: (host: string, address: string) => void;
  /** Names who reads, over all sessions: a device that sends changes keeps them for each reader. Absent: it has no name. */
  readonly reader?: string;
  /** Between two readouts of this reader, ms. Absent: not known. */
  readonly intervalMs?: number;
  /** Memory that outlives a session of this device. Absent: there is none. */
  readonly device?: DeviceMemory;
  /** What is kept of the source over restarts of the collector; given to `prepare`. Absent: nothing is. */
  readonly kept?: Kept;
  /** The driver saw that the device has a habit, or has it no longer: see `habitSettings`. Absent: nobody keeps it. */
  readonly habit?: (name: HabitName, holds: boolean) => void;
  /** Tells how far long work (preparing, discovering) has come; `total` undefined: not known. Absent: not reported. */
  readonly progress?: (done: number, total: number | undefined) => void;
  /** Discovered nodes are to have their browse paths. Not passed on to the session worker. Absent: they need none. */
  readonly browsePaths?: true;
  /** The handshake is done and the log-in begins: said by drivers that have both. Absent: not reported. */
  readonly loggingIn?: () => void;
}

/**
 * What a driver keeps of one device over sessions: learned limits, resolved symbols. Kept by the agent while it runs, and of sessions in
 * the session worker until that ends, for 1000 devices and 64 keys each; what was not used for longest goes first. Values are plain data
 * that nobody changes, or an object that its sessions share.
 */
export interface DeviceMemory {
  get(key: string): unknown;
  set(key: string, value: unknown): void;
}

/** What a device says of a point before it is read: where it is and of which type, or why it cannot be read. */
export type Prepared<A = unknown> =
  | { readonly point: Point<A>; readonly address: A; readonly type: DataType }
  | {
      readonly point: Point<A>;
      readonly refusal: FaultError;
      /** The device may have it after so many ms: it is looked up again then. Absent: when the epoch or the program changes. */
      readonly retryAfterMs?: number;
    };

/** What a look behind the values of a readout has found. */
export interface Confirmation<A = unknown> {
  /**
   * Of the points that were given: their values may be another variable's, and why, in a sentence. The epoch is another one then, so that they
   * are looked up again before the next readout.
   */
  readonly doubtful: readonly { readonly points: readonly Point<A>[]; readonly detail: string }[];
  /**
   * This many ms ago began the look at the point that was looked at longest ago: what was read of any point before then was its own. Undefined:
   * of none of them the device says when it changed.
   */
  readonly ageMs: number | undefined;
}

export interface Discovered {
  readonly address: string;
  readonly name: string;
  /** Undefined: a folder, or of a type that the collector cannot read. */
  readonly type: DataType | undefined;
  /** Names from the top down to where it was found, its own not among them. */
  readonly path?: readonly string[];
  readonly unit?: string;
  readonly comment?: string;
  /** The address of its browse path, which stays where its own address may change; where `ctx.browsePaths` asks for it. */
  readonly browsePath?: string;
}

/** One place of a device, read in other ways than it is configured. */
export interface WirePlaces<A = unknown> {
  /** As its bytes, in the order in which they come: an array of uint8 or uint16. Read by a request of its own, over an address that was prepared. */
  readonly bytes: { readonly address: A; readonly type: DataType };
  /** What the bytes are where they are more than the value, in the protocol's words: `flags, datatype, value`. */
  readonly form?: string;
  /** As the same type in each order of bytes that devices of this protocol have, or in each coding of numbers (binary, BCD); empty: there is one. */
  readonly orders: readonly { readonly order: string; readonly isConfigured: boolean; readonly address: A }[];
}

/** A live connection. Reads only: nothing here can change a device. */
export interface Session<A = unknown, R extends Request<A> = Request<A>, L extends Limits = Limits> {
  /** Another object when they change: the next readout is planned by it. */
  readonly limits: L;
  /**
   * readings[i] belongs to request.points[i]. The driver may reuse the objects: they stay valid until the read after next of the
   * same request. Throws FaultError: the device refused this request (the connection is good), and its scope says whether asking
   * for less would help; PartialRefusal, where it refused some items of the request and answered the others; anything else: the
   * source failed, and the agent throws the session away.
   */
  read(request: R, ctx: DriverContext): Promise<readonly Reading[]>;
  /** `read` for a reader in another thread: columns whose buffer may be transferred. Absent: the readings are packed. */
  readColumns?(request: R, ctx: DriverContext): Promise<PackedReadings>;
  /**
   * Looks up where points are before they are planned and read (a symbol, a path, a size). Batches of any size; the agent keeps each
   * batch, also where the rest fails or its deadline comes, and asks for what is missing in the next readout. Points that are not
   * prepared are not planned. Throws as `read` does. Absent: addresses are read as they are.
   */
  prepare?(points: readonly Point<A>[], ctx: DriverContext): AsyncIterable<readonly Prepared<A>[]>;
  /**
   * Looks whether the device still has the program in which these points were looked up, once their values are read and before they are
   * published. Takes `withinMs` at most, but for its first request; the rest, which was looked at longest ago, follows in later calls. The same
   * array of points while nothing changes. Throws ReasonError: the connection is lost. Absent: each read tells of another program by itself, or
   * nothing does. Not passed on to the session worker.
   */
  confirm?(points: readonly Point<A>[], withinMs: number, ctx: DriverContext): Promise<Confirmation<A>>;
  /**
   * What has been prepared holds in sessions of an equal epoch (the version of a program, a list of namespaces). Absent: in all. It
   * changes before a read or a preparing tells of another program.
   */
  readonly epoch?: string | undefined;
  /** What the device has, the nearer to the top first, each once. There if and only if the driver says `canDiscover`. */
  discover?(ctx: DriverContext): AsyncIterable<Discovered>;
  /** A sentence by the device about itself, for a person who probes it. Not passed on to the session worker. Absent: nothing. */
  readonly about?: string;
  /**
   * Asks what answers at this point who it is: maker, model, revision, in a sentence. For a person who probes it, once the values are read: the device may
   * not know the request, and the connection may be lost over it. Throws as `read` does. Not passed on to the session worker. Absent: the
   * protocol has no such request.
   */
  identify?(point: Point<A>, ctx: DriverContext): Promise<string>;
  /** Sizes and rights that the device gave this session, in its protocol's words, for the same person. Not passed on either. Absent: it gives none. */
  readonly granted?: string;
  /** Warnings while the session is healthy: one sentence each, without secrets. Absent: none. */
  warnings?(): readonly Warning[];
  /** False once the device has gone; the agent then opens a new one before it reads. */
  alive(): boolean;
  /** Idempotent, bounded in time, never throws. */
  close(): Promise<void>;
}

export interface ConnectInput<D, S> {
  readonly details: D;
  readonly settings: S;
  /** By field name (`password`); from local credentials or the API's extension. Never logged. */
  readonly secrets: Readonly<Record<string, string>>;
}

/** Another way to a device, for a person who may have a wrong slot or node. */
export interface OtherWay<D = unknown, S = unknown> {
  /** Its difference from the configured way: `slot 1`. */
  readonly words: string;
  /** Fields for `collector source set`: `slot=1`. */
  readonly fields: readonly string[];
  readonly details: D;
  readonly settings: S;
}

/** Addresses that a device may renumber, and a form of them that stays. All pure. */
export interface RenumberedAddresses<A = unknown, D = unknown> {
  has(address: A): boolean;
  /** What a source with so many of them is warned of, with the command that rewrites them; `source`: as a command takes its name. */
  warning(count: number, source: string): Warning;
  /**
   * The form that stays, by what the driver has kept of the source (`Kept.values`) with the `details` of now; undefined: the address has it
   * already. Throws FaultError where that does not say it.
   */
  lasting(address: string, kept: Kept["values"], details: D): string | undefined;
}

export interface Driver<D = unknown, S = unknown, A = unknown, R extends Request<A> = Request<A>, L extends Limits = Limits>
  extends Pick<TypeFacts, "title" | "standardPort" | "usualPort"> {
  /** `details.type` of the data sources it reads. */
  readonly type: string;
  /** Connection details as the API holds them (API-V2, 2.2). */
  readonly details: z.ZodType<D>;
  /** The local options of this type: a strict object, every field with a description and a default. */
  readonly settings: z.ZodType<S>;
  /** Connections that a device of this type takes at once; settable per source. */
  readonly maxConnections: number;
  /** True: a device of this type can be asked what it has. Absent: it cannot. */
  readonly canDiscover?: boolean;
  /** The place where the device is: sources that share it take turns. */
  endpoint(details: D, settings: S): Endpoint;
  /** The place where the device connects to, `address:port` of this machine. Pure. Absent, or undefined: the collector connects to the device. */
  listensAt?(details: D, settings: S): string | undefined;
  /** What protects the bytes on the way there, in words such as `TLS`. Pure. Absent: nothing. */
  encryption?(details: D, settings: S): string;
  /** False: a new connection for each readout. */
  keepsConnection(details: D, settings: S): boolean;
  /**
   * The part of an address (`unit 7`), and its place in parts by which many devices answer whatever they are set to: for a person who may have
   * the wrong one. `advice`: how to write it, from a verb on. `fields`: see OtherWay, for addresses that name no part. Pure. Absent: there are
   * no such parts.
   */
  otherParts?(
    address: A,
    settings: S,
  ): {
    readonly part: string;
    readonly others: readonly { readonly part: string; readonly advice: string; readonly fields: readonly string[]; readonly address: A }[];
  };
  /**
   * Usual ways to such a device but the given one, the likeliest first, eight at most: `connect` shows of each whether the device answers
   * there. Pure. Absent: there is one way.
   */
  otherWays?(details: D, settings: S): readonly OtherWay<D, S>[];
  /**
   * The settings by which a device with this habit is asked as it wants: once the agent has learned it, it plans and connects by them. `value`:
   * see Habit. `settings`: as they are configured. Pure. Absent, or undefined: devices of this type have no such habit, or are not to be tried.
   */
  habitSettings?(habit: HabitName, value: number, settings: S): Partial<S> | undefined;
  /**
   * Sources on one host and port with equal keys share an open connection: what of the configuration the connection depends on.
   * Pure. Absent: all of details, settings and secrets.
   */
  connectionKey?(details: D, settings: S): string;
  /** What a source may ask for on a connection that another one may have opened. Pure. Absent: what the session grants. */
  limits?(granted: L, settings: S): L;
  /** What the configuration itself makes a warning of in status: one sentence each, without secrets. Pure. Absent: nothing. */
  warningsOf?(details: D, settings: S): readonly Warning[];
  /**
   * Why details and settings that are right by themselves cannot be used together, so that the source is not started: one sentence, without
   * secrets. Pure. Absent, or undefined: they can.
   */
  problemOf?(details: D, settings: S): { readonly condition: Condition; readonly detail: string } | undefined;
  /**
   * Pure. The type that a word of the field means (`S5TIME`, `WSTRING[16]`); undefined: it is none of this driver's. Words that every
   * driver takes are not asked for: see parseDataType. Absent: there are no others.
   */
  parseType?(text: string): DataType | undefined;
  /** Pure. A request in the field's words: `holding registers 10..12 of unit 1`. Absent: it is named by its variables. */
  describe?(request: R): string;
  /**
   * Pure. One whole frame in the field's words, by the functions that judge requests and take answers apart; undefined: the bytes are something
   * else, or a part. Absent: frames are shown as bytes.
   */
  frameWords?(frame: Buffer, direction: "out" | "in"): string | undefined;
  /** Pure. How the bytes of a variable are read, and what they say in other orders; undefined, or absent: it has no bytes to show. */
  wireOf?(address: A, type: DataType): WirePlaces<A> | undefined;
  /** Pure. Payload bytes of the answer to a request, gaps included. Absent: as much as the types of its points take. */
  answerBytes?(request: R): number;
  /**
   * Pure. `type` undefined: the driver's default for this address. Settings are those of the source (a unit id, an order).
   * Throws FaultError("address_invalid" | "type_mismatch") whose message names the text and what would be right, and nothing else.
   */
  parseAddress(text: string, type: DataType | undefined, settings: S): { readonly address: A; readonly type: DataType };
  /**
   * Pure. The sentence for an address that is valid here and has the form of another place in other tools: for lists that such a tool wrote.
   * Absent, or undefined: it has no such form.
   */
  otherMeaning?(text: string): string | undefined;
  /** Published models of machines that a device may follow: what of its nodes such a profile has, by its name. Pure. Absent: there are none. */
  readonly machineProfiles?: {
    readonly names: readonly string[];
    of(name: string): ((one: Discovered) => Discovered | undefined) | undefined;
  };
  /** Addresses that a device may renumber when it starts again. Absent: it has none. */
  readonly renumbered?: RenumberedAddresses<A, D>;
  /**
   * Pure. Every point in exactly one request, no request above the limits (one point may exceed maxBytes on its own). What the
   * device refuses as one (a range, an item, a request) holds no point of `apart` together with points before it.
   */
  plan(points: readonly Point<A>[], limits: L, apart?: ReadonlySet<Point>): R[];
  /** `plan` in steps of well below a millisecond: other sources are read between them. Absent: they wait until all is planned. */
  planSteps?(points: readonly Point<A>[], limits: L, apart?: ReadonlySet<Point>): Steps<R[]>;
  /**
   * Loads what connecting stands on, such as a library. Awaited before the time of a device begins: on a slow or busy machine it takes
   * seconds, of which the device knows nothing. Undefined: it is loaded. Absent: there is nothing.
   */
  load?(signal: AbortSignal): Promise<void> | undefined;
  /** `ctx.signal` bounds connecting only; the session lives until close(). */
  connect(input: ConnectInput<D, S>, ctx: DriverContext): Promise<Session<A, R, L>>;
  /** Names the reason or fault of a library's own errors; undefined leaves it to the common rules. */
  reasonOf?(error: unknown): Reason | ReasonError | FaultError | undefined;
}

/** A driver whose own types are forgotten: the agent treats all alike. */
export type AnyDriver = Driver;
export type AnySession = Session;

/** How the agent finds a driver, loaded when first needed. */
export interface DriverEntry extends Pick<TypeFacts, "inWorker" | "certificates"> {
  driver(): Promise<{ readonly default: AnyDriver }>;
}

/** The type that a word means to this driver: one that every driver takes, or one of its own. Pure. */
export const typeOf = (driver: Pick<AnyDriver, "parseType">, text: string): DataType | undefined =>
  parseDataType(text) ?? driver.parseType?.(text.trim());

/** What closing may take at most, whatever the device and the driver do. */
const CLOSE_WITHIN_MS = 10_000;
/** Of a session, in status. */
const MAX_WARNINGS = 20;
/** Different mistakes of one driver that are logged with their stack. */
const MAX_MISTAKES = 20;

/**
 * Checks the driver's types against each other, then forgets them.
 * Also the boundary at which errors get their reason: past it, everything thrown by connect is a ReasonError, everything thrown by read a
 * ReasonError or a FaultError, by parseAddress and parseType a FaultError; alive and warnings never throw, and close neither throws nor
 * takes more than ten seconds. A mistake of the driver over what was asked is the fault `collector_error` while the session is alive, so
 * that the others are asked without it. What is said of a failure, a refusal or a warning ends after 8192 characters, and there are 20
 * warnings at most.
 */
export function defineDriver<D, S, A, R extends Request<A>, L extends Limits>(driver: Driver<D, S, A, R, L>): AnyDriver {
  const named = (error: unknown): unknown => {
    const known = driver.reasonOf?.(error);
    if (known === undefined) return error;
    return known instanceof Error ? known : new ReasonError(known, messageOf(error), { cause: error });
  };
  const failureOf = (error: unknown): ReasonError | FaultError => bounded(toFailure(named(error)));
  const mistakes = new Set<string>();
  /** Of a session that is alive, in a call that nobody has ended: what has no name is a mistake over what was asked. */
  const askFailureOf = (error: unknown, log: Context["log"]): ReasonError | FaultError => {
    const failure = toReadFailure(named(error));
    if (failure instanceof FaultError && failure.fault === "collector_error" && mistakes.size < MAX_MISTAKES) {
      if (!mistakes.has(failure.message))
        log.error({ err: error, condition: "internal_error" }, `the driver ${driver.type} failed over something that was asked of it`);
      mistakes.add(failure.message);
    }
    return bounded(failure);
  };
  const { parseType } = driver;
  const guarded: Driver<D, S, A, R, L> = {
    ...driver,
    parseAddress: (text, type, settings) => orFault(() => driver.parseAddress(text, type, settings)),
    ...(parseType && { parseType: (text: string) => orFault(() => parseType(text)) }),
    async connect(input, ctx) {
      const session = await driver.connect(input, ctx).catch((error: unknown) => {
        throw bounded(toReasonError(named(error)));
      });
      const failureIn = (error: unknown, { signal, log }: DriverContext): ReasonError | FaultError =>
        !signal.aborted && orElse(() => session.alive(), false) ? askFailureOf(error, log) : failureOf(error);
      // Not async: it is on the way of every request.
      const asked = <T>(ask: () => Promise<T>, readCtx: DriverContext): Promise<T> => {
        try {
          return ask().catch((error: unknown) => {
            throw failureIn(error, readCtx);
          });
        } catch (error) {
          return Promise.reject(failureIn(error, readCtx));
        }
      };
      const readColumns = session.readColumns?.bind(session);
      return {
        // Both may change while it is open: a device takes less than it said, or has another program.
        get limits() {
          return session.limits;
        },
        get epoch() {
          return session.epoch;
        },
        read: (request, readCtx) => asked(() => session.read(request, readCtx), readCtx),
        ...(readColumns && { readColumns: (request: R, readCtx: DriverContext) => asked(() => readColumns(request, readCtx), readCtx) }),
        ...(session.prepare && {
          prepare: (points, prepareCtx: DriverContext) =>
            guardEach(
              () => session.prepare?.(points, prepareCtx),
              (error) => failureIn(error, prepareCtx),
              boundedBatch,
            ),
        }),
        ...(session.confirm && {
          confirm: async (points, withinMs, confirmCtx) => {
            try {
              return boundedConfirmation(await session.confirm?.(points, withinMs, confirmCtx));
            } catch (error) {
              throw bounded(toReasonError(named(error)));
            }
          },
        }),
        ...(session.identify && {
          identify: async (point, identifyCtx) => {
            try {
              return clip((await session.identify?.(point, identifyCtx)) ?? "");
            } catch (error) {
              throw failureIn(error, identifyCtx);
            }
          },
        }),
        ...(session.discover && { discover: (discoverCtx: DriverContext) => guardEach(() => session.discover?.(discoverCtx), failureOf) }),
        ...(session.about !== undefined && { about: clip(session.about) }),
        ...(session.granted !== undefined && { granted: clip(session.granted) }),
        ...(session.warnings && { warnings: () => orElse(() => boundedWarnings(session.warnings?.()), []) }),
        alive: () => orElse(() => session.alive(), false),
        async close() {
          const closed = new AbortController();
          try {
            const closing = session.close();
            const late = sleep(CLOSE_WITHIN_MS, closed.signal);
            if ((await Promise.race([closing, late])) === true)
              ctx.log.debug({}, "closing the session takes too long; it is left to itself");
          } catch (error) {
            ctx.log.debug({ err: error }, "closing the session failed");
          } finally {
            closed.abort();
          }
        },
      };
    },
  };
  return guarded as unknown as AnyDriver;
}

/** Throws what `parse` throws, a mistake as the fault that it is. */
function orFault<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw bounded(toReadFailure(error));
  }
}

function orElse<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch {
    return otherwise;
  }
}

/** What the driver keeps is not what is given: it may add to its own. */
const boundedWarnings = (warnings: readonly Warning[] = []): readonly Warning[] =>
  warnings.slice(0, MAX_WARNINGS).map(({ code, text, about }) => warning(code, clip(text), about === undefined ? about : clip(about)));

const boundedConfirmation = <A>({ doubtful, ageMs }: Confirmation<A> = { doubtful: [], ageMs: undefined }): Confirmation<A> => ({
  doubtful: doubtful.map(({ points, detail }) => ({ points, detail: clip(detail) })),
  ageMs,
});

function boundedBatch<A>(batch: readonly Prepared<A>[]): readonly Prepared<A>[] {
  const isLong = (one: Prepared<A>): boolean => "refusal" in one && bounded(one.refusal) !== one.refusal;
  return batch.some(isLong) ? batch.map((one) => ("refusal" in one ? { ...one, refusal: bounded(one.refusal) } : one)) : batch;
}

async function* guardEach<T>(
  begin: () => AsyncIterable<T> | undefined,
  failureOf: (error: unknown) => Error,
  boundedOne: (one: T) => T = (one) => one,
): AsyncGenerator<T> {
  try {
    for await (const one of begin() ?? []) yield boundedOne(one);
  } catch (error) {
    throw failureOf(error);
  }
}
