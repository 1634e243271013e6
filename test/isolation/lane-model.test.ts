import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ANSWER_TIMEOUT_MS, type LaneFault, LaneModel, type LaneOptions, type LaneType, REGISTERS } from "./lane-model.ts";

/** A fault that begins and ends, counted from when all was well. */
interface Spell {
  readonly fault: LaneFault;
  readonly atMs: number;
  readonly lastsMs: number;
}

interface Play {
  readonly lane: LaneOptions;
  readonly spells: readonly Spell[];
}

/** Of one source. */
interface Outcome {
  /** The longest time that a variable which was well had no good value. */
  readonly gapMs: number;
  /** Its readouts while something was wrong, of those that were due. */
  readonly share: number;
  /** Until every value was good again; undefined: they never were. */
  readonly healedMs: number | undefined;
  /** Requests of a readout: at first, in the end, and at most meanwhile. */
  readonly fresh: number;
  readonly after: number;
  readonly most: number;
  /** Readouts that had neither a value nor a fault for a variable. */
  readonly unexplained: number;
  /** Values of the whole play that were another variable's, or older than their readout. */
  readonly wrong: number;
  /** Its states while something was wrong. */
  readonly states: readonly string[];
}

const EPOCH_MS = 1_000_000_000_000;
const MARGIN = 3;
/** Of a readout, for searching, probing and joining. */
const EXTRAS = 20;
const HEALTHY_SHARE = 0.9;
/** A share of less than this is too short to be one. */
const SHARE_OVER_MS = 60_000;
/** What has no answer for long is looked at once a minute; then it takes a readout or two. */
const HEALED_WITHIN_MS = 70_000;
const LOOK_MS = 100;
const SETTLE_MS = 15_000;

const faultsOf = ({ spells }: Play, unit: number): readonly LaneFault[] =>
  spells.map(({ fault }) => fault).filter((one) => one.unit === unit);
const isHit = (play: Play, unit: number, register: number): boolean =>
  faultsOf(play, unit).some((fault) => fault.register === undefined || fault.register === register);
const isHealthy = (play: Play, n: number): boolean =>
  play.lane.sources[n]?.units.every((unit) => faultsOf(play, unit).length === 0) ?? false;

async function outcomesOf(play: Play): Promise<readonly Outcome[]> {
  const { lane, spells } = play;
  // The same play comes out the same, whatever was played before it.
  vi.setSystemTime(EPOCH_MS);
  const model = await LaneModel.start(lane);
  await model.pass(SETTLE_MS);
  const begun = lane.sources.map((_, n) => model.seen[n]?.length ?? 0);
  const fresh = lane.sources.map((_, n) => model.seen[n]?.at(-1)?.asked ?? 0);
  const startMs = Date.now();
  const gaps = lane.sources.map(() => 0);
  const states = lane.sources.map(() => new Set<string>());
  const look = () => {
    for (const [n, points] of model.points.entries()) {
      states[n]?.add(model.stateOf(n));
      for (const { unit, register, goodAtMs } of points)
        if (!isHit(play, unit, register)) gaps[n] = Math.max(gaps[n] ?? 0, Date.now() - goodAtMs);
    }
  };
  const lookUntil = async (endMs: number) => {
    while (Date.now() < endMs) {
      await model.pass(Math.min(LOOK_MS, endMs - Date.now()));
      look();
    }
  };
  const changes = spells.flatMap(({ fault, atMs, lastsMs }) => [
    { atMs, make: () => model.faults.add(fault) },
    { atMs: atMs + lastsMs, make: () => model.faults.delete(fault) },
  ]);
  for (const { atMs, make } of changes.sort((a, b) => a.atMs - b.atMs)) {
    await lookUntil(startMs + atMs);
    make();
  }
  const wellMs = Date.now();
  const counts = lane.sources.map((_, n) => (model.seen[n]?.length ?? 0) - (begun[n] ?? 0));
  await lookUntil(wellMs + HEALED_WITHIN_MS);
  // The last of what was learned goes when its turn comes.
  await model.pass(HEALED_WITHIN_MS);
  await model.stop();
  return lane.sources.map(({ intervalMs }, n) => {
    const seen = model.seen[n] ?? [];
    const healed = seen.find(({ atMs, good }) => atMs > wellMs && good === model.points[n]?.length);
    const inOne = seen.slice(begun[n]).filter(({ number }, i) => number - (seen[(begun[n] ?? 0) + i - 1]?.number ?? 0) === 1);
    return {
      gapMs: gaps[n] ?? 0,
      share: (counts[n] ?? 0) / ((wellMs - startMs) / intervalMs),
      healedMs: healed && healed.atMs - wellMs,
      fresh: fresh[n] ?? 0,
      after: seen.at(-1)?.asked ?? 0,
      most: Math.max(...inOne.map(({ asked }) => asked)),
      unexplained: seen.filter((one) => one.unexplained > 0).length,
      wrong: model.wrong,
      states: [...(states[n] ?? [])],
    };
  });
}

