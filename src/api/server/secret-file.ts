import { closeSync, fchmodSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Writes one line to a file that only its owner can read (0600), whole or not at all: a temporary file in the same folder, fsync,
 * rename, fsync of the folder. Replaces what is there. Makes the folder (0700) where there is none. Throws the system's error.
 */
export function createSecretFile(file: string, line: string): void {
  const folder = dirname(file);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    const handle = openSync(temporary, "w", 0o600);
    try {
      fchmodSync(handle, 0o600);
      writeSync(handle, `${line}\n`);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
