import type * as z from "zod";
import { createYielder, inSlices } from "../../src/base/timer.ts";
import type { VendorGatewayDetails } from "../../src/model/details.ts";
import { type Fault, FaultError } from "../../src/model/fault.ts";
import type { CertificateLife } from "../../src/model/pki.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { Reading } from "../../src/model/value.ts";
import type { Warning } from "../../src/model/warning.ts";
import { isTrustOver, lifeWarnings } from "../../src/model/words/certificate-life.ts";
import type { ConnectInput, Discovered, DriverContext, Endpoint, Point, Prepared, Session } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { NoAnswer } from "../lib/exchange.ts";
import { SilentHelp } from "../lib/silent-help.ts";
import { openTcp } from "../lib/tcp.ts";
import { quote } from "../lib/text.ts";
import type { GatewayAddress } from "./address.ts";
import { browseAnswer, type Hello, helloAnswer, openAnswer, type Resolved, resolveAnswer, resolvedItem, serversAnswer } from "./answers.ts";
import { discover } from "./discover.ts";
import { Doubts } from "./doubts.ts";
import { type Body, browseBody, helloBody, openBody, readBody, resolveBody, serversBody, VERSION, withinMsOf } from "./frames.ts";
import { GatewayLink, type Take } from "./link.ts";
import { describeRead, type GatewayLimits, type GatewayRead, planSteps } from "./plan.ts";
import { GatewayRefusal, itemFault, StaleEpoch } from "./refusals.ts";
import { secure } from "./secure.ts";
import type { GatewaySettings } from "./settings.ts";
import { type ProtocolDetails, targetWords } from "./target.ts";
import { itemReading, wireType } from "./values.ts";

type Input = ConnectInput<VendorGatewayDetails, GatewaySettings>;

/** An item that is missing is looked for again, where nothing says that the server has others; one that the server could not ask of sooner. */
const LOOK_AGAIN_MS = 60_000;
const ASK_AGAIN_MS = 5000;
const OF_THE_MOMENT: ReadonlySet<Fault> = new Set(["no_answer", "stale", "device_error"]);
/** Answers are planned for so many at most, whatever is taken: a longer one holds up other work while it is parsed. */
const PLANNED_BYTES = 262_144;
/** Of the answer that are no values. */
const ANSWER_MARGIN_BYTES = 1000;
const SERVERS_NAMED = 10;
const LOOK_UP = {
  kind: "resolve",
  words:
    "the gateway gives no answer to the look-up of items: they are read by the names that are configured, and an item that the server does not have shows when it is read",
};

export const endpointOf = ({ host, port }: VendorGatewayDetails): Endpoint => ({ host, port, transport: "tcp" });

export class GatewaySession implements Session<GatewayAddress, GatewayRead, GatewayLimits> {
  readonly limits: GatewayLimits;
  readonly #connection: Connection;
  readonly #link: GatewayLink;
  readonly #hello: Hello;
  readonly #warnings: readonly Warning[];
  readonly #life: CertificateLife | undefined;
  readonly #help: SilentHelp;
  readonly #doubts = new Doubts();
  readonly #bodies = new WeakMap<GatewayRead, { readonly withinMs: number; readonly body: Body }>();
  #epoch: string;

  private constructor(
    opened: Opened,
    hello: Hello,
    epoch: string,
    help: SilentHelp,
    { max_items, in_flight, max_answer_bytes }: GatewaySettings,
  ) {
    this.#connection = opened.connection;
    this.#link = opened.link;
    this.#warnings = opened.warnings;
    this.#life = opened.life;
    this.#hello = hello;
    this.#epoch = epoch;
    this.#help = help;
    const { limits } = hello;
    this.limits = {
      maxPoints: Math.min(max_items, limits.max_items),
      maxBytes: Math.min(PLANNED_BYTES, max_answer_bytes, limits.max_line_bytes) - ANSWER_MARGIN_BYTES,
      inFlight: Math.min(in_flight, limits.max_in_flight),
      maxRequestBytes: limits.max_line_bytes,
    };
  }

  /**
   * TCP, TLS where it is set, hello, and the server behind the gateway. Throws ReasonError: VENDOR_GATEWAY_ERROR where the gateway answers
   * and refuses.
   */
  static async connect(input: Input, ctx: DriverContext): Promise<GatewaySession> {
    const target = input.details.protocol_details;
    if (target.protocol === "OTHER")
      throw new ReasonError("UNKNOWN", "protocol OTHER cannot be read: only OPC_DA and PVI have a form", {
        condition: "configuration_invalid",
      });
    const outer = await openTcp(endpointOf(input.details), ctx);
    const { connection, ...trusted } = await secure(outer, input, ctx);
    try {
      const link = new GatewayLink(connection, targetWords(target), input.settings.max_answer_bytes, ctx);
      const hello = await sayHello(link, connection.where, target, input.settings.max_answer_bytes, ctx);
      // The gateway is reached; what fails from here on is behind it.
      ctx.loggingIn?.();
      const epoch = await openServer(link, target, ctx);
      return new GatewaySession({ connection, link, ...trusted }, hello, epoch, new SilentHelp(ctx.device), input.settings);
    } catch (error) {
      void connection.close();
      throw error;
    }
  }

