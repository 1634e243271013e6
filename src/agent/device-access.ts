import type { DriverContext } from "../../drivers/driver.ts";
import { type Address, deviceKey } from "../model/address.ts";
import type { Context, Log } from "../model/context.ts";
import type { Permit } from "../model/policy.ts";
import type { ConnectionPool, Granted, Membership } from "./connection-pool.ts";
import type { DeviceMemories } from "./device-memory.ts";
import type { FrameRings, RingMember } from "./frame-rings.ts";
import { permittedResolve, type Resolver } from "./resolve.ts";
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
  /** Something else of the device is back: see DeviceTime.join. */
  otherIsBack(): void;
}

/** How one source gets at its device: at which address, and when its turn is among all that use the device. */
export class DeviceAccess {
  /** Of what each driver is given, that which is the same in each readout. */
  readonly context: Omit<DriverContext, "signal">;
  readonly membership: Membership;
  readonly ring: RingMember | undefined;
  readonly #spec: SourceSpec;
  readonly #deps: AccessDeps;
  /** The next readout is to open a new connection. */
  readonly #renew: () => void;
  readonly #device: string;
  /** Sources with the same way in share open connections; the text may hold secrets and never leaves this object. */
  readonly #key: string;
  /** Of the endpoint's host, as this readout got them. */
  #addresses: readonly Address[] = [];
  /** The one of them that took this readout's last connection. */
  #reached: string | undefined;

  constructor(spec: SourceSpec, deps: AccessDeps, renew: () => void) {
    const { driver, endpoint, connect } = spec;
    this.#spec = spec;
    this.#deps = deps;
    this.#renew = renew;
    // Two spellings of one device share its connections; a name that comes to mean another address later keeps the one that it has.
    const host = deps.resolver?.deviceKey(endpoint) ?? deviceKey(endpoint.host);
    this.#device = `${endpoint.transport}:${host}:${endpoint.port}`;
    const shape = driver.connectionKey?.(connect.details, connect.settings) ?? connect;
    this.#key = JSON.stringify([spec.type, spec.keepsConnection, shape]);
    this.membership = deps.pool.join(this.#device, this.#key, spec.intervalMs, () => deps.otherIsBack());
    this.ring = deps.rings?.join(`${this.#device} ${this.#key}`);
    const { log, resolver, permit, listenRefusal } = deps;
    const resolve = permittedResolve(resolver, permit, endpoint.port);
    this.context = {
      log,
      timeouts: spec.timeouts,
      device: deps.memories.of(`${this.#device} ${spec.type}`),
      ...(this.ring?.wire && { wire: this.ring.wire }),
      resolve: async (name, signal) => {
        const addresses = await resolve(name, signal);
        if (name === endpoint.host) this.#addresses = addresses;
        return addresses;
      },
      ...(listenRefusal && { listenRefusal }),
      ...(resolver && { connected: (name: string, address: string) => this.#connected(name, address) }),
    };
  }

  /** A turn for the next readout; `isProbe`: the last one had no answer. */
  acquire(isProbe: boolean, stop: AbortSignal): Granted | Promise<Granted> {
    this.#addresses = [];
    this.#reached = undefined;
    const { hasHealthyOthers, yields } = this.membership;
    const { maxConnections } = this.#spec;
    return this.#deps.pool.acquire(this.#device, { key: this.#key, maxConnections, isProbe, hasHealthyOthers, yields }, stop);
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

  /** Closes what nobody else uses. */
  async leave(): Promise<void> {
    await this.membership.leave();
    this.ring?.leave();
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
