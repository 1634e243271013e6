import type { ReasonError } from "../../model/reason.ts";
import type { LinkWindow } from "../lib/link-window.ts";
import type { PublishRate } from "../lib/publish-rate.ts";
import type { RefusalType } from "./refusal.ts";
import { type Sent, UnderWay } from "./under-way.ts";

/** The broker's answer to one publish, over a connection that stays open. */
export type PublishOutcome =
  | { readonly type: "accepted" }
  /** `detail`: the broker's words. */
  | { readonly type: RefusalType; readonly detail: string };

/** Properties of one publish, by name (MQTT 5.0, 3.3.2.3.7). */
export type UserProperties = Readonly<Record<string, string>>;

export interface Publish {
  readonly topic: string;
  readonly payload: string | Buffer;
  readonly retain: boolean;
  /** `retain` where it is sent again: newer ones may have been sent meanwhile. Absent: as before. */
  readonly retainAgain?: (() => boolean) | undefined;
  /** They do not go to a broker of MQTT 3.1.1. */
  readonly userProperties?: UserProperties | undefined;
  /** Media type of the payload (MQTT 5.0, 3.3.2.3.9); it does not go to a broker of MQTT 3.1.1. */
  readonly contentType?: string | undefined;
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

/** An answer. over_quota: it took none of it, for what it has taken before (MQTT 5.0, 3.4.2.1, 151). */
export type PublishAnswer = PublishOutcome | { readonly type: "over_quota"; readonly detail: string };

export interface PublishQueueOptions {
  /** Publishes under way at once, from 1. */
  readonly size: number;
  /** Publishes without an answer that the broker allows (MQTT 5.0, 3.2.2.3.3), from `size`. */
  readonly receiveMaximum: number;
  /** Outlasts the queue. */
  readonly window: LinkWindow;
  /** Outlasts the queue. */
  readonly rate: PublishRate;
  /** From the last progress, which is the acknowledgement of what was sent before, to that of the next. */
  readonly timeoutMs: number;
  /** Hands a publish to the connection; `settle` is called once the broker has answered. `isAgain`: what was sent before counts as lost. */
  readonly send: (publish: Publish, isAgain: boolean, settle: (answer: PublishAnswer) => void) => void;
  /** True: the broker acknowledges it. What it does not is never sent again over this connection. */
  readonly isConfirmed: (publish: Publish) => boolean;
  /** The broker has acknowledged nothing for so long. */
  readonly overdue: (ms: number) => void;
  /** The broker refuses each publish for its quota, or one of them each time (`isOne`). */
  readonly refusing: (detail: string, isOne: boolean) => void;
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
/** A deadline is longer by 1 ms for each byte over an unmeasured link, which may carry 8 kbit/s; by this much at most. */
const MOST_ALLOWANCE_MS = 120_000;
/** Answers that came while this thread did not run are read before a deadline ends anything. */
const READ_MS = 50;
/** While publishes are under way, how often it is looked for those that get no answer. */
const LOOK_MS = 1000;
/** Without any answer for so long the first is sent again, alone: it shows whether the broker answers and has dropped what came before. */
const REPEAT_MS = 2000;
const MOST_REPEAT_MS = 60_000;
/** Dropped sends over one connection beyond those that may be under way: each is kept in memory for an answer that may still come. */
const SPARE_SENDS = 256;
/** One publish that gets no answer so often, or is over the quota so often, while others are accepted, is at fault itself. */
const MOST_SENDS = { unanswered: 3, overQuota: 10 } as const;

/**
 * The publishes of one connection: as many under way as the broker and the link take, no faster than the broker accepts them, the newer data
 * first, with the feeds of each kind in turn. What the broker drops for its rate, with or without a word, is sent again over this connection.
 * Its one deadline is about the first of those under way: acknowledgements come in the order of the publishes (MQTT 5.0, 4.6).
 */
export class PublishQueue {
  readonly #options: PublishQueueOptions;
  readonly #newer = new Line(true);
  /** What of a batch has come when the connection is lost comes twice: they are sent one after the other. */
  readonly #older = new Line(false);
  readonly #underWay = new UnderWay();
  /** Sends that the broker allows without an answer, those that it dropped among them. */
  readonly #mostUnanswered: number;
  /** Those that the broker dropped, to be sent before all others. */
  readonly #again: Sent[] = [];
  /** Sends without an answer, which may still be counted by the broker. */
  #unanswered = 0;
  /** Bytes of older data that are due beside the newer that were sent while they waited. */
  #olderCredit = 0;
  #olderUnderWay = 0;
  #newerInARow = 0;
  /** The link would take more than the broker does, at once or a second. */
  #isShortOfPublishes = false;
  /** Since when the first of those under way is the first. */
  #progressMs = 0;
  #answeredMs = 0;
  /** Undefined: the broker has accepted something since it was over its quota last. */
  #overQuotaSinceMs: number | undefined;
  /** Grows where an answer was only late. */
  #repeatMs = REPEAT_MS;
  #timer: NodeJS.Timeout | undefined;
  /** Until the rate allows the next publish. */
  #pacing: NodeJS.Timeout | undefined;
  #overdue: Publish | undefined;
  #isSending = false;
  #failure: ReasonError | undefined;

