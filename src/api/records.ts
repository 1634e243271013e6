import type { z } from "zod";

/** What of a list is used. */
export interface AcceptedRecords<T> {
  readonly records: readonly T[];
  /** For the operator: what was kept out or replaced, and why. Nothing of a value is quoted. */
  readonly warnings: readonly string[];
}

const MAX_WARNINGS = 100;

/**
 * Takes each record of a list by itself. One that does not validate is kept out, and the last good one of its uuid stays; one of
 * another collector is dropped; one that stands twice counts once, the last time. Pure; every outcome but the good one is a warning.
 * `owner` names the collector a record belongs to; undefined where the record does not say.
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
  const records = new Map<string, T>();
  const warnings: string[] = [];
  let foreign = 0;
  let invalid = 0;
  received.forEach((item, index) => {
    const parsed = schema.safeParse(item);
    if (parsed.success) {
      const of = owner(parsed.data);
      if (of !== undefined && of !== collector) foreign++;
      else records.set(parsed.data.uuid, parsed.data);
      return;
    }
    invalid++;
    const issue = parsed.error.issues[0];
    const why = `${issue?.path.join(".") || "the record"}: ${issue?.message ?? "not valid"}`;
    const uuid = uuidOf(item);
    const kept = uuid === undefined ? undefined : lastGood.get(uuid);
    if (kept) records.set(kept.uuid, kept);
    const consequence = kept ? "its last good configuration stays" : "it is left out";
    if (warnings.length < MAX_WARNINGS) warnings.push(`${what} ${uuid ?? `number ${index + 1} of the list`}: ${why}; ${consequence}`);
  });
  const unsaid = invalid - warnings.length;
  if (unsaid > 0) warnings.push(`${unsaid} more ${what}s do not validate`);
  if (foreign > 0) warnings.push(`${foreign} ${what}${foreign === 1 ? "" : "s"} of another collector in the API's answer: left out`);
  return { records: [...records.values()], warnings };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function uuidOf(item: unknown): string | undefined {
  if (typeof item !== "object" || item === null || !("uuid" in item) || typeof item.uuid !== "string") return undefined;
  const uuid = item.uuid.toLowerCase();
  return UUID.test(uuid) ? uuid : undefined;
}
