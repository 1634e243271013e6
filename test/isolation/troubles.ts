import fc from "fast-check";
import type { FaultProxy } from "../support/fault-proxy.ts";
import type { WatchedAgent } from "./watched.ts";

/** Between two readouts of a source. */
export const INTERVAL_MS = 200;
/** Readouts after what was wrong is well again. */
export const HEALED_WITHIN = 3;
/** How long something stays wrong. */
export const TROUBLED_READOUTS = 6;

/** Something that goes wrong with a device, and is well again. */
export interface Trouble<Plant> {
  readonly name: string;
  begin(plant: Plant): unknown;
  end(plant: Plant): unknown;
}

/** All that passes the proxy comes so many ms late. */
export const lateNetwork = (delayMs: number): Trouble<{ readonly proxy: FaultProxy }> => ({
  name: "a late network",
  begin({ proxy }) {
    proxy.delayMs = delayMs;
    proxy.fault = "delay";
  },
  end({ proxy }) {
    proxy.fault = "none";
  },
});

export const everyTwo = <T>(all: readonly T[]): readonly (readonly T[])[] =>
  all.flatMap((one, i) => all.slice(i + 1).map((other) => [one, other]));

export interface Outcome {
  /** The troubles. */
  readonly of: string;
  /** `in time`, or how many readouts it took until every value was good again. */
  readonly took: string;
  /** Of the last of the readouts after that. */
  readonly asked: unknown;
  /** Values of all readouts that are good by their quality alone. */
  readonly wrong: number;
}

export const wellAfter = (troubles: readonly Trouble<never>[], fresh: unknown): Outcome => ({
  of: namesOf(troubles),
  took: "in time",
  asked: fresh,
  wrong: 0,
});

/** Troubles of a plant at once, for a while, then all well again. The plant is not stopped. */
export async function playTroubles<Plant extends WatchedAgent<unknown>>(
  plant: Plant,
  troubles: readonly Trouble<Plant>[],
): Promise<Outcome> {
  await plant.until(() => plant.isWhole());
  for (const trouble of troubles) await trouble.begin(plant);
  await new Promise((done) => setTimeout(done, TROUBLED_READOUTS * INTERVAL_MS));
  for (const trouble of troubles) await trouble.end(plant);
  const took = await plant.readoutsUntilWhole();
  const after = await plant.readouts(HEALED_WITHIN);
  const wrong = plant.seen.reduce((total, one) => total + one.wrong, 0);
  // One readout may have begun before they ended.
  return { of: namesOf(troubles), took: took <= HEALED_WITHIN + 1 ? "in time" : `${took} readouts`, asked: after.at(-1)?.asked, wrong };
}

/** Every two of the troubles, and some sets of three to five, with their names. */
export const scenariosOf = <T>(all: readonly T[], several: number): readonly (readonly [string, readonly (readonly T[])[]])[] => [
  ["every two", everyTwo(all)],
  ["three to five", fc.sample(fc.subarray([...all], { minLength: 3, maxLength: 5 }), several)],
];

/** What came of each scenario, on a plant of its own, all at once. `look` sees the plant before it is stopped. */
export const outcomesOf = <Plant extends WatchedAgent<unknown>>(
  scenarios: readonly (readonly Trouble<Plant>[])[],
  start: () => Promise<Plant>,
  look: (plant: Plant, outcome: Outcome) => void = () => {},
): Promise<readonly Outcome[]> =>
  Promise.all(
    scenarios.map(async (troubles) => {
      const plant = await start();
      const outcome = await playTroubles(plant, troubles);
      look(plant, outcome);
      await plant.stop();
      return outcome;
    }),
  );

const namesOf = (troubles: readonly Trouble<never>[]): string => troubles.map(({ name }) => name).join(", ");