  constructor(options: PublishQueueOptions) {
    this.#options = options;
    this.#mostUnanswered = Math.min(options.receiveMaximum, options.size + SPARE_SENDS);
    options.rate.opened(performance.now());
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
    return this.#underWay.size + this.#again.length === 0 && this.#newer.isEmpty() && this.#older.isEmpty();
  }

  /** The connection is lost: all that is not answered fails. True: this is the first failure, so its reason is the one that holds. */
  fail(reason: ReasonError): boolean {
    if (this.#failure) return false;
    this.#failure = reason;
    clearTimeout(this.#timer);
    clearTimeout(this.#pacing);
    const first = this.#underWay.first();
    if (first && reason.reason.type === "TIMEOUT")
      this.#options.window.timedOut(bytesOf(first.publish), performance.now() - this.#progressMs);
    const sent = [...this.#underWay.takeAll(), ...this.#again.splice(0)].map(({ publish }) => publish);
    for (const one of [...sent, ...this.#newer.takeAll(), ...this.#older.takeAll()]) one.fail(reason);
    return true;
  }

  /** Not from within itself: what is made or sent may add to the queue. */
  #sendNext(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    while (!this.#failure) {
      const line = this.#nextLine();
      if (line.isEmpty() && this.#again.length === 0) break;
      const nowMs = performance.now();
      if (!this.#hasRoom(nowMs)) break;
      const again = this.#again.shift();
      if (again) {
        this.#send(again.publish, again.isOlder, nowMs, again.sends + 1);
        continue;
      }
      const publish = line.make();
      if (publish) this.#send(publish, line === this.#older, nowMs);
    }
    this.#isSending = false;
  }

  #hasRoom(nowMs: number): boolean {
    const { window, rate, size } = this.#options;
    const hasRoom = window.hasRoom();
    if (!hasRoom) window.waits(nowMs);
    const most = Math.max(1, Math.min(size, this.#mostUnanswered - this.#unanswered));
    const waitMs = hasRoom && this.#underWay.size < most ? rate.waitMs(nowMs) : 0;
    this.#isShortOfPublishes = hasRoom && (this.#underWay.size >= most || waitMs > 0);
    if (waitMs > 0) this.#pacing ??= setTimeout(() => this.#paced(), Math.ceil(waitMs));
    return hasRoom && !this.#isShortOfPublishes;
  }

  #paced(): void {
    this.#pacing = undefined;
    this.#sendNext();
  }

  #nextLine(): Line {
    if (this.#newer.isEmpty() || this.#older.isEmpty()) this.#olderCredit = 0;
    if (this.#newer.isEmpty()) return this.#older;
    // Small messages leave most of the link to one large one.
    const hasPublish = this.#isShortOfPublishes && this.#olderUnderWay === 0 && this.#newerInARow >= NEWER_RUN;
    return (this.#olderCredit > 0 || hasPublish) && !this.#older.isEmpty() ? this.#older : this.#newer;
  }

  #send(publish: Publish, isOlder: boolean, nowMs: number, sends = 1, repeatsMs?: number): void {
    const { window, rate, send } = this.#options;
    const bytes = bytesOf(publish);
    if (sends === 1) {
      this.#olderCredit += isOlder ? -bytes : bytes / NEWER_RUN;
      this.#newerInARow = isOlder ? 0 : this.#newerInARow + 1;
      if (this.#underWay.size === 0) this.#progressMs = nowMs;
    }
    if (isOlder) this.#olderUnderWay++;
    this.#underWay.add({ publish, flight: window.sent(bytes, nowMs), isOlder, sends, repeatsMs });
    rate.sent(nowMs);
    this.#timer ??= this.#setTimer(this.#deadlineMs(publish));
    send(publish, sends > 1, (answer) => this.#settle(publish, sends, answer));
  }

  #settle(publish: Publish, sends: number, answer: PublishAnswer): void {
    const nowMs = performance.now();
    const isFirst = this.#underWay.first()?.publish === publish;
    const sent = this.#underWay.answered(publish, sends, nowMs) ?? this.#takeAgain(publish);
    if (!sent) return;
    if (isFirst) this.#progressMs = nowMs;
    this.#answeredMs = nowMs;
    this.#gone(sent, (flight) => this.#options.window.acknowledged(flight, nowMs));
    if (answer.type === "over_quota") this.#overQuota(sent, answer.detail, nowMs);
    else {
      this.#overQuotaSinceMs = undefined;
      if (sent.sends > sends) this.#wasLate();
      else if (sent.repeatsMs !== undefined) this.#options.rate.exceeded(sent.repeatsMs, nowMs, true);
      this.#options.rate.accepted(nowMs);
      publish.done(answer);
    }
    this.#sendNext();
  }

  /** Late, of one that waits to be sent again. */
  #takeAgain(publish: Publish): Sent | undefined {
    const place = this.#again.findIndex((one) => one.publish === publish);
    const [sent] = place === -1 ? [] : this.#again.splice(place, 1);
    return sent && { ...sent, sends: sent.sends + 1, isOlder: false, flight: { ...sent.flight, bytes: 0 } };
  }

  #gone({ flight, isOlder }: Sent, byWindow: (flight: Sent["flight"]) => void): void {
    if (isOlder) this.#olderUnderWay--;
    byWindow(flight);
  }

  #overQuota(sent: Sent, detail: string, nowMs: number): void {
    const { rate, refusing, timeoutMs } = this.#options;
    this.#overQuotaSinceMs ??= nowMs;
    rate.exceeded(sent.flight.sentMs, nowMs);
    this.#again.push(sent);
    if (nowMs - this.#overQuotaSinceMs >= timeoutMs) refusing(detail, false);
    else if (sent.sends >= MOST_SENDS.overQuota) refusing(detail, true);
  }

  /** The broker had dropped nothing. */
  #wasLate(): void {
    this.#unanswered = Math.max(0, this.#unanswered - 1);
    this.#repeatMs = Math.min(MOST_REPEAT_MS, this.#repeatMs * 2);
    this.#options.rate.undo();
  }

  #deadlineMs(publish: Publish): number {
    const bytes = bytesOf(publish);
    return this.#options.timeoutMs + Math.min(MOST_ALLOWANCE_MS, this.#options.window.allowanceMs(bytes) ?? bytes);
  }

  #setTimer(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#look(), Math.min(ms, LOOK_MS));
  }

  #look(): void {
    this.#timer = undefined;
    const nowMs = performance.now();
    this.#sendMissing(nowMs);
    const first = this.#failure ? undefined : this.#underWay.first();
    if (!first) return;
    const restMs = this.#progressMs + this.#deadlineMs(first.publish) - nowMs;
    if (restMs > 0) {
      this.#repeat(first, nowMs);
      this.#timer ??= this.#setTimer(Math.ceil(restMs));
    } else if (this.#overdue !== first.publish) {
      this.#overdue = first.publish;
      this.#timer ??= this.#setTimer(READ_MS);
    } else this.#options.overdue(Math.round(nowMs - this.#progressMs));
  }

  /** Sends again what the broker has passed over. */
  #sendMissing(nowMs: number): void {
    const missing = this.#underWay.takeMissing(nowMs, this.#options.isConfirmed);
    const [first] = missing;
    if (!first) return;
    const { rate, window, overdue } = this.#options;
    for (const one of missing) this.#gone(one, (flight) => window.gone(flight));
    this.#again.push(...missing);
    this.#unanswered += missing.length;
    const isAtFault = missing.some(({ sends }) => sends >= MOST_SENDS.unanswered);
    if (isAtFault) rate.undo();
    else for (const { flight } of missing) rate.exceeded(flight.sentMs, nowMs);
    // A new connection has all its publishes again.
    if (isAtFault || this.#unanswered >= this.#mostUnanswered) overdue(Math.round(nowMs - first.flight.sentMs));
    else {
      this.#progressMs = nowMs;
      this.#sendNext();
    }
  }

  /** Sends the first again where the broker has answered nothing for long, and the link is not the reason. */
  #repeat(first: Sent, nowMs: number): void {
    const { window } = this.#options;
    if (
      nowMs - Math.max(first.flight.sentMs, this.#answeredMs) < this.#repeatMs ||
      this.#unanswered + 1 + this.#underWay.size > this.#mostUnanswered
    )
      return;
    if (
      !this.#options.isConfirmed(first.publish) ||
      this.#underWay.isRepeating() ||
      window.underWayBytes() > window.provedBytesIn(this.#repeatMs)
    )
      return;
    this.#underWay.take(first.publish);
    this.#gone(first, (flight) => window.gone(flight));
    this.#unanswered++;
    this.#send(first.publish, first.isOlder, nowMs, first.sends + 1, first.flight.sentMs);
  }
}

const bytesOf = ({ topic, payload }: Publish): number =>
  topic.length + (typeof payload === "string" ? Buffer.byteLength(payload) : payload.length) + OVERHEAD_BYTES;
