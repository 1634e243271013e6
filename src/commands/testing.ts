import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { stringify } from "yaml";
import type { CommandIo } from "./io.ts";
import { createProgram, parseCommandLine } from "./program.ts";

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs the command line in this process, with the sources' own worker entries. */
export async function runCommand(...words: string[]): Promise<Ran> {
  const [out, err]: [string[], string[]] = [[], []];
  const io: CommandIo = {
    stdout: { write: (text) => void out.push(text) },
    stderr: { write: (text) => void err.push(text) },
    stdin: new PassThrough(),
    env: {},
    pid: 1,
    signal: new AbortController().signal,
    version: "0",
    crashesTo: () => {},
    workerUrl: (name) => new URL(`../workers/${name}.ts`, import.meta.url),
  };
  const code = await parseCommandLine(createProgram(io), words, io);
  return { code, out: out.join(""), err: err.join("") };
}

/** A settings file in `folder` whose state is there as well. */
export function settingsFile(folder: string, settings: Readonly<Record<string, unknown>>): string {
  const file = join(folder, "collector.yaml");
  writeFileSync(file, stringify({ state_dir: folder, ...settings }));
  return file;
}
