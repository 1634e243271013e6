import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import { identityRequest, STATUS } from "./cip.ts";
import { type Identity, identityWords, isController, isMicro800, isOmron, parseIdentity } from "./identity.ts";
import { type CipLink, isRouteReply } from "./link.ts";
import { DIRECT, parseRoute, type Route, routed, routeWords, slotRoute } from "./manager.ts";
import { connectionWords } from "./refusals.ts";
import type { CipSettings } from "./settings.ts";

/** The place where the controller is, and what it says it is. */
export interface Target {
  readonly route: Route;
  /** Undefined: it does not say. */
  readonly identity: Identity | undefined;
  readonly isMicro800: boolean;
  /** Largest connection that such a controller grants, in bytes. Absent: as large as the settings say. */
  readonly largestBytes?: number;
}

/** A backplane has at most so many slots. */
const SLOTS = 17;
/** Slots that are asked at once: a bridge keeps few such requests. */
const AT_ONCE = 6;
/** How long a bridge waits for a module that may not be there. */
const LONGEST_PROBE_MS = 1000;
const KEY = "slot";

/** The controller behind a device: as the settings say, or by looking through the backplane. Throws ReasonError. */
export async function findTarget(link: CipLink, { path }: CipSettings, ctx: DriverContext): Promise<Target> {
  const owner = await ask(link, DIRECT, ctx);
  const identity = typeof owner === "string" ? undefined : owner;
  if (path === "direct") return { route: DIRECT, identity, isMicro800: identity !== undefined && isMicro800(identity) };
  if (path !== "auto") return byPath(link, path, ctx);
  if (identity && isMicro800(identity)) return { route: DIRECT, identity, isMicro800: true };
  // The port is the controller's own.
  if (identity && isOmron(identity)) return { route: DIRECT, identity, isMicro800: false };
  return new Backplane(link, identity, ctx).find();
}

async function byPath(link: CipLink, path: string, ctx: DriverContext): Promise<Target> {
  const route = parseRoute(path);
  if (typeof route === "string") throw new ReasonError("UNKNOWN", `path ${path}: ${route}`, { condition: "configuration_invalid" });
  const found = await ask(link, route, ctx);
  return { route, identity: typeof found === "string" ? undefined : found, isMicro800: false };
}

interface Found {
  readonly slot: number;
  readonly identity: Identity;
}

/** The slots behind the module that has the network connection. */
class Backplane {
  readonly #link: CipLink;
  /** Of that module. */
  readonly #owner: Identity | undefined;
  readonly #ctx: DriverContext;
  /** What slots answered that have no controller. */
  readonly #others: string[] = [];

  constructor(link: CipLink, owner: Identity | undefined, ctx: DriverContext) {
    this.#link = link;
    this.#owner = owner;
    this.#ctx = ctx;
  }

  async find(): Promise<Target> {
    const known = this.#ctx.device?.get(KEY);
    // A controller with a network connection of its own is in slot 0 of a CompactLogix.
    const first = await this.#look(typeof known === "number" ? known : 0);
    if (first && (known !== undefined || this.#isOwner(first))) return this.#take(first);
    const found = first ? [first] : [];
    for (let slot = 0; slot < SLOTS; slot += AT_ONCE) {
      const slots = Array.from({ length: Math.min(AT_ONCE, SLOTS - slot) }, (_, i) => slot + i);
      const asked = await Promise.all(slots.filter((one) => one !== first?.slot).map((one) => this.#look(one)));
      found.push(...asked.filter((one) => one !== undefined));
    }
    const [only, ...others] = found.some((one) => this.#isOwner(one)) ? found.filter((one) => this.#isOwner(one)) : found;
    if (only && others.length === 0) return this.#take(only);
    if (only)
      throw this.#failure(
        `there are several controllers, set path: ${found.map(({ slot, identity }) => `1,${slot} (${identity.name})`).join(", ")}`,
      );
    if (this.#owner && isController(this.#owner)) return { route: DIRECT, identity: this.#owner, isMicro800: false };
    const seen = this.#others.length === 0 ? "no slot answers" : this.#others.join(", ");
    throw this.#failure(`no controller was found in the backplane (${seen}); set path if it is elsewhere`);
  }

  #failure(words: string): ReasonError {
    const owner = this.#owner ? `${this.#link.where} (${this.#owner.name})` : this.#link.where;
    return new ReasonError("UNKNOWN", `${owner}: ${words}`, { condition: "configuration_invalid" });
  }

  #isOwner({ identity }: Found): boolean {
    const owner = this.#owner;
    return owner !== undefined && isController(owner) && owner.serial === identity.serial && owner.vendor === identity.vendor;
  }

  #take({ slot, identity }: Found): Target {
    if (this.#ctx.device?.get(KEY) !== slot) this.#ctx.device?.set(KEY, slot);
    return { route: slotRoute(slot), identity, isMicro800: false };
  }

  /** The controller in a slot; undefined: there is none. */
  async #look(slot: number): Promise<Found | undefined> {
    const identity = await ask(this.#link, slotRoute(slot), this.#ctx);
    if (typeof identity === "string") return undefined;
    if (isController(identity)) return { slot, identity };
    this.#others.push(`slot ${slot}: ${identity.name}`);
    return undefined;
  }
}

/** The identity of what is there; a string: why there is none. */
function ask(link: CipLink, route: Route, ctx: DriverContext): Promise<Identity | string> {
  const request = identityRequest();
  const timeoutMs = Math.max(1, Math.min(LONGEST_PROBE_MS, ctx.timeouts.answerMs / 2));
  const packet = link.unconnectedPacket(routed(request, route, timeoutMs), request[0]);
  return link.ask<Identity | string>(
    ctx,
    () => `the identity of what is at ${routeWords(route)}`,
    packet,
    (reply, done) => {
      const isRefused = reply.status !== STATUS.ok || isRouteReply(reply, request[0] ?? 0);
      const identity = isRefused ? undefined : parseIdentity(reply.bytes, reply.at, reply.end);
      done(identity ?? connectionWords(reply.status, reply.extended));
      return undefined;
    },
  );
}

/** For the log. */
export const targetWords = ({ route, identity }: Target): string =>
  `${identity ? identityWords(identity) : "a controller that does not say what it is"} (${routeWords(route)})`;