/** Throws what is not as it should be; gives the longest gap of what was well, in parts of what it may be. */
async function check(play: Play, margin = MARGIN): Promise<number> {
  const { lane, spells } = play;
  const outcomes = await outcomesOf(play);
  const troubledMs = Math.max(...spells.map(({ atMs, lastsMs }) => atMs + lastsMs));
  let worst = 0;
  for (const [n, one] of outcomes.entries()) {
    const words = `source ${n}: ${JSON.stringify(one)}`;
    const longestMs = 2 * (lane.sources[n]?.intervalMs ?? 0) + ANSWER_TIMEOUT_MS;
    expect(one.gapMs, words).toBeLessThanOrEqual(margin * longestMs);
    worst = Math.max(worst, one.gapMs / longestMs);
    if (isHealthy(play, n)) {
      expect(one.states, words).toEqual(["OK"]);
      if (troubledMs >= SHARE_OVER_MS) expect(one.share, words).toBeGreaterThan(1 - MARGIN * (1 - HEALTHY_SHARE));
    }
    expect(one.healedMs, words).toBeLessThan(HEALED_WITHIN_MS);
    expect(one.unexplained, words).toBe(0);
    expect(one.wrong, words).toBe(0);
    expect(one.after, words).toBe(one.fresh);
    expect(one.most, words).toBeLessThanOrEqual(one.fresh + EXTRAS);
  }
  return worst;
}

const kinds = fc.constantFrom<LaneFault["kind"]>("silent", "fin", "rst", "malformed", "gateway", "missing", "refused");
/** Units are numbered through. */
const sources = fc
  .array(fc.record({ units: fc.integer({ min: 1, max: 3 }), intervalMs: fc.constantFrom(1000, 1000, 5000) }), {
    minLength: 1,
    maxLength: 6,
  })
  .map((all) => {
    let unit = 0;
    return all.map(({ units, intervalMs }) => ({ units: Array.from({ length: units }, () => ++unit), intervalMs }));
  });
const plays = (type: LaneType): fc.Arbitrary<Play> =>
  fc
    .record({
      type: fc.constant(type),
      sources,
      answerMs: fc.constantFrom(5, 20),
      busyMs: type === "opcua" ? fc.constant(0) : fc.constantFrom(0, 1000),
    })
    .chain((lane) => {
      // The first of several stays well.
      const units = lane.sources.slice(lane.sources.length > 1 ? 1 : 0).flatMap((one) => one.units);
      const one = fc.constantFrom(...REGISTERS);
      // A server has no units.
      const register = type === "opcua" ? one : fc.option(one, { nil: undefined });
      const spell = fc.record({
        fault: fc.record({ kind: kinds, unit: fc.constantFrom(...units), register }),
        atMs: fc.integer({ min: 0, max: 10_000 }),
        lastsMs: fc.constantFrom(3000, 20_000, 60_000, 200_000),
      });
      return fc.record({ lane: fc.constant(lane), spells: fc.array(spell, { minLength: 1, maxLength: 4 }) });
    });

