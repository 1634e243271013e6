import { describe, expect, it } from "vitest";
import { GatewayError, type RequestErrorCode } from "../../gateway/errors.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import { type GatewayAsked, GatewayPlant, type GatewayPlantOptions } from "./gateway-rig.ts";
import {
  HEALED_WITHIN,
  INTERVAL_MS,
  lateNetwork,
  outcomesOf,
  scenariosOf,
  TROUBLED_READOUTS,
  type Trouble as TroubleOf,
  wellAfter,
} from "./troubles.ts";

const VARIABLES = 120;
/** In a request; a readout has three. */
const MAX_ITEMS = 40;
const FRESH = { reads: VARIABLES / MAX_ITEMS, resolves: 0 };
const TEST_MS = 90_000;
const SOME = [3, 50, 119];

type OnFinished = (work: () => Promise<void>) => void;
async function start(onFinished: OnFinished, options: Partial<GatewayPlantOptions> = {}): Promise<GatewayPlant> {
  const plant = await GatewayPlant.start({ variables: VARIABLES, intervalMs: INTERVAL_MS, ...options, local: { max_items: MAX_ITEMS } });
  onFinished(() => plant.stop());
  return plant;
}

const reasonOf = (plant: GatewayPlant) => {
  const { state } = plant.report().status;
  return state.type === "ERROR" ? state.reason.type : state.type;
};

describe.concurrent("a gateway", () => {
  it("gives types where the configuration has none, and is asked in the fewest requests", { timeout: TEST_MS }, async ({
    onTestFinished,
  }) => {
    const plant = await start(onTestFinished);
    await plant.until(() => plant.isWhole());
    const later = await plant.readouts(2);
    expect(later.map(({ asked }) => asked)).toEqual([FRESH, FRESH]);
    expect(plant.report().counters.connects).toBe(1);
  });

  it("loses what it refuses of items alone, by look-up, by read and by quality", { timeout: TEST_MS }, async ({ onTestFinished }) => {
    const plant = await start(onTestFinished, { type: "float64" });
    await plant.until(() => plant.isWhole());
    const [one, two, three] = SOME.map((i) => plant.items[i]);
    if (!one || !two || !three) throw new Error("there are too few items");
    one.error = { error: "device_error", message: "", native: "4820" };
    two.quality = 0x18;
    three.quality = 0x44;
    plant.download();
    await plant.until(() => plant.last?.good === VARIABLES - 3);
    const later = await plant.readouts(TROUBLED_READOUTS);
    expect(later.map(({ good }) => good)).toEqual(later.map(() => VARIABLES - 3));
    expect(SOME.map((i) => plant.last?.readout.readings[i])).toMatchObject([
      { quality: "bad", fault: "device_error" },
      { quality: "bad", fault: "no_answer" },
      { quality: "uncertain", value: 119 / 4 },
    ]);
    expect(textsOf(plant.report().warnings)).toContainEqual(
      expect.stringMatching(/^OPC quality 0x0044 \(uncertain, last usable value\): Line 2\.Cell_119$/),
    );
    delete one.error;
    for (const item of [two, three]) delete item.quality;
    expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
    expect(textsOf(plant.report().warnings)).toEqual([]);
    expect(plant.report().counters.connects).toBe(1);
  });

  it("has a server that is lost, and hangs, behind it: told from a gateway that is gone", { timeout: TEST_MS }, async ({
    onTestFinished,
  }) => {
    const plant = await start(onTestFinished);
    await plant.until(() => plant.isWhole());
    plant.odd.set("lost", () => new GatewayError("server_unavailable", "lost", { native: "0x800706BA" }));
    await plant.until(() => reasonOf(plant) === "VENDOR_GATEWAY_ERROR");
    expect(plant.report().error?.detail).toMatch(/server_unavailable, 0x800706BA: "lost"; the gateway itself is well/);
    plant.odd.set("lost", (request) => (request === "open" ? undefined : "silent"));
    await plant.until(() => plant.report().error?.detail?.includes("server_timeout") === true);
    expect(reasonOf(plant)).toBe("VENDOR_GATEWAY_ERROR");
    await plant.switchOff();
    await plant.until(() => reasonOf(plant) !== "VENDOR_GATEWAY_ERROR");
    expect(["CONNECTION_REFUSED", "CONNECTION_RESET", "CONNECTION_CLOSED"]).toContain(reasonOf(plant));
    plant.odd.clear();
    await plant.switchOn();
    await plant.readoutsUntilWhole();
    const after = await plant.readouts(2);
    expect(after.at(-1)?.asked).toEqual(FRESH);
  });

  it.for([3, 119])(
    "refuses the requests that hold item %i and asks for a pause: the others are read at each interval",
    {
      timeout: TEST_MS,
    },
    async (at, { onTestFinished }) => {
      const plant = await start(onTestFinished);
      await plant.until(() => plant.isWhole());
      const item = plant.items[at];
      if (!item) throw new Error("there are too few items");
      item.value = () => {
        throw new GatewayError("server_unavailable", "planted", { retryAfterMs: 2000 });
      };
      const from = plant.seen.length;
      await plant.readouts(TROUBLED_READOUTS);
      // What was under way came before.
      for (const { good, readout } of plant.seen.slice(from + 1)) {
        expect(good).toBe(VARIABLES - 1);
        expect(readout.readings[at]).toMatchObject({ quality: "bad", fault: "no_answer" });
      }
      const times = plant.seen.slice(from).map(({ readout }) => readout.time);
      for (const [i, time] of times.slice(1).entries()) expect(time - (times[i] ?? 0)).toBeLessThan(1000);
      item.value = plant.valueOf(at);
      await plant.until(() => plant.isWhole());
    },
  );

  it("of another project is noticed at the next read, in the midst of a readout too, over the same connection", {
    timeout: TEST_MS,
  }, async ({ onTestFinished }) => {
    const plant = await start(onTestFinished);
    await plant.until(() => plant.isWhole());
    for (let i = 0; i < 3; i++) {
      plant.download();
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
    }
    let reads = 0;
    plant.odd.set("download in mid-read", (request) => {
      if (request === "read" && ++reads === 2) plant.download();
      return undefined;
    });
    await plant.until(() => reads >= 2);
    expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
    const after = await plant.readouts(2);
    expect([after.at(-1)?.asked, plant.report().counters.connects]).toEqual([FRESH, 1]);
  });
});

