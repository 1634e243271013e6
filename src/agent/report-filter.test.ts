import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { atOnce } from "../base/timer.ts";
import type { Layout } from "../model/layout.ts";
import { parseDataType, type Reading, type Value } from "../model/value.ts";
import { ReportFilter } from "./report-filter.ts";
import { type ReportRules, ruleOf } from "./report-rules.ts";

const RULES: ReportRules = { deadband: 0, deadbandPart: 0, heartbeatMs: 60_000, keyEveryMs: 600_000, variables: [] };

const layoutOf = (...names: readonly string[]): Layout => typedOf("float64", ...names);
const typedOf = (type: string, ...names: readonly string[]): Layout => ({
  source: { uuid: "s", name: "press" },
  variables: names.map((name) => ({
    uuid: name,
    name,
    address: "",
    type: parseDataType(type) ?? { scalar: "float64" },
    unit: null,
    comment: null,
    exploration: false,
  })),
});
const good = (value: Value): Reading => ({ quality: "good", value });

/** A filter, and the places that it leaves unreported, by the readings of one readout after the other. */
function filterOf(rules: Partial<ReportRules> = {}, layout = layoutOf("a", "b")) {
  const filter = new ReportFilter({ ...RULES, ...rules });
  const look = (nowMs: number, readings: readonly (Reading | undefined)[], of = layout): readonly number[] => {
    const unchanged = atOnce(filter.unchanged(of, { time: 0, spanMs: 0, clockSynced: true, readings }, nowMs));
    return [...readings.keys()].filter((place) => unchanged?.[place] === 1);
  };
  return { filter, look };
}

