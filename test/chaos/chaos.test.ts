import path from "node:path";
import process from "node:process";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Measures, measure, percentile } from "./measure.ts";
import { playOf } from "./play.ts";
import { Player } from "./player.ts";

const PLAYS = Number(process.env["CHAOS_PLAYS"] ?? 200);
const FIRST_SEED = Number(process.env["CHAOS_SEED"] ?? 1);
const isUsual = PLAYS === 200 && FIRST_SEED === 1;
const DOC = path.resolve(import.meta.dirname, "../../docs/generated/chaos.md");

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date", "performance"] }));
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("plants with several troubles at once", () => {
  it("give no wrong value, and cost the healthy little", { timeout: 600_000 }, async () => {
    const measures: Measures = { alone: [], siblings: [], healing: [] };
    let values = 0;
    const before = process.cpuUsage();
    for (let seed = FIRST_SEED; seed < FIRST_SEED + PLAYS; seed++) {
      const play = playOf(seed);
      const seen = await new Player(play).run();
      values += seen.values;
      measure(play, seen, measures);
      expect(seen.wrong, `CHAOS_SEED=${seed} CHAOS_PLAYS=1 npx vitest run --mode short test/chaos: ${JSON.stringify(play)}`).toEqual([]);
    }
    const { user, system } = process.cpuUsage(before);
    console.log(`chaos: ${PLAYS} plays, ${values} values, ${((user + system) / 1e6).toFixed(1)} s of CPU`);
    const percent = (part: number) => `${(100 * part).toFixed(1)} %`;
    const seconds = (ms: number) => (ms === Number.POSITIVE_INFINITY ? "never" : `${(ms / 1000).toFixed(1)} s`);
    const row = (of: string, some: readonly number[], words: (one: number) => string) =>
      `| ${of} | ${some.length} | ${[0.5, 0.95, 0.99, 1].map((part) => words(percentile(some, part))).join(" | ")} |`;
    const rows = [
      row("readouts lost, devices without a trouble", measures.alone, percent),
      row("readouts lost, siblings of what is in trouble", measures.siblings, percent),
      row("healing, beyond three readouts", measures.healing, seconds),
    ];
    console.log(rows.join("\n"));
    void isUsual;
    void DOC;
  });
});
