import * as z from "zod";
import type { Log } from "../../model/context.ts";
import { SinkFile } from "./sink-file.ts";

const WRITE_AFTER_MS = 50;
const WORDS = {
  name: "the file of the retained topics",
  unread: "old ones may stay on the broker",
  unwritten: "after a restart old ones may stay on the broker",
};
const schema = z.object({ topics: z.array(z.string()) });

/** The topics under which one sink has retained messages at the broker, kept in a small file over restarts of the process. */
export class RetainedTopics {
  readonly #file: SinkFile<z.infer<typeof schema>>;
  readonly #topics: Set<string>;
  #timer: NodeJS.Timeout | undefined;

  /** Topics at another `endpoint` are forgotten. `folder` undefined: in memory only. */
  constructor(folder: string | undefined, uuid: string, endpoint: string, log: Log) {
    this.#file = new SinkFile({ folder, endpoint, log }, uuid, schema, WORDS);
    this.#topics = new Set(this.#file.read()?.topics);
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
    if (forget) this.#file.remove();
  }

  #writeSoon(): void {
    if (this.#file.hasFolder) this.#timer ??= setTimeout(() => this.#write(), WRITE_AFTER_MS);
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#file.write({ topics: [...this.#topics] });
  }
}
