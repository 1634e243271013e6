import { ReasonError } from "../../src/model/reason.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { DriverContext } from "../driver.ts";
import { NoAnswer, type Purpose } from "../lib/exchange.ts";
import type { Help, SilentHelp } from "../lib/silent-help.ts";
import type { Take } from "../lib/tagged.ts";
import { identityRequest, type Reply, STATUS } from "./cip.ts";
import { openConnection, SMALL_BYTES } from "./forward-open.ts";
import { type CipLink, isRouteReply, type Packet } from "./link.ts";
import { CONNECTION_ENDS_MS, MAX_SMALL_BYTES, routed, routeMs, routeWords } from "./manager.ts";
import { connectionWords, routeFailure } from "./refusals.ts";
import type { Target } from "./route.ts";
import type { CipSettings } from "./settings.ts";

/** Of a message without a connection, what wraps it left out: bridges take 504 bytes. */
const UNCONNECTED_BYTES = 472;
const SEQUENCE_BYTES = 2;
/** A controller that had no connection left is asked again after this. */
const ASK_AGAIN_MS = 30_000;

const CONNECTION: Help = {
  kind: "connection",
  words: "the controller gives no answer to the opening of a connection: it is read without one, which is slower",
};

/** CIP messages to a controller: over a connection in it where it has one for us, else each by itself along the route. */
export class Messenger {
  readonly #link: CipLink;
  readonly #target: Target;
  readonly #settings: CipSettings;
  readonly #help: SilentHelp;
  /** With the sequence count. */
  #sizeBytes = 0;
  /** Why there is no connection. */
  #refused: string | undefined;
  #askAgainAt = Number.POSITIVE_INFINITY;

  constructor(link: CipLink, target: Target, settings: CipSettings, help: SilentHelp) {
    this.#help = help;
    this.#link = link;
    this.#target = target;
    this.#settings = settings;
  }

  /** Of a request and of its reply. */
  get messageBytes(): number {
    return this.#link.open ? this.#sizeBytes - SEQUENCE_BYTES : UNCONNECTED_BYTES;
  }

  /** For people; undefined: all is as it should be. */
  get warning(): Warning | undefined {
    if (this.#refused === undefined) return undefined;
    return warning(
      "read_without_connection",
      `read without a connection, which is slower: the controller refuses to open one: ${this.#refused}`,
    );
  }

  /** True: a connection has to be opened before the next message: it ended for lack of traffic, or there was none left some time ago. */
  get isDue(): boolean {
    const now = performance.now();
    return this.#link.open ? now - this.#link.answeredAt > CONNECTION_ENDS_MS : now >= this.#askAgainAt;
  }

  /** Throws ReasonError: there is no way to the controller. */
  async open(ctx: DriverContext): Promise<void> {
    const { connected, connection_size: wanted } = this.#settings;
    this.#link.use(undefined);
    if (!connected) return;
    if (!this.#help.isDue(CONNECTION.kind)) {
      this.#askAgainAt = performance.now() + this.#help.msLeft(CONNECTION.kind);
      return;
    }
    const { isMicro800, largestBytes = isMicro800 ? SMALL_BYTES : wanted } = this.#target;
    const most = Math.min(wanted, largestBytes);
    const sizes = most > MAX_SMALL_BYTES ? [most, SMALL_BYTES] : [most];
    const opened = await this.#help.ask(CONNECTION, () => openConnection(this.#link, this.#target.route, sizes, ctx));
    if (opened === undefined) {
      this.#refused = undefined;
      this.#askAgainAt = performance.now() + this.#help.msLeft(CONNECTION.kind);
      return;
    }
    if (typeof opened === "string") {
      this.#refused = opened;
      this.#askAgainAt = performance.now() + ASK_AGAIN_MS;
      return;
    }
    this.#refused = undefined;
    this.#sizeBytes = opened.sizeBytes;
    this.#link.use(opened.open);
  }

  /** For `send`: made once for a request that is asked again and again, for as long as the same connection is open. */
  packet(cip: Buffer, answerMs: number): Packet {
    if (this.#link.open) return this.#link.connectedPacket(cip);
    return this.#link.unconnectedPacket(routed(cip, this.#target.route, routeMs(answerMs)), cip[0] ?? 0);
  }

  /** Throws as `CipLink.ask`, and ReasonError where the message does not come through. */
  send<T>(ctx: DriverContext, describe: () => string, packet: Packet, take: Take<Reply, T>, purpose?: Purpose): Promise<T> {
    const judge: Take<Reply, T> = (reply, done, refuse) => {
      const { status, extended } = reply;
      if (status !== STATUS.ok && (status === STATUS.connectionLost || isRouteReply(reply, packet.service))) {
        const lost = this.#lost(status, extended);
        refuse(purpose === "help" && lost.reason.type === "TIMEOUT" ? new NoAnswer(lost.message) : lost);
        return undefined;
      }
      return take(reply, done, refuse);
    };
    return this.#link.ask<T>(ctx, describe, packet, judge, purpose);
  }

  /** How many kinds of help that begin so are not asked for at this moment. */
  resting(kind: string): number {
    return this.#help.kinds.filter((one) => one.startsWith(kind) && !this.#help.isDue(one)).length;
  }

  /** True: the last request for this help had no answer. */
  isSilent(kind: string): boolean {
    return this.#help.kinds.includes(kind);
  }

  /** For what reading can do without. Undefined: the controller gives no answer, or gave none a short while ago. Throws as `send`. */
  askHelp<T>(help: Help, ctx: DriverContext, describe: () => string, cip: Buffer, take: Take<Reply, T>): Promise<T | undefined> {
    return this.#help.ask(help, () => this.send(ctx, describe, this.packet(cip, ctx.timeouts.answerMs), take, "help"));
  }

  ask<T>(ctx: DriverContext, describe: () => string, cip: Buffer, take: Take<Reply, T>): Promise<T> {
    return this.send(ctx, describe, this.packet(cip, ctx.timeouts.answerMs), take);
  }

  /** A question that costs the controller little, so that it does not end the connection for lack of traffic. */
  keepOpen(ctx: DriverContext): Promise<void> {
    const packet = this.packet(identityRequest(), ctx.timeouts.answerMs);
    const take: Take<Reply, void> = (_reply, done) => {
      done();
      return undefined;
    };
    return this.send(ctx, () => "the identity of the controller", packet, take, "help");
  }

  /** Asks again what the device is, of which this kind of help is about. Throws as `send`. */
  nameAgain(kind: string, ctx: DriverContext): Promise<void> {
    return this.keepOpen(ctx).then(
      () => this.#help.answered(kind),
      (error: unknown) => {
        this.#help.silentAgain(kind);
        throw error;
      },
    );
  }

  close(ctx: DriverContext): Promise<void> {
    return this.#link.close(ctx);
  }

  #lost(status: number, extended: number | undefined): ReasonError {
    if (status === STATUS.connectionLost)
      return new ReasonError("UNKNOWN", `the connection in the controller is lost: ${connectionWords(status, extended)}`, {
        sessionLost: true,
      });
    return routeFailure(status, extended, `no way to the controller (${routeWords(this.#target.route)}) any more`);
  }
}
