import { countOf } from "../../src/base/number.ts";
import type { FinsAddress, FinsDetails } from "../../src/model/details.ts";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import type { Reading } from "../../src/model/value.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import type { ConnectInput, DriverContext, Point, Prepared, Session } from "../driver.ts";
import { Learned } from "../lib/learned.ts";
import type { FinsVariable } from "./address.ts";
import { type Layout, placeOf } from "./areas.ts";
import { type Controller, identify } from "./controller.ts";
import {
  DATA_AT,
  endCodeOf,
  hasFatalError,
  hasNonFatalError,
  isRelayError,
  itemsCommand,
  MAX_ITEMS,
  MAX_WORDS,
  rangeCommand,
  rawEndCode,
  takeItems,
  type WireRange,
} from "./frames.ts";
import { type FinsLink, MAX_IN_FLIGHT, type Take } from "./link.ts";
import { describeRead, type FinsLimits, type FinsRead, plan } from "./plan.ts";
import { readingsOf } from "./readings.ts";
import { hexCode, isTooLarge, isUnknownCommand, refusalOf } from "./refusals.ts";
import type { FinsSettings } from "./settings.ts";
import { openLink } from "./target.ts";
import { overFirst, TransportChoice } from "./transport.ts";
import { strideOf } from "./types.ts";

const MAX_POINTS = 65_536;
/** Points in one batch of what is prepared. */
const BATCH = 500;
/** This many words of one datagram still fit into one packet of Ethernet. */
const UDP_WORDS = 700;
/** W227: of one read and one multiple read of the C series. */
const [C_SERIES_WORDS, C_SERIES_ITEMS] = [256, 128];
/** What networks and controllers grant, in the order in which it is tried: SYSMAC LINK and DeviceNet, Host Link, and less. */
const WORD_STEPS = [512, 269, 128, 64, 32, 16, 8, 4, 2, 1];
const ITEM_STEPS = [128, 89, 44, 22, 11, 5, 2, 1, 0];

/** Words of a range that every network takes. */
const SAFE_WORDS = 128;

/** What one read may ask for on this network. */
interface Sizes {
  readonly maxWords: number;
  readonly maxItems: number;
}

/** A request was refused for its size, or for its command. */
class TooLarge extends Error {
  readonly refusal: FaultError;
  readonly isUnknown: boolean;
  constructor(refusal: FaultError, isUnknown: boolean) {
    super(refusal.message);
    this.refusal = refusal;
    this.isUnknown = isUnknown;
  }
}

type Input = ConnectInput<FinsDetails, FinsSettings>;

/** Words of items, one behind the other; nothing is awaited between filling and reading it. */
const taken = Buffer.allocUnsafeSlow(MAX_ITEMS * 2);

export class FinsSession implements Session<FinsVariable, FinsRead, FinsLimits> {
  readonly #link: FinsLink;
  readonly #controller: Controller;
  readonly #learned: Learned<Sizes>;
  readonly #maxGap: number;
  #limits: FinsLimits;
  #messages = new WeakMap<FinsRead, Buffer>();
  /** Asking for less has not helped: what is refused for its size is the agent's to halve, which has a budget for that. */
  #isSizeRight = false;
  /** End code of the last answer, with the flags in it. */
  #lastEndCode = 0;
  #usesCurrentBank = false;

  private constructor(link: FinsLink, controller: Controller, { details, settings }: Input, ctx: DriverContext) {
    this.#link = link;
    this.#controller = controller;
    this.#learned = new Learned(ctx.device, `sizes ${details.remote_address}`, { maxWords: MAX_WORDS, maxItems: MAX_ITEMS });
    this.#maxGap = settings.max_gap;
    this.#limits = this.#limitsNow();
  }

  /** Throws ReasonError; of two transports that fail, the reason of the one that worked last, or that of TCP. */
  static async connect(input: Input, ctx: DriverContext): Promise<FinsSession> {
    const { details, settings } = input;
    const { link, asked } = await overFirst(new TransportChoice(settings.transport, ctx.device), ctx.signal, async (transport) => {
      const opened = await openLink(transport, details, settings, ctx);
      try {
        return { link: opened, asked: await identify(opened, details, settings, ctx) };
      } catch (error) {
        void opened.close();
        throw error;
      }
    });
    if (asked instanceof ReasonError) {
      void link.close();
      throw asked;
    }
    return new FinsSession(link, asked, input, ctx);
  }

