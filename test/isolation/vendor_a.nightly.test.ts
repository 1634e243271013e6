import { beforeAll, describe, expect, it } from "vitest";
import { type CipStatus, CONNECTION_ERRORS, type Misbehaviour, STATUS } from "../../drivers/vendor_a/simulator.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import {
  HEALED_WITHIN,
  INTERVAL_MS,
  type Outcome,
  outcomesOf,
  scenariosOf,
  TROUBLED_READOUTS,
  type Trouble,
  wellAfter,
} from "./troubles.ts";
import { CipPlant, type CipPlantOptions, CONNECTION_BYTES, tagOf } from "./vendor-a-rig.ts";

const VARIABLES = 120;
const TEST_MS = 90_000;
/** A controller without a free connection is asked again every 30 s. */
const ASKED_AGAIN_MS = 40_000;
/** It is asked so often which program it has. */
const PROGRAM_CHECK_MS = 5000;
/** Above the time that answers are waited for. */
const TOO_LATE_MS = 400;

type OnFinished = (work: () => Promise<void>) => void;
async function start(onFinished: OnFinished, options: Partial<CipPlantOptions> = {}): Promise<CipPlant> {
  const plant = await CipPlant.start({ variables: VARIABLES, intervalMs: INTERVAL_MS, ...options });
  onFinished(() => plant.stop());
  return plant;
}

const refuseTag = (plant: CipPlant, at: number, status: CipStatus = STATUS.noSuchTag) =>
  plant.refusals.set(`variable ${at}`, ({ path }) => (path === tagOf(at) ? status : undefined));

/** Messages of a readout where all is well from the beginning. */
let fresh = 0;
beforeAll(async () => {
  const plant = await CipPlant.start({ variables: VARIABLES, intervalMs: INTERVAL_MS });
  await plant.until(() => plant.isWhole());
  await plant.readouts(2);
  fresh = plant.last?.asked ?? 0;
  // Each tag has 16 bytes of a request, and 12 of its reply.
  expect(fresh).toBe(Math.ceil((VARIABLES * 16) / CONNECTION_BYTES));
  await plant.stop();
}, TEST_MS);

/** The place of a tag in its packet: the first, the second, one in the middle, the last, and the first of the next. */
const PLACES = [0, 1, 15, 29, 30, 31, 60, 119];

describe.concurrent("a controller that refuses", () => {
  it.for(PLACES)("one tag, at variable %d of 120, loses that variable alone", { timeout: TEST_MS }, async (at, { onTestFinished }) => {
    const plant = await start(onTestFinished);
    await plant.until(() => plant.isWhole());
    refuseTag(plant, at);
    const from = plant.seen.length;
    await plant.until(() => plant.last?.good === VARIABLES - 1);
    const later = await plant.readouts(TROUBLED_READOUTS);
    for (const { good } of plant.seen.slice(from)) expect(good).toBeGreaterThanOrEqual(VARIABLES - 1);
    expect(plant.last?.readout.readings[at]).toMatchObject({ quality: "bad", fault: "not_found" });
    for (const { asked } of later) expect(asked).toBeLessThanOrEqual(fresh + 1);
    plant.refusals.clear();
    expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
    await plant.readouts(HEALED_WITHIN);
    expect(plant.last?.asked).toBe(fresh);
    expect(plant.wrong()).toEqual([]);
  });

  it.for<[string, CipStatus]>([
    ["state conflict", { general: 0x10 }],
    ["no resources", STATUS.resources],
    ["in use", { general: 0xff, extended: [0x2106] }],
  ])("one tag at this moment (%s), loses that variable alone", { timeout: TEST_MS }, async ([, status], { onTestFinished }) => {
    const plant = await start(onTestFinished);
    await plant.until(() => plant.isWhole());
    refuseTag(plant, 5, status);
    const from = plant.seen.length;
    await plant.readouts(TROUBLED_READOUTS);
    for (const { good, asked } of plant.seen.slice(from)) expect([good >= VARIABLES - 1, asked]).toEqual([true, fresh]);
    expect(plant.last?.readout.readings[5]).toMatchObject({ quality: "bad", detail: expect.stringMatching(/^Tag_005: status 0x/) });
    plant.refusals.clear();
    expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
    expect(plant.wrong()).toEqual([]);
  });

  it(
    "a tag in every packet costs no readout its other values",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      for (let at = 2; at < VARIABLES; at += 30) refuseTag(plant, at, STATUS.privilege);
      const from = plant.seen.length;
      await plant.until(() => plant.last?.good === VARIABLES - 4);
      await plant.readouts(2);
      for (const { good } of plant.seen.slice(from)) expect(good).toBeGreaterThanOrEqual(VARIABLES - 4);
      expect(plant.last?.readout.readings[32]).toMatchObject({ quality: "bad", fault: "access_denied" });
      plant.refusals.clear();
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
    },
    TEST_MS,
  );

  it(
    "a connection because all are taken is read without one, and over one when the controller is asked again",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, {
        intervalMs: 1000,
        before: ({ manager }) => Object.assign(manager.grants, { maxConnections: 0 }),
      });
      await plant.until(() => plant.isWhole());
      expect(textsOf(plant.report().warnings)).toEqual([expect.stringMatching(/0x01\/0x0113 \(no connection left/)]);
      expect([plant.device.counts.connected, plant.device.violations]).toEqual([0, []]);
      plant.device.manager.grants.maxConnections = 1;
      await plant.until(() => plant.device.manager.size === 1, ASKED_AGAIN_MS);
      await plant.readouts(HEALED_WITHIN);
      expect([plant.isWhole(), plant.last?.asked, plant.report().warnings]).toEqual([true, fresh, []]);
    },
    TEST_MS,
  );
});

