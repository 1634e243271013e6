import path from "node:path";
import { readBoundedFile } from "../lib/bounded-file.ts";
import { messageOf } from "../model/failure.ts";
import type { Settings } from "../model/settings.ts";

/** Bound of one secret, in bytes. */
export const MAX_SECRET_BYTES = 64 * 1024;

/** A secret from a local file, or why it cannot be used. */
export type FileSecret = { readonly secret: string } | { readonly problem: string };

/** The files that the settings name in `password_file`, as they are named there. */
export type SecretFiles = ReadonlyMap<string, FileSecret>;

/** Reads every `password_file` of the settings; relative paths count from `folder`. */
export function readSecretFiles(settings: Pick<Settings, "sources" | "sinks">, folder: string): SecretFiles {
  const entries = [...Object.values(settings.sources), ...Object.values(settings.sinks)];
  const files = entries.flatMap(({ password_file }) => (typeof password_file === "string" ? [password_file] : []));
  return new Map([...new Set(files)].map((file) => [file, readSecret(path.resolve(folder, file))]));
}

/** The password file of a record's local options; undefined: they name none. */
export function fileSecretOf(options: Readonly<Record<string, unknown>>, files: SecretFiles): FileSecret | undefined {
  const file = options["password_file"];
  return typeof file === "string" ? (files.get(file) ?? { problem: `password_file: ${file} was not read` }) : undefined;
}

/** Reads one line; the sentence of a problem names the file and never what it holds. */
function readSecret(file: string): FileSecret {
  try {
    const secret = readBoundedFile(file, MAX_SECRET_BYTES)
      .toString("utf8")
      .replace(/\r?\n$/, "");
    return secret === "" ? { problem: `password_file: ${file} is empty; put the password there, one line` } : { secret };
  } catch (error) {
    return { problem: `password_file: ${messageOf(error)}` };
  }
}
