import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { createYielder } from "../base/timer.ts";
import { readBoundedFileInPieces } from "../lib/bounded-file.ts";
import { replaceFileInPieces, sweep } from "../lib/files.ts";
import { messageOf } from "../model/failure.ts";
import { type FileStamp, stampOf } from "./file-stamp.ts";

/** A file as a source has taken it. */
export interface TakenFile {
  readonly path: string;
  /** Of the file when it was read. */
  readonly stamp: FileStamp;
}

interface Kept {
  readonly name: string;
  readonly bytes: number;
  readonly modifiedMs: number;
}

const MAX_BYTES = 64 * 2 ** 20;
/** A file system may store the time of a file less finely than another. */
const SAME_TIME_MS = 2;

/**
 * For each data source a copy of the last variables file that it took, over restarts: `<data source uuid>.<extension>` in a folder of the
 * collector's own. Never throws: a copy that cannot be written is a problem of its source.
 */
export class KeptFiles {
  readonly #folder: string | undefined;
  readonly #maxBytes: number;
  /** By the uuid of the source. */
  #kept: Map<string, Kept> | undefined;
  readonly #waiting = new Map<string, TakenFile>();
  /** Of the files that this process has copied, by source. */
  readonly #stamps = new Map<string, string>();
  readonly #problems = new Map<string, string>();

  /** `folder` undefined: nothing is kept. */
  constructor(folder: string | undefined, maxBytes = MAX_BYTES) {
    this.#folder = folder;
    this.#maxBytes = maxBytes;
  }

  /** The copy's path; undefined: there is none. */
  async pathOf(source: string): Promise<string | undefined> {
    const kept = (await this.#list()).get(source);
    return kept && this.#folder !== undefined ? join(this.#folder, kept.name) : undefined;
  }

  /** The copy; undefined: there is none that can be read. */
  async read(source: string): Promise<Buffer | undefined> {
    const path = await this.pathOf(source);
    return path === undefined ? undefined : readBoundedFileInPieces(path, this.#maxBytes).catch(() => undefined);
  }

  /** `write` copies it, in place of what was kept for this source. */
  keep(source: string, taken: TakenFile): void {
    if (this.#folder !== undefined) this.#waiting.set(source, taken);
  }

  /** Makes the copies that wait, until `isOver`, but one at least. */
  async write(isOver: () => boolean): Promise<void> {
    const folder = this.#folder;
    if (folder === undefined) return;
    for (const [source, taken] of this.#waiting) {
      this.#waiting.delete(source);
      this.#problems.delete(source);
      try {
        await this.#copy(folder, source, taken);
      } catch (error) {
        this.#problems.set(source, `its variables cannot be kept for the next start: ${messageOf(error)}`);
      }
      if (isOver()) return;
    }
  }

  /** Why the source has no copy of what it took last. */
  problemOf(source: string): string | undefined {
    return this.#problems.get(source);
  }

  /** Removes the copies of all other sources. */
  async retain(sources: { has(source: string): boolean }): Promise<void> {
    const kept = await this.#list();
    for (const source of [...this.#problems.keys(), ...this.#stamps.keys(), ...kept.keys()]) {
      if (sources.has(source)) continue;
      this.#problems.delete(source);
      this.#stamps.delete(source);
      const { name } = kept.get(source) ?? {};
      kept.delete(source);
      if (name !== undefined) await this.#remove(name);
    }
  }

  async #copy(folder: string, source: string, { path, stamp }: TakenFile): Promise<void> {
    const all = await this.#list();
    const kept = all.get(source);
    const name = `${source}${extname(path).toLowerCase()}`;
    if (this.#stamps.get(source) === stamp.text) return;
    // What an earlier process has copied is known by its length and time.
    const isKept =
      !this.#stamps.has(source) &&
      kept?.name === name &&
      kept.bytes === stamp.bytes &&
      Math.abs(kept.modifiedMs - stamp.modifiedMs) <= SAME_TIME_MS;
    if (!isKept) {
      const others = [...all].reduce((sum, [uuid, { bytes }]) => (uuid === source ? sum : sum + bytes), 0);
      if (others + stamp.bytes > this.#maxBytes)
        throw new Error(`the variable files have more than ${Math.floor(this.#maxBytes / 2 ** 20)} MiB together`);
      // One that has changed since it was taken comes again.
      if (stampOf(path)?.text !== stamp.text) return;
      const bytes = await readBoundedFileInPieces(path, stamp.bytes);
      if (stampOf(path)?.text !== stamp.text) return;
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await replaceFileInPieces(join(folder, name), bytes, stamp.modifiedMs);
      all.set(source, { name, bytes: stamp.bytes, modifiedMs: stamp.modifiedMs });
      if (kept && kept.name !== name) await this.#remove(kept.name);
    }
    this.#stamps.set(source, stamp.text);
  }

  async #remove(name: string): Promise<void> {
    // What cannot be removed is found again at the next start.
    await rm(join(this.#folder ?? "", name), { force: true }).catch(() => {});
  }

  async #list(): Promise<Map<string, Kept>> {
    if (this.#kept) return this.#kept;
    const all = new Map<string, Kept>();
    this.#kept = all;
    const folder = this.#folder;
    if (folder === undefined) return all;
    const yieldToEventLoop = createYielder();
    const changedMs = new Map<string, number>();
    for (const name of await namesOf(folder)) {
      const source = /^([0-9a-f-]{36})\.[a-z]+$/.exec(name)?.[1];
      const found = source === undefined ? undefined : await stat(join(folder, name)).catch(() => undefined);
      await yieldToEventLoop();
      // Of two, which a process has that ended before it removed the first, the later one counts.
      if (source === undefined || !found || found.ctimeMs < (changedMs.get(source) ?? 0)) continue;
      changedMs.set(source, found.ctimeMs);
      all.set(source, { name, bytes: found.size, modifiedMs: Math.floor(found.mtimeMs) });
    }
    return all;
  }
}

/** None where there is no such folder yet, or none that can be read. */
async function namesOf(folder: string): Promise<readonly string[]> {
  try {
    sweep(folder);
    return await readdir(folder);
  } catch {
    return [];
  }
}
