import type { Command } from "commander";
import type { ExitCode } from "./io.ts";

/** What the definitions of all verbs share. Nothing here loads a driver, a database or a schema. */

const CONFIG = ["-c, --config <file>", "settings file (default: /etc/collector/collector.yaml)"] as const;
export const KEY_FILE = ["--key-file <file>", "file with the API key (default: the settings' one)"] as const;
export const PASSWORD_FILE = ["--password-file <file>", "file whose first line is the password; a password is never an argument"] as const;
export const JSON_ARRAY = "print one JSON array";

export const EXIT_CODES = `
Exit codes:
  0  good            1  some variable is bad     2  wrong command line or settings
  3  a source failed 4  the collector failed`;

export interface VerbHelp {
  readonly description: string;
  /** What each argument of the usage is, by its name there. */
  readonly args?: Readonly<Record<string, string>>;
  readonly examples: readonly string[];
  /** What `--json` prints; absent: one JSON object. False: the verb has no such option, for it has an output of its own. */
  readonly json?: string | false;
}

/**
 * Adds a verb to a program or a group of verbs; `usage` is its name and its arguments (`add <name> [file]`). It takes `--config`, and `--json`
 * (DESIGN 7).
 */
export function addVerb(parent: Command, usage: string, help: VerbHelp): Command {
  const { description, args = {}, examples, json = "print one JSON object" } = help;
  const command = parent
    .command(usage)
    .description(description)
    .option(...CONFIG)
    .allowExcessArguments(false)
    .addHelpText("after", `\nExamples:\n${examples.map((example) => `  ${example}`).join("\n")}`);
  if (json !== false) command.option("--json", json);
  command.showHelpAfterError(`(${wordsOf(command).join(" ")} --help explains it)`);
  for (const argument of command.registeredArguments) argument.description = args[argument.name()] ?? "";
  return command;
}

/** The words that call it, the program's own first. */
const wordsOf = (command: Command): readonly string[] => [...(command.parent ? wordsOf(command.parent) : []), command.name()];

/** Makes actions of verbs out of functions that give an exit code; `done` takes the code. */
export const actionsTo =
  (done: (code: ExitCode) => void) =>
  <A extends unknown[]>(work: (...args: A) => Promise<ExitCode>) =>
  async (...args: A): Promise<void> =>
    done(await work(...args));
