import * as z from "zod";
import { LargeList } from "../base/large-list.ts";
import { LargeMap } from "../base/large-map.ts";
import { createYielder, type YieldToEventLoop } from "../base/timer.ts";
import { uuidSchema } from "../model/uuid.ts";
import { type Warning, type WarningCode, warning } from "../model/warning.ts";
import type { Secrets } from "./desired.ts";

/** What of a list is used. */
export interface AcceptedRecords<T> {
  readonly records: readonly T[];
  /** For the operator: what was kept out or replaced, and why. Nothing of a value is quoted. */
  readonly warnings: readonly Warning[];
  /** Records without a usable uuid: which ones they are cannot be known, so their list removes nothing. */
  readonly unidentified: number;
  /** Records that stay although nothing names them: the next pull decides. */
  readonly waiting: number;
  /** Records of this collector, or without a usable uuid, that cannot be used and that nothing stands in for. */
  readonly leftOut: number;
  /** Records arrived, and none of them has a usable uuid: this is not a list of records. */
  readonly isUnusable: boolean;
}

const MAX_WARNINGS = 100;

/** A record of a list, judged by itself. `uuid` and `owner` are undefined where the record does not say, or not in a usable way. */
export type Judged<T> =
  | {
      readonly uuid: string;
      readonly owner: string | undefined;
      readonly record: T;
      /** Fields that are missing or not usable: those of the last good record stand in, else what the record has there now. */
      readonly unusable?: readonly (keyof T & string)[];
    }
  | {
      readonly uuid: string | undefined;
      readonly owner: string | undefined;
      /** What is wrong, in which field. */
      readonly why: string;
    };

/** What a list holds of one uuid. */
interface Listed<T> {
  /** Undefined: no record of it is used. */
  used: T | undefined;
  isValid: boolean;
  isLeftOut: boolean;
}

/** How the records of one kind are judged. */
export interface RecordForm<T> {
  readonly schema: z.ZodType<T>;
  /** The collector that a record belongs to; undefined where it does not say. */
  readonly owner: (record: T) => string | undefined;
  /** Fields of a record as received that are not usable although the record is; absent: none are. */
  readonly unusable?: (item: Readonly<Record<string, unknown>>) => readonly (keyof T & string)[];
}

/** Pure. */
export function judgeRecord<T extends { readonly uuid: string }>(item: unknown, { schema, owner, unusable }: RecordForm<T>): Judged<T> {
  const parsed = schema.safeParse(item);
  if (parsed.success) {
    const fields = unusable?.({ ...(item as object) }) ?? [];
    return { uuid: parsed.data.uuid, owner: owner(parsed.data), record: parsed.data, ...(fields.length > 0 && { unusable: fields }) };
  }
  const issue = parsed.error.issues[0];
  const why = `${issue?.path.join(".") || "the record"}: ${issue?.message ?? "not valid"}`;
  return { uuid: uuidOf(item), owner: statedOwner(item), why };
}

/** What came of asking again for entries that a list does not name. */
export interface AskedAgain<T> {
  /** What the API says of some of them. */
  readonly found: readonly Judged<T>[];
  /** Entries that stay although nothing names them. */
  readonly waiting: readonly T[];
  readonly warnings: readonly Warning[];
}

export interface AcceptInput<T> {
  /** Singular, for the warnings: `data source`. */
  readonly what: string;
  readonly received: Iterable<Judged<T>>;
  readonly previous: readonly T[];
  readonly collector: string;
  /** Asks again for entries of `previous` that the list does not name, where there are any. Absent: they are gone. */
  readonly askAgain?: (missing: readonly T[]) => Promise<AskedAgain<T>>;
}

/**
 * Takes each record of a list by itself. One that does not validate is kept out, and the last good one of its uuid stays; one of another
 * collector is dropped; of a uuid that is listed several times the first record that validates is used. With a record that has no usable
 * uuid nothing of `previous` is removed. Every outcome but the good one is a warning. Goes by slices.
 */
export async function acceptRecords<T extends { readonly uuid: string }>(
  { what, received, previous, collector, askAgain }: AcceptInput<T>,
  yieldToEventLoop: YieldToEventLoop = createYielder(),
): Promise<AcceptedRecords<T>> {
  const lastGood = new LargeMap<T>();
  for (const record of previous) {
    lastGood.set(record.uuid, record);
    await yieldToEventLoop();
  }
  const intake = new Intake<T>(what, collector, lastGood);
  for (const judged of received) {
    await yieldToEventLoop();
    intake.take(judged);
  }
  const { unidentified } = intake;
  const missing: T[] = [];
  for (const record of previous) {
    if (!intake.names(record.uuid)) missing.push(record);
    await yieldToEventLoop();
  }
  const asked = unidentified === 0 && missing.length > 0 ? await askAgain?.(missing) : undefined;
  for (const judged of asked?.found ?? []) {
    await yieldToEventLoop();
    intake.take(judged);
  }
  const used = await intake.used(yieldToEventLoop);
  const unlisted = unidentified > 0 ? missing : (asked?.waiting ?? []);
  return {
    records: unlisted.length > 0 ? [...used, ...unlisted] : used,
    warnings: [
      ...intake.warnings(),
      ...(unidentified > 0
        ? [unidentifiedWarning(what, unidentified, `nothing is removed: ${unlisted.length} that the list does not name stay`)]
        : []),
      ...intake.foreignWarnings(),
      ...(asked?.warnings ?? []),
    ],
    unidentified,
    waiting: asked?.waiting.length ?? 0,
    leftOut: intake.leftOut,
    isUnusable: intake.isUnusable,
  };
}

