import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { commentsWithoutSubject, type Finding, stringsToMend, testNames } from "./find.ts";

/**
 * `npm run check` ends with this: for each room the number of comments without a subject, of strings that people read and of test names to
 * mend is at most what budgets.json says. A number there may only fall: whoever mends some lowers it.
 */

const ROOT = path.resolve(import.meta.dirname, "../..");
const KINDS = { comments: commentsWithoutSubject, strings: stringsToMend, testNames } as const;
type Kind = keyof typeof KINDS;
type Budgets = Readonly<Record<string, Readonly<Record<Kind, number>>>>;

const budgets = JSON.parse(readFileSync(path.join(import.meta.dirname, "budgets.json"), "utf8")) as Budgets;
const listed = process.argv[2];

let isOver = false;
for (const [room, most] of Object.entries(budgets)) {
  const files = globSync(`${room}/**/*.{ts,tsx}`, { cwd: ROOT });
  for (const kind of Object.keys(KINDS) as Kind[]) {
    const found = files.flatMap((file): readonly string[] => {
      const isTest = file.endsWith(".test.ts");
      if ((kind === "testNames") !== isTest && kind !== "comments") return [];
      const findings: readonly Finding[] = KINDS[kind](readFileSync(path.join(ROOT, file), "utf8"));
      return findings.map(({ line, text }) => `${file}:${line}: ${text}`);
    });
    if (listed === kind) for (const one of found) console.log(one);
    if (found.length > most[kind]) {
      isOver = true;
      console.error(`${room}: ${found.length} ${kind} to mend, and at most ${most[kind]} may be; list them: npm run words ${kind}`);
    } else if (found.length < most[kind])
      console.log(`${room}: ${found.length} ${kind} to mend: lower the budget of ${most[kind]} in test/words/budgets.json`);
  }
}
process.exitCode = isOver ? 1 : 0;
