import type { DriverContext } from "../../drivers/driver.ts";
import { lookedUp, permittedResolve, type Resolver } from "../lib/resolver.ts";
import { type Address, deviceKey, literalAddress } from "../model/address.ts";
import type { Context, Log } from "../model/context.ts";
import type { HabitName } from "../model/habit.ts";
import type { Kept } from "../model/kept.ts";
import type { Permit } from "../model/policy.ts";
import { ReasonError } from "../model/reason.ts";
import type { ConnectionPool, Granted, Membership } from "./connection-pool.ts";
import type { DeviceMemories } from "./device-memory.ts";
import type { FrameRings, RingMember } from "./frame-rings.ts";
import type { SourceSpec } from "./source-spec.ts";

export interface AccessDeps {
  readonly pool: ConnectionPool;
  readonly memories: DeviceMemories;
  /** Absent: what passes over connections is not kept. */
  readonly rings?: FrameRings | undefined;
  /** Already carries the source's name, type and endpoint. */
  readonly log: Log;
  /** Absent: the system's look-up. */
  readonly resolver?: Resolver;
  /** Which addresses may be connected to; absent: all. */
  readonly permit?: Permit;
  /** Why `address:port` may not be listened on; absent: it may. */
  readonly listenRefusal?: Context["listenRefusal"];
  /** What drivers keep of sources over restarts, by uuid; absent: nothing. */
  readonly keptOf?: (source: string) => Kept;
  /** The driver saw a habit of the device: see DriverContext. */
  habit?(name: HabitName, holds: boolean): void;
  /** Something else of the device is back: see DeviceTime.join. */
  otherIsBack(): void;
}

/** Among those that use a device at one address. */
interface Joined {
  /** See Resolver.deviceKey. */
  readonly host: string;
  /** Of the pool. */
  readonly device: string;
  readonly membership: Membership;
  readonly ring: RingMember | undefined;
  readonly context: Omit<DriverContext, "signal">;
}

/** A device that is at another address each time its source gets a turn: then it is read where the turn is. */
const MAX_MOVES = 3;

/**
 * How one source gets at its device: at which address, and when its turn is among all that use the device. A name is looked up before the
 * turn, and where the device has answered at another address since, the source joins those that use it there, between two readouts.
 */
export class DeviceAccess {
  readonly #spec: SourceSpec;
  readonly #deps: AccessDeps;
  /** The next readout is to open a new connection. */
  readonly #renew: () => void;
  /** Absent: the host is an address, or nobody knows more of it than its name. */
  readonly #resolver: Resolver | undefined;
  /** Sources with the same way in share open connections; the text may hold secrets and never leaves this object. */
  readonly #key: string;
  #joined: Joined;
  /** Why the name could not be looked up before this readout's turn: it is not looked up again in the turn. */
  #nameFailure: ReasonError | undefined;
  /** Of the endpoint's host, as this readout got them. */
  #addresses: readonly Address[] = [];
  /** The one of them that took this readout's last connection. */
  #reached: string | undefined;

  constructor(spec: SourceSpec, deps: AccessDeps, renew: () => void) {
    const { driver, endpoint, connect } = spec;
    this.#spec = spec;
    this.#deps = deps;
    this.#renew = renew;
    this.#resolver = literalAddress(endpoint.host) ? undefined : deps.resolver;
    const shape = driver.connectionKey?.(connect.details, connect.settings) ?? connect;
    this.#key = JSON.stringify([spec.type, spec.keepsConnection, shape]);
    this.#joined = this.#join();
  }

  /** Its transport, host and port. */
  get device(): string {
    return this.#joined.device;
  }

  get membership(): Membership {
    return this.#joined.membership;
  }

  get ring(): RingMember | undefined {
    return this.#joined.ring;
  }

  /** Of what each driver is given, that which is the same in each readout, as long as the device is at one address. */
  get context(): Omit<DriverContext, "signal"> {
    return this.#joined.context;
  }

  /** Before a turn, so that nobody waits for it: looks the name up where nothing is known of it. Undefined: there is nothing to wait for. */
  lookUp(stop: AbortSignal): Promise<void> | undefined {
    this.#nameFailure = undefined;
    return this.#resolver === undefined || this.#isKnown ? undefined : this.#lookUp(this.#resolver, stop);
  }

  /** A turn for the next readout; `isProbe`: the last one had no answer. */
  acquire(isProbe: boolean, stop: AbortSignal): Granted | Promise<Granted> {
    this.#addresses = [];
    this.#reached = undefined;
    return this.#resolver ? this.#acquireByName(isProbe, stop) : this.#acquireHere(isProbe, stop);
  }

  /** No session could be opened. */
  couldNotOpen(): void {
    this.#deps.resolver?.suspect(this.#spec.endpoint, this.#tried);
  }

  /**
   * No connection of this readout brought an answer: where the device has several addresses, the next one goes to another. Where others are
   * answered over it, what is silent is behind this address.
   */
  wasUnanswered(): void {
    if (!this.membership.hasHealthyOthers()) this.#deps.resolver?.unanswered(this.#spec.endpoint, this.#tried);
  }

