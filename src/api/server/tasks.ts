import { existsSync } from "node:fs";
import type { MessagePort } from "node:worker_threads";
import { messageOf } from "../../model/failure.ts";
import type { ApiTask, ApiTaskAnswer, ApiTaskData, RestoreFrom } from "../embedded.ts";
import { type Actor, commandLine, openAudit } from "./audit.ts";
import { listBackups, makeBackup, writeBackup } from "./backups.ts";
import { openCollectors } from "./collectors.ts";
import { type Database, openDatabase } from "./database.ts";
import { documentText } from "./document.ts";
import { importRecords } from "./import.ts";
import { type ImportedRecords, parseImport } from "./import-file.ts";
import { createKey, listKeys, revokeKey } from "./keys.ts";
import { lookAtRestore, type RestorePlaces, restore } from "./restore.ts";

/** What the task asks for is wrong; whoever typed it can put it right. */
class InputError extends Error {
  override readonly name = "InputError";
}

/** Carries out a task of the command line and answers once. Never rejects. */
export async function runApiTask(port: MessagePort, { task, osUser, ...places }: ApiTaskData): Promise<void> {
  const answer = await carryOut(places, task, commandLine(osUser)).then(
    (result): ApiTaskAnswer => ({ type: "done", result }),
    (error: unknown): ApiTaskAnswer => ({ type: "failed", message: messageOf(error), isInput: error instanceof InputError }),
  );
  port.postMessage(answer);
  port.close();
}

async function carryOut(places: RestorePlaces, task: ApiTask, actor: Actor): Promise<unknown> {
  const { databaseFile } = places;
  if (task.type === "backups") return listBackups(databaseFile);
  if (task.type === "restore_look" || task.type === "restore") {
    const { from } = task;
    const file = restoredFrom(places, from);
    return task.type === "restore_look" ? lookAtRestore(places, file, from.type) : restore(places, file, from.type, actor);
  }
  if (!existsSync(databaseFile))
    throw new Error(`there is no configuration database ${databaseFile}: the service makes it when it first starts without api.url`);
  const db = openDatabase(databaseFile);
  try {
    return await onDatabase(db, databaseFile, task, actor);
  } finally {
    db.close();
  }
}

/** Throws InputError where there is none. */
function restoredFrom({ databaseFile, lastGoodFile }: RestorePlaces, from: RestoreFrom): string {
  if (from.type === "last_good") {
    if (!existsSync(lastGoodFile)) throw new InputError(`there is no kept configuration ${lastGoodFile}`);
    return lastGoodFile;
  }
  const file = from.file ?? listBackups(databaseFile)[0]?.file;
  if (file === undefined) throw new InputError(`there is no backup of ${databaseFile}; name a file`);
  if (!existsSync(file)) throw new InputError(`there is no backup ${file}`);
  return file;
}

type DatabaseTask = Exclude<ApiTask, { type: "backups" | "restore" | "restore_look" }>;

async function onDatabase(db: Database, databaseFile: string, task: DatabaseTask, actor: Actor): Promise<unknown> {
  switch (task.type) {
    case "key_create":
      return db.transaction(() => {
        if (task.role === "collector" && !openCollectors(db).exists(task.collector))
          throw new InputError(`there is no collector ${task.collector} in this configuration database`);
        const grant = task.role === "admin" ? ({ role: "admin" } as const) : ({ role: "collector", collector: task.collector } as const);
        const key = createKey(db, grant, task.name);
        openAudit(db).record(actor, "createKey", null, ["role", "name"]);
        return { key, info: listKeys(db).at(-1) };
      })();
    case "key_list":
      return listKeys(db);
    case "key_revoke":
      return db.transaction(() => {
        const keys = listKeys(db);
        const key = keys.find(({ id }) => id === task.id);
        if (!key) throw new InputError(`there is no key ${task.id}: \`collector api key list\` shows them`);
        if (key.role === "admin" && keys.filter(({ role }) => role === "admin").length === 1)
          throw new InputError(`key ${task.id} is the last admin's: make another one first`);
        if (key.file !== null && !task.own) return { revoked: false, key };
        revokeKey(db, task.id);
        openAudit(db).record(actor, "revokeKey", null, []);
        return { revoked: true, key };
      })();
    case "audit":
      return openAudit(db).newest(task.limit);
    case "export":
      // One state of it all, whoever writes meanwhile.
      return db.transaction(() => [...documentText(db, [])].join(""))();
    case "import": {
      const { records, problems, warnings } = parseImport(task.content);
      if (problems.length > 0) return { counts: null, problems, warnings };
      const [collectors, audit] = [openCollectors(db), openAudit(db)];
      const own = task.adopt === null ? records : adopted(records, task.adopt);
      const imported = importRecords(db, { collectors, audit, actor }, own, task.dryRun);
      return { ...imported, warnings: [...warnings, ...imported.warnings] };
    }
    case "backup": {
      if (task.file === null) return { file: await makeBackup(databaseFile) };
      await writeBackup(databaseFile, task.file);
      return { file: task.file };
    }
  }
}

/** The records as those of one collector; the file's own collectors are left out. */
const adopted = (records: ImportedRecords, collector: string): ImportedRecords => ({
  ...records,
  collectors: [],
  data_sources: records.data_sources.map((record) => ({ ...record, collector })),
  data_sinks: records.data_sinks.map((record) => ({ ...record, collector })),
});
