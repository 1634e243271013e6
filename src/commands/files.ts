import { statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { toJson } from "../base/json.ts";
import { readBoundedFile } from "../lib/bounded-file.ts";
import { hasCode } from "../lib/files.ts";
import { messageOf } from "../model/failure.ts";
import { type CommandIo, UsageError } from "./io.ts";

/** Files that a person names on the command line. */

const MAX_PASSWORD_BYTES = 64 * 1024;

/** Throws UsageError, which names the file. */
export function readIn(file: string, maxBytes: number): Buffer {
  try {
    return readBoundedFile(path.resolve(file), maxBytes);
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

/** The first line of a file, for a password or key. Throws UsageError, which names the file and how it was `given`, and never what it holds. */
export function passwordFrom(file: string, given = "--password-file"): string {
  let text: string;
  try {
    text = readBoundedFile(path.resolve(file), MAX_PASSWORD_BYTES).toString("utf8");
  } catch (error) {
    throw new UsageError(`${given}: ${messageOf(error)}`);
  }
  const password = text.replace(/\r?\n[\s\S]*$/, "");
  if (password === "") throw new UsageError(`${given}: ${file} is empty; put it there, on the first line`);
  return password;
}

/** Throws UsageError, which names the file. */
export function writeTo(file: string, content: string | Uint8Array): void {
  try {
    writeFileSync(file, content);
  } catch (error) {
    throw new UsageError(`${file} cannot be written: ${whyNot(file, error)}`);
  }
}

/** To the file, or to stdout where none is named or it is `-`. Throws UsageError. */
export function writeOut(io: CommandIo, file: string | undefined, text: string): void {
  if (file === undefined || file === "-") io.stdout.write(text);
  else writeTo(file, text);
}

/** Works as writeOut does, for a CSV file: its byte order mark and its line ends belong to it, and its cells are safe. Throws UsageError. */
export function writeCsv(io: CommandIo, file: string | undefined, text: string): void {
  if (file === undefined || file === "-") io.stdout.verbatim(text);
  else writeTo(file, text);
}

/**
 * What a verb exports: `text` to the file, or to stdout where none is named. With `json`, stdout has one JSON object instead: all the records
 * by their kind, or the file and how many of each went into it. `write`: how a text of this form is written. Throws UsageError.
 */
export function exportOut(
  io: CommandIo,
  file: string | undefined,
  { json = false }: { readonly json?: boolean },
  text: string,
  records: Readonly<Record<string, readonly unknown[]>>,
  write: typeof writeOut = writeOut,
): void {
  if (!json) {
    write(io, file, text);
    return;
  }
  if (file === undefined || file === "-") {
    io.stdout.write(`${toJson(records)}\n`);
    return;
  }
  writeTo(file, text);
  const counts = Object.fromEntries(Object.entries(records).map(([kind, all]) => [kind, all.length]));
  io.stdout.write(`${toJson({ file: path.resolve(file), counts })}\n`);
}

/** Throws UsageError where there is no folder in which the file could be written. */
export function requireFolder(file: string): void {
  const folder = path.dirname(path.resolve(file));
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new UsageError(`${file} cannot be written: there is no folder ${folder}`);
}

function whyNot(file: string, error: unknown): string {
  if (hasCode(error, "ENOENT")) return `there is no folder ${path.dirname(path.resolve(file))}`;
  if (hasCode(error, "EACCES") || hasCode(error, "EPERM")) return "this user may not write there; name another place";
  if (hasCode(error, "EISDIR")) return "it is a folder; name a file in it";
  return messageOf(error);
}
