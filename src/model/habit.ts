/** How a device may want to be asked, or may be asked, though its protocol says nothing of it; found by what it answers and what it does not. */
export const HABITS = ["deaf_at_first", "pause", "no_gaps", "small_blocks", "one_in_flight", "several_in_flight"] as const;
export type HabitName = (typeof HABITS)[number];

/** A habit that was learned of a device. */
export interface Habit {
  readonly name: HabitName;
  /** The unit that has it; null: the device itself. */
  readonly part: string | null;
  /** `pause`: ms between an answer and the next request. `small_blocks`: bytes of one answer at most. `several_in_flight`: requests at once. Otherwise 1. */
  readonly value: number;
  /** When it was learned, ISO 8601 UTC. */
  readonly since: string;
  /** Settings of the source that make it permanent. */
  readonly settings: Readonly<Record<string, unknown>>;
}

const WORDS: Readonly<Record<HabitName, (value: number) => string>> = {
  deaf_at_first: () => "leaves the first request of a connection without an answer: it is sent once more",
  pause: (ms) => `loses requests that come right after an answer: a pause of ${ms} ms is kept`,
  no_gaps: () => "refuses requests over unused addresses between variables: each run has a request of its own",
  small_blocks: (bytes) => `refuses large requests: its answers have ${bytes} bytes at most`,
  one_in_flight: () => "loses requests that are under way together: one is sent at a time",
  several_in_flight: (requests) =>
    requests > 1
      ? `answers ${requests} requests at once as it does one after the other: as many are sent`
      : "was seen to do worse with several requests under way: one is sent at a time, until it is tried again",
};

/** A device does better with it, and needs nothing: no warning. Pure. */
export const isBenefit = ({ name }: Pick<Habit, "name">): boolean => name === "several_in_flight";

/** One sentence for people, with the settings that make it permanent. Pure. */
export function habitWords({ name, part, value, since, settings }: Habit): string {
  const set = Object.entries(settings).map(([setting, one]) => `${setting}: ${one}`);
  return `${part ?? "the device"} ${WORDS[name](value)} (learned ${since.slice(0, 10)}; ${set.join(", ")} in the source's settings makes it permanent)`;
}
