import path from "node:path";
import * as z from "zod";
import type { RestoreFrom, RestoreLook, RestoreSummary } from "../../api/embedded.ts";
import { formatDuration } from "../../base/duration.ts";
import { escapeControls } from "../../base/plain-text.ts";
import { localSocketPath } from "../../service/local-socket.ts";
import { answer } from "../answer.ts";
import { type CommandIo, complain, type ExitCode, UsageError } from "../io.ts";
import { type Question, requireYes } from "../prompt.ts";
import { askService, ServiceError } from "../service/local-client.ts";
import { settingsOrUsage } from "../service/run.ts";
import { formatTable } from "../table.ts";
import { type ApiTaskOptions, withTask } from "./api.ts";

export interface RestoreOptions extends ApiTaskOptions {
  /** Restores without asking. */
  readonly yes?: boolean;
  /** The kept configuration instead of a backup. */
  readonly fromLastGood?: boolean;
}

const restoredSchema = z.object({
  file: z.string(),
  aside: z.string().nullable(),
  last_good_aside: z.string().nullable(),
  warnings: z.array(z.string()),
});
const summarySchema = z.object({
  file: z.string(),
  at: z.string(),
  counts: z.object({ data_sources: z.number(), data_sinks: z.number(), variables: z.number().nullable() }).nullable(),
  problem: z.string().nullable(),
});
const lookSchema = z.object({
  from: summarySchema,
  database: summarySchema.nullable(),
  last_good: summarySchema.nullable(),
  lost: z.object({ count: z.number(), names: z.array(z.string()) }),
});

/**
 * `collector api restore [FILE]`: the newest backup, the one named, or the kept configuration; only while no service runs. Compares what it would
 * restore with what it would replace, and asks. Throws UsageError: nobody answered yes.
 */
export async function restore(file: string | undefined, options: RestoreOptions, io: CommandIo): Promise<ExitCode> {
  if (file !== undefined && options.fromLastGood)
    throw new UsageError("--from-last-good takes no file: the kept configuration has a fixed place");
  const { settings } = settingsOrUsage(options.config);
  await requireStopped(settings.state_dir, io);
  const from: RestoreFrom = options.fromLastGood
    ? { type: "last_good" }
    : { type: "backup", file: file === undefined ? null : path.resolve(file) };
  let look: RestoreLook | undefined;
  const looked = await withTask({ type: "restore_look", from }, options, io, (result) => {
    look = lookSchema.parse(result);
  });
  if (!look) return looked;
  const comparison = `${comparisonLines(look, from, Date.now()).map(escapeControls).join("\n")}\n`;
  if (!options.yes) {
    io.stderr.write(comparison);
    await requireYes(RESTORE, options, io);
    // A person may have taken their time.
    await requireStopped(settings.state_dir, io);
  }
  // What was shown is what is taken, also where another backup was made meanwhile.
  const shown: RestoreFrom = from.type === "backup" ? { type: "backup", file: look.from.file } : from;
  const { from: brought, database, last_good } = look;
  return withTask({ type: "restore", from: shown }, options, io, (result) => {
    const restored = restoredSchema.parse(result);
    const lines = [
      ...(options.yes ? [comparison.trimEnd(), ""] : []),
      `Restored from ${restored.file}.`,
      ...(restored.aside === null ? [] : [`The former database is kept as ${restored.aside}.`]),
      ...(restored.last_good_aside === null ? [] : [`The former kept configuration is stored as ${restored.last_good_aside}.`]),
      "Start the service again: systemctl start collector",
    ];
    answer(io, options, { ...restored, restored: brought, replaced: database, last_good }, `${lines.join("\n")}\n`);
    for (const warning of options.json ? [] : restored.warnings) complain(io, warning);
  });
}

const RESTORE: Question = {
  text: "Restore this? The collector keeps a copy of what it replaces.",
  done: "restored",
  verb: "restore",
};

async function requireStopped(stateDir: string, io: CommandIo): Promise<void> {
  if (await runs(stateDir, io)) throw new UsageError("the collector is running on this database; stop it first: systemctl stop collector");
}

async function runs(stateDir: string, io: CommandIo): Promise<boolean> {
  try {
    await askService(localSocketPath(stateDir), "/status", io.signal);
    return true;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { cause } = error;
    // No socket, or one that a dead service left: nothing runs. Any other error comes from a service that runs.
    return !(cause instanceof Error && "code" in cause && (cause.code === "ENOENT" || cause.code === "ECONNREFUSED"));
  }
}

/** What would be restored, and what it would replace, for people. `now` is epoch ms. Pure. */
export function comparisonLines({ from, database, last_good, lost }: RestoreLook, { type }: RestoreFrom, now: number): readonly string[] {
  const isBackup = type === "backup";
  const summaries: readonly (readonly [what: string, summary: RestoreSummary | null])[] = [
    ...(isBackup ? [["backup", from] as const] : []),
    ["database, to be replaced", database],
    [isBackup ? "kept configuration" : "kept configuration, to be restored", isBackup ? last_good : from],
  ];
  const rows = summaries.map(([what, summary]) => (summary ? rowOf(what, summary, now) : [what, "-", "-", "-", "-", "-"]));
  const what = isBackup ? "the backup" : "the kept configuration";
  const more = lost.count > lost.names.length ? `, and ${lost.count - lost.names.length} more` : "";
  return [
    `${isBackup ? "Backup" : "Kept configuration"}: ${from.file}`,
    ...formatTable([["", "AS OF", "AGE", "SOURCES", "SINKS", "VARIABLES"], ...rows], new Set([3, 4, 5])),
    ...summaries.flatMap(([name, summary]) => (summary?.problem ? [`${name}: ${summary.problem}`] : [])),
    ...(lost.count === 0
      ? []
      : [`${lost.count} data source${lost.count === 1 ? " is" : "s are"} not in ${what}: ${lost.names.join(", ")}${more}`]),
    ...(isBackup && hasMore(last_good, from)
      ? ["The kept configuration has more than the backup: collector api restore --from-last-good restores that."]
      : []),
  ];
}

function rowOf(what: string, { at, counts }: RestoreSummary, now: number): readonly string[] {
  const ageMs = now - Date.parse(at);
  const age = ageMs < 0 ? "in the future" : formatDuration(ageMs);
  const { data_sources = "?", data_sinks = "?", variables = "?" } = counts ?? {};
  return [what, at, age, String(data_sources), String(data_sinks), String(variables ?? "-")];
}

const hasMore = (one: RestoreSummary | null, other: RestoreSummary): boolean =>
  one?.counts != null &&
  other.counts !== null &&
  (one.counts.data_sources > other.counts.data_sources ||
    one.counts.data_sinks > other.counts.data_sinks ||
    (one.counts.variables ?? 0) > (other.counts.variables ?? 0));
