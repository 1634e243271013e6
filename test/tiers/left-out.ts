import { globSync } from "node:fs";
import type { Reporter } from "vitest/node";
import { COMMANDS, TIERS, type Tier, tierOf } from "./tiers.ts";

/** What a run of one tier leaves out, and the command of each: files by tier. Pure. */
export function leftOutWords(tier: Tier, files: readonly string[]): string {
  const counts = TIERS.filter((one) => one !== tier)
    .map((one) => ({ command: COMMANDS[one], count: files.filter((file) => tierOf(file) === one).length }))
    .filter(({ count }) => count > 0);
  return `Left out: ${counts.map(({ command, count }) => `${count} ${count === 1 ? "file" : "files"} (${command})`).join(", ")}. CONTRIBUTING.md says what each needs.`;
}

/** Ends a run of one tier by saying what it left out. */
export class LeftOut implements Reporter {
  readonly #tier: Tier;

  constructor(tier: Tier) {
    this.#tier = tier;
  }

  onTestRunEnd(): void {
    const files = globSync("{src,drivers,gateway,simulators,package,test}/**/*.test.ts");
    console.log(leftOutWords(this.#tier, files));
  }
}
