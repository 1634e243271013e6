import { readFileSync } from "node:fs";
import { extname } from "node:path";
import * as z from "zod";
import { replaceFile } from "../lib/files.ts";

export interface FolderClock {
  /** Never steps. */
  monotonicMs(): number;
  /** Of the clock that files are stamped with. */
  epochMs(): number;
}

/** The variables file of a data source. */
export interface Owned {
  /** Name of the file that the source uses, or used last. */
  readonly file: string;
  /** Uuids of the sources that this file fitted as well while its owner had it, in the order in which they came. */
  readonly namesakes: readonly string[];
  /** Since when the source is not configured or has no file, monotonic ms; absent: it is and it has. */
  readonly awaySinceMs?: number;
}

/** By the uuid of the data source. */
export type Owners = ReadonlyMap<string, Owned>;

/** A source that left the configuration by mistake, or a file that was moved away, is back within a day. */
export const KEPT_AWAY_MS = 24 * 3_600_000;
const MAX_NAMESAKES = 100;

/** What a look found. */
export interface OwnersLook {
  /** The sources that have a file, by uuid: the one that they use, or undefined where they use none of it yet. */
  readonly present: ReadonlyMap<string, string | undefined>;
  /** By the uuid of the owner: the other sources that its file fits. */
  readonly namesakes: ReadonlyMap<string, readonly string[]>;
  readonly nowMs: number;
}

/** A name in the letters that names are compared in: upper case counts, but not in a uuid. */
export function nameKey(name: string): string {
  // A file name from another system may hold the same letters composed in another way.
  const composed = name.normalize("NFC");
  return /^[0-9a-f-]{36}$/i.test(composed) ? composed.toLowerCase() : composed;
}

/** What a file's name says without its extension. */
export const stemOf = (file: string): string => nameKey(file.slice(0, file.length - extname(file).length));

/**
 * The owners after a look. A file stays its source's for a day while the source or the file is away, unless another source took it. The same
 * object where nothing has changed. Pure.
 */
export function nextOwners(before: Owners, { present, namesakes, nowMs }: OwnersLook): Owners {
  const users = new Map([...present].flatMap(([uuid, file]) => (file === undefined ? [] : [[stemOf(file), uuid] as const])));
  const next = new Map<string, Owned>();
  let isSame = true;
  for (const [uuid, owned] of before) {
    if (present.has(uuid)) continue;
    const { awaySinceMs } = owned;
    if (awaySinceMs === undefined) isSame = false;
    if (users.has(stemOf(owned.file)) || (awaySinceMs !== undefined && nowMs - awaySinceMs >= KEPT_AWAY_MS)) isSame = false;
    else next.set(uuid, awaySinceMs === undefined ? { ...owned, awaySinceMs: nowMs } : owned);
  }
  for (const [uuid, used] of present) {
    const had = before.get(uuid);
    const file = used ?? had?.file;
    if (file === undefined) continue;
    const known = had && stemOf(had.file) === stemOf(file) ? had.namesakes : [];
    const more = (namesakes.get(uuid) ?? []).filter((one) => !known.includes(one));
    const isLikeBefore = had?.file === file && had.awaySinceMs === undefined && more.length === 0;
    if (!isLikeBefore) isSame = false;
    next.set(uuid, isLikeBefore ? had : { file, namesakes: [...known, ...more].slice(-MAX_NAMESAKES) });
  }
  return isSame ? before : next;
}

const ownedSchema = z.object({ file: z.string(), namesakes: z.array(z.string()).readonly().default([]), awaySince: z.number().optional() });
/** Also as it was written once: the uuid by the name of the file. */
const ownersSchema = z.record(z.string(), z.union([ownedSchema, z.string()]));

/** The owners in a small file, over restarts. A file that cannot be read or written costs that alone. */
export class FileOwners {
  readonly #file: string | undefined;
  readonly #clock: FolderClock;
  #owners: Owners | undefined;

  /** `file` undefined: nothing is kept over a restart. */
  constructor(file: string | undefined, clock: FolderClock) {
    this.#file = file;
    this.#clock = clock;
  }

  /** Read when they are needed first: until then a folder that this one replaces may write them. */
  get owners(): Owners {
    this.#owners ??= this.#file === undefined ? new Map() : read(this.#file, this.#clock);
    return this.#owners;
  }

  keep(owners: Owners): void {
    if (owners === this.owners) return;
    this.#owners = owners;
    if (this.#file === undefined) return;
    const startedMs = this.#clock.epochMs() - this.#clock.monotonicMs();
    const written = [...owners].map(([uuid, { awaySinceMs, ...owned }]): [string, z.input<typeof ownedSchema>] => [
      uuid,
      { ...owned, ...(awaySinceMs !== undefined && { awaySince: Math.round(startedMs + awaySinceMs) }) },
    ]);
    try {
      replaceFile(this.#file, JSON.stringify(Object.fromEntries(written)), { mode: 0o640 });
    } catch {
      // After a restart a file that fits several sources is nobody's, which its sources say.
    }
  }
}

function read(file: string, clock: FolderClock): Owners {
  const startedMs = clock.epochMs() - clock.monotonicMs();
  try {
    return new Map(
      Object.entries(ownersSchema.parse(JSON.parse(readFileSync(file, "utf8")))).map(([key, owned]): [string, Owned] => {
        if (typeof owned === "string") return [owned, { file: key, namesakes: [] }];
        const { awaySince, ...rest } = owned;
        // By a clock that was set back since then the day begins now.
        const awaySinceMs = awaySince === undefined ? undefined : Math.min(awaySince - startedMs, clock.monotonicMs());
        return [key, { ...rest, ...(awaySinceMs !== undefined && { awaySinceMs }) }];
      }),
    );
  } catch {
    return new Map();
  }
}
