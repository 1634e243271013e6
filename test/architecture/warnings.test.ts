import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { WARNINGS } from "../../src/model/warnings.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const files = globSync("{src,drivers,test}/**/*.ts", { cwd: ROOT });
const isTest = (file: string): boolean => file.endsWith(".test.ts");
const isProduction = (file: string): boolean =>
  !isTest(file) && !/^test\/|\/testing(\/|\.ts$)/.test(file) && file !== "src/model/warnings.ts";
const textOf = (wanted: (file: string) => boolean): string =>
  files
    .filter(wanted)
    .map((file) => readFileSync(path.join(ROOT, file), "utf8"))
    .join("\n");

/** Codes that tests raise and look at by their words alone. The list only becomes shorter. */
const BY_WORDS: readonly string[] = [];

it("each code of a warning is raised somewhere", () => {
  const program = textOf(isProduction);
  expect(Object.keys(WARNINGS).filter((code) => !program.includes(`"${code}"`))).toEqual([]);
});

it("each code of a warning is looked at by a test", () => {
  const tests = textOf((file) => isTest(file) && file !== "test/architecture/warnings.test.ts");
  expect(Object.keys(WARNINGS).filter((code) => !tests.includes(`"${code}"`))).toEqual(BY_WORDS);
});
