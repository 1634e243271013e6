import type { ReasonError } from "../../model/reason.ts";
import type { Flight, LinkWindow } from "../lib/link-window.ts";
import type { RefusalType } from "./refusal.ts";

/** What the broker says of one publish; the connection goes on. */
export type PublishOutcome =
  | { readonly type: "accepted" }
  /** `detail`: the broker's words. */
  | { readonly type: RefusalType; readonly detail: string };

/** Of one publish, by name (MQTT 5.0, 3.3.2.3.7). */
export type UserProperties = Readonly<Record<string, string>>;

export interface Publish {
  readonly topic: string;
  readonly payload: string | Buffer;
  readonly retain: boolean;
  /** They do not go to a broker of MQTT 3.1.1. */
  readonly userProperties?: UserProperties | undefined;
  /** Absent: 1, where the broker takes that. */
  readonly qos?: 0 | 1 | undefined;
  readonly done: (outcome: PublishOutcome) => void;
  /** The connection is lost before it is answered. */
  readonly fail: (reason: ReasonError) => void;
}

/** Publishes that are made one by one, when the link has room: how large they may be shows in those before. */
export interface Feed {
  /** Those of one key (a source) are published one after the other, those of several by turns. */
  readonly key: string;
  /** Older data: what is newer overtakes it. */
  readonly isOlder: boolean;
  /** The next publish, and whether it is the last; undefined: there was none left. What it throws ends the feed. */
  make(): { readonly publish: Publish; readonly isLast: boolean } | undefined;
  /** The feed has ended before its last publish: the connection is lost, or `make` threw. */
  fail(error: unknown): void;
}

export interface PublishQueueOptions {
  /** Publishes under way at once, from 1. */
  readonly size: number;
  /** Of the link; outlasts the queue. */
  readonly window: LinkWindow;
  /** From the last progress, which is the acknowledgement of what was sent before, to that of the next. */
  readonly timeoutMs: number;
  /** Hands a publish to the connection; `settle` is called once the broker has answered. */
  readonly send: (publish: Publish, settle: (outcome: PublishOutcome) => void) => void;
  /** The broker has acknowledged nothing for so long. */
  readonly overdue: (ms: number) => void;
}

/** Feeds that wait: those of one key in order, the keys by turns. */
class Line {
  readonly #feeds = new Map<string, Feed[]>();
  readonly #hasTurns: boolean;

  /** `hasTurns` false: all in order, so that no more than one of them has begun and not ended. */
  constructor(hasTurns: boolean) {
    this.#hasTurns = hasTurns;
  }

  isEmpty(): boolean {
    return this.#feeds.size === 0;
  }

  add(feed: Feed): void {
    const key = this.#hasTurns ? feed.key : "";
    const before = this.#feeds.get(key);
    if (before) before.push(feed);
    else this.#feeds.set(key, [feed]);
  }

  /** The next publish, if the next feed has one. */
  make(): Publish | undefined {
    const [key, feeds] = this.#feeds.entries().next().value ?? ["", []];
    const [feed] = feeds;
    if (!feed) return undefined;
    let made: ReturnType<Feed["make"]>;
    try {
      made = feed.make();
    } catch (error) {
      feed.fail(error);
    }
    if (!made || made.isLast) feeds.shift();
    // Deleted first: a Map keeps the place of a key that is set again.
    this.#feeds.delete(key);
    if (feeds.length > 0) this.#feeds.set(key, feeds);
    return made?.publish;
  }

  takeAll(): readonly Feed[] {
    const all = [...this.#feeds.values()].flat();
    this.#feeds.clear();
    return all;
  }
}

/** Fixed header, packet identifier and properties of a PUBLISH. */
const OVERHEAD_BYTES = 8;
/** For so many bytes of newer data, as many as one of them are older; so it is with publishes where those are what there is too few of. */
const NEWER_RUN = 3;
/** What an unmeasured link may need, a thousandth of a second for each byte: 8 kbit/s. At most this much is added to a deadline. */
const MOST_ALLOWANCE_MS = 120_000;
/** What came while this thread did not run is read before a deadline ends anything. */
const READ_MS = 50;

/**
 * The publishes of one connection: as many under way as the broker and the link take, the newer data first, with the feeds of each kind in
 * turn. It has one timer: acknowledgements come in the order of the publishes (MQTT 5.0, 4.6), so the deadline is about the first of those
 * under way.
 */
export class PublishQueue {
  readonly #options: PublishQueueOptions;
  readonly #newer = new Line(true);
  /** What of a batch has come when the connection is lost comes twice: they are sent one after the other. */
  readonly #older = new Line(false);
  /** In the order in which they were sent. */
  readonly #underWay = new Map<Publish, { readonly flight: Flight; readonly isOlder: boolean }>();
  /** Bytes of older data that are due beside the newer that were sent while they waited. */
  #olderCredit = 0;
  #olderUnderWay = 0;
  #newerInARow = 0;
  /** The link would take more than the broker does at once. */
  #isShortOfPublishes = false;
  /** Since when the first of those under way is the first. */
  #progressMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #overdue: Publish | undefined;
  #isSending = false;
  #failure: ReasonError | undefined;

