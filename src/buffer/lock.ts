import { rmSync } from "node:fs";
import Database from "better-sqlite3";

/** Another process has the buffer. */
export class BufferInUseError extends Error {
  override readonly name = "BufferInUseError";
}

/**
 * Holds the buffer `file` for this process alone until the returned function is called or the process ends, however it ends:
 * an exclusive transaction in `<file>.lock`, of which the kernel keeps the lock (Node has no flock).
 * Throws BufferInUseError where another one holds it, Error where the file system gives no locks.
 */
export function lockBuffer(file: string): () => void {
  const path = `${file}.lock`;
  try {
    return hold(path, file);
  } catch (error) {
    if (!(error instanceof Database.SqliteError) || error.code !== "SQLITE_NOTADB") throw error;
    // What is not a lock file is held by nobody.
    rmSync(path);
    return hold(path, file);
  }
}

function hold(path: string, file: string): () => void {
  const db = begin(path);
  if (db) return () => void db.close();
  if (isWithoutLocks(path))
    throw new Error(
      `the file system of ${path} gives no locks (ENOLCK), so that nothing would keep two collectors from one buffer: put state_dir on a disk of this machine`,
    );
  throw new BufferInUseError(
    `another collector uses the buffer ${file}. End that one ("systemctl status collector", "pgrep -a collector"), or give this one a state_dir of its own`,
  );
}

/** True: SQLite says busy (for ENOLCK, too) of a file that no other process has. False where that cannot be tried. */
function isWithoutLocks(path: string): boolean {
  const probe = `${path}-probe-${process.pid}`;
  try {
    const db = begin(probe);
    db?.close();
    return db === undefined;
  } catch {
    return false;
  } finally {
    rmSync(probe, { force: true });
  }
}

/** An exclusive transaction; undefined: the file is busy. Throws SQLite's error. */
function begin(path: string): Database.Database | undefined {
  const db = new Database(path, { timeout: 0 });
  try {
    // No journal file: a full disk keeps nobody from the lock.
    db.pragma("journal_mode = MEMORY");
    db.exec("BEGIN EXCLUSIVE");
    return db;
  } catch (error) {
    db.close();
    if (error instanceof Database.SqliteError && error.code.startsWith("SQLITE_BUSY")) return undefined;
    throw error;
  }
}
