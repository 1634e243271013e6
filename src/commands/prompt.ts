import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { type CommandIo, StoppedError, UsageError } from "./io.ts";

/**
 * Asks the person, without showing what is typed. Where nobody can type, or nothing was typed, the error names `otherwise`: how to give it then.
 * `json`: a program runs the verb, and nothing is asked. Throws UsageError: nothing may be asked, there is no terminal, or nothing was
 * typed; and StoppedError.
 */
export async function askHidden(what: string, otherwise: string, io: CommandIo, { json = false } = {}): Promise<string> {
  if (json) throw new UsageError(`the ${what} is not given, and --json never prompts; ${otherwise}`);
  if (!io.stdin.isTTY) throw new UsageError(`there is no terminal to type the ${what} on; ${otherwise}`);
  io.stderr.write(`${what.charAt(0).toUpperCase()}${what.slice(1)} (not shown): `);
  const typed = await typedLine(io, { hidden: true });
  if (typed === "") throw new UsageError(`the ${what} is empty; type it, or ${otherwise}`);
  return typed;
}

/** Asks the person whether to do it; anything but `yes` or `y` is no. There must be a terminal. Throws StoppedError. */
async function askYes(question: string, io: CommandIo): Promise<boolean> {
  io.stderr.write(`${question} Type yes or no: `);
  return /^y(es)?$/i.test((await typedLine(io, { hidden: false })).trim());
}

/** What is asked before something is done. */
export interface Question {
  readonly text: string;
  /** In `nothing was …` and in `to … without asking`: `restored`, `restore`. */
  readonly done: string;
  readonly verb: string;
}

/**
 * As `askYes`, where only yes goes on; `yes`: it was said with the command. Throws UsageError where the person answers otherwise, and where
 * nobody can be asked, on no terminal or with `json`; and StoppedError.
 */
export async function requireYes(
  { text, done, verb }: Question,
  { json = false, yes = false }: { readonly json?: boolean; readonly yes?: boolean },
  io: CommandIo,
): Promise<void> {
  if (yes) return;
  if (json || !io.stdin.isTTY)
    throw new UsageError(
      `nothing was ${done}: ${json ? "with --json" : "without a terminal"} the collector cannot ask; add --yes to ${verb} without asking`,
    );
  if (!(await askYes(text, io))) throw new UsageError(`nothing was ${done}: the answer was not yes`);
}

/** One line from the terminal. Throws StoppedError. */
async function typedLine(io: CommandIo, { hidden }: { readonly hidden: boolean }): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  // Without `terminal`, the terminal itself shows what is typed.
  const terminal = createInterface({ input: io.stdin, output: silent, terminal: hidden });
  try {
    // Hidden, Ctrl-C and Ctrl-D come as keys, not as a signal, and end the question; a terminal that goes away ends nothing but the stream.
    const gone = once(terminal, "close").then(() => Promise.reject(new StoppedError()));
    return await Promise.race([terminal.question("", { signal: io.signal }), gone]);
  } catch (error) {
    if (error instanceof Error && error.name === "AbortError") throw new StoppedError();
    throw error;
  } finally {
    terminal.close();
    if (hidden) io.stderr.write("\n");
  }
}