  constructor(options: PublishQueueOptions) {
    this.#options = options;
  }

  add(feed: Feed): void {
    if (this.#failure) {
      feed.fail(this.#failure);
      return;
    }
    (feed.isOlder ? this.#older : this.#newer).add(feed);
    this.#sendNext();
  }

  failure(): ReasonError | undefined {
    return this.#failure;
  }

  isIdle(): boolean {
    return this.#underWay.size === 0 && this.#newer.isEmpty() && this.#older.isEmpty();
  }

  /** The connection is lost: all that is not answered fails. True: this is the first failure, so its reason is the one that holds. */
  fail(reason: ReasonError): boolean {
    if (this.#failure) return false;
    this.#failure = reason;
    clearTimeout(this.#timer);
    const first = this.#first();
    if (first && reason.reason.type === "TIMEOUT") this.#options.window.timedOut(bytesOf(first), performance.now() - this.#progressMs);
    for (const one of [...this.#underWay.keys(), ...this.#newer.takeAll(), ...this.#older.takeAll()]) one.fail(reason);
    this.#underWay.clear();
    return true;
  }

  /** Not from within itself: what is made or sent may add to the queue. */
  #sendNext(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    while (!this.#failure) {
      const line = this.#nextLine();
      if (line.isEmpty()) break;
      const nowMs = performance.now();
      const hasRoom = this.#options.window.hasRoom();
      this.#isShortOfPublishes = hasRoom && this.#underWay.size >= this.#options.size;
      if (!hasRoom) this.#options.window.waits(nowMs);
      if (!hasRoom || this.#isShortOfPublishes) break;
      const publish = line.make();
      if (publish) this.#send(publish, line === this.#older, nowMs);
    }
    this.#isSending = false;
  }

  #nextLine(): Line {
    if (this.#newer.isEmpty() || this.#older.isEmpty()) this.#olderCredit = 0;
    if (this.#newer.isEmpty()) return this.#older;
    // Small messages leave most of the link to one large one.
    const hasPublish = this.#isShortOfPublishes && this.#olderUnderWay === 0 && this.#newerInARow >= NEWER_RUN;
    return (this.#olderCredit > 0 || hasPublish) && !this.#older.isEmpty() ? this.#older : this.#newer;
  }

  #send(publish: Publish, isOlder: boolean, nowMs: number): void {
    const { window, send } = this.#options;
    const bytes = bytesOf(publish);
    this.#olderCredit += isOlder ? -bytes : bytes / NEWER_RUN;
    this.#newerInARow = isOlder ? 0 : this.#newerInARow + 1;
    if (isOlder) this.#olderUnderWay++;
    if (this.#underWay.size === 0) this.#progressMs = nowMs;
    this.#underWay.set(publish, { flight: window.sent(bytes, nowMs), isOlder });
    this.#timer ??= this.#setTimer(this.#deadlineMs(publish));
    send(publish, (outcome) => this.#settle(publish, outcome));
  }

  #settle(publish: Publish, outcome: PublishOutcome): void {
    const sent = this.#underWay.get(publish);
    if (!sent) return;
    const nowMs = performance.now();
    if (this.#first() === publish) this.#progressMs = nowMs;
    this.#underWay.delete(publish);
    if (sent.isOlder) this.#olderUnderWay--;
    this.#options.window.acknowledged(sent.flight, nowMs);
    publish.done(outcome);
    this.#sendNext();
  }

  #first(): Publish | undefined {
    return this.#underWay.keys().next().value;
  }

  #deadlineMs(publish: Publish): number {
    const bytes = bytesOf(publish);
    return this.#options.timeoutMs + Math.min(MOST_ALLOWANCE_MS, this.#options.window.allowanceMs(bytes) ?? bytes);
  }

  #setTimer(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#look(), ms);
  }

  #look(): void {
    this.#timer = undefined;
    const first = this.#first();
    if (!first) return;
    const restMs = this.#progressMs + this.#deadlineMs(first) - performance.now();
    if (restMs > 0) this.#timer = this.#setTimer(Math.ceil(restMs));
    else if (this.#overdue !== first) {
      this.#overdue = first;
      this.#timer = this.#setTimer(READ_MS);
    } else this.#options.overdue(Math.round(performance.now() - this.#progressMs));
  }
}

const bytesOf = ({ topic, payload }: Publish): number =>
  topic.length + (typeof payload === "string" ? Buffer.byteLength(payload) : payload.length) + OVERHEAD_BYTES;
