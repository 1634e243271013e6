import { formatDuration } from "../../src/base/duration.ts";
import { countOf } from "../../src/base/number.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import { describeCode } from "./failure.ts";
import { type Items, OFFER_AGAIN_MS, type Refusal } from "./items.ts";
import type { OpcuaSettings } from "./settings.ts";
import { statusOf } from "./statuses.ts";

/** A subscription that is lost so often within this is not created again for a while. */
const LOST_WITHIN_MS = 60_000;
const LOST_OFTEN = 3;
const NAMED = 5;

type IntervalSettings = Pick<OpcuaSettings, "publishing_interval" | "sampling_interval" | "queue_size">;

/** Tells whether a session may have a subscription at this moment, and what status says of it. */
export class SubscriptionState {
  readonly #settings: IntervalSettings;
  readonly #logOnce: (words: string) => void;
  readonly #now: () => number;
  /** The publishing interval that the server grants. */
  publishingMs: number;
  #restUntilMs = Number.NEGATIVE_INFINITY;
  /** Why it rests; undefined: that says nothing of the server. */
  #restWords: string | undefined;
  #lostMs: readonly number[] = [];
  /** The shortest interval of a reader. */
  #intervalMs = Number.POSITIVE_INFINITY;
  /** Nodes whose value differed from what had come, since all of them were as they should be. */
  #differed = new Set<string>();
  #warnings: readonly Warning[] = [];
  /** The version of the items that they are made of; undefined: they are to be made. */
  #madeOf: number | undefined;

  /** `now`: monotonic ms. */
  constructor(settings: IntervalSettings, logOnce: (words: string) => void, now: () => number) {
    this.#settings = settings;
    this.#logOnce = logOnce;
    this.#now = now;
    this.publishingMs = settings.publishing_interval;
  }

  /** True: the server is not asked for a subscription, and everything is read plainly. */
  get isResting(): boolean {
    return this.#now() < this.#restUntilMs;
  }

  rest(ms: number, words?: string): void {
    this.#restUntilMs = this.#now() + ms;
    if (words !== undefined) this.#restWords = words;
    this.#madeOf = undefined;
  }

  lost(words: string): void {
    const nowMs = this.#now();
    this.#lostMs = [...this.#lostMs.filter((ms) => nowMs - ms < LOST_WITHIN_MS), nowMs];
    if (this.#lostMs.length < LOST_OFTEN) return;
    this.#lostMs = [];
    this.rest(OFFER_AGAIN_MS, `the server does not keep a subscription (${words})`);
  }

  opened(publishingMs: number): void {
    this.publishingMs = publishingMs;
    this.#restWords = undefined;
    this.#madeOf = undefined;
  }

  readEvery(intervalMs: number): void {
    if (intervalMs >= this.#intervalMs) return;
    this.#intervalMs = intervalMs;
    this.#madeOf = undefined;
  }

  differs(node: string): void {
    this.#differed.add(node);
    this.#madeOf = undefined;
  }

  audited(isWell: boolean): void {
    if (!isWell || this.#differed.size === 0) return;
    this.#differed = new Set();
    this.#madeOf = undefined;
  }

  /** Warnings of this moment; one array while nothing changes. */
  warnings(items: Items): readonly Warning[] {
    if (items.version === this.#madeOf) return this.#warnings;
    this.#madeOf = items.version;
    this.#warnings = [...this.#mechanism(), ...this.#parts(items)];
    for (const { text } of this.#warnings) this.#logOnce(text);
    return this.#warnings;
  }

  *#mechanism(): Generator<Warning> {
    const { publishing_interval: wantedMs } = this.#settings;
    if (this.#restWords !== undefined)
      yield warning(
        "subscription_refused",
        `${this.#restWords}: values are read without a subscription (read_mode); the collector asks the server again every ${formatDuration(OFFER_AGAIN_MS)}`,
      );
    if (this.publishingMs > 2 * wantedMs)
      yield warning(
        "subscription_refused",
        `the server sends changes every ${Math.round(this.publishingMs)} ms, not every ${wantedMs} ms (publishing_interval)`,
        "publishing_interval",
      );
  }

  *#parts(items: Items): Generator<Warning> {
    const { sampling_interval: samplingMs, queue_size: queueSize } = this.#settings;
    const { all, watched, plain, refused, queueSize: granted, samplingMs: longestMs } = items.counts();
    if (plain > 0 && refused !== undefined)
      yield warning(
        "subscription_in_part",
        `${watched} of ${countOf(all, "variable")} come by subscription, ${plain} are read plainly: ${whyOf(refused)}; the collector offers them again every ${formatDuration(OFFER_AGAIN_MS)}`,
      );
    const lookMs = Math.max(samplingMs, watched > 0 ? longestMs : 0);
    if (lookMs > this.#intervalMs)
      yield warning(
        "sampling_too_slow",
        `the server looks at variables every ${formatDuration(Math.round(lookMs))}, and they are read every ${formatDuration(this.#intervalMs)}: values are older than that (sampling_interval)`,
      );
    if (watched > 0 && granted < queueSize)
      yield warning("subscription_queue_short", `the server keeps ${granted} changes of a variable, not ${queueSize} (queue_size)`);
    const { named, count } = items.overflowed();
    if (count > 0)
      yield warning(
        "subscription_overflow",
        `the server's queue of ${countOf(count, "variable")} overflowed: values are lost (${named.join(", ")}${count > named.length ? ", …" : ""}); a larger queue_size, or a shorter publishing_interval, keeps them`,
      );
    if (this.#differed.size > 0)
      yield warning(
        "subscription_differs",
        `${countOf(this.#differed.size, "variable")} had another value on the server than came by subscription, and ${this.#differed.size === 1 ? "is" : "are"} watched again: ${[...this.#differed].slice(0, NAMED).join(", ")}`,
      );
  }
}

function whyOf(refused: Refusal): string {
  if (typeof refused === "number") return `the server refuses them with ${describeCode(statusOf(refused, null))}`;
  return refused === "no changes" ? "the server did not send their changes" : "the server sent no first value of them";
}
