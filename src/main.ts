import { closeSync, constants, existsSync, openSync, writeFileSync } from "node:fs";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import manifest from "../package.json" with { type: "json" };
import { sleep } from "./base/timer.ts";
import { type CommandIo, complain, EXIT, type ExitCode, PlainOutput } from "./commands/io.ts";
import { createProgram, parseCommandLine } from "./commands/program.ts";
import { budgetLog } from "./lib/log-budget.ts";
import { capturePrinted } from "./lib/thread/printed.ts";
import type { Log } from "./model/context.ts";
import { createLogger } from "./os/log.ts";
import { isReaderGone, ProcessOutput } from "./os/process-output.ts";

/** The command line's edge: arguments, signals, streams and the exit code of the process, and nothing else. */

/** How long a service that ends waits for whoever takes its log. A verb waits as long as its reader lives, or until a signal. */
const LAST_LINES_MS = 1000;

/**
 * Before the process exits, so that V8's threads end what they compile: Node 24 joins them in exit, and one that waits for a collection,
 * which only this thread makes, is then waited for without end. Idle, this thread makes it.
 */
const IDLE_MS = 40;

nameProcess();

const stop = new AbortController();
/** Of the service; a verb has none. */
let crashLog: Log | undefined;
/** Lines that libraries may print in a minute. */
const PRINTED_PER_MINUTE = 60;
let printed: Log | undefined;
let isEnding = false;

// Whoever reads our output may leave: a verb then ends, and a service goes on without its listener.
const stdout = new ProcessOutput(process.stdout, () => stop.abort(new Error("nothing reads the output")));
const stderr = new ProcessOutput(process.stderr, () => undefined);

const io: CommandIo = {
  stdout: new PlainOutput(stdout),
  stderr: new PlainOutput(stderr),
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
  onHangup: (handler) => {
    process.on("SIGHUP", () => {
      // A terminal that was closed sends the same signal: a service in its foreground ends with it.
      if (process.stderr.isTTY && isTerminalGone()) stop.abort(new Error("the terminal was closed"));
      else handler();
    });
  },
  // Beside the sources in a checkout; beside the installed program where its package is.
  addOn: (name) => {
    const isSource = extname(fileURLToPath(import.meta.url)) === ".ts";
    const url = new URL(isSource ? `../${name}/main.ts` : `../../collector-${name}/main.js`, import.meta.url);
    return existsSync(url) ? url : undefined;
  },
  // The worker entries lie beside this file, as sources and in the bundle alike.
  workerUrl: (name) => new URL(`./threads/${name}/worker${extname(fileURLToPath(import.meta.url))}`, import.meta.url),
};

// What libraries print is no verb's answer: it is the service's to log, and a verb's to leave out.
capturePrinted((words) => printed?.debug({ words }, "a library printed"));

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)
  process.on(signal, () => {
    if (stop.signal.aborted || isEnding) process.exit(code);
    stop.abort(new Error(`stopped by ${signal}`));
  });

/** What ps, top and pgrep show instead of Node: the program with its words, and its bare name. */
function nameProcess(): void {
  process.title = ["collector", ...process.argv.slice(2)].join(" ");
  try {
    writeFileSync("/proc/self/comm", "collector");
  } catch {
    // No Linux; the title has to do.
  }
}

/** True: this process has lost its controlling terminal (tty(4)), or never had one. */
function isTerminalGone(): boolean {
  try {
    closeSync(openSync("/dev/tty", constants.O_RDONLY | constants.O_NOCTTY));
    return false;
  } catch {
    return true;
  }
}

/** Ends the process: with everything printed first. */
async function end(code: ExitCode): Promise<void> {
  isEnding = true;
  const patience = () => (crashLog ? AbortSignal.timeout(LAST_LINES_MS) : undefined);
  await Promise.all([stdout.delivered(patience()), stderr.delivered(patience())]);
  const { failure } = stdout;
  const isWhole = !failure || isReaderGone(failure);
  if (!isWhole) complain(io, `the output is not complete, because it cannot be written: ${failure.message}`);
  await stderr.delivered(patience());
  await sleep(IDLE_MS);
  process.exit(isWhole ? code : EXIT.ownFailure);
}

/** What nobody caught leaves the state of the process unknown: say it and end; systemd starts it again. */
function crash(error: unknown): void {
  const log = crashLog ?? createLogger({ level: "debug", format: "text", stream: stderr, journald: false });
  log.error({ err: error instanceof Error ? error : new Error(String(error)) }, "internal error; the collector ends");
  if (isEnding) process.exit(EXIT.ownFailure);
  crashLog = log;
  void end(EXIT.ownFailure);
}
process.on("uncaughtException", crash);
process.on("unhandledRejection", crash);

parseCommandLine(createProgram(io), process.argv.slice(2), io).then(end, crash);
