import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { runsOf } from "../before/judge.ts";
import { MUTATIONS, type Mutation } from "./mutations.ts";

/** `npm run test:mutants`: plants each fault in a checkout of its own and runs the tests that reach it, until one fails. */

const ROOT = path.resolve(import.meta.dirname, "../..");
const MODES = ["quick", "short", "system"] as const;
type Mode = (typeof MODES)[number];
/** Three times what the tests of a tier that reach a file of the model take, on a machine that runs two of them. */
const DEADLINE_MS: Readonly<Record<Mode, number>> = { quick: 4 * 60_000, short: 12 * 60_000, system: 30 * 60_000 };
const HELP = `npm run test:mutants -- [--only TEXT] [--modes quick,short,system] [--at-once N] [--json | --table]

Plants the faults of test/mutants/mutations.ts one by one in worktrees of HEAD. For each it runs the tests that reach the
changed file, tier by tier, until one fails, and prints which that is. A fault that no test finds fails the run.

  --only TEXT   only faults whose file or words have TEXT
  --modes LIST  only these, in this order
  --at-once N   faults that are tried at the same time (default 2)
  --json        the results as JSON
  --table       the results as a table in Markdown

Examples
  npm run test:mutants
  npm run test:mutants -- --only drivers/s7
  npm run test:mutants -- --only fence --modes quick --json

Exit codes: 0 every fault was found, 1 some were not, 2 wrong command line`;

/** How one fault ended. `test` is absent where no test found it. */
interface Result {
  readonly file: string;
  readonly line: number;
  readonly what: string;
  readonly mode?: Mode;
  readonly foundBy?: string;
  readonly test?: string;
  readonly seconds: number;
}

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort(new Error(`ended by ${signal}`)));
const args = commandLine();
const folder = realpathSync(mkdtempSync(path.join(os.tmpdir(), "collector-mutants-")));
const began = performance.now();
const results: Result[] = [];
try {
  const waiting = [...args.mutations];
  const trees = await Promise.all(Array.from({ length: Math.min(args.atOnce, waiting.length) }, (_, at) => layOut(`tree-${at}`)));
  await Promise.all(trees.map((tree) => work(tree, waiting)));
} finally {
  rmSync(folder, { recursive: true, force: true });
  await run(ROOT, "git", ["worktree", "prune"]);
}
const missed = results.filter(({ test }) => test === undefined);
if (args.json) console.log(JSON.stringify({ results }, null, 2));
else {
  if (args.table) console.log(table(results));
  console.log(`${results.length - missed.length} of ${results.length} faults found in ${Math.round((performance.now() - began) / 1000)} s`);
}
process.exitCode = missed.length === 0 ? 0 : 1;

function commandLine() {
  const { values } = parse();
  if (values.help) {
    console.log(HELP);
    process.exit(0);
  }
  const { only = "", modes = MODES.join(",") } = values;
  const mutations = MUTATIONS.filter(({ file, what }) => file.includes(only) || what.includes(only));
  if (mutations.length === 0) refuse(`--only ${only}: no fault has it in its file or words`);
  const wanted = modes
    .split(",")
    .map((mode) => MODES.find((one) => one === mode) ?? refuse(`--modes ${mode}: expected quick, short or system`));
  const atOnce = Number(values["at-once"] ?? 2);
  if (!Number.isInteger(atOnce) || atOnce < 1 || atOnce > 16) refuse("--at-once: expected a number from 1 to 16");
  return { mutations, modes: wanted, atOnce, json: values.json, table: values.table };
}

