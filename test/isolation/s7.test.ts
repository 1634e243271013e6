import { beforeAll, describe, expect, it } from "vitest";
import { JOB_ERRORS } from "../../drivers/s7/simulator.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import { holds, S7Plant, type S7PlantOptions } from "./s7-rig.ts";
import {
  HEALED_WITHIN,
  INTERVAL_MS,
  lateNetwork,
  outcomesOf,
  scenariosOf,
  TROUBLED_READOUTS,
  type Trouble,
  wellAfter,
} from "./troubles.ts";

/** In 30 ranges of four words: two jobs of 19 and 11 ranges at messages of 240 bytes. */
const VARIABLES = 120;
const TEST_MS = 90_000;
const OUT_OF_RANGE = 5;

type OnFinished = (work: () => Promise<void>) => void;
async function start(onFinished: OnFinished, options: Partial<S7PlantOptions> = {}): Promise<S7Plant> {
  const plant = await S7Plant.start({ variables: VARIABLES, intervalMs: INTERVAL_MS, ...options });
  onFinished(() => plant.stop());
  return plant;
}

/** Whatever holds this variable is refused. */
const lack = (plant: S7Plant, at: number) => plant.refusals.set(`variable ${at}`, (item) => (holds(item, at) ? OUT_OF_RANGE : undefined));

/** Jobs of a readout where all is well from the beginning. */
let fresh = 0;
beforeAll(async () => {
  const plant = await S7Plant.start({ variables: VARIABLES, intervalMs: INTERVAL_MS });
  await plant.until(() => plant.isWhole());
  await plant.readouts(2);
  fresh = plant.last?.asked ?? 0;
  expect(fresh).toBe(2);
  await plant.stop();
}, TEST_MS);

describe.concurrent("a controller that refuses", () => {
  it.for([0, 1, 3, 37, 75, 76, 119])(
    "one range, at variable %d of 120, loses that variable alone",
    { timeout: TEST_MS },
    async (at, { onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      lack(plant, at);
      await plant.until(() => plant.last?.good === VARIABLES - 1);
      const later = await plant.readouts(TROUBLED_READOUTS);
      expect(later.map(({ good }) => good)).toEqual(later.map(() => VARIABLES - 1));
      expect(plant.last?.readout.readings[at]).toMatchObject({ quality: "bad", fault: "out_of_range" });
      for (const { asked } of later) expect(asked).toBeLessThanOrEqual(fresh + 2);
      plant.refusals.clear();
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
      await plant.readouts(HEALED_WITHIN);
      expect(plant.last?.asked).toBe(fresh);
    },
  );

  it(
    "a range in every job costs no readout its other values",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      for (let at = 2; at < VARIABLES; at += 40) lack(plant, at);
      const from = plant.seen.length;
      await plant.until(() => plant.last?.good === VARIABLES - 3);
      // Only what shares a range with one of the three waits until it is found.
      for (const { good } of plant.seen.slice(from)) expect(good).toBeGreaterThanOrEqual(VARIABLES - 3 * 4);
      plant.refusals.clear();
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
    },
    TEST_MS,
  );

  it.for(["once it is read", "from the beginning"])(
    "everything (PUT/GET is not permitted), %s, costs one job a readout and says one sentence",
    { timeout: TEST_MS },
    async (when, { onTestFinished }) => {
      const forbid = (plc: S7Plant["plc"]) => {
        plc.readError = JOB_ERRORS.serviceForbidden;
      };
      const plant = await start(onTestFinished, when === "from the beginning" ? { before: forbid } : {});
      if (when === "once it is read") await plant.until(() => plant.isWhole());
      forbid(plant.plc);
      await plant.until(() => plant.report().status.state.type === "ERROR");
      await plant.readouts(2);
      const later = await plant.readouts(TROUBLED_READOUTS);
      expect(later.map(({ asked }) => asked)).toEqual(later.map(() => 1));
      expect(plant.report().error?.detail).toContain("permit access with PUT/GET");
      expect(plant.lines, plant.lines.join("\n")).toHaveLength(1);
      expect(new Set(plant.last?.readout.readings.map((reading) => JSON.stringify(reading))).size).toBe(1);
      expect(plant.report().counters.connects).toBe(1);
      plant.plc.readError = undefined;
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
      await plant.readouts(1);
      expect(plant.last?.asked).toBe(fresh);
    },
  );

  it(
    "a connection because all are taken is read as soon as one is free",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, { before: ({ slots }) => Object.assign(slots, { op: 0 }) });
      await plant.until(() => plant.report().status.state.type === "ERROR");
      expect(plant.report().error?.detail).toMatch(/all of its connections of the type op are taken/);
      expect(plant.plc.counts.jobs).toBe(0);
      delete plant.plc.slots.op;
      await plant.until(() => plant.isWhole());
      expect(plant.plc.counts.setups).toBe(1);
    },
    TEST_MS,
  );
});

