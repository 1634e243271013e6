import { z } from "zod";

/** How one test ended. `skipped` covers tests that the name filter left out. */
export type Ending = "passed" | "failed" | "skipped";

/** One run of one test file: how each test ended by its full name, and the cause where the file could not be loaded. */
export interface FileRun {
  readonly tests: ReadonlyMap<string, Ending>;
  readonly loadFailure?: string;
}

/** The tests of one file: those that fail before and pass now, those that pass in both, and each reason why the file proves nothing. */
export interface Verdict {
  readonly file: string;
  readonly shown: readonly string[];
  readonly unchanged: readonly string[];
  readonly problems: readonly string[];
}

/** What vitest's JSON reporter writes; only the fields used here. */
const report = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.enum(["passed", "failed"]),
      message: z.string().optional(),
      assertionResults: z.array(z.object({ fullName: z.string(), status: z.string() })),
    }),
  ),
});

/**
 * Read the runs of a report by path below `root`.
 * @throws where the text is not a report of vitest
 */
export function runsOf(text: string, root: string): ReadonlyMap<string, FileRun> {
  return new Map(
    report.parse(JSON.parse(text)).testResults.map(({ name, status, message, assertionResults }) => {
      const tests = new Map(assertionResults.map((test) => [test.fullName, endingOf(test.status)] as const));
      const loaded = status === "passed" || assertionResults.some((test) => test.status === "failed");
      const file = name.startsWith(`${root}/`) ? name.slice(root.length + 1) : name;
      return [file, loaded ? { tests } : { tests, loadFailure: firstLine(message) }];
    }),
  );
}

/** Compare both runs of a file. A file proves its fault where a test fails before by itself and passes now, and no test fails now. */
export function judge(file: string, before: FileRun | undefined, now: FileRun | undefined): Verdict {
  const problems: string[] = [];
  const shown: string[] = [];
  const unchanged: string[] = [];
  if (now === undefined) problems.push("did not run here");
  if (now?.loadFailure !== undefined) problems.push(`cannot be loaded here: ${now.loadFailure}`);
  if (before?.loadFailure !== undefined)
    problems.push(`cannot be loaded there: ${before.loadFailure}; test through modules that were there, or name the support files too`);
  for (const [name, ending] of now?.tests ?? []) {
    if (ending === "failed") problems.push(`fails here: ${name}`);
    if (ending !== "passed") continue;
    const then = before?.tests.get(name);
    if (then === "failed") shown.push(name);
    if (then === "passed") unchanged.push(name);
  }
  if (shown.length === 0 && problems.length === 0) problems.push("no test fails there and passes here");
  return { file, shown, unchanged, problems };
}

function endingOf(status: string): Ending {
  return status === "passed" || status === "failed" ? status : "skipped";
}

function firstLine(message: string | undefined): string {
  return message?.split("\n").find((line) => line.trim() !== "") ?? "no message";
}
