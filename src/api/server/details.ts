import type { z } from "zod";
import { type Details, type DetailsType, detailsCreateSchema, toReadDetails } from "../../model/details.ts";
import { detailsWithoutUser } from "../../model/endpoint-url.ts";
import { type SinkDetails, type SinkType, sinkDetailsCreateSchema, toReadSinkDetails } from "../../model/sink-details.ts";
import { passwordBoundChanges, passwordPath } from "../../model/stored-password.ts";
import { HttpProblem, invalid, validationEntries } from "./errors.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * Fields whose stored form may be one that only a read knows (API-V2, 2.2 against 2.4) or lacks its write-only part, each with a form
 * that creation accepts; undefined: creation has no such field. It is used while the other fields are validated.
 */
const STAND_INS: { readonly [T in DetailsType]?: Fields } = {
  opcua: { endpoint_url: "opc.tcp://stored", user_identity: { type: "Anonymous" } },
  vendor_gateway: { protocol_details: { protocol: "PVI", path: "" } },
  odac: { protocol_override: undefined },
  plastcontrol: { readout_mode: { type: "active" } },
  s7plus: { password: { type: "none" } },
};

/** An address is judged where it is given: a stored one that is none holds up no change of other fields. */
const HOST_STAND_IN: Fields = { host: "stored" };

/** Fields that carry a write-only secret. */
const SECRET_FIELDS: { readonly [T in DetailsType]?: string } = { opcua: "user_identity", s7plus: "password" };

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
  const standIns: Fields = stored === null ? {} : { ...HOST_STAND_IN, ...STAND_INS[stored.type] };
  const kept = Object.keys(standIns).filter((field) => !Object.hasOwn(patch, field));
  const candidate: Record<string, unknown> = { ...stored, ...patch };
  for (const field of kept) {
    if (standIns[field] === undefined) delete candidate[field];
    else candidate[field] = standIns[field];
  }
  const created = validated(detailsCreateSchema, candidate);
  const { details, secrets } = toReadDetails(created);
  const original: Fields = { ...stored };
  const merged = { ...details, ...Object.fromEntries(kept.map((field) => [field, original[field]])) };
  const secretField = SECRET_FIELDS[details.type];
  // Every field is of the read form: as toReadDetails made it, or as it was stored.
  const result = merged as Details;
  if (stored === null || secretField === undefined || !kept.includes(secretField)) return { details: result, secrets };
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

/** As STAND_INS, for data sinks: the stored users have no passwords. */
const SINK_STAND_INS: { readonly [T in SinkType]: Fields } = {
  mqtt: { ...HOST_STAND_IN, publish_interval: undefined },
  opcua: { users: [] },
  platform: { publish_interval: undefined },
};

export interface MergedSinkDetails {
  readonly details: SinkDetails;
  /** As in MergedDetails. */
  readonly secrets: Readonly<Record<string, string>> | undefined;
}

/** Works as mergeDetails does, for a data sink. A list of users replaces the stored one whole (API-V2, 4.2, PATCH rule 4). */
export function mergeSinkDetails(type: string, found: SinkDetails, patch: Fields): MergedSinkDetails {
  keepType(type, patch);
  const { details: stored } = detailsWithoutUser(found);
  const original: Fields = { ...stored };
  const standIns = SINK_STAND_INS[stored.type];
  const kept = Object.keys(standIns).filter((field) => Object.hasOwn(original, field) && !Object.hasOwn(patch, field));
  const candidate = { ...stored, ...patch, ...Object.fromEntries(kept.map((field) => [field, standIns[field]])) };
  const { details, secrets } = toReadSinkDetails(validated(sinkDetailsCreateSchema, candidate));
  const merged = { ...details, ...Object.fromEntries(kept.map((field) => [field, original[field]])) };
  const keepsSecrets = stored.type !== "opcua" || !Object.hasOwn(patch, "users");
  // Every field is of the read form: as toReadSinkDetails made it, or as it was stored.
  return { details: merged as SinkDetails, secrets: keepsSecrets ? undefined : secrets };
}

function keepType(type: string, patch: Fields): void {
  if (Object.hasOwn(patch, "type") && patch["type"] !== type)
    throw new HttpProblem(422, [
      { loc: ["body", "details", "type"], msg: `the type cannot change: it is ${type}`, type: "immutable", ctx: { expected: type } },
    ]);
}

function validated<T extends z.ZodType>(schema: T, candidate: Fields): z.output<T> {
  const parsed = schema.safeParse(candidate);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map((issue) => ({ ...issue, path: ["details", ...issue.path] }));
  throw new HttpProblem(422, validationEntries("body", issues, { details: candidate }));
}
