import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { syncPath } from "../../lib/files.ts";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import { openAudit } from "./audit.ts";
import { type Database, openSnapshot } from "./database.ts";
import { documentText, UnrestorableError } from "./document.ts";
import { KEPT } from "./import-file.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/**
 * Generations: of each step of time, the newest backup of the last so many steps that have one is kept. A backup of before a mistake outlives
 * however many are made after it.
 */
const GENERATIONS: readonly { readonly stepMs: number; readonly kept: number }[] = [
  { stepMs: 1, kept: 3 },
  { stepMs: HOUR_MS, kept: 4 },
  { stepMs: DAY_MS, kept: 7 },
  { stepMs: 7 * DAY_MS, kept: 4 },
];
/** Milliseconds. */
export interface BackupTimes {
  /** How often it is looked whether one is due. */
  readonly lookMs: number;
  /** One is made when the configuration has not changed for this long after a change … */
  readonly quietMs: number;
  /** … and at the latest this long after the first change that no backup has, while changes go on. */
  readonly longestMs: number;
}

export const BACKUP_TIMES: BackupTimes = { lookMs: 30_000, quietMs: 120_000, longestMs: 900_000 };
/** Builds of before wrote copies of the database, `.db`. */
const NAME = /^configuration-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z\.(?:json|db)$/;

/** The place where the backups of a database are: in `backups` in its folder. */
export const backupsDir = (databaseFile: string): string => join(dirname(databaseFile), "backups");

export interface Backup {
  readonly file: string;
  /** ISO 8601 UTC. */
  readonly at: string;
}

/** When a backup was taken, ISO 8601 UTC, as its name says; undefined: it has another name. */
export function backupTime(file: string): string | undefined {
  const name = basename(file);
  return NAME.test(name) ? name.replace(NAME, "$1-$2-$3T$4:$5:$6.$7Z") : undefined;
}

/**
 * The backups there are, newest first; last those of a time after `now` (epoch ms), which were made while the clock was wrong. An absent
 * folder holds none.
 */
export function listBackups(databaseFile: string, now: number = Date.now()): Backup[] {
  const folder = backupsDir(databaseFile);
  if (!existsSync(folder)) return [];
  const backups = readdirSync(folder)
    .sort()
    .reverse()
    .flatMap((name) => {
      const at = backupTime(name);
      return at === undefined ? [] : [{ file: join(folder, name), at }];
    });
  const { before = [], after = [] } = Object.groupBy(backups, ({ at }) => (Date.parse(at) > now ? "after" : "before"));
  return [...before, ...after];
}

/** Which of these backups are kept, newest first as they are listed. Pure. */
export function keptBackups(backups: readonly Backup[]): ReadonlySet<Backup> {
  const kept = new Set<Backup>();
  for (const { stepMs, kept: most } of GENERATIONS) {
    const steps = new Set<number>();
    for (const backup of backups) {
      const step = Math.floor(Date.parse(backup.at) / stepMs);
      if (steps.has(step)) continue;
      if (steps.size === most) break;
      steps.add(step);
      kept.add(backup);
    }
  }
  return kept;
}

/**
 * Writes a backup and drops those that no generation keeps. Secrets in it are sealed with the key file, which is not in it. `now` is epoch ms.
 * Rejects with the system's or SQLite's error.
 */
export async function makeBackup(databaseFile: string, now: number = Date.now()): Promise<string> {
  const folder = backupsDir(databaseFile);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, `configuration-${new Date(now).toISOString().replaceAll(/[-:.]/g, "")}.json`);
  await writeBackup(databaseFile, file);
  const backups = listBackups(databaseFile, now);
  const kept = keptBackups(backups);
  for (const backup of backups) if (!kept.has(backup)) rmSync(backup.file, { force: true });
  return file;
}