/** Takes the records of one list, one after the other. */
class Intake<T extends { readonly uuid: string }> {
  readonly #what: string;
  readonly #collector: string;
  readonly #lastGood: LargeMap<T>;
  readonly #listed = new LargeMap<Listed<T>>();
  readonly #inOrder = new LargeList<Listed<T>>();
  readonly #repeated = new Map<string, number>();
  readonly #invalid: SameReasons;
  readonly #standIns: SameReasons;
  #count = 0;
  #unidentified = 0;
  #foreign = 0;
  #without = 0;

  constructor(what: string, collector: string, lastGood: LargeMap<T>) {
    this.#what = what;
    this.#collector = collector;
    this.#lastGood = lastGood;
    this.#invalid = new SameReasons("records_unusable", what, (more) => `${more} more ${what}s do not validate`);
    this.#standIns = new SameReasons("records_incomplete", what, (more) => `${more} more ${what}s lack fields`);
  }

  /** Records without a usable uuid. */
  get unidentified(): number {
    return this.#unidentified;
  }

  /** Records arrived, and none of them has a usable uuid. */
  get isUnusable(): boolean {
    return this.#count > 0 && this.#unidentified === this.#count;
  }

  names(uuid: string): boolean {
    return this.#listed.get(uuid) !== undefined;
  }

  take(judged: Judged<T>): void {
    this.#count++;
    const { uuid, owner } = judged;
    const one = uuid === undefined ? undefined : this.#entryOf(uuid);
    if (uuid === undefined) this.#unidentified++;
    if (one && owner !== undefined && owner !== this.#collector) this.#foreign++;
    else if (!("why" in judged)) {
      if (one && !one.isValid) one.used = this.#completed(judged);
      if (one) one.isValid = true;
    } else {
      const kept = uuid === undefined ? undefined : this.#lastGood.get(uuid);
      if (one && !one.isValid) one.used = kept;
      if (one && !kept) one.isLeftOut = true;
      const consequence = kept ? "its last good configuration stays" : "it is left out";
      this.#invalid.add(uuid ?? `number ${this.#count} of the list`, judged.why, consequence);
    }
  }

  /** Records that are not used and that nothing stands in for, once `used` was asked for. */
  get leftOut(): number {
    return this.#unidentified + this.#without;
  }

  /** The record, with what the last good one has where a field is not usable. */
  #completed({ record, unusable = [] }: Extract<Judged<T>, { readonly record: T }>): T {
    const lastGood = this.#lastGood.get(record.uuid);
    let completed = record;
    for (const field of unusable) {
      const known = lastGood?.[field] ?? null;
      if (known !== null) completed = { ...completed, [field]: known };
      const taken = known === null ? "the default is used" : "the last good one stays";
      this.#standIns.add(record.uuid, `${field} is missing or not usable`, taken);
    }
    return completed;
  }

  async used(yieldToEventLoop: YieldToEventLoop): Promise<readonly T[]> {
    const used = new LargeList<T>();
    this.#without = 0;
    for (const { used: record, isLeftOut } of this.#inOrder.whole()) {
      if (record) used.push(record);
      else if (isLeftOut) this.#without++;
      await yieldToEventLoop();
    }
    return used.whole();
  }

  warnings(): readonly Warning[] {
    return [...this.#invalid.all(), ...this.#standIns.all(), ...repeatedWarnings(this.#what, this.#repeated)];
  }

  foreignWarnings(): readonly Warning[] {
    const [what, foreign] = [this.#what, this.#foreign];
    if (foreign === 0) return [];
    return [
      warning("records_foreign", `${foreign} ${what}${foreign === 1 ? "" : "s"} of another collector in the API's answer: left out`, what),
    ];
  }

  #entryOf(uuid: string): Listed<T> {
    const known = this.#listed.get(uuid);
    if (known) {
      this.#repeated.set(uuid, (this.#repeated.get(uuid) ?? 1) + 1);
      return known;
    }
    const one: Listed<T> = { used: undefined, isValid: false, isLeftOut: false };
    this.#listed.set(uuid, one);
    this.#inOrder.push(one);
    return one;
  }
}

/** Records that one sentence names. */
const MAX_NAMED = 3;

/** Sentences about records, one for all with the same reason. */
class SameReasons {
  readonly #code: WarningCode;
  readonly #what: string;
  readonly #beyond: (more: number) => string;
  readonly #byReason = new Map<string, { readonly why: string; readonly consequence: string; readonly names: string[]; count: number }>();
  #more = 0;

