import { type LoadedSettings, loadSettings, startSettings } from "../../configuration/settings-file.ts";
import { SettingsError } from "../../configuration/strict-yaml.ts";
import { commandsAt } from "../../model/words/commands-at.ts";
import { openJournal } from "../../os/journal.ts";
import { createLogger, isJournal } from "../../os/log.ts";
import { RecentLog } from "../../service/recent-log.ts";
import { type CommandIo, EXIT, type ExitCode, logStream, UsageError } from "../io.ts";
import { settingsToName } from "../printed-commands.ts";

/** `collector run`: the service, until the signal aborts. Throws UsageError where neither the settings nor the last good ones can be used. */
export async function run(options: { readonly config?: string }, io: CommandIo): Promise<ExitCode> {
  const loaded = orUsage(() => startSettings(options.config));
  const { settings } = loaded;
  const recentLog = new RecentLog();
  const journald = io.stderr.fd !== undefined && isJournal(io.env["JOURNAL_STREAM"], io.stderr.fd);
  const named = settingsToName(io.typed);
  const log = createLogger({
    level: settings.log.level,
    format: settings.log.format,
    stream: logStream(io),
    onLine: recentLog.take,
    complete: named && ((text) => commandsAt(text, named)),
    journald,
    journal: journald ? openJournal(io.env) : undefined,
  });
  io.crashesTo(log);
  const { runService } = await import("../../run.ts");
  try {
    const { signal, version, env, pid, workerUrl } = io;
    const onHangup = (handler: () => void): void => io.onHangup(handler);
    await runService({ loaded, log, recentLog, signal, version, env, pid, workerUrl, onHangup, named });
    return EXIT.good;
  } catch (error) {
    log.error({ err: error, nextStep: "Correct what the message names, then start the collector again" }, "the collector cannot start");
    return EXIT.ownFailure;
  }
}

/** The settings; where they cannot be used, a UsageError with every problem. */
export const settingsOrUsage = (config: string | undefined): LoadedSettings => orUsage(() => loadSettings(config));

function orUsage<T>(load: () => T): T {
  try {
    return load();
  } catch (error) {
    if (error instanceof SettingsError) throw new UsageError(error.message);
    throw error;
  }
}
