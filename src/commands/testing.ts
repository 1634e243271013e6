import { statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { stringify } from "yaml";
import { type CommandIo, PlainOutput } from "./io.ts";
import { createProgram, parseCommandLine } from "./program.ts";

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** What comes on stdin, which is then not a terminal. */
  readonly stdin?: string;
  /** What a person types: stdin is a terminal. */
  readonly typed?: string;
  readonly signal?: AbortSignal;
  /** Somebody watches what is written to stderr: it is a terminal. */
  readonly isWatched?: boolean;
  /** The commands in the result name the settings file of this command line; else they are as where the settings are at their usual place. */
  readonly keepsSettings?: boolean;
  /** Gets everything that is written, as it is. */
  readonly onOut?: (text: string) => void;
}

/** Runs the command line in this process, with the sources' own worker entries. */
export const runCommand = (...words: string[]): Promise<Ran> => runCommandWith({}, ...words);

export async function runCommandWith({ typed, stdin, keepsSettings = false, ...options }: RunOptions, ...words: string[]): Promise<Ran> {
  const [out, err]: [string[], string[]] = [[], []];
  const keyboard: PassThrough & { isTTY?: boolean } = new PassThrough();
  if (typed !== undefined) {
    keyboard.isTTY = true;
    keyboard.write(`${typed}\r`);
  } else if (stdin !== undefined) keyboard.end(stdin);
  const io = commandIo({
    ...options,
    keyboard,
    onOut(text) {
      out.push(text);
      options.onOut?.(text);
    },
    onErr: (text) => void err.push(text),
  });
  const code = await parseCommandLine(createProgram(io), words, io);
  const named = keepsSettings ? -1 : words.findIndex((word) => word === "--config" || word === "-c");
  const plain = (text: string): string => (named === -1 ? text : text.replaceAll(` -c ${words[named + 1]}`, ""));
  return { code, out: plain(out.join("")), err: plain(err.join("")) };
}

export interface IoOptions extends Pick<RunOptions, "env" | "signal" | "onOut" | "isWatched"> {
  readonly keyboard?: CommandIo["stdin"];
  readonly onErr?: (text: string) => void;
}

/** What a verb gets of a process, without one. */
export const commandIo = ({ env = {}, signal, isWatched, onOut, onErr, keyboard }: IoOptions): CommandIo => ({
  stdout: new PlainOutput({ write: (text) => onOut?.(textOf(text)), room: () => Promise.resolve() }),
  stderr: new PlainOutput({ write: (text) => onErr?.(textOf(text)), room: () => Promise.resolve(), isTTY: isWatched }),
  stdin: keyboard ?? new PassThrough(),
  env,
  pid: 1,
  signal: signal ?? new AbortController().signal,
  version: "0",
  crashesTo: () => {},
  onHangup: () => {},
  addOn: (name) => new URL(`../../test/support/${name}.ts`, import.meta.url),
  workerUrl: (name) => new URL(`../threads/${name}/worker.ts`, import.meta.url),
});

/** Each byte of a file as one character. */
const textOf = (output: string | Uint8Array): string => (typeof output === "string" ? output : Buffer.from(output).toString("latin1"));

/** A settings file in `folder` whose state is there as well. */
export function settingsFile(folder: string, settings: Readonly<Record<string, unknown>>): string {
  const file = join(folder, "collector.yaml");
  writeFileSync(file, stringify({ state_dir: folder, ...settings }));
  return file;
}

/** True: another user can run the collector from this checkout. */
export const isReachable = ((): boolean => {
  for (let folder = import.meta.dirname; folder !== dirname(folder); folder = dirname(folder))
    if ((statSync(folder).mode & 0o001) === 0) return false;
  return true;
})();
