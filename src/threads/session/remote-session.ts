import type { AnySession, Discovered, DriverContext, Limits, Point, Prepared, Request } from "../../../drivers/driver.ts";
import type { Log } from "../../model/context.ts";
import { ownFault } from "../../model/failure.ts";
import { FaultError } from "../../model/fault.ts";
import { unpackReadings } from "../../model/reading-columns.ts";
import { ReasonError } from "../../model/reason.ts";
import type { Reading } from "../../model/value.ts";
import type { Warning } from "../../model/warning.ts";
import { contextOf } from "./context.ts";
import type { Answer, Ask, ToSessionWorker } from "./messages.ts";
import { unpackPrepared } from "./prepared.ts";

/** Events of the half of a session that is in the worker. */
export interface Held {
  /** For lines that come outside of a call. */
  readonly log: Log;
  warn(warnings: readonly Warning[]): void;
  /** Prepared points are no longer valid. */
  renew(epoch: string | undefined): void;
  /** The limits of a request have changed. */
  limit(limits: Limits): void;
  /** The device has ended the session. */
  lost(): void;
  closed(): void;
  /** The worker has ended, and the other half with it. */
  ended(): void;
}

/** How a session that lives in the worker reaches it. */
export interface RemoteLink {
  nextCall(): number;
  /** False: no worker runs at this moment. Throws where something cannot cross to another thread. */
  post(message: ToSessionWorker): boolean;
  /** Settles with the call's answer, or throws what the driver threw. */
  ask(message: Ask, ctx: DriverContext): Promise<Exclude<Answer, { type: "failed" }>>;
  /** Reports what happens to a session until it is dropped. */
  hold(id: number, held: Held): void;
  drop(id: number): void;
}

type Page = Extract<Answer, { type: "page" }>;

const CLOSE_WITHIN_MS = 3000;
/** A page may end before what the driver finds does, with nothing after it. */
const MAX_LATE_PAGES = 2;
/** Of the requests that the worker keeps for one session: beyond this it forgets them all and gets them again. */
const MAX_KEPT_POINTS = 200_000;
/** Points in one message: what takes over more of them holds up its thread. */
const POINTS_AT_ONCE = 500;

/** A session whose other half is in the worker. */
export class RemoteSession implements AnySession {
  readonly prepare?: NonNullable<AnySession["prepare"]>;
  readonly discover?: NonNullable<AnySession["discover"]>;
  readonly #id: number;
  readonly #link: RemoteLink;
  #alive = true;
  #warnings: readonly Warning[];
  #epoch: string | undefined;
  #limits: Limits;
  #isEnded = false;
  #closing: Promise<void> | undefined;
  #onClosed = () => {};
  /** Requests are planned once and read again and again: the worker knows them by number. */
  #numbers = new WeakMap<Request, number>();
  #count = 0;
  #keptPoints = 0;

  constructor(id: number, connected: Extract<Answer, { type: "connected" }>, log: Log, link: RemoteLink) {
    this.#id = id;
    this.#link = link;
    this.#limits = connected.limits;
    this.#warnings = connected.warnings;
    this.#epoch = connected.epoch;
    if (connected.prepares) this.prepare = (points, ctx) => this.#prepare(points, ctx);
    if (connected.discovers) this.discover = (ctx) => this.#discover(ctx);
    link.hold(id, {
      log,
      warn: (warnings) => {
        this.#warnings = warnings;
      },
      renew: (epoch) => {
        this.#epoch = epoch;
      },
      limit: (limits) => {
        this.#limits = limits;
      },
      lost: () => {
        this.#alive = false;
      },
      closed: () => this.#onClosed(),
      ended: () => {
        this.#alive = false;
        this.#isEnded = true;
        this.#onClosed();
      },
    });
  }

  get limits(): Limits {
    return this.#limits;
  }

  get epoch(): string | undefined {
    return this.#epoch;
  }

