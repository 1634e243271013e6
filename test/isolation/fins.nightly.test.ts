import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { END_CODES, type FinsLimits, TCP_ERRORS } from "../../drivers/fins/simulator.ts";
import { FinsPlant, type FinsPlantOptions, type FinsTransport } from "./fins-rig.ts";
import { everyTwo, HEALED_WITHIN, INTERVAL_MS, playTroubles, TROUBLED_READOUTS, type Trouble, wellAfter } from "./troubles.ts";

/** A range of the block, and a list of the others: two commands. */
const [BLOCK, LIST] = [200, 60];
const VARIABLES = BLOCK + LIST;
const FRESH = 2;
const TEST_MS = 90_000;
const TRANSPORTS = ["tcp", "udp"] as const;
/** Longer than answers are waited for. */
const LATE_MS = 450;

type OnFinished = (work: () => Promise<void>) => void;
async function start(onFinished: OnFinished, transport: FinsTransport, options: Partial<FinsPlantOptions> = {}): Promise<FinsPlant> {
  const plant = await FinsPlant.start({ transport, block: BLOCK, list: LIST, intervalMs: INTERVAL_MS, ...options });
  onFinished(() => plant.stop());
  return plant;
}

beforeAll(async () => {
  for (const transport of TRANSPORTS) {
    const plant = await FinsPlant.start({ transport, block: BLOCK, list: LIST, intervalMs: INTERVAL_MS });
    await plant.until(() => plant.isWhole());
    await plant.readouts(2);
    expect(plant.last?.asked).toBe(FRESH);
    await plant.stop();
  }
}, TEST_MS);

describe.concurrent("a controller that refuses", () => {
  const SMALL = 8;
  it.for(TRANSPORTS.flatMap((transport) => Array.from({ length: SMALL }, (_, at) => [transport, at] as const)))(
    "one word of a block over %s, at place %d of 8, loses that word alone",
    { timeout: TEST_MS },
    async ([transport, at], { onTestFinished }) => {
      const plant = await start(onTestFinished, transport, { block: SMALL, list: 0, local: { max_items: 0 } });
      await plant.until(() => plant.isWhole());
      expect(plant.last?.asked).toBe(1);
      plant.lack(at, at === 0 ? END_CODES.addressOutOfRange : END_CODES.endOutOfRange);
      await plant.until(() => plant.last?.good === SMALL - 1);
      const later = await plant.readouts(TROUBLED_READOUTS);
      expect(later.map(({ good }) => good)).toEqual(later.map(() => SMALL - 1));
      expect(plant.last?.readout.readings[at]).toMatchObject({ quality: "bad", fault: "out_of_range" });
      for (const { asked } of later) expect(asked).toBeLessThanOrEqual(1 + 2);
      plant.refusals.clear();
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
      await plant.readouts(HEALED_WITHIN);
      expect(plant.last?.asked).toBe(1);
    },
  );

  it.for([
    ["tcp", 0],
    ["udp", 99],
    ["tcp", 199],
    ["udp", 200],
    ["tcp", 231],
    ["udp", 259],
  ] as const)(
    "one word over %s, variable %d of 260, in a block or in a list, loses that word alone",
    { timeout: TEST_MS },
    async ([transport, at], { onTestFinished }) => {
      const plant = await start(onTestFinished, transport);
      await plant.until(() => plant.isWhole());
      plant.lack(at, END_CODES.noSuchArea);
      await plant.until(() => plant.last?.good === VARIABLES - 1);
      const later = await plant.readouts(TROUBLED_READOUTS);
      expect(later.map(({ good }) => good)).toEqual(later.map(() => VARIABLES - 1));
      expect(plant.last?.readout.readings[at]).toMatchObject({ quality: "bad", fault: "not_found" });
      for (const { asked } of later) expect(asked).toBeLessThanOrEqual(FRESH + 2);
      plant.refusals.clear();
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
      await plant.readouts(HEALED_WITHIN);
      expect(plant.last?.asked).toBe(FRESH);
    },
  );

  it.for(TRANSPORTS)(
    "everything over %s, since another device has the access right, costs one command a readout and says one sentence",
    { timeout: TEST_MS },
    async (transport, { onTestFinished }) => {
      const plant = await start(onTestFinished, transport);
      await plant.until(() => plant.isWhole());
      plant.plc.readError = 0x3001;
      await plant.until(() => plant.report().status.state.type === "ERROR");
      await plant.readouts(2);
      const later = await plant.readouts(TROUBLED_READOUTS);
      expect(later.map(({ asked }) => asked)).toEqual(later.map(() => 1));
      expect(plant.report().error?.detail).toContain("0x3001");
      expect(plant.lines, plant.lines.join("\n")).toHaveLength(1);
      expect(plant.report().counters.connects).toBe(1);
      plant.plc.readError = undefined;
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
      await plant.readouts(1);
      expect(plant.last?.asked).toBe(FRESH);
    },
  );

  it.for([
    ["its node is taken", TCP_ERRORS.nodeConnected, "0x21"],
    ["all connections are in use", TCP_ERRORS.allTaken, "0x20"],
  ] as const)(
    "a connection because %s is read as soon as it takes one",
    { timeout: TEST_MS },
    async ([, code, words], { onTestFinished }) => {
      const before = (plc: FinsPlant["plc"]) => {
        plc.tcp.handshakeError = code;
      };
      const plant = await start(onTestFinished, "tcp", { before });
      await plant.until(() => plant.report().status.state.type === "ERROR");
      expect(plant.report().error?.detail).toContain(words);
      expect(plant.plc.counts.requests).toBe(0);
      plant.plc.tcp.handshakeError = undefined;
      await plant.until(() => plant.isWhole());
      expect(plant.plc.connections()).toBe(1);
    },
  );
});

