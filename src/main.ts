import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import manifest from "../package.json" with { type: "json" };
import { type CommandIo, EXIT } from "./commands/io.ts";
import { createProgram, parseCommandLine } from "./commands/program.ts";
import type { Log } from "./model/context.ts";
import { messageOf } from "./model/failure.ts";

/** The command line's edge: arguments, signals, streams and the exit code of the process, and nothing else. */

const stop = new AbortController();
let crashLog: Log | undefined;

const io: CommandIo = {
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  signal: stop.signal,
  version: manifest.version,
  crashesTo: (log) => {
    crashLog = log;
  },
  // The worker entries lie beside this file, as sources and in the bundle alike.
  workerUrl: (name) => new URL(`./workers/${name}${extname(fileURLToPath(import.meta.url))}`, import.meta.url),
};

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

function crash(error: unknown): void {
  if (crashLog) crashLog.error({ err: error }, "internal error; the collector ends");
  else process.stderr.write(`collector: internal error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exit(EXIT.ownFailure);
}
process.on("uncaughtException", crash);
process.on("unhandledRejection", crash);

try {
  process.exit(await parseCommandLine(createProgram(io), process.argv.slice(2), io));
} catch (error) {
  process.stderr.write(`collector: ${messageOf(error)}\n`);
  process.exit(EXIT.ownFailure);
}
