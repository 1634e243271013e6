import { formatBytes } from "../base/bytes.ts";
import type { Account, BufferFill } from "../buffer/buffer.ts";
import type { Log } from "../model/context.ts";
import type { BufferLeft } from "../model/service-status.ts";
import { type Warning, warning } from "../model/warning.ts";
import { leftWords } from "./words/service-words.ts";

/** The buffer and what its sinks have taken, at one moment. */
export interface OutlookSample {
  /** Monotonic ms. */
  readonly atMs: number;
  readonly fill: BufferFill;
  /** By uuid. */
  readonly sinks: ReadonlyMap<string, SinkFlow>;
}

/** What a sink has taken; values since the file exists. */
export interface SinkFlow {
  /** It can be written to at this moment. */
  readonly isOpen: boolean;
  readonly accepted: number;
  /** Delivered, sent without confirmation, or refused for good or damaged: none of it stays in the file. */
  readonly taken: number;
}

/** Of a sink's account. What the buffer itself drops was not taken. Pure. */
export const flowOf = ({ accepted, delivered, unconfirmed, filtered, dropped }: Account, isOpen: boolean): SinkFlow => ({
  isOpen,
  accepted,
  taken: delivered + unconfirmed + filtered + (dropped.refused ?? 0) + (dropped.damaged ?? 0),
});

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Samples are so far apart: of the last minute, of the last hour, of the day before. */
const APART_MS = { minute: 900, hour: MINUTE_MS, day: 10 * MINUTE_MS } as const;
/** What is read in an hour: by the last hour or the last day, whichever had more. A shorter time than the first says nothing. */
const RATE_WINDOWS_MS: readonly { readonly leastMs: number; readonly mostMs: number }[] = [
  { leastMs: 8000, mostMs: HOUR_MS },
  { leastMs: 3 * HOUR_MS, mostMs: DAY_MS },
];
/** What stays of a sink that is open is judged over so long: it may publish once in some minutes, and in each half once. */
const OPEN_WINDOW_MS = { leastMs: 5 * MINUTE_MS, mostMs: 10 * MINUTE_MS } as const;
/** And of one that cannot be written to, from when it could not: that shows at once. */
const CLOSED_WINDOW_MS = { leastMs: 4000, mostMs: MINUTE_MS } as const;
/** A smaller part of what is read stays by chance. */
const LEAST_SHARE = 0.02;
/** A warning lasts until so much more is left, or nothing has stayed for so long. */
const CALM = 1.5;
const CALM_AFTER_MS = 10 * MINUTE_MS;

/** How long until the buffer drops its oldest values, from the first minute of an outage on. */
export class BufferOutlook {
  readonly #log: Log;
  #warnBelowMs: number;
  #diskFreeBytes: number | undefined;
  /** Oldest first; `addedBytes` over restarts of the store. */
  #samples: readonly OutlookSample[] = [];
  #added = { counted: 0, bytes: 0 };
  #warning: string | undefined;
  #calmSinceMs: number | undefined;

  /** Warns where less than `warnBelowMs` are left. */
  constructor(log: Log, warnBelowMs: number) {
    this.#log = log;
    this.#warnBelowMs = warnBelowMs;
  }

  setWarnBelow(ms: number): void {
    this.#warnBelowMs = ms;
  }

  /** Bytes that may still be written where the file is; undefined: not known. */
  setDiskFree(bytes: number | undefined): void {
    this.#diskFreeBytes = bytes;
  }

  /** To be called about once a second. */
  add(sample: OutlookSample): void {
    const last = this.#samples.at(-1);
    if (last && sample.atMs - last.atMs < APART_MS.minute) return;
    const { addedBytes } = sample.fill;
    // A store that was started again counts from zero.
    const bytes = this.#added.bytes + (addedBytes < this.#added.counted ? addedBytes : addedBytes - this.#added.counted);
    this.#added = { counted: addedBytes, bytes };
    this.#samples = thinned([...this.#samples, { ...sample, fill: { ...sample.fill, addedBytes: bytes } }]);
    this.#judge(sample);
  }

