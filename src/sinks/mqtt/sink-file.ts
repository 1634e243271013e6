import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import type { MemoryLocation } from "../sink.ts";

const MAX_FILE_BYTES = 64 * 2 ** 20;

/** Words for the log about a file that fails. */
export interface SinkFileWords {
  /** `the file of the retained topics`. */
  readonly name: string;
  /** The consequence where it cannot be read, and where it cannot be written. */
  readonly unread: string;
  readonly unwritten: string;
}

/**
 * A small JSON file that a sink keeps over restarts of the process, about one endpoint. A file that cannot be read, written or removed is
 * logged, and has no other consequence.
 */
export class SinkFile<T extends object> {
  readonly #location: Omit<MemoryLocation, "uuid">;
  readonly #file: string;
  readonly #schema: z.ZodType<T>;
  readonly #words: SinkFileWords;

  /** `name`: of the file, without its ending. */
  constructor(location: Omit<MemoryLocation, "uuid">, name: string, schema: z.ZodType<T>, words: SinkFileWords) {
    this.#location = location;
    this.#file = path.join(location.folder ?? "", `${encodeURIComponent(name)}.json`);
    this.#schema = schema;
    this.#words = words;
  }

  /** False: nothing is kept. */
  get hasFolder(): boolean {
    return this.#location.folder !== undefined;
  }

  /** Undefined: nothing is kept of this endpoint. */
  read(): T | undefined {
    if (!this.hasFolder) return undefined;
    const file = this.#file;
    try {
      const stat = statSync(file, { throwIfNoEntry: false });
      if (!stat) return undefined;
      if (stat.size > MAX_FILE_BYTES) throw new Error(`it has ${stat.size} bytes, more than ${MAX_FILE_BYTES}`);
      const content: unknown = JSON.parse(readFileSync(file, "utf8"));
      const { endpoint } = z.object({ endpoint: z.string() }).parse(content);
      return endpoint === this.#location.endpoint ? this.#schema.parse(content) : undefined;
    } catch (error) {
      this.#location.log.warn({ err: error, file }, `${this.#words.name} cannot be read; ${this.#words.unread}`);
      return undefined;
    }
  }

  write(content: T): void {
    const { folder, endpoint, log } = this.#location;
    if (folder === undefined) return;
    const next = `${this.#file}.new`;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o750 });
      writeFileSync(next, JSON.stringify({ endpoint, ...content }), { flush: true });
      renameSync(next, this.#file);
    } catch (error) {
      log.warn({ err: error, file: this.#file }, `${this.#words.name} cannot be written; ${this.#words.unwritten}`);
    }
  }

  remove(): void {
    if (!this.hasFolder) return;
    try {
      rmSync(this.#file, { force: true });
    } catch (error) {
      this.#location.log.debug({ err: error, file: this.#file }, `${this.#words.name} cannot be removed`);
    }
  }
}
