import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Outcome } from "../acknowledgements.ts";
import type { Counted } from "./pieces.ts";
import { type Attempt, type Due, type Effect, type Isolation, newIsolation, type Suspect } from "./state.ts";
import { apartDueMs, type Event, nextApart, step } from "./step.ts";
import { isOverwhelmed, isSuspected, maxMessageBytes } from "./suspects.ts";

/** Rows of so many values, in places from 0 on. */
const WIDTH = 4;
const PLACES = Array.from({ length: WIDTH }, (_, place) => place);
const wholes = (rows: readonly number[]): readonly Counted[] => rows.map((row) => ({ row, from: 0, values: WIDTH }));
const ONE: readonly Counted[] = [{ row: 1, from: 0, to: 1, values: 1 }];
const NONE = { refused: 0, refusals: [] } as const;

const attemptOf = (due: Due): Attempt => ({
  due,
  pieces: due.pieces,
  places: new Map(due.pieces.map(({ row }) => [row, PLACES])),
  name: "values",
});

/** One state, with what a test says of it in few words. */
function isolation() {
  const state = newIsolation();
  const learn = (event: Event, nowMs: number) => step(state, event, nowMs);
  const due = (nowMs: number): Due => {
    const found = nextApart(state, nowMs, true);
    if (!found || "untilMs" in found) throw new Error(`nothing is due at ${nowMs}`);
    return found;
  };
  const begin = (nowMs: number): Attempt & { readonly suspect: Suspect } => {
    const attempt = attemptOf(due(nowMs));
    learn({ what: "begun", attempt, gone: [], damaged: [], filtered: new Map() }, nowMs);
    if (attempt.due.what !== "suspect") throw new Error("held values are due");
    return Object.assign(attempt, { suspect: attempt.due.suspect });
  };
  return {
    state,
    learn,
    begin,
    lose: (jobs: readonly number[], nowMs: number) => learn({ what: "lost", jobs, why: "closed", isPublishing: false }, nowMs),
    suspect: (nowMs: number, ...rows: readonly number[]) =>
      learn({ what: "suspected", job: rows[0] ?? 0, layout: 1, backlog: true, pieces: wholes(rows) }, nowMs),
    arrive: (job: number, nowMs: number) =>
      learn({ what: "written", job, source: "a", layout: 1, backlog: true, taken: 1, outcomes: new Map(), ...NONE }, nowMs),
    refuse: (pieces: readonly Counted[], nowMs: number) =>
      learn(
        {
          what: "written",
          job: 1,
          source: "a",
          layout: 1,
          backlog: true,
          taken: 0,
          outcomes: new Map([[1, { delivered: 1, dropped: {} }]]),
          refused: 0,
          refusals: [{ pieces, detail: "no" }],
        },
        nowMs,
      ),
    /** A try of all that is due: refused as a whole, or taken. */
    tried: (nowMs: number, isRefused: boolean) => {
      const attempt = begin(nowMs);
      const refusals = isRefused ? [{ pieces: attempt.pieces, detail: "no" }] : [];
      return learn({ what: "tried", attempt, refused: 0, refusals }, nowMs);
    },
  };
}