  get limits(): FinsLimits {
    if (this.#learned.forgetOld()) {
      this.#isSizeRight = false;
      this.#learn({});
    }
    return this.#limits;
  }

  /** Addresses depend on how the controller lays out its memory. */
  get epoch(): Layout {
    return this.#controller.layout;
  }

  async *prepare(points: readonly Point<FinsVariable>[]): AsyncGenerator<readonly Prepared<FinsVariable>[]> {
    for (let at = 0; at < points.length; at += BATCH) yield points.slice(at, at + BATCH).map((point) => this.#prepared(point));
  }

  // Not async, and less is asked for from within the answer: a readout of many requests has a promise fewer for each.
  read(request: FinsRead, ctx: DriverContext): Promise<readonly Reading[]> {
    if (!fits(request, this.#limits)) return this.#readInSeveral(request, ctx);
    return this.#ask(
      ctx,
      request,
      (frame) => readingsOf(request, ...this.#valuesIn(frame, request)),
      (error) => this.#readSmaller(request, ctx, error),
    );
  }

  /** What was planned for larger limits, or is longer than one read brings. */
  async #readInSeveral(request: FinsRead, ctx: DriverContext): Promise<readonly Reading[]> {
    try {
      return await this.#readAsPlanned(request, ctx, this.#limits);
    } catch (error) {
      if (error instanceof TooLarge) return this.#readSmaller(request, ctx, error);
      throw error;
    }
  }

  get granted(): string {
    const { source, destination } = this.#link.route;
    const nodes = `node ${nodeText(source)} for the collector, ${nodeText(destination)} for the controller`;
    return `${nodes}, over ${this.#link.transport.toUpperCase()}; reads of ${this.#limits.maxWords} words, ${countOf(this.#limits.inFlight, "request")} at once`;
  }

  warnings(): readonly Warning[] {
    const found = [...this.#controller.warnings(), ...this.#link.warnings()];
    const { maxWords, maxItems } = this.#learned.values;
    if (maxWords < MAX_WORDS)
      found.push(warning("device_limited", `the controller or the network takes reads of ${maxWords} words at most`, "words"));
    if (maxItems === 0)
      found.push(warning("device_limited", "the controller reads ranges alone: it has no multiple memory area read (0104)", "items"));
    else if (maxItems < MAX_ITEMS)
      found.push(warning("device_limited", `the controller or the network takes multiple reads of ${maxItems} words at most`, "items"));
    if (this.#usesCurrentBank)
      found.push(
        warning(
          "bank_not_fixed",
          "addresses such as E100 are read from the bank that the program has selected at that moment; write E0_100 for one bank",
        ),
      );
    if (hasFatalError(this.#lastEndCode))
      found.push(warning("device_faulty", "the controller has a fatal error and does not run its program: look at its error log"));
    else if (hasNonFatalError(this.#lastEndCode))
      found.push(
        warning("device_faulty", "the controller has an error that does not stop it, such as a low battery: look at its error log"),
      );
    return found;
  }

  alive(): boolean {
    return this.#link.alive();
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  #prepared(point: Point<FinsVariable>): Prepared<FinsVariable> {
    const { address, type } = point;
    const { layout, untold } = this.#controller;
    const place = placeOf(address, layout);
    const why = layout === "unknown" && untold !== undefined ? `: it ${untold}` : "";
    if (typeof place === "string") return { point, refusal: new FaultError("address_invalid", `${place}${why}`) };
    return { point, address: { ...address, place }, type };
  }

  #limitsNow(): FinsLimits {
    const { layout } = this.#controller;
    const { values } = this.#learned;
    const most = layout === "c" || layout === "unknown" ? C_SERIES_WORDS : this.#link.transport === "udp" ? UDP_WORDS : MAX_WORDS;
    const maxWords = Math.min(values.maxWords, most);
    return {
      maxPoints: MAX_POINTS,
      maxBytes: maxWords * 2,
      // A Classic controller, and what is on the way to it, holds one request at a time.
      inFlight: layout === "cs" ? MAX_IN_FLIGHT : 1,
      maxWords,
      maxItems: Math.min(values.maxItems, layout === "c" || layout === "unknown" ? C_SERIES_ITEMS : MAX_ITEMS),
      maxGap: this.#maxGap,
    };
  }

  #learn(sizes: Partial<Sizes>): void {
    if (Object.keys(sizes).length > 0) this.#learned.learn(sizes);
    this.#limits = this.#limitsNow();
  }

  #messageOf(request: FinsRead): Buffer {
    const known = this.#messages.get(request);
    if (known) return known;
    const { range, items } = request;
    if (!range && !items) throw new TypeError("a read of nothing");
    const message = this.#link.messageOf(
      range ? rangeCommand(range) : itemsCommand(items?.codes ?? NO_CODES, items?.addresses ?? NO_ADDRESSES),
    );
    this.#messages.set(request, message);
    if (request.points.some(({ address }) => address.area === "E" && address.bank === undefined)) this.#usesCurrentBank = true;
    return message;
  }

  /** Asks for one request as it is; `less` is what follows where that is too much. */
  #ask<T>(ctx: DriverContext, request: FinsRead, take: Take<T>, less: (error: TooLarge) => Promise<T>): Promise<T> {
    return this.#link.ask<T>(
      ctx,
      () => describeRead(request),
      this.#messageOf(request),
      (frame) => {
        const raw = rawEndCode(frame);
        this.#lastEndCode = raw;
        if (!isRelayError(raw) && endCodeOf(raw) === 0) return take(frame);
        const error = this.#refusalIn(frame, request);
        // Once the request that was answered is no longer under way: what is asked for next has its place.
        if (error instanceof TooLarge) return Promise.resolve().then(() => less(error));
        throw error;
      },
    );
  }

  #refusalIn(frame: Buffer, request: FinsRead): Error {
    const refusal = refusalOf(frame, describeRead(request), this.#link.route.destination.node, this.#controller.model);
    const code = endCodeOf(rawEndCode(frame));
    if (!(refusal instanceof FaultError)) return refusal;
    const isUnknown = request.items !== undefined && isUnknownCommand(code);
    return isUnknown || isTooLarge(code) ? new TooLarge(refusal, isUnknown) : refusal;
  }

  /** The place where the values of an answer are. Throws ReasonError: it has others than were asked for. */
  #valuesIn(frame: Buffer, request: FinsRead): readonly [data: Buffer, start: number] {
    const { items, dataBytes, text } = request;
    if (items) {
      const wrong = takeItems(frame, items.codes, items.sizes, taken);
      if (wrong !== undefined) throw this.#violation(`${wrong} (${text})`);
      return [taken, 0];
    }
    const sent = frame.length - DATA_AT;
    if (sent !== dataBytes) throw this.#violation(`${sent} bytes answered a read of ${dataBytes} (${text})`);
    return [frame, DATA_AT];
  }

  #violation(why: string): ReasonError {
    return new ReasonError("UNKNOWN", `${this.#link.where} broke the protocol: ${why}`, { condition: "protocol_violation" });
  }

