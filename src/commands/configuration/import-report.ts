import { toJson } from "../../base/json.ts";
import { plain } from "../../base/plain-text.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";

/** What is wrong with a line of an imported file, or what its reader should know. */
export interface ImportProblem {
  /** From 1; absent where the whole file is meant. */
  readonly line?: number;
  /** Of the entry. */
  readonly name?: string;
  readonly message: string;
}

interface Done {
  readonly action: "created" | "changed";
  readonly uuid: string;
  readonly name: string;
}

/** Reports what an import does: to people as it goes, to programs as one JSON object at the end. */
export interface ImportReport {
  done(entry: Done): void;
  problem(problem: ImportProblem): void;
  warn(warning: ImportProblem): void;
  /** Nothing of the file is taken. Throws UsageError with every problem, unless JSON is wanted. */
  refuse(problems: readonly ImportProblem[]): ExitCode;
  /** Once, when nothing more is done. */
  end(): void;
}

/** A file of records that are created and changed one by one, by name. */
export function importReport(file: string, { json = false }: { readonly json?: boolean }, io: CommandIo): ImportReport {
  const entries: Done[] = [];
  const problems: ImportProblem[] = [];
  const warnings: ImportProblem[] = [];
  const tell = (kept: ImportProblem[], problem: ImportProblem): void => {
    kept.push(problem);
    if (!json) complain(io, `${problem.name === undefined ? "" : `${problem.name}: `}${problem.message}`);
  };
  const end = (): void => {
    if (!json) return;
    const count = (action: Done["action"]): number => entries.filter((entry) => entry.action === action).length;
    const counts = { created: count("created"), changed: count("changed") };
    io.stdout.write(`${toJson({ counts, entries, problems, warnings })}\n`);
  };
  return {
    done(entry) {
      entries.push(entry);
      if (!json) io.stdout.write(plain`${entry.name}: ${entry.action}\n`);
    },
    problem: (problem) => tell(problems, problem),
    warn: (warning) => tell(warnings, warning),
    refuse(found) {
      if (!json) throw new UsageError(found.map(({ line, message }) => `${placeIn(file, line)}: ${message}`).join("\n"));
      problems.push(...found);
      end();
      return EXIT.usage;
    },
    end,
  };
}

/** `file:line` where a line is meant. */
export const placeIn = (file: string, line: number | undefined): string => `${file}${line === undefined ? "" : `:${line}`}`;
