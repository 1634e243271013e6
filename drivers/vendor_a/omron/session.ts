import { createYielder, inSlices } from "../../../src/base/timer.ts";
import type { VendorADetails } from "../../../src/model/details.ts";
import { FaultError } from "../../../src/model/fault.ts";
import { ReasonError } from "../../../src/model/reason.ts";
import type { Reading } from "../../../src/model/value.ts";
import { type Warning, warning } from "../../../src/model/warning.ts";
import type { ConnectInput, Discovered, DriverContext, Point, Prepared, Session } from "../../driver.ts";
import type { Connection } from "../../lib/connection.ts";
import type { SilentHelp } from "../../lib/silent-help.ts";
import { quote } from "../../lib/text.ts";
import { HelpAgain } from "../help-again.ts";
import { keepOpen } from "../keep-open.ts";
import type { CipLink } from "../link.ts";
import { againAfter } from "../look-up.ts";
import { DIRECT, parseRoute, type Route, slotRoute } from "../manager.ts";
import { Messenger } from "../messenger.ts";
import { type FileAddress, fileText } from "../pccc/address.ts";
import { maxDataBytes } from "../plan.ts";
import { ProgramWatch } from "../program.ts";
import { type Target, targetWords } from "../route.ts";
import { logOnce, otherProgram } from "../session.ts";
import type { CipSettings } from "../settings.ts";
import { type AnyAddress, type AnyRead, byVariantSteps, type VendorALimits } from "../variants.ts";
import { Catalog, LIST, TYPES } from "./catalog.ts";
import { discoverVariables } from "./discover.ts";
import { lookUpVariables } from "./look-up.ts";
import { isVariableRead } from "./plan.ts";
import { VariableReader } from "./reader.ts";

const MAX_POINTS = 65_536;
/** Requests that the agent may have under way at once. */
const IN_FLIGHT = 8;
/** Refused variables are looked up again: nothing says that the program changed. */
const LOOK_AGAIN_MS = 60_000;
/** The largest connection that independent clients open to newer units, in bytes; unverified. */
const LARGEST_BYTES = 1994;
const KEY = "variables_route";

/** A session with an NJ, NX or NY controller, whose variables are read by their names. */
export class OmronSession implements Session<AnyAddress, AnyRead, VendorALimits> {
  readonly #connection: Connection;
  readonly #link: CipLink;
  readonly #messenger: Messenger;
  readonly #target: Target;
  readonly #program: ProgramWatch;
  readonly #catalog: Catalog;
  readonly #help: SilentHelp;
  readonly #reader: VariableReader;
  readonly #ctx: DriverContext;
  readonly #endKeeping: () => void;
  #limits: VendorALimits;
  #catalogEpoch: string | undefined;
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  private constructor(connection: Connection, link: CipLink, messenger: Messenger, target: Target, help: SilentHelp, ctx: DriverContext) {
    this.#help = help;
    this.#connection = connection;
    this.#link = link;
    this.#messenger = messenger;
    this.#target = target;
    this.#program = new ProgramWatch(messenger, ctx.device, target.identity?.serial.toString(16) ?? "unknown");
    this.#catalog = new Catalog(messenger);
    this.#reader = new VariableReader(messenger, (what) => (this.#program.mayHaveChanged() ? otherProgram(what) : undefined));
    this.#ctx = ctx;
    this.#limits = this.#limitsNow();
    const again = new HelpAgain({ help, about: (kind) => this.#questionAbout(kind), answered: () => this.#program.lookAgain() }, ctx);
    this.#endKeeping = keepOpen({
      link,
      ctx,
      alive: () => this.alive(),
      ask: (bounded) => messenger.keepOpen(bounded),
      askOther: () => again.begin(),
    });
  }

  /** Throws ReasonError: there is no way to the controller, or the connection is refused. */
  static async open(
    connection: Connection,
    link: CipLink,
    found: Target,
    { details, settings, help }: Pick<ConnectInput<VendorADetails, CipSettings>, "details" | "settings"> & { readonly help: SilentHelp },
    ctx: DriverContext,
  ): Promise<OmronSession> {
    const routes = settings.path === "auto" ? routesTo(details.host, ctx) : [found.route];
    let failure: unknown;
    for (const route of routes) {
      const target: Target = { ...found, route, largestBytes: LARGEST_BYTES };
      const messenger = new Messenger(link, target, settings, help);
      try {
        await messenger.open(ctx);
      } catch (error) {
        if (!isNoRoute(error)) throw error;
        failure ??= error;
        continue;
      }
      if (settings.path === "auto") ctx.device?.set(KEY, route.toString("hex"));
      logOnce(targetWords(target), ctx);
      return new OmronSession(connection, link, messenger, target, help, ctx);
    }
    throw failure;
  }

