import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import { openAudit } from "./audit.ts";
import { type Database, openDatabase, renewEpoch } from "./database.ts";

/** Backups that are kept; the oldest go first. */
const KEPT = 7;
const EVERY_MS = 24 * 3_600_000;
const LOOK_EVERY_MS = 3_600_000;
const NAME = /^configuration-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z\.db$/;

/** Where the backups of a database are: beside it, in `backups`. */
export const backupsDir = (databaseFile: string): string => join(dirname(databaseFile), "backups");

export interface Backup {
  readonly file: string;
  /** ISO 8601 UTC. */
  readonly at: string;
}

/**
 * The backups there are, newest first; last those of a time after `now` (epoch ms), which were made while the clock was wrong. An absent
 * folder holds none.
 */
export function listBackups(databaseFile: string, now: number = Date.now()): Backup[] {
  const folder = backupsDir(databaseFile);
  if (!existsSync(folder)) return [];
  const backups = readdirSync(folder)
    .filter((name) => NAME.test(name))
    .sort()
    .reverse()
    .map((name) => ({ file: join(folder, name), at: name.replace(NAME, "$1-$2-$3T$4:$5:$6.$7Z") }));
  const { before = [], after = [] } = Object.groupBy(backups, ({ at }) => (Date.parse(at) > now ? "after" : "before"));
  return [...before, ...after];
}

/**
 * Writes a backup, whole or not at all, and drops the oldest beyond KEPT. Secrets in it are sealed with the key file, which is not in it.
 * `now` is epoch ms. Rejects with the system's or SQLite's error.
 */
export async function makeBackup(db: Database, databaseFile: string, now: number = Date.now()): Promise<string> {
  const folder = backupsDir(databaseFile);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, `configuration-${new Date(now).toISOString().replaceAll(/[-:.]/g, "")}.db`);
  await copyDatabase(db, file);
  for (const { file: old } of listBackups(databaseFile, now).slice(KEPT)) rmSync(old, { force: true });
  return file;
}

/** As makeBackup, to a file of the caller's choice, which is replaced. */
export async function copyDatabase(db: Database, file: string): Promise<void> {
  const temporary = `${file}.tmp`;
  try {
    rmSync(temporary, { force: true });
    closeSync(openSync(temporary, "wx", 0o600));
    await db.backup(temporary);
    chmodSync(temporary, 0o600);
    syncPath(temporary);
    renameSync(temporary, file);
    syncPath(dirname(file));
  } finally {
    for (const suffix of ["", "-wal", "-shm", "-journal"]) rmSync(temporary + suffix, { force: true });
  }
}

export interface DailyBackups {
  /** Settles once nothing is under way. */
  stop(): Promise<void>;
}

/** Keeps a backup of each day that the server runs, the first at once where there is none of today. */
export function startDailyBackups(db: Database, databaseFile: string, log: Log): DailyBackups {
  let running: Promise<void> = Promise.resolve();
  const look = (): void => {
    const [newest] = listBackups(databaseFile);
    if (newest && Math.abs(Date.now() - Date.parse(newest.at)) < EVERY_MS) return;
    running = running
      .then(() => makeBackup(db, databaseFile))
      .then((file) => log.info({ file }, "a backup of the configuration was written"))
      .catch((error: unknown) => log.warn({ folder: backupsDir(databaseFile) }, `no backup of the configuration: ${messageOf(error)}`));
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  look();
  return {
    stop() {
      clearInterval(timer);
      return running;
    },
  };
}

/**
 * Throws where the database is missing or empty while backups of it exist: to begin anew then would tell the collector that everything
 * was deleted.
 */
export function refuseToBeginAnew(databaseFile: string, size: number): void {
  const [newest] = listBackups(databaseFile);
  if (size > 0 || !newest) return;
  throw new Error(
    `the configuration database ${databaseFile} is missing or empty, and there is a backup of ${newest.at}: ` +
      `bring it back with \`collector api restore\`, or move ${backupsDir(databaseFile)} away to begin anew`,
  );
}

/**
 * Puts a backup in the place of the database; what was there stays beside it under a name that is returned. Only while no server runs on it.
 * Throws an Error that names the file which is not usable; what was there is then as before.
 */
export function restoreBackup(databaseFile: string, backup: string): { readonly aside: string | null } {
  const temporary = `${databaseFile}.restored`;
  const remove = (file: string): void => {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
  };
  remove(temporary);
  try {
    copyFileSync(backup, temporary);
    chmodSync(temporary, 0o600);
    const db = openDatabase(temporary);
    try {
      renewEpoch(db);
      openAudit(db).record({ role: "command_line", address: "local" }, "restoreBackup", null, []);
      db.pragma("wal_checkpoint(TRUNCATE)");
      db.pragma("journal_mode = DELETE");
    } finally {
      db.close();
    }
    syncPath(temporary);
  } catch (error) {
    remove(temporary);
    throw new Error(`the backup ${backup} cannot be used: ${messageOf(error)}`, { cause: error });
  }
  const aside = existsSync(databaseFile) ? `${databaseFile}.replaced-${Date.now()}` : null;
  // The old log first: beside the restored database it would be taken for its own.
  if (aside) linkSync(databaseFile, aside);
  if (existsSync(`${databaseFile}-wal`)) renameSync(`${databaseFile}-wal`, `${aside ?? databaseFile}-wal${aside ? "" : ".old"}`);
  rmSync(`${databaseFile}-shm`, { force: true });
  renameSync(temporary, databaseFile);
  syncPath(dirname(databaseFile));
  return { aside };
}

function syncPath(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