describe("what is under way when the connection is lost", () => {
  test("once is not suspected; twice is; what has arrived between is not", () => {
    const { state, lose, arrive } = isolation();
    lose([1, 3], 0);
    expect([1, 3].map((job) => isSuspected(state, job))).toEqual([false, false]);
    arrive(3, 0);
    lose([1, 3], 0);
    expect([1, 3].map((job) => isSuspected(state, job))).toEqual([true, false]);
  });

  test("is written alone, then in smaller messages; what then arrives tells how large messages may be, for a minute and longer each time", () => {
    const { state, learn, begin, lose, suspect } = isolation();
    let nowMs = 1000;
    for (const lastsMs of [60_000, 120_000, 240_000]) {
      suspect(nowMs, 1, 2);
      const sizes: (number | undefined)[] = [];
      for (let losses = 0; losses < 3; losses++) {
        const attempt = begin(nowMs);
        expect(attempt.suspect.needsQuiet).toBe(true);
        sizes.push(attempt.due.maxMessageBytes);
        if (losses < 2) lose([], nowMs);
        else learn({ what: "tried", attempt, ...NONE }, nowMs);
      }
      expect(sizes).toEqual([undefined, 16_384, 1024]);
      expect(state.suspects).toEqual([]);
      nowMs += lastsMs;
      expect([maxMessageBytes(state, nowMs - 1), maxMessageBytes(state, nowMs)]).toEqual([1024, undefined]);
    }
  });

  test("whose half alone arrives tells nothing of sizes", () => {
    const { state, learn, begin, lose, suspect } = isolation();
    suspect(1000, 1, 2);
    for (let losses = 0; losses < 3; losses++) {
      begin(1000);
      lose([], 1000);
    }
    const first = begin(1001);
    expect(first.pieces).toEqual(wholes([1]));
    learn({ what: "tried", attempt: first, ...NONE }, 1001);
    expect(begin(1002).pieces).toEqual(wholes([2]));
    expect(maxMessageBytes(state, 1003)).toBeUndefined();
  });

  test("together needs to be alone, and keeps its count", () => {
    const { state, refuse, tried, begin, lose } = isolation();
    refuse(ONE, 0);
    tried(0, true);
    begin(1000);
    lose([5], 1000);
    state.openedMs = 600;
    expect(nextApart(state, 1099, true)).toBeUndefined();
    expect(nextApart(state, 1100, false)).toEqual({ untilMs: Number.POSITIVE_INFINITY });
    expect(begin(1100).suspect).toMatchObject({ needsQuiet: true, failures: 1 });
  });

  test("is not suspected where a notice may be the cause, once, nor where the collector ends the opening", () => {
    const { state, learn } = isolation();
    const lost = (isPublishing: boolean) => learn({ what: "lost", jobs: [1], why: "closed", isPublishing }, 0);
    lost(true);
    expect(state.losses.size).toBe(0);
    learn({ what: "opened" }, 0);
    expect(state.notBeforeMs).toBe(500);
    lost(true);
    learn({ what: "given_up" }, 0);
    lost(false);
    expect(state.losses.get(1)).toBe(1);
  });
});

describe("a single value that is refused", () => {
  test("each time alone while others pass between is dropped at the third", () => {
    const { state, refuse, tried, arrive } = isolation();
    refuse(ONE, 0);
    const effects: Effect[] = [];
    for (let nowMs = 0; nowMs < 3000; nowMs += 1000) {
      effects.push(...tried(nowMs, true));
      arrive(9, nowMs);
      expect(nextApart(state, nowMs + 999, true)).toBeUndefined();
    }
    expect(effects).toEqual([
      { what: "settled", row: 1, outcome: { delivered: 0, dropped: { refused: 1 } } },
      { what: "dropped", values: 1, detail: "no, 3 times with nothing but values, while others passed: it is dropped" },
    ]);
    expect(state.suspects).toEqual([]);
  });

  test("while nothing else passes is never dropped, and is tried once a minute in the end", () => {
    const { state, refuse, tried } = isolation();
    refuse(ONE, 0);
    let nowMs = 1000;
    const waits: number[] = [];
    for (let i = 0; i < 20; i++) {
      expect(tried(nowMs, true)).toEqual([]);
      const dueMs = apartDueMs(state, nowMs);
      waits.push(dueMs - nowMs);
      nowMs = dueMs;
    }
    expect([waits[0], waits.at(-1)]).toEqual([1000, 60_000]);
    expect(isOverwhelmed(state)).toBe(false);
    tried(nowMs, false);
    expect(state.suspects).toEqual([]);
  });
});

test("a message is taken apart so often at most, and a broker that refuses everything is given a rest", () => {
  const { state, learn, refuse, tried } = isolation();
  refuse(wholes(Array.from({ length: 200 }, (_, row) => row)), 0);
  let tries = 0;
  for (; !isOverwhelmed(state) && nextApart(state, 0, true); tries++) tried(0, true);
  expect(tries).toBe(63);
  learn({ what: "opened" }, 0);
  expect(isOverwhelmed(state)).toBe(false);
  for (; nextApart(state, 0, true); tries++) tried(0, true);
  // 64 splits, and each of the 65 parts once.
  expect(tries).toBe(129);
});

