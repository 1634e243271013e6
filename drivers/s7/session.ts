import { countOf } from "../../src/base/number.ts";
import type { S7Details } from "../../src/model/details.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { Reading } from "../../src/model/value.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { ConnectInput, DriverContext, Endpoint, Session } from "../driver.ts";
import type { Connection } from "../lib/connection.ts";
import { connectIso } from "../lib/iso-connect.ts";
import { Learned } from "../lib/learned.ts";
import type { Take } from "../lib/tagged.ts";
import { openTcp } from "../lib/tcp.ts";
import type { S7Address } from "./address.ts";
import {
  type Answer,
  answerBytes,
  emptyResults,
  type Granted,
  type ItemResults,
  itemsRoom,
  MAX_ITEMS,
  maxItemBytes,
  parseSetup,
  readRequest,
  setupRequest,
  walkItems,
} from "./frames.ts";
import { MAX_JOBS, S7Link } from "./link.ts";
import { type Part, Parts } from "./parts.ts";
import { describeRead, type S7Limits, type S7Read } from "./plan.ts";
import { readingsOf } from "./readings.ts";
import { jobRefusal, WRONG_PDU_SIZE } from "./refusals.ts";
import type { S7Settings } from "./settings.ts";
import { adviceOn, targetOf } from "./target.ts";

const MAX_POINTS = 65_536;
/** What a controller that finds a message too large is asked for instead. */
const SMALL_PDU_BYTES = 240;

/** What the controller is known to take, less than it grants. */
interface Sizes {
  readonly maxItems: number;
  readonly pduBytes: number;
}

/** A request as it goes out, and what takes its answer. */
interface Job {
  readonly packets: Buffer;
  /** Bytes of each item. */
  readonly sizes: readonly number[];
  readonly results: ItemResults;
}

/** The device answered fewer items than it was asked for. */
class FewerItems extends Error {
  readonly answered: number;
  constructor(answered: number) {
    super(`${answered} items were answered`);
    this.answered = answered;
  }
}

/** A job was refused for its size. */
class TooLarge extends Error {
  readonly refusal: FaultError;
  constructor(refusal: FaultError) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

export const endpointOf = ({ host, port }: S7Details): Endpoint => ({ host, port, transport: "tcp" });

export class S7Session implements Session<S7Address, S7Read, S7Limits> {
  readonly #connection: Connection;
  readonly #link: S7Link;
  readonly #granted: Granted;
  readonly #settings: S7Settings;
  readonly #learned: Learned<Sizes>;
  #limits: S7Limits;
  #jobs = new WeakMap<S7Read, Job>();
  /** Asking for less has not helped: what is refused for its size is the agent's to halve, which has a budget for that. */
  #isSizeRight = false;

  private constructor(connection: Connection, link: S7Link, granted: Granted, settings: S7Settings, learned: Learned<Sizes>) {
    this.#connection = connection;
    this.#link = link;
    this.#granted = granted;
    this.#settings = settings;
    this.#learned = learned;
    this.#limits = this.#limitsNow();
  }

  /** Throws ReasonError; a controller that refuses the connection by closing it or by silence is named with the slots worth trying. */
  static async connect({ details, settings }: ConnectInput<S7Details, S7Settings>, ctx: DriverContext): Promise<S7Session> {
    const target = targetOf(details, settings);
    if (typeof target === "string") throw new ReasonError("UNKNOWN", target, { condition: "configuration_invalid" });
    const connection = await openTcp(endpointOf(details), ctx);
    const learned = new Learned<Sizes>(ctx.device, "sizes", { maxItems: MAX_ITEMS, pduBytes: Number.POSITIVE_INFINITY });
    try {
      const { tpduBytes, early } = await connectIso(connection, target, ctx);
      if (early.length > 0)
        throw new ReasonError("UNKNOWN", `${connection.where} sent ${early.length} bytes before it was asked`, {
          condition: "protocol_violation",
        });
      const link = new S7Link(connection, tpduBytes, ctx);
      const wish = { pduBytes: Math.min(settings.pdu_size, learned.values.pduBytes), jobs: MAX_JOBS };
      return new S7Session(connection, link, await setUp(link, wish, ctx), settings, learned);
    } catch (error) {
      void connection.close();
      throw ctx.signal.aborted ? error : withAdvice(error, adviceOn(details, settings));
    }
  }

  get limits(): S7Limits {
    if (this.#learned.forgetOld()) {
      this.#isSizeRight = false;
      this.#learn();
    }
    return this.#limits;
  }

