import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import { SilentHelp } from "../lib/silent-help.ts";
import { identityRequest, STATUS } from "./cip.ts";
import { type Identity, identityWords, isController, isMicro800, isOmron, parseIdentity } from "./identity.ts";
import { type CipLink, isRouteReply } from "./link.ts";
import { DIRECT, type Route, routed, routeWords, slotRoute } from "./manager.ts";
import { parsePath } from "./path.ts";
import { familyByIdentity, isSerialBridge } from "./pccc/family.ts";
import type { FileTarget } from "./pccc/session.ts";
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
  /** A controller with data files and without tags. */
  readonly files?: FileTarget;
}

/** A backplane has at most so many slots. */
const SLOTS = 17;
/** Slots that are asked at once: a bridge keeps few such requests. */
const AT_ONCE = 6;
/** How long a bridge waits for a module that may not be there. */
const LONGEST_PROBE_MS = 1000;
const KEY = "slot";
const SILENT = "no answer";
export const IDENTITY = "identity at ";

/** The controller behind a device: as the settings say, or by looking through the backplane. Throws ReasonError. */
export async function findTarget(link: CipLink, { path, family }: CipSettings, help: SilentHelp, ctx: DriverContext): Promise<Target> {
  const asker: Asker = { link, help, ctx };
  const identity = await whatIsAt(asker, DIRECT);
  const isHere = path === "auto" || path === "direct";
  const files = isHere ? fileTarget(DIRECT, identity, family) : undefined;
  if (files) return { route: DIRECT, identity, isMicro800: false, files };
  if (path === "direct") return { route: DIRECT, identity, isMicro800: identity !== undefined && isMicro800(identity) };
  if (path !== "auto") return byPath(asker, path, family);
  if (identity && isMicro800(identity)) return { route: DIRECT, identity, isMicro800: true };
  // The port is the controller's own.
  if (identity && isOmron(identity)) return { route: DIRECT, identity, isMicro800: false };
  return new Backplane(asker, identity).find();
}

/** Context of a question for an identity. */
interface Asker {
  readonly link: CipLink;
  readonly help: SilentHelp;
  readonly ctx: DriverContext;
}

async function byPath(asker: Asker, path: string, family: CipSettings["family"]): Promise<Target> {
  const parsed = parsePath(path);
  if (typeof parsed === "string") throw new ReasonError("UNKNOWN", `path ${path}: ${parsed}`, { condition: "configuration_invalid" });
  const { route, node } = parsed;
  const identity = await whatIsAt(asker, route);
  const controller = family === "auto" ? undefined : { family, name: "" };
  const files = node ? { route, identity, controller, node } : fileTarget(route, identity, family);
  return { route, identity, isMicro800: false, ...(files && { files }) };
}

/** Undefined: neither the setting nor the identity says that it is a controller with data files. */
function fileTarget(route: Route, identity: Identity | undefined, family: CipSettings["family"]): FileTarget | undefined {
  const found = identity && familyByIdentity(identity);
  const said = family === "auto" ? undefined : { family, name: found?.name ?? "" };
  const isBridge = identity !== undefined && isSerialBridge(identity);
  return said || found || isBridge ? { route, identity, controller: said ?? found, node: undefined } : undefined;
}

interface Found {
  readonly slot: number;
  readonly identity: Identity;
}

/** The slots behind the module that has the network connection. */
class Backplane {
  readonly #asker: Asker;
  readonly #link: CipLink;
  /** Of that module. */
  readonly #owner: Identity | undefined;
  readonly #ctx: DriverContext;
  /** Slots without an answer. */
  readonly #silent: number[] = [];
  /** What slots answered that have no controller. */
  readonly #others: string[] = [];

  constructor(asker: Asker, owner: Identity | undefined) {
    this.#asker = asker;
    this.#link = asker.link;
    this.#owner = owner;
    this.#ctx = asker.ctx;
  }

