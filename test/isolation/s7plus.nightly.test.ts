import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { textsOf } from "../../src/model/testing/warnings.ts";
import { type Asked, programOf, S7PlusPlant, type S7PlusPlantOptions, symbolOf } from "./s7plus-rig.ts";
import { everyTwo, HEALED_WITHIN, INTERVAL_MS, playTroubles, TROUBLED_READOUTS, type Trouble as TroubleOf, wellAfter } from "./troubles.ts";
import type { Seen } from "./watched.ts";

/** In two blocks, and in two requests: one holds about 70. */
const VARIABLES = 120;
const TEST_MS = 90_000;
const [INVALID_LID, ACCESS_DENIED, NOT_ENOUGH_MEMORY, SERVICE_ABORTED, OUT_OF_RESOURCES] = [-255, -100, -4, -135, 37];
const [NO_ACCESS, FULL_ACCESS] = [4, 1];

type OnFinished = (work: () => Promise<void>) => void;
async function start(onFinished: OnFinished, options: Partial<S7PlusPlantOptions> = {}): Promise<S7PlusPlant> {
  const plant = await S7PlusPlant.start({ variables: VARIABLES, intervalMs: INTERVAL_MS, ...options });
  onFinished(() => plant.stop());
  return plant;
}

/** Values that are said to be good and belong to another variable. */
const wrong = ({ seen }: S7PlusPlant): number => seen.reduce((total, one) => total + one.wrong, 0);
const sum = (seen: readonly Seen<Asked>[], what: keyof Asked): number => seen.reduce((total, { asked }) => total + asked[what], 0);
const reasonOf = (plant: S7PlusPlant) => {
  const { state } = plant.report().status;
  return state.type === "ERROR" ? state.reason : undefined;
};

/** Reads of a readout where all is well from the beginning. */
let fresh = 0;
beforeAll(async () => {
  const plant = await S7PlusPlant.start({ variables: VARIABLES, intervalMs: INTERVAL_MS });
  await plant.until(() => plant.isWhole());
  await plant.readouts(2);
  fresh = plant.last?.asked.reads ?? 0;
  expect(fresh).toBe(2);
  await plant.stop();
}, TEST_MS);

describe.concurrent("a download of the program", () => {
  it(
    "that gives all variables other ids, back and forth and in the midst of a readout, costs a few readouts and no restart",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      for (const ids of ["shifted", "first", "shifted", "first"] as const) {
        plant.plc.download(undefined, { ids });
        expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
      }
      let isArmed = true;
      plant.odd.set("download in mid-read", ({ name }) => {
        if (name === "getMultiVariables" && isArmed) {
          isArmed = false;
          plant.plc.download(undefined, { ids: "shifted" });
        }
        return undefined;
      });
      await plant.until(() => !isArmed);
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
      const after = await plant.readouts(2);
      expect(after.map(({ asked }) => asked)).toEqual([
        { reads: fresh, explores: 0 },
        { reads: fresh, explores: 0 },
      ]);
      expect([plant.report().counters.connects, wrong(plant), plant.plc.violations]).toEqual([1, 0, []]);
    },
    TEST_MS,
  );

  it(
    "that comes while the session has no rights is looked up once it has them",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      plant.plc.download(undefined, { ids: "shifted" });
      plant.plc.setLevel(NO_ACCESS);
      await new Promise((done) => setTimeout(done, TROUBLED_READOUTS * INTERVAL_MS));
      plant.plc.setLevel(FULL_ACCESS);
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN + 1);
    },
    TEST_MS,
  );

  it(
    "that gives each variable the id of another brings no wrong value where the CPU checks names",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, { local: { check_symbols: true } });
      await plant.until(() => plant.isWhole());
      plant.plc.download(undefined, { ids: "turned" });
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
      await plant.readouts(2);
      expect([wrong(plant), plant.report().counters.connects]).toEqual([0, 1]);
    },
    TEST_MS,
  );

  it(
    "that gives each variable the id of another is noticed by its stamps within the time for that",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, { local: { program_check: 1 } });
      await plant.until(() => plant.isWhole());
      plant.plc.download(undefined, { ids: "turned" });
      await plant.until(() => !plant.isWhole());
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(Math.ceil(1000 / INTERVAL_MS) + HEALED_WITHIN);
      expect(plant.report().counters.connects).toBe(1);
    },
    TEST_MS,
  );

  it(
    "without one of the blocks costs its variables alone, until they are back",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, { local: { program_check: 1 } });
      await plant.until(() => plant.isWhole());
      const whole = programOf(VARIABLES);
      plant.plc.download({ blocks: whole.blocks?.slice(0, 1) ?? [] }, { ids: "shifted" });
      await plant.until(() => plant.last?.good === VARIABLES / 2);
      const later = await plant.readouts(TROUBLED_READOUTS);
      expect(later.map(({ good }) => good)).toEqual(later.map(() => VARIABLES / 2));
      expect(plant.last?.readout.readings.at(-1)).toMatchObject({ quality: "bad", fault: "not_found" });
      plant.plc.download(whole);
      await plant.readoutsUntilWhole();
      expect(wrong(plant)).toBe(0);
    },
    TEST_MS,
  );
});