  // Not async, and less is asked for from within the answer: a readout of hundreds of jobs has two promises fewer for each.
  read(request: S7Read, ctx: DriverContext): Promise<readonly Reading[]> {
    const job = this.#jobFor(request);
    if (job) return this.#readAtOnce(request, job, ctx);
    return this.#readInParts(request, ctx).catch((error: unknown) => this.#askForLess(request, ctx, error));
  }

  #readAtOnce(request: S7Read, job: Job, ctx: DriverContext): Promise<readonly Reading[]> {
    const take: Take<Answer, readonly Reading[]> = (answer, done, refuse) => {
      if (answer.error !== 0) {
        done(this.#askForLessNext(request, ctx, refusalOf(answer, describeRead(request))));
        return undefined;
      }
      const answered = walkItems(answer, job.sizes, job.results);
      if (typeof answered === "string") return answered;
      if (answered < job.sizes.length) done(this.#askForLessNext(request, ctx, new FewerItems(answered)));
      else attempt(() => done(readingsOf(request, answer.message, job.results)), refuse);
      return undefined;
    };
    return this.#link.ask(ctx, () => describeRead(request), job.packets, take);
  }

  get granted(): string {
    const { pduBytes, jobs } = this.#granted;
    return `messages (PDU) of ${pduBytes} bytes of the ${this.#settings.pdu_size} asked for, ${countOf(jobs, "job")} at once of ${MAX_JOBS}`;
  }

  warnings(): readonly Warning[] {
    const { maxItems, pduBytes } = this.#learned.values;
    const found: Warning[] = [];
    if (maxItems < MAX_ITEMS)
      found.push(warning("device_limited", `the controller answers ${maxItems} ranges of one job, fewer than ${MAX_ITEMS}`, "ranges"));
    if (pduBytes < this.#settings.pdu_size)
      found.push(
        warning(
          "device_limited",
          `the controller refuses messages of the size that it grants; it is sent ${pduBytes} bytes at most`,
          "bytes",
        ),
      );
    return found;
  }

  alive(): boolean {
    return this.#connection.alive();
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  #limitsNow(): S7Limits {
    const pduBytes = Math.min(this.#granted.pduBytes, this.#learned.values.pduBytes);
    return {
      maxPoints: MAX_POINTS,
      maxBytes: maxItemBytes(pduBytes),
      inFlight: this.#granted.jobs,
      pduBytes,
      maxItems: this.#learned.values.maxItems,
      maxGap: this.#settings.max_gap,
    };
  }

  /** The request as one job, formed once; undefined: it takes several. */
  #jobFor(request: S7Read): Job | undefined {
    const known = this.#jobs.get(request);
    if (known) return known;
    const { pduBytes, maxItems } = this.#limits;
    const { items } = request;
    const room = itemsRoom(pduBytes);
    const bytes = items.reduce((sum, item) => sum + answerBytes(item.bytes), 0);
    // The last item has no byte behind it.
    const unfilled = (items.at(-1)?.bytes ?? 0) & 1;
    if (items.length > Math.min(maxItems, room.requestItems) || bytes - unfilled > room.answerBytes) return undefined;
    const job = {
      packets: this.#link.packetsOf(readRequest(0, items)),
      sizes: items.map((item) => item.bytes),
      results: emptyResults(items.length),
    };
    this.#jobs.set(request, job);
    return job;
  }

  /** Once the job that was answered is no longer under way: what is asked for next has its place. */
  #askForLessNext(request: S7Read, ctx: DriverContext, error: Error): Promise<readonly Reading[]> {
    return Promise.resolve().then(() => this.#askForLess(request, ctx, error));
  }

  /** A refusal that says that less should be asked for at once is followed; any other is the request's. */
  async #askForLess(request: S7Read, ctx: DriverContext, error: unknown): Promise<readonly Reading[]> {
    if (error instanceof TooLarge) return this.#readSmaller(request, ctx, error);
    if (!(error instanceof FewerItems)) throw error;
    if (error.answered === 0) throw noneAnswered(request.items);
    this.#learned.learn({ maxItems: Math.min(error.answered, this.#learned.values.maxItems) });
    this.#learn();
    return this.#readInParts(request, ctx).catch((other: unknown) => {
      if (other instanceof TooLarge) return this.#readSmaller(request, ctx, other);
      throw other;
    });
  }

