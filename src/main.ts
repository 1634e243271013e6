import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import manifest from "../package.json" with { type: "json" };
import { type CommandIo, EXIT } from "./commands/io.ts";
import { createProgram, parseCommandLine } from "./commands/program.ts";
import type { Log } from "./model/context.ts";
import { createLogger } from "./os/log.ts";
import { budgetLog } from "./os/log-budget.ts";
import { capturePrinted } from "./os/printed.ts";

/** The command line's edge: arguments, signals, streams and the exit code of the process, and nothing else. */

const stop = new AbortController();
let crashLog: Log | undefined;
/** Lines that libraries may print in a minute. */
const PRINTED_PER_MINUTE = 60;
let printed: Log | undefined;

const io: CommandIo = {
  stdout: process.stdout,
  stderr: process.stderr,
  // Not opened before a verb reads it.
  get stdin() {
    return process.stdin;
  },
  env: process.env,
  pid: process.pid,
  signal: stop.signal,
  version: manifest.version,
  crashesTo: (log) => {
    crashLog = log;
    printed = budgetLog(log, { linesPerMinute: PRINTED_PER_MINUTE, of: "libraries" });
  },
  // The worker entries lie beside this file, as sources and in the bundle alike.
  workerUrl: (name) => new URL(`./workers/${name}${extname(fileURLToPath(import.meta.url))}`, import.meta.url),
};

// What libraries print is no verb's answer: it is the service's to log, and a verb's to leave out.
capturePrinted((words) => printed?.debug({ words }, "a library printed"));

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)
  process.on(signal, () => {
    if (stop.signal.aborted) process.exit(code);
    stop.abort(new Error(`stopped by ${signal}`));
  });

// Whoever reads our output may leave: a verb then ends, and a service goes on without its listener.
process.stdout.on("error", () => stop.abort(new Error("nobody reads the output")));
process.stderr.on("error", () => undefined);

/** What nobody caught leaves the state of the process unknown: say it and end; systemd starts it anew. */
function crash(error: unknown): void {
  const log = crashLog ?? createLogger({ level: "debug", format: "text", stream: process.stderr, journald: false });
  log.error({ err: error instanceof Error ? error : new Error(String(error)) }, "internal error; the collector ends");
  process.exit(EXIT.ownFailure);
}
process.on("uncaughtException", crash);
process.on("unhandledRejection", crash);

parseCommandLine(createProgram(io), process.argv.slice(2), io).then((code) => process.exit(code), crash);