  /**
   * A request that is too large for this controller, or for a network on the way. What works is kept.
   * Throws FaultError: the refusal, where size is not what it is about.
   */
  async #readSmaller(request: FinsRead, ctx: DriverContext, { refusal, isUnknown }: TooLarge): Promise<readonly Reading[]> {
    if (this.#isSizeRight) throw refusal;
    for (const sizes of smallerThan(request, this.#limits, isUnknown)) {
      try {
        const readings = await this.#readAsPlanned(request, ctx, { ...this.#limits, ...sizes });
        this.#learn(sizes);
        return readings;
      } catch (error) {
        if (!(error instanceof TooLarge)) throw error;
      }
    }
    this.#isSizeRight = true;
    throw refusal;
  }

  /** The points of a request in as many requests as these limits take, one after the other; a range in ranges. */
  async #readAsPlanned(request: FinsRead, ctx: DriverContext, limits: FinsLimits): Promise<readonly Reading[]> {
    const places = new Map(request.points.map((point, i) => [point, i]));
    const readings: Reading[] = [];
    for (const smaller of plan(request.points, inSameForm(request, limits))) {
      const part = fits(smaller, limits) ? await this.#readPart(smaller, ctx) : await this.#readPieces(smaller, ctx, limits.maxWords);
      for (const [i, point] of smaller.points.entries()) {
        const reading = part[i];
        if (reading) readings[places.get(point) ?? 0] = reading;
      }
    }
    return readings;
  }