type Trouble = TroubleOf<GatewayPlant>;
const refusing = (code: RequestErrorCode, ...of: readonly GatewayAsked[]): Trouble => {
  const name = `${code} of ${of.join(" and ")}`;
  return {
    name,
    begin: (plant) => plant.odd.set(name, (request) => (of.includes(request) ? new GatewayError(code, "") : undefined)),
    end: (plant) => plant.odd.delete(name),
  };
};
const dropping = (how: "fin" | "rst"): Trouble => ({ name: `a drop by ${how}`, begin: (plant) => plant.drop(how), end: () => {} });
const onItems = (
  name: string,
  change: (item: GatewayPlant["items"][number]) => void,
  heal: (item: GatewayPlant["items"][number]) => void,
): Trouble => {
  const each = (plant: GatewayPlant, work: typeof change) => {
    for (const i of SOME) if (plant.items[i]) work(plant.items[i]);
  };
  return { name, begin: (plant) => each(plant, change), end: (plant) => each(plant, heal) };
};

const TROUBLES: readonly Trouble[] = [
  refusing("server_unavailable", "open", "read"),
  refusing("busy", "read"),
  refusing("too_large", "read"),
  refusing("internal_error", "resolve"),
  refusing("access_denied", "open"),
  {
    name: "silence",
    begin: (plant) => plant.odd.set("silence", (request) => (request === "read" ? "silent" : undefined)),
    end: (plant) => plant.odd.delete("silence"),
  },
  onItems(
    "errors of items",
    (item) => Object.assign(item, { error: { error: "no_answer", message: "" } }),
    (item) => delete item.error,
  ),
  onItems(
    "bad qualities",
    (item) => Object.assign(item, { quality: 0x08 }),
    (item) => delete item.quality,
  ),
  onItems(
    "values of no type",
    (item) => Object.assign(item, { value: "text" }),
    (item) => Object.assign(item, { value: Number(item.item.split("_")[1]) / 4 }),
  ),
  { name: "a download", begin: (plant) => plant.download(), end: (plant) => plant.download() },
  { name: "a gateway that is off", begin: (plant) => plant.switchOff(), end: (plant) => plant.switchOn() },
  dropping("fin"),
  dropping("rst"),
  lateNetwork(50),
  {
    name: "flipped bits",
    begin({ proxy }) {
      proxy.fault = "flip";
    },
    end({ proxy }) {
      proxy.fault = "none";
    },
  },
];
const SEVERAL = 10;

describe("troubles at once", () => {
  it.for(scenariosOf(TROUBLES, SEVERAL))(
    "%s, leave no trace: all is read again, with the requests of a fresh start",
    { timeout: TEST_MS },
    async ([, scenarios], { onTestFinished }) => {
      const isFlipped = (troubles: (typeof scenarios)[number]) => troubles.some(({ name }) => name === "flipped bits");
      const outcomes = await outcomesOf(scenarios, () => start(onTestFinished));
      // A bit may be flipped within a number: only encryption would notice.
      expect(outcomes.map((one, i) => (isFlipped(scenarios[i] ?? []) ? { ...one, wrong: 0 } : one))).toEqual(
        scenarios.map((troubles) => wellAfter(troubles, FRESH)),
      );
    },
  );
});
