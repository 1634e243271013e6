import { rmSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

const WAIT_MS = 15_000;
const STEP_MS = 20;

/**
 * Does `work` while no other thread or process of this machine does such work under the same `file`: an exclusive transaction in it, of which
 * the kernel takes the lock back however its holder ends (Node has no flock). Throws Error where another one holds it for too long, what the
 * file system says, and what `work` throws.
 */
export async function withLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const { default: Database } = await import("better-sqlite3");
  const endMs = performance.now() + WAIT_MS;
  let db = new Database(file, { timeout: 0 });
  try {
    for (;;) {
      try {
        db.pragma("journal_mode = MEMORY");
        db.exec("BEGIN EXCLUSIVE");
        break;
      } catch (error) {
        if (!(error instanceof Database.SqliteError) || !/^SQLITE_(BUSY|NOTADB)/.test(error.code)) throw error;
        if (performance.now() > endMs) throw new Error(`${file} is held by another process; end it, and try again`, { cause: error });
        if (error.code === "SQLITE_NOTADB") {
          // What is no lock file is held by nobody.
          db.close();
          rmSync(file, { force: true });
          db = new Database(file, { timeout: 0 });
        }
        await pause(STEP_MS);
      }
    }
    return await work();
  } finally {
    db.close();
  }
}
