import path from "node:path";
import * as z from "zod";
import { readBoundedFile } from "../lib/bounded-file.ts";
import { replaceFile } from "../lib/files.ts";
import type { Log } from "../model/context.ts";

/** Files of this machine whose last good text outlives a start. */
export type KeptName = "settings" | "policy";

/** A file as it could be used last. */
export interface KeptText {
  /** Absolute. */
  readonly file: string;
  /** Empty: there was no file. */
  readonly text: string;
}

const keptSchema = z.object({ file: z.string(), text: z.string() });
/** A text of 1 MiB, each character of it escaped. */
const MAX_BYTES = 8 * 2 ** 20;

const placeOf = (stateDir: string, name: KeptName): string => path.join(stateDir, `last-good-${name}.json`);

/** The text of `file` as it could be used last; undefined: it never could here, or the copy is damaged. Never throws. */
export function keptText(stateDir: string, name: KeptName, file: string): string | undefined {
  try {
    const kept = keptSchema.parse(JSON.parse(readBoundedFile(placeOf(stateDir, name), MAX_BYTES).toString("utf8")));
    return kept.file === file ? kept.text : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps the text for the next start, for its owner alone. What cannot be written is logged: the service goes on. */
export function keepText(stateDir: string, name: KeptName, { file, text }: KeptText, log: Log): void {
  if (keptText(stateDir, name, file) === text) return;
  try {
    replaceFile(placeOf(stateDir, name), JSON.stringify({ file, text }));
  } catch (error) {
    log.warn({ err: error }, `${file} cannot be kept for a start at which it cannot be used`);
  }
}
