import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AnyDriver, Limits, Point, Request } from "../../../drivers/driver.ts";
import { answered, newDevice, newUser } from "../device-time.ts";
import { type BadReading, LearnedGroups } from "../learned-groups.ts";
import { stateOf, stateText } from "../testing/search-state.ts";
import { finish } from "./finish.ts";
import { type Bounds, type Next, newReadout, type Outcome, type PassEnd, type State } from "./state.ts";
import { begin, next, step } from "./step.ts";

const PER_REQUEST = 5;
const INTERVAL_MS = 1000;
const FULL_MS = 3000;
const limits: Limits = { maxPoints: 100, maxBytes: 1000, inFlight: 1 };
/** Runs of five neighbours; a unit of its own each ten where there are units. */
const driverOf = (hasUnits: boolean): AnyDriver =>
  ({
    plan(points: readonly Point[], _: Limits, apart?: ReadonlySet<Point>): Request[] {
      const requests: { points: Point[]; part?: string }[] = [];
      for (const point of points) {
        const last = requests.at(-1)?.points;
        const [first] = last ?? [];
        const isNear = first && Math.floor(first.index / PER_REQUEST) === Math.floor(point.index / PER_REQUEST) && !apart?.has(point);
        if (last && isNear) last.push(point);
        else requests.push({ points: [point], ...(hasUnits && { part: `unit ${Math.floor(point.index / 10)}` }) });
      }
      return requests;
    },
  }) as unknown as AnyDriver;

const bad: BadReading = { quality: "bad", fault: "no_answer", detail: "x" };
const ANSWERED: Outcome = { type: "answered" };
const refused = (scope: "points" | "silent" | "busy" | "everything" | "program"): Outcome => ({
  type: "refused",
  scope,
  reading: bad,
  items: [],
});
const ended = (isTimeout: boolean): Outcome => ({ type: "ended", reading: bad, loss: { isTimeout, isSessionLost: !isTimeout }, restMs: 0 });
const OUTCOMES = {
  answered: ANSWERED,
  missing: refused("points"),
  silent: refused("silent"),
  busy: refused("busy"),
  everything: refused("everything"),
  program: refused("program"),
  timeout: ended(true),
  closed: ended(false),
} as const;
type Happens = keyof typeof OUTCOMES;

/** A source of so many points in a readout of its own time; `sibling`: another one of the device is answered each second. */
class Play {
  readonly driver: AnyDriver;
  readonly plan: LearnedGroups;
  readonly device = newDevice();
  readonly user = newUser(this.device, INTERVAL_MS);
  readonly sibling;
  nowMs = 1_000_000;
  state: State;

  constructor(count: number, { hasUnits = false, hasSibling = false } = {}) {
    this.driver = driverOf(hasUnits);
    this.plan = planOf(count, this.driver);
    this.sibling = hasSibling ? newUser(this.device, INTERVAL_MS) : undefined;
    this.state = this.readout();
  }

  /** A new readout over a new connection. */
  readout(bounds: Partial<Bounds> = {}): State {
    const { plan, device, user, nowMs } = this;
    if (this.sibling) answered(device, this.sibling, 5, nowMs);
    const all = { intervalMs: INTERVAL_MS, isThorough: false, idleUntilMs: nowMs + INTERVAL_MS };
    const readout = newReadout({ ...all, searchUntilMs: nowMs + 800, shortUntilMs: nowMs + 800, ...bounds }, []);
    readout.fullMs = FULL_MS;
    plan.known.readouts++;
    this.state = { plan, device, user, readout };
    begin(this.state, plan.plan(this.driver, limits), false);
    return this.state;
  }

  next(): Next | undefined {
    return next(this.state, this.nowMs);
  }

  /** The next step after this has happened to the ask. */
  step(ask: Next | undefined, what: Happens): Next | undefined {
    this.nowMs += tookMs(this.state, what);
    return happen(this.state, ask, what, this.nowMs);
  }
}

const tookMs = ({ readout }: State, what: Happens): number => (what === "timeout" ? readout.waitMs : 5);

function happen(state: State, ask: Next | undefined, what: Happens, nowMs: number): Next | undefined {
  if (!ask || ask.what === "end" || ask.what === "pause") throw new Error("nothing is asked");
  if (what === "answered") for (const { index } of ask.request.points) state.readout.readings[index] = { quality: "good", value: index };
  return step(state, ask, OUTCOMES[what], tookMs(state, what), nowMs);
}

function planOf(count: number, driver: AnyDriver): LearnedGroups {
  const plan = new LearnedGroups(Array.from({ length: count }, (_, index) => ({ index, address: index, type: { scalar: "uint16" } })));
  plan.plan(driver, limits);
  return plan;
}

