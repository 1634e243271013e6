import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { FromPage, SourceLook, ToPage } from "./messages.ts";
import { keyOf, PageState } from "./page-state.ts";
import { keyOfAddress, lookFor, type PageAddress, pageOf, viewOf } from "./pages.ts";
import { GONE } from "./parts.ts";
import type { Page } from "./shell.ts";
import type { ToldLogEvent } from "./told.ts";
import { LiveView, type View } from "./view.ts";
import { Viewers } from "./viewers.ts";

/** The service is asked for its state so often while somebody looks. */
const ASK_EVERY_MS = 1000;
/** As ASK_EVERY_MS while nobody does: the ledgers in hours go on. */
const IDLE_EVERY_MS = 60_000;
/** Between two asks, where the second is for one source in detail alone. */
const LOOK_AFTER_MS = 250;
/** An ask that has no answer by then will have none. */
const LOST_AFTER_MS = 10_000;
/** Whoever loads a page waits for a state of now so long; then it gets the one that there is. */
const FRESH_WITHIN_MS = 1500;
/** Looks at sources in one ask. */
const MAX_LOOKS = 32;
/** Pages that load at once; a page beyond shows what is known of it. */
const MAX_WANTED = 128;
/** Pages that are kept for viewers who come back to them. */
const MAX_PAGES = 64;

export interface LivePagesOptions {
  readonly post: (message: FromPage) => void;
  /** Epoch ms: the time that pages show. What is asked when does not hang on a clock that is set. */
  readonly now?: () => number;
}

/** Monotonic ms. */
const upMs = (): number => performance.now();

interface KeptPage {
  readonly address: PageAddress;
  readonly live: LiveView;
}

