import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { CHECKS } from "./checks.ts";
import { outcomesFile } from "./conform.ts";
import { nameOf, SUBJECTS } from "./subjects.ts";

const DOC = path.resolve(import.meta.dirname, "../../docs/generated/conformance.md");
const NAMES = SUBJECTS.map(nameOf);

it.each(NAMES)("%s has its own run of the suite", (name) => {
  const files = [`${name}.test.ts`, `${name}.nightly.test.ts`].map((file) => path.join(import.meta.dirname, "drivers", file));
  const calls = files.filter((file) => existsSync(file) && readFileSync(file, "utf8").includes(`conform("${name}")`));
  expect(calls, `one of ${files} calls conform("${name}")`).toHaveLength(1);
});

it("the generated table has the outcomes of every driver", async () => {
  await expect(`${table()}\n`).toMatchFileSnapshot(DOC);
});

/** By check, of one driver. */
function outcomesOf(subject: string): ReadonlyMap<string, string> {
  const lines = readFileSync(outcomesFile(subject), "utf8").trimEnd().split("\n");
  return new Map(CHECKS.map(({ name }) => [name, lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? ""]));
}

function table(): string {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const outcomes = NAMES.map(outcomesOf);
  return [
    "# What every driver has been shown to do",
    "",
    "Put together from the runs of the conformance suite (`test/conformance`), which every driver in the registry goes through over a real socket, with its own simulator behind a proxy that misbehaves. `rack` is a driver of the tests alone (`test/support/rack`): it reads over datagrams and has every ability of the contract. `gauge` is the example of [write-a-driver.md](../write-a-driver.md).",
    "",
    row(["a driver", ...NAMES.map((name) => `\`${name}\``)]),
    row(["---", ...NAMES.map(() => "---")]),
    ...CHECKS.map(({ name }) => row([name, ...outcomes.map((one) => one.get(name) || "**not passed**")])),
  ].join("\n");
}
