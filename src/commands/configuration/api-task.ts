import { accessSync, chownSync, closeSync, constants, copyFileSync, mkdtempSync, openSync, rmSync, statSync, utimesSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import path from "node:path";
import { Worker } from "node:worker_threads";
import * as z from "zod";
import { type ApiTask, type ApiTaskAnswer, type ApiTaskData, embeddedDatabase, lastGoodFile } from "../../api/embedded.ts";
import { hasCode, replaceFileFrom } from "../../lib/files.ts";
import { messageOf } from "../../model/failure.ts";
import { asOwnerOf } from "../../os/owner.ts";
import type { CommandIo } from "../io.ts";

const TASK_TIMEOUT_MS = 120_000;

/**
 * Carries a task out in the API's own worker, the only one that opens its database. Where root asks, the worker runs as the owner of the
 * state folder: it leaves no file there that the service cannot open, and no link there leads root anywhere. Never rejects.
 */
export async function runTask(task: ApiTask, stateDir: string, entry: URL, osUser: string): Promise<ApiTaskAnswer> {
  const databaseFile = embeddedDatabase(stateDir);
  if (isDenied(databaseFile))
    return failed(`${databaseFile} may not be opened by this user; it belongs to the service: type the command with sudo`);
  const carryOut = (given: ApiTask): Promise<ApiTaskAnswer> =>
    inWorker(entry, { databaseFile, lastGoodFile: lastGoodFile(path.resolve(stateDir)), osUser, task: given });
  try {
    const owner = statSync(stateDir, { throwIfNoEntry: false });
    if (!owner || owner.uid === 0 || process.geteuid?.() !== 0) return await carryOut(task);
    const asOwner = (given: ApiTask): Promise<ApiTaskAnswer> => asOwnerOf(stateDir, () => carryOut(given));
    if ((task.type === "restore" || task.type === "restore_look") && task.from.type === "backup")
      return await restoreFor(task.type, task.from.file, owner, asOwner);
    return task.type === "backup" && task.file !== null ? await backUpFor(task.file, owner, asOwner) : await asOwner(task);
  } catch (error) {
    return failed(messageOf(error));
  }
}

/** Who types the command: with sudo the person, not root. */
export const osUserOf = ({ env }: Pick<CommandIo, "env">): string => env["SUDO_USER"] || userName() || "unknown";

/** Empty where the system does not know the user. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "";
  }
}

const failed = (message: string): ApiTaskAnswer => ({ type: "failed", message, isInput: false });

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

const backupsSchema = z.array(z.object({ file: z.string() }));

/** The backup is read as who typed the command: it may be where the owner of the state folder cannot read. */
async function restoreFor(
  type: "restore" | "restore_look",
  named: string | null,
  owner: Owner,
  asOwner: (task: ApiTask) => Promise<ApiTaskAnswer>,
): Promise<ApiTaskAnswer> {
  const taskFrom = (file: string | null): ApiTask => ({ type, from: { type: "backup", file } });
  const listed = named === null ? await asOwner({ type: "backups" }) : undefined;
  const file = named ?? (listed?.type === "done" ? backupsSchema.parse(listed.result)[0]?.file : undefined);
  const stat = file === undefined ? undefined : statSync(file, { throwIfNoEntry: false });
  // There is none: the task says so.
  if (file === undefined || !stat) return asOwner(taskFrom(named));
  return between(async (folder) => {
    // Its name and its time tell when it was taken.
    const staged = path.join(folder, path.basename(file));
    copyFileSync(file, staged);
    utimesSync(staged, stat.atime, stat.mtime);
    chownSync(staged, owner.uid, owner.gid);
    // A database that was put aside may have its log next to it.
    if (statSync(`${file}-wal`, { throwIfNoEntry: false })) {
      copyFileSync(`${file}-wal`, `${staged}-wal`);
      chownSync(`${staged}-wal`, owner.uid, owner.gid);
    }
    chownSync(folder, owner.uid, owner.gid);
    const answer = await asOwner(taskFrom(staged));
    if (answer.type === "failed") return { ...answer, message: answer.message.replaceAll(staged, file) };
    return { ...answer, result: JSON.parse(JSON.stringify(answer.result).replaceAll(JSON.stringify(staged), JSON.stringify(file))) };
  });
}

/** The backup is put in its place as who typed the command: the owner of the state folder may have no right there. */
const backUpFor = (file: string, owner: Owner, asOwner: (task: ApiTask) => Promise<ApiTaskAnswer>): Promise<ApiTaskAnswer> =>
  between(async (folder) => {
    const staged = path.join(folder, "backup.json");
    chownSync(folder, owner.uid, owner.gid);
    const answer = await asOwner({ type: "backup", file: staged });
    if (answer.type === "failed") return { ...answer, message: answer.message.replaceAll(staged, file) };
    // Of the owner's folder nothing is followed: a link there would lead root elsewhere.
    const handle = openSync(staged, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      replaceFileFrom(file, handle);
    } finally {
      closeSync(handle);
    }
    return { ...answer, result: { file } };
  });

/** A folder of its own for what passes between two users. */
async function between<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(path.join(tmpdir(), "collector-"));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function isDenied(file: string): boolean {
  try {
    accessSync(file, constants.R_OK | constants.W_OK);
    return false;
  } catch (error) {
    return hasCode(error, "EACCES") || hasCode(error, "EPERM");
  }
}

function inWorker(entry: URL, workerData: ApiTaskData): Promise<ApiTaskAnswer> {
  return new Promise((done) => {
    const worker = new Worker(entry, { workerData });
    const settle = (answer: ApiTaskAnswer): void => {
      clearTimeout(timer);
      done(answer);
      void worker.terminate();
    };
    const timer = setTimeout(() => settle(failed(`it was not done within ${TASK_TIMEOUT_MS / 1000} s`)), TASK_TIMEOUT_MS);
    worker.once("message", (answer: ApiTaskAnswer) => settle(answer));
    worker.once("error", (error) => settle(failed(messageOf(error))));
    worker.once("exit", () => settle(failed("it ended without an answer")));
  });
}
