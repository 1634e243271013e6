import { type Dirent, readdirSync } from "node:fs";
import { extname, join } from "node:path";
import { LargeList } from "../base/large-list.ts";
import { createYielder, type YieldToEventLoop } from "../base/timer.ts";
import { readBoundedFileInPieces } from "../lib/bounded-file.ts";
import { errorCode, messageOf } from "../model/failure.ts";
import type { Variable, VariableInput } from "../model/variable.ts";
import { endsLine, isBrokenOff } from "./broken-off.ts";
import { FileOwners, type FolderClock, nextOwners, type Owners } from "./file-owners.ts";
import { type FileStamp, stampOf } from "./file-stamp.ts";
import { KeptFiles } from "./kept-files.ts";
import { type AssignedFiles, assignFiles, type SourceName } from "./match-files.ts";
import { uuidV5 } from "./uuid-v5.ts";
import { type LineProblem, type ParsedVariables, parseVariableCsvInSlices, parseVariableYaml } from "./variable-file.ts";

interface Format {
  readonly maxBytes: number;
  parse(bytes: Uint8Array, yieldToEventLoop: YieldToEventLoop): ParsedVariables | Promise<ParsedVariables>;
}

/** YAML takes some ten times the time of CSV, in one go. */
const FORMATS: Readonly<Record<string, Format>> = {
  ".csv": { maxBytes: 10 * 1024 * 1024, parse: parseVariableCsvInSlices },
  ".yaml": { maxBytes: 1024 * 1024, parse: (bytes) => parseVariableYaml(bytes) },
  ".yml": { maxBytes: 1024 * 1024, parse: (bytes) => parseVariableYaml(bytes) },
};
const MAX_FILES = 10_000;
/** A file is taken when it has been the same for so long: a little less than the time between two looks. */
const STILL_MS = 1500;
/** At the first look, for a file that was written long before it: the start is not to wait for long. */
const STILL_AT_START_MS = 250;
/** At the first look a file that has not changed for so long is taken at once. Much more than the clock of a file server is off. */
const UNCHANGED_MS = 600_000;
/** A file that changes for longer than this is named in the status of its source. */
const CHANGING_NAMED_MS = 10_000;
/** Copies of what was taken are made for so long in one look: the disk does not hold up what is to run. */
const COPYING_MS = 200;

export interface VariableFileProblem {
  /** Absolute path of the file, or of the folder. */
  readonly file: string;
  /** From 1; absent where the whole file is meant. */
  readonly line?: number;
  /** The data source that is concerned, where it is clear. */
  readonly source?: string;
  readonly message: string;
}

export interface VariableFiles {
  /**
   * By data source uuid: a source that is listed has a local file, which wins over the API, whatever is left of it.
   * The uuid of each variable is the version 5 UUID of its name in the name space of its source.
   */
  readonly bySource: ReadonlyMap<string, { readonly variables: readonly Variable[]; readonly file: string }>;
  readonly problems: readonly VariableFileProblem[];
}

/** A file as the looks have found it. */
interface Watched {
  readonly stamp: string;
  /** When the stamp was first seen, monotonic ms. */
  readonly sinceMs: number;
  /** How long it has to stay. */
  readonly stillMs: number;
  /** Since when it changes without having been still in between, monotonic ms. */
  readonly changingSinceMs: number;
  /** It was there and is not found. */
  readonly isAbsent: boolean;
}

/** What a look found, before it is the result. */
interface LookedUp {
  readonly bySource: ReadonlyMap<string, Held>;
  readonly problems: readonly VariableFileProblem[];
  readonly namesakes: AssignedFiles["namesakes"];
}

/** What a source has of its file. */
interface Held {
  readonly file: string;
  /** Of the file when it was read. */
  readonly stamp: string;
  readonly variables: readonly Variable[];
  readonly problems: ParsedVariables["problems"];
}

/**
 * The local variables of each data source: the files `<data source uuid or name>.csv`, `.yaml` or `.yml` of a folder (design/api-decisions). They are
 * found by comparing with the folder's listing, never by building a path from a name. A file is taken when its stamp (inode, size, times)
 * has stayed the same from one look to the next, and gone when it stays away that long. What can be used no more (emptied, without its
 * first line, broken off, not readable, fitting two sources) leaves its source the last good variables and is reported, over restarts too. An absent folder is an empty one.
 * Nothing here throws. Looks go by slices and one after the other: who calls `look` or `watch` waits for the one before.
 */
