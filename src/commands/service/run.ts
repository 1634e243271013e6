import { loadSettings } from "../../configuration/settings-file.ts";
import { SettingsError } from "../../configuration/strict-yaml.ts";
import { createLogger, isJournal } from "../../os/log.ts";
import { type CommandIo, EXIT, type ExitCode, logStream, UsageError } from "../io.ts";

/** `collector run`: the service, until the signal aborts. Throws UsageError where the settings cannot be used. */
export async function run(options: { readonly config?: string }, io: CommandIo): Promise<ExitCode> {
  const { settings, file } = settingsOrUsage(options.config);
  const log = createLogger({
    level: settings.log.level,
    format: settings.log.format,
    stream: logStream(io),
    journald: io.stderr.fd !== undefined && isJournal(io.env["JOURNAL_STREAM"], io.stderr.fd),
  });
  io.crashesTo(log);
  const { runService } = await import("../../run.ts");
  try {
    const { signal, version, env, pid, workerUrl } = io;
    const onHangup = (handler: () => void): void => io.onHangup(handler);
    await runService({ loaded: { settings, file }, log, signal, version, env, pid, workerUrl, onHangup });
    return EXIT.good;
  } catch (error) {
    log.error({ err: error, nextStep: "Correct what the message names, then start the collector again" }, "the collector cannot start");
    return EXIT.ownFailure;
  }
}

/** The settings; where they cannot be used, a UsageError with every problem. */
export function settingsOrUsage(config: string | undefined): ReturnType<typeof loadSettings> {
  try {
    return loadSettings(config);
  } catch (error) {
    if (error instanceof SettingsError) throw new UsageError(error.message);
    throw error;
  }
}
