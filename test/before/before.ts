import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, symlinkSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { type FileRun, judge, runsOf, type Verdict } from "./judge.ts";

/** `npm run test:before`: the tests of a mended fault fail on the build of before and pass on this one. */

const ROOT = path.resolve(import.meta.dirname, "../..");
/** A slow file ends within a minute; a run of many of them within a quarter of an hour. */
const RUN_MS = 15 * 60_000;
const HELP = `npm run test:before -- COMMIT FILE... [-t NAME] [--json]

Lays FILE... over COMMIT in a worktree of its own and runs their tests there and here.
Each test file has to show a test that fails there and passes here, and none that fails here.
A FILE without tests (support) is laid over as well and not run.

  -t NAME   only tests whose name matches NAME, as vitest takes it
  --json    the verdict of each file as JSON

Examples
  npm run test:before -- HEAD~1 src/delivery/engine.test.ts
  npm run test:before -- v0.2.0 src/agent/read.test.ts test/support/agent.ts -t "one lost packet"

Exit codes: 0 shown, 1 not shown, 2 wrong command line`;

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort(new Error(`ended by ${signal}`)));
const args = commandLine();
const commit = (await git("rev-parse", "--verify", "--quiet", "--end-of-options", `${args.commit}^{commit}`)).trim();
if (commit === "") refuse(`COMMIT: git knows no commit ${args.commit}; write a hash, a branch or a tag`);

const folder = realpathSync(mkdtempSync(path.join(os.tmpdir(), "collector-before-")));
const before = path.join(folder, "tree");
try {
  console.error(`laying ${args.files.length} files over ${commit.slice(0, 7)}`);
  const added = await run(ROOT, "git", ["worktree", "add", "--quiet", "--detach", before, commit]);
  if (added.code !== 0) throw new Error(`git could not lay ${commit} out in ${before}`);
  for (const file of args.files) {
    mkdirSync(path.dirname(path.join(before, file)), { recursive: true });
    cpSync(path.join(ROOT, file), path.join(before, file));
  }
  await modules();
  console.error("running there");
  const there = await runTests(before);
  console.error("running here");
  const here = await runTests(ROOT);
  const verdicts = args.tests.map((file) => judge(file, there.get(file), here.get(file)));
  if (args.json) console.log(JSON.stringify({ commit, files: verdicts }, null, 2));
  else for (const verdict of verdicts) print(verdict);
  process.exitCode = verdicts.every(({ problems }) => problems.length === 0) ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
  await git("worktree", "prune");
}

function commandLine() {
  const { values, positionals } = parse();
  if (values.help) {
    console.log(HELP);
    process.exit(0);
  }
  const [commit, ...files] = positionals;
  if (commit === undefined || files.length === 0) refuse("write COMMIT and at least one FILE");
  const relative = files.map((file) => path.relative(ROOT, path.resolve(file)));
  for (const [at, file] of relative.entries()) {
    if (file.startsWith("..")) refuse(`FILE: ${files[at]} is outside this checkout`);
    if (!statSync(path.join(ROOT, file), { throwIfNoEntry: false })?.isFile()) refuse(`FILE: ${files[at]} is not a file`);
  }
  const tests = relative.filter((file) => file.endsWith(".test.ts"));
  if (tests.length === 0) refuse("FILE: at least one has to be a test file (.test.ts)");
  return { commit, files: relative, tests, name: values.name, json: values.json };
}

function parse() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: { name: { type: "string", short: "t" }, json: { type: "boolean", default: false }, help: { type: "boolean", short: "h" } },
    });
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

function refuse(problem: string): never {
  console.error(`${problem}\nnpm run test:before -- --help shows the command with examples`);
  process.exit(2);
}

/** Use this checkout's packages where the old build has the same, else install those of the old build. */
async function modules(): Promise<void> {
  const lock = (tree: string): string => readFileSync(path.join(tree, "package-lock.json"), "utf8");
  if (lock(before) === lock(ROOT)) symlinkSync(path.join(ROOT, "node_modules"), path.join(before, "node_modules"));
  else if ((await run(before, "npm", ["ci", "--silent"])).code !== 0) throw new Error(`npm ci failed in ${before}`);
}

async function runTests(tree: string): Promise<ReadonlyMap<string, FileRun>> {
  const output = path.join(folder, `${tree === ROOT ? "here" : "there"}.json`);
  const filter = args.name === undefined ? [] : ["-t", args.name];
  const vitest = ["vitest", "run", ...args.tests, ...filter, "--reporter=json", `--outputFile=${output}`];
  const { code, text } = await run(tree, "npx", vitest);
  if (!statSync(output, { throwIfNoEntry: false })) throw new Error(`vitest ended with ${code} and without a report in ${tree}\n${text}`);
  return runsOf(readFileSync(output, "utf8"), tree);
}

async function git(...words: string[]): Promise<string> {
  return (await run(ROOT, "git", words)).text;
}

/** Run a program to its end. `text` holds its standard output; its errors go to this terminal. */
function run(cwd: string, program: string, words: readonly string[]): Promise<{ readonly code: number | null; readonly text: string }> {
  const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(RUN_MS)]);
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, { cwd, signal, stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    child.once("error", reject).once("close", (code) => resolve({ code, text }));
  });
}

function print({ file, shown, unchanged, problems }: Verdict): void {
  console.log(`${file}: ${problems.length === 0 ? "shown" : "NOT SHOWN"}`);
  for (const problem of problems) console.log(`  ${problem}`);
  for (const name of shown) console.log(`  fails there, passes here: ${name}`);
  if (unchanged.length > 0) console.log(`  ${unchanged.length} tests pass in both`);
}
