import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";

/** The walks of docs/ARCHITECTURE.md: numbered lists whose steps each begin with a file. */

interface Walk {
  readonly title: string;
  readonly files: readonly string[];
}

const STEP = /^(\d+)\. `([^`]+)`/;

/** Each numbered list is a walk of its own, named by the line before it. Throws where a step is not in its place. */
function walksIn(page: string): readonly Walk[] {
  const walks: { title: string; files: string[] }[] = [];
  let title = "";
  for (const line of page.split("\n")) {
    const [, number, file] = STEP.exec(line) ?? [];
    if (number === undefined || file === undefined) {
      if (/^\d+\. /.test(line)) throw new Error(`a step that names no file: ${line}`);
      if (line !== "") title = line;
      continue;
    }
    if (number === "1") walks.push({ title, files: [] });
    const walk = walks.at(-1);
    walk?.files.push(file);
    if (walk?.files.length !== Number(number)) throw new Error(`${title}: step ${number} is out of order`);
  }
  return walks;
}

/** What the file imports, also when it is needed. */
const importsOf = (file: string): ReadonlySet<string> =>
  new Set(
    [...readFileSync(file, "utf8").matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"(\.[^"]+)"/g)].map((match) =>
      path.posix.join(path.posix.dirname(file), match[1] ?? ""),
    ),
  );

const MESSAGES = /^src\/[\w/]+\/messages\.ts$/;

/** One imports the other, or both import the messages of one thread. */
function areConnected(one: string, other: string): boolean {
  const [ofOne, ofOther] = [importsOf(one), importsOf(other)];
  return ofOne.has(other) || ofOther.has(one) || [...ofOne].some((file) => MESSAGES.test(file) && ofOther.has(file));
}

const WALKS = walksIn(readFileSync("docs/ARCHITECTURE.md", "utf8"));

describe("docs/ARCHITECTURE.md", () => {
  it("walks with a value, a configuration change and a failure", () => expect(WALKS.length).toBeGreaterThanOrEqual(9));

  it.each(WALKS.map(({ title, files }) => [title, files] as const))("%s", (_, files) => {
    expect(files.length).toBeGreaterThan(2);
    expect(
      files.filter((file) => !existsSync(file)),
      "files that do not exist",
    ).toEqual([]);
    const loose = files.slice(1).flatMap((file, i) => (areConnected(files[i] ?? "", file) ? [] : [`${files[i]} and ${file}`]));
    expect(loose, "steps that are not connected").toEqual([]);
  });

  it("names folders and files that exist", () => {
    const page = readFileSync("docs/ARCHITECTURE.md", "utf8");
    const named = [...page.matchAll(/`((?:src|drivers|test|docs)\/[\w./-]+)`/g)].map((match) => match[1] ?? "");
    expect(named.filter((file) => !existsSync(file))).toEqual([]);
  });

  it("would find a step that is not connected", () => {
    expect(areConnected("src/model/value.ts", "src/sinks/mqtt/sink.ts")).toBe(false);
    expect(() => walksIn("x:\n\n1. `a.ts` a\n3. `b.ts` b")).toThrow(/out of order/);
    expect(() => walksIn("x:\n\n1. no file")).toThrow(/names no file/);
  });
});
