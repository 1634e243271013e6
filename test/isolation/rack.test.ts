import { beforeAll, describe, expect, it } from "vitest";
import type { AnyDriver } from "../../drivers/driver.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import rack from "../support/rack/driver.ts";
import type { Rack } from "../support/rack/simulator.ts";
import { RackPlant, type RackPlantOptions, symbolOf } from "./rack-rig.ts";

const SYMBOLS = 60;
const INTERVAL_MS = 200;
/** Readouts after what was wrong is well again. */
const HEALED_WITHIN = 3;
const MARGIN = 3;
const TROUBLED_READOUTS = 6;
const TEST_MS = 90_000;
/** Longer than names take. */
const PATIENT = { answer_timeout: "3s" };

const slowNames =
  (ms: number) =>
  (rack: Rack): void => {
    rack.namesDelayMs = ms;
  };
const lock = (rack: Rack): void => {
  rack.isLocked = true;
};

/** Ends its connection where the signal aborts a look-up: a late answer over a stream would be taken for the next one. */
const closedByAbort: AnyDriver = {
  ...rack,
  async connect(input, ctx) {
    const session = await rack.connect(input, ctx);
    return {
      ...session,
      async *prepare(points, prepareCtx) {
        try {
          yield* session.prepare?.(points, prepareCtx) ?? [];
        } catch (error) {
          if (prepareCtx.signal.aborted) await session.close();
          throw error;
        }
      },
    };
  },
};

type OnFinished = (work: () => Promise<void>) => void;
async function start(onFinished: OnFinished, options: Partial<RackPlantOptions> = {}): Promise<RackPlant> {
  const plant = await RackPlant.start({ symbols: SYMBOLS, intervalMs: INTERVAL_MS, ...options });
  onFinished(() => plant.stop());
  return plant;
}

const kindsOf = (plant: RackPlant) => plant.last?.asked.map(({ kind }) => kind) ?? [];
/** How many names were asked for. */
const namesOf = ({ rack }: RackPlant) => rack.requests.filter(({ kind }) => kind === "names").reduce((sum, { count }) => sum + count, 0);

/** Requests of a readout where all is well from the beginning. */
let fresh = 0;
beforeAll(async () => {
  const plant = await RackPlant.start({ symbols: SYMBOLS, intervalMs: INTERVAL_MS });
  await plant.until(() => plant.isWhole());
  await plant.readouts(2);
  expect(new Set(kindsOf(plant))).toEqual(new Set(["read"]));
  fresh = kindsOf(plant).length;
  await plant.stop();
}, TEST_MS);

