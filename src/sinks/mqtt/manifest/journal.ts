import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import type { MemoryLocation } from "../../sink.ts";

const readoutSchema = z
  .tuple([z.number(), z.number().nullable(), z.number()])
  .or(z.tuple([z.number(), z.number().nullable(), z.number(), z.string()]));
const lossSchema = z.object({ id: z.string(), from: z.number(), to: z.number(), values: z.number().nullable(), reason: z.string() });
const lineSchema = z.union([
  z.object({ lost: lossSchema }),
  z.object({ s: z.string(), told: z.number() }),
  z.object({
    s: z.string(),
    n: z.string(),
    id: z.string(),
    r: z.array(readoutSchema),
  }),
]);

/** Values that the broker will never get, of any source. */
export type ManifestLoss = Readonly<z.infer<typeof lossSchema>>;

/** A change of the manifest: readouts of a source (time, hash, values; their batch where it is not `id`), a minute that is published, a loss. */
export type JournalLine =
  | { readonly lost: ManifestLoss }
  | { readonly s: string; readonly told: number }
  | {
      readonly s: string;
      readonly n: string;
      readonly id: string;
      readonly r: readonly (readonly [time: number, hash: number | null, values: number, id?: string])[];
    };

const MAX_FILE_BYTES = 64 * 2 ** 20;

/**
 * The changes of one manifest, a line each, in a file that outlasts a kill of the process: a change is there before the buffer hears that the
 * batch is delivered. After a loss of power the last seconds may be missing. A file that fails is logged once, and has no other consequence.
 */
export class ManifestJournal {
  readonly #location: MemoryLocation;
  readonly #file: string;
  #hasFailed = false;
  /** Lines of the file. */
  lines = 0;

  constructor(location: MemoryLocation) {
    this.#location = location;
    this.#file = path.join(location.folder ?? "", `${encodeURIComponent(location.uuid)}.manifest.jsonl`);
  }

  /** The changes of this endpoint; lines that were cut are left out. */
  *read(): Generator<JournalLine> {
    const text = this.#attempt(() => {
      const stat = statSync(this.#file, { throwIfNoEntry: false });
      return stat && stat.size <= MAX_FILE_BYTES ? readFileSync(this.#file, "utf8") : undefined;
    });
    const [head, ...lines] = text?.split("\n") ?? [];
    if (head !== this.#head()) return;
    for (const line of lines) {
      const parsed = lineSchema.safeParse(jsonIn(line));
      if (parsed.success) yield parsed.data;
    }
  }

  append(line: JournalLine): void {
    this.lines++;
    this.#attempt(() => appendFileSync(this.#file, `${JSON.stringify(line)}\n`));
  }

  rewrite(lines: Iterable<JournalLine>): void {
    const texts = Array.from(lines, (line) => JSON.stringify(line));
    this.lines = texts.length;
    this.#attempt((folder) => {
      mkdirSync(folder, { recursive: true, mode: 0o750 });
      writeFileSync(`${this.#file}.new`, `${[this.#head(), ...texts].join("\n")}\n`, { flush: true });
      renameSync(`${this.#file}.new`, this.#file);
    });
  }

  remove(): void {
    this.#attempt(() => rmSync(this.#file, { force: true }));
  }

  #head(): string {
    return JSON.stringify({ endpoint: this.#location.endpoint });
  }

  #attempt<T>(work: (folder: string) => T): T | undefined {
    const { folder, log } = this.#location;
    if (folder === undefined) return undefined;
    try {
      return work(folder);
    } catch (error) {
      if (!this.#hasFailed)
        log.warn({ err: error, file: this.#file }, "the file of the manifest fails; after a restart the manifest has only newer readouts");
      this.#hasFailed = true;
      return undefined;
    }
  }
}

function jsonIn(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
