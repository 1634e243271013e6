import { readFileSync } from "node:fs";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { explainFault, explainReason } from "../../../src/model/catalogue.ts";
import { type Fault, FaultError } from "../../../src/model/fault.ts";
import { ReasonError } from "../../../src/model/reason.ts";
import { type Bench, createBench, ROWS, type Row } from "./rows.ts";

const README = path.resolve(import.meta.dirname, "../../../drivers/s7plus/README.md");
const [BEGIN, END] = ["<!-- failures: written by test/faults/s7plus, do not edit -->", "<!-- /failures -->"];

interface Outcome {
  readonly row: Row;
  /** As it shows in status. */
  readonly name: string;
  readonly detail: string;
  readonly nextStep: string;
}

/** What a row ended with: a refusal or the source's failure, or a bad reading. */
function outcomeOf(row: Row, ended: unknown): Outcome {
  if (ended instanceof ReasonError) {
    expect({ reason: ended.reason.type, condition: ended.condition }).toEqual({ reason: row.reason, condition: row.condition });
    const category = ended.reason.type === "S7PLUS_ERROR" ? ended.reason.category : undefined;
    expect(category).toBe(row.category);
    const more = category ?? ended.condition;
    const condition = more === undefined ? "" : ` (\`${more}\`)`;
    const { nextStep } = explainReason(ended.reason, ended.condition ?? null);
    return { row, name: `\`${ended.reason.type}\`${condition}`, detail: ended.message, nextStep };
  }
  const bad = ended instanceof FaultError ? { fault: ended.fault, detail: ended.message, scope: ended.scope } : (ended as object);
  const { fault, detail, scope } = bad as { fault: Fault; detail: string; scope?: string };
  expect({ fault, scope }).toEqual({ fault: row.fault, scope: row.scope });
  return { row, name: `fault \`${fault}\``, detail, nextStep: explainFault(fault).nextStep };
}

describe("S7plus failures", () => {
  const outcomes: Outcome[] = [];
  let bench: (Bench & { close(): Promise<void> }) | undefined;
  afterEach(async () => {
    await bench?.close();
    bench = undefined;
  });

  it.each(ROWS.map((row) => [row.what, row] as const))("%s", async (_, row) => {
    bench = createBench();
    const outcome = outcomeOf(row, await row.run(bench).catch((failed: unknown) => failed));
    expect(outcome.detail).toMatch(row.detail);
    outcomes.push(outcome);
  });

  it("tells every two apart", () => {
    expect(outcomes).toHaveLength(ROWS.length);
    const details = outcomes.map(({ detail }) => plain(detail));
    expect(new Set(details).size).toBe(details.length);
  });

  it("is what the driver's README says", async () => {
    const readme = readFileSync(README, "utf8");
    const [before, after] = [readme.indexOf(BEGIN), readme.indexOf(END)];
    expect(before).toBeGreaterThan(0);
    await expect(`${readme.slice(0, before + BEGIN.length)}\n\n${table(outcomes)}\n\n${readme.slice(after)}`).toMatchFileSnapshot(README);
  });
});

/** Without what changes from run to run. */
const plain = (text: string): string =>
  text.replaceAll(/127\.0\.0\.1:\d+/g, "HOST:PORT").replaceAll(/[0-9A-F]{2}(:[0-9A-F]{2}){31}/g, "FINGERPRINT");

function table(all: readonly Outcome[]): string {
  const titles = {
    network: "Network and protocol",
    connection: "Connecting",
    login: "Logging in",
    session: "The session",
    variable: "One variable",
  } as const;
  const cell = (text: string) => plain(text).replaceAll("|", "\\|").replaceAll("\n", " ");
  return (Object.keys(titles) as (keyof typeof titles)[])
    .map((group) => {
      const lines = all
        .filter(({ row }) => row.group === group)
        .map(({ row, name, detail, nextStep }) => `| ${row.what} | ${name} | ${cell(detail)} | ${cell(nextStep)} |`);
      return [
        `### ${titles[group]}`,
        "",
        "| what happens | reason (category or condition) or fault | detail in status | next step |",
        "| --- | --- | --- | --- |",
        ...lines,
      ].join("\n");
    })
    .join("\n\n");
}
