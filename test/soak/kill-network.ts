import { setTimeout as wait } from "node:timers/promises";
import type { AckFault } from "../support/ack-proxy.ts";
import { type AckProxy, startAckProxy } from "../support/ack-proxy.ts";
import { type FrontFault, type PostedBatch, startPlatform, type TestPlatform } from "../support/platform.ts";
import { type Publish, type Refusal, type RefusingBroker, startRefusingBroker } from "../support/refusing-broker.ts";
import { type SlowLink, startSlowLink } from "../support/slow-link.ts";
import { type FaultKind, SOURCE_NAMES } from "./kill-plan.ts";

/** How often something went wrong between the collector and who receives its values. */
export interface NetworkCounts {
  /** Publishes and requests with values that were refused, but for their size. */
  readonly refusals: number;
  /** Such as were refused as too large. */
  readonly tooLarge: number;
  /** Publishes that the broker acknowledged as one of 3.1.1 and did not take: what they held and did not come again is lost. */
  readonly swallowed: number;
  /** Acknowledgements and answers that the collector never got. */
  readonly acknowledgementsDropped: number;
  readonly resets: number;
  readonly linkChanges: number;
  readonly outages: number;
}

export interface Receiver {
  published(publish: Publish): void;
  /** A batch that the platform took, and not as a duplicate. */
  posted(batch: PostedBatch): void;
}

/** Of so many publishes the trouble of one topic lasts. */
const SPELL = 12;
/** Above it, 149 is an honest answer: below it a single value may be in the message. */
const LARGE_BYTES = 600;
const REFUSED: readonly Refusal[] = [128, 131, 135].map((code) => ({ how: "puback", code }));
const TOO_LARGE: Refusal = { how: "puback", code: 149 };
const TICK_MS = 50;
/** Within it what was begun is answered, or another one comes. */
const SETTLE_MS = 150;
/** No link at all; what a small box has in a cabinet; GPRS; a satellite. */
const LINKS = [
  { bytesPerS: 50_000_000, roundTripMs: 0 },
  { bytesPerS: 50_000_000, roundTripMs: 0 },
  { bytesPerS: 100_000, roundTripMs: 60 },
  { bytesPerS: 40_000, roundTripMs: 600 },
  { bytesPerS: 8000, roundTripMs: 0 },
  { bytesPerS: 1000, roundTripMs: 100 },
] as const;
const WELL = LINKS[0];

