import process from "node:process";
import { expect } from "vitest";
import { type Measures, measure, percentile } from "./measure.ts";
import { type Play, playOf } from "./play.ts";
import { Player, type Seen } from "./player.ts";

/** Plays it, and holds it to what is right in each play; one that is not right is cut down first to what that takes. */
export async function played(play: Play): Promise<Seen> {
  const seen = await new Player(play).run();
  if (seen.wrong.length === 0) return seen;
  const words = `CHAOS_SEED=${play.seed} CHAOS_PLAYS=1 npx vitest run --mode short test/chaos; cut down: ${JSON.stringify(await cutDown(play))}`;
  expect(seen.wrong, words).toEqual([]);
  return seen;
}

/** The play without the troubles and sources that its failure does not need. */
async function cutDown(play: Play): Promise<Play> {
  const less = [
    ...play.troubles.map((_, i) => ({ ...play, troubles: play.troubles.toSpliced(i, 1) })),
    ...play.sources.flatMap((_, i) => (play.troubles.some(({ source }) => source === i) ? [] : withoutSource(play, i))),
  ];
  for (const one of less) if ((await new Player(one).run()).wrong.length > 0) return cutDown(one);
  return play;
}

const withoutSource = (play: Play, i: number): Play => ({
  ...play,
  sources: play.sources.toSpliced(i, 1),
  troubles: play.troubles.map((trouble) => ({ ...trouble, source: trouble.source > i ? trouble.source - 1 : trouble.source })),
});

/** The targets: parts of readouts, and ms beyond three readouts. */
export const MOST = { alone: 0.02, siblings95: 0.1, siblings: 0.4, healing95Ms: 10_000, healingMs: 60_000 } as const;

/** Plays that many seeds, and gives the rows of a table. */
export async function playAll(first: number, count: number): Promise<{ readonly measures: Measures; readonly rows: readonly string[] }> {
  const measures: Measures = { alone: [], siblings: [], healing: [] };
  const before = process.cpuUsage();
  let values = 0;
  for (let seed = first; seed < first + count; seed++) {
    const play = playOf(seed);
    const seen = await played(play);
    values += seen.values;
    measure(play, seen, measures);
  }
  const { user, system } = process.cpuUsage(before);
  console.log(`chaos: ${count} plays, ${values} values, ${((user + system) / 1e6).toFixed(1)} s of CPU`);
  const percent = (part: number) => `${(100 * part).toFixed(1)} %`;
  const seconds = (ms: number) => (ms === Number.POSITIVE_INFINITY ? "never" : `${(ms / 1000).toFixed(1)} s`);
  const row = (of: string, some: readonly number[], words: (one: number) => string, target: string) =>
    `| ${of} | ${some.length} | ${[0.5, 0.95, 0.99, 1].map((part) => words(percentile(some, part))).join(" | ")} | ${target} |`;
  const { alone, siblings, healing } = measures;
  const rows = [
    row("readouts lost: sources of devices that no trouble is about", alone, percent, `worst ${percent(MOST.alone)}`),
    row(
      "readouts lost: siblings of what is in trouble",
      siblings,
      percent,
      `95 % of them ${percent(MOST.siblings95)}, worst ${percent(MOST.siblings)}`,
    ),
    row("healing, beyond three readouts", healing, seconds, `95 % of them ${seconds(MOST.healing95Ms)}, worst ${seconds(MOST.healingMs)}`),
    `| wrong values, another device's, from before a reboot, older than their readout | ${values} values | 0 | 0 | 0 | 0 | 0 |`,
  ];
  console.log(rows.join("\n"));
  return { measures, rows };
}

/** Holds the measures to their targets. */
export function expectWithin({ alone, siblings, healing }: Measures): void {
  expect(percentile(alone, 1)).toBeLessThanOrEqual(MOST.alone);
  expect(percentile(siblings, 0.95)).toBeLessThanOrEqual(MOST.siblings95);
  expect(percentile(siblings, 1)).toBeLessThanOrEqual(MOST.siblings);
  expect(percentile(healing, 0.95)).toBeLessThanOrEqual(MOST.healing95Ms);
  expect(percentile(healing, 1)).toBeLessThanOrEqual(MOST.healingMs);
}