test("values that are dropped at once are not tried with those that were refused with them", () => {
  const { learn, begin, suspect } = isolation();
  suspect(1000, 1);
  const rest: readonly Counted[] = [{ row: 1, from: 1, values: 3 }];
  learn({ what: "tried", attempt: begin(1000), refused: 1, refusals: [{ pieces: rest, detail: "no" }] }, 1000);
  const attempt = begin(1000);
  expect(attempt.pieces).toEqual(rest);
  expect(learn({ what: "tried", attempt, ...NONE }, 1000)).toEqual([
    { what: "settled", row: 1, outcome: { delivered: 3, dropped: { refused: 1 } } },
  ]);
});

/** Moves of a play: `which` picks among what is under way, `mod` and `size` the messages of it that are refused. */
type Move =
  | { readonly do: "begin" }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "lose"; readonly isPublishing: boolean }
  | { readonly do: "give_up" }
  | {
      readonly do: "answer";
      readonly which: number;
      readonly how: "taken" | "outright" | "messages" | "drop" | "isolate";
      readonly size: number;
      readonly mod: number;
      readonly at: number;
    };

const ROWS = 12;
const FOR_MS = 20_000;

/** A sink whose answers are a play's, behind a queue of jobs of two rows. */
class Play {
  readonly state: Isolation = newIsolation();
  #nowMs = 0;
  /** Normal jobs that wait, by their rows. */
  #jobs: (readonly number[])[] = Array.from({ length: ROWS / 2 }, (_, i) => [2 * i, 2 * i + 1]);
  #underWay: ({ readonly rows: readonly number[] } | { readonly attempt: Attempt })[] = [];
  readonly #arrived = new Set<string>();
  readonly #refused = new Set<string>();
  readonly settled = new Map<number, Outcome>();

  get arrived(): number {
    return this.#arrived.size;
  }

  do(move: Move): void {
    if (move.do === "begin") this.#begin();
    else if (move.do === "wait") this.#nowMs += move.ms;
    else if (move.do === "answer") this.#answer(move);
    else {
      if (move.do === "give_up") this.#learn({ what: "given_up" });
      this.#lose(move.do === "lose" && move.isPublishing);
    }
  }

  /** From here on the server takes all. */
  end(): void {
    for (let i = 0; this.settled.size < ROWS && i < 5000; i++) {
      this.#nowMs += 250;
      if (isOverwhelmed(this.state)) this.#lose(false);
      this.#begin();
      this.#answer({ do: "answer", which: 0, how: "taken", size: 1, mod: 1, at: 0 });
    }
  }

  #begin(): void {
    this.#learn({ what: "time" });
    const due = nextApart(this.state, this.#nowMs, this.#underWay.length === 0);
    if (due && !("untilMs" in due)) {
      const attempt = attemptOf(due);
      this.#send(attempt.pieces.flatMap(keysOf));
      this.#learn({ what: "begun", attempt, gone: [], damaged: [], filtered: new Map() });
      this.#underWay.push({ attempt });
      return;
    }
    const rows = due ? undefined : this.#jobs.shift();
    if (!rows) return;
    const job = rows[0] ?? 0;
    if (isSuspected(this.state, job)) this.#learn({ what: "suspected", job, layout: 1, backlog: true, pieces: wholes(rows) });
    else {
      this.#send(wholes(rows).flatMap(keysOf));
      this.#underWay.push({ rows });
    }
  }

  /** Nothing is sent that has arrived, is dropped, or is under way. */
  #send(keys: readonly string[]): void {
    const flying = this.#underWay.flatMap((one) => ("rows" in one ? wholes(one.rows) : one.attempt.pieces).flatMap(keysOf));
    expect(keys.filter((key) => this.#arrived.has(key) || this.#refused.has(key) || flying.includes(key))).toEqual([]);
    expect(new Set(keys).size).toBe(keys.length);
  }

  #answer({ which, how, size, mod, at }: Extract<Move, { do: "answer" }>): void {
    const [one] = this.#underWay.splice(which % Math.max(1, this.#underWay.length), 1);
    if (!one) return;
    const keys = ("rows" in one ? wholes(one.rows) : one.attempt.pieces).flatMap(keysOf);
    const outright = how === "outright" ? keys.slice(0, at) : [];
    const messages = how === "taken" || how === "outright" ? [] : chunked(keys, size).filter((_, i) => i % mod === at % mod);
    const lists = how === "messages" ? messages : messages.length > 0 ? [messages.flat()] : [];
    const hold = how === "drop" || how === "isolate" ? { hold: { forMs: FOR_MS, next: how } } : undefined;
    const isPlain = "attempt" in one && one.attempt.due.what === "suspect";
    const refusals = lists.map((list) => ({ pieces: list.map(pieceOf), detail: "no", ...(!isPlain && hold) }));
    const refused = new Set([...outright, ...lists.flat()]);
    for (const key of keys) if (!refused.has(key)) this.#arrived.add(key);
    for (const key of outright) this.#refused.add(key);
    const answer = { refused: outright.length, detail: "no", refusals };
    if ("attempt" in one) this.#learn({ what: "tried", attempt: one.attempt, ...answer });
    else this.#written(one.rows, answer, keys.length - refused.size);
  }

