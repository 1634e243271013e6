import { expect } from "vitest";
import { type AnyDriver, type AnySession, defineDriver, type Point, type Prepared, type Request } from "../../drivers/driver.ts";
import { LearnedGroups } from "../../src/agent/learned-groups.ts";
import { Preparation } from "../../src/agent/preparation.ts";
import { readOnce } from "../../src/agent/read.ts";
import type { Reading } from "../../src/model/value.ts";
import type { Check } from "./check.ts";
import { type Rig, SECRET, within } from "./rig.ts";

const PLANTED = "planted: cannot read properties of undefined";
/** A search may take so many. */
const MOST_READOUTS = 6;

const fail = (): never => {
  throw new TypeError(PLANTED);
};

type Step = "planning" | "preparing" | "decoding";

/** One variable over which a driver fails in one step: whatever it looks at of the variable then throws, deep in the driver's own code. */
class Mine {
  readonly index: number;
  readonly step: Step;
  #armed = 0;

  constructor(index: number, step: Step) {
    this.index = index;
    this.step = step;
  }

  isIn(points: readonly Point[], step: Step): boolean {
    return step === this.step && points.some(({ index }) => index === this.index);
  }

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#armed++;
    try {
      return await work();
    } finally {
      this.#armed--;
    }
  }

  /** Itself until it is armed. */
  laidIn<T>(value: T): T {
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return value;
    return new Proxy(value, {
      get: (target, key) => (this.#armed > 0 ? fail() : Reflect.get(target, key)),
      apply: (target, self, given) => (this.#armed > 0 ? fail() : Reflect.apply(target as () => unknown, self, given)),
    });
  }

  laidInPoint(point: Point): Point {
    if (point.index !== this.index) return point;
    return { index: point.index, address: this.laidIn(point.address), type: this.laidIn(point.type) };
  }
}

/** The request, with the mine in what decodes the variable where that was made when it was planned. */
function laidInRequest(request: Request, mine: Mine): Request {
  const place = request.points.findIndex(({ index }) => index === mine.index);
  if (place < 0 || mine.step !== "decoding") return request;
  const laid = Object.entries(request).map(([key, field]: [string, unknown]) => {
    if (!Array.isArray(field) || typeof field[place] !== "function") return [key, field];
    return [key, field.with(place, mine.laidIn(field[place]))];
  });
  return Object.fromEntries(laid) as Request;
}

/** If the driver does not look at the variable in that step, it fails behind it all the same. */
function mined(session: AnySession, mine: Mine): AnySession {
  const read: AnySession["read"] = async (request, ctx) => {
    if (!mine.isIn(request.points, "decoding")) return session.read(request, ctx);
    await mine.during(() => session.read(request, ctx));
    return fail();
  };
  async function* prepare(points: readonly Point[], ctx: Parameters<AnySession["read"]>[1]): AsyncGenerator<readonly Prepared[]> {
    const isIn = mine.isIn(points, "preparing");
    const given = isIn ? points.map((point) => mine.laidInPoint(point)) : points;
    const batches = session.prepare?.(given, ctx)[Symbol.asyncIterator]();
    const next = () => batches?.next() ?? Promise.resolve({ done: true as const, value: undefined });
    const step = () => (isIn ? mine.during(next) : next());
    for (let batch = await step(); !batch.done; batch = await step())
      yield batch.value.filter(({ point }) => !isIn || point.index !== mine.index).map(laid);
    if (isIn) fail();
  }
  const laid = (one: Prepared): Prepared => {
    if ("refusal" in one || one.point.index !== mine.index || mine.step !== "decoding") return one;
    return { ...one, address: mine.laidIn(one.address), type: mine.laidIn(one.type) };
  };
  return Object.assign(Object.create(session) as AnySession, { read, ...(session.prepare && { prepare }) });
}

function minedDriver({ planSteps: _, ...driver }: AnyDriver, mine: Mine): AnyDriver {
  return defineDriver({
    ...driver,
    plan(points, limits, apart) {
      if (mine.isIn(points, "planning")) fail();
      return driver.plan(points, limits, apart).map((request) => laidInRequest(request, mine));
    },
    connect: async (input, ctx) => mined(await driver.connect(input, ctx), mine),
  });
}

/** Reads as the agent does, until all but one variable are read; gives the readings and how often it connected. `at`: of the mistake. */
async function readMined(rig: Rig, step: Step, at: number) {
  const { simulator, settings, detailsFor, proxy } = rig;
  const mine = new Mine(at, step);
  const driver = minedDriver(rig.driver, mine);
  const points = rig.pointsOf(simulator.variables).map((point) => (step === "decoding" ? mine.laidInPoint(point) : point));
  const learned = new LearnedGroups(points);
  const preparation = new Preparation(points);
  const ctx = within(10_000);
  let connects = 0;
  const connect = (): Promise<AnySession> => {
    connects++;
    return driver.connect({ details: detailsFor(proxy.port), settings, secrets: { password: SECRET } }, ctx);
  };
  const prepare = (session: AnySession): Promise<boolean> => preparation.run(session, ctx).finally(() => learned.use(preparation.ready));
  let kept: AnySession | undefined;
  let readings: readonly (Reading | undefined)[] = [];
  for (let readout = 0; readout < MOST_READOUTS; readout++) {
    const read = await readOnce({ driver, connect, prepare, unprepared: () => preparation.forget() }, learned, kept, ctx);
    kept = read.session;
    preparation.fill(read.readings);
    readings = read.readings;
    if (readings.filter((reading) => reading?.quality === "good").length === points.length - 1) break;
  }
  await kept?.close();
  return { mine, readings, connects };
}

async function expectOneFault(rig: Rig, step: Step): Promise<void> {
  const { variables } = rig.simulator;
  // Another program, from an earlier check, may have ended variables that are read by their raw place.
  const plain = (await readMined(rig, step, -1)).readings;
  expect(plain.filter((reading) => reading?.quality === "good").length).toBeGreaterThanOrEqual(0.9 * variables.length);
  const { mine, readings, connects } = await readMined(rig, step, variables.length >> 1);
  for (const [index, { address, value }] of variables.entries())
    if (index === mine.index)
      expect(readings[index], address).toMatchObject({
        quality: "bad",
        fault: "collector_error",
        detail: expect.stringContaining(PLANTED),
      });
    else if (plain[index]?.quality === "good") expect(readings[index], address).toMatchObject({ quality: "good", value });
  expect(connects, "the connection stands").toBe(1);
}

const unaskedOfPreparing = async ({ connect }: Rig): Promise<string | undefined> => {
  const session = await connect();
  await session.close();
  return session.prepare ? undefined : "it looks nothing up before it reads";
};

/** A mistake in a driver costs the one variable that it is about. */
export const MISTAKE_CHECKS: readonly Check[] = [
  {
    name: "keeps its own mistake in parsing to the address that it is about",
    async run({ driver: given, settings, simulator, typeOf }) {
      const [one] = simulator.variables;
      const driver = defineDriver({ ...given, parseAddress: fail, parseType: fail });
      expect(() => driver.parseAddress(one?.address ?? "", typeOf(one?.type ?? ""), settings)).toThrow(
        expect.objectContaining({ name: "FaultError", fault: "collector_error", message: expect.stringContaining(PLANTED) }),
      );
      expect(() => driver.parseType?.("x")).toThrow(expect.objectContaining({ name: "FaultError", fault: "collector_error" }));
    },
  },
  {
    name: "keeps its own mistake in planning to the variable that it is about",
    run: (rig) => expectOneFault(rig, "planning"),
  },
  {
    name: "keeps its own mistake in preparing to the variable that it is about",
    unasked: unaskedOfPreparing,
    run: (rig) => expectOneFault(rig, "preparing"),
  },
  {
    name: "keeps its own mistake in decoding to the variable that it is about",
    run: (rig) => expectOneFault(rig, "decoding"),
  },
];