  get epoch(): string {
    return this.#epoch;
  }

  read(request: GatewayRead, ctx: DriverContext): Promise<readonly Reading[]> {
    const { points } = request;
    const [first] = points;
    const epoch = first?.address.epoch ?? this.#epoch;
    const take: Take<readonly Reading[]> = (answer) => this.#readingsOf(answer, points);
    return this.#orStale(this.#link.ask(ctx, () => describeRead(request), this.#bodyOf(request, epoch, ctx), take));
  }

  async *prepare(points: readonly Point<GatewayAddress>[], ctx: DriverContext): AsyncGenerator<readonly Prepared<GatewayAddress>[]> {
    let done = 0;
    for (const request of await inSlices(planSteps(points, this.limits), createYielder())) {
      const items = request.points.map(({ address }) => address.item);
      const body = resolveBody(items, withinMsOf(ctx.timeouts.answerMs));
      const what = () => `the look-up of ${describeRead(request)}`;
      const answer = await this.#lookedUp(body, what, ctx);
      if (!answer) {
        yield request.points.map((point) => this.#byName(point));
        continue;
      }
      if (answer.items.length !== items.length)
        throw this.#violated(`${answer.items.length} items answer ${what()}, ${items.length} were asked for`);
      if (answer.epoch !== this.#epoch) throw this.#otherEpoch(answer.epoch, what());
      yield request.points.map((point, i) => this.#prepared(point, resolvedItem(answer.items[i])));
      done += items.length;
      ctx.progress?.(done, points.length);
    }
  }

  async *discover(ctx: DriverContext): AsyncGenerator<Discovered> {
    if (!this.#hello.capabilities.includes("browse")) throw new FaultError("device_error", "the gateway cannot list what its server has");
    const take = takeAs(browseAnswer, "no page of a list");
    const withinMs = withinMsOf(ctx.timeouts.answerMs);
    const max = Math.min(500, this.#hello.limits.max_items);
    yield* discover(
      (path, after) =>
        this.#link.ask(ctx, () => `the list of ${quote(path.join("/") || "/")}`, browseBody(path, after, max, withinMs), take),
      ctx,
    );
  }

  warnings(): readonly Warning[] {
    return [
      ...this.#warnings,
      ...(this.#life ? lifeWarnings(this.#life, Date.now()) : []),
      ...this.#doubts.warnings(),
      ...this.#help.warnings(),
    ];
  }

  /** False also where the trust in an expired certificate is over: the next session says so. */
  alive(): boolean {
    return this.#connection.alive() && !(this.#life && isTrustOver(this.#life, Date.now()));
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  /** A request is asked again each readout. */
  #bodyOf(request: GatewayRead, epoch: string, ctx: DriverContext): Body {
    const withinMs = withinMsOf(ctx.timeouts.answerMs);
    const known = this.#bodies.get(request);
    if (known?.withinMs === withinMs) return known.body;
    const items = request.points.map(({ address }) => address.item);
    const body = readBody(epoch, items, withinMs);
    this.#bodies.set(request, { withinMs, body });
    return body;
  }

  #readingsOf(answer: unknown, points: readonly Point<GatewayAddress>[]): { readonly value: readonly Reading[] } | string {
    const items: unknown = typeof answer === "object" && answer !== null && "items" in answer ? answer.items : undefined;
    if (!Array.isArray(items) || items.length !== points.length)
      return `${Array.isArray(items) ? items.length : "no"} items where ${points.length} were asked for`;
    const readings: Reading[] = [];
    for (const [i, { address, type }] of points.entries()) {
      const read = itemReading(items[i], type);
      this.#doubts.note(address.item, read.quality);
      readings.push(
        address.isAuto === true && type.scalar !== "auto" && read.reading.quality !== "bad" ? { ...read.reading, type } : read.reading,
      );
    }
    return { value: readings };
  }

  /** Undefined: there is no answer, now or a short while ago. Throws as `prepare`. */
  async #lookedUp(body: Body, what: () => string, ctx: DriverContext): Promise<z.infer<typeof resolveAnswer> | undefined> {
    if (!this.#help.isDue(LOOK_UP.kind)) return undefined;
    try {
      const answer = await this.#link.ask(ctx, what, body, takeAs(resolveAnswer, "no resolved items"), "help");
      this.#help.answered(LOOK_UP.kind);
      return answer;
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      // A gateway that answers nothing at all shows here.
      await this.#link
        .ask(
          ctx,
          () => "the list of servers",
          serversBody(withinMsOf(ctx.timeouts.answerMs)),
          () => ({ value: undefined }),
        )
        .catch((other: unknown) => {
          // A refusal is an answer.
          if (other instanceof FaultError || other instanceof GatewayRefusal) return;
          throw other instanceof ReasonError && other.reason.type === "TIMEOUT" ? error : other;
        });
      this.#help.silent(LOOK_UP.kind, LOOK_UP.words);
      return undefined;
    }
  }

  /** An answer to a read has the type of each value. */
  #byName(point: Point<GatewayAddress>): Prepared<GatewayAddress> {
    const { item } = point.address;
    const isAuto = point.type.scalar === "auto" || point.address.isAuto === true;
    return { point, address: { item, epoch: this.#epoch, ...(isAuto && { isAuto }) }, type: point.type };
  }

  #prepared(point: Point<GatewayAddress>, resolved: Resolved | undefined): Prepared<GatewayAddress> {
    if (!resolved || "error" in resolved) {
      const words = `the gateway gives ${resolved ? "an error without a code" : "neither a name nor an error"}`;
      const refusal = itemFault(resolved?.error) ?? new FaultError("device_error", words);
      return { point, refusal, retryAfterMs: OF_THE_MOMENT.has(refusal.fault) ? ASK_AGAIN_MS : LOOK_AGAIN_MS };
    }
    const { type } = resolved;
    const found = type === undefined || point.type.scalar !== "auto" ? point.type : wireType(type);
    if (!found)
      return { point, refusal: new FaultError("type_mismatch", `the gateway has it as ${quote(type ?? "")}, which is not a type`) };
    const isAuto = point.type.scalar === "auto" || point.address.isAuto === true;
    return { point, address: { item: resolved.item, epoch: this.#epoch, ...(isAuto && { isAuto }) }, type: found };
  }

  /** Notes the epoch that a refusal names, before it is passed on. */
  async #orStale<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked;
    } catch (error) {
      if (error instanceof StaleEpoch) this.#epoch = error.epoch;
      throw error;
    }
  }

  #otherEpoch(epoch: string, what: string): StaleEpoch {
    this.#epoch = epoch;
    return new StaleEpoch(
      epoch,
      `the server behind the gateway has other items by now, says the answer to ${what}; they are looked up again`,
    );
  }

  #violated(words: string): ReasonError {
    const failure = new ReasonError("UNKNOWN", `${this.#connection.where} broke the protocol: ${words}`, {
      condition: "protocol_violation",
    });
    this.#connection.fail(failure, "destroy");
    return failure;
  }
}

interface Opened {
  readonly connection: Connection;
  readonly link: GatewayLink;
  readonly warnings: readonly Warning[];
  readonly life?: CertificateLife;
}

/** An answer by its schema; `wrong` names what else it is. */
const takeAs =
  <S extends z.ZodType>(schema: S, wrong: string): Take<z.infer<S>> =>
  (answer) => {
    const parsed = schema.safeParse(answer);
    return parsed.success ? { value: parsed.data } : wrong;
  };

async function sayHello(
  link: GatewayLink,
  where: string,
  target: ProtocolDetails,
  maxLineBytes: number,
  ctx: DriverContext,
): Promise<Hello> {
  const hello = await link.ask(ctx, () => "hello", helloBody(maxLineBytes), takeAs(helloAnswer, "no hello"));
  ctx.log.debug({ gateway: hello.gateway, version: hello.version, capabilities: hello.capabilities }, "the gateway");
  if (hello.version !== VERSION)
    throw new ReasonError("UNKNOWN", `${where} broke the protocol: it chose version ${hello.version}, which was not offered`, {
      condition: "protocol_violation",
    });
  if (hello.protocols.includes(target.protocol)) return hello;
  const has = hello.protocols.map((one) => quote(one)).join(", ") || "nothing";
  throw new ReasonError("VENDOR_GATEWAY_ERROR", `the gateway ${where} cannot read ${target.protocol}; it has ${has}`);
}

/** Gives the epoch. What the gateway has instead of an unknown server is named. */
async function openServer(link: GatewayLink, target: ProtocolDetails, ctx: DriverContext): Promise<string> {
  const withinMs = withinMsOf(ctx.timeouts.answerMs);
  const { epoch } = await link
    .ask(ctx, () => targetWords(target), openBody(target, withinMs), takeAs(openAnswer, "no open server"))
    .catch(async (error: unknown) => {
      if (!(error instanceof GatewayRefusal) || error.code !== "unknown_server") throw error;
      const known = await link
        .ask(ctx, () => "the list of servers", serversBody(withinMs), takeAs(serversAnswer, "no list of servers"))
        .catch(() => ({ servers: [] }));
      const names = known.servers.flatMap(({ protocol, server_name, path }) => {
        const name = target.protocol === "OPC_DA" ? server_name : path;
        return protocol === target.protocol && name !== undefined ? [quote(name)] : [];
      });
      const listed =
        names.slice(0, SERVERS_NAMED).join(", ") + (names.length > SERVERS_NAMED ? `, and ${names.length - SERVERS_NAMED} more` : "");
      if (listed === "") throw error;
      throw new GatewayRefusal(error.code, `${error.message}; the gateway has ${listed}`, error.retryAfterMs);
    });
  return epoch;
}