describe.concurrent("a device whose symbols have to be looked up", () => {
  it(
    "gets ready although that takes 15 s, says how far it is, and no readout fails over it",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, { symbols: 150, rack: { namesPerPage: 3 }, before: slowNames(300), local: PATIENT });
      await plant.until(() => textsOf(plant.report().warnings).some((words) => /^[1-9]\d* of 150 addresses are looked up/.test(words)));
      expect(plant.report().status.state.type).toBe("UNKNOWN");
      await plant.until(() => plant.isWhole(), 15_000 * MARGIN);
      expect(plant.report()).toMatchObject({ status: { state: { type: "OK" } }, counters: { failed_readouts: 0, connects: 1 } });
      expect(textsOf(plant.report().warnings)).toEqual([]);
    },
    TEST_MS,
  );

  it(
    "is read as far as it is looked up where one readout does not suffice, and goes on in the next ones",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, { local: { ...PATIENT, prepare_timeout: "500ms" }, before: slowNames(150) });
      await plant.until(() => plant.isWhole());
      const goods = plant.seen.map(({ good }) => good);
      expect(goods[0], "good values of the first readout").toBeGreaterThan(0);
      expect(goods).toEqual([...goods].sort((a, b) => a - b));
      expect(goods.length).toBeGreaterThan(2);
      expect(plant.report()).toMatchObject({ status: { state: { type: "OK" } }, counters: { failed_readouts: 0, connects: 1 } });
      const waiting = plant.seen[0]?.readout.readings.find((reading) => reading?.quality === "bad");
      expect(waiting).toMatchObject({ fault: "no_answer", detail: expect.stringContaining(`of ${SYMBOLS} are known`) });
      // A page that was under way when the time was up is asked for again.
      expect(namesOf(plant)).toBeLessThanOrEqual(SYMBOLS + 6 * goods.length);
    },
    TEST_MS,
  );

  it(
    "keeps what is looked up over a lost connection",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, { local: { ...PATIENT, prepare_timeout: "500ms" }, before: slowNames(150) });
      await plant.until(() => (plant.last?.good ?? 0) > 0);
      const { connects } = plant.report().counters;
      await plant.proxy.misbehave("gone");
      await plant.until(() => plant.report().status.state.type === "ERROR");
      expect(namesOf(plant)).toBeLessThan(SYMBOLS);
      await plant.proxy.misbehave("none");
      await plant.readoutsUntilWhole();
      expect(namesOf(plant)).toBeLessThan(2 * SYMBOLS);
      expect(plant.report().counters.connects).toBeGreaterThan(connects);
    },
    TEST_MS,
  );

  it(
    "is read as far as it is looked up where the connection ends with the time for it, as streams do",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, {
        driver: closedByAbort,
        local: { ...PATIENT, prepare_timeout: "500ms" },
        before: slowNames(150),
      });
      await plant.until(() => plant.isWhole());
      const goods = plant.seen.map(({ good }) => good);
      expect(goods[0], "good values of the first readout").toBeGreaterThan(0);
      expect(goods.length).toBeGreaterThan(2);
      const { counters } = plant.report();
      expect(counters.failed_readouts).toBe(0);
      expect(counters.connects).toBeLessThanOrEqual(counters.readouts + 1);
      expect(namesOf(plant)).toBeLessThanOrEqual(SYMBOLS + 6 * goods.length);
    },
    TEST_MS,
  );

  it.for([0, 20, SYMBOLS - 1])(
    "loses one variable to a symbol whose look-up has no answer, symbol %d of 60",
    { timeout: TEST_MS },
    async (at, { onTestFinished }) => {
      const plant = await start(onTestFinished, { before: ({ mute }) => void mute.add(symbolOf(at)) });
      await plant.until(() => plant.last?.good === SYMBOLS - 1);
      expect(plant.report().status.state.type).toBe("OK");
      plant.rack.mute.clear();
      await plant.until(() => plant.isWhole());
    },
  );

  it(
    "is read again after a download, without a new connection, with the values of the new program",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      const { connects } = plant.report().counters;
      for (let program = 0; program < 3; program++) {
        plant.download();
        expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
      }
      expect(plant.report().counters.connects).toBe(connects);
      await plant.readouts(1);
      expect(kindsOf(plant)).toHaveLength(fresh);
    },
    TEST_MS,
  );

  it(
    "is read again after a download that falls into the look-up",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, { local: { ...PATIENT, prepare_timeout: "500ms" }, before: slowNames(150) });
      await plant.until(() => namesOf(plant) >= SYMBOLS / 2);
      plant.download();
      plant.rack.namesDelayMs = 0;
      // The readout in which it falls ends first.
      await plant.readouts(1);
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
    },
    TEST_MS,
  );

  it(
    "costs one variable a symbol that the program lacks, and has it within a download",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, { before: ({ unknown }) => void unknown.add(symbolOf(7)) });
      await plant.until(() => plant.last?.good === SYMBOLS - 1);
      expect(plant.last?.readout.readings[7]).toMatchObject({ fault: "not_found", detail: expect.stringContaining(symbolOf(7)) });
      plant.rack.unknown.clear();
      plant.download();
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
    },
    TEST_MS,
  );
});