describe.concurrent("a connection", () => {
  it(
    "that is lost silently is opened again, and no value is another one's",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      plant.device.loseConnections();
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
      await plant.readouts(1);
      expect(plant.last?.asked).toBe(fresh);
      expect(plant.device.manager.size).toBe(1);
      expect(plant.wrong()).toEqual([]);
    },
    TEST_MS,
  );

  it(
    "whose answers come too late gives each value to its own tag or to none",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      let messages = 0;
      plant.odd.set("late", () => ({ delayMs: [20, TOO_LATE_MS, 40, 310][messages++ % 4] ?? 0 }));
      await plant.until(() => messages > 30);
      plant.odd.clear();
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN + 1);
      await plant.readouts(HEALED_WITHIN);
      expect(plant.last?.asked).toBe(fresh);
      expect(plant.wrong()).toEqual([]);
    },
    TEST_MS,
  );

  it.for(["0109", "0109 with size", "0127", "08"] as const)(
    "of a size that shrinks (%s) is asked for less, and for more when that is back",
    { timeout: TEST_MS },
    async (sizeRefusal, { onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      Object.assign(plant.device.manager.grants, { largeBytes: 300, smallBytes: 300, sizeRefusal });
      plant.device.drop();
      await plant.readoutsUntilWhole();
      await plant.readouts(2);
      expect(plant.last?.asked).toBeGreaterThan(fresh);
      Object.assign(plant.device.manager.grants, { largeBytes: CONNECTION_BYTES, smallBytes: 504 });
      plant.device.drop();
      await plant.readoutsUntilWhole();
      await plant.readouts(2);
      expect(plant.last?.asked).toBe(fresh);
      expect(plant.device.violations).toEqual([]);
    },
  );

  it(
    "is closed when the source is stopped, also in mid-read",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      plant.odd.set("slow", () => ({ delayMs: 100 }));
      await plant.readouts(1);
      await plant.stopReading();
      await plant.until(() => plant.device.connections() === 0);
      expect([plant.device.manager.counts.closes, plant.device.leftOpen]).toEqual([plant.device.manager.counts.opens, 0]);
    },
    TEST_MS,
  );
});

describe.concurrent("a download", () => {
  it(
    "in mid-read gives no value of another tag; one that has another type is that variable's fault",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      let messages = 0;
      plant.odd.set("download", () => {
        if (++messages % 3 === 2)
          plant.device.download((program) => {
            program.remove(tagOf(5));
            program.tag(tagOf(5), messages > 10 ? "DINT" : "REAL", 5);
          });
        return undefined;
      });
      await plant.until(() => plant.last?.readout.readings[5]?.quality === "bad");
      expect(plant.last?.readout.readings[5]).toMatchObject({ fault: "type_mismatch" });
      await plant.until(() => messages > 20);
      plant.odd.clear();
      const inTime = PROGRAM_CHECK_MS / INTERVAL_MS + HEALED_WITHIN;
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(inTime);
      await plant.readouts(HEALED_WITHIN);
      expect(plant.last?.asked).toBe(fresh);
      expect(plant.wrong()).toEqual([]);
    },
    TEST_MS,
  );
});

