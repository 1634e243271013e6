import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { STATEMENTS, type Statement, type Test } from "./statements.ts";

const ROOT = path.resolve(import.meta.dirname, "../../..");
const DOC = path.join(ROOT, "docs/generated/sparkplug.md");

const testOf = ({ proof }: Statement): Test | undefined => ("file" in proof ? proof : undefined);
const proofWords = ({ proof }: Statement): string => ("file" in proof ? `\`${path.basename(proof.file)}\`: ${proof.name}` : proof.reason);

/** A name in a list of cases stands first in a row. */
const isNamedIn = (text: string, name: string): boolean =>
  text.includes(`(${JSON.stringify(name)}`) || text.includes(`[${JSON.stringify(name)}`);

describe("the normative statements of Sparkplug", () => {
  it("stand once each", () => {
    expect(new Set(STATEMENTS.map(({ id }) => id)).size).toBe(STATEMENTS.length);
  });

  it("have a test that exists, or a reason", () => {
    const texts = new Map<string, string>();
    const missing = STATEMENTS.filter((statement) => {
      const named = testOf(statement);
      if (!named) return proofWords(statement).length < 6;
      const text = texts.get(named.file) ?? readFileSync(path.join(ROOT, named.file), "utf8");
      texts.set(named.file, text);
      return !isNamedIn(text, named.name);
    });
    expect(missing).toEqual([]);
  });

  it("stand in the generated page", async () => {
    const tested = STATEMENTS.filter(testOf).length;
    const lines = [
      "# Sparkplug B 3.0, statement by statement",
      "",
      `Written by \`test/contract/sparkplug/statements.test.ts\`. The normative statements that bind an edge node, by the \`tck-id\` of the specification's source (eclipse-sparkplug/sparkplug), in our own words: ${tested} of ${STATEMENTS.length} have a test, the others a reason. Every message in these tests is read by the decoder of Eclipse Tahu (\`sparkplug-payload\` of npm) and checked by a host application in miniature, \`src/sinks/mqtt/sparkplug/testing-host.ts\`. The project's own TCK was not run: it is no part of the packages here.`,
      "",
      "| tck-id | what it asks for | test, or the reason for none |",
      "| --- | --- | --- |",
      ...STATEMENTS.map((statement) => `| ${statement.id} | ${statement.asks} | ${proofWords(statement)} |`),
    ];
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot(DOC);
  });
});
