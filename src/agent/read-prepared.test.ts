import { describe, expect, it } from "vitest";
import type { AnyDriver, AnySession, DriverContext, Point } from "../../drivers/driver.ts";
import { silentLog } from "../model/context.ts";
import { FaultError } from "../model/fault.ts";
import { ReasonError } from "../model/reason.ts";
import { LearnedGroups } from "./learned-groups.ts";
import { Preparation } from "./preparation.ts";
import { readOnce } from "./read.ts";

const ctx: DriverContext = {
  signal: new AbortController().signal,
  log: silentLog,
  timeouts: { nameMs: 1, connectMs: 1, answerMs: 1 },
};
const points: readonly Point[] = [{ index: 0, address: 1, type: { scalar: "uint16" } }];
const driver = { plan: (some: readonly Point[]) => some.map((point) => ({ points: [point] })) } as unknown as AnyDriver;
const ended = new ReasonError("CONNECTION_CLOSED", "the device closed the connection");

function sessionOf(): AnySession & { end(): void } {
  let isAlive = true;
  return {
    limits: { maxPoints: 1, maxBytes: 1, inFlight: 1 },
    read: async () => [{ quality: "good", value: 7 }],
    alive: () => isAlive,
    close: async () => {
      isAlive = false;
    },
    end() {
      isAlive = false;
    },
  };
}

/** One pass; `look` is what looking up does with each session. */
async function readWith(look: (session: ReturnType<typeof sessionOf>, nth: number) => boolean, kept?: ReturnType<typeof sessionOf>) {
  let connects = 0;
  let looks = 0;
  const sessions = new Map<AnySession, ReturnType<typeof sessionOf>>();
  const known = (session: ReturnType<typeof sessionOf>) => {
    sessions.set(session, session);
    return session;
  };
  if (kept) known(kept);
  const connect = async () => {
    connects++;
    return known(sessionOf());
  };
  const prepare = async (session: AnySession) => look(sessions.get(session) ?? sessionOf(), looks++);
  const { readings, failure } = await readOnce({ driver, connect, prepare }, new LearnedGroups(points), kept, ctx);
  return { readings, reason: failure?.reason.type, connects };
}

describe("looking addresses up before a pass", () => {
  const good = [{ quality: "good", value: 7 }];

  it("goes on over a new connection where the kept one has ended meanwhile", async () => {
    const look = (_: AnySession, nth: number) => {
      if (nth === 0) throw ended;
      return true;
    };
    expect(await readWith(look, sessionOf())).toEqual({ readings: good, reason: undefined, connects: 1 });
  });

  it("fails the pass where a new connection ends", async () => {
    const look = () => {
      throw ended;
    };
    expect(await readWith(look)).toMatchObject({ reason: "CONNECTION_CLOSED", connects: 1 });
    expect(await readWith(look, sessionOf())).toMatchObject({ reason: "CONNECTION_CLOSED", connects: 1 });
  });

  it("reads over a new connection where the one ended with the time for looking up", async () => {
    const look = (session: ReturnType<typeof sessionOf>, nth: number) => {
      if (nth === 0) session.end();
      return nth === 0;
    };
    expect(await readWith(look)).toEqual({ readings: good, reason: undefined, connects: 2 });
  });
});

describe("a device that says in the middle of a pass that it has another program", () => {
  const ten = Array.from({ length: 10 }, (_, index): Point => ({ index, address: index, type: { scalar: "uint16" } }));

  /** One pass in which each request is answered so while this holds; looking up moves nothing. */
  async function readWhile(isOther: (nth: number, looks: number) => boolean, inFlight = 1) {
    let asked = 0;
    let looks = 0;
    const session: AnySession = {
      ...sessionOf(),
      limits: { maxPoints: 1, maxBytes: 1, inFlight },
      read: async () => {
        await new Promise(setImmediate);
        if (isOther(asked++, looks)) throw new FaultError("stale", "another program", { scope: "program" });
        return [{ quality: "good", value: 7 }];
      },
    };
    const prepare = async () => looks++ > 0;
    const { readings, failure } = await readOnce({ driver, connect: async () => session, prepare }, new LearnedGroups(ten), undefined, ctx);
    return { readings: Array.from(readings, (reading) => reading?.quality), failure, asked, looks };
  }
  const all = (quality: string) => new Array(10).fill(quality);

  it.each([1, 3])("is asked once more for what it did not answer, with %i requests at once", async (inFlight) => {
    for (const at of [0, 4, 9]) {
      const read = await readWhile((nth, looks) => nth >= at && looks < 2, inFlight);
      expect(read).toMatchObject({ readings: all("good"), failure: undefined, looks: 2 });
    }
  });

  it("is not asked in a circle where it says so each time", async () => {
    expect(await readWhile(() => true)).toMatchObject({ readings: all("bad"), asked: 11, looks: 2 });
  });
});