/** A step in words: its purpose and its points, as `step 0-2`; how it ends. */
function wordsOf(one: Next | undefined): string {
  if (!one) return "others are under way";
  if (one.what === "end") return `end: ${one.end}`;
  if (one.what === "pause") return `pause of ${one.ms} ms`;
  const { points } = one.request;
  const [first, last] = [points[0]?.index, points.at(-1)?.index];
  return `${one.what} ${first === last ? first : `${first}-${last}`}`;
}

describe("the next step", () => {
  it.each<readonly [string, readonly (readonly [Happens, string])[]]>([
    [
      "is the plan in its order, and its end",
      [
        ["answered", "planned 5-9"],
        ["answered", "end: done"],
      ],
    ],
    [
      "is half of a request that the device refuses, after all that is planned, down to the one to blame",
      [
        ["missing", "planned 5-9"],
        ["answered", "step 0-1"],
        ["answered", "step 2"],
        ["answered", "step 3"],
        ["missing", "left 4"],
        ["answered", "end: done"],
      ],
    ],
    [
      "is a new connection for a request whose connection the device closed",
      [
        ["answered", "planned 5-9"],
        ["closed", "end: lost"],
      ],
    ],
    [
      "is a pause for a device that is busy, and what it was busy with",
      [
        ["busy", "planned 5-9"],
        ["answered", "pause of 50 ms"],
      ],
    ],
    ["is nothing where the device refuses everything", [["everything", "end: done"]]],
    ["is the look-up of addresses where the device has another program", [["program", "end: unprepared"]]],
  ])("%s", (_, table) => {
    const play = new Play(10);
    let now = play.next();
    expect(wordsOf(now)).toBe("planned 0-4");
    for (const [what, then] of table) {
      now = play.step(now, what);
      expect(wordsOf(now)).toBe(then);
    }
  });

  it("asks first what the last connection ended on, and then looks for what is to blame in it", () => {
    const play = new Play(10);
    play.step(play.step(play.next(), "answered"), "closed");
    begin(play.state, play.plan.planAgain(), false);
    const again = play.next();
    expect(wordsOf(again)).toBe("planned 5-9");
    expect(wordsOf(play.step(again, "closed"))).toBe("end: lost");
    begin(play.state, play.plan.planAgain(), false);
    // A gateway may be busy with what was lost: what is well tells when it is free.
    const settle = play.next();
    expect(wordsOf(settle)).toBe("settle 0-4");
    const check = play.step(settle, "answered");
    expect(wordsOf(check)).toBe("check 5-9");
    expect(wordsOf(play.step(check, "answered"))).toBe("end: done");
    expect(play.plan.known.searches).toEqual([]);
  });

  it("keeps a search for the next readout, which does not ask what is searched for as planned", () => {
    const play = new Play(10);
    play.step(play.step(play.next(), "missing"), "answered");
    finish(play.state, false, play.nowMs);
    play.nowMs += INTERVAL_MS;
    play.readout();
    expect(wordsOf(play.next())).toBe("planned 5-9");
  });

  it("asks again in the next readout what the end of its readout cut off", () => {
    const play = new Play(10);
    let now = play.step(play.step(play.next(), "missing"), "answered");
    for (const words of ["step 0-1", "step 0"]) {
      expect(wordsOf(now)).toBe(words);
      now = play.step(now, "missing");
    }
    // Each part may be missing: two more points of the run tell.
    expect(wordsOf(now)).toBe("sample 2");
    play.state.readout.isAborted = true;
    expect(wordsOf(play.step(now, "timeout"))).toBe("end: stopped");
    finish(play.state, false, play.nowMs);
    play.nowMs += INTERVAL_MS;
    play.readout();
    const asked: string[] = [];
    for (
      now = play.next();
      now && now.what !== "end" && now.what !== "sample";
      now = play.step(now, now.what === "planned" ? "answered" : "missing")
    )
      asked.push(wordsOf(now));
    expect([...asked, wordsOf(now)]).toEqual(["planned 1-4", "planned 5-9", "check 0", "sample 2"]);
  });

  it("leaves out the other requests of a unit without an answer, and says so of its points", () => {
    const play = new Play(30, { hasUnits: true });
    const plan = ["planned 5-9", "planned 10-14", "planned 15-19", "planned 20-24", "planned 25-29"];
    let now = play.next();
    for (const words of plan) {
      now = play.step(now, "answered");
      expect(wordsOf(now)).toBe(words);
    }
    expect(wordsOf(play.step(now, "answered"))).toBe("end: done");
    play.nowMs += INTERVAL_MS;
    play.readout();
    now = play.step(play.step(play.next(), "answered"), "answered");
    expect(wordsOf(play.step(now, "silent"))).toBe("planned 20-24");
    expect(play.plan.known.silent.get("unit 1")?.points.map(({ index }) => index)).toEqual(Array.from({ length: 10 }, (_, i) => 10 + i));
  });

  it("asks everything after an answer to a source that refused everything, also where it has one point", () => {
    for (const count of [1, 10]) {
      const play = new Play(count);
      play.step(play.next(), "everything");
      finish(play.state, false, play.nowMs);
      expect(play.state.readout.readings[0]).toEqual(bad);
      play.readout();
      const first = play.next();
      expect(first?.what).toBe("first");
      const after = play.step(first, "answered");
      expect(after?.what).toBe(count === 1 ? "end" : "planned");
      expect(play.plan.known.shut).toBeNull();
    }
  });
});