const odd = (name: string, what: Misbehaviour): Trouble<CipPlant> => ({
  name,
  begin: (plant) => plant.odd.set(name, () => what),
  end: (plant) => plant.odd.delete(name),
});
const grants = (name: string, less: Partial<CipPlant["device"]["manager"]["grants"]>): Trouble<CipPlant> => {
  const usual = { maxConnections: 32, largeBytes: CONNECTION_BYTES, fullStatus: CONNECTION_ERRORS.noMore };
  return {
    name,
    begin({ device }) {
      Object.assign(device.manager.grants, less);
      device.drop();
    },
    end({ device }) {
      Object.assign(device.manager.grants, Object.fromEntries(Object.keys(less).map((key) => [key, usual[key as keyof typeof usual]])));
      device.drop();
    },
  };
};
const TROUBLES: readonly Trouble<CipPlant>[] = [
  odd("short of resources", { status: STATUS.resources }),
  odd("silent", { silent: true }),
  odd("resets", { ends: "rst" }),
  odd("cut answers", { cutAfter: 40 }),
  odd("late answers", { delayMs: TOO_LATE_MS }),
  odd("an encapsulation error", { encapsulation: 3 }),
  {
    name: "missing tags",
    begin: (plant) => [5, 50, 119].map((at) => refuseTag(plant, at)),
    end: (plant) => plant.refusals.clear(),
  },
  {
    name: "a download under way",
    begin: ({ device }) => Object.assign(device.cpu, { isDownloading: true }),
    end: ({ device }) => Object.assign(device.cpu, { isDownloading: false }),
  },
  { name: "a lost connection", begin: ({ device }) => device.loseConnections(), end: ({ device }) => device.loseConnections() },
  { name: "a lost session", begin: ({ device }) => device.loseSessions(), end: () => {} },
  grants("smaller connections", { largeBytes: 200 }),
  grants("no free connection", { maxConnections: 0 }),
];
const SEVERAL = 20;

describe.concurrent("every second answer", () => {
  it.for<[string, Misbehaviour]>([
    ["is cut", { cutAfter: 40 }],
    ["lacks its last bytes", { change: (reply) => reply.subarray(0, -3) }],
    ["has the length of another", { change: (reply) => reply.subarray(0, reply.length >> 1) }],
    ["does not come", { silent: true }],
    ["is a reset", { ends: "rst" }],
    ["is an encapsulation error", { encapsulation: 3, hangUp: true }],
    ["says that the connection is lost", { status: { general: 0x07 } }],
  ])(
    "%s: whatever was isolated meanwhile comes back, and nothing wrong is read",
    { timeout: TEST_MS },
    async ([, what], { onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      let messages = 0;
      plant.odd.set("second", () => (++messages % 2 === 0 ? what : undefined));
      await new Promise((done) => setTimeout(done, TROUBLED_READOUTS * INTERVAL_MS));
      plant.odd.clear();
      // What had no answer is asked in a part of the time alone: seconds, not readouts.
      await plant.until(() => plant.isWhole());
      await plant.readouts(HEALED_WITHIN);
      expect(plant.last?.asked).toBe(fresh);
      expect([plant.wrong(), plant.device.violations]).toEqual([[], []]);
    },
  );
});

describe("troubles at once", () => {
  it.for(scenariosOf(TROUBLES, SEVERAL))(
    "%s, leave no trace: all is read again, with the messages of a fresh start",
    { timeout: TEST_MS },
    async ([, scenarios], { onTestFinished }) => {
      const look = (plant: CipPlant, { of }: Outcome) => expect(plant.wrong(), of).toEqual([]);
      const outcomes = await outcomesOf(scenarios, () => start(onTestFinished), look);
      expect(outcomes).toEqual(scenarios.map((troubles) => wellAfter(troubles, fresh)));
    },
  );
});