describe.concurrent("a CPU that ends what is under way", () => {
  it.for([
    ["by the end of its sessions", (plant: S7PlusPlant) => plant.plc.endSessions()],
    ["by an event that says what is wrong", (plant: S7PlusPlant) => plant.plc.report("fatal")],
    ["by a reset", (plant: S7PlusPlant) => plant.plc.drop("rst")],
    ["by bytes that mean nothing", (plant: S7PlusPlant) => plant.plc.babble(Buffer.from("who is there?"))],
  ] as const)("%s, is read again in a session of its own", { timeout: TEST_MS }, async ([, end], { onTestFinished }) => {
    const plant = await start(onTestFinished);
    await plant.until(() => plant.isWhole());
    end(plant);
    expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
    await plant.readouts(2);
    expect([plant.last?.asked.reads, plant.plc.sessions(), wrong(plant)]).toEqual([fresh, 1, 0]);
    expect(plant.report().counters.connects).toBeLessThanOrEqual(2);
  });

  it(
    "by a restart, is read again when it is back, with another program too",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      plant.plc.download(undefined, { ids: "turned" });
      plant.plc.restart(600);
      await plant.until(() => plant.report().status.state.type === "ERROR");
      await plant.readoutsUntilWhole();
      await plant.readouts(2);
      expect([plant.last?.asked.reads, plant.plc.sessions(), wrong(plant)]).toEqual([fresh, 1, 0]);
    },
    TEST_MS,
  );

  it(
    "by more sessions than it has, is read as soon as one is free",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, { before: (plc) => Object.assign(plc, { maxSessions: 0 }) });
      await plant.until(() => plant.report().status.state.type === "ERROR");
      expect(plant.report().error?.detail).toMatch(/-113/);
      plant.plc.maxSessions = 1;
      await plant.until(() => plant.isWhole());
      expect(plant.plc.counts.created).toBe(1);
    },
    TEST_MS,
  );
});

describe.concurrent("limits that shrink", () => {
  it(
    "are followed in the session that is open, and kept in the next one for a while",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      Object.assign(plant.plc, { toldReadItems: 100, maxReadItems: 20 });
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
      await plant.readouts(2);
      const { reads } = plant.last?.asked ?? { reads: 0 };
      expect([reads >= VARIABLES / 20, reads <= VARIABLES / 10]).toEqual([true, true]);
      expect(plant.report().counters.connects).toBe(1);
      plant.plc.maxReadItems = 100;
      plant.plc.drop();
      await plant.readoutsUntilWhole();
      await plant.readouts(2);
      expect([plant.last?.asked.reads, plant.plc.violations]).toEqual([reads, []]);
    },
    TEST_MS,
  );

  it(
    "as the CPU says, hold from the next session on",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      plant.plc.maxReadItems = 30;
      plant.plc.drop();
      await plant.readoutsUntilWhole();
      await plant.readouts(2);
      expect(plant.last?.asked.reads).toBe(VARIABLES / 30);
    },
    TEST_MS,
  );
});

