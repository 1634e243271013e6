import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { byRoom, COLUMNS, type CountedFile, countLines, difference, type Lines, sumOf } from "./rooms.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
/** All sources of a commit at once, 64 MiB: ten times what there are. */
const MAX_GIT_OUTPUT_BYTES = 64 * 2 ** 20;

const HELP = `Usage: npm run lines -- [--against COMMIT] [--json]

Prints the lines of TypeScript by room: production, simulators, workbench and tests, with their sums.

  --against COMMIT  print the lines that each room has more or fewer than at COMMIT
  --json            print one JSON object
  --help            print this text
`;

/** Standard output of a git command. Throws Error with git's own words. */
function git(args: readonly string[], input = ""): string {
  const { status, stdout, stderr, error } = spawnSync("git", args, {
    cwd: ROOT,
    encoding: "utf8",
    input,
    maxBuffer: MAX_GIT_OUTPUT_BYTES,
  });
  if (error) throw error;
  if (status !== 0) throw new Error(stderr.trim());
  return stdout;
}

const isTypeScript = (file: string): boolean => /\.tsx?$/.test(file);

/** Files of the working tree, those that are not committed included. */
function filesHere(): readonly CountedFile[] {
  const listed = git(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).split("\0");
  return [...new Set(listed)]
    .filter((file) => isTypeScript(file) && existsSync(path.join(ROOT, file)))
    .map((file) => ({ path: file, lines: countLines(readFileSync(path.join(ROOT, file), "utf8")) }));
}

/** Files of a commit. One `git cat-file` reads them all: a `git show` for each of 1,500 files takes seconds. */
function filesAt(commit: string): readonly CountedFile[] {
  const entries = git(["ls-tree", "-r", "-z", "--full-tree", commit])
    .split("\0")
    .map((entry) => /^\d+ blob (\S+)\t(.*)$/s.exec(entry))
    .flatMap((found) => (found?.[1] !== undefined && found[2] !== undefined ? [{ blob: found[1], path: found[2] }] : []))
    .filter((entry) => isTypeScript(entry.path));
  const output = Buffer.from(git(["cat-file", "--batch"], entries.map(({ blob }) => `${blob}\n`).join("")));
  let at = 0;
  return entries.map((entry) => {
    const head = output.indexOf("\n", at);
    const bytes = Number(output.subarray(at, head).toString().split(" ")[2]);
    const text = output.subarray(head + 1, head + 1 + bytes).toString();
    at = head + 1 + bytes + 1;
    return { path: entry.path, lines: countLines(text) };
  });
}

function table(rooms: ReadonlyMap<string, Lines>, isDifference: boolean): string {
  const number = (lines: number): string => `${isDifference && lines > 0 ? "+" : ""}${lines}`;
  const row = (room: string, lines: Lines): string[] => [room, ...COLUMNS.map((column) => number(lines[column]))];
  const rows = [["room", ...COLUMNS], ...[...rooms].map(([room, lines]) => row(room, lines)), row("sum", sumOf(rooms))];
  const widths = rows[0]?.map((_, index) => Math.max(...rows.map((cells) => cells[index]?.length ?? 0))) ?? [];
  const line = (cells: readonly string[]): string =>
    cells.map((cell, index) => (index === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[index] ?? 0))).join("  ");
  return `${rows.map(line).join("\n")}\n`;
}

function main(): void {
  const { values } = parseArgs({
    options: { against: { type: "string" }, json: { type: "boolean" }, help: { type: "boolean" } },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const now = byRoom(filesHere());
  const rooms = values.against === undefined ? now : difference(now, byRoom(filesAt(values.against)));
  process.stdout.write(
    values.json
      ? `${JSON.stringify({ against: values.against ?? null, rooms: Object.fromEntries(rooms), sum: sumOf(rooms) })}\n`
      : table(rooms, values.against !== undefined),
  );
}

try {
  main();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
