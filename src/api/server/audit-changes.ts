import { isDeepStrictEqual } from "node:util";
import { isSecretName } from "../../lib/loggable.ts";
import { withoutCredentials } from "../../model/plain-text.ts";

/** What one field of a record was and is; null: it had, or has, none. */
export interface FieldChange {
  readonly field: string;
  readonly from: string | null;
  readonly to: string | null;
}

const MAX_CHANGES = 40;
const MAX_VALUE = 200;
/** What is told elsewhere, or is not configured by people. */
const LEFT_OUT = new Set(["uuid", "readout_status", "last_readout_at", "capabilities"]);

/**
 * What distinguishes two forms of a record as they are read, in which the API holds no secret (API-V2, 2.2); undefined: it was not there,
 * or is gone. A field whose name may be that of a secret has no values all the same. Pure.
 */
export function changesBetween(before: unknown, after: unknown): readonly FieldChange[] {
  const [was, is] = [flat(before), flat(after)];
  return [...new Set([...Object.keys(was), ...Object.keys(is)])]
    .filter((field) => !isDeepStrictEqual(was[field] ?? null, is[field] ?? null))
    .slice(0, MAX_CHANGES)
    .map((field) => ({ field, from: shownValue(field, was[field]), to: shownValue(field, is[field]) }));
}

/** The name of a record; null: it has none. Pure. */
export const nameIn = (record: unknown): string | null =>
  typeof record === "object" && record !== null && "name" in record && typeof record.name === "string" ? record.name : null;

/** Fields by their names, those of `details` by their path. */
function flat(record: unknown): Readonly<Record<string, unknown>> {
  if (typeof record !== "object" || record === null || Array.isArray(record)) return {};
  return Object.fromEntries(
    Object.entries(record)
      .filter(([field]) => !LEFT_OUT.has(field))
      .flatMap(([field, value]): (readonly [string, unknown])[] =>
        field === "details" && typeof value === "object" && value !== null
          ? Object.entries(value).map(([inner, one]) => [`details.${inner}`, one] as const)
          : [[field, value] as const],
      ),
  );
}

function shownValue(field: string, value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (isSecretName(field.slice(field.lastIndexOf(".") + 1))) return "(not shown)";
  const text = withoutCredentials(typeof value === "string" ? value : JSON.stringify(value));
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
}