describe.concurrent("either transport", () => {
  it(
    "takes UDP where TCP is refused, and keeps it while it works",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, "auto", { before: (plc) => plc.serve({ tcp: false, udp: true }) });
      await plant.until(() => plant.isWhole());
      expect(plant.plc.lastRequests.every(({ transport }) => transport === "udp")).toBe(true);
      await plant.plc.serve({ tcp: true, udp: true });
      await plant.readouts(TROUBLED_READOUTS);
      expect(plant.plc.lastRequests.at(-1)?.transport).toBe("udp");
      expect(plant.plc.counts.accepted).toBe(0);
    },
    TEST_MS,
  );

  it(
    "takes TCP where both answer, and after a restart of the unit again",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, "auto");
      await plant.until(() => plant.isWhole());
      plant.plc.drop();
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN);
      expect(plant.plc.lastRequests.every(({ transport }) => transport === "tcp")).toBe(true);
      expect(plant.plc.counts.accepted).toBe(2);
    },
    TEST_MS,
  );
});

describe.concurrent("units on the way", () => {
  const RELAY = { endCode: END_CODES.nodeNotInNetwork, network: 2, node: 10 };

  it.for(TRANSPORTS)(
    "say over %s where they failed, and all is read once they pass on",
    { timeout: TEST_MS },
    async (transport, { onTestFinished }) => {
      const plant = await start(onTestFinished, transport);
      await plant.until(() => plant.isWhole());
      plant.plc.relay = RELAY;
      await plant.until(() => plant.report().status.state.type === "ERROR");
      const { readouts, values_read: read } = plant.report().counters;
      await plant.until(() => plant.report().counters.readouts >= readouts + TROUBLED_READOUTS / 2);
      expect(plant.report().error?.reason).toEqual({
        type: "FINS_NETWORK_RELAY_ERROR",
        response_code: 0x0201,
        requested_node: 10,
        relay_network: 2,
        relay_node: 10,
      });
      // No value comes from the two bytes that tell where.
      expect(plant.report().counters.values_read).toBe(read);
      plant.plc.relay = undefined;
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN + 1);
      await plant.readouts(1);
      expect(plant.last?.asked).toBe(FRESH);
    },
  );

  it.for(TRANSPORTS)(
    "that do not say over %s where they failed leave the reason UNKNOWN, without a number that nobody sent",
    { timeout: TEST_MS },
    async (transport, { onTestFinished }) => {
      const plant = await start(onTestFinished, transport);
      await plant.until(() => plant.isWhole());
      plant.plc.relay = { ...RELAY, isCut: true };
      await plant.until(() => plant.report().status.state.type === "ERROR");
      expect(plant.report().error?.reason).toEqual({ type: "UNKNOWN" });
      expect(plant.report().error?.detail).toContain("0x0201");
      plant.plc.relay = undefined;
      expect(await plant.readoutsUntilWhole()).toBeLessThanOrEqual(HEALED_WITHIN + 1);
    },
  );

  it.for(TRANSPORTS)(
    "that take less over %s are asked for less: no value is lost for more than a readout",
    { timeout: TEST_MS },
    async (transport, { onTestFinished }) => {
      const plant = await start(onTestFinished, transport);
      await plant.until(() => plant.isWhole());
      shrink(plant.plc.limits, 128, 40);
      await plant.readoutsUntilWhole();
      const later = await plant.readouts(TROUBLED_READOUTS);
      expect(later.map(({ good }) => good)).toEqual(later.map(() => VARIABLES));
      // A range of 128 and one of 72 words or two lists of 36, and lists of at most 40.
      expect(plant.last?.asked).toBeLessThanOrEqual(5);
      expect(plant.report().warnings.length).toBeGreaterThan(0);
      plant.plc.counts.errors = 0;
      await plant.readouts(2);
      expect(plant.plc.counts.errors).toBe(0);
    },
  );

  it(
    "that lose, double and delay datagrams and let strangers speak cost no readout",
    async ({ onTestFinished }) => {
      const plant = await start(onTestFinished, "udp", { local: { retransmissions: 5 } });
      await plant.until(() => plant.isWhole());
      let count = 0;
      plant.odd.set("rough", ({ isRepeated }) => {
        count++;
        return { isSilent: !isRepeated && count % 2 === 0, againAfterMs: 15, strangerFirst: true, delayMs: (count % 3) * 15 };
      });
      const rough = await plant.readouts(2 * TROUBLED_READOUTS);
      expect(rough.map(({ good }) => good)).toEqual(rough.map(() => VARIABLES));
      expect(plant.plc.counts.repeats).toBeGreaterThan(0);
      expect(plant.report().counters.connects).toBe(1);
      plant.odd.clear();
      await plant.readouts(2);
      expect(plant.last?.asked).toBe(FRESH);
    },
    TEST_MS,
  );
});

