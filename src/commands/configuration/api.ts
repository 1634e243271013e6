import path from "node:path";
import * as z from "zod";
import type { ApiTask } from "../../api/embedded.ts";
import { toJson } from "../../base/json.ts";
import { plain } from "../../base/plain-text.ts";
import { messageOf } from "../../model/failure.ts";
import { uuidSchema } from "../../model/uuid.ts";
import { answer, answerList } from "../answer.ts";
import { exportOut, readIn, requireFolder, writeOut } from "../files.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { requireYes } from "../prompt.ts";
import { settingsOrUsage } from "../service/run.ts";
import { formatTable } from "../table.ts";
import { installed } from "./api-connection.ts";
import { osUserOf, runTask } from "./api-task.ts";

/** The verbs of the embedded API's own machine: they work on its database, whether the service runs or not. */
export interface ApiTaskOptions {
  readonly config?: string;
  readonly json?: boolean;
}

const keySchema = z.object({
  id: z.number(),
  role: z.string(),
  collector: z.string().nullable(),
  name: z.string().nullable(),
  file: z.string().nullable(),
  created_at: z.string(),
});
type Key = z.output<typeof keySchema>;
const auditSchema = z.array(
  z.object({
    at: z.string(),
    role: z.string(),
    key_id: z.number().nullable(),
    key_name: z.string().nullable(),
    address: z.string(),
    operation: z.string(),
    resource: z.string().nullable(),
    fields: z.array(z.string()),
    name: z.string().nullable(),
    changes: z.array(z.object({ field: z.string(), from: z.string().nullable(), to: z.string().nullable() })),
    os_user: z.string().nullable(),
  }),
);

/** `collector api key create`: prints the key, which is kept nowhere. */
export function keyCreate(
  options: ApiTaskOptions & { readonly role: string; readonly collector?: string; readonly name?: string },
  io: CommandIo,
): Promise<ExitCode> {
  const { role, collector = "", name = null } = options;
  if (role !== "admin" && role !== "collector") throw new UsageError(`--role ${role}: expected admin or collector`);
  if (role === "collector" && !uuidSchema.safeParse(collector).success)
    throw new UsageError("a collector's key needs --collector, the uuid of that collector");
  return withTask({ type: "key_create", role, collector: collector.toLowerCase(), name }, options, io, (result) => {
    const { key, info } = z.object({ key: z.string(), info: keySchema }).parse(result);
    if (options.json) io.stdout.write(`${toJson({ ...info, key })}\n`);
    else {
      io.stderr.write(
        plain`Key ${info.id} (${info.role}${info.name === null ? "" : `, ${info.name}`}). It is shown this once and kept nowhere:\n`,
      );
      io.stdout.write(`${key}\n`);
    }
  });
}

/** `collector api key list`. */
export function keyList(options: ApiTaskOptions, io: CommandIo): Promise<ExitCode> {
  return withTask({ type: "key_list" }, options, io, (result) => {
    const keys = z.array(keySchema).parse(result);
    answerList(
      io,
      options,
      keys,
      "No keys yet.\n",
      {
        ID: ({ id }) => String(id),
        ROLE: ({ role }) => role,
        NAME: ({ name }) => name ?? "-",
        COLLECTOR: ({ collector }) => collector ?? "-",
        CREATED: ({ created_at }) => created_at,
      },
      ["ID"],
    );
  });
}

/** `collector api key revoke ID`: asks before it revokes a key that this machine uses itself. */
export async function keyRevoke(idText: string, options: ApiTaskOptions & { readonly yes?: boolean }, io: CommandIo): Promise<ExitCode> {
  if (!/^\d{1,9}$/.test(idText)) throw new UsageError(`${idText} is not the number of a key; collector api key list shows them`);
  let ownKey: Key | undefined;
  const revoke = (own: boolean): Promise<ExitCode> =>
    withTask({ type: "key_revoke", id: Number(idText), own }, options, io, (result) => {
      const { revoked, key } = z.object({ revoked: z.boolean(), key: keySchema }).parse(result);
      if (revoked) answer(io, options, { action: "revoked", ...key }, `${keyWords(key)} is revoked.\n`);
      else ownKey = key;
    });
  const code = await revoke(options.yes === true);
  if (!ownKey) return code;
  await requireYes({ text: `${ownKeyWords(ownKey)} Revoke it?`, done: "revoked", verb: "revoke" }, options, io);
  return revoke(true);
}

const keyWords = ({ id, role, name }: Key): string => plain`Key ${id} (${role}${name === null ? "" : `, ${name}`})`;

/** What stops with a key that is this machine's own. */
const ownKeyWords = (key: Key): string =>
  key.role === "admin"
    ? `${keyWords(key)} is this machine's own: its commands (source, sink, variables) use ${key.file}, and end with 401 without it.`
    : `${keyWords(key)} is this machine's own: the collector here uses ${key.file}, and gets no change of its configuration without it until it starts again.`;

/** `collector api audit`: the newest changes, newest first. */
export function audit(options: ApiTaskOptions & { readonly limit: string }, io: CommandIo): Promise<ExitCode> {
  if (!/^[1-9]\d{0,5}$/.test(options.limit)) throw new UsageError(`--limit ${options.limit}: expected a number from 1 to 999999`);
  return withTask({ type: "audit", limit: Number(options.limit) }, options, io, (result) => {
    answerList(io, options, auditSchema.parse(result), "No changes yet.\n", {
      TIME: ({ at }) => at,
      ROLE: ({ role }) => role,
      KEY: ({ key_id, key_name }) => key_name ?? (key_id === null ? "-" : `key ${key_id}`),
      FROM: ({ address, os_user }) => (os_user === null ? address : `${address}, ${os_user}`),
      OPERATION: ({ operation }) => operation,
      RECORD: ({ name, resource }) => name ?? resource ?? "-",
      CHANGED: ({ operation, fields, changes }) => changedWords(operation, fields, changes),
    });
  });
}