  /** Undefined: nothing is known yet, or nothing is read. */
  left(): BufferLeft | undefined {
    const last = this.#samples.at(-1);
    const arrivingPerMs = arrivalRate(this.#samples);
    if (!last || arrivingPerMs === 0) return undefined;
    const share = shareThatStays(this.#samples);
    const isFilling = share >= LEAST_SHARE;
    const perMs = arrivingPerMs * (isFilling ? share : 1) * (last.fill.packedPart ?? 1);
    const room = Math.max(0, last.fill.dropAtBytes - last.fill.usedBytes);
    const diskRoom = (this.#diskFreeBytes ?? Number.POSITIVE_INFINITY) + last.fill.spareBytes;
    const isDiskFirst = diskRoom < room;
    const bytesLeftMs = Math.min(diskRoom, room) / perMs;
    const isAgeFirst = last.fill.ageLeftMs < bytesLeftMs;
    const leftMs = isAgeFirst ? last.fill.ageLeftMs : bytesLeftMs;
    return {
      hours: Math.round((leftMs / HOUR_MS) * 100) / 100,
      filling: isFilling,
      bytes_per_hour: Math.round(perMs * HOUR_MS),
      bound: isAgeFirst ? "max_age" : isDiskFirst ? "disk" : "max_bytes",
      warn_below_hours: this.#warnBelowMs / HOUR_MS,
    };
  }

  /** For status. */
  notes(): readonly Warning[] {
    return this.#warning === undefined ? [] : [warning("buffer_fills", this.#warning)];
  }

  #judge({ atMs, fill }: OutlookSample): void {
    const left = this.left();
    const leftMs = (left?.hours ?? Number.POSITIVE_INFINITY) * HOUR_MS;
    if (left?.filling) this.#calmSinceMs = undefined;
    else this.#calmSinceMs ??= atMs;
    if (left?.filling && (leftMs < this.#warnBelowMs || (this.#warning !== undefined && leftMs < CALM * this.#warnBelowMs))) {
      const words = warningWords(left, fill);
      if (this.#warning === undefined) this.#log.warn({}, words);
      this.#warning = words;
      return;
    }
    if (this.#warning === undefined) return;
    if (this.#calmSinceMs !== undefined && atMs - this.#calmSinceMs < CALM_AFTER_MS) return;
    this.#warning = undefined;
    this.#log.info({}, "the buffer does not fill up any more");
  }
}

const NEXT: Readonly<Record<BufferLeft["bound"], string>> = {
  max_bytes: "buffer.max_bytes makes room",
  max_age: "buffer.max_age keeps them longer",
  disk: "make room on the disk (df -h, du -xh --max-depth=2 /)",
};

const warningWords = (left: BufferLeft, { usedBytes, dropAtBytes }: BufferFill): string =>
  `values wait in the buffer: ${leftWords(left)} (${formatBytes(usedBytes)} of ${formatBytes(dropAtBytes)} in use, ${formatBytes(left.bytes_per_hour)} more each hour): collector status says why a data sink does not take them, ${NEXT[left.bound]}`;

/** Bytes that readouts take in the file in a ms. Pure. */
function arrivalRate(samples: readonly OutlookSample[]): number {
  const last = samples.at(-1);
  if (!last) return 0;
  const rates = RATE_WINDOWS_MS.map(({ leastMs, mostMs }) => {
    const first = samples.find(({ atMs }) => last.atMs - atMs <= mostMs);
    const ms = first ? last.atMs - first.atMs : 0;
    return first && ms >= leastMs ? (last.fill.addedBytes - first.fill.addedBytes) / ms : 0;
  });
  return Math.max(...rates);
}

/** Which part of what is read stays in the file, by the sink that takes least: 0 to 1. Pure. */
function shareThatStays(samples: readonly OutlookSample[]): number {
  const shares = [...(samples.at(-1)?.sinks.keys() ?? [])].map((uuid) => {
    const flow = samples.flatMap(({ atMs, sinks }) => {
      const sink = sinks.get(uuid);
      return sink ? [{ atMs, ...sink }] : [];
    });
    return flow.at(-1)?.isOpen ? shareOfOpen(flow) : shareOfClosed(flow);
  });
  return Math.min(1, Math.max(0, ...shares));
}

type Flow = readonly (SinkFlow & { readonly atMs: number })[];

/** By what waited at least in the second half of the window, and in the first. */
function shareOfOpen(flow: Flow): number {
  const [part, halfMs] = within(flow, OPEN_WINDOW_MS);
  const [first, last] = [part[0], part.at(-1)];
  if (!first || !last || last.accepted <= first.accepted) return 0;
  const leastWaiting = (half: Flow) => Math.min(...half.map(({ accepted, taken }) => accepted - taken));
  const isEarly = ({ atMs }: { readonly atMs: number }) => atMs < halfMs;
  const grown = leastWaiting(part.filter((one) => !isEarly(one))) - leastWaiting(part.filter(isEarly));
  return (2 * grown) / (last.accepted - first.accepted);
}

/** By what came since the last moment at which it was open. */
function shareOfClosed(flow: Flow): number {
  const [part] = within(
    flow.slice(
      Math.max(
        0,
        flow.findLastIndex(({ isOpen }) => isOpen),
      ),
    ),
    CLOSED_WINDOW_MS,
  );
  const [first, last] = [part[0], part.at(-1)];
  if (!first || !last || last.accepted <= first.accepted) return 0;
  return 1 - (last.taken - first.taken) / (last.accepted - first.accepted);
}

/** What is in the window, and its middle; nothing: it is shorter than what says anything. */
function within(flow: Flow, { leastMs, mostMs }: { readonly leastMs: number; readonly mostMs: number }): readonly [Flow, number] {
  const endMs = flow.at(-1)?.atMs ?? 0;
  const part = flow.filter(({ atMs }) => endMs - atMs <= mostMs);
  const beginMs = part[0]?.atMs ?? endMs;
  return [endMs - beginMs < leastMs ? [] : part, (beginMs + endMs) / 2];
}

/** Of the last minute all, of the last hour one in a minute, of the day before one in ten minutes; sinks as long as they are looked at. Pure. */
function thinned(samples: readonly OutlookSample[]): readonly OutlookSample[] {
  const nowMs = samples.at(-1)?.atMs ?? 0;
  let keptMs = Number.NEGATIVE_INFINITY;
  return samples.flatMap((sample) => {
    const ageMs = nowMs - sample.atMs;
    const apartMs = ageMs > HOUR_MS ? APART_MS.day : ageMs > MINUTE_MS ? APART_MS.hour : APART_MS.minute;
    if (ageMs > DAY_MS || sample.atMs - keptMs < apartMs) return [];
    keptMs = sample.atMs;
    return [ageMs > OPEN_WINDOW_MS.mostMs && sample.sinks.size > 0 ? { ...sample, sinks: new Map() } : sample];
  });
}
