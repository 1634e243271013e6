import { dirname } from "node:path";
import { makePrivateFolder, replaceFile } from "../../lib/files.ts";

/**
 * Writes one line to a file that only its owner can read (0600), whole or not at all, in place of what is there. Makes the folder (0700)
 * where there is none. Throws the system's error.
 */
export function createSecretFile(file: string, line: string): void {
  makePrivateFolder(dirname(file));
  replaceFile(file, `${line}\n`);
}
