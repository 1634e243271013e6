import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import type { Log } from "../../../model/context.ts";
import { nextBdSeq } from "./edge-node.ts";

const fileSchema = z.object({ bdSeq: z.int().min(0).max(255) });

/**
 * The number that pairs an edge node's death with its birth, one more with each CONNECT. Kept in a small file over restarts of the process: the
 * last will of the connection before a restart may come late, and must not have the number of the birth after it.
 */
export class BdSeq {
  readonly #folder: string | undefined;
  readonly #file: string;
  readonly #log: Log;
  #last: number | undefined;

  /** `folder` undefined: in memory only. A file that cannot be read or written is logged, and has no other consequence. */
  constructor(folder: string | undefined, uuid: string, log: Log) {
    this.#folder = folder;
    this.#file = path.join(folder ?? "", `${encodeURIComponent(uuid)}.bdseq.json`);
    this.#log = log;
    this.#last = folder === undefined ? undefined : this.#read();
  }

  /** The number of the next CONNECT, which is in the file when it returns. Never throws. */
  next(): number {
    this.#last = nextBdSeq(this.#last);
    this.#write(this.#last);
    return this.#last;
  }

  /** `forget` removes the file. Never throws. */
  close(forget: boolean): void {
    if (!forget || this.#folder === undefined) return;
    try {
      rmSync(this.#file, { force: true });
    } catch (error) {
      this.#log.debug({ err: error, file: this.#file }, "the file of the Sparkplug session cannot be removed");
    }
  }

  #read(): number | undefined {
    try {
      return fileSchema.parse(JSON.parse(readFileSync(this.#file, "utf8"))).bdSeq;
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOENT"))
        this.#log.warn({ err: error, file: this.#file }, "the file of the Sparkplug session cannot be read: bdSeq begins at 0");
      return undefined;
    }
  }

  #write(bdSeq: number): void {
    if (this.#folder === undefined) return;
    const next = `${this.#file}.new`;
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o750 });
      writeFileSync(next, JSON.stringify({ bdSeq }), { flush: true });
      renameSync(next, this.#file);
    } catch (error) {
      this.#log.warn(
        { err: error, file: this.#file },
        "the file of the Sparkplug session cannot be written; bdSeq may repeat after a restart",
      );
    }
  }
}