describe.concurrent("a password", () => {
  const locked = (password: string) => (plc: S7PlusPlant["plc"]) => Object.assign(plc, { level: NO_ACCESS, password });

  it.for(["legacy", "new"] as const)(
    "that is wrong, is tried no more often than the connection is, and works once it is right (%s)",
    { timeout: TEST_MS },
    async (legitimation, { onTestFinished }) => {
      const before = (plc: S7PlusPlant["plc"]) => {
        locked("other")(plc);
        plc.legitimation = legitimation;
        if (legitimation === "new") plc.device = "1;6ES7 511-1AK02-0AB0;V3.1";
      };
      const plant = await start(onTestFinished, { before, secrets: { password: "geheim" } });
      await plant.until(() => plant.report().status.state.type === "ERROR");
      expect(reasonOf(plant)).toMatchObject({ type: "S7PLUS_ERROR", category: "AUTHENTICATION" });
      await plant.until(() => plant.plc.counts.wrongPasswords > 1);
      expect(plant.plc.counts.wrongPasswords).toBeLessThanOrEqual(plant.plc.counts.accepted);
      // The readout that is under way is counted at its end.
      expect(plant.plc.counts.wrongPasswords).toBeLessThanOrEqual(plant.report().counters.readouts + 1);
      plant.plc.password = "geheim";
      await plant.until(() => plant.isWhole());
      await plant.readouts(1);
      expect([plant.plc.counts.logins, plant.plc.sessions(), plant.plc.violations]).toEqual([1, 1, []]);
      // No word of it anywhere.
      expect(JSON.stringify([plant.lines, plant.report()])).not.toContain("geheim");
    },
  );

  it(
    "that is changed while it is used, is an error of authentication until it is as before",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, { before: locked("geheim"), secrets: { password: "geheim" } });
      await plant.until(() => plant.isWhole());
      plant.plc.password = "other";
      plant.plc.delegitimate();
      await plant.until(() => plant.report().status.state.type === "ERROR");
      await plant.until(() => reasonOf(plant)?.type === "S7PLUS_ERROR");
      expect(reasonOf(plant)).toMatchObject({ category: "AUTHENTICATION" });
      plant.plc.password = "geheim";
      await plant.readoutsUntilWhole();
      expect(wrong(plant)).toBe(0);
    },
    TEST_MS,
  );

  it(
    "that is missing, is said to be",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, { before: locked("geheim") });
      await plant.until(() => plant.report().status.state.type === "ERROR");
      expect(reasonOf(plant)).toMatchObject({ type: "S7PLUS_ERROR", category: "AUTHENTICATION" });
      expect(plant.plc.counts.wrongPasswords).toBe(0);
      plant.plc.setLevel(FULL_ACCESS);
      await plant.readoutsUntilWhole();
    },
    TEST_MS,
  );
});

describe("variables that are denied", () => {
  it.for([20, 100])(
    "%i of 120 are faults of their own after a silence, and no missing log-in",
    { timeout: TEST_MS },
    async (denied, { onTestFinished }) => {
      const plant = await start(onTestFinished);
      const names = new Set(Array.from({ length: denied }, (_, i) => symbolOf(i)));
      plant.refusals.set("denied", (symbol) => (symbol !== undefined && names.has(symbol) ? ACCESS_DENIED : undefined));
      const isRead = () => plant.last?.good === VARIABLES - denied;
      await plant.until(isRead);
      plant.odd.set("silent", ({ name }) => (name === "getMultiVariables" ? { silent: true } : undefined));
      await plant.until(() => plant.report().status.state.type === "ERROR");
      plant.odd.clear();
      const from = plant.report().counters.readouts;
      await plant.until(() => plant.report().status.state.type === "OK");
      await plant.until(isRead);
      expect((plant.last?.number ?? 0) - from).toBeLessThanOrEqual(HEALED_WITHIN);
      expect(plant.lines.filter((line) => line.includes("log-in"))).toEqual([]);
    },
  );
});

describe("symbols that come slowly", () => {
  it(
    "are waited for over several readouts, with progress in status, and are not asked for again",
    async ({ onTestFinished }) => {
      const before = (plc: S7PlusPlant["plc"]) => {
        plc.explorePause = { bytes: 600, ms: 200 };
        plc.fragmentBytes = 600;
      };
      const plant = await start(onTestFinished, { before, local: { prepare_timeout: "1s" } });
      await plant.until(() => textsOf(plant.report().warnings).some((words) => words.startsWith("60 of 120 addresses are looked up")));
      await plant.until(() => plant.isWhole());
      const { lookUps } = plant;
      await plant.readouts(3);
      expect([plant.lookUps, sum(plant.seen.slice(-3), "reads")]).toEqual([lookUps, 3 * fresh]);
    },
    TEST_MS,
  );
});

