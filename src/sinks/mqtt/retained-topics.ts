import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import type { Log } from "../../model/context.ts";

const WRITE_AFTER_MS = 50;
const MAX_FILE_BYTES = 64 * 2 ** 20;
const fileSchema = z.object({ endpoint: z.string(), topics: z.array(z.string()) });

/** The topics under which one sink has retained messages at the broker, kept in a small file over restarts of the process. */
export class RetainedTopics {
  readonly #folder: string | undefined;
  readonly #file: string;
  readonly #endpoint: string;
  readonly #log: Log;
  readonly #topics: Set<string>;
  #timer: NodeJS.Timeout | undefined;

  /**
   * Topics at another `endpoint` are forgotten. `folder` undefined: in memory only. A file that cannot be read or written is logged, and has
   * no other consequence.
   */
  constructor(folder: string | undefined, uuid: string, endpoint: string, log: Log) {
    this.#folder = folder;
    this.#file = path.join(folder ?? "", `${encodeURIComponent(uuid)}.json`);
    this.#endpoint = endpoint;
    this.#log = log;
    this.#topics = new Set(folder === undefined ? [] : this.#read());
  }

  has(topic: string): boolean {
    return this.#topics.has(topic);
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#topics.values();
  }

  /** The file is written a moment later. */
  add(topic: string): void {
    if (this.#topics.has(topic)) return;
    this.#topics.add(topic);
    this.#writeSoon();
  }

  /** The file is written a moment later. */
  delete(topic: string): void {
    if (this.#topics.delete(topic)) this.#writeSoon();
  }

  /** Writes what waits for it; `forget` removes the file. Never throws. */
  close(forget: boolean): void {
    if (this.#timer) this.#write();
    if (!forget || this.#folder === undefined) return;
    try {
      rmSync(this.#file, { force: true });
    } catch (error) {
      this.#log.debug({ err: error, file: this.#file }, "the file of the retained topics cannot be removed");
    }
  }

  #read(): readonly string[] {
    try {
      const stat = statSync(this.#file, { throwIfNoEntry: false });
      if (!stat) return [];
      if (stat.size > MAX_FILE_BYTES) throw new Error(`it has ${stat.size} bytes, more than ${MAX_FILE_BYTES}`);
      const found = fileSchema.parse(JSON.parse(readFileSync(this.#file, "utf8")));
      return found.endpoint === this.#endpoint ? found.topics : [];
    } catch (error) {
      this.#log.warn({ err: error, file: this.#file }, "the file of the retained topics cannot be read; old ones may stay on the broker");
      return [];
    }
  }

  #writeSoon(): void {
    if (this.#folder !== undefined) this.#timer ??= setTimeout(() => this.#write(), WRITE_AFTER_MS);
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#folder === undefined) return;
    const next = `${this.#file}.new`;
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o750 });
      writeFileSync(next, JSON.stringify({ endpoint: this.#endpoint, topics: [...this.#topics] }), { flush: true });
      renameSync(next, this.#file);
    } catch (error) {
      this.#log.warn(
        { err: error, file: this.#file },
        "the file of the retained topics cannot be written; after a restart old ones may stay on the broker",
      );
    }
  }
}