/** What has changed, with old and new values of a change; what was created or deleted has the names of its fields. */
function changedWords(
  operation: string,
  fields: readonly string[],
  changes: readonly { readonly field: string; readonly from: string | null; readonly to: string | null }[],
): string {
  if (!operation.startsWith("patch")) return fields.join(",");
  const unseen = fields.filter((field) => !changes.some((change) => change.field === field));
  return [...changes.map(({ field, from, to }) => `${field}: ${from ?? "-"} → ${to ?? "-"}`), ...unseen].join(", ");
}

/** `collector api backup [FILE]`. */
export function backup(file: string | undefined, options: ApiTaskOptions & { readonly list?: boolean }, io: CommandIo): Promise<ExitCode> {
  if (options.list)
    return withTask({ type: "backups" }, options, io, (result) => {
      const backups = z.array(z.object({ file: z.string(), at: z.string() })).parse(result);
      answerList(io, options, backups, "There are no backups yet.\n", { TIME: ({ at }) => at, FILE: ({ file: name }) => name });
    });
  if (file !== undefined) requireFolder(file);
  return withTask({ type: "backup", file: file === undefined ? null : path.resolve(file) }, options, io, (result) => {
    const made = z.object({ file: z.string() }).parse(result);
    answer(
      io,
      options,
      made,
      plain`Written to ${made.file}. Its passwords are encrypted with keys/secrets.key, which it does not contain: keep that file as well.\n`,
    );
  });
}

const exportedSchema = z.object({ version: z.number() }).catchall(z.array(z.unknown()));
const MAX_IMPORT_BYTES = 64 * 2 ** 20;

/** `collector api export [FILE]`: every record, without secrets. */
export function exportAll(file: string | undefined, options: ApiTaskOptions, io: CommandIo): Promise<ExitCode> {
  return withTask({ type: "export" }, options, io, (result) => {
    const content = z.string().parse(result);
    if (options.json) {
      const exported = exportedSchema.parse(JSON.parse(content));
      const { version: _, ...records } = exported;
      if (file === undefined || file === "-") io.stdout.write(`${toJson(exported)}\n`);
      else exportOut(io, file, options, content, records);
      return;
    }
    writeOut(io, file, content);
    if (file !== undefined && file !== "-") io.stdout.write(plain`Written to ${file}. It holds no passwords.\n`);
  });
}

const importedSchema = z.object({
  counts: z.record(z.string(), z.object({ created: z.number(), changed: z.number(), same: z.number() })).nullable(),
  problems: z.array(z.string()),
  warnings: z.array(z.string()),
});

/** `collector api import FILE`: all records of it, or none. */
export async function importAll(
  file: string,
  options: ApiTaskOptions & { readonly dryRun?: boolean; readonly adopt?: boolean },
  io: CommandIo,
): Promise<ExitCode> {
  const content = jsonOf(file);
  const { settings } = settingsOrUsage(options.config);
  const own = settings.collector ?? installed(settings.state_dir);
  if (options.adopt && own === undefined) throw new UsageError("--adopt: this machine has no collector yet; start the service once");
  const task = { type: "import", content, adopt: options.adopt ? (own ?? null) : null, dryRun: options.dryRun === true } as const;
  let exit: ExitCode = EXIT.good;
  const code = await withTask(task, options, io, (result) => {
    const { counts, problems, warnings } = importedSchema.parse(result);
    const done = problems.length === 0 && !options.dryRun;
    if (options.json) io.stdout.write(`${toJson({ written: done, counts, problems, warnings })}\n`);
    for (const warning of options.json ? [] : warnings) complain(io, warning);
    for (const problem of options.json ? [] : problems) complain(io, `${file}: ${problem}`);
    if (problems.length > 0) {
      complain(io, "nothing was written");
      exit = EXIT.usage;
    } else if (!options.json) {
      const rows = Object.entries(counts ?? {}).map(([kind, { created, changed, same }]) => [
        kind,
        ...[created, changed, same].map(String),
      ]);
      io.stdout.write(`${formatTable([["", "CREATED", "CHANGED", "UNCHANGED"], ...rows], new Set([1, 2, 3])).join("\n")}\n`);
      if (!done) io.stdout.write("Nothing was written: --dry-run.\n");
    }
  });
  return code === EXIT.good ? exit : code;
}

function jsonOf(file: string): unknown {
  const text = readIn(file, MAX_IMPORT_BYTES).toString("utf8");
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${file} is not valid JSON: ${messageOf(error)}`);
  }
}

/** Carries the task out and passes its result to `tell`. Throws UsageError: the API is another machine's. */
export async function withTask(task: ApiTask, options: ApiTaskOptions, io: CommandIo, tell: (result: unknown) => void): Promise<ExitCode> {
  const { settings } = settingsOrUsage(options.config);
  if (settings.api)
    throw new UsageError(
      `the settings name another configuration API, ${settings.api.url}: ask that one for keys, audit trail and backups`,
    );
  const answered = await runTask(task, path.resolve(settings.state_dir), io.workerUrl("api"), osUserOf(io));
  if (answered.type === "failed") {
    complain(io, answered.message);
    return answered.isInput ? EXIT.usage : EXIT.ownFailure;
  }
  tell(answered.result);
  return EXIT.good;
}
