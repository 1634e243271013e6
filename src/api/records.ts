import * as z from "zod";
import { uuidSchema } from "../model/uuid.ts";
import type { Secrets } from "./desired.ts";

/** What of a list is used. */
export interface AcceptedRecords<T> {
  readonly records: readonly T[];
  /** For the operator: what was kept out or replaced, and why. Nothing of a value is quoted. */
  readonly warnings: readonly string[];
  /** Records without a usable uuid: which ones they are cannot be known, so their list removes nothing. */
  readonly unidentified: number;
  /** Records arrived, and none of them has a usable uuid: this is no list of records. */
  readonly isUnusable: boolean;
}

const MAX_WARNINGS = 100;

/**
 * Takes each record of a list by itself. One that does not validate is kept out, and the last good one of its uuid stays; one of another
 * collector is dropped; of a uuid that is listed several times the first record that validates is used. With a record that has no usable
 * uuid nothing of `previous` is removed. Pure; every outcome but the good one is a warning. `owner` names the collector a record belongs
 * to; undefined where the record does not say.
 */
export function acceptRecords<T extends { readonly uuid: string }>(input: {
  /** Singular, for the warnings: `data source`. */
  readonly what: string;
  readonly received: readonly unknown[];
  readonly schema: z.ZodType<T>;
  readonly previous: readonly T[];
  readonly collector: string;
  readonly owner: (record: T) => string | undefined;
}): AcceptedRecords<T> {
  const { what, received, schema, previous, collector, owner } = input;
  const lastGood = new Map(previous.map((record) => [record.uuid, record]));
  /** By uuid in the order of the list; undefined: no record of it is used. */
  const records = new Map<string, T | undefined>();
  const valid = new Set<string>();
  const listed = new Map<string, number>();
  const invalid = createBoundedWarnings((more) => `${more} more ${what}s do not validate`);
  let unidentified = 0;
  let foreign = 0;
  received.forEach((item, index) => {
    const uuid = uuidOf(item);
    if (uuid === undefined) unidentified++;
    else listed.set(uuid, (listed.get(uuid) ?? 0) + 1);
    const parsed = schema.safeParse(item);
    const of = parsed.success ? owner(parsed.data) : statedOwner(item);
    if (uuid !== undefined && of !== undefined && of !== collector) {
      foreign++;
      if (!records.has(uuid)) records.set(uuid, undefined);
    } else if (parsed.success) {
      if (!valid.has(parsed.data.uuid)) records.set(parsed.data.uuid, parsed.data);
      valid.add(parsed.data.uuid);
    } else {
      const kept = uuid === undefined ? undefined : lastGood.get(uuid);
      if (uuid !== undefined && !valid.has(uuid)) records.set(uuid, kept);
      const issue = parsed.error.issues[0];
      const why = `${issue?.path.join(".") || "the record"}: ${issue?.message ?? "not valid"}`;
      const consequence = kept ? "its last good configuration stays" : "it is left out";
      invalid.add(`${what} ${uuid ?? `number ${index + 1} of the list`}: ${why}; ${consequence}`);
    }
  });
  const unlisted = unidentified > 0 ? previous.filter(({ uuid }) => !listed.has(uuid)) : [];
  return {
    records: [...[...records.values()].filter((record) => record !== undefined), ...unlisted],
    warnings: [
      ...invalid.all(),
      ...repeatedWarnings(what, listed),
      ...(unidentified > 0
        ? [`${unidentifiedWords(what, unidentified)}; nothing is removed: ${unlisted.length} that the list does not name stay`]
        : []),
      ...(foreign > 0 ? [`${foreign} ${what}${foreign === 1 ? "" : "s"} of another collector in the API's answer: left out`] : []),
    ],
    unidentified,
    isUnusable: received.length > 0 && unidentified === received.length,
  };
}

/** What of the secrets is used. */
export interface AcceptedSecrets {
  readonly secrets: Secrets;
  /** Names records and fields, never a value. */
  readonly warnings: readonly string[];
  readonly unidentified: number;
  readonly isUnusable: boolean;
}

const fieldsSchema = z.record(z.string(), z.string());

/** The secrets by record, each taken by itself as acceptRecords does. Pure. */
export function acceptSecrets(received: Readonly<Record<string, unknown>>, previous: Secrets): AcceptedSecrets {
  const secrets = new Map<string, Secrets[string]>();
  const listed = new Map<string, number>();
  const invalid = createBoundedWarnings((more) => `the secrets of ${more} more records are not usable`);
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
      ...(unidentified > 0 ? [`${unidentifiedWords("secrets' record", unidentified)}; those known so far stay`] : []),
    ],
    unidentified,
    isUnusable: unidentified > 0 && listed.size === 0,
  };
}

const unidentifiedWords = (what: string, count: number): string =>
  count === 1 ? `1 ${what} of the list has no usable uuid` : `${count} ${what}s of the list have no usable uuid`;

function repeatedWarnings(what: string, listed: ReadonlyMap<string, number>): readonly string[] {
  const warnings = createBoundedWarnings((more) => `${more} more uuids are listed several times`);
  for (const [uuid, times] of listed)
    if (times > 1) warnings.add(`${what} ${uuid} is listed ${times} times; its first usable record is used`);
  return warnings.all();
}

/** At most MAX_WARNINGS sentences, and one on how many there were beyond. */
function createBoundedWarnings(beyond: (more: number) => string) {
  const warnings: string[] = [];
  let more = 0;
  return {
    add(warning: string): void {
      if (warnings.length < MAX_WARNINGS) warnings.push(warning);
      else more++;
    },
    all: (): readonly string[] => (more > 0 ? [...warnings, beyond(more)] : warnings),
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
