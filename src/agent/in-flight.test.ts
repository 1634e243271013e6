import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AnyDriver, AnySession, DriverContext, Request } from "../../drivers/driver.ts";
import { silentLog } from "../model/context.ts";
import { FaultError } from "../model/fault.ts";
import { Asking } from "./asking.ts";
import { type Brought, InFlight, judge, type Round } from "./in-flight.ts";

const round = (before: Brought, together: Brought, after: Brought = before, togetherMs = 10): Round => ({
  before,
  together,
  after,
  oneByOneMs: 20,
  togetherMs,
});
const A = ["1", "2", "3", "4"];
const B = ["5", "6", "7", "8"];

describe("a round of requests at once", () => {
  it("bring the same", () => expect(judge(round([A, B], [A, B]), new Set())).toBe("same"));

  it("bring the answer of another", () => {
    expect(judge(round([A, B], [B, A]), new Set())).toBe("other");
    const zeros = Array<string>(100).fill("0");
    const one = ["1", ...zeros.slice(1)];
    expect(judge(round([one, zeros], [zeros, one]), new Set())).toBe("other");
  });

  it("bring something that is nowhere", () => expect(judge(round([A, B], [["9", "9", "3", "4"], B]), new Set())).toBe("other"));

  it("bring more or fewer values", () => expect(judge(round([A, B], [A, B.slice(1)]), new Set())).toBe("other"));

  it("take longer", () => expect(judge(round([A, B], [A, B], [A, B], 31), new Set())).toBe("slower"));

  it("bring a value that moves, which proves nothing from then on", () => {
    const changing = new Set<string>();
    expect(judge(round([A, B], [["9", "2", "3", "4"], B], [["10", "2", "3", "4"], B]), changing)).toBe("same");
    expect(changing).toEqual(new Set(["0 0"]));
    expect(judge(round([A, B], [["11", "2", "3", "4"], B]), changing)).toBe("same");
  });

  it("show nothing where all values of one move", () => {
    const [first, second, third] = [1, 2, 3].map((by) => B.map((text) => `${text} ${by}`));
    expect(judge(round([A, first ?? []], [A, second ?? []], [A, third ?? []]), new Set())).toBe("unclear");
  });

  it("show nothing where all of them hold the same, or differ in what moves only", () => {
    const zeros = Array<string>(4).fill("0");
    expect(judge(round([zeros, zeros], [zeros, zeros]), new Set())).toBe("unclear");
    const first = ["7", ...zeros];
    const second = ["8", ...zeros];
    const moved = [
      ["1", ...zeros],
      ["2", ...zeros],
    ];
    expect(judge(round([first, second], [second, first], moved), new Set())).toBe("unclear");
    expect(judge(round([A, zeros, zeros], [A, zeros, zeros]), new Set())).toBe("unclear");
    expect(judge(round([A, B, zeros], [A, B, zeros]), new Set())).toBe("same");
  });

  it("are judged by values that one of them has and the others have not, where their lengths differ", () => {
    expect(
      judge(
        round(
          [
            ["0", "0", "1"],
            ["0", "0"],
          ],
          [
            ["0", "0", "1"],
            ["0", "0"],
          ],
        ),
        new Set(),
      ),
    ).toBe("unclear");
    expect(
      judge(
        round(
          [
            ["0", "0", "1"],
            ["0", "5"],
          ],
          [
            ["0", "0", "1"],
            ["0", "5"],
          ],
        ),
        new Set(),
      ),
    ).toBe("same");
  });

  it("are never taken for the same where a device gives one request the answer of another, whatever moves", () => {
    const texts = fc.array(fc.constantFrom("0", "1", "2"), { minLength: 6, maxLength: 6 });
    fc.assert(
      fc.property(texts, texts, (first, second) => {
        fc.pre(first.join("") !== second.join(""));
        expect(judge(round([first, second], [second, first]), new Set())).toBe("other");
      }),
    );
  });
});

/** Plays readouts that are whole, a second apart, and gives the numbers that were found. */
function play(inFlight: InFlight, seconds: number, verdictOf: (step: number) => "same" | "other" | "slower" | "unclear", most = 8) {
  const found: number[] = [];
  let known: { value: number; seenMs: number } | undefined;
  for (let s = 0; s < seconds; s++) {
    inFlight.readout(true);
    const step = inFlight.due(known, known?.value ?? 1, most, s * 1000);
    const value = step === undefined ? undefined : inFlight.round(verdictOf(step), s * 1000);
    if (value === undefined) continue;
    found.push(value);
    known = { value, seenMs: s * 1000 };
  }
  return found;
}

describe("requests at once", () => {
  it("are tried step by step, up to what may be asked", () => {
    expect(play(new InFlight(), 60, () => "same")).toEqual([2, 4, 8]);
    expect(play(new InFlight(), 60, () => "same", 4)).toEqual([2, 4]);
  });

  it("stay at the step below where they take longer, for a day", () => {
    expect(play(new InFlight(), 3600, (step) => (step === 8 ? "slower" : "same"))).toEqual([2, 4, 4]);
  });

  it("are not ended by a machine that was busy for a moment", () => {
    let rounds = 0;
    expect(play(new InFlight(), 60, () => (++rounds % 5 === 2 ? "slower" : "same"))).toEqual([2, 4, 8]);
  });

  it("end where an answer was another one, for a day", () => {
    expect(play(new InFlight(), 3600, (step) => (step === 4 ? "other" : "same"))).toEqual([2, 1]);
  });

  it("are given up where nothing stands still", () => expect(play(new InFlight(), 3600, () => "unclear")).toEqual([1]));

  it("are not tried where readouts fail", () => {
    const inFlight = new InFlight();
    for (let n = 0; n < 100; n++) {
      inFlight.readout(n % 9 !== 0);
      expect(inFlight.due(undefined, 1, 8, n * 1000)).toBeUndefined();
    }
  });
});

it("a trial ends with the last of its requests, each within the given time", async () => {
  let underWay = 0;
  let most = 0;
  const waited = new Set<number>();
  const session = {
    async read({ points }: Request, { timeouts }: DriverContext) {
      underWay++;
      most = Math.max(most, underWay);
      waited.add(timeouts.answerMs);
      await delay(5);
      const isRefused = most > 1 && points[0]?.index === 0;
      if (!isRefused) await delay(20);
      underWay--;
      if (isRefused) throw new FaultError("device_error", "busy", { scope: "busy" });
      return [{ quality: "good", value: 1 }];
    },
  } as unknown as AnySession;
  const requests = [0, 1].map((index): Request => ({ points: [{ index, address: index, type: { scalar: "uint16" } }] }));
  const ctx: DriverContext = {
    signal: new AbortController().signal,
    log: silentLog,
    timeouts: { nameMs: 1000, connectMs: 1000, answerMs: 3000 },
  };
  const asking = new Asking({} as AnyDriver, 2);
  expect(await asking.tryTogether(session, requests, ctx, 500, () => performance.now())).toBe("lost");
  expect([underWay, most, [...waited]]).toEqual([0, 2, [500]]);
});