const shrink = (limits: FinsLimits, words: number, addresses: number) =>
  Object.assign(limits, { maxBytes: words * 2, maxElements: words * 2, maxAddresses: addresses });

interface FinsTrouble extends Trouble<FinsPlant> {
  readonly only?: FinsTransport;
}
type Ask = Parameters<FinsPlant["odd"]["set"]>[1];
const odd = (name: string, what: ReturnType<Ask>, only?: FinsTransport): FinsTrouble => ({
  name,
  ...(only && { only }),
  begin: (plant) => plant.odd.set(name, () => what),
  end: (plant) => plant.odd.delete(name),
});

/** Every other command. */
function everySecond(what: ReturnType<Ask>): Ask {
  let count = 0;
  return () => (count++ % 2 === 0 ? what : undefined);
}
const oddBySecond = (name: string, what: ReturnType<Ask>): FinsTrouble => ({
  name,
  begin: (plant) => plant.odd.set(name, everySecond(what)),
  end: (plant) => plant.odd.delete(name),
});

const AT = { endCode: END_CODES.noRoute, network: 3, node: 7 };
const cutAnswer = (frame: Buffer): Buffer => frame.subarray(0, frame.length - 1);
const TROUBLES: readonly FinsTrouble[] = [
  odd("busy", { endCode: END_CODES.busy }),
  oddBySecond("too many commands", { endCode: END_CODES.tooManyCommands }),
  odd("silent", { isSilent: true }),
  odd("duplicates", { againAfterMs: 20 }),
  odd("late answers", { delayMs: LATE_MS }),
  odd("strangers", { strangerFirst: true }, "udp"),
  odd("resets", { hangUp: "rst" }, "tcp"),
  odd("notifications", { notification: TCP_ERRORS.unsupported }, "tcp"),
  odd("relay errors", { relay: AT }),
  odd("relay errors that are cut", { relay: { ...AT, isCut: true } }),
  odd("answers that are cut", { change: cutAnswer }),
  {
    name: "missing words",
    begin: (plant) => [0, 77, 199, 210, 259].map((at) => plant.lack(at, END_CODES.endOutOfRange)),
    end: (plant) => plant.refusals.clear(),
  },
  {
    name: "a protected area",
    begin: ({ plc }) => plc.memory.refused.set("D", END_CODES.isProtected),
    end: ({ plc }) => plc.memory.refused.delete("D"),
  },
  {
    name: "a low battery",
    begin: ({ plc }) => Object.assign(plc, { statusBits: 0x40 }),
    end: ({ plc }) => Object.assign(plc, { statusBits: 0 }),
  },
  {
    name: "a taken node",
    only: "tcp",
    begin({ plc }) {
      plc.tcp.handshakeError = TCP_ERRORS.nodeConnected;
      plc.drop();
    },
    end({ plc }) {
      plc.tcp.handshakeError = undefined;
    },
  },
  {
    name: "messages in pieces",
    only: "tcp",
    begin: ({ plc }) => Object.assign(plc.tcp, { pieceBytes: 7, confirms: true }),
    end: ({ plc }) => Object.assign(plc.tcp, { pieceBytes: Number.POSITIVE_INFINITY, confirms: false }),
  },
  {
    name: "off the network",
    begin: ({ plc }) => plc.serve({ tcp: false, udp: false }),
    end: ({ plc }) => plc.serve({ tcp: true, udp: true }),
  },
  {
    name: "answers backwards",
    begin: ({ plc }) => Object.assign(plc, { answersBackwards: true }),
    end: ({ plc }) => Object.assign(plc, { answersBackwards: false }),
  },
];