/** The pages as they are now: asks the service for its state, at most once a second for all, and sends what has changed to who looks. */
export class LivePages {
  readonly #post: LivePagesOptions["post"];
  readonly #now: () => number;
  readonly state = new PageState();
  readonly viewers = new Viewers();
  /** Versions of another life of this thread are none of this one. */
  readonly #epoch = randomBytes(6).toString("base64url");
  #version = 1;
  /** By the key of their address. */
  readonly #pages = new Map<string, KeptPage>();
  /** Looks that loading pages need. */
  readonly #wanted = new Map<string, SourceLook>();
  /** Loads that wait for an answer, each for the one to this ask or a later one. */
  #waiting: { readonly ask: number; done(): void }[] = [];
  #inFlight: { readonly id: number; readonly at: number; readonly isAll: boolean } | undefined;
  /** Monotonic ms, like all times here. */
  #askedAt = Number.NEGATIVE_INFINITY;
  /** When all was asked for last, and not one source or the head alone. */
  #askedAllAt = Number.NEGATIVE_INFINITY;
  #nextAsk = 1;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor({ post, now = Date.now }: LivePagesOptions) {
    this.#post = post;
    this.#now = now;
    this.#ask();
  }

  take(message: Exclude<ToPage, { type: "listen" | "stop" | "reply" }>): void {
    if (message.type === "sources") {
      this.state.takeSources(message);
      return;
    }
    this.state.takeAnswer(message, upMs());
    if (this.#inFlight?.id === message.id) this.#inFlight = undefined;
    const answered = this.#waiting.filter(({ ask }) => ask <= message.id);
    this.#waiting = this.#waiting.filter(({ ask }) => ask > message.id);
    for (const { done } of answered) done();
    this.#send();
    this.#schedule();
  }

  /** Asks the service where what is known is old, or is too little for a page. */
  async refresh(address?: PageAddress): Promise<void> {
    const look = address && lookFor(address, this.state, upMs());
    const isKnown = look === undefined || this.state.detail(look) !== undefined;
    const isOld = !this.state.head || upMs() - this.#askedAllAt >= ASK_EVERY_MS;
    if (!isKnown || isOld) await this.#fresh(isKnown ? undefined : look);
  }

  /** The page without scripts as it is known; undefined: there is none. `events`: about its source, the newest first. */
  page(address: PageAddress, events?: readonly ToldLogEvent[]): Page | undefined {
    return pageOf(address, this.state, this.#now(), events);
  }

  /** Keeps the page of a viewer as it is now, also one that there is not, or not yet. `version`: the last one that was sent, or empty. */
  watch(address: PageAddress, version: string, response: ServerResponse, isAdmitted: () => boolean): void {
    this.#keep(address);
    const [epoch, number] = version.split(".");
    const seen = epoch === this.#epoch ? Number(number) || 0 : 0;
    this.viewers.add({ response, page: keyOfAddress(address), seen, isAdmitted });
    this.#send();
    this.#schedule();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const { done } of this.#waiting) done();
    this.#waiting = [];
    this.viewers.close();
  }

  #keep(address: PageAddress): void {
    const key = keyOfAddress(address);
    if (this.#pages.has(key)) return;
    this.#pages.set(key, { address, live: new LiveView(this.#viewOf(address), ++this.#version) });
    this.#forget();
  }

  #viewOf(address: PageAddress): View {
    return viewOf(address, this.state, this.#now()) ?? GONE;
  }

  /** The oldest that nobody watches. */
  #forget(): void {
    const watched = this.viewers.pages;
    for (const key of this.#pages.keys()) {
      if (this.#pages.size <= MAX_PAGES) return;
      if (!watched.has(key)) this.#pages.delete(key);
    }
  }

  #send(): void {
    for (const key of this.viewers.pages) {
      const page = this.#pages.get(key);
      page?.live.take(this.#viewOf(page.address), ++this.#version);
    }
    this.viewers.send((key) => this.#pages.get(key)?.live, this.#epoch, this.#now());
  }

  #fresh(look: SourceLook | undefined): Promise<void> {
    if (look && this.#wanted.size < MAX_WANTED) this.#wanted.set(keyOf(look), look);
    return new Promise((settle) => {
      const waiter = {
        ask: this.#inFlight?.isAll && !look ? this.#inFlight.id : this.#nextAsk,
        done: () => {
          clearTimeout(timer);
          settle();
        },
      };
      const timer = setTimeout(() => {
        this.#waiting = this.#waiting.filter((one) => one !== waiter);
        settle();
      }, FRESH_WITHIN_MS);
      this.#waiting.push(waiter);
      this.#schedule();
    });
  }

  /** One ask at a time: a service that is busy is not asked twice. */
  #schedule(): void {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    const nowMs = upMs();
    const next = this.#inFlight ? this.#inFlight.at + LOST_AFTER_MS : this.#nextAskAt();
    this.#timer = setTimeout(() => this.#ask(), Math.max(0, next - nowMs));
  }

  get #isWatched(): boolean {
    return this.viewers.count > 0 || this.#waiting.length > 0;
  }

  #nextAskAt(): number {
    const regular = this.#isWatched ? this.#askedAllAt + ASK_EVERY_MS : this.#askedAt + IDLE_EVERY_MS;
    return this.#wanted.size > 0 ? Math.min(regular, this.#askedAt + LOOK_AFTER_MS) : regular;
  }

  #ask(): void {
    const nowMs = upMs();
    const isAll = (this.#isWatched || !this.state.head) && nowMs - this.#askedAllAt >= ASK_EVERY_MS;
    const looks = new Map([...this.#wanted].slice(0, MAX_LOOKS));
    for (const key of looks.keys()) this.#wanted.delete(key);
    const scope = isAll ? "all" : looks.size > 0 ? "looks" : "head";
    for (const key of isAll ? this.viewers.pages : []) {
      const page = this.#pages.get(key);
      const look = page && lookFor(page.address, this.state, nowMs);
      if (look && looks.size < MAX_LOOKS) looks.set(keyOf(look), look);
    }
    const id = this.#nextAsk++;
    this.#inFlight = { id, at: nowMs, isAll };
    this.#askedAt = nowMs;
    if (isAll) this.#askedAllAt = nowMs;
    this.#post({ type: "ask", id, scope, looks: [...looks.values()] });
    this.#schedule();
  }
}
