import path from "node:path";
import * as z from "zod";
import { readJsonIfThere, replaceFile } from "../lib/files.ts";
import { isWithin } from "../lib/policy.ts";
import type { Log } from "../model/context.ts";
import { endpointParts } from "../model/endpoint-url.ts";
import { messageOf } from "../model/failure.ts";
import { isAddressField, placeChanges, placeWords, type SecretPlace, secretPlaceSchema } from "../model/secret-place.ts";
import { confirmCommand, type Entry } from "./credentials.ts";

/** The place where each secret of this machine is used: by the name of the secret, then by the uuid of the record. */
export type SecretPlaces = ReadonlyMap<string, ReadonlyMap<string, SecretPlace>>;

/** One record that a secret of this machine is for. */
export interface SecretUse extends Entry {
  /** The name of the secret: the key that it is kept under, or the place in the settings that names its file. */
  readonly secret: string;
  readonly place: SecretPlace;
  /** Within which the address may change by itself. */
  readonly networks: readonly string[];
}

/** A use that the secret is not given to: the configuration has moved it, and nobody on this machine has confirmed that. */
export interface WithheldSecret extends Entry {
  readonly secret: string;
  readonly was: SecretPlace;
  readonly now: SecretPlace;
  /** Fields of the details, as paths with dots. */
  readonly changed: readonly string[];
}

export interface JudgedSecrets {
  /** The same object where nothing has changed. */
  readonly places: SecretPlaces;
  /** By uuid of the record. */
  readonly withheld: ReadonlyMap<string, WithheldSecret>;
}

/** Records that one secret is bound to; of more the oldest go, which then have to be where another one is. */
const MAX_RECORDS = 64;
const MAX_SECRETS = 2000;
const MAX_FILE_BYTES = 64 * 2 ** 20;

/**
 * Binds each secret to where it is used first, and says which uses are elsewhere: at another address, as another user, or less protected. Who
 * edits the configuration cannot have a secret of this machine sent to themselves. A record that is created again, under another uuid, gets
 * the secret where it was; so does another one that the secret is for by its name. Pure.
 */
export function judgeSecrets(uses: readonly SecretUse[], bound: SecretPlaces): JudgedSecrets {
  let changed: Map<string, ReadonlyMap<string, SecretPlace>> | undefined;
  const withheld = new Map<string, WithheldSecret>();
  for (const { uuid, name, secret, place, networks } of uses) {
    const known = (changed ?? bound).get(secret);
    const own = known?.get(uuid);
    const candidates = own ? [own] : [...(known?.values() ?? [])];
    const [first] = candidates;
    const fitting = candidates.find((before) => placeChanges(before, place).every((field) => isOpen(field, place, networks)));
    if (first === undefined || fitting) {
      if (own && isSamePlace(own, place)) continue;
      changed ??= new Map(bound);
      bind(changed, { uuid, secret, place });
    } else withheld.set(uuid, { uuid, name, secret, was: first, now: place, changed: placeChanges(first, place) });
  }
  return { places: changed ?? bound, withheld };
}

/** True: networks of the settings open the change of this field. Names are judged nowhere: a name can lead anywhere. */
function isOpen(field: string, { host, endpoint_url: url }: SecretPlace, networks: readonly string[]): boolean {
  if (!isAddressField(field) || networks.length === 0) return false;
  const named = field === "host" ? host : endpointParts(url ?? "")?.host;
  return named !== undefined && isWithin(networks, named);
}

type Binding = Pick<SecretUse, "uuid" | "secret" | "place">;

/** As a person confirms it, or as it is used first. Pure. */
export const withPlace = (places: SecretPlaces, binding: Binding): SecretPlaces => bind(new Map(places), binding);

const isSamePlace = (one: SecretPlace, other: SecretPlace): boolean =>
  placeChanges(one, other).length === 0 && placeChanges(other, one).length === 0;

/** In place, the newest last; beyond the bounds the oldest go. */
function bind(places: Map<string, ReadonlyMap<string, SecretPlace>>, { uuid, secret, place }: Binding): SecretPlaces {
  const records = new Map(places.get(secret));
  records.delete(uuid);
  records.set(uuid, place);
  places.delete(secret);
  places.set(secret, withoutOldest(records, MAX_RECORDS));
  return withoutOldest(places, MAX_SECRETS);
}

function withoutOldest<V>(map: Map<string, V>, most: number): Map<string, V> {
  for (const key of map.keys()) {
    if (map.size <= most) break;
    map.delete(key);
  }
  return map;
}

/** A secret that is set again, or removed, is bound to nothing. Pure. */
export const withoutSecret = (places: SecretPlaces, secret: string): SecretPlaces =>
  places.has(secret) ? new Map([...places].filter(([other]) => other !== secret)) : places;

/** For status: what is withheld from where, and the command that confirms the change. Pure. */
export const withheldWords = (withheld: WithheldSecret): string =>
  `the password of this machine is for ${placeWords(withheld.was)} and is withheld from ${placeWords(withheld.now)} ` +
  `(changed: ${withheld.changed.join(", ")}); if the change is right, type \`${confirmCommand(withheld)}\``;

/** The place where the collector keeps them. */
export const secretPlacesFile = (stateDir: string): string => path.join(stateDir, "secret-places.json");

const fileSchema = z.strictObject({
  version: z.literal(1),
  places: z.record(z.string(), z.record(z.string(), secretPlaceSchema)),
});

/** Throws Error where it is there and cannot be used. */
export function readSecretPlaces(file: string): SecretPlaces {
  const content = readJsonIfThere(file, MAX_FILE_BYTES, fileSchema);
  return new Map(Object.entries(content?.places ?? {}).map(([secret, records]) => [secret, new Map(Object.entries(records))]));
}

/** The places of the secrets in a file of the state folder: kept over restarts. */
export class SecretPlacesFile {
  readonly #file: string;
  readonly #log: Log;
  #places: SecretPlaces;
  #isSaved = true;

  /** A file that cannot be used is logged: secrets are bound to where they are used now. Never throws. */
  constructor(file: string, log: Log) {
    this.#file = file;
    this.#log = log;
    try {
      this.#places = readSecretPlaces(file);
    } catch (error) {
      this.#places = new Map();
      log.error(
        { file },
        `the file that binds secrets to addresses is unreadable: ${messageOf(error)}; bound again to the current addresses`,
      );
    }
  }

  get places(): SecretPlaces {
    return this.#places;
  }

  /** A disk that is full costs the restart what it would have known, not the run. Never throws. */
  use(places: SecretPlaces): void {
    if (places === this.#places && this.#isSaved) return;
    this.#places = places;
    const content = Object.fromEntries([...places].map(([secret, records]) => [secret, Object.fromEntries(records)]));
    try {
      replaceFile(this.#file, JSON.stringify({ version: 1, places: content }));
      this.#isSaved = true;
    } catch (error) {
      if (this.#isSaved)
        this.#log.error({ file: this.#file, err: error }, "where the secrets of this machine are used cannot be kept on disk");
      this.#isSaved = false;
    }
  }
}
