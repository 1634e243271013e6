import * as z from "zod";
import { type Finding, hexOf, type Judgement, sumOf } from "../../lib/proof.ts";
import { messageIn, type PublishedReadouts, readoutsIn } from "./content.ts";
import { MINUTE_MS, minuteHash } from "./manifest.ts";

const listSchema = z.array(z.tuple([z.int().min(0).max(59_999), z.string().nullable(), z.number(), z.string()]));
const minuteSchema = z.object({
  minute: z.iso.datetime(),
  count: z.number(),
  first: z.string(),
  hash: z.string().nullable(),
  readouts: listSchema.optional(),
  more: z.number().optional(),
});
const lossSchema = z.object({ id: z.string(), from: z.string(), to: z.string(), count: z.number().nullable(), reason: z.string() });
const headSchema = z.object({ v: z.literal(1), source: z.string(), source_id: z.string() });
const recordSchema = headSchema.extend(minuteSchema.shape);
const manifestSchema = headSchema.extend({ minutes: z.array(minuteSchema), losses: z.array(lossSchema).optional() });
const statementSchema = z.union([manifestSchema, recordSchema]);

/** Judgement with all that a received copy shows beyond the manifest. */
export interface CopyJudgement extends Judgement {
  /** Came more than once, as a repetition after a lost connection does. */
  readonly repeated: number;
  /** Readouts of minutes that the manifest has, and not in it: the broker had not acknowledged them, or not yet. */
  readonly unlisted: number;
  /** Data sources of the copy that have no manifest: not judged. */
  readonly without_manifest: number;
  /** Values of all sources that the collector gave up before the broker had them. */
  readonly losses: readonly z.infer<typeof lossSchema>[];
}

/** The time that is judged. Epoch ms. */
export interface Span {
  /** Absent: what came shows it. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
  /** Nothing could come before. */
  readonly notBeforeMs?: number | undefined;
  /** The manifests came with the values: all that they have has come before. */
  readonly isOpenEnd?: boolean;
}

interface Held {
  readonly entries: Set<number>;
  /** Identifiers of its messages. */
  readonly ids: string[];
  isRepeated: boolean;
  isDouble: boolean;
}

interface Stored {
  readonly readouts: Map<number, Held>;
  /** Times of the first live readout, and of the newest one. */
  firstMs: number;
  lastMs: number;
}

interface Listed {
  readonly hash: string | null;
  readonly values: number;
  readonly id: string;
}

interface StatedMinute {
  count: number;
  first: string;
  hash: string | null;
  more: number;
  hasList: boolean;
  /** By ms within the minute. */
  readonly list: Map<number, Listed>;
}

type Minutes = ReadonlyMap<number, StatedMinute>;

/** Minutes of a source, and those of others of its name whose rows cannot be told from its own. */
interface Expected {
  readonly minutes: Minutes;
  readonly others: readonly Minutes[];
}

interface Stated {
  /** Rows say the name alone; a source may have had several. */
  readonly names: Set<string>;
  readonly minutes: Map<number, StatedMinute>;
}

/** Values of a copy, at most: about 1 GB of memory. */
const MAX_VALUES = 10_000_000;
const MAX_IDS = 8;
/** Sources are not read and published in step: so far from both ends of what came a source of which nothing came counts. */
const MARGIN_MS = 60_000;

/** A received copy, and the manifests for it, in whatever order they come. */
export class ReceivedCopy {
  /** By uuid where messages say it, else by name. */
  readonly #stored = new Map<string, Stored>();
  /** By uuid. */
  readonly #stated = new Map<string, Stated>();
  readonly #losses = new Map<string, z.infer<typeof lossSchema>>();
  readonly #maxValues: number;
  #values = 0;

  constructor(maxValues = MAX_VALUES) {
    this.#maxValues = maxValues;
  }