  get limits(): VendorALimits {
    return this.#limits;
  }

  get epoch(): string {
    return this.#program.epoch;
  }

  async read(request: AnyRead, ctx: DriverContext): Promise<readonly Reading[]> {
    if (!isVariableRead(request)) throw new TypeError("a read of tags or data files in a session with variables");
    await this.#ready(ctx);
    return this.#reader.read(request, ctx);
  }

  async *prepare(points: readonly Point<AnyAddress>[], ctx: DriverContext): AsyncGenerator<readonly Prepared<AnyAddress>[]> {
    await this.#ready(ctx);
    const { tags, files } = await inSlices(byVariantSteps(points), createYielder());
    if (files.length > 0) yield files.map((point) => ({ point, refusal: noFiles(point.address) }));
    this.#catalog.forgetOld(LOOK_AGAIN_MS);
    const using = { messenger: this.#messenger, catalog: this.#catalog };
    for await (const found of lookUpVariables(tags, using, ctx)) yield againAfter(found, LOOK_AGAIN_MS);
  }

  async *discover(ctx: DriverContext): AsyncGenerator<Discovered> {
    await this.#ready(ctx);
    yield* discoverVariables(this.#catalog, ctx);
  }

  get about(): string {
    return `the controller is ${targetWords(this.#target)}; only variables with the attribute Network Publish can be read`;
  }

  get granted(): string {
    return `${this.#link.open ? "a connection with messages" : "no connection, messages"} of ${this.#limits.messageBytes} bytes`;
  }

  warnings(): readonly Warning[] {
    const { warning: unconnected } = this.#messenger;
    const { refused } = this.#catalog;
    const words = `read without the controller's list of variables, so that bounds and structures are not known: ${refused}`;
    return [
      ...(unconnected === undefined ? [] : [unconnected]),
      ...this.#help.warnings(),
      ...(refused === undefined ? [] : [warning("variables_not_listed", words)]),
    ];
  }

  alive(): boolean {
    return this.#connection.alive();
  }

  close(): Promise<void> {
    this.#endKeeping();
    this.#closing ??= this.#messenger.close(this.#ctx);
    return this.#closing;
  }

  #limitsNow(): VendorALimits {
    const { messageBytes } = this.#messenger;
    return { maxPoints: MAX_POINTS, maxBytes: maxDataBytes(messageBytes), inFlight: IN_FLIGHT, messageBytes, maxItems: 1, fileBytes: 0 };
  }

  /** Opens a connection that is due; requests that are under way at once wait for the same. */
  async #ready(ctx: DriverContext): Promise<void> {
    if (this.#messenger.isDue) {
      this.#opening ??= this.#open(ctx).finally(() => {
        this.#opening = undefined;
      });
      await this.#opening;
    }
    if (this.#catalogEpoch === this.epoch) return;
    this.#catalogEpoch = this.epoch;
    this.#catalog.forget();
  }

  async #open(ctx: DriverContext): Promise<void> {
    await this.#messenger.open(ctx);
    this.#limits = this.#limitsNow();
    this.#reader.forget();
  }

  #questionAbout(kind: string): ((ctx: DriverContext) => Promise<unknown>) | undefined {
    if (kind === LIST.kind) return (ctx) => this.#catalog.page(1, "user", ctx);
    return kind === TYPES.kind ? (ctx) => this.#catalog.typeAgain(ctx) : undefined;
  }
}

const noFiles = (address: FileAddress): FaultError =>
  new FaultError(
    "not_found",
    `${quote(fileText(address))}: an NJ or NX controller has variables and no data files; write the name of a published one`,
  );

/** Without a route, then as users of other clients had to give it: slot 0, and port 2 with the controller's own address. The one that worked first. */
function routesTo(host: string, ctx: DriverContext): readonly Route[] {
  const byAddress = parseRoute(`2,${host}`);
  const routes = [DIRECT, slotRoute(0), ...(typeof byAddress === "string" ? [] : [byAddress])];
  const worked = ctx.device?.get(KEY);
  return routes.toSorted((a, b) => Number(b.toString("hex") === worked) - Number(a.toString("hex") === worked));
}

/** The message did not come through to the controller. */
const isNoRoute = (error: unknown): boolean => error instanceof ReasonError && error.condition === "configuration_invalid";