describe.concurrent("a controller that takes less", () => {
  it(
    "after a reconnect is planned by its new size, and by the old one when that is back",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      plant.plc.pduBytes = 112;
      plant.plc.drop();
      await plant.readoutsUntilWhole();
      await plant.readouts(2);
      expect(plant.last?.asked).toBe(Math.ceil(30 / 8));
      plant.plc.pduBytes = 240;
      plant.plc.drop();
      await plant.readoutsUntilWhole();
      await plant.readouts(2);
      expect(plant.last?.asked).toBe(fresh);
      expect(plant.plc.violations).toEqual([]);
    },
    TEST_MS,
  );

  it.for(["cut", "refuse"] as const)(
    "ranges than there are in a job is asked for as many, over connections (it %ss more)",
    { timeout: TEST_MS },
    async (overItems, { onTestFinished }) => {
      const plant = await start(onTestFinished, { before: (plc) => void Object.assign(plc, { maxItems: 4, overItems }) });
      await plant.until(() => plant.isWhole());
      await plant.readouts(2);
      expect(plant.last?.asked).toBe(Math.ceil(30 / 4));
      expect(textsOf(plant.report().warnings)).toEqual([expect.stringMatching(/answers 4 ranges of one job/)]);
      plant.plc.drop();
      await plant.readoutsUntilWhole();
      await plant.readouts(2);
      expect(plant.plc.lastJobs.slice(-8).every(({ items }) => items.length <= 4)).toBe(true);
    },
  );
});

const odd = (name: string, what: ReturnType<NonNullable<S7Plant["plc"]["misbehave"]>>): Trouble<S7Plant> => ({
  name,
  begin: (plant) => plant.odd.set(name, () => what),
  end: (plant) => plant.odd.delete(name),
});
const TROUBLES: readonly Trouble<S7Plant>[] = [
  odd("PUT/GET forbidden", { error: JOB_ERRORS.serviceForbidden }),
  odd("busy", { error: JOB_ERRORS.shortOfResources }),
  odd("silent", { silent: true }),
  odd("resets", { hangUp: "rst" }),
  {
    name: "missing ranges",
    begin: (plant) => [5, 50, 119].map((at) => lack(plant, at)),
    end: (plant) => plant.refusals.clear(),
  },
  {
    name: "a protected block",
    begin: ({ plc }) => plc.memory.refused.set("DB1", 3),
    end: ({ plc }) => plc.memory.refused.delete("DB1"),
  },
  {
    name: "smaller messages",
    begin({ plc }) {
      plc.pduBytes = 112;
      plc.drop();
    },
    end({ plc }) {
      plc.pduBytes = 240;
      plc.drop();
    },
  },
  {
    name: "no free connection",
    begin({ plc }) {
      plc.slots.op = 0;
      plc.drop();
    },
    end({ plc }) {
      delete plc.slots.op;
    },
  },
  {
    name: "answers in pieces",
    begin: (plant) => Object.assign(plant.plc, { fragmentBytes: 3 }),
    end: (plant) => Object.assign(plant.plc, { fragmentBytes: 500 }),
  },
  lateNetwork(100),
];
const SEVERAL = 20;

describe("troubles at once", () => {
  it.for(scenariosOf(TROUBLES, SEVERAL))(
    "%s, leave no trace: all is read again, with the jobs of a fresh start",
    { timeout: TEST_MS },
    async ([, scenarios], { onTestFinished }) => {
      expect(await outcomesOf(scenarios, () => start(onTestFinished))).toEqual(scenarios.map((troubles) => wellAfter(troubles, fresh)));
    },
  );
});
