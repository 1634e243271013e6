import {
  closeSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { syncPath } from "../../lib/files.ts";
import { messageOf } from "../../model/failure.ts";
import type { Restored, RestoreFrom, RestoreLook, RestoreSummary } from "../embedded.ts";
import { readLastGood } from "../last-good.ts";
import { type Actor, commandLine, openAudit } from "./audit.ts";
import { backupTime, listBackups } from "./backups.ts";
import { openCollectors } from "./collectors.ts";
import { openDatabase, renewEpoch, WAY_BACK } from "./database.ts";
import { keptOf, replaceKept } from "./document.ts";
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

/** A configuration as a file has it. */
interface Document {
  readonly records: ImportedRecords;
  /** All is of this one; null: of those that the records name, and there is nothing else. */
  readonly collector: string | null;
  readonly hasVariables: boolean;
  readonly kept: ReturnType<typeof keptOf>;
  /** Fields of the file that are not taken over, in words. */
  readonly warnings: readonly string[];
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
  const from = type === "last_good" ? lastGood : await contentOf(places, file, "backup");
  if (!from) throw new Error(`there is no kept configuration ${lastGoodFile}`);
  if (from.summary.problem !== null) throw new Error(from.summary.problem);
  const database = existsSync(databaseFile) ? await contentOf(places, databaseFile, "database") : undefined;
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

/** Looks into what a restore would make of it, or a copy: opening a database writes to it, and one that is damaged stays as it is. */
async function contentOf(places: RestorePlaces, file: string, what: "backup" | "database"): Promise<Content> {
  const copy = join(dirname(places.databaseFile), ".restore-look.db");
  try {
    mkdirSync(dirname(copy), { recursive: true, mode: 0o700 });
    removeDatabase(copy);
    if (what === "backup") await fill(places, copy, file, what, commandLine());
    else copyDatabaseFiles(file, copy);
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
    return unreadable(file, what === "backup" ? unusable(file, copy, error) : wordsOf(file, copy, error));
  } finally {
    removeDatabase(copy);
  }
}

/** Whoever reads this is on the way back already. */
const wordsOf = (file: string, copy: string, error: unknown): string =>
  messageOf(error).replaceAll(copy, file).replace(`: ${WAY_BACK}`, "");

const unusable = (file: string, copy: string, error: unknown): string => `the backup ${file} cannot be used: ${wordsOf(file, copy, error)}`;

/**
 * Puts a backup, an export, a database that was put aside or the kept configuration in the place of the database. What was there stays aside, and
 * so does a copy of the kept configuration, under the names that are returned. Only while no server runs on it. Rejects with an Error that
 * names the file which is not usable; what was there is then as before.
 */
export async function restore(
  places: RestorePlaces,
  file: string,
  type: RestoreFrom["type"],
  actor: Actor = commandLine(),
): Promise<Restored> {
  const temporary = `${places.databaseFile}.restored`;
  mkdirSync(dirname(temporary), { recursive: true, mode: 0o700 });
  removeDatabase(temporary);
  try {
    const warnings = await fill(places, temporary, file, type, actor);
    finish(temporary, type === "backup" ? "restoreBackup" : "restoreLastGood", actor);
    return { file, ...replaceDatabase(places, temporary), warnings };
  } catch (error) {
    removeDatabase(temporary);
    throw new Error(type === "backup" ? unusable(file, temporary, error) : messageOf(error), { cause: error });
  }
}

/** Prepares a database from a file. Returns what a person has to do in addition. Rejects where it is not usable. */
async function fill(
  places: RestorePlaces,
  temporary: string,
  file: string,
  type: RestoreFrom["type"],
  actor: Actor,
): Promise<readonly string[]> {
  if (type === "backup" && isDatabase(file)) {
    copyDatabaseFiles(file, temporary);
    openDatabase(temporary).close();
    return [];
  }
  const document = type === "backup" ? readDocument(file) : await documentOfLastGood(file);
  if (!document.kept) await fillBase(places, temporary, actor);
  return bring(temporary, document, actor);
}

/** True: a copy of the database, as builds of before wrote their backups and as what is replaced is put aside. */
function isDatabase(file: string): boolean {
  const start = Buffer.alloc(16);
  const handle = openSync(file, "r");
  try {
    readSync(handle, start);
  } finally {
    closeSync(handle);
  }
  return start.toString("latin1") === "SQLite format 3\0";
}

function readDocument(file: string): Document {
  const what = "it is not a backup or an export of this program";
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new Error(`${what}: ${messageOf(error)}`, { cause: error });
  }
  if (typeof content !== "object" || content === null || !("version" in content)) throw new Error(`${what}: it has no version`);
  const { api_keys: _keys, secrets: _secrets, audit: _audit, ...lists } = content as Readonly<Record<string, unknown>>;
  return { ...parsed(lists), collector: null, hasVariables: true, kept: keptOf(content) };
}

async function documentOfLastGood(file: string): Promise<Document> {
  const read = await readLastGood(file);
  if (read.type !== "loaded") throw new Error(read.message);
  const { collector, sources, sinks, variables } = read.configuration;
  const { records } = parsed({ data_sources: sources, data_sinks: sinks, variables: variables ?? [] });
  // Its records hold what the collector reports, too.
  return { records, warnings: [], collector, hasVariables: variables !== null, kept: undefined };
}

function parsed(content: unknown): Pick<Document, "records" | "warnings"> {
  const { problems, ...read } = parseImport(content);
  if (problems.length > 0) throw new Error(problems.join("; "));
  return read;
}

/**
 * Prepares a database from the one that is replaced: a configuration without keys, stored secrets and audit trail gets those of there. Where it
 * cannot be read, from the newest backup that can.
 */
async function fillBase(places: RestorePlaces, temporary: string, actor: Actor): Promise<void> {
  const { databaseFile } = places;
  for (const file of [databaseFile, ...listBackups(databaseFile).map((backup) => backup.file)])
    try {
      // An export in the place of a backup has nothing of it.
      if (!isDatabase(file) && !readDocument(file).kept) continue;
      await fill(places, temporary, file, "backup", actor);
      return;
    } catch {
      removeDatabase(temporary);
    }
}

/** Makes the records those of the document; gives what a person has to do in addition. */
function bring(file: string, { records, warnings, collector, hasVariables, kept }: Document, actor: Actor): readonly string[] {
  const db = openDatabase(file);
  try {
    const collectors = openCollectors(db);
    if (collector !== null) collectors.ensure(collector);
    const remove = (table: "data_sources" | "data_sinks" | "variables", uuids: readonly { readonly uuid: string }[]): void => {
      db.prepare(`DELETE FROM ${table} WHERE collector = ifnull(?, collector) AND uuid NOT IN (SELECT value FROM json_each(?))`).run(
        collector,
        JSON.stringify(uuids.map(({ uuid }) => uuid)),
      );
    };
    remove("data_sources", records.data_sources);
    remove("data_sinks", records.data_sinks);
    if (hasVariables) remove("variables", records.variables);
    db.exec("DELETE FROM secrets WHERE owner NOT IN (SELECT uuid FROM data_sources) AND owner NOT IN (SELECT uuid FROM data_sinks)");
    const imported = importRecords(db, { collectors, audit: openAudit(db), actor }, records, false);
    if (imported.problems.length > 0) throw new Error(`the configuration cannot be restored: ${imported.problems.join("; ")}`);
    if (!kept) return [...warnings, ...imported.warnings];
    // The import misses the secrets that come now.
    db.transaction(() => replaceKept(db, kept))();
    return warnings;
  } finally {
    db.close();
  }
}

/** Leaves the prepared database on disk as one file. */
function finish(file: string, operation: string, actor: Actor): void {
  const db = openDatabase(file);
  try {
    renewEpoch(db);
    openAudit(db).record(actor, operation, null, []);
    db.pragma("wal_checkpoint(TRUNCATE)");
    db.pragma("journal_mode = DELETE");
  } finally {
    db.close();
  }
  syncPath(file);
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