  #readPart(request: FinsRead, ctx: DriverContext): Promise<readonly Reading[]> {
    return this.#ask(ctx, request, (frame) => readingsOf(request, ...this.#valuesIn(frame, request)), throwIt);
  }

  /** A value that is longer than one read brings, piece by piece. They are not of one instant; an array is cut between two elements. */
  async #readPieces(request: FinsRead, ctx: DriverContext, maxWords: number): Promise<readonly Reading[]> {
    const { range, dataBytes } = request;
    if (!range) throw new TypeError("items that are too many for one read");
    const elementBytes = dataBytes / range.count;
    const data = Buffer.alloc(dataBytes);
    const isLong = elementBytes > 2;
    const stride = isLong ? 1 : Math.max(1, ...request.points.map(({ address }) => strideOf(address)));
    const fitting = isLong ? Math.max(1, maxWords >> 1) : maxWords;
    const most = stride < fitting ? fitting - (fitting % stride) : fitting;
    for (let from = 0; from < range.count; from += most) {
      const piece = pieceOf(request, range, from, Math.min(most, range.count - from), elementBytes);
      await this.#ask<true>(
        ctx,
        piece,
        (frame) => {
          const [bytes, start] = this.#valuesIn(frame, piece);
          bytes.copy(data, from * elementBytes, start, start + piece.dataBytes);
          return true;
        },
        throwIt,
      );
    }
    return readingsOf(request, data, 0);
  }
}

const nodeText = ({ network, node, unit }: FinsAddress): string => `${network}.${node}.${unit}`;

const NO_CODES = new Uint8Array();
const NO_ADDRESSES = new Uint16Array();

const throwIt = (error: TooLarge): Promise<never> => Promise.reject(error);

/** Limits under which a range becomes ranges, and a list lists: what the other form may have is not known. */
function inSameForm({ range }: FinsRead, limits: FinsLimits): FinsLimits {
  if (range) return { ...limits, maxItems: 0, maxBytes: limits.maxWords * 2 };
  if (limits.maxItems > 0) return { ...limits, maxGap: 0, maxBytes: limits.maxWords * 2 };
  const maxWords = Math.min(limits.maxWords, SAFE_WORDS);
  return { ...limits, maxWords, maxBytes: maxWords * 2 };
}

const fits = (request: FinsRead, { maxWords, maxItems }: Sizes): boolean =>
  request.range ? sizeOf(request) <= maxWords : (request.items?.codes.length ?? 0) <= maxItems;

/** Words of a range, in which a flag counts as one; the smallest piece of registers is one register. */
const sizeOf = ({ range, dataBytes }: FinsRead): number => (range && range.count > 1 ? Math.max(range.count, dataBytes >> 1) : 1);

/** What is tried where a request was too large: less of what it asks for. */
function* smallerThan(request: FinsRead, { maxWords: most, maxItems: mostItems }: Sizes, isUnknown: boolean): Generator<Partial<Sizes>> {
  const { range, items } = request;
  if (range) for (const maxWords of WORD_STEPS) if (maxWords < Math.min(sizeOf(request), most)) yield { maxWords };
  const count = Math.min(items?.codes.length ?? 0, mostItems);
  for (const maxItems of isUnknown ? [0] : ITEM_STEPS) if (maxItems < count) yield { maxItems };
}

function pieceOf(request: FinsRead, { code, address }: WireRange, from: number, count: number, elementBytes: number): FinsRead {
  const range = { code, address: address + from, count };
  const text = `${request.text}, ${count} from the ${from + 1}th on (${hexCode(range.address)})`;
  return { ...request, points: [], range, text, dataBytes: count * elementBytes, decoders: [], offsets: new Int32Array() };
}