export class VariableFolder {
  readonly #folder: string;
  readonly #clock: FolderClock;
  readonly #owners: FileOwners;
  readonly #kept: KeptFiles;
  readonly #watched = new Map<string, Watched>();
  /** By source uuid. */
  readonly #held = new Map<string, Held>();
  /** Sources of the last look that had no file: what the API says of them is at work. */
  #withoutFile: ReadonlySet<string> = new Set();
  #listing: ReturnType<typeof list> = { files: [], problems: [], isUnreadable: false };
  #assigned:
    | { readonly names: string; readonly sources: readonly SourceName[]; readonly owners: Owners; readonly found: AssignedFiles }
    | undefined;
  #firstLookMs: number | undefined;
  #signature: string | undefined;
  #result: VariableFiles = { bySource: new Map(), problems: [] };

  /** `ownersFile`: what is kept over restarts (FileOwners), with the folder of KeptFiles beside it; undefined: nothing is. */
  constructor(folder: string, clock: FolderClock, ownersFile?: string) {
    this.#folder = folder;
    this.#clock = clock;
    this.#owners = new FileOwners(ownersFile, clock);
    this.#kept = new KeptFiles(ownersFile === undefined ? undefined : `${ownersFile.replace(/\.json$/, "")}-last-good`);
  }

