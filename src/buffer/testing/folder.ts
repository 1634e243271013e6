import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A file system in memory, which Linux has. */
const MEMORY = "/dev/shm";

/** A new folder, removed at the end of the scope (`using`). */
export const temporaryFolder = (): { readonly path: string } & Disposable => folderIn(tmpdir());

/** As `temporaryFolder`, in memory where there is one: for many small files whose writes the disk itself does not decide. */
export const memoryFolder = (): { readonly path: string } & Disposable => folderIn(isWritable(MEMORY) ? MEMORY : tmpdir());

function folderIn(parent: string): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(parent, "collector-buffer-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