const of = (busyMs: number, sources: LaneOptions["sources"], type: LaneType = "modbus_tcp"): LaneOptions => ({
  type,
  sources,
  answerMs: 20,
  busyMs,
});
const spell = (kind: LaneFault["kind"], unit: number, register: number | undefined, atMs: number, lastsMs: number): Spell => ({
  fault: { kind, unit, register },
  atMs,
  lastsMs,
});
/** Requests of 125. */
const MANY = Array.from({ length: 500 }, (_, register) => register);
const WELL = { units: [1], intervalMs: 1000 };
/** What once went wrong, by what went wrong, with the longest gap in parts of two intervals and a time-out. */
const NAMED: Readonly<Record<string, Play & { readonly gap: number }>> = {
  "a healthy unit was given up in the shadow of a slow one": {
    gap: 3,
    lane: of(0, [WELL, { units: [2], intervalMs: 1000 }, { units: [3], intervalMs: 1000 }, { units: [4, 5, 6], intervalMs: 1000 }]),
    spells: [
      spell("silent", 2, undefined, 2195, 3000),
      { ...spell("slow", 2, 0, 2195, 60_000), fault: { kind: "slow", unit: 2, register: 0, takesMs: 2500 } },
      spell("silent", 3, 7, 3435, 60_000),
    ],
  },
  "a register was not searched for, because silent units had used up what its gateway has for that": {
    gap: 3,
    lane: {
      ...of(1000, [
        { units: [1], intervalMs: 5000 },
        { units: [2, 3], intervalMs: 1000 },
        { units: [4, 5, 6], intervalMs: 1000 },
        { units: [7], intervalMs: 5000 },
        { units: [8, 9, 10], intervalMs: 1000 },
        { units: [11, 12], intervalMs: 5000 },
      ]),
    },
    spells: [spell("silent", 2, 0, 1006, 200_000), spell("silent", 4, undefined, 0, 3000), spell("silent", 10, undefined, 0, 60_000)],
  },
  "a unit with a silent register waited for the budget that a slow unit had used up": {
    gap: 3,
    lane: of(0, [WELL, { units: [2], intervalMs: 1000 }, { units: [3], intervalMs: 1000 }, { units: [4, 5, 6], intervalMs: 1000 }]),
    spells: [
      { ...spell("slow", 2, undefined, 0, 60_000), fault: { kind: "slow", unit: 2, takesMs: 2500 } },
      spell("silent", 3, 0, 2795, 60_000),
    ],
  },
  "the request over the found register was asked at once again, and waited for in full": {
    gap: 1.3,
    lane: of(0, [WELL, { units: [2], intervalMs: 1000 }]),
    spells: [spell("silent", 2, 3, 4963, 20_000)],
  },
  "what costs no time waited for time to search, which others had used up": {
    gap: 2,
    lane: of(1000, [WELL, { units: [2, 3, 4], intervalMs: 1000 }]),
    spells: [
      spell("silent", 2, 2, 3035, 20_000),
      spell("gateway", 2, 6, 45, 60_000),
      spell("refused", 3, 0, 1740, 20_000),
      spell("rst", 4, 2, 6851, 60_000),
    ],
  },
  "a unit was held to be silent by a register that was known to have no answer": {
    gap: 1.3,
    lane: of(1000, [WELL, { units: [2, 3, 4], intervalMs: 1000 }]),
    spells: [
      spell("malformed", 3, 6, 872, 200_000),
      spell("malformed", 4, 1000, 5399, 200_000),
      spell("gateway", 2, 1001, 6178, 200_000),
      spell("rst", 4, 2, 8175, 20_000),
    ],
  },
  "a unit was held to be silent by two registers, and the first time-out left no time to look again": {
    gap: 1.3,
    lane: of(0, [WELL, { units: [2, 3], intervalMs: 1000 }]),
    spells: [spell("silent", 2, 2, 1112, 60_000), spell("malformed", 2, 1000, 3921, 200_000)],
  },
  "a refused register was held to be the silent one beside it": {
    gap: 2,
    lane: of(1000, [WELL, { units: [2, 3], intervalMs: 1000 }]),
    spells: [spell("silent", 2, 5, 863, 200_000), spell("refused", 2, 0, 2786, 200_000)],
  },
  "a unit that went silent while it was searched was asked register by register, and left no time for a refusal": {
    gap: 2,
    lane: of(1000, [{ units: [2, 3], intervalMs: 1000 }]),
    spells: [spell("silent", 2, 0, 0, 3000), spell("silent", 2, undefined, 3207, 60_000), spell("missing", 3, 0, 0, 60_000)],
  },
  "a unit with a silent register was held to be silent, because a silent unit beside it took the time to look": {
    gap: 2,
    lane: of(0, [
      { units: [2, 3], intervalMs: 5000 },
      { units: [4, 5, 6], intervalMs: 1000 },
      { units: [7, 8], intervalMs: 1000 },
      { units: [9, 10, 11], intervalMs: 1000 },
    ]),
    spells: [spell("silent", 9, undefined, 0, 60_000), spell("silent", 10, 0, 0, 60_000)],
  },
  "a source that was silent altogether used up what another one searched with": {
    gap: 3,
    lane: { ...of(1000, [WELL, { units: [2], intervalMs: 5000 }, { units: [3, 4], intervalMs: 1000 }]), answerMs: 5 },
    spells: [spell("silent", 2, undefined, 979, 20_000), spell("silent", 4, 0, 205, 60_000)],
  },
  "a unit that was silent used up what another source searched with": {
    gap: 1.5,
    lane: of(0, [
      { units: [1, 2], intervalMs: 1000 },
      { units: [3], intervalMs: 5000 },
      { units: [4], intervalMs: 1000 },
      { units: [5, 6, 7], intervalMs: 1000 },
      { units: [8, 9, 10], intervalMs: 1000 },
      { units: [11, 12], intervalMs: 1000 },
    ]),
    spells: [spell("silent", 12, undefined, 338, 60_000), spell("silent", 3, 0, 6403, 200_000)],
  },
  "each part that was searched behind a busy gateway was waited for three times as long": {
    gap: 2,
    lane: of(1000, [WELL, { units: [2, 3, 4], intervalMs: 1000 }]),
    spells: [spell("silent", 2, 0, 5195, 60_000), spell("silent", 4, 0, 0, 60_000), spell("malformed", 3, undefined, 2315, 3000)],
  },
  "what else was planned of a unit in trouble was waited for in full": {
    gap: 3,
    lane: of(0, [{ units: [1, 2], intervalMs: 1000 }]),
    spells: [spell("silent", 1, 1002, 0, 200_000), spell("silent", 1, 0, 0, 20_000), spell("silent", 1, 6, 0, 20_000)],
  },
  "what a gateway was asked so that it settles came on top of what a readout may ask": {
    gap: 2,
    lane: {
      type: "opcua",
      sources: [
        { units: [1, 2], intervalMs: 1000 },
        { units: [3, 4], intervalMs: 1000 },
        { units: [5, 6, 7], intervalMs: 1000 },
        { units: [8, 9], intervalMs: 5000 },
        { units: [10, 11], intervalMs: 1000 },
      ],
      answerMs: 5,
      busyMs: 0,
    },
    spells: [spell("silent", 10, 3, 1, 3000), spell("silent", 11, 0, 0, 20_000), spell("fin", 10, 0, 0, 3000)],
  },
  "large requests were searched for a share of the time, because an ask took a little more than half an interval": {
    gap: 3,
    lane: {
      ...of(0, [
        { units: [1], intervalMs: 1000 },
        { units: [2], intervalMs: 1000 },
      ]),
      answerMs: 5,
      registers: MANY,
    },
    spells: [4, 258, 363, 450].map((register) => spell("silent", 1, register, 0, 60_000)),
  },
  "sources that all searched were protected from each other": {
    gap: 3,
    lane: {
      ...of(0, [
        { units: [1], intervalMs: 1000 },
        { units: [2], intervalMs: 1000 },
      ]),
      answerMs: 5,
      registers: MANY,
    },
    spells: [4, 258].flatMap((register) => [1, 2].map((unit) => spell("silent", unit, register, 0, 60_000))),
  },
  "an exception of a gateway that came at once waited for time to search": {
    gap: 2.5,
    lane: of(0, [
      { units: [1, 2], intervalMs: 1000 },
      { units: [3, 4, 5], intervalMs: 5000 },
      { units: [6, 7, 8], intervalMs: 5000 },
      { units: [9, 10], intervalMs: 1000 },
      { units: [11, 12, 13], intervalMs: 1000 },
    ]),
    spells: [
      spell("silent", 12, undefined, 4300, 20_000),
      spell("silent", 6, 3, 3219, 200_000),
      spell("silent", 13, 2, 422, 200_000),
      spell("gateway", 13, 5, 7329, 200_000),
    ],
  },
  "the search for a refusal met what had no answer, and waited for each part of it in full": {
    gap: 1.5,
    lane: of(0, [WELL], "opcua"),
    spells: [spell("silent", 1, 0, 9895, 60_000), spell("silent", 1, 1001, 4979, 200_000), spell("missing", 1, 5, 9575, 20_000)],
  },
};

