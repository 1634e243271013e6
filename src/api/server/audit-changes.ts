import { isDeepStrictEqual } from "node:util";
import { withoutCredentials } from "../../base/plain-text.ts";
import { isSecretName } from "../../lib/loggable.ts";

/** What one field of a record was and is; null: it had, or has, none. */
export interface FieldChange {
  readonly field: string;
  readonly from: string | null;
  readonly to: string | null;
}

const MAX_CHANGES = 40;
const MAX_VALUE = 200;
const HIDDEN = "(not shown)";
/** What is told elsewhere, or is not configured by people. */
const LEFT_OUT = new Set(["uuid", "readout_status", "last_readout_at", "capabilities"]);

/**
 * What distinguishes two forms of a record as they are read, in which the API holds no secret (API-V2, 2.2); undefined: it was not there,
 * or is gone. A field whose name may be that of a secret has no values all the same. Pure.
 */
export function changesBetween(before: unknown, after: unknown): readonly FieldChange[] {
  const [was, is] = [flat(before), flat(after)];
  const changes: FieldChange[] = [];
  for (const field of new Set([...was.keys(), ...is.keys()])) {
    const [from, to] = [was.get(field) ?? null, is.get(field) ?? null];
    if (from === to || isDeepStrictEqual(from, to)) continue;
    changes.push({ field, from: shownValue(field, from), to: shownValue(field, to) });
    if (changes.length === MAX_CHANGES) break;
  }
  return changes;
}

/** The name of a record; null: it has none. Pure. */
export const nameIn = (record: unknown): string | null =>
  typeof record === "object" && record !== null && "name" in record && typeof record.name === "string" ? record.name : null;

/** Fields by their names, those of `details` by their path. */
function flat(record: unknown): ReadonlyMap<string, unknown> {
  const fields = new Map<string, unknown>();
  if (typeof record !== "object" || record === null || Array.isArray(record)) return fields;
  for (const [field, value] of Object.entries(record)) {
    if (LEFT_OUT.has(field)) continue;
    if (field !== "details" || typeof value !== "object" || value === null) fields.set(field, value);
    else for (const [inner, one] of Object.entries(value)) fields.set(`details.${inner}`, one);
  }
  return fields;
}

function shownValue(field: string, value: unknown): string | null {
  if (value === null) return null;
  if (isSecretName(lastPart(field))) return HIDDEN;
  const text = withoutCredentials(typeof value === "string" ? value : JSON.stringify(value));
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
}

const lastPart = (field: string): string => field.slice(field.lastIndexOf(".") + 1);