  /** A message as parsed; false: it is neither values nor a manifest. Throws RangeError where there are too many values. */
  take(json: unknown): boolean {
    const statement = statementSchema.safeParse(json);
    if (statement.success) {
      this.#takeStatement(statement.data);
      return true;
    }
    const readouts = publishedIn(json);
    if (!readouts) return false;
    for (const { source, sourceId, id = "", isBacklog, content } of readouts) {
      // A source without readouts shows nothing, and would take memory.
      if (content.size === 0) continue;
      const stored = this.#storedOf(sourceId ?? source);
      for (const [time, entries] of content) {
        if (!isBacklog) stored.firstMs = Math.min(stored.firstMs, time);
        stored.lastMs = Math.max(stored.lastMs, time);
        this.#takeReadout(stored.readouts, time, entries, id);
      }
    }
    return true;
  }

  get hasManifest(): boolean {
    return this.#stated.size > 0;
  }

  get readouts(): number {
    let readouts = 0;
    for (const stored of this.#stored.values()) readouts += stored.readouts.size;
    return readouts;
  }

  judge({ sinceMs, untilMs, notBeforeMs = Number.NEGATIVE_INFINITY, isOpenEnd = false }: Span): CopyJudgement {
    let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const { firstMs, lastMs } of this.#stored.values())
      if (Number.isFinite(firstMs)) [least, most] = [Math.min(least, firstMs), Math.max(most, lastMs)];
    const isEmpty = most < least;
    // Nothing at all came of what was listened to: its own beginning counts.
    const begin = (isEmpty && Number.isFinite(notBeforeMs) ? notBeforeMs : Math.max(least, notBeforeMs)) + MARGIN_MS;
    const judging = new Judging();
    const judged = new Set<string>();
    const byName = this.#statedByName();
    for (const [uuid, { names, minutes }] of this.#stated) {
      const keys = [uuid, ...names].filter((key) => this.#stored.has(key));
      for (const key of keys) judged.add(key);
      const own = keys.flatMap((key) => this.#stored.get(key) ?? []);
      const firstMs = sinceMs ?? Math.max(notBeforeMs, Math.min(begin, ...own.map((stored) => stored.firstMs)));
      const newestMs = Math.max(most - MARGIN_MS, ...own.map((stored) => stored.lastMs));
      const lastMs = untilMs ?? (isOpenEnd || isEmpty ? Number.POSITIVE_INFINITY : newestMs);
      const readouts = new Map(own.flatMap((stored) => [...stored.readouts]));
      // Rows of two sources of one name are one source in the copy.
      const namesakes = [...names].flatMap((name) => (this.#stored.has(name) ? (byName.get(name) ?? []) : []));
      const others = namesakes.filter((other) => other !== minutes);
      judging.source([...names].at(-1) ?? uuid, { minutes, others }, readouts, (time) => time >= firstMs && time <= lastMs);
    }
    const losses = [...this.#losses.values()].filter(({ count }) => count !== 0);
    return { ...judging.result(), without_manifest: this.#stored.size - judged.size, losses };
  }

  #statedByName(): ReadonlyMap<string, readonly Minutes[]> {
    const byName = new Map<string, Minutes[]>();
    for (const { names, minutes } of this.#stated.values())
      for (const name of names) {
        const own = byName.get(name) ?? [];
        byName.set(name, own);
        own.push(minutes);
      }
    return byName;
  }

  #takeStatement(statement: z.infer<typeof statementSchema>): void {
    const { source, source_id: uuid } = statement;
    const stated: Stated = this.#stated.get(uuid) ?? { names: new Set(), minutes: new Map() };
    this.#stated.set(uuid, stated);
    stated.names.add(source);
    const [minutes, losses] = "minutes" in statement ? [statement.minutes, statement.losses ?? []] : [[statement], []];
    this.#count(1 + losses.length);
    for (const one of minutes) this.#count(addMinute(stated.minutes, one));
    for (const loss of losses) this.#losses.set(loss.id, loss);
  }

  /** Throws RangeError. */
  #count(values: number): void {
    this.#values += values;
    if (this.#values > this.#maxValues) throw new RangeError(`more than ${this.#maxValues} values; verify a shorter time`);
  }

  #storedOf(key: string): Stored {
    const stored = this.#stored.get(key) ?? {
      readouts: new Map(),
      firstMs: Number.POSITIVE_INFINITY,
      lastMs: Number.NEGATIVE_INFINITY,
    };
    this.#stored.set(key, stored);
    return stored;
  }

  #takeReadout(readouts: Map<number, Held>, time: number, entries: Set<number>, id: string): void {
    // One without values takes memory, too.
    this.#count(Math.max(1, entries.size));
    const held = readouts.get(time);
    if (!held) {
      readouts.set(time, { entries, ids: [id], isRepeated: false, isDouble: false });
      return;
    }
    const { ids } = held;
    // Parts of a readout have values of their own: what adds none to it is there already.
    if ((entries.size > 0 || held.entries.size === 0) && [...entries].every((entry) => held.entries.has(entry))) {
      if (ids.some((one) => areOfOneReadout(one, id))) held.isRepeated = true;
      else held.isDouble = true;
    }
    for (const entry of entries) held.entries.add(entry);
    if (ids.length < MAX_IDS && !ids.includes(id)) ids.push(id);
  }
}

/** Undefined: it is no message of values, or one that is nested deeper than this thread's stack reaches, as no collector writes it. */
function publishedIn(json: unknown): readonly PublishedReadouts[] | undefined {
  const message = messageIn(json);
  try {
    return message && readoutsIn(message);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Several statements of a minute: each has some of its readouts. Returns how many are new. */
function addMinute(
  minutes: Map<number, StatedMinute>,
  { minute: text, count, first, hash, readouts, more = 0 }: z.infer<typeof minuteSchema>,
): number {
  const start = Date.parse(text);
  const minute: StatedMinute = minutes.get(start) ?? { count, first, hash, more, hasList: false, list: new Map() };
  minutes.set(start, minute);
  if (count > minute.count) Object.assign(minute, { count, first, hash });
  // Values were added to a readout that was there: which of them came is not certain.
  else if (count === minute.count && hash !== minute.hash) minute.hash = null;
  minute.more = Math.max(minute.more, more);
  if (!readouts) return 1;
  const known = minute.list.size;
  minute.hasList = true;
  const [life = ""] = first.split("-", 1);
  for (const [offset, own, values, id] of readouts) {
    const before = minute.list.get(offset);
    const isOther = before !== undefined && (before.hash !== own || before.values !== values);
    minute.list.set(offset, { hash: isOther ? null : own, values, id: fullId(id, life) });
  }
  return 1 + minute.list.size - known;
}

function fullId(id: string, life: string): string {
  const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(id) ?? [];
  return first === undefined ? id : `${life}-${first}-${last}`;
}

/** A batch comes again under the identifier that it had, or in another division of the same rows. Rows of a table have no identifiers. */
function areOfOneReadout(one: string, other: string): boolean {
  if (one === other) return true;
  const [a, b] = [one, other].map((id) => /^([^-]+)-(\d+)-(\d+)(?:\.|$)/.exec(id));
  return a?.[1] === b?.[1] && Number(a?.[2]) <= Number(b?.[3]) && Number(b?.[2]) <= Number(a?.[3]);
}

/** A readout of its own may lie there: its list says so, or is not known. */
function mayHave(minutes: Minutes, start: number, offset: number): boolean {
  const minute = minutes.get(start);
  return minute !== undefined && (!minute.hasList || minute.more > 0 || minute.list.has(offset));
}

const textOf = (time: number): string => new Date(time).toISOString();

/** Gathers the findings, source by source. */
class Judging {
  readonly #findings: Finding[] = [];
  readonly #sources = new Set<string>();
  #readouts = 0;
  #repeated = 0;
  #unlisted = 0;
  #unproved = 0;
  #fromMs = Number.POSITIVE_INFINITY;
  #toMs = Number.NEGATIVE_INFINITY;

  source(source: string, { minutes, others }: Expected, stored: ReadonlyMap<number, Held>, isIn: (time: number) => boolean): void {
    const byMinute = this.#stored({ minutes, others }, stored, isIn);
    for (const [start, minute] of [...minutes].sort(([a], [b]) => a - b)) {
      for (const [offset, listed] of [...minute.list].sort(([a], [b]) => a - b)) {
        const time = start + offset;
        if (!isIn(time)) continue;
        this.#judged(source, time);
        const isShared = others.some((other) => mayHave(other, start, offset));
        this.#readout(source, time, isShared ? { ...listed, hash: null } : listed, stored.get(time));
      }
      if (!isIn(start) || !isIn(start + MINUTE_MS - 1)) continue;
      this.#unproved += minute.more;
      if (!minute.hasList && minute.more === 0) {
        const isShared = others.some((other) => other.has(start));
        this.#minute(source, start, isShared ? { ...minute, hash: null } : minute, byMinute.get(start) ?? []);
      }
    }
  }

  result(): Omit<CopyJudgement, "without_manifest" | "losses"> {
    return {
      findings: this.#findings,
      readouts: this.#readouts,
      sources: this.#sources.size,
      from: this.#readouts === 0 ? null : textOf(this.#fromMs),
      to: this.#readouts === 0 ? null : textOf(this.#toMs),
      repeated: this.#repeated,
      unlisted: this.#unlisted,
      unproved: this.#unproved,
    };
  }

  /** Counts the readouts of a source in the copy; returns those of minutes without a list, by minute: ms in it, and hash. */
  #stored(
    { minutes, others }: Expected,
    stored: ReadonlyMap<number, Held>,
    isIn: (time: number) => boolean,
  ): ReadonlyMap<number, [number, number][]> {
    const byMinute = new Map<number, [number, number][]>();
    for (const [time, { entries, isRepeated }] of stored) {
      if (!isIn(time)) continue;
      if (isRepeated) this.#repeated++;
      const start = Math.floor(time / MINUTE_MS) * MINUTE_MS;
      const minute = minutes.get(start);
      if (!minute || minute.more > 0) continue;
      if (minute.hasList) {
        if (!minute.list.has(time - start) && !others.some((other) => mayHave(other, start, time - start))) this.#unlisted++;
        continue;
      }
      const own = byMinute.get(start) ?? [];
      byMinute.set(start, own);
      own.push([time - start, sumOf(entries)]);
    }
    return byMinute;
  }

  #judged(source: string, time: number, readouts = 1): void {
    this.#sources.add(source);
    this.#readouts += readouts;
    this.#fromMs = Math.min(this.#fromMs, time);
    this.#toMs = Math.max(this.#toMs, time);
  }

  #readout(source: string, ms: number, { hash, values: expected, id }: Listed, held: Held | undefined): void {
    const about = { source, id, time: textOf(ms) };
    const found = held?.entries.size ?? 0;
    if (!held) this.#findings.push({ kind: "missing", ...about });
    else if (hash === null) this.#unproved++;
    else if (found < expected) this.#findings.push({ kind: "incomplete", ...about, values: { expected, found } });
    else if (hexOf(sumOf(held.entries)) !== hash) this.#findings.push({ kind: "different", ...about, values: { expected, found } });
    else if (held.isDouble) this.#findings.push({ kind: "double", ...about });
  }

  /** A minute without a list: its number and the hash of all of it. */
  #minute(source: string, start: number, { count, hash, first }: StatedMinute, found: [number, number][]): void {
    this.#judged(source, start, count);
    const about = { source, id: first, time: textOf(start) };
    if (found.length < count) this.#findings.push({ kind: "missing", ...about, readouts: count - found.length });
    else if (hash === null || found.length > count) this.#unproved += count;
    else if (minuteHash(found.sort(([a], [b]) => a - b)) !== hash) this.#findings.push({ kind: "different", ...about, readouts: count });
  }
}