  constructor(code: WarningCode, what: string, beyond: (more: number) => string) {
    this.#code = code;
    this.#what = what;
    this.#beyond = beyond;
  }

  add(name: string, why: string, consequence: string): void {
    const key = `${why};${consequence}`;
    const known = this.#byReason.get(key);
    if (!known && this.#byReason.size === MAX_WARNINGS) this.#more++;
    else if (!known) this.#byReason.set(key, { why, consequence, names: [name], count: 1 });
    else {
      known.count++;
      if (known.names.length < MAX_NAMED) known.names.push(name);
    }
  }

  all(): readonly Warning[] {
    const sentences = [...this.#byReason.values()].map(({ why, consequence, names, count }) => {
      const [first = ""] = names;
      const subject =
        count === 1 ? `${this.#what} ${first}` : `${count} ${this.#what}s (${names.join(", ")}${count > MAX_NAMED ? ", …" : ""})`;
      return `${subject}: ${why}; ${count === 1 ? consequence : `of each: ${consequence}`}`;
    });
    const all = this.#more > 0 ? [...sentences, this.#beyond(this.#more)] : sentences;
    return all.map((text) => warning(this.#code, text, this.#what));
  }
}

/** What of the secrets is used. */
export interface AcceptedSecrets extends Omit<AcceptedRecords<never>, "records" | "waiting" | "leftOut"> {
  readonly secrets: Secrets;
}

const fieldsSchema = z.record(z.string(), z.string());

/** The secrets by record, each taken by itself as acceptRecords does. Pure. */
export function acceptSecrets(received: Readonly<Record<string, unknown>>, previous: Secrets): AcceptedSecrets {
  const secrets = new Map<string, Secrets[string]>();
  const listed = new Map<string, number>();
  const invalid = createBoundedWarnings("records_unusable", "secrets", (more) => `the secrets of ${more} more records are not usable`);
  let unidentified = 0;
  for (const [key, value] of Object.entries(received)) {
    const uuid = usableUuid(key);
    if (uuid === undefined) {
      unidentified++;
      continue;
    }
    const times = (listed.get(uuid) ?? 0) + 1;
    listed.set(uuid, times);
    const parsed = fieldsSchema.safeParse(value);
    const kept = parsed.success ? parsed.data : previous[uuid];
    if (kept && !secrets.has(uuid)) secrets.set(uuid, kept);
    if (!parsed.success)
      invalid.add(`the secrets of ${uuid}: text by field name is expected; ${kept ? "those known so far stay" : "they are left out"}`);
  }
  const unlisted = unidentified > 0 ? Object.entries(previous).filter(([uuid]) => !listed.has(uuid)) : [];
  return {
    secrets: Object.fromEntries([...secrets, ...unlisted]),
    warnings: [
      ...invalid.all(),
      ...repeatedWarnings("the secrets' record", listed),
      ...(unidentified > 0 ? [unidentifiedWarning("secrets' record", unidentified, "those known so far stay")] : []),
    ],
    unidentified,
    isUnusable: unidentified > 0 && listed.size === 0,
  };
}

function unidentifiedWarning(what: string, count: number, consequence: string): Warning {
  const subject = count === 1 ? `1 ${what} of the list has no usable uuid` : `${count} ${what}s of the list have no usable uuid`;
  return warning("records_unidentified", `${subject}; ${consequence}`, what);
}

function repeatedWarnings(what: string, listed: ReadonlyMap<string, number>): readonly Warning[] {
  const warnings = createBoundedWarnings("records_repeated", what, (more) => `${more} more uuids are listed several times`);
  for (const [uuid, times] of listed)
    if (times > 1) warnings.add(`${what} ${uuid} is listed ${times} times; its first usable record is used`);
  return warnings.all();
}

/** At most MAX_WARNINGS sentences, and one on how many there were beyond. */
function createBoundedWarnings(code: WarningCode, about: string, beyond: (more: number) => string) {
  const warnings: Warning[] = [];
  let more = 0;
  return {
    add(text: string): void {
      if (warnings.length < MAX_WARNINGS) warnings.push(warning(code, text, about));
      else more++;
    },
    all: (): readonly Warning[] => (more > 0 ? [...warnings, warning(code, beyond(more), about)] : warnings),
  };
}

function usableUuid(value: unknown): string | undefined {
  const parsed = uuidSchema.safeParse(value);
  return parsed.success ? parsed.data : undefined;
}

const fieldOf = (item: unknown, field: string): unknown =>
  typeof item === "object" && item !== null && Object.hasOwn(item, field) ? Reflect.get(item, field) : undefined;

const uuidOf = (item: unknown): string | undefined => usableUuid(fieldOf(item, "uuid"));

/** Of a record that does not validate; undefined: it does not say, or not in a usable way. */
const statedOwner = (item: unknown): string | undefined => usableUuid(fieldOf(item, "collector"));
