import path from "node:path";
import * as z from "zod";
import { readJsonIfThere, replaceFileInPieces } from "../lib/files.ts";
import type { Log } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";
import type { Kept } from "../model/kept.ts";
import { RecentMap } from "../model/recent-map.ts";
import { uuidSchema } from "../model/uuid.ts";

type Values = Record<string, unknown>;

/** Beside the last good configuration. */
export const keptOfSourcesFile = (stateDir: string): string => path.join(stateDir, "kept-of-sources.json");

const MAX_FILE_BYTES = 64 * 2 ** 20;
const MAX_SOURCES = 10_000;
/** Sources that start at once are written together. */
const WRITE_AFTER_MS = 500;

const fileSchema = z.strictObject({ version: z.literal(1), sources: z.record(uuidSchema, z.record(z.string(), z.unknown())) });

/** What drivers keep of data sources, by uuid. Throws Error where the file is there and cannot be used. */
export const readKeptOfSources = (stateDir: string): Readonly<Record<string, Kept["values"]>> =>
  readJsonIfThere(keptOfSourcesFile(stateDir), MAX_FILE_BYTES, fileSchema)?.sources ?? {};

/**
 * What drivers keep of data sources over restarts, in a file of the state folder. One that was removed is kept on, as it may come back;
 * beyond `MAX_SOURCES` the one that was read least recently goes.
 */
export class KeptOfSources {
  readonly #file: string;
  readonly #log: Log;
  readonly #sources = new RecentMap<Values>(MAX_SOURCES);
  #uuids = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  /** Writes go one after the other. Never rejects. */
  #written: Promise<void> = Promise.resolve();
  #problem: string | undefined;

  constructor(stateDir: string, log: Log) {
    this.#file = keptOfSourcesFile(stateDir);
    this.#log = log;
    try {
      for (const [uuid, values] of Object.entries(readKeptOfSources(stateDir))) this.#put(uuid, { ...values });
    } catch (error) {
      log.error(
        { err: error },
        "what was kept of the data sources cannot be read: OPC UA addresses with ns= are held to mean the namespaces that the servers have now",
      );
    }
  }

  of(uuid: string): Kept {
    const values = this.#sources.get(uuid) ?? {};
    return {
      values,
      set: (key, value) => {
        values[key] = value;
        this.#put(uuid, values);
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
    const sources = Object.fromEntries([...this.#uuids].flatMap((uuid) => this.#entryOf(uuid)));
    try {
      await replaceFileInPieces(this.#file, Buffer.from(JSON.stringify({ version: 1, sources })), Date.now());
      this.#problem = undefined;
    } catch (error) {
      const problem = `what is kept of the data sources cannot be written: ${messageOf(error)}`;
      if (problem !== this.#problem) this.#log.warn({ err: error }, problem);
      this.#problem = problem;
    }
  }

  #entryOf(uuid: string): readonly (readonly [string, Values])[] {
    const values = this.#sources.get(uuid);
    return values ? [[uuid, values]] : [];
  }

  #put(uuid: string, values: Values): void {
    this.#sources.set(uuid, values);
    this.#uuids.add(uuid);
    if (this.#uuids.size > 2 * MAX_SOURCES) this.#uuids = new Set([...this.#uuids].filter((one) => this.#sources.get(one)));
  }
}
