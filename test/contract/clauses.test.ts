import path from "node:path";
import { expect, test } from "vitest";
import { CLAUSES } from "./clauses.ts";
import { PRODUCER_ONLY } from "./consumer/producer-only.ts";
import { STATEMENTS } from "./statements.ts";

const DOC = path.resolve(import.meta.dirname, "../../docs/generated/api-clauses.md");

const consumerWords = (name: string): string => (name in PRODUCER_ONLY ? `not bound: ${PRODUCER_ONLY[name]}` : `\`${name}\``);

test("each statement has words, and no other", () => {
  expect(STATEMENTS.filter((statement) => !CLAUSES.has(statement))).toEqual([]);
  expect([...CLAUSES.keys()].filter((name) => !STATEMENTS.includes(name))).toEqual([]);
});

test("the generated page has each statement under its section", async () => {
  const sectionOf = (statement: string): string => statement.split(" ")[0] ?? "";
  const sections = [...new Set(STATEMENTS.map(sectionOf))];
  const lines = [
    "# The clauses of the configuration API",
    "",
    "Written by `test/contract/clauses.test.ts`. Every statement of the API's document (API-V2 in the code), in our own words, by its section and the name of its test in `test/contract/http.test.ts`, which asks the embedded API. The last column is about the collector as a client of any platform: the test of the same name in `test/contract/consumer.test.ts`, or why the statement binds the platform alone. The document itself wins over this page; what it leaves open is in [the design](../design/api-decisions.md).",
    ...sections.flatMap((section) => [
      "",
      `## ${section}`,
      "",
      "| test | what it says | the collector as a client |",
      "| --- | --- | --- |",
      ...STATEMENTS.filter((statement) => sectionOf(statement) === section).map(
        (name) => `| ${name} | ${CLAUSES.get(name)} | ${consumerWords(name)} |`,
      ),
    ]),
  ];
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot(DOC);
});