function parse() {
  try {
    const text = { type: "string" } as const;
    const flag = { type: "boolean", default: false } as const;
    return parseArgs({
      options: { only: text, modes: text, "at-once": text, json: flag, table: flag, help: { type: "boolean", short: "h", default: false } },
    });
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

function refuse(problem: string): never {
  console.error(`${problem}\nnpm run test:mutants -- --help shows the command with examples`);
  process.exit(2);
}

async function layOut(name: string): Promise<string> {
  const tree = path.join(folder, name);
  const { code } = await run(ROOT, "git", ["worktree", "add", "--quiet", "--detach", tree, "HEAD"]);
  if (code !== 0) throw new Error(`git could not lay HEAD out in ${tree}`);
  symlinkSync(path.join(ROOT, "node_modules"), path.join(tree, "node_modules"));
  return tree;
}

async function work(tree: string, waiting: Mutation[]): Promise<void> {
  for (let mutation = waiting.shift(); mutation; mutation = waiting.shift()) {
    const result = await tryOne(tree, mutation);
    results.push(result);
    const { file, line, what, mode, foundBy, test, seconds } = result;
    const end = test === undefined ? "NOT FOUND" : `${mode}: ${foundBy}: ${test}`;
    console.error(`[${results.length}/${args.mutations.length}] ${file}:${line} ${what} -> ${end} (${seconds} s)`);
  }
}

async function tryOne(tree: string, { file, find, replace, what }: Mutation): Promise<Result> {
  const target = path.join(tree, file);
  const whole = readFileSync(target, "utf8");
  const at = whole.indexOf(find);
  if (at === -1) throw new Error(`${file} of HEAD does not have ${JSON.stringify(find)}; commit it, or correct test/mutants/mutations.ts`);
  const startedMs = performance.now();
  const planted = { file, line: whole.slice(0, at).split("\n").length, what };
  const seconds = (): number => Math.round((performance.now() - startedMs) / 1000);
  writeFileSync(target, whole.slice(0, at) + replace + whole.slice(at + find.length));
  try {
    for (const mode of args.modes) {
      const found = await firstFailure(tree, file, mode);
      if (found) return { ...planted, mode, ...found, seconds: seconds() };
    }
    return { ...planted, seconds: seconds() };
  } finally {
    writeFileSync(target, whole);
  }
}

/** The first test of a tier that reaches the file and fails; undefined: all pass. */
async function firstFailure(
  tree: string,
  file: string,
  mode: Mode,
  bails = true,
): Promise<{ readonly foundBy: string; readonly test: string } | undefined> {
  const output = path.join(folder, `${path.basename(tree)}.json`);
  rmSync(output, { force: true });
  const words = ["vitest", "related", file, "--run", "--mode", mode, ...(bails ? ["--bail", "1"] : []), "--passWithNoTests"];
  const { code, text } = await run(tree, "npx", [...words, "--reporter=json", `--outputFile=${output}`], DEADLINE_MS[mode]);
  if (code === 0) return undefined;
  if (!statSync(output, { throwIfNoEntry: false }))
    throw new Error(`vitest ended with ${code} and without a report, mode ${mode}, ${file}\n${text.slice(-2000)}`);
  // After the first failure vitest reports files that did not run as failed: a test that failed is looked for first.
  const runs = [...runsOf(readFileSync(output, "utf8"), tree)];
  for (const [foundBy, { tests }] of runs) {
    const failed = [...tests].find(([, ending]) => ending === "failed");
    if (failed) return { foundBy, test: failed[0] };
  }
  const unloaded = runs.find(([, { loadFailure }]) => loadFailure !== undefined && loadFailure !== "no message");
  if (unloaded) return { foundBy: unloaded[0], test: `does not load: ${unloaded[1].loadFailure}` };
  // The first failure may end its worker before the report has it.
  if (bails) return firstFailure(tree, file, mode, false);
  throw new Error(`vitest ended with ${code} and no test failed, mode ${mode}, ${file}\n${text.slice(-2000)}`);
}

/** Run a program to its end, or to its deadline, which ends its whole group. `text` holds what it printed. */
function run(
  cwd: string,
  program: string,
  words: readonly string[],
  deadlineMs = 60_000,
): Promise<{ readonly code: number | null; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, { cwd, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    const end = (): void => {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    };
    const timer = setTimeout(end, deadlineMs);
    stop.signal.addEventListener("abort", end, { once: true });
    let text = "";
    for (const output of [child.stdout, child.stderr])
      output.setEncoding("utf8").on("data", (part: string) => {
        text = (text + part).slice(-100_000);
      });
    child.once("error", reject).once("close", (code) => {
      clearTimeout(timer);
      stop.signal.removeEventListener("abort", end);
      if (stop.signal.aborted) reject(stop.signal.reason as Error);
      else resolve({ code, text });
    });
  });
}

function table(all: readonly Result[]): string {
  const order = new Map(MUTATIONS.map(({ file, what }, at) => [`${file} ${what}`, at]));
  const place = ({ file, what }: Result): number => order.get(`${file} ${what}`) ?? 0;
  const rows = all
    .toSorted((one, other) => place(one) - place(other))
    .map(({ file, line, what, mode, foundBy, test, seconds }) =>
      [`${file}:${line}`, what, mode ?? "none", foundBy ?? "", (test ?? "").replaceAll("|", "\\|"), seconds].join(" | "),
    );
  return ["| place | fault | tier | file | test | s |", "| --- | --- | --- | --- | --- | --- |", ...rows.map((row) => `| ${row} |`)].join(
    "\n",
  );
}