const sequence = fc.array(
  fc.record({
    what: fc.oneof(
      { weight: 6, arbitrary: fc.constant<Happens>("answered") },
      { weight: 4, arbitrary: fc.constantFrom(...(Object.keys(OUTCOMES) as Happens[])) },
    ),
    /** Of those under way, which one it happens to. */
    which: fc.nat(3),
  }),
  { minLength: 1, maxLength: 120 },
);
const happensOf = (...all: readonly Happens[]) => all.map((what) => ({ what, which: 0 }));
const MOST_CONNECTIONS = 40;
const MOST_STEPS = 400;

/** Plays readouts with what happens; `look` sees the state before each step, and what it gives is called with the step. False: a readout does not end. */
function playAll(
  play: Play,
  happens: readonly { readonly what: Happens; readonly which: number }[],
  width: number,
  look: (at: number, what: Happens) => ((then: Next | undefined) => void) | undefined,
): boolean {
  const left = [...happens];
  for (let readouts = 0; left.length > 0; readouts++) {
    if (readouts > MOST_STEPS) return false;
    const { readout } = play.readout();
    const { underWay } = readout;
    let connections = 0;
    let steps = 0;
    for (let end: PassEnd | undefined; !end; ) {
      const take = (one: Next | undefined): void => {
        if (one?.what === "end") end = one.end;
        if (one?.what !== "pause") return;
        play.nowMs += one.ms;
        take(play.next());
      };
      take(play.next());
      while (underWay.length > 0) {
        while (underWay[0]?.what === "planned" && underWay.length < width && play.next());
        if (++steps > MOST_STEPS) return false;
        const { what, which } = left.shift() ?? { what: "answered", which: 0 };
        const at = which % underWay.length;
        const stepped = look(at, what);
        const then = play.step(underWay[at], what);
        stepped?.(then);
        take(then);
      }
      if (end !== "lost" && end !== "renew" && end !== "turn" && end !== "unprepared") continue;
      if (++connections > MOST_CONNECTIONS) return false;
      end = undefined;
      begin(play.state, play.plan.planAgain(), false);
    }
    finish(play.state, false, play.nowMs);
    play.nowMs += INTERVAL_MS;
  }
  return true;
}

describe("any sequence of outcomes", () => {
  const plays = [sequence, fc.boolean(), fc.boolean(), fc.constantFrom(1, 3)] as const;

  it("has an end in each readout, asks no point twice at once, and keeps to the readout's requests and the device's time", () => {
    fc.assert(
      fc.property(...plays, (happens, hasUnits, hasSibling, width) => {
        const play = new Play(30, { hasUnits, hasSibling });
        const hasEnded = playAll(play, happens, width, () => {
          const { underWay } = play.state.readout;
          const asked = underWay.flatMap(({ request }) => request.points);
          expect(new Set(asked).size).toBe(asked.length);
          const { readout } = play.state;
          for (const { what } of underWay)
            if (what !== "planned" && what !== "first") expect(readout.sent).toBeLessThanOrEqual(readout.maxRequests);
          expect(readout.waitMs).toBeLessThanOrEqual(FULL_MS);
          expect(play.device.usedMs).toBeLessThanOrEqual(FULL_MS + FULL_MS);
          return undefined;
        });
        expect(hasEnded).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it("leaves each point with a reading, or all without one", () => {
    fc.assert(
      fc.property(...plays, (happens, hasUnits, hasSibling, width) => {
        const play = new Play(30, { hasUnits, hasSibling });
        playAll(play, happens, width, () => undefined);
        const { readings } = play.state.readout;
        if (readings.length > 0)
          expect(Array.from(readings, (reading) => reading !== undefined)).toEqual(Array.from({ length: 30 }, () => true));
      }),
      { examples: [[happensOf("busy", "closed", "everything"), false, false, 3]] },
    );
  });

  it("leaves a state that JSON holds: the same text again, and the same next step from it", () => {
    fc.assert(
      fc.property(...plays, (happens, hasUnits, hasSibling, width) => {
        const play = new Play(30, { hasUnits, hasSibling });
        playAll(play, happens, width, (at, what) => {
          const text = stateText(play.state);
          const copy = stateOf(text, planOf(30, play.driver));
          expect(stateText(copy)).toBe(text);
          return (then) => {
            expect(wordsOf(happen(copy, copy.readout.underWay[at], what, play.nowMs))).toBe(wordsOf(then));
            expect(stateText(copy)).toBe(stateText(play.state));
          };
        });
      }),
      { numRuns: 50 },
    );
  });
});
