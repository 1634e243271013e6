import { hash } from "node:crypto";
import { hexOf, sumOf } from "../../lib/proof.ts";
import { isoTime } from "../value-json.ts";
import type { Content } from "./content.ts";
import type { JournalLine, ManifestJournal, ManifestLoss } from "./journal.ts";

/** One readout that the broker has acknowledged. `hash` null: it came in several forms, and only its presence is certain. */
export interface Acknowledged {
  readonly hash: number | null;
  readonly values: number;
  /** Names the batch: identifiers of messages begin with it. */
  readonly id: string;
}

interface Minute {
  /** By ms within the minute. */
  readonly readouts: Map<number, Acknowledged>;
  /** Readouts beyond the bound of memory, which are in no list. */
  more: number;
  first: string;
  last: string;
  /** The record of what is in it is published. */
  isTold: boolean;
  /** Monotonic ms. */
  touchedMs: number;
}

interface SourceMinutes {
  name: string;
  /** By the minute's start, epoch ms. */
  readonly minutes: Map<number, Minute>;
  /** Minutes that were given up before their record was published. */
  leftOut: number;
  /** The retained message, as long as it holds. */
  text: RetainedText | undefined;
}

/** A retained message. */
export interface RetainedText {
  readonly payload: string;
  /** Same key: it says the same, if perhaps in shorter lists. */
  readonly key: string;
  /** Another text has another one: to compare texts of 100 KiB takes time. */
  readonly version: string;
  /** How many bytes it might have had. */
  readonly maxBytes: number;
}

/** A record that is to be published, once. */
export interface Due {
  readonly uuid: string;
  readonly source: string;
  readonly minute: number;
  readonly payload: string;
  /** When the minute changed last, monotonic ms. */
  readonly touchedMs: number;
}

export const MINUTE_MS = 60_000;
const MINUTES = 60;
/** Minutes of one source, late ones among them. */
const MAX_MINUTES = 300;
/** Readouts that are kept one by one, of all sources: 27 sources that are read each second. */
const MAX_READOUTS = 100_000;
/** A minute is published once nothing has come to it for so long. */
const QUIET_MS = 5000;
const MAX_LOSSES = 20;

/** Keeps the acknowledged readouts of each source: those of the last 60 minutes, and older ones until they are published. */
export class Manifest {
  readonly #sources = new Map<string, SourceMinutes>();
  readonly #losses = new Map<string, ManifestLoss>();
  readonly #journal: ManifestJournal;
  readonly #maxReadouts: number;
  #readouts = 0;
  /** How often what is retained has changed. */
  #changes = 0;