type Trouble = TroubleOf<S7PlusPlant>;
type Odd = ReturnType<NonNullable<S7PlusPlant["plc"]["misbehave"]>>;
const odd = (name: string, what: Odd, of: string = "getMultiVariables"): Trouble => ({
  name,
  begin: (plant) => plant.odd.set(name, (request) => (request.name === of ? what : undefined)),
  end: (plant) => plant.odd.delete(name),
});
const refused = (name: string, code: number | "lost"): Trouble => ({
  name,
  begin: (plant) => [5, 50, 119].map((i) => plant.refusals.set(`${name} ${i}`, (symbol) => (symbol === symbolOf(i) ? code : undefined))),
  end: (plant) => [5, 50, 119].map((i) => plant.refusals.delete(`${name} ${i}`)),
});
const state = (name: string, bad: Partial<S7PlusPlant["plc"]>, drops = true): Trouble => {
  const kept = new WeakMap<S7PlusPlant, Partial<S7PlusPlant["plc"]>>();
  return {
    name,
    begin(plant) {
      kept.set(plant, Object.fromEntries(Object.keys(bad).map((key) => [key, plant.plc[key as keyof typeof plant.plc]])));
      Object.assign(plant.plc, bad);
      if (drops) plant.plc.drop();
    },
    end(plant) {
      Object.assign(plant.plc, kept.get(plant));
      if (drops) plant.plc.drop();
    },
  };
};
const TROUBLES: readonly Trouble[] = [
  odd("out of resources", { code: OUT_OF_RESOURCES }),
  { ...odd("no memory", { code: NOT_ENOUGH_MEMORY }), end: (plant) => [plant.odd.delete("no memory"), plant.plc.drop()] },
  odd("aborted", { code: SERVICE_ABORTED, error2: true }),
  odd("silent", { silent: true }),
  odd("ended", { endSession: true }),
  odd("cut answers", { cutAfter: 9 }),
  odd("bytes that mean nothing", { raw: Buffer.from("who is there?") }),
  odd("answers to another request", { stale: true }),
  odd("no exploring", { code: ACCESS_DENIED }, "explore"),
  refused("invalid ids", INVALID_LID),
  refused("denied items", ACCESS_DENIED),
  refused("lost items", "lost"),
  state("no TLS", { ssl: "no-tls" }),
  state("no free session", { maxSessions: 0 }),
  state("a few items", { maxReadItems: 9 }),
  state("small fragments", { fragmentBytes: 7, payloadBytes: 40 }, false),
  {
    name: "a download",
    begin: ({ plc }) => plc.download(undefined, { ids: "shifted" }),
    end: ({ plc }) => plc.download(undefined, { ids: "shifted" }),
  },
  {
    name: "no access",
    begin: ({ plc }) => plc.setLevel(NO_ACCESS),
    end: ({ plc }) => plc.setLevel(FULL_ACCESS),
  },
  {
    name: "a late network",
    begin({ proxy }) {
      proxy.delayMs = 50;
      proxy.fault = "delay";
    },
    end({ proxy }) {
      proxy.fault = "none";
    },
  },
];
/** Troubles whose effect holds for a minute and more: no memory for a request, no word on its size when a session began. */
const HOLDS_ON = ["no memory", "a few items", "silent"];
const readsAfter = (troubles: readonly Trouble[]): unknown =>
  troubles.some(({ name }) => HOLDS_ON.includes(name)) ? expect.toSatisfy((reads: number) => reads >= fresh) : fresh;
const SEVERAL = 15;
/** This many plants at once: each costs TLS handshakes. */
const AT_ONCE = 32;

describe("troubles at once", () => {
  it.for([
    ["every two", everyTwo(TROUBLES)],
    ["three to five", fc.sample(fc.subarray([...TROUBLES], { minLength: 3, maxLength: 5 }), SEVERAL)],
  ] as const)(
    "%s, leave no trace: all is read again, with the reads of a fresh start and without a wrong value",
    { timeout: TEST_MS },
    async ([, scenarios], { onTestFinished }) => {
      const play = async (troubles: (typeof scenarios)[number]) => {
        const plant = await start(onTestFinished);
        const outcome = await playTroubles(plant, troubles);
        await plant.stop();
        return outcome;
      };
      const outcomes: unknown[] = [];
      for (let at = 0; at < scenarios.length; at += AT_ONCE)
        outcomes.push(...(await Promise.all(scenarios.slice(at, at + AT_ONCE).map(play))));
      expect(outcomes).toEqual(scenarios.map((troubles) => wellAfter(troubles, { reads: readsAfter(troubles), explores: 0 })));
    },
  );
});
