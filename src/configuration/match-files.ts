import { nameKey, type Owners, stemOf } from "./file-owners.ts";

export interface SourceName {
  readonly uuid: string;
  readonly name: string;
}

/** Which data source has which of the files. */
export interface AssignedFiles {
  /** By source uuid: the names of its files. */
  readonly files: ReadonlyMap<string, readonly string[]>;
  readonly unmatched: readonly string[];
  /** Of files that fit more sources than the one that has them: said to each source that is concerned. */
  readonly problems: readonly { readonly file: string; readonly source: string; readonly message: string }[];
  /** By the uuid of an owner: the other sources that its file fits. */
  readonly namesakes: ReadonlyMap<string, readonly string[]>;
}

/**
 * Gives each file to the data source whose uuid or name it has. Where it fits several, it is its owner's, or nobody's. While its owner is
 * not configured, a source that was configured beside the owner does not get it: it would read the addresses of another machine. One that
 * came after the owner had gone does, because that is how a source is created again. Pure.
 */
export function assignFiles(files: readonly string[], sources: readonly SourceName[], owners: Owners): AssignedFiles {
  const byKey = keysOf(sources);
  const isListed = new Set(sources.map(({ uuid }) => uuid));
  const absentOwners = new Map([...owners].filter(([uuid]) => !isListed.has(uuid)).map(([uuid, { file }]) => [stemOf(file), uuid]));
  const given = new Map<string, string[]>();
  const unmatched: string[] = [];
  const problems: { file: string; source: string; message: string }[] = [];
  const namesakes = new Map<string, readonly string[]>();
  for (const file of files) {
    const stem = stemOf(file);
    const fitting = byKey.get(stem) ?? [];
    const [first] = fitting;
    if (!first) {
      unmatched.push(file);
      continue;
    }
    const owner = ownerOf(stem, fitting, owners);
    const absent = owner ? undefined : absentOwners.get(stem);
    const isFree = absent === undefined || !owners.get(absent)?.namesakes.includes(first.uuid);
    const user = owner ?? (fitting.length === 1 && isFree ? first : undefined);
    if (user) given.set(user.uuid, [...(given.get(user.uuid) ?? []), file]);
    if (user && fitting.length === 1) continue;
    const message = disputedWords(fitting, owner?.uuid, absent);
    problems.push(...fitting.map(({ uuid }) => ({ file, source: uuid, message })));
    if (owner)
      namesakes.set(
        owner.uuid,
        fitting.map(({ uuid }) => uuid).filter((uuid) => uuid !== owner.uuid),
      );
  }
  return { files: given, unmatched, problems, namesakes };
}

function keysOf(sources: readonly SourceName[]): ReadonlyMap<string, readonly SourceName[]> {
  const byKey = new Map<string, SourceName[]>();
  const enter = (key: string, source: SourceName): void => {
    const there = byKey.get(key);
    if (!there) byKey.set(key, [source]);
    else if (!there.includes(source)) there.push(source);
  };
  for (const source of sources) {
    enter(nameKey(source.uuid), source);
    enter(nameKey(source.name), source);
  }
  return byKey;
}

/** Who uses it now comes before who used it last. */
function ownerOf(stem: string, fitting: readonly SourceName[], owners: Owners): SourceName | undefined {
  const had = fitting.filter(({ uuid }) => {
    const owned = owners.get(uuid);
    return owned !== undefined && stemOf(owned.file) === stem;
  });
  return had.find(({ uuid }) => owners.get(uuid)?.awaySinceMs === undefined) ?? had[0];
}

function disputedWords(fitting: readonly SourceName[], owner: string | undefined, absent: string | undefined): string {
  const named = fitting.map(({ uuid, name }) => `${name} (${uuid})`).join(" and ");
  const fits = fitting.length === 1 ? `fits ${named}` : `fits several data sources: ${named}`;
  const kept = absent === undefined ? "it is not used" : `it is kept for ${absent}, which had it and is not configured now`;
  const consequence = owner === undefined ? kept : `it stays with ${owner}, which had it`;
  return `${fits}; ${consequence}; name the file by the uuid of the one that is meant`;
}