  async read(request: Request, ctx: DriverContext): Promise<readonly Reading[]> {
    this.#checkOpen();
    const answer = await this.#link.ask(this.#readMessage(request, ctx), ctx).catch((error: unknown) => {
      // What could not cross is not known there.
      if (error instanceof FaultError && error.fault === "collector_error") this.#numbers.delete(request);
      throw error;
    });
    if (answer.type !== "readings") throw unexpected(answer);
    this.#alive &&= answer.alive;
    return unpackReadings(answer.readings);
  }

  warnings(): readonly Warning[] {
    return this.#warnings;
  }

  alive(): boolean {
    return this.#alive && this.#closing === undefined;
  }

  close(): Promise<void> {
    this.#closing ??= new Promise<void>((done) => {
      const timer = setTimeout(done, CLOSE_WITHIN_MS);
      this.#onClosed = () => {
        clearTimeout(timer);
        done();
      };
      if (this.#isEnded || !this.#link.post({ type: "close", session: this.#id })) this.#onClosed();
    }).finally(() => this.#link.drop(this.#id));
    return this.#closing;
  }

  #checkOpen(): void {
    if (!this.alive()) throw new ReasonError("CONNECTION_CLOSED", "the session has ended");
  }

  #readMessage(request: Request, ctx: DriverContext): Extract<ToSessionWorker, { type: "read" }> {
    const message = { type: "read", call: this.#link.nextCall(), session: this.#id, context: contextOf(ctx) } as const;
    const known = this.#numbers.get(request);
    if (known !== undefined) return { ...message, requestNumber: known };
    const forget = this.#keptPoints > 0 && this.#keptPoints + request.points.length > MAX_KEPT_POINTS;
    if (forget) {
      this.#numbers = new WeakMap();
      this.#keptPoints = 0;
    }
    this.#keptPoints += request.points.length;
    this.#numbers.set(request, ++this.#count);
    return { ...message, requestNumber: this.#count, request, ...(forget && { forget }) };
  }

  async *#prepare(points: readonly Point[], ctx: DriverContext): AsyncGenerator<readonly Prepared[]> {
    this.#checkOpen();
    const call = this.#link.nextCall();
    for (let at = 0; at < points.length; at += POINTS_AT_ONCE) {
      this.#post({ type: "points", call, points: points.slice(at, at + POINTS_AT_ONCE) });
      await new Promise(setImmediate);
    }
    const context = { ...contextOf(ctx), ...(ctx.kept && { kept: ctx.kept.values }) };
    for await (const page of this.#pages({ type: "prepare", call, session: this.#id, context }, ctx)) {
      if (!("prepared" in page)) throw unexpected(page);
      yield page.prepared.flatMap((packed) => {
        const point = points[packed.place];
        return point ? [unpackPrepared(packed, point)] : [];
      });
    }
  }

  async *#discover(ctx: DriverContext): AsyncGenerator<Discovered> {
    this.#checkOpen();
    const call = this.#link.nextCall();
    for await (const page of this.#pages({ type: "discover", call, session: this.#id, context: contextOf(ctx) }, ctx)) {
      if (!("discovered" in page)) throw unexpected(page);
      yield* page.discovered;
    }
  }

  /**
   * The worker looks for the next page when it is asked for it, and for no more once the consumer has left, or some pages after the signal:
   * with them come what the driver has found, and its own end; a driver that does not look at its signal has no more.
   */
  async *#pages(first: Extract<Ask, { type: "prepare" | "discover" }>, ctx: DriverContext): AsyncGenerator<Page> {
    const { call } = first;
    let isOver = false;
    let latePages = 0;
    try {
      for (let message: Ask = first; !isOver; message = { type: "next", call }) {
        this.#checkOpen();
        if (ctx.signal.aborted && latePages++ === MAX_LATE_PAGES) throw ctx.signal.reason;
        const page = await this.#link.ask(message, ctx);
        if (page.type !== "page") throw unexpected(page);
        isOver = page.isLast;
        yield page;
      }
    } finally {
      if (!isOver) this.#link.post({ type: "release", call });
    }
  }

  #post(message: ToSessionWorker): void {
    let isPosted: boolean;
    try {
      isPosted = this.#link.post(message);
    } catch (error) {
      throw ownFault(error);
    }
    if (!isPosted) throw new ReasonError("CONNECTION_CLOSED", "the session worker is being started again");
  }
}

const internal = (message: string): ReasonError => new ReasonError("UNKNOWN", message, { condition: "internal_error" });
const unexpected = ({ type }: { readonly type: string }): ReasonError => internal(`the session worker answered ${type}`);
