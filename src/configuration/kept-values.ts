import * as z from "zod";
import { RecentMap } from "../base/recent-map.ts";
import { readJsonIfThere, replaceFileInPieces } from "../lib/files.ts";
import type { Log } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";
import type { Kept } from "../model/kept.ts";

type Values = Record<string, unknown>;

const MAX_FILE_BYTES = 64 * 2 ** 20;
const MAX_OWNERS = 10_000;
/** Sources that start together set their values at once: these are written together. */
const WRITE_AFTER_MS = 500;

/** A file of the state folder that holds what is kept of many owners. */
export interface KeptFile {
  readonly path: string;
  /** The field that holds the owners. */
  readonly field: string;
  readonly owner: z.ZodType<string, string>;
  /** Said where it cannot be read. */
  readonly unreadable: string;
  /** Its content, in words. */
  readonly title: string;
}

/** By owner. Throws Error where the file is there and cannot be used. */
export function readKept({ path, field, owner }: KeptFile): Readonly<Record<string, Kept["values"]>> {
  const schema = z.strictObject({ version: z.literal(1), [field]: z.record(owner, z.record(z.string(), z.unknown())) });
  const content: Readonly<Record<string, unknown>> | undefined = readJsonIfThere(path, MAX_FILE_BYTES, schema);
  return (content?.[field] ?? {}) as Readonly<Record<string, Kept["values"]>>;
}

/**
 * Values that outlive a restart, by owner. One that was removed is kept on, as it may come back; beyond `MAX_OWNERS` the one that was read least
 * recently goes.
 */
export class KeptValues {
  readonly #file: KeptFile;
  readonly #log: Log;
  readonly #owners = new RecentMap<Values>(MAX_OWNERS);
  #names = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  /** Writes go one after the other. Never rejects. */
  #written: Promise<void> = Promise.resolve();
  #problem: string | undefined;

  constructor(file: KeptFile, log: Log) {
    this.#file = file;
    this.#log = log;
    try {
      for (const [owner, values] of Object.entries(readKept(file))) this.#put(owner, { ...values });
    } catch (error) {
      log.error({ err: error }, file.unreadable);
    }
  }

  of(owner: string): Kept {
    const values = this.#owners.get(owner) ?? {};
    return {
      values,
      set: (key, value) => {
        values[key] = value;
        this.#put(owner, values);
        this.#timer ??= setTimeout(() => void this.flush(), WRITE_AFTER_MS).unref();
      },
    };
  }

  /** Writes what is not on disk yet. Never rejects. */
  flush(): Promise<void> {
    if (this.#timer) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#written = this.#written.then(() => this.#write());
    }
    return this.#written;
  }

  async #write(): Promise<void> {
    const owners = Object.fromEntries([...this.#names].flatMap((name) => this.#entryOf(name)));
    const { path, field, title } = this.#file;
    try {
      await replaceFileInPieces(path, Buffer.from(JSON.stringify({ version: 1, [field]: owners })), Date.now());
      this.#problem = undefined;
    } catch (error) {
      const problem = `${title} cannot be written: ${messageOf(error)}`;
      if (problem !== this.#problem) this.#log.warn({ err: error }, problem);
      this.#problem = problem;
    }
  }

  #entryOf(name: string): readonly (readonly [string, Values])[] {
    const values = this.#owners.get(name);
    return values ? [[name, values]] : [];
  }

  #put(owner: string, values: Values): void {
    this.#owners.set(owner, values);
    this.#names.add(owner);
    if (this.#names.size > 2 * MAX_OWNERS) this.#names = new Set([...this.#names].filter((one) => this.#owners.get(one)));
  }
}