  /** This readout opened its connection to another address than the turn was for: it is not kept where others may think it leads here. */
  get hasMoved(): boolean {
    return this.#resolver !== undefined && this.#reached !== undefined && deviceKey(this.#reached) !== this.#joined.host;
  }

  /** The device answered. Said when this readout's connection may be used by others, or is closed: whoever uses the device follows. */
  wasAnswered(): void {
    if (this.#reached !== undefined) this.#resolver?.answered(this.#spec.endpoint, this.#reached);
  }

  /** Closes what nobody else uses. */
  async leave(): Promise<void> {
    const { membership, ring } = this.#joined;
    await membership.leave();
    ring?.leave();
  }

  #join(): Joined {
    const { resolver, permit, listenRefusal, pool, memories, rings, log, keptOf, habit, otherIsBack } = this.#deps;
    const { endpoint, intervalMs, timeouts, type, uuid } = this.#spec;
    const host = this.#hostNow;
    const device = `${endpoint.transport}:${host}:${endpoint.port}`;
    const ring = rings?.join(`${device} ${this.#key}`);
    const resolve = permittedResolve(resolver, permit, endpoint.port);
    const context: Joined["context"] = {
      log,
      timeouts,
      device: memories.of(`${device} ${type}`),
      ...(keptOf && { kept: keptOf(uuid) }),
      ...(habit && { habit }),
      ...(ring?.wire && { wire: ring.wire }),
      resolve: (name, signal) => this.#resolve(name, () => resolve(name, signal)),
      ...(listenRefusal && { listenRefusal }),
      ...(resolver && { connected: (name: string, address: string) => this.#connected(name, address) }),
    };
    return { host, device, membership: pool.join(device, this.#key, intervalMs, () => otherIsBack()), ring, context };
  }

  /** A name that cannot be looked up is one device, as far as anybody knows. */
  get #hostNow(): string {
    const { endpoint } = this.#spec;
    return this.#resolver?.deviceKey(endpoint) ?? deviceKey(endpoint.host);
  }

  /** Another turn in the same readout, behind all that are due. `isProbe`: as of a source that had no answer. */
  acquireAgain(isAnswered: boolean, isProbe: boolean, signal: AbortSignal): Granted | Promise<Granted> {
    return this.#acquireHere(isProbe, signal, true, !isAnswered);
  }

  #acquireHere(isProbe: boolean, stop: AbortSignal, isBehind = false, settles = false): Granted | Promise<Granted> {
    const { device, membership } = this.#joined;
    const { hasHealthyOthers, yields, answeredMs, notBeforeMs, share } = membership;
    const { maxConnections } = this.#spec;
    // A source in the shadow of another that is silent is as good as before.
    const isClear = !share.user.isShadowed;
    const place = {
      hasHealthyOthers,
      yields,
      answeredMs,
      notBeforeMs,
      isProbe: isProbe && isClear,
      isBehind: isBehind && isClear,
      settles,
    };
    const request = { key: this.#key, maxConnections, ...place };
    return this.#deps.pool.acquire(device, request, stop);
  }

  async #lookUp(resolver: Resolver, stop: AbortSignal): Promise<void> {
    const { endpoint, timeouts } = this.#spec;
    this.#nameFailure = await lookedUp(resolver, endpoint, timeouts.nameMs, stop);
  }

  async #acquireByName(isProbe: boolean, stop: AbortSignal): Promise<Granted> {
    for (let moves = 0; ; moves++) {
      if (this.#hostNow !== this.#joined.host) await this.#move();
      const turn = await this.#acquireHere(isProbe, stop);
      // While it waited, the device may have answered elsewhere.
      if (!turn || turn instanceof ReasonError || this.#hostNow === this.#joined.host || moves === MAX_MOVES) return turn;
      turn.release(turn.session);
    }
  }

  async #move(): Promise<void> {
    // A device may take one connection: the next is opened when the last has gone.
    await this.leave();
    this.#joined = this.#join();
  }

  get #isKnown(): boolean {
    return this.#resolver === undefined || this.#resolver.addressesInUse(this.#spec.endpoint).length > 0;
  }

  async #resolve(name: string, found: () => Promise<readonly Address[]>): Promise<readonly Address[]> {
    const isHost = name === this.#spec.endpoint.host;
    if (isHost && this.#nameFailure && !this.#isKnown) throw this.#nameFailure;
    const addresses = await found();
    if (isHost) this.#addresses = addresses;
    return addresses;
  }

  /** Which address this readout's last connection was for; undefined: it opened none by itself. */
  get #tried(): string | undefined {
    return this.#reached ?? this.#addresses[0]?.address;
  }

  #connected(name: string, address: string): void {
    const { resolver, permit } = this.#deps;
    const { host, port } = this.#spec.endpoint;
    resolver?.connected({ host: name, port }, address);
    if (name === host && this.#addresses.some((known) => known.address === address)) this.#reached = address;
    // The policy has closed it since it was asked.
    if (permit?.(address, port) !== undefined) this.#renew();
  }
}
