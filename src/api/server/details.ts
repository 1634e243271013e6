import * as z from "zod";
import { DETAILS, type Details, detailsCreateSchema, toReadDetails } from "../../model/details.ts";
import { detailsWithoutUser } from "../../model/endpoint-url.ts";
import { SINK_DETAILS, type SinkDetails, sinkDetailsCreateSchema, toReadSinkDetails } from "../../model/sink-details.ts";
import { PASSWORD_FIELD, passwordBoundChanges, passwordPath } from "../../model/stored-password.ts";
import { HttpProblem, invalid, validationEntries } from "./errors.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface StoredDetails {
  readonly type: string;
  readonly details: Details | null;
  /** True: their password is stored here: an imported record has none, and this machine's own secrets are not the API's. */
  readonly hasPassword: boolean;
}

export interface MergedDetails {
  readonly details: Details;
  /** Those to store instead of what was stored; undefined: what was stored stays. */
  readonly secrets: Readonly<Record<string, string>> | undefined;
}

/**
 * `details` of a PATCH over the stored ones: own fields replace, objects inside are replaced whole, absent fields and secrets stay, and
 * the merged record is validated as a creation (design/api-decisions). The type cannot change, nor where a stored password goes without that password.
 * Throws HttpProblem 422.
 */
export function mergeDetails({ type, details: found, hasPassword }: StoredDetails, patch: Fields): MergedDetails {
  keepType(type, patch);
  const { details: stored } = detailsWithoutUser(found);
  const { created, kept } = merged(detailsCreateSchema, stored === null ? {} : { schema: DETAILS[stored.type].create, stored }, patch);
  const { details, secrets } = toReadDetails(created);
  // Every field is of the read form: as toReadDetails made it, or as it was stored.
  const result = { ...details, ...kept } as Details;
  const secretField = PASSWORD_FIELD[details.type];
  if (stored === null || secretField === undefined || !Object.hasOwn(kept, secretField)) return { details: result, secrets };
  if (hasPassword) requirePassword(stored, result);
  return { details: result, secrets: undefined };
}

/** A stored password follows no change of where it goes, as whom and how protected: who makes one may not know it (design/api-decisions). */
function requirePassword(stored: Details, merged: Details): void {
  const changed = passwordBoundChanges(stored, merged);
  const path = passwordPath(stored);
  if (changed.length === 0 || path === undefined) return;
  throw invalid({
    loc: ["body", "details", ...path],
    msg: `send the password too, or remove it: the stored one does not follow a change of ${changed.join(", ")}`,
    type: "password_required",
    ctx: { changed },
  });
}

export interface MergedSinkDetails {
  readonly details: SinkDetails;
  /** As in MergedDetails. */
  readonly secrets: Readonly<Record<string, string>> | undefined;
}

/** Works as mergeDetails does, for a data sink. A list of users replaces the stored one whole (API-V2, 4.2, PATCH rule 4). */
export function mergeSinkDetails(type: string, found: SinkDetails, patch: Fields): MergedSinkDetails {
  keepType(type, patch);
  const { details: stored } = detailsWithoutUser(found);
  const { created, kept } = merged(sinkDetailsCreateSchema, { schema: SINK_DETAILS[stored.type].create, stored }, patch);
  const { details, secrets } = toReadSinkDetails(created);
  const keepsSecrets = stored.type !== "opcua" || !Object.hasOwn(patch, "users");
  // Every field is of the read form: as toReadSinkDetails made it, or as it was stored.
  return { details: { ...details, ...kept } as SinkDetails, secrets: keepsSecrets ? undefined : secrets };
}

function keepType(type: string, patch: Fields): void {
  if (Object.hasOwn(patch, "type") && patch["type"] !== type)
    throw new HttpProblem(422, [
      { loc: ["body", "details", "type"], msg: `the type cannot change: it is ${type}`, type: "immutable", ctx: { expected: type } },
    ]);
}

/** A stored record with the schema of its creation; empty: nothing is stored. */
type Before = { readonly schema: z.ZodObject; readonly stored: Fields } | { readonly schema?: never; readonly stored?: never };

/**
 * `patch` over what is stored, as a creation. A stored field that creation would not take so (a form that only a read knows, a password that is
 * write-only, an address that was never judged) is `kept` as it is: it holds up no change of other fields (API-V2, 2.2 against 2.4).
 */
function merged<T extends z.ZodType>(
  creation: T,
  { schema, stored = {} }: Before,
  patch: Fields,
): { readonly created: z.output<T>; readonly kept: Fields } {
  const isTaken = (field: string, value: unknown): boolean => schema?.shape[field]?.safeParse(value).success === true;
  const isKept = ([field, value]: readonly [string, unknown]): boolean => !Object.hasOwn(patch, field) && !isTaken(field, value);
  const kept = Object.fromEntries(Object.entries(stored).filter(isKept));
  const others = Object.fromEntries(Object.entries(stored).filter(([field]) => !Object.hasOwn(kept, field)));
  const standing = Object.keys(kept).filter((field) => schema && Object.hasOwn(schema.shape, field));
  if (!schema || standing.length === 0) return { created: validated(creation, { ...others, ...patch }), kept };
  const lenient = schema.safeExtend(Object.fromEntries(standing.map((field) => [field, z.unknown()])));
  const created = validated(lenient, { ...others, ...Object.fromEntries(standing.map((field) => [field, kept[field]])), ...patch });
  return { created: created as z.output<T>, kept };
}

function validated<T extends z.ZodType>(schema: T, candidate: Fields): z.output<T> {
  const parsed = schema.safeParse(candidate);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map((issue) => ({ ...issue, path: ["details", ...issue.path] }));
  throw new HttpProblem(422, validationEntries("body", issues, { details: candidate }));
}
