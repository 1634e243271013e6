import type { DataSink, DataSource } from "../model/resources.ts";
import { placeChanges, secretPlace } from "../model/secret-place.ts";
import type { Desired, Secrets } from "./desired.ts";

type Records = Pick<Desired, "sources" | "sinks">;

/**
 * Of the secrets known so far those of records that are where they were: what is not given again belongs to where it was given for. The same
 * object where that is all of them. Pure.
 */
export function keptSecrets(previous: (Records & Pick<Desired, "secrets">) | null, now: Records): Secrets {
  const known = previous?.secrets ?? {};
  if (!previous || Object.keys(known).length === 0) return known;
  const before = byUuid(previous);
  const after = byUuid(now);
  const kept = Object.entries(known).filter(([uuid]) => isSamePlace(before.get(uuid), after.get(uuid)));
  return kept.length === Object.keys(known).length ? known : Object.fromEntries(kept);
}

type OneRecord = DataSource | DataSink;

const byUuid = ({ sources, sinks }: Records): ReadonlyMap<string, OneRecord> =>
  new Map([...sources, ...sinks].map((one) => [one.uuid, one]));

function isSamePlace(before: OneRecord | undefined, now: OneRecord | undefined): boolean {
  if (!before || !now) return false;
  const [from, to] = [secretPlace(before.details), secretPlace(now.details)];
  return before === now || !to || (from !== undefined && placeChanges(from, to).length === 0);
}