describe.concurrent("a device that refuses", () => {
  it(
    "one item of many loses that item's one variable",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      plant.rack.broken.add(symbolOf(21));
      await plant.until(() => plant.last?.good === SYMBOLS - 1);
      const later = await plant.readouts(TROUBLED_READOUTS);
      expect(later.map(({ good }) => good)).toEqual(later.map(() => SYMBOLS - 1));
      expect(plant.last?.readout.readings[21]).toMatchObject({ quality: "bad", fault: "not_found" });
      // One request looks whether it is well again.
      for (const { asked } of later) expect(asked.length).toBeLessThanOrEqual(fresh + 2);
      plant.rack.broken.clear();
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
      await plant.readouts(HEALED_WITHIN);
      expect(kindsOf(plant)).toHaveLength(fresh);
    },
    TEST_MS,
  );

  it.for(["once it is read", "from the beginning"])(
    "everything, %s, costs one request a readout and says one sentence",
    { timeout: TEST_MS },
    async (when, { onTestFinished }) => {
      const plant = await start(onTestFinished, when === "from the beginning" ? { before: lock } : {});
      if (when === "once it is read") await plant.until(() => plant.isWhole());
      lock(plant.rack);
      await plant.until(() => plant.report().status.state.type === "ERROR");
      await plant.readouts(2);
      const later = await plant.readouts(TROUBLED_READOUTS);
      expect(later.map(({ asked }) => asked.length)).toEqual(later.map(() => 1));
      expect(plant.report().error?.detail).toContain("the rack is locked");
      expect(plant.lines, plant.lines.join("\n")).toHaveLength(1);
      expect(textsOf(plant.report().warnings).filter((words) => !/are looked up/.test(words))).toEqual([]);
      expect(new Set(plant.last?.readout.readings.map((reading) => JSON.stringify(reading))).size).toBe(1);
      plant.rack.isLocked = false;
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
      await plant.readouts(1);
      expect(kindsOf(plant)).toHaveLength(fresh);
    },
  );

  it(
    "requests of the size that it promised is asked for less, over connections",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, { rack: { maxItems: 8, takesItems: 2 } });
      await plant.until(() => plant.isWhole());
      await plant.readouts(1);
      expect(textsOf(plant.report().warnings)).toEqual([expect.stringContaining("takes 2 items in one request")]);
      await plant.proxy.misbehave("gone");
      await plant.until(() => plant.report().status.state.type === "ERROR");
      const from = plant.rack.requests.length;
      await plant.proxy.misbehave("none");
      await plant.readoutsUntilWhole();
      const reads = plant.rack.requests.slice(from).filter(({ kind }) => kind === "read");
      expect(reads.length).toBeGreaterThan(0);
      // The rack counts no items of a request that it refuses.
      expect(reads.filter(({ count }) => count === 0)).toEqual([]);
    },
    TEST_MS,
  );
});

interface Trouble {
  readonly name: string;
  begin(plant: RackPlant): unknown;
  end(plant: RackPlant): unknown;
}
type Switch = "isLocked" | "isBusy" | "isSilent";
const switched = (name: string, what: Switch): Trouble => ({
  name,
  begin({ rack }) {
    rack[what] = true;
  },
  end({ rack }) {
    rack[what] = false;
  },
});

const TROUBLES: readonly Trouble[] = [
  { name: "another program", begin: (plant) => plant.download(), end: (plant) => plant.download() },
  switched("locked", "isLocked"),
  switched("busy", "isBusy"),
  switched("silent", "isSilent"),
  {
    name: "missing words",
    begin: ({ rack: { broken } }) => broken.add(symbolOf(5)).add(symbolOf(40)),
    end: ({ rack }) => rack.broken.clear(),
  },
  {
    name: "protected words",
    begin: ({ rack }) => rack.protectedSymbols.add(symbolOf(12)),
    end: ({ rack }) => rack.protectedSymbols.clear(),
  },
  { name: "a rough network", begin: ({ proxy }) => proxy.misbehave("shuffled"), end: ({ proxy }) => proxy.misbehave("none") },
  { name: "no network", begin: ({ proxy }) => proxy.misbehave("gone"), end: ({ proxy }) => proxy.misbehave("none") },
];
const PAIRS = TROUBLES.flatMap((first, i) => TROUBLES.slice(i + 1).map((second) => [first, second] as const)).filter(
  // Of two of the network's the proxy has one.
  ([{ name: first }, { name: second }]) => !(first.endsWith("network") && second.endsWith("network")),
);

describe("two troubles at once", () => {
  it(
    "leave nothing behind: all is read within 3 readouts after them, with the requests of a fresh start",
    async ({ onTestFinished }) => {
      const outcomes = await Promise.all(
        PAIRS.map(async ([first, second]) => {
          const plant = await start(onTestFinished);
          await plant.until(() => plant.isWhole());
          await first.begin(plant);
          await second.begin(plant);
          await new Promise((done) => setTimeout(done, TROUBLED_READOUTS * INTERVAL_MS));
          await first.end(plant);
          await second.end(plant);
          const took = await plant.readoutsUntilWhole();
          const after = await plant.readouts(HEALED_WITHIN);
          const of = `${first.name} and ${second.name}`;
          // One readout may have begun before they ended.
          return { of, took: took <= HEALED_WITHIN + 1 ? "in time" : `${took} readouts`, asked: after.at(-1)?.asked.length };
        }),
      );
      expect(outcomes).toEqual(PAIRS.map(([first, second]) => ({ of: `${first.name} and ${second.name}`, took: "in time", asked: fresh })));
    },
    TEST_MS,
  );
});