  /** Notes the stamps of all files, whichever sources they are for. */
  async watch(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const isFirst = this.#firstLookMs === undefined;
    this.#firstLookMs ??= nowMs;
    this.#listing = list(this.#folder);
    const { files, isUnreadable } = this.#listing;
    // A folder that cannot be read says nothing of its files.
    if (isUnreadable) return;
    const yieldToEventLoop = createYielder();
    const found = new Map<string, ReturnType<typeof stampOf>>();
    for (const name of files) {
      found.set(name, stampOf(join(this.#folder, name)));
      await yieldToEventLoop();
    }
    for (const name of new Set([...this.#watched.keys(), ...found.keys()])) {
      const known = this.#watched.get(name);
      const now = found.get(name);
      if (known && known.stamp === (now?.text ?? "absent")) {
        if (known.isAbsent && this.#isStill(known)) this.#watched.delete(name);
        continue;
      }
      this.#watched.set(name, {
        stamp: now?.text ?? "absent",
        sinceMs: nowMs,
        stillMs: isFirst && now ? stillAtStartMs(now, this.#clock.epochMs()) : STILL_MS,
        changingSinceMs: known && !this.#isStill(known) ? known.changingSinceMs : nowMs,
        isAbsent: now === undefined,
      });
    }
  }

  /** How long until files that were there at the first look can be taken, in ms; 0: there is nothing to wait for. */
  startWaitMs(): number {
    const nowMs = this.#clock.monotonicMs();
    const waits = [...this.#watched.values()].map(({ sinceMs, stillMs }) =>
      stillMs === STILL_AT_START_MS ? Math.max(0, sinceMs + stillMs - nowMs) : 0,
    );
    return waits.reduce((longest, wait) => Math.max(longest, wait), 0);
  }

  /** How long until every file of the last look has stayed the same for long enough to be taken, in ms; those that go on changing count too. */
  stillInMs(): number {
    const nowMs = this.#clock.monotonicMs();
    return [...this.#watched.values()].reduce((longest, { sinceMs }) => Math.max(longest, sinceMs + STILL_MS - nowMs), 0);
  }

  /** The variables as they are to be used now; the same object as long as nothing has changed. */
  async look(sources: readonly SourceName[]): Promise<VariableFiles> {
    await this.watch();
    const { files, unmatched, problems: disputed, namesakes } = this.#assign(sources);
    const bySource = new Map<string, Held>();
    const problems: VariableFileProblem[] = [...this.#listing.problems];
    for (const file of unmatched)
      if (this.#watched.get(file)?.isAbsent === false) problems.push({ file: join(this.#folder, file), message: FITS_NONE });
    for (const { file, source, message } of disputed) {
      problems.push({ file: join(this.#folder, file), source, message });
      // What a source had from a file of another name stays.
      const held = files.has(source) ? undefined : await this.#lastGood(source);
      if (held) bySource.set(source, held);
    }
    for (const [source, names] of files) {
      const used = await this.#use(source, names, problems);
      if (!used) continue;
      bySource.set(source, used);
      problems.push(...used.problems.map((problem) => ({ file: join(this.#folder, used.file), source, ...problem })));
    }
    if (this.#listing.isUnreadable)
      for (const { uuid } of sources) {
        const held = await this.#lastGood(uuid);
        if (held) bySource.set(uuid, held);
      }
    await this.#keepCopies(bySource, problems);
    return this.#settle(sources, { bySource, problems, namesakes });
  }

  /** Most looks find the names, the sources and the owners of the one before. */
  #assign(sources: readonly SourceName[]): AssignedFiles {
    const { owners } = this.#owners;
    const files = [...this.#watched.keys()].sort();
    const names = files.join("/");
    const before = this.#assigned;
    if (before?.sources === sources && before.names === names && before.owners === owners) return before.found;
    const found = assignFiles(files, sources, owners);
    this.#assigned = { names, sources, owners, found };
    return found;
  }

  /** What `source` has, or had from its file before a restart or before it was missing; undefined: what the API says of it was at work. */
  async #lastGood(source: string): Promise<Held | undefined> {
    const held = this.#held.get(source);
    if (held || this.#withoutFile.has(source)) return held;
    const owned = this.#owners.owners.get(source);
    // At the first look nobody knows whether the source was missing or its file.
    const isKnown = owned !== undefined && (owned.awaySinceMs === undefined || this.#signature !== undefined);
    return isKnown ? this.#readKept(source) : undefined;
  }

  /** The last good variables of `source` that an earlier process or look has kept. */
  async #readKept(source: string): Promise<Held | undefined> {
    const path = await this.#kept.pathOf(source);
    if (path === undefined) return undefined;
    const { variables, problems } = await parse(path, createYielder());
    if (variables.length === 0 && problems.length > 0) return undefined;
    const file = this.#owners.owners.get(source)?.file ?? "";
    return { file, stamp: KEPT, variables: await named(source, variables), problems: [] };
  }

  async #keepCopies(bySource: ReadonlyMap<string, Held>, problems: VariableFileProblem[]): Promise<void> {
    const startedMs = this.#clock.monotonicMs();
    await this.#kept.write(() => this.#clock.monotonicMs() - startedMs >= COPYING_MS);
    for (const [source, { file }] of bySource) {
      const message = this.#kept.problemOf(source);
      if (message !== undefined) problems.push({ file: join(this.#folder, file), source, message });
    }
  }

  async #settle(sources: readonly SourceName[], { bySource, problems, namesakes }: LookedUp): Promise<VariableFiles> {
    const signature = JSON.stringify([[...bySource].map(([uuid, { file, stamp }]) => [uuid, file, stamp]), problems]);
    this.#withoutFile = new Set(sources.map(({ uuid }) => uuid).filter((uuid) => !bySource.has(uuid)));
    for (const uuid of [...this.#held.keys()]) if (!bySource.has(uuid)) this.#held.delete(uuid);
    for (const [uuid, held] of bySource) if (held.stamp !== NOTHING_READ) this.#held.set(uuid, held);
    const present = new Map([...bySource].map(([uuid, { file, stamp }]) => [uuid, stamp === NOTHING_READ ? undefined : file]));
    const { owners } = this.#owners;
    this.#owners.keep(nextOwners(owners, { present, namesakes, nowMs: this.#clock.monotonicMs() }));
    if (this.#owners.owners !== owners) await this.#kept.retain(this.#owners.owners);
    if (signature !== this.#signature)
      this.#result = {
        bySource: new Map([...bySource].map(([uuid, { file, variables }]) => [uuid, { file: join(this.#folder, file), variables }])),
        problems,
      };
    this.#signature = signature;
    return this.#result;
  }

  /** What `source` uses of the files for it; undefined: nothing yet, and what the API says stays. */
  async #use(source: string, names: readonly string[], problems: VariableFileProblem[]): Promise<Held | undefined> {
    const held = this.#held.get(source);
    const present = names.filter((name) => this.#watched.get(name)?.isAbsent === false);
    const inUse = names.find((name) => name === (held ?? this.#owners.owners.get(source))?.file);
    const say = (name: string, message: string): void => void problems.push({ file: join(this.#folder, name), source, message });
    const [first = names[0] ?? "", ...others] = present;
    if (others.length > 0)
      say(
        first,
        `${present.join(" and ")} are for the same data source; keep one of them. ${inUse === undefined ? "None of them is used" : `${inUse} stays in use`}`,
      );
    if (others.length > 0 && inUse === undefined) return { file: first, stamp: NOTHING_READ, variables: [], problems: [] };
    const name = others.length > 0 && inUse !== undefined ? inUse : first;
    const watched = this.#watched.get(name);
    if (!watched) return held;
    if (watched.isAbsent || !this.#isStill(watched)) return this.#waitFor(source, name, watched, say);
    if (held?.file === name && held.stamp === watched.stamp) return held;
    return (await this.#read(source, name, watched.stamp, held)) ?? this.#waitFor(source, name, watched, say);
  }

  /** The file is being written, or is away for a moment. */
  async #waitFor(source: string, name: string, watched: Watched, say: (name: string, message: string) => void): Promise<Held | undefined> {
    const held = await this.#lastGood(source);
    const words = "is being written; it is taken when it does not change any more";
    if (held) {
      if (this.#clock.monotonicMs() - watched.changingSinceMs > CHANGING_NAMED_MS)
        say(name, `${words}; until then the variables that it had before stay in use`);
      return held;
    }
    if (this.#withoutFile.has(source)) return undefined;
    say(name, words);
    return { file: name, stamp: NOTHING_READ, variables: [], problems: [] };
  }

  /** Undefined: it has changed while it was read. */
  async #read(source: string, name: string, stamp: string, held: Held | undefined): Promise<Held | undefined> {
    const path = join(this.#folder, name);
    const content = await parse(path, createYielder());
    const now = stampOf(path);
    if (now?.text !== stamp) return undefined;
    const { variables } = content;
    const isUsable = variables.length > 0 || content.problems.length === 0;
    const broken = isUsable ? await this.#brokenOff(source, content, held) : undefined;
    const end = broken ?? content.cut;
    const problems = end ? [...content.problems, end] : content.problems;
    const lastGood = isUsable && !broken ? undefined : (held ?? (await this.#readKept(source)));
    if (lastGood) {
      const stays = `the last good variables stay in use (${lastGood.variables.length})${broken ? "; if the file is meant as it is, end its last line" : ""}`;
      return { ...lastGood, file: name, stamp, problems: [...problems, { message: stays }] };
    }
    if (isUsable) this.#kept.keep(source, { path, stamp: now });
    return { file: name, stamp, variables: await named(source, variables), problems };
  }

  /**
   * What shows that only the beginning of a file is there; undefined: nothing does. A last line without a line end alone does not, because
   * editors leave it so.
   */
  async #brokenOff(source: string, { bytes, variables, cut }: Content, held: Held | undefined): Promise<LineProblem | undefined> {
    if (!bytes || endsLine(bytes)) return undefined;
    const before = await this.#kept.read(source);
    if (before?.equals(bytes)) return undefined;
    if (before && isBrokenOff(bytes, before))
      return cut ?? { message: "ends within a line that was longer before: the rest seems to be missing" };
    const lastGood = cut && (held ?? (await this.#readKept(source)));
    return lastGood && variables.length < lastGood.variables.length ? cut : undefined;
  }

  #isStill({ sinceMs, stillMs }: Watched): boolean {
    return this.#clock.monotonicMs() - sinceMs >= stillMs;
  }
}

function stillAtStartMs({ modifiedMs, changedMs }: FileStamp, epochMs: number): number {
  if (epochMs - changedMs > UNCHANGED_MS) return 0;
  return Math.abs(epochMs - modifiedMs) > STILL_MS ? STILL_AT_START_MS : STILL_MS;
}

/** The stamp of what no file was read for. */
const NOTHING_READ = "";
/** The stamp of what comes from a copy: the file itself is still to be read. */
const KEPT = "kept";
const FITS_NONE = "fits no data source; its name must be the uuid or the name of one, exactly";

function list(folder: string): {
  readonly files: readonly string[];
  readonly problems: readonly VariableFileProblem[];
  readonly isUnreadable: boolean;
} {
  let entries: Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if (errorCode(error) === "ENOENT") return { files: [], problems: [], isUnreadable: false };
    const message = `the folder of the variable files cannot be read: ${messageOf(error)}; what was read of it stays in use`;
    return { files: [], problems: [{ file: folder, message }], isUnreadable: true };
  }
  const files = entries
    .map(({ name }) => name)
    .filter((name) => !name.startsWith(".") && Object.hasOwn(FORMATS, extname(name).toLowerCase()))
    .sort();
  if (files.length <= MAX_FILES) return { files, problems: [], isUnreadable: false };
  const message = `holds more than ${MAX_FILES} variable files; the others are not read`;
  return { files: files.slice(0, MAX_FILES), problems: [{ file: folder, message }], isUnreadable: false };
}

/** The variables with the uuids that they have at each start. */
async function named(source: string, inputs: readonly VariableInput[]): Promise<readonly Variable[]> {
  const yieldToEventLoop = createYielder();
  const variables = new LargeList<Variable>();
  for (const input of inputs) {
    variables.push({ uuid: uuidV5(source, input.name), data_source: source, ...input });
    await yieldToEventLoop();
  }
  return variables.whole();
}

interface Content extends ParsedVariables {
  /** Absent: it cannot be read. */
  readonly bytes?: Buffer;
}

/** What the file holds, or in a problem why it cannot be read. */
async function parse(path: string, yieldToEventLoop: YieldToEventLoop): Promise<Content> {
  const format = FORMATS[extname(path).toLowerCase()];
  if (!format) return { variables: [], problems: [] };
  try {
    const bytes = await readBoundedFileInPieces(path, format.maxBytes);
    return { ...(await format.parse(bytes, yieldToEventLoop)), bytes };
  } catch (error) {
    return { variables: [], problems: [{ message: messageOf(error).replace(`${path} `, "") }] };
  }
}
