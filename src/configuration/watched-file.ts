import type { Log } from "../model/context.ts";
import { type Warning, warning } from "../model/warning.ts";
import { stampOf } from "./file-stamp.ts";
import { SettingsError } from "./strict-yaml.ts";

export interface WatchedFileOptions<T> {
  readonly file: string;
  /** Throws SettingsError where what the file holds cannot be used. */
  readonly load: () => T;
  /** What goes on while it cannot be used, in words. */
  readonly meanwhile: string;
  /** Why it could not be used before it was watched; it was logged. */
  readonly problem?: SettingsError | undefined;
  readonly log: Log;
}

/** Problems of one file that are told. */
const MAX_NOTES = 10;

/**
 * A file that people change while the service runs. It is read when its stamp is another one and has stayed the same from one look to the
 * next, so that nobody's half-written file is. One that cannot be used is reported, and changes nothing.
 */
export class WatchedFile<T> {
  readonly #options: WatchedFileOptions<T>;
  /** Of the file when it was read last; undefined: it was not read here yet. */
  #readStamp: string | undefined;
  /** Of the last look. */
  #seenStamp: string | undefined;
  #problem: SettingsError | undefined;

  constructor(options: WatchedFileOptions<T>) {
    this.#options = options;
    this.#problem = options.problem;
  }

  /** What it holds now; undefined: it has not changed, it is just being changed, or it cannot be used. */
  look(): T | undefined {
    const stamp = this.#stamp();
    const isStill = stamp === this.#seenStamp;
    this.#seenStamp = stamp;
    return isStill && stamp !== this.#readStamp ? this.#read(stamp) : undefined;
  }

  /** Works as `look` does, at once: somebody says that the file is as it is to be. Undefined: it cannot be used. */
  reread(): T | undefined {
    this.#seenStamp = this.#stamp();
    return this.#read(this.#seenStamp);
  }

  /** Why it cannot be used, for status; empty: it can be. */
  notes(): readonly Warning[] {
    const lines = this.#problem?.message.split("\n") ?? [];
    const more = lines.length > MAX_NOTES ? [`${this.#options.file}: ${lines.length - MAX_NOTES} more problems`] : [];
    return [...lines.slice(0, MAX_NOTES), ...more].map((line) =>
      warning("settings_unusable", `${line}; ${this.#options.meanwhile}`, placeIn(line)),
    );
  }

  #stamp(): string {
    return stampOf(this.#options.file)?.text ?? "absent";
  }

  #read(stamp: string): T | undefined {
    const { file, load, meanwhile, log } = this.#options;
    this.#readStamp = stamp;
    try {
      const content = load();
      if (this.#problem) log.info({ file }, "the file can be used again");
      this.#problem = undefined;
      return content;
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      if (this.#problem?.message !== error.message) log.error({}, `${error.message}; ${meanwhile}`);
      this.#problem = error;
      return undefined;
    }
  }
}

/** The file and line that a problem begins with. */
export const placeIn = (problem: string): string => problem.split(": ", 1)[0] ?? problem;