// The same plays each time; LANE_SEED=202 LANE_RUNS=350 looks at others.
// Immediates stay real: they are the turns in which what follows from a timer is done.
beforeEach(
  () =>
    void vi.useFakeTimers({
      now: 1_000_000_000_000,
      toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date", "performance"],
    }),
);
afterEach(() => void vi.useRealTimers());

describe("sources of one device, in a time of their own", () => {
  it.each(Object.entries(NAMED))("%s", { timeout: 60_000 }, async (what, play) => {
    const gap = await check(play, play.gap);
    console.log(`${what}: ${gap.toFixed(2)} of two intervals and a time-out`);
  });

  it.each(["modbus_tcp", "opcua"] as const)(
    "of %s: what is well is read, whatever else is wrong, and all is as before once all is well",
    {
      timeout: 300_000,
    },
    async (type) => {
      const gaps: number[] = [];
      await fc.assert(
        fc.asyncProperty(plays(type), async (play) => void gaps.push(await check(play))),
        { numRuns: Number(process.env["LANE_RUNS"] ?? 20), seed: Number(process.env["LANE_SEED"] ?? 1) },
      );
      gaps.sort((a, b) => a - b);
      const at = (part: number) => gaps[Math.floor(part * (gaps.length - 1))]?.toFixed(2);
      console.log(
        `${type}: longest gap of what was well, in parts of two intervals and a time-out: ${at(0.5)} (half), ${at(0.9)}, ${at(1)}`,
      );
    },
  );
});
