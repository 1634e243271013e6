import { formatBytes } from "../base/bytes.ts";
import { formatDuration } from "../base/duration.ts";
import type { DropReason } from "../buffer/buffer.ts";
import type { Log } from "../model/context.ts";
import { type Warning, warning } from "../model/warning.ts";

/** What the buffer holds of one sink, in values. */
export interface DropSample {
  readonly uuid: string;
  readonly name: string;
  readonly pending: number;
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>;
}

/** The settings by which values are dropped. */
export interface DropBounds {
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  readonly keepRemovedMs?: number | undefined;
}

/** Reasons for which the buffer itself gives values up. What a sink refuses or cannot read it tells itself. */
const WATCHED = ["buffer_full", "too_old", "sink_removed"] as const;
type Watched = (typeof WATCHED)[number];

/** Without a drop for so long it is over: more than the steps in which values get too old, a five-hundredth of `max_age`. */
const quietMs = ({ maxAgeMs }: DropBounds): number => 3_600_000 + maxAgeMs / 100;

interface Episode {
  /** ISO 8601. */
  readonly since: string;
  /** Of the sink before it. */
  readonly before: number;
  count: number;
  /** Behind the last drop. */
  pendingLeft: number;
  /** Monotonic ms. */
  lastMs: number;
}

/** Says at the first value that the buffer throws away since when, how many and by which setting, and when that is over. */
export class DropWatch {
  readonly #log: Log;
  /** By sink and reason: what was dropped when it was looked at last. */
  readonly #seen = new Map<string, number>();
  readonly #episodes = new Map<string, Episode>();
  #notes: readonly Warning[] = [];

  constructor(log: Log) {
    this.#log = log;
  }

  /** To be called with each account. `now`: monotonic ms, and the wall clock as ISO 8601. */
  look(sinks: readonly DropSample[], bounds: DropBounds, now: { readonly monotonicMs: number; readonly iso: string }): void {
    const notes: Warning[] = [];
    const known = new Set<string>();
    for (const sink of sinks)
      for (const reason of WATCHED) {
        const key = `${sink.uuid} ${reason}`;
        known.add(key);
        const episode = this.#lookAt(key, sink, reason, bounds, now);
        if (episode && reason !== "sink_removed")
          notes.push(warning("values_dropped", words(sink, reason, episode, bounds), `${sink.uuid} ${reason}`));
      }
    for (const key of [...this.#seen.keys()].filter((one) => !known.has(one))) {
      this.#seen.delete(key);
      this.#episodes.delete(key);
    }
    this.#notes = notes;
  }

  /** For status: what is dropped at this time. */
  notes(): readonly Warning[] {
    return this.#notes;
  }

  #lookAt(
    key: string,
    sink: DropSample,
    reason: Watched,
    bounds: DropBounds,
    { monotonicMs, iso }: { readonly monotonicMs: number; readonly iso: string },
  ): Episode | undefined {
    const dropped = sink.dropped[reason] ?? 0;
    const before = this.#seen.get(key) ?? dropped;
    this.#seen.set(key, dropped);
    // Another file counts from the beginning.
    if (dropped < before) this.#episodes.delete(key);
    let episode = this.#episodes.get(key);
    if (dropped > before) {
      const isFirst = episode === undefined;
      episode ??= { since: iso, before, count: 0, pendingLeft: 0, lastMs: 0 };
      episode.count = dropped - episode.before;
      episode.pendingLeft = sink.pending;
      episode.lastMs = monotonicMs;
      this.#episodes.set(key, episode);
      const text = words(sink, reason, episode, bounds);
      if (isFirst && reason === "sink_removed") this.#log.warn({ sink: sink.uuid }, text);
      else if (isFirst) this.#log.error({ sink: sink.uuid }, text);
      return episode;
    }
    if (!episode) return undefined;
    const isOver = sink.pending <= episode.pendingLeft / 2 || monotonicMs - episode.lastMs > quietMs(bounds);
    if (!isOver) return episode;
    this.#episodes.delete(key);
    this.#log.info(
      { sink: sink.uuid, reason },
      `the buffer drops no more values of ${sink.name}: ${episode.count} were dropped from ${episode.since} on (${reason})`,
    );
    return undefined;
  }
}

function words({ name }: DropSample, reason: Watched, { since, count }: Episode, bounds: DropBounds): string {
  const what = `values of ${name} are thrown away since ${since}, ${count} so far (${reason})`;
  if (reason === "sink_removed")
    return `${what}: the data sink was removed, and buffer.keep_removed (${formatDuration(bounds.keepRemovedMs ?? 0)}) is over`;
  const step = "collector status says why the data sink does not take them";
  return reason === "buffer_full"
    ? `the buffer is full: the oldest ${what}, and will never be delivered; buffer.max_bytes (${formatBytes(bounds.maxBytes)}) makes room, ${step}`
    : `values are too old for the buffer: ${what}, and will never be delivered; buffer.max_age (${formatDuration(bounds.maxAgeMs)}) keeps them longer, ${step}`;
}
