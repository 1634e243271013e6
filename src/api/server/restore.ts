import { copyFileSync, existsSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { syncPath } from "../../lib/files.ts";
import { messageOf } from "../../model/failure.ts";
import type { Restored, RestoreFrom, RestoreLook, RestoreSummary } from "../embedded.ts";
import { readLastGood } from "../last-good.ts";
import { type Actor, commandLine, openAudit } from "./audit.ts";
import { backupTime, listBackups } from "./backups.ts";
import { openCollectors } from "./collectors.ts";
import { type Database, openDatabase, renewEpoch, WAY_BACK } from "./database.ts";
import { importRecords } from "./import.ts";
import { type ImportedRecords, parseImport } from "./import-file.ts";

/** Bringing a configuration back: what it would change is shown first, and nothing that is replaced is gone. */

/** What is replaced stays aside this many times, of each kind; the oldest go first. */
const MAX_ASIDE = 5;
/** Data sources that are named because a restore would not bring them; the others are counted. */
const MAX_LOST_NAMES = 10;

export interface RestorePlaces {
  readonly databaseFile: string;
  readonly lastGoodFile: string;
}

interface Source {
  readonly uuid: string;
  readonly name: string;
}

/** A summary with what it counts. */
interface Content {
  readonly summary: RestoreSummary;
  readonly sources: readonly Source[];
}

/** What a restore would bring and what it would replace. Changes nothing. Throws an Error that names the backup which cannot be used. */
export async function lookAtRestore(places: RestorePlaces, file: string, type: RestoreFrom["type"]): Promise<RestoreLook> {
  const { databaseFile, lastGoodFile } = places;
  const lastGood = existsSync(lastGoodFile) ? await contentOfLastGood(lastGoodFile) : undefined;
  const from = type === "last_good" ? lastGood : contentOfDatabase(file, dirname(databaseFile), "backup");
  if (!from) throw new Error(`there is no kept configuration ${lastGoodFile}`);
  if (from.summary.problem !== null) throw new Error(from.summary.problem);
  const database = existsSync(databaseFile) ? contentOfDatabase(databaseFile, dirname(databaseFile), "database") : undefined;
  const brought = new Set(from.sources.map(({ uuid }) => uuid));
  const there = new Map([...(database?.sources ?? []), ...(lastGood?.sources ?? [])].map(({ uuid, name }) => [uuid, name]));
  const lost = [...there].filter(([uuid]) => !brought.has(uuid)).map(([, name]) => name);
  return {
    from: from.summary,
    database: database?.summary ?? null,
    last_good: lastGood?.summary ?? null,
    lost: { count: lost.length, names: lost.slice(0, MAX_LOST_NAMES) },
  };
}

async function contentOfLastGood(file: string): Promise<Content> {
  const read = await readLastGood(file);
  if (read.type !== "loaded") return unreadable(file, read.message);
  const { fetchedAt, sources, sinks, variables } = read.configuration;
  const counts = { data_sources: sources.length, data_sinks: sinks.length, variables: variables?.length ?? null };
  return { summary: { file, at: fetchedAt, counts, problem: null }, sources };
}

const unreadable = (file: string, problem: string): Content => ({
  summary: { file, at: statSync(file).mtime.toISOString(), counts: null, problem },
  sources: [],
});

/** Looks into a copy: opening a database writes to it, and one that is damaged stays as it is. */
function contentOfDatabase(file: string, folder: string, what: "backup" | "database"): Content {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const copy = join(folder, ".restore-look.db");
  try {
    removeDatabase(copy);
    copyDatabaseFiles(file, copy);
    const db = openDatabase(copy);
    try {
      const count = (table: string): number => db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0;
      const counts = { data_sources: count("data_sources"), data_sinks: count("data_sinks"), variables: count("variables") };
      const changed = openAudit(db).lastChange()?.at;
      const at = (what === "backup" ? backupTime(file) : changed) ?? statSync(file).mtime.toISOString();
      const sources = db.prepare<[], Source>("SELECT uuid, name FROM data_sources ORDER BY id").all();
      return { summary: { file, at, counts, problem: null }, sources };
    } finally {
      db.close();
    }
  } catch (error) {
    // Whoever reads this is on the way back.
    const message = messageOf(error).replaceAll(copy, file).replace(`: ${WAY_BACK}`, "");
    return unreadable(file, what === "backup" ? `the backup ${file} cannot be used: ${message}` : message);
  } finally {
    removeDatabase(copy);
  }
}

/**
 * Puts a backup in the place of the database. What was there stays aside, and so does a copy of the kept configuration, under the names that are
 * returned. Only while no server runs on it. Throws an Error that names the file which is not usable; what was there is then as before.
 */
export function restoreBackup(places: RestorePlaces, backup: string, actor: Actor = commandLine()): Restored {
  const temporary = temporaryOf(places);
  try {
    copyDatabaseFiles(backup, temporary);
    finish(temporary, "restoreBackup", actor);
  } catch (error) {
    removeDatabase(temporary);
    throw new Error(`the backup ${backup} cannot be used: ${messageOf(error).replaceAll(temporary, backup).replace(`: ${WAY_BACK}`, "")}`, {
      cause: error,
    });
  }
  return { file: backup, ...replaceDatabase(places, temporary), warnings: [] };
}

/**
 * As restoreBackup, with the data sources, data sinks and variables of the collector as it keeps them. All else, such as keys and stored secrets,
 * comes from the database that is replaced; where that cannot be read, from the newest backup that can.
 */
export async function restoreLastGood(places: RestorePlaces, actor: Actor = commandLine()): Promise<Restored> {
  const { databaseFile, lastGoodFile } = places;
  const read = await readLastGood(lastGoodFile);
  if (read.type !== "loaded") throw new Error(read.message);
  const { collector, sources, sinks, variables } = read.configuration;
  const { records, problems } = parseImport({ data_sources: sources, data_sinks: sinks, variables: variables ?? [] });
  if (problems.length > 0) throw new Error(`the kept configuration ${lastGoodFile} cannot be used: ${problems.join("; ")}`);
  const temporary = temporaryOf(places);
  try {
    const base = baseOf(databaseFile);
    if (base !== undefined) copyDatabaseFiles(base, temporary);
    const warnings = finish(temporary, "restoreLastGood", actor, (db) => bring(db, collector, records, variables !== null, actor));
    return { file: lastGoodFile, ...replaceDatabase(places, temporary), warnings };
  } catch (error) {
    removeDatabase(temporary);
    throw error;
  }
}

/** The database itself, else the newest backup; undefined: none of them can be read. */
function baseOf(databaseFile: string): string | undefined {
  const folder = dirname(databaseFile);
  const isUsable = (file: string): boolean => contentOfDatabase(file, folder, "backup").summary.problem === null;
  if (existsSync(databaseFile) && statSync(databaseFile).size > 0 && isUsable(databaseFile)) return databaseFile;
  return listBackups(databaseFile)
    .map(({ file }) => file)
    .find(isUsable);
}

/** Makes a collector's records those that are given; gives what a person has to do in addition. */
function bring(db: Database, collector: string, records: ImportedRecords, withVariables: boolean, actor: Actor): readonly string[] {
  const collectors = openCollectors(db);
  collectors.ensure(collector);
  const remove = (table: "data_sources" | "data_sinks" | "variables", kept: readonly { readonly uuid: string }[]): void => {
    db.prepare(`DELETE FROM ${table} WHERE collector = ? AND uuid NOT IN (SELECT value FROM json_each(?))`).run(
      collector,
      JSON.stringify(kept.map(({ uuid }) => uuid)),
    );
  };
  remove("data_sources", records.data_sources);
  remove("data_sinks", records.data_sinks);
  if (withVariables) remove("variables", records.variables);
  db.exec("DELETE FROM secrets WHERE owner NOT IN (SELECT uuid FROM data_sources) AND owner NOT IN (SELECT uuid FROM data_sinks)");
  const { problems, warnings } = importRecords(db, { collectors, audit: openAudit(db), actor }, records, false);
  if (problems.length > 0) throw new Error(`the kept configuration cannot be restored: ${problems.join("; ")}`);
  collectors.touch(collector);
  return warnings;
}

/** The place where a database is prepared; nothing is there. */
function temporaryOf({ databaseFile }: RestorePlaces): string {
  mkdirSync(dirname(databaseFile), { recursive: true, mode: 0o700 });
  const temporary = `${databaseFile}.restored`;
  removeDatabase(temporary);
  return temporary;
}

/** Checks the prepared database, changes it, and leaves it on disk as one file. Throws where it is not usable. */
function finish(
  file: string,
  operation: "restoreBackup" | "restoreLastGood",
  actor: Actor,
  change: (db: Database) => readonly string[] = () => [],
): readonly string[] {
  const db = openDatabase(file);
  let warnings: readonly string[];
  try {
    warnings = change(db);
    renewEpoch(db);
    openAudit(db).record(actor, operation, null, []);
    db.pragma("wal_checkpoint(TRUNCATE)");
    db.pragma("journal_mode = DELETE");
  } finally {
    db.close();
  }
  syncPath(file);
  return warnings;
}

/** The kept configuration first: the service overwrites it with what the new database holds. */
function replaceDatabase({ databaseFile, lastGoodFile }: RestorePlaces, prepared: string): Pick<Restored, "aside" | "last_good_aside"> {
  const suffix = `.replaced-${Date.now()}`;
  const lastGoodAside = existsSync(lastGoodFile) ? `${lastGoodFile}${suffix}` : null;
  if (lastGoodAside !== null) {
    copyFileSync(lastGoodFile, lastGoodAside);
    syncPath(lastGoodAside);
    syncPath(dirname(lastGoodAside));
  }
  const aside = existsSync(databaseFile) ? `${databaseFile}${suffix}` : null;
  // The old log first: SQLite would take it for the log of the restored database.
  if (aside !== null) linkSync(databaseFile, aside);
  if (existsSync(`${databaseFile}-wal`)) renameSync(`${databaseFile}-wal`, `${databaseFile}${suffix}-wal`);
  rmSync(`${databaseFile}-shm`, { force: true });
  renameSync(prepared, databaseFile);
  syncPath(dirname(databaseFile));
  for (const file of [databaseFile, lastGoodFile]) removeOldAsides(file);
  return { aside, last_good_aside: lastGoodAside };
}

/** Of what was put aside, the newest MAX_ASIDE stay. */
function removeOldAsides(file: string): void {
  const prefix = `${basename(file)}.replaced-`;
  const stamps = readdirSync(dirname(file)).flatMap((name) =>
    name.startsWith(prefix) ? [Number.parseInt(name.slice(prefix.length), 10)] : [],
  );
  const old = [...new Set(stamps)].sort((a, b) => b - a).slice(MAX_ASIDE);
  for (const stamp of old) removeDatabase(join(dirname(file), `${prefix}${stamp}`));
}

/** With its log: what a service that was killed wrote last, or what was put aside after that, is in there. */
function copyDatabaseFiles(from: string, to: string): void {
  copyFileSync(from, to);
  if (existsSync(`${from}-wal`)) copyFileSync(`${from}-wal`, `${to}-wal`);
}

function removeDatabase(file: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
}