  /**
   * A job that is too large for the device, whatever it has granted: fewer items, then smaller messages. What works is kept.
   * Throws FaultError: the refusal, where size is not what it is about.
   */
  async #readSmaller(request: S7Read, ctx: DriverContext, { refusal }: TooLarge): Promise<readonly Reading[]> {
    if (this.#isSizeRight) throw refusal;
    const { pduBytes } = this.#limits;
    for (const size of smallerSizes(request.items.length, pduBytes)) {
      try {
        const readings = await this.#readInParts(request, ctx, size.pduBytes, size.maxItems);
        if (size.maxItems < request.items.length) this.#learned.learn({ maxItems: size.maxItems });
        if (size.pduBytes < pduBytes) this.#learned.learn({ pduBytes: size.pduBytes });
        this.#learn();
        return readings;
      } catch (error) {
        if (!(error instanceof TooLarge)) throw error;
      }
    }
    this.#isSizeRight = true;
    throw refusal;
  }

  #learn(): void {
    this.#limits = this.#limitsNow();
    this.#jobs = new WeakMap();
  }

  /** In as many jobs as it takes, one after the other: what is longer than one job can bring, and what was planned for a larger one. */
  async #readInParts(
    request: S7Read,
    ctx: DriverContext,
    pduBytes = this.#limits.pduBytes,
    maxItems = this.#limits.maxItems,
  ): Promise<readonly Reading[]> {
    const parts = new Parts(request);
    for (;;) {
      const ranges = parts.next(pduBytes, Math.min(maxItems, this.#learned.values.maxItems));
      if (ranges.length === 0) return readingsOf(request, parts.data, parts.results);
      const answered = await this.#readRanges(ranges, parts, ctx);
      if (answered === 0) throw noneAnswered(ranges);
      if (answered < ranges.length) {
        this.#learned.learn({ maxItems: answered });
        this.#learn();
      }
    }
  }

  /** How many of them were answered. */
  #readRanges(ranges: readonly Part[], parts: Parts, ctx: DriverContext): Promise<number> {
    const results = emptyResults(ranges.length);
    const sizes = ranges.map(({ bytes }) => bytes);
    const describe = () => describeRead({ items: ranges });
    return this.#link.ask<number>(ctx, describe, this.#link.packetsOf(readRequest(0, ranges)), (answer, done, refuse) => {
      if (answer.error !== 0) {
        refuse(refusalOf(answer, describe()));
        return undefined;
      }
      const answered = walkItems(answer, sizes, results);
      if (typeof answered === "string") return answered;
      parts.take(ranges.slice(0, answered), answer.message, results);
      done(answered);
      return undefined;
    });
  }
}

function refusalOf({ error }: Answer, what: string): Error {
  const refusal = jobRefusal(error, what);
  return error === WRONG_PDU_SIZE ? new TooLarge(refusal) : refusal;
}

const noneAnswered = (items: Parameters<typeof describeRead>[0]["items"]): FaultError =>
  new FaultError("device_error", `none of the items was answered: ${describeRead({ items })}`);

/** What to try where a job of so many items is too large. */
function* smallerSizes(items: number, pduBytes: number): Generator<{ readonly maxItems: number; readonly pduBytes: number }> {
  for (let maxItems = items >> 1; maxItems >= 1; maxItems >>= 1) yield { maxItems, pduBytes };
  if (pduBytes > SMALL_PDU_BYTES) yield { maxItems: items, pduBytes: SMALL_PDU_BYTES };
}

function attempt(work: () => void, refuse: (error: Error) => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof FaultError)) throw error;
    refuse(error);
  }
}

async function setUp(link: S7Link, wish: Granted, ctx: DriverContext): Promise<Granted> {
  return link.ask<Granted>(
    ctx,
    () => "the set-up of the communication",
    link.packetsOf(setupRequest(0, wish)),
    (answer, done, refuse) => {
      if (answer.error !== 0) {
        refuse(
          new ReasonError("UNKNOWN", `the controller refused the set-up of the communication: ${jobRefusal(answer.error, "it").message}`),
        );
        return undefined;
      }
      const granted = parseSetup(answer, wish);
      if (typeof granted === "string") return granted;
      done(granted);
      return undefined;
    },
  );
}

const REFUSALS = new Set(["CONNECTION_CLOSED", "CONNECTION_RESET", "TIMEOUT"]);

/** A controller refuses a wrong slot, or one connection too many, by closing the connection or by silence. */
function withAdvice(error: unknown, advice: string): unknown {
  if (!(error instanceof ReasonError) || !REFUSALS.has(error.reason.type)) return error;
  const { condition, sessionLost } = error;
  return new ReasonError(error.reason, `${error.message}; ${advice}`, { cause: error, ...(condition && { condition }), sessionLost });
}