describe("ReportFilter", () => {
  it("reports all of the first readout, and then what changes", () => {
    const { look } = filterOf();
    expect(look(0, [good(1), good(2)])).toEqual([]);
    expect(look(1000, [good(1), good(2)])).toEqual([0, 1]);
    expect(look(2000, [good(1), good(3)])).toEqual([0]);
    expect(look(3000, [undefined, good(3)])).toEqual([1]);
    expect(look(4000, [good(1), good(3)])).toEqual([0, 1]);
  });

  it.each<[string, string, Value, Value]>([
    ["bool", "bool", true, false],
    ["text", "string", "a", "b"],
    ["64-bit integer", "int64", 2n ** 60n, 2n ** 60n + 1n],
    ["array", "float64[2]", [1, 2], [1, 3]],
    ["shorter array", "float64[2]", [1, 2], [1]],
    ["array with an element that is no number", "float64[2]", [1, Number.NaN], [1, 2]],
  ])("knows a %s that is as before from one that is not", (_, type, before, now) => {
    const { look } = filterOf({}, typedOf(type, "a"));
    look(0, [good(before)]);
    expect(look(1, [good(before)])).toEqual([0]);
    expect(look(2, [good(now)])).toEqual([]);
    expect(look(3, [good(now)])).toEqual([0]);
  });

  it("keeps what an array held, and not the array", () => {
    const { look } = filterOf({}, typedOf("float64[2]", "a"));
    const array = [1, 2];
    look(0, [good(array)]);
    array[0] = 5;
    expect(look(1, [good(array)])).toEqual([]);
  });

  it("measures a deadband from the value that was reported: a slow drift is reported", () => {
    const { look } = filterOf({ deadband: 1 }, layoutOf("a"));
    const reported = Array.from({ length: 41 }, (_, i) => i / 4).filter((value, i) => look(i, [good(value)]).length === 0);
    expect(reported).toEqual([0, 1.25, 2.5, 3.75, 5, 6.25, 7.5, 8.75, 10]);
  });

  it("takes the larger of both deadbands, for 64-bit integers too", () => {
    const { look } = filterOf({ deadband: 2, deadbandPart: 0.1 }, layoutOf("a"));
    look(0, [good(100)]);
    expect([look(1, [good(110)]), look(2, [good(111)])]).toEqual([[0], []]);
    const long = filterOf({ deadband: 2, deadbandPart: 0.1 }, typedOf("int64", "a"));
    long.look(0, [good(10n)]);
    expect([long.look(1, [good(12n)]), long.look(2, [good(13n)])]).toEqual([[0], []]);
  });

  it("takes a value that its type cannot hold for a bad one", () => {
    const { look } = filterOf({ deadband: 5 }, typedOf("int16", "a"));
    look(0, [good(32_766)]);
    expect([look(1, [good(32_769)]), look(2, [good(32_766)]), look(3, [good(32_767)])]).toEqual([[], [], [0]]);
    const part = filterOf({ deadbandPart: 0.1 });
    part.look(0, [good(Number.POSITIVE_INFINITY), good(1)]);
    expect(part.look(1, [good(5), good(1)])).toEqual([1]);
  });

  it("reports the next reading of a variable that a key readout had none of", () => {
    const { look, filter } = filterOf();
    look(0, [good(1), good(2)]);
    filter.reportAll();
    expect(look(1, [undefined, good(2)])).toEqual([]);
    expect(look(2, [good(1), good(2)])).toEqual([1]);
  });

  it("reports what is bad each time, what follows it, a change of quality, and a value in doubt", () => {
    const { look } = filterOf({ deadband: 100 }, layoutOf("a"));
    const bad: Reading = { quality: "bad", fault: "no_answer" };
    look(0, [good(1)]);
    expect([look(1, [bad]), look(2, [bad]), look(3, [good(1)]), look(4, [good(1)])]).toEqual([[], [], [], [0]]);
    expect([look(5, [{ quality: "uncertain", value: 1 }]), look(6, [{ quality: "uncertain", value: 1 }])]).toEqual([[], [0]]);
    const doubted: Reading = { quality: "uncertain", value: [1], doubt: { fault: "not_a_number", detail: "element 1 is NaN" } };
    expect([look(7, [doubted]), look(8, [doubted])]).toEqual([[], []]);
  });

  it("is never silent for longer than the heartbeat, and reports all of a key readout at once", () => {
    const { look, filter } = filterOf({ heartbeatMs: 10_000, keyEveryMs: 25_000 });
    const key = [good(1), good(2)];
    look(0, key);
    expect(look(5000, [good(9), good(2)])).toEqual([1]);
    expect(look(10_000, [good(9), good(2)])).toEqual([0]);
    expect(look(15_000, [good(9), good(2)])).toEqual([1]);
    expect(look(25_000, [good(9), good(2)])).toEqual([]);
    expect(look(25_001, [good(9), good(2)])).toEqual([0, 1]);
    filter.reportAll();
    expect(look(25_002, [good(9), good(2)])).toEqual([]);
    expect(look(25_003, [good(9), good(2)], layoutOf("a", "b"))).toEqual([]);
  });

  it("has rules of their own for variables by name", () => {
    const variables = [
      { pattern: "temp_*", rule: { deadband: 5 } },
      { pattern: "*count*", rule: null },
    ];
    const { look } = filterOf({ variables }, layoutOf("temp_1", "piece_counter", "rest"));
    look(0, [good(1), good(1), good(1)]);
    expect(look(1, [good(6), good(1), good(1)])).toEqual([0, 2]);
    expect(look(2, [good(6.5), good(1), good(2)])).toEqual([]);
    expect(ruleOf({ ...RULES, variables }, "temp_9")).toEqual({ deadband: 5, deadbandPart: 0, heartbeatMs: 60_000 });
  });

  it("leaves out nothing but what differs from the value reported last by no more than the deadband", () => {
    const value = fc.constantFrom(0, 1, 2.5, -3, Number.NaN);
    const reading = fc.oneof(
      { weight: 8, arbitrary: value.map(good) },
      fc.constant<Reading>({ quality: "bad", fault: "stale" }),
      fc.constant(undefined),
    );
    const steps = fc.array(fc.tuple(fc.nat(4000), reading, reading), { maxLength: 60 });
    fc.assert(
      fc.property(steps, fc.constantFrom(0, 1, 3), (all, deadband) => {
        const { look } = filterOf({ deadband, heartbeatMs: 10_000 });
        const reported: ({ reading: Reading; atMs: number } | undefined)[] = [undefined, undefined];
        let nowMs = 0;
        for (const [ms, ...readings] of all) {
          nowMs += ms;
          const left = look(nowMs, readings);
          for (const [place, now] of readings.entries()) {
            const before = reported[place];
            if (!left.includes(place)) {
              if (now) reported[place] = { reading: now, atMs: nowMs };
              continue;
            }
            expect(now?.quality).toBe("good");
            expect(before?.reading.quality).toBe("good");
            expect(nowMs - (before?.atMs ?? 0)).toBeLessThan(10_000);
            const [is, was] = [now, before?.reading].map((one) => (one && one.quality !== "bad" ? one.value : undefined));
            if (typeof is === "number" && typeof was === "number") expect(Math.abs(is - was)).toBeLessThanOrEqual(deadband);
            else if (typeof is === "bigint" && typeof was === "bigint") expect(Number(is - was)).toBeLessThanOrEqual(deadband);
            else expect(is).toBe(was);
          }
        }
      }),
    );
  });
});

it("finds what a part of a readout need not report, and leaves the key readout to the whole one", () => {
  const filter = new ReportFilter({ ...RULES, deadband: 1, keyEveryMs: 10_000 });
  const layout = layoutOf("a", "b");
  const look = (nowMs: number, readings: readonly (Reading | undefined)[], isPart: boolean): readonly number[] => {
    const unchanged = atOnce(filter.unchanged(layout, { time: 0, spanMs: 0, clockSynced: true, readings }, nowMs, isPart));
    return [...readings.keys()].filter((place) => unchanged?.[place] === 1);
  };
  expect(look(0, [good(1), undefined], true)).toEqual([]);
  expect(look(0, [good(1), good(5)], false)).toEqual([]);
  expect(look(1000, [good(1.5), undefined], true)).toEqual([0]);
  expect(look(1000, [good(3), undefined], true)).toEqual([]);
  expect(look(1000, [good(3), good(5)], false)).toEqual([0, 1]);
  expect(look(10_000, [good(3), undefined], true)).toEqual([0]);
  expect(look(10_000, [good(3), good(5)], false)).toEqual([]);
});