describe("a driver that gives fewer readings than it was asked for", () => {
  it.each([
    ["too few", [{ quality: "good", value: 1 }]],
    ["none", []],
    ["a hole", [undefined, { quality: "good", value: 1 }]],
  ] as const)("%s: each point has a reading", async (_, given) => {
    const two: readonly Point[] = [0, 1].map((index) => ({ index, address: index, type: { scalar: "uint16" } }));
    const whole = { plan: (some: readonly Point[]) => [{ points: some }] } as unknown as AnyDriver;
    const session = { ...sessionOf(), read: async () => given } as unknown as AnySession;
    const { readings } = await readOnce({ driver: whole, connect: async () => session }, new LearnedGroups(two), undefined, ctx);
    expect(Array.from(readings)).toEqual(
      [0, 1].map((i) => given[i] ?? expect.objectContaining({ quality: "bad", detail: expect.stringMatching(/gave no reading/) })),
    );
  });
});

it("looks addresses up once more in a readout of a device that tells of another program at every read", async () => {
  let [reads, looks] = [0, 0];
  const session: AnySession = {
    ...sessionOf(),
    async *prepare(wanted) {
      looks++;
      yield wanted.map((point) => ({ point, address: `found ${looks}`, type: point.type }));
    },
    async read() {
      reads++;
      // If nothing else ends it.
      if (reads > 50) return [{ quality: "good", value: 7 }];
      throw new FaultError("stale", "another program", { scope: "program" });
    },
  };
  const learned = new LearnedGroups(points);
  const preparation = new Preparation(points);
  const prepare = async () => {
    const hasLooked = await preparation.run(session, ctx);
    learned.use(preparation.ready);
    return hasLooked;
  };
  const deps = { driver, connect: async () => session, prepare, unprepared: () => preparation.forget() };
  const { readings, failure } = await readOnce(deps, learned, undefined, ctx);
  expect({ reads, looks }).toEqual({ reads: 2, looks: 2 });
  expect(readings).toEqual([{ quality: "bad", fault: "stale", detail: "another program" }]);
  expect(failure).toBeUndefined();
  // The next readout may look once more.
  await readOnce(deps, learned, session, ctx);
  expect({ reads, looks }).toEqual({ reads: 4, looks: 3 });
});

it("reads a value again that was read before a later request of the readout told of another program", async () => {
  const two: readonly Point[] = [0, 1].map((index) => ({ index, address: `symbol ${index}`, type: { scalar: "uint16" } }));
  let program = 1;
  const session: AnySession = {
    ...sessionOf(),
    get epoch() {
      return String(program);
    },
    async *prepare(wanted) {
      // The first symbol is elsewhere in the other program, the second one where it was.
      yield wanted.map((point) => ({ point, address: point.index === 0 ? `at ${program}` : "at 9", type: point.type }));
    },
    async read({ points: [point] }) {
      if (point?.address === "at 9" && program === 1) {
        program = 2;
        throw new FaultError("program_changed", "another program", { scope: "program" });
      }
      return [{ quality: "good", value: String(point?.address) }];
    },
  };
  const learned = new LearnedGroups(two);
  const preparation = new Preparation(two);
  const prepare = async () => {
    const hasLooked = await preparation.run(session, ctx);
    learned.use(preparation.ready);
    return hasLooked;
  };
  const deps = { driver, connect: async () => session, prepare, unprepared: () => preparation.forget() };
  const { readings } = await readOnce(deps, learned, undefined, ctx);
  expect(readings).toEqual([
    { quality: "good", value: "at 2" },
    { quality: "good", value: "at 9" },
  ]);
});
