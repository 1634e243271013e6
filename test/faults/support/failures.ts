import { readFileSync } from "node:fs";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type Fault, FaultError } from "../../../src/model/fault.ts";
import { ReasonError } from "../../../src/model/reason.ts";
import { explainReason } from "../../../src/model/words/catalogue.ts";
import { explainFault } from "../../../src/model/words/fault-catalogue.ts";

/** One way in which reading fails: it is done for real, and what comes out must be this. */
export interface FailureRow<B, G extends string> {
  readonly group: G;
  readonly what: string;
  /** Of the source; or of the variable, with its scope. */
  readonly reason?: string;
  /** Of a reason that has one. */
  readonly category?: string;
  readonly condition?: string;
  readonly fault?: string;
  readonly scope?: string;
  /** What the detail must say, so that no two causes read alike. */
  readonly detail: RegExp;
  run(bench: B): Promise<unknown>;
}

/** What has to be done when a row is over, the last thing first. */
export class Steps {
  readonly #steps: (() => unknown)[] = [];

  readonly later = (work: () => unknown): void => void this.#steps.push(work);

  readonly close = async (): Promise<void> => {
    for (const step of this.#steps.reverse()) await step();
  };
}

/** Ends what a row used. */
interface Closing {
  close(): Promise<void>;
}

interface Failures<B, G extends string> {
  /** Of the driver: its folder in `drivers`, and that of its rows. */
  readonly type: string;
  readonly title: string;
  /** In the order of the table. */
  readonly groups: Readonly<Record<G, string>>;
  readonly rows: readonly FailureRow<B, G>[];
  createBench(): B & Closing;
}

interface Outcome<G extends string> {
  readonly row: FailureRow<never, G>;
  /** As it shows in status. */
  readonly name: string;
  readonly detail: string;
  readonly nextStep: string;
}

/** What a row ended with: a refusal or the source's failure, or a bad reading. */
function outcomeOf<G extends string>(row: FailureRow<never, G>, ended: unknown): Outcome<G> {
  if (ended instanceof ReasonError) {
    expect({ reason: ended.reason.type, condition: ended.condition }).toEqual({ reason: row.reason, condition: row.condition });
    const category = "category" in ended.reason ? ended.reason.category : undefined;
    expect(category).toBe(row.category);
    const more = category ?? ended.condition;
    const condition = more === undefined ? "" : ` (\`${more}\`)`;
    const { nextStep } = explainReason(ended.reason, ended.condition ?? null, { nextStep: ended.nextStep });
    return { row, name: `\`${ended.reason.type}\`${condition}`, detail: ended.message, nextStep };
  }
  const bad = ended instanceof FaultError ? { fault: ended.fault, detail: ended.message, scope: ended.scope } : (ended as object);
  const { fault, detail, scope } = bad as { fault: Fault; detail: string; scope?: string };
  expect({ fault, scope }).toEqual({ fault: row.fault, scope: row.scope });
  return { row, name: `fault \`${fault}\``, detail, nextStep: explainFault(fault).nextStep };
}

/** Runs every row, and holds the table of failures in the driver's README to what came of them. */
export function describeFailures<B, G extends string>({ type, title, groups, rows, createBench }: Failures<B, G>): void {
  const readmePath = path.resolve(import.meta.dirname, `../../../drivers/${type}/README.md`);
  const [begin, end] = [`<!-- failures: written by test/faults/${type}, do not edit -->`, "<!-- /failures -->"];

  describe(`${title} failures`, () => {
    const outcomes: Outcome<G>[] = [];
    let bench: (B & Closing) | undefined;
    afterEach(async () => {
      await bench?.close();
      bench = undefined;
    });

    it.each(rows.map((row) => [row.what, row] as const))("%s", async (_, row) => {
      const own = createBench();
      bench = own;
      const outcome = outcomeOf(row, await row.run(own).catch((failed: unknown) => failed));
      expect(outcome.detail).toMatch(row.detail);
      outcomes.push(outcome);
    });

    it("tells every two apart", () => {
      expect(outcomes).toHaveLength(rows.length);
      const details = outcomes.map(({ detail }) => plain(detail));
      expect(new Set(details).size).toBe(details.length);
    });

    it("is what the driver's README says", async () => {
      const readme = readFileSync(readmePath, "utf8");
      const [before, after] = [readme.indexOf(begin), readme.indexOf(end)];
      expect(before).toBeGreaterThan(0);
      const written = `${readme.slice(0, before + begin.length)}\n\n${table(groups, outcomes)}\n\n${readme.slice(after)}`;
      await expect(written).toMatchFileSnapshot(readmePath);
    });
  });
}

/** Without what changes from run to run. */
const plain = (text: string): string =>
  text
    .replaceAll(/127\.0\.0\.1:\d+/g, "HOST:PORT")
    .replaceAll(/127\.0\.0\.2:\d+/g, "OTHER:PORT")
    .replaceAll(/\b(?:one answer|\d+ answers) (?=came from)/g, "N answers ")
    .replaceAll(/(port (?:to )?)\d{4,5}\b/g, "$1PORT")
    .replaceAll(/[0-9A-F]{2}(?::[0-9A-F]{2}){31}/g, "FINGERPRINT");

function table<G extends string>(groups: Readonly<Record<G, string>>, all: readonly Outcome<G>[]): string {
  const cell = (text: string) => plain(text).replaceAll("|", "\\|").replaceAll("\n", " ");
  return (Object.keys(groups) as G[])
    .map((group) => {
      const lines = all
        .filter(({ row }) => row.group === group)
        .map(({ row, name, detail, nextStep }) => `| ${row.what} | ${name} | ${cell(detail)} | ${cell(nextStep)} |`);
      return [
        `### ${groups[group]}`,
        "",
        "| what happens | reason (condition) or fault | detail in status | next step |",
        "| --- | --- | --- | --- |",
        ...lines,
      ].join("\n");
    })
    .join("\n\n");
}