  constructor(journal: ManifestJournal, maxReadouts = MAX_READOUTS) {
    this.#journal = journal;
    this.#maxReadouts = maxReadouts;
    for (const line of journal.read()) this.#replay(line);
    journal.rewrite(this.#lines());
  }

  /** Counts what the broker has acknowledged of a batch, and keeps it over a kill of the process. What comes again changes nothing. */
  delivered({ uuid, name }: { readonly uuid: string; readonly name: string }, id: string, content: Content): void {
    const readouts = [...content].map(([time, entries]) => [time, sumOf(entries), entries.size] as const);
    if (readouts.length === 0) return;
    const line: JournalLine = { s: uuid, n: name, id, r: readouts };
    this.#journal.append(line);
    this.#replay(line);
    if (this.#journal.lines > 2 * this.#readouts + 1000) this.#journal.rewrite(this.#lines());
  }

  /** Values that the broker will never get, of any source. */
  lost({ id, from, to, values, reason }: ManifestLoss): void {
    const line = { lost: { id, from, to, values, reason } };
    this.#journal.append(line);
    this.#replay(line);
  }

  /** Minutes whose record is to be published; forgets old ones that are. `isLast`: nothing more comes over this opening. */
  due(nowMs: number, monotonicMs: number, isLast = false): readonly Due[] {
    const due: Due[] = [];
    for (const [uuid, source] of this.#sources) {
      for (const [start, minute] of source.minutes) {
        const isOver = start + MINUTE_MS + QUIET_MS <= nowMs && monotonicMs - minute.touchedMs >= QUIET_MS;
        if (minute.isTold && start < nowMs - MINUTES * MINUTE_MS) this.#forget(source, start);
        else if (!minute.isTold && (isOver || isLast))
          due.push({
            uuid,
            source: source.name,
            minute: start,
            payload: recordOf(uuid, source, start, minute),
            touchedMs: minute.touchedMs,
          });
      }
      if (source.minutes.size === 0 && source.leftOut === 0) this.#sources.delete(uuid);
    }
    return due;
  }

  /** The record was published, or the broker refuses it. A minute that has changed meanwhile is due again. */
  told({ uuid, minute: start, touchedMs }: Pick<Due, "uuid" | "minute" | "touchedMs">): void {
    if (this.#sources.get(uuid)?.minutes.get(start)?.touchedMs !== touchedMs) return;
    this.#journal.append({ s: uuid, told: start });
    this.#replay({ s: uuid, told: start });
  }

  /** The retained message of a source: its minutes that are published, the newest with the lists that fit. Undefined: there is none. */
  textOf(uuid: string, name: string, nowMs: number, maxBytes: number): RetainedText | undefined {
    const source = this.#sources.get(uuid);
    if (!source) return undefined;
    if (source.name !== name) source.text = undefined;
    source.name = name;
    const { text } = source;
    // A link that has become a little slower is no reason for a shorter list.
    if (text && Buffer.byteLength(text.payload) <= maxBytes && text.maxBytes * 2 > maxBytes) return text;
    const told = [...source.minutes].filter(([start, { isTold }]) => isTold && start >= nowMs - MINUTES * MINUTE_MS);
    if (told.length === 0) return undefined;
    const payload = retainedOf(uuid, source, told, [...this.#losses.values()], maxBytes);
    source.text = { payload, key: String(this.#changes), version: hash("sha256", payload), maxBytes };
    return source.text;
  }

  #replay(line: JournalLine): void {
    if ("lost" in line) {
      const { lost } = line;
      this.#losses.delete(lost.id);
      // One of 0 values takes the loss back.
      if (lost.values !== 0) this.#losses.set(lost.id, lost);
      for (const id of this.#losses.keys()) if (this.#losses.size > MAX_LOSSES) this.#losses.delete(id);
      this.#changes++;
      for (const source of this.#sources.values()) source.text = undefined;
      return;
    }
    if ("told" in line) {
      const source = this.#sources.get(line.s);
      const minute = source?.minutes.get(line.told);
      if (!source || !minute) return;
      minute.isTold = true;
      this.#changes++;
      source.text = undefined;
      return;
    }
    const { s: uuid, n: name, id: batch, r: readouts } = line;
    const source: SourceMinutes = this.#sources.get(uuid) ?? { name, minutes: new Map(), leftOut: 0, text: undefined };
    this.#sources.set(uuid, source);
    source.name = name;
    for (const [time, hash, values, id = batch] of readouts) this.#add(source, time, { hash, values, id });
    while (this.#readouts > this.#maxReadouts) this.#dropOldestList();
    for (const start of [...source.minutes.keys()].sort((a, b) => a - b).slice(0, -MAX_MINUTES)) {
      if (!source.minutes.get(start)?.isTold) source.leftOut++;
      this.#forget(source, start);
    }
  }

  #add({ minutes }: SourceMinutes, time: number, readout: Acknowledged): void {
    const start = Math.floor(time / MINUTE_MS) * MINUTE_MS;
    const { id } = readout;
    const minute: Minute = minutes.get(start) ?? { readouts: new Map(), more: 0, first: id, last: id, isTold: false, touchedMs: 0 };
    minutes.set(start, minute);
    const before = minute.readouts.get(time - start);
    if (before && (before.hash === null || (before.hash === readout.hash && before.values === readout.values))) return;
    minute.isTold = false;
    minute.touchedMs = performance.now();
    minute.last = id;
    if (minute.more > 0 && !before) minute.more++;
    else {
      if (!before) this.#readouts++;
      // Another content at the same time: a piece that was refused and taken later, or a clock that was set back.
      minute.readouts.set(time - start, before ? { ...readout, hash: null } : readout);
    }
  }

  #forget({ minutes }: SourceMinutes, start: number): void {
    this.#readouts -= minutes.get(start)?.readouts.size ?? 0;
    minutes.delete(start);
  }

  /** The list of the oldest minute gives way to its number, one that is published first. */
  #dropOldestList(): void {
    let oldest: { readonly start: number; readonly minute: Minute } | undefined;
    for (const { minutes } of this.#sources.values())
      for (const [start, minute] of minutes) {
        if (minute.readouts.size === 0) continue;
        const isBefore = !oldest || (minute.isTold === oldest.minute.isTold ? start < oldest.start : minute.isTold);
        if (isBefore) oldest = { start, minute };
      }
    if (!oldest) return;
    const { minute } = oldest;
    this.#readouts -= minute.readouts.size;
    minute.more += minute.readouts.size;
    minute.readouts.clear();
  }

  /** All that is known, for a shorter file. */
  *#lines(): Generator<JournalLine> {
    for (const lost of this.#losses.values()) yield { lost };
    for (const [s, { name: n, minutes }] of this.#sources)
      for (const [start, { readouts, first, isTold }] of minutes) {
        const r = [...readouts].map(([offset, { hash, values, id }]) => [start + offset, hash, values, id] as const);
        yield { s, n, id: first, r };
        if (isTold) yield { s, told: start };
      }
  }
}

/** `life-118-127` is `118-127`, and `118` where both are the same, in a minute of this life. */
function shortId(id: string, life: string): string {
  const [, own, first, last] = /^([^-]+)-(\d+)-(\d+)$/.exec(id) ?? [];
  if (own !== life) return id;
  return first === last ? `${first}` : `${first}-${last}`;
}

function minuteOf(start: number, { readouts, more, first, last }: Minute, hasList: boolean): object {
  const sorted = [...readouts].sort(([a], [b]) => a - b);
  const [life = ""] = first.split("-", 1);
  const list = sorted.map(([offset, { hash, values, id }]) => [offset, hash === null ? null : hexOf(hash), values, shortId(id, life)]);
  return {
    minute: isoTime(start),
    count: readouts.size + more,
    first,
    last,
    hash: more > 0 ? null : minuteHash(sorted.map(([offset, { hash }]) => [offset, hash])),
    ...(hasList && { readouts: list }),
    ...(more > 0 && { more }),
  };
}

/** The SHA-256 of lines `ms within the minute:hash`, by rising time, in 16 digits; null: the content of one is not certain. Pure. */
export function minuteHash(readouts: readonly (readonly [number, number | null])[]): string | null {
  if (readouts.some(([, hash]) => hash === null)) return null;
  const lines = readouts.map(([offset, hash]) => `${offset}:${hexOf(hash ?? 0)}\n`);
  return hash("sha256", lines.join("")).slice(0, 16);
}

const recordOf = (uuid: string, { name }: SourceMinutes, start: number, minute: Minute): string =>
  JSON.stringify({ v: 1, source: name, source_id: uuid, ...minuteOf(start, minute, true) });

/** Lists from the newest minute on, as long as all fits. */
function retainedOf(
  uuid: string,
  { name, leftOut }: SourceMinutes,
  told: readonly (readonly [number, Minute])[],
  losses: readonly ManifestLoss[],
  maxBytes: number,
): string {
  const sorted = told.toSorted(([a], [b]) => a - b);
  const oldest = sorted[0]?.[0] ?? 0;
  const lost = losses
    .filter(({ to }) => to >= oldest)
    .map(({ id, from, to, values, reason }) => ({ id, from: isoTime(from), to: isoTime(to), count: values, reason }));
  const head = {
    v: 1,
    source: name,
    source_id: uuid,
    ...(leftOut > 0 && { left_out: leftOut }),
    ...(lost.length > 0 && { losses: lost }),
  };
  const texts = sorted.map(([start, minute]) => JSON.stringify(minuteOf(start, minute, false)));
  let bytes = Buffer.byteLength(JSON.stringify({ ...head, minutes: [] })) + texts.reduce((sum, text) => sum + text.length + 1, 0);
  for (let i = sorted.length - 1; i >= 0; i--) {
    const [start, minute] = sorted[i] ?? [0];
    if (!minute) break;
    const text = JSON.stringify(minuteOf(start, minute, true));
    bytes += text.length - (texts[i]?.length ?? 0);
    if (bytes > maxBytes) break;
    texts[i] = text;
  }
  return `${JSON.stringify(head).slice(0, -1)},"minutes":[${texts.join(",")}]}`;
}
