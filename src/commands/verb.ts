import type { CommandIo, ExitCode } from "./io.ts";

/** What the records of all verbs share. Nothing here loads a driver, a database or a schema. */

/** `flags` in the words of commander: `-t, --type <type>`. */
export interface Option {
  readonly flags: string;
  readonly description: string;
  readonly default?: string;
  /** The verb needs it. */
  readonly required?: true;
  /** It may be given several times; the verb gets the list of its values. */
  readonly repeats?: true;
}

export interface Verb {
  /** Name and arguments (`add <name> [file]`). */
  readonly usage: string;
  readonly description: string;
  /** Description of each argument, by its name in `usage`. */
  readonly args?: Readonly<Record<string, string>>;
  readonly examples: readonly string[];
  /** What `--json` prints; absent: one JSON object. False: the verb has no such option, because it has an output of its own. */
  readonly json?: string | false;
  /** After `--config` and `--json`, which each verb takes (design/command-line). */
  readonly options?: readonly Option[];
  /** After the examples. */
  readonly notes?: string;
  /** True: the help lists the exit codes. */
  readonly showsExitCodes?: true;
  /** Loads the code and runs it. Gets the arguments in the order of `usage`, then the options. May throw UsageError. */
  readonly run: (io: CommandIo, ...words: never[]) => Promise<ExitCode>;
}

export interface VerbGroup {
  readonly name: string;
  readonly description: string;
  readonly verbs: readonly (Verb | VerbGroup)[];
}

export const KEY_FILE: Option = { flags: "--key-file <file>", description: "file with the API key (default: the settings' one)" };
export const PASSWORD_FILE: Option = {
  flags: "--password-file <file>",
  description: "file whose first line is the password; a password is never an argument",
};
export const JSON_ARRAY = "print one JSON array";
export const FILE_IN = "file to read";
export const FILE_OUT = "file to write; absent or -: the terminal";
export const SOURCE = "name or uuid of the data source";