  #written(rows: readonly number[], answer: Omit<Extract<Event, { what: "tried" }>, "what" | "attempt">, taken: number): void {
    let rest = answer.refused;
    const outcomes = new Map<number, Outcome>();
    for (const row of rows) {
      const mine = Math.min(rest, WIDTH);
      rest -= mine;
      const outcome = { delivered: WIDTH - mine, dropped: mine > 0 ? { refused: mine } : {} };
      if (answer.refusals.some(({ pieces }) => pieces.some((piece) => piece.row === row))) outcomes.set(row, outcome);
      else this.#settle(row, outcome);
    }
    this.#learn({ what: "written", job: rows[0] ?? 0, source: "a", layout: 1, backlog: true, taken, outcomes, ...answer });
  }

  #lose(isPublishing: boolean): void {
    const jobs = this.#underWay.flatMap((one) => ("rows" in one ? [one.rows] : []));
    this.#underWay = [];
    this.#jobs.unshift(...jobs);
    this.#learn({ what: "lost", jobs: jobs.map(([row = 0]) => row), why: "closed", isPublishing });
    this.#learn({ what: "opened" });
  }

  /** The state is plain data: a copy of it makes the same step. */
  #learn(event: Event): void {
    const copy = structuredClone({ state: this.state, event });
    const effects = step(this.state, event, this.#nowMs);
    expect(step(copy.state, copy.event, this.#nowMs)).toEqual(effects);
    expect(copy.state).toEqual(this.state);
    for (const effect of effects) if (effect.what === "settled" && effect.outcome) this.#settle(effect.row, effect.outcome);
  }

  #settle(row: number, outcome: Outcome): void {
    expect(this.settled.has(row)).toBe(false);
    const { delivered, dropped } = outcome;
    expect(delivered + (dropped.refused ?? 0)).toBe(WIDTH);
    expect(delivered).toBe(PLACES.filter((place) => this.#arrived.has(`${row}/${place}`)).length);
    this.settled.set(row, outcome);
  }
}

const keysOf = ({ row, from, to = WIDTH }: Counted): string[] =>
  PLACES.filter((place) => place >= from && place < to).map((place) => `${row}/${place}`);
const pieceOf = (key: string): Counted => {
  const [row = 0, from = 0] = key.split("/").map(Number);
  return { row, from, to: from + 1, values: 1 };
};
const chunked = (keys: readonly string[], size: number): string[][] =>
  Array.from({ length: Math.ceil(keys.length / size) }, (_, i) => keys.slice(i * size, (i + 1) * size));

const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 8, arbitrary: fc.constant({ do: "begin" as const }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(1, 400, 1000, 5000, FOR_MS) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("lose" as const), isPublishing: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant({ do: "give_up" as const }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("answer" as const),
      which: fc.nat(9),
      how: fc.constantFrom("taken", "outright", "messages", "drop", "isolate"),
      size: fc.integer({ min: 1, max: 8 }),
      mod: fc.integer({ min: 1, max: 3 }),
      at: fc.nat(9),
    }),
  },
);

test("whatever the server answers, nothing is lost, nothing is sent after it arrived, and the sums of the ledger are exact", () => {
  fc.assert(
    fc.property(fc.array(move, { minLength: 20, maxLength: 150, size: "max" }), (moves) => {
      const play = new Play();
      for (const one of moves) play.do(one);
      play.end();
      expect(play.settled.size).toBe(ROWS);
      expect([...play.settled.values()].reduce((sum, { delivered }) => sum + delivered, 0)).toBe(play.arrived);
      expect(play.state).toMatchObject({ suspects: [], underWay: [], heldPieces: 0 });
      expect([play.state.rows.size, play.state.splits.size]).toEqual([0, 0]);
    }),
    { numRuns: 60 },
  );
});