/**
 * Writes a backup to a file of the caller's choice, which is replaced, whole or not at all. Others may write to the database meanwhile. Where a
 * restore would refuse a record of the document, it is a copy of the database, which holds whatever that holds, and which a restore takes too.
 */
export async function writeBackup(databaseFile: string, file: string): Promise<void> {
  const temporary = `${file}.tmp`;
  const db = openSnapshot(databaseFile);
  try {
    await writeWhole(temporary, (handle) => handle.writeFile(documentText(db, KEPT))).catch(async (error: unknown) => {
      if (!(error instanceof UnrestorableError)) throw error;
      await writeWhole(temporary, () => copyDatabase(db, temporary));
    });
    renameSync(temporary, file);
    syncPath(dirname(file));
  } finally {
    db.close();
    rmSync(temporary, { force: true });
  }
}

async function writeWhole(file: string, write: (handle: FileHandle) => Promise<void>): Promise<void> {
  rmSync(file, { force: true });
  const handle = await open(file, "wx", 0o600);
  try {
    await write(handle);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function copyDatabase(snapshot: Database, file: string): Promise<void> {
  snapshot.exec("COMMIT");
  await snapshot.backup(file);
}

export interface Backups {
  /** Settles once nothing is under way. */
  stop(): Promise<void>;
}

/**
 * Keeps backups while the server runs: one of each day, the first at once where there is none of today, and one soon after changes of the
 * configuration, which are those that the trail has.
 */
export function startBackups(db: Database, databaseFile: string, log: Log, times: Partial<BackupTimes> = {}): Backups {
  const { lookMs, quietMs, longestMs } = { ...BACKUP_TIMES, ...times };
  const audit = openAudit(db);
  let running: Promise<void> | undefined;
  /** Id of the newest change that a backup has. */
  let saved: number | undefined;
  let seen: { readonly id: number; readonly sinceMs: number } | undefined;
  let unsavedSinceMs: number | undefined;

  const isDue = (): boolean => {
    const now = performance.now();
    const [newest] = listBackups(databaseFile);
    const change = audit.lastChange();
    const id = change?.id ?? 0;
    saved ??= newest && (!change || newest.at >= change.at) ? id : -1;
    if (seen?.id !== id) seen = { id, sinceMs: now };
    unsavedSinceMs = id === saved ? undefined : (unsavedSinceMs ?? now);
    if (!newest || Math.abs(Date.now() - Date.parse(newest.at)) >= DAY_MS) return true;
    return unsavedSinceMs !== undefined && (now - seen.sinceMs >= quietMs || now - unsavedSinceMs >= longestMs);
  };
  const make = async (): Promise<void> => {
    const id = audit.lastChange()?.id ?? 0;
    const file = await makeBackup(databaseFile);
    saved = id;
    unsavedSinceMs = undefined;
    log.info({ file }, "a backup of the configuration was written");
  };
  const look = (): void => {
    if (running) return;
    try {
      if (!isDue()) return;
    } catch (error) {
      fail(error);
      return;
    }
    running = make()
      .catch(fail)
      .finally(() => {
        running = undefined;
      });
  };
  let logged: string | undefined;
  const fail = (error: unknown): void => {
    const message = messageOf(error);
    if (message !== logged) log.warn({ folder: backupsDir(databaseFile) }, `no backup of the configuration: ${message}`);
    logged = message;
  };
  const timer = setInterval(look, lookMs);
  look();
  return {
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}

/**
 * Throws where the database is missing or empty while backups of it exist: starting with an empty one would show the collector that everything
 * was deleted.
 */
export function refuseEmptyDatabase(databaseFile: string, size: number): void {
  const [newest] = listBackups(databaseFile);
  if (size > 0 || !newest) return;
  throw new Error(
    `the configuration database ${databaseFile} is missing or empty, and there is a backup of ${newest.at}: ` +
      `bring it back with \`collector api restore\`, or move ${backupsDir(databaseFile)} away to start with an empty one`,
  );
}