/** A broker and a platform, the ways to them, and what goes wrong on these by chance. */
export class Network {
  readonly #random: () => number;
  readonly #spells = new Map<string, { refusal: Refusal | undefined; left: number }>();
  readonly #counts = { refusals: 0, tooLarge: 0, answersLost: 0, cuts: 0, linkChanges: 0, outages: 0 };
  #active: ReadonlySet<FaultKind> = new Set();
  #broker: RefusingBroker | undefined;
  #proxy: AckProxy | undefined;
  #platform: TestPlatform | undefined;
  #links: readonly SlowLink[] = [];
  #ticks: NodeJS.Timeout | undefined;
  #isAway = false;
  #attempts = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** `hasLinks`: what is sent goes over links that may be slow. */
  async start(receiver: Receiver, hasLinks: boolean): Promise<void> {
    this.#broker = await startRefusingBroker(
      "both",
      (publish) => this.#refuse(publish),
      (publish) => receiver.published(publish),
    );
    this.#platform = await startPlatform({
      sources: SOURCE_NAMES,
      fault: ({ bytes }) => this.#front(bytes),
      onTaken: (batch) => receiver.posted(batch),
    });
    const platformPort = Number(new URL(this.#platform.url).port);
    const options = { ...WELL, bufferBytes: 2 ** 20 };
    if (hasLinks) this.#links = [await startSlowLink(this.#broker.port, options), await startSlowLink(platformPort, options)];
    this.#proxy = await startAckProxy(this.#links[0]?.port ?? this.#broker.port, () => this.#ack(), {
      resetsConnect: () => this.#active.has("connect") && this.#random() < 0.3,
    });
  }

  get brokerPort(): number {
    return this.#proxy?.port ?? 0;
  }

  get platform(): { readonly url: string; readonly keyFile: string; readonly sources: readonly string[] } {
    const { url = "", keyFile = "", sources = [] } = this.#platform ?? {};
    const [, link] = this.#links;
    return { url: link ? `http://127.0.0.1:${link.port}` : url, keyFile, sources };
  }

  /** Publishes and requests that have come so far. */
  get attempts(): number {
    return this.#attempts;
  }

  get counts(): NetworkCounts {
    const { refusals, tooLarge, answersLost, cuts, linkChanges, outages } = this.#counts;
    const [dropped, resets] = [this.#proxy?.dropped() ?? 0, this.#proxy?.resets() ?? 0];
    const swallowed = this.#broker?.swallowed() ?? 0;
    return { refusals, tooLarge, swallowed, acknowledgementsDropped: dropped + answersLost, resets: resets + cuts, linkChanges, outages };
  }

  /** For one life. `isAway`: neither end is there until it is well. */
  begin(active: ReadonlySet<FaultKind>, isAway: boolean): void {
    this.#active = active;
    this.#spells.clear();
    this.#setAway(isAway);
    this.#changeLinks();
    this.#ticks = setInterval(() => this.#tick(isAway), TICK_MS);
  }

  /** All is well, until the next `begin`. */
  clear(): void {
    clearInterval(this.#ticks);
    this.#active = new Set();
    this.#setAway(false);
    for (const link of this.#links) Object.assign(link, WELL);
  }

  /** After a life: nothing of it is under way any more. */
  async settle(): Promise<void> {
    this.clear();
    this.#proxy?.away(true);
    this.#platform?.away(true);
    for (const link of this.#links) link.reset();
    for (let before = -1; before !== this.#attempts || this.#platform?.underWay() !== 0; await wait(SETTLE_MS)) before = this.#attempts;
    this.#proxy?.away(false);
    this.#platform?.away(false);
  }

  async stop(): Promise<void> {
    this.clear();
    await this.#proxy?.stop();
    for (const link of this.#links) await link.stop();
    await this.#broker?.stop();
    await this.#platform?.stop();
  }

  #tick(staysAway: boolean): void {
    if (this.#random() < 0.05) this.#changeLinks();
    if (!this.#active.has("away") || staysAway) return;
    if (this.#random() < (this.#isAway ? 0.2 : 0.04)) this.#setAway(!this.#isAway);
  }

  #setAway(on: boolean): void {
    if (on === this.#isAway) return;
    if (on) this.#counts.outages++;
    this.#isAway = on;
    this.#proxy?.away(on);
    this.#platform?.away(on);
  }

  #changeLinks(): void {
    if (!this.#active.has("link")) return;
    for (const link of this.#links) Object.assign(link, this.#oneOf(LINKS));
    this.#counts.linkChanges++;
  }

  #refuse({ topic, bytes }: Publish): Refusal | undefined {
    this.#attempts++;
    let spell = this.#spells.get(topic);
    if (!spell || spell.left-- <= 0) {
      const troubles = [
        undefined,
        undefined,
        undefined,
        ...(this.#active.has("refusals") ? REFUSED : []),
        ...(this.#active.has("149") ? [TOO_LARGE] : []),
      ];
      spell = { refusal: this.#oneOf(troubles), left: Math.floor(this.#random() * SPELL) };
      this.#spells.set(topic, spell);
    }
    let { refusal } = spell;
    if (refusal === TOO_LARGE && (bytes < LARGE_BYTES || !this.#active.has("149"))) refusal = undefined;
    else if (refusal !== TOO_LARGE && !this.#active.has("refusals")) refusal = undefined;
    if (this.#active.has("refusals") && this.#random() < 0.002) refusal = { how: "reset" };
    this.#refused(refusal !== undefined, refusal === TOO_LARGE);
    return refusal;
  }

  #front(bytes: number): FrontFault {
    this.#attempts++;
    const chance = this.#random();
    if (this.#active.has("acknowledgements") && chance < 0.06) {
      this.#counts.answersLost++;
      return "lose";
    }
    if (this.#active.has("connect") && chance > 0.96) {
      this.#counts.cuts++;
      return "cut";
    }
    const isRefused = this.#active.has("refusals") && chance > 0.2 && chance < 0.25;
    const isTooLarge = this.#active.has("149") && bytes > 16 * LARGE_BYTES && chance > 0.3 && chance < 0.6;
    this.#refused(isRefused, isTooLarge);
    if (!isRefused && !isTooLarge) return "pass";
    return isTooLarge ? 413 : chance > 0.23 ? 429 : 503;
  }

  #refused(isRefused: boolean, isTooLarge: boolean): void {
    if (isTooLarge) this.#counts.tooLarge++;
    else if (isRefused) this.#counts.refusals++;
  }

  #ack(): AckFault {
    const chance = this.#active.has("acknowledgements") ? this.#random() : 1;
    return chance < 0.04 ? "drop" : chance < 0.05 ? "reset" : "pass";
  }

  #oneOf<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#random() * choices.length)] as T;
  }
}
