import type { Readable } from "node:stream";
import { escapeControls, escapeInLines, withoutCredentials } from "../base/plain-text.ts";
import type { Log } from "../model/context.ts";
import { commandsAsTyped, type Typed } from "./printed-commands.ts";

/** Packages beside the collector's own: `simulators` exports a `Simulation`, `workbench` a `Workbench`. */
export type AddOnName = "simulators" | "workbench";

/** What a verb gets of the process: verbs touch nothing of it themselves. */
export interface CommandIo {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly pid: number;
  /** Aborts when the person or the system asks to stop. */
  readonly signal: AbortSignal;
  readonly version: string;
  /** The command line that is carried out, for the commands that it prints. Absent: not known. */
  readonly typed?: Typed | undefined;
  /** The place where an error that nobody caught is logged before the process ends; stderr until this is called. */
  crashesTo(log: Log): void;
  /** From now on SIGHUP calls this, and does not end the process. */
  onHangup(handler: () => void): void;
  /** Module of a package beside the collector's own; undefined: it is not installed. */
  addOn(name: AddOnName): URL | undefined;
  /** Entry of a worker, by its name. */
  workerUrl(name: string): URL;
}

export interface Output {
  /**
   * Takes any length at once; the process ends when all of it is out. What would steer a terminal, hide or reorder text leaves as `\uXXXX`,
   * so that JSON stays the same value; line feeds stay.
   */
  write(text: string): unknown;
  /**
   * Takes what holds control sequences of our own, or a byte order mark: every text from outside in it is plain already. Bytes are a file
   * that goes to a pipe.
   */
  verbatim(text: string | Uint8Array): unknown;
  /** Settles once a slow reader has taken enough, or the signal aborts: awaited between writes by verbs whose output has no bound. */
  room(signal: AbortSignal): Promise<void>;
  readonly isTTY?: boolean | undefined;
  /** Of the terminal; undefined: it goes elsewhere. */
  readonly columns?: number | undefined;
  readonly writableLength?: number | undefined;
  /** The file handle it writes to. */
  readonly fd?: number | undefined;
}

interface Written extends Omit<Output, "verbatim" | "write"> {
  write(text: string | Uint8Array): unknown;
}

/** The one place through which what verbs print leaves them. */
export class PlainOutput implements Output {
  readonly #output: Written;

  constructor(output: Written) {
    this.#output = output;
  }

  write(text: string): void {
    this.#output.write(escapeInLines(text));
  }

  verbatim(text: string | Uint8Array): void {
    this.#output.write(text);
  }

  room(signal: AbortSignal): Promise<void> {
    return this.#output.room(signal);
  }

  get isTTY(): boolean | undefined {
    return this.#output.isTTY;
  }

  get columns(): number | undefined {
    return this.#output.columns;
  }

  get writableLength(): number | undefined {
    return this.#output.writableLength;
  }

  get fd(): number | undefined {
    return this.#output.fd;
  }
}

/** Tells the person on stderr, each line under the program's name, without the users and passwords of URLs. */
export function complain(io: Pick<CommandIo, "stderr" | "typed">, message: string): void {
  for (const line of commandsAsTyped(withoutCredentials(message), io.typed).split("\n"))
    io.stderr.write(`collector: ${escapeControls(line)}\n`);
}

/** The place where a log goes that is laid out for a terminal: it escapes each line itself, and has colours. */
export const logStream = ({ stderr }: Pick<CommandIo, "stderr">) => ({
  write: (text: string) => stderr.verbatim(text),
  get isTTY() {
    return stderr.isTTY;
  },
  get writableLength() {
    return stderr.writableLength;
  },
});

/** What a verb ends with (design/command-line). */
export const EXIT = {
  good: 0,
  /** Some variable is bad. */ variableBad: 1,
  /** The command line or the settings are wrong. */ usage: 2,
  /** A source failed; its reason was printed. */ sourceFailed: 3,
  /** The collector itself failed. */ ownFailure: 4,
  /** A person stopped it before it had a result; as a shell gives it for SIGINT. */ interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The command line is wrong; the message names the correct form. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The person stopped the verb while it waited for them; nothing more is printed. */
export class StoppedError extends Error {
  override readonly name = "StoppedError";
}
