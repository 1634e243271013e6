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

const namesOf = (troubles: readonly Trouble<never>[]): string => troubles.map(({ name }) => name).join(", ");