const SEVERAL = 20;

/** `meanwhile`: what goes on from the beginning to the end, and does not heal. */
async function play(
  onFinished: OnFinished,
  transport: FinsTransport,
  troubles: readonly FinsTrouble[],
  meanwhile?: (plant: FinsPlant) => unknown,
) {
  const plant = await start(onFinished, transport);
  await plant.until(() => plant.isWhole());
  meanwhile?.(plant);
  const outcome = await playTroubles(plant, troubles);
  const { violations } = plant.plc;
  await plant.stop();
  expect(violations, outcome.of).toEqual([]);
  return outcome;
}

describe.concurrent("every second answer", () => {
  it.for([
    ["tcp", "is cut", { change: cutAnswer }],
    ["udp", "is cut", { change: cutAnswer }],
    ["tcp", "does not come", { isSilent: true }],
    ["udp", "comes too late", { delayMs: LATE_MS }],
    ["tcp", "is a relay error", { relay: AT }],
    ["tcp", "is a reset", { hangUp: "rst" }],
  ] as const)(
    "over %s %s: whatever was isolated meanwhile comes back, and nothing wrong is read",
    { timeout: TEST_MS },
    async ([transport, , what], { onTestFinished }) => {
      const plant = await start(onTestFinished, transport);
      await plant.until(() => plant.isWhole());
      plant.odd.set("second", everySecond(what));
      await new Promise((done) => setTimeout(done, TROUBLED_READOUTS * INTERVAL_MS));
      const good = plant.seen.flatMap(({ readout }) =>
        readout.readings.map((reading, i) => reading?.quality !== "good" || reading.value === plant.valueOf(i)),
      );
      expect(good.every((isRight) => isRight)).toBe(true);
      plant.odd.clear();
      // What had no answer is asked in a tenth of the time alone: seconds, not readouts.
      await plant.until(() => plant.isWhole());
      await plant.readouts(HEALED_WITHIN);
      expect(plant.last?.asked).toBe(FRESH);
    },
  );
});

describe.each(TRANSPORTS)("troubles at once over %s", (transport) => {
  const own = TROUBLES.filter(({ only }) => only === undefined || only === transport);
  it.for([
    ["each by itself", own.map((one) => [one])],
    ["any two", fc.sample(fc.constantFrom(...everyTwo(own)), SEVERAL)],
    ["three to five", fc.sample(fc.subarray([...own], { minLength: 3, maxLength: 5 }), SEVERAL)],
  ] as const)(
    "%s, leave no trace: all is read again, with the commands of a fresh start",
    { timeout: TEST_MS },
    async ([, scenarios], { onTestFinished }) => {
      const outcomes = await Promise.all(scenarios.map((troubles) => play(onTestFinished, transport, troubles)));
      expect(outcomes).toEqual(scenarios.map((troubles) => wellAfter(troubles, FRESH)));
    },
  );
});

describe.each(TRANSPORTS)("a network over %s that takes less from one moment on", (transport) => {
  const own = TROUBLES.filter(({ only }) => only === undefined || only === transport);
  const takeLess = ({ plc }: FinsPlant) => shrink(plc.limits, 128, 40);

  it(
    "while other things go wrong, is asked as from a fresh start once all but that is well",
    async ({ onTestFinished }) => {
      const small = await start(onTestFinished, transport, { before: (plc) => shrink(plc.limits, 128, 40) });
      await small.until(() => small.isWhole());
      await small.readouts(HEALED_WITHIN);
      const asked = small.last?.asked ?? 0;
      expect(asked).toBeGreaterThan(FRESH);
      await small.stop();
      const scenarios = fc.sample(fc.subarray([...own], { minLength: 1, maxLength: 3 }), SEVERAL);
      const outcomes = await Promise.all(scenarios.map((troubles) => play(onTestFinished, transport, troubles, takeLess)));
      expect(outcomes).toEqual(scenarios.map((troubles) => wellAfter(troubles, asked)));
    },
    TEST_MS,
  );
});
