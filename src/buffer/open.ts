import { randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type Database from "better-sqlite3";
import { errorCode, messageOf } from "../model/failure.ts";
import { type RaiseAlarm, warning } from "../model/warning.ts";
import { AccountCopy } from "./account.ts";
import type { Ledger } from "./buffer.ts";
import { BufferFile, type BufferLimits } from "./buffer-file.ts";
import { type FileIdentity, type FileState, limitRights, load, openDatabase, prepareFile, versionOf } from "./file-state.ts";
import { lockBuffer } from "./lock.ts";
import { instant, joinedSpan, type LossTime, lossTable } from "./losses.ts";
import { stampNow } from "./machine-clock.ts";
import { type Mark, markFile, oldestOf, readMark } from "./mark.ts";
import { asideFiles } from "./recover.ts";
import { useReserve } from "./reserve.ts";
import { salvage, useSalvaged } from "./salvage.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import { isDamage, moveAside, setAside } from "./set-aside.ts";
import { readTip, type TipOf } from "./tip.ts";
import { mendWal, tornWal } from "./wal.ts";

export interface BufferOptions extends BufferLimits {
  /** What was found wrong with the file at run: it is set aside whatever it looks like. */
  readonly damage?: string | undefined;
  /** For the operator: a sentence about the file. */
  readonly onAlarm: RaiseAlarm;
}

/**
 * Opens or makes the buffer's file for this process alone: SQLite, WAL, synchronous=FULL. A damaged one is set aside with an alarm
 * and a new one begins; what was lost that way, or with a file that was emptied, replaced or rolled back, makes a new epoch with `lost`.
 * Throws where a new file would not help: rights, a full disk, another process (BufferInUseError).
 */
export function openBuffer(file: string, options: BufferOptions): BufferFile {
  mkdirSync(dirname(file), { recursive: true });
  let release: (() => void) | undefined;
  try {
    release = lockBuffer(file);
    limitRights(file);
    const buffer = openWithReserve(file, options, release);
    for (const newer of newerFiles(file)) options.onAlarm(warning("buffer_newer", newerWords(file, newer), newer));
    return buffer;
  } catch (error) {
    release?.();
    throw explained(error, file);
  }
}

/** On a full disk a file that is whole still opens: what waits in it can be delivered. */
function openWithReserve(file: string, options: BufferOptions, release: () => void): BufferFile {
  try {
    return openOrReplace(file, options, release);
  } catch (error) {
    if (!useReserve(file, error)) throw error;
    return openOrReplace(file, options, release);
  }
}

/** SQLite has the same few words for a read-only file system, for rights and for too many open files. */
function explained(error: unknown, file: string): unknown {
  const code = errorCode(error);
  if (!/^SQLITE_(CANTOPEN|READONLY)/.test(code)) return error;
  return new Error(
    `it cannot be opened for writing (${messageOf(error)}); "findmnt -T ${dirname(file)}" tells whether its file system is read-only, "ls -la ${dirname(file)}" who owns it`,
    { cause: error },
  );
}

function openOrReplace(file: string, options: BufferOptions, release: () => void): BufferFile {
  useSalvaged(file);
  if (options.damage !== undefined) return replace(file, options, options.damage, release);
  // SQLite leaves out what it cannot read of a WAL and reports nothing: it is looked at before.
  const mended = mendedWal(`${file}-wal`);
  if (mended)
    options.onAlarm(warning("buffer_damaged", `${file}-wal was damaged: ${mended}; the disk or the memory of this machine is at fault`));
  const torn = tornWal(`${file}-wal`);
  const version = versionOf(file);
  if (version > SCHEMA_VERSION) return keepNewer(file, version, options, release);
  try {
    return openFile(file, options, torn, release);
  } catch (error) {
    if (!isDamage(error, file)) throw error;
    return replace(file, options, messageOf(error), release);
  }
}

/** Says in words how a damaged WAL was mended; undefined: it was not. One that cannot be written stays as it is. */
function mendedWal(walFile: string): string | undefined {
  try {
    const { bits, frames } = mendWal(walFile);
    const words = [
      ...(bits > 0 ? [`${bits} wrong bit(s) were put right`] : []),
      ...(frames > 0 ? [`${frames} damaged page(s) in it cost what they hold, and nothing behind them`] : []),
    ];
    return words.length > 0 ? words.join(", ") : undefined;
  } catch {
    return undefined;
  }
}

/** What can be read of it goes on in a new file; where nothing can, an empty one begins. */
function replace(file: string, options: BufferOptions, damage: string, release: () => void): BufferFile {
  const now = stampNow(options);
  const salvaged = salvage(file, now, (part) =>
    options.onAlarm(
      warning(
        "buffer_damaged",
        `the buffer ${file} is damaged (${damage}): ${Math.floor(100 * part)} % of what is pending in it has been taken over; values that are read wait in memory meanwhile`,
      ),
    ),
  );
  const target = setAside(file, now.ms, options.maxBytes, salvaged !== undefined);
  useSalvaged(file);
  const kept = target === undefined ? "it is gone" : `it is kept as ${target}`;
  if (!salvaged) {
    const why = `the buffer ${file} is damaged (${damage}): ${kept}, what was pending in it is not delivered; "collector buffer list" tells what can be recovered`;
    return openFile(file, options, why, release);
  }
  const buffer = openFile(file, options, undefined, release);
  const delivered =
    salvaged.lost === 0 ? "all values that were pending in it are" : `all but ${salvaged.lost} values that were pending in it are`;
  options.onAlarm(
    warning("buffer_damaged", `the buffer ${file} is damaged (${damage}): ${kept}, and ${delivered} delivered from a new one`),
  );
  return buffer;
}

/** A file of a newer collector is no damaged one: it waits beside the new one, untouched, for a collector that reads it. */
function keepNewer(file: string, version: number, options: BufferOptions, release: () => void): BufferFile {
  moveAside(file, `version-${version}`);
  return openFile(file, options, NEWER, release);
}

/** Said at each start until a collector has read them. */
const newerFiles = (file: string): readonly string[] => asideFiles(file).flatMap(({ state, path }) => (state === "newer" ? [path] : []));

const newerWords = (file: string, path: string): string =>
  `the buffer ${file} was written by a newer collector (version ${/version-(\d+)/.exec(path)?.[1]} of the file, this one reads up to ${SCHEMA_VERSION}): it is kept as ${path}, and what was pending in it is delivered by the newer one; nothing of it is lost`;

/** Instead of why something is lost: it waits for a newer collector. */
const NEWER = Symbol("newer");

/** `why`: what is known of a loss. `release`: to be called when the buffer was closed. */
function openFile(file: string, options: BufferOptions, why: string | typeof NEWER | undefined, release: () => void): BufferFile {
  const db = openDatabase(file);
  try {
    prepareFile(db, file);
    const loaded = load(db);
    const mark = readMark(file);
    const loss = why ?? lossSince(loaded, mark, readTip(file), file);
    const current = loss === undefined ? goOn(loaded, mark) : begin(db, loaded, mark, loss, stampNow(options));
    const buffer = new BufferFile(db, file, current, options, release);
    if (typeof loss === "string") options.onAlarm(warning("buffer_lost", loss));
    return buffer;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** What is lost of a file that is in order in itself, by the mark outside; undefined: it is the one that the mark is of. */
function lossSince(
  { epoch, nextId, savedNextId }: FileState & FileIdentity,
  mark: Mark | undefined,
  tip: TipOf | undefined,
  file: string,
): string | undefined {
  if (!mark || mark.sinks.length === 0) return undefined;
  if (mark.epoch !== epoch)
    return `the buffer ${file} is gone, and another or an empty one is in its place (${markFile(file)} knows it): what was pending in it is not delivered`;
  if (nextId < mark.from)
    return `the buffer ${file} is an older copy of itself: it ends at batch ${nextId - 1}, and batch ${mark.from - 1} had been stored; what was pending beyond is not delivered`;
  if (tip?.epoch === epoch && savedNextId < tip.nextId)
    return `the buffer ${file} lacks its last batches, up to ${tip.nextId - 1}: it ends at batch ${savedNextId - 1}, and ${file}-wal, which had them, was cut or removed while the collector did not run; what was pending of them is not delivered`;
  return undefined;
}

/** Ids given before a death may have been seen outside without being in the file: none of them is used again. */
function goOn(loaded: FileState & FileIdentity, mark: Mark | undefined): FileState & FileIdentity {
  if (!mark) return loaded;
  const nextId = mark.closed && mark.epoch === loaded.epoch ? loaded.nextId : Math.max(loaded.nextId, mark.to);
  return { ...loaded, nextId, reservedId: Math.max(nextId, loaded.reservedId) };
}

/** A new epoch of the account; what the file still holds is delivered in it. */
function begin(
  db: Database.Database,
  loaded: FileState & FileIdentity,
  mark: Mark | undefined,
  why: string | typeof NEWER,
  now: LossTime,
): FileState & FileIdentity {
  const epoch = randomUUID();
  const since = mark ? oldestOf(mark) : now;
  const lost: Ledger["lost"] = why === NEWER ? null : { since: since.ms, why };
  const reason = why === NEWER ? "newer_version" : "lost";
  const losses = lossTable(db);
  db.transaction(() => {
    db.prepare<[string, number | null, string | null]>("UPDATE meta SET epoch = ?, lost_since = ?, lost_why = ?").run(
      epoch,
      lost?.since ?? null,
      lost?.why ?? null,
    );
    new AccountCopy(db).save();
    for (const sink of mark?.sinks ?? []) losses.add({ sink, reason, values: null, ...joinedSpan(instant(since), instant(now)) });
  }).immediate();
  const { epoch: _, ...state } = goOn(loaded, mark && { ...mark, closed: false });
  return { ...state, epoch, lost };
}