  async find(): Promise<Target> {
    const known = this.#ctx.device?.get(KEY);
    // A controller with a network connection of its own is in slot 0 of a CompactLogix.
    const firstSlot = typeof known === "number" ? known : 0;
    const first = await this.#look(firstSlot);
    if (first && (known !== undefined || this.#isOwner(first))) return this.#take(first);
    const found = first ? [first] : [];
    found.push(...(await this.#lookThrough(Array.from({ length: SLOTS }, (_, slot) => slot).filter((slot) => slot !== firstSlot))));
    const [only, ...others] = found.some((one) => this.#isOwner(one)) ? found.filter((one) => this.#isOwner(one)) : found;
    if (only && others.length === 0) return this.#take(only);
    if (only)
      throw this.#failure(
        `there are several controllers, set path: ${found.map(({ slot, identity }) => `1,${slot} (${identity.name})`).join(", ")}`,
      );
    if (this.#owner && isController(this.#owner)) return { route: DIRECT, identity: this.#owner, isMicro800: false };
    // Not even a refusal came: the module itself does not answer.
    if (this.#silent.length === SLOTS) {
      this.#forgetSilent();
      throw new ReasonError("TIMEOUT", `${this.#link.where} gives no answer about any slot`);
    }
    const seen = this.#others.length === 0 ? "no slot answers" : this.#others.join(", ");
    throw this.#failure(`no controller was found in the backplane (${seen}); set path if it is elsewhere`);
  }

  /** Several slots at once; from the first one without an answer on, one after the other, and those again that had none with it. */
  async #lookThrough(slots: readonly number[]): Promise<readonly Found[]> {
    const found: (Found | undefined)[] = [];
    let [left, atOnce] = [slots, AT_ONCE];
    while (left.length > 0) {
      const asked = left.slice(0, atOnce);
      left = left.slice(atOnce);
      const unanswered: number[] = [];
      found.push(...(await Promise.all(asked.map((slot) => this.#look(slot, atOnce > 1 ? unanswered : undefined)))));
      if (unanswered.length === 0) continue;
      left = [...unanswered, ...left];
      atOnce = 1;
    }
    return found.filter((one) => one !== undefined);
  }

  #failure(words: string): ReasonError {
    this.#forgetSilent();
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

  /** The next search asks all of them again, and the device itself: it may be of a kind that has no slots. */
  #forgetSilent(): void {
    this.#asker.help.answered(kindOf(DIRECT));
    for (const slot of this.#silent) this.#asker.help.answered(kindOf(slotRoute(slot)));
  }

  /** The controller in a slot; undefined: there is none. `unanswered`: takes the slot where it has no answer together with others. */
  async #look(slot: number, unanswered?: number[]): Promise<Found | undefined> {
    const answerMs = Math.min(this.#ctx.timeouts.answerMs, 2 * LONGEST_PROBE_MS);
    const asker: Asker = { ...this.#asker, ctx: { ...this.#ctx, timeouts: { ...this.#ctx.timeouts, answerMs } } };
    const help = unanswered ? new SilentHelp(undefined) : this.#asker.help;
    const isDue = this.#asker.help.isDue(kindOf(slotRoute(slot)));
    const identity = isDue ? await ask({ ...asker, help }, slotRoute(slot), undefined) : SILENT;
    if (identity === SILENT) (isDue && unanswered ? unanswered : this.#silent).push(slot);
    if (typeof identity === "string") return undefined;
    if (isController(identity)) return { slot, identity };
    this.#others.push(`slot ${slot}: ${identity.name}`);
    return undefined;
  }
}

const kindOf = (route: Route): string => `${IDENTITY}${routeWords(route)}`;

const UNNAMED = "the device gives no answer to the question what it is: it is read without its name";

/** The identity of what is there, or what it said before: one answer that is lost does not make it another kind of controller. */
async function whatIsAt(asker: Asker, route: Route): Promise<Identity | undefined> {
  const key = kindOf(route);
  const { device } = asker.ctx;
  const before = device?.get(key) as Identity | undefined;
  const answer = await ask(asker, route, before ? undefined : UNNAMED);
  if (typeof answer === "string") return before;
  device?.set(key, answer);
  return answer;
}

/** The identity of what is there; a string: why there is none. */
async function ask({ link, help, ctx }: Asker, route: Route, words: string | undefined): Promise<Identity | string> {
  const request = identityRequest();
  const timeoutMs = Math.max(1, Math.min(LONGEST_PROBE_MS, ctx.timeouts.answerMs / 2));
  const packet = link.unconnectedPacket(routed(request, route, timeoutMs), request[0]);
  const what = `the identity of what is at ${routeWords(route)}`;
  const answer = await help.ask({ kind: kindOf(route), words }, () =>
    link.ask<Identity | string>(
      ctx,
      () => what,
      packet,
      (reply, done) => {
        const isRefused = reply.status !== STATUS.ok || isRouteReply(reply, request[0] ?? 0);
        const identity = isRefused ? undefined : parseIdentity(reply.bytes, reply.at, reply.end);
        done(identity ?? connectionWords(reply.status, reply.extended));
        return undefined;
      },
      "help",
    ),
  );
  return answer ?? SILENT;
}

/** For the log. */
export const targetWords = ({ route, identity }: Target): string =>
  `${identity ? identityWords(identity) : "a controller that does not say what it is"} (${routeWords(route)})`;
