import { describe, expect, it } from "vitest";
import type { AnyDriver, Limits, Point, Request } from "../../drivers/driver.ts";
import { LearnedGroups } from "./learned-groups.ts";

const limits: Limits = { maxPoints: 100, maxBytes: 1000, inFlight: 1 };
const pointsOf = (count: number): readonly Point[] =>
  Array.from({ length: count }, (_, index) => ({ index, address: index, type: { scalar: "uint16" } }));

/** Plans hundreds of points; counts how often in one go, and the steps. */
function planning(hasSteps = true) {
  const counts = { inOneGo: 0, steps: 0 };
  const chunks = (points: readonly Point[]): Request[] =>
    Array.from({ length: Math.ceil(points.length / 100) }, (_, n) => ({ points: points.slice(n * 100, n * 100 + 100) }));
  const driver = {
    plan: (points: readonly Point[]) => {
      counts.inOneGo++;
      return chunks(points);
    },
    ...(hasSteps && {
      *planSteps(points: readonly Point[]) {
        for (let step = 0; step < 5; step++) {
          counts.steps++;
          yield;
        }
        return chunks(points);
      },
    }),
  } as unknown as AnyDriver;
  return { driver, counts };
}

describe("planning ahead", () => {
  it("plans many points in steps, once for the same points and limits, also after all that was learned is forgotten", async () => {
    const { driver, counts } = planning();
    const learned = new LearnedGroups(pointsOf(5000));
    await learned.prepare(driver, limits);
    expect(learned.plan(driver, limits)).toHaveLength(50);
    expect(learned.prepare(driver, { ...limits })).toBeUndefined();
    learned.forget();
    expect(learned.prepare(driver, limits)).toBeUndefined();
    expect(learned.plan(driver, limits)).toHaveLength(50);
    expect(counts).toEqual({ inOneGo: 0, steps: 5 });
    learned.use(pointsOf(3000));
    await learned.prepare(driver, limits);
    expect(learned.plan(driver, limits)).toHaveLength(30);
    await learned.prepare(driver, { ...limits, maxPoints: 50 });
    learned.plan(driver, { ...limits, maxPoints: 50 });
    expect(counts).toEqual({ inOneGo: 0, steps: 15 });
  });

  it("plans what is there by then, where the points have changed while it was planned", async () => {
    const { driver, counts } = planning();
    const learned = new LearnedGroups(pointsOf(5000));
    const planned = learned.prepare(driver, limits);
    learned.use(pointsOf(2000));
    await planned;
    expect(learned.plan(driver, limits)).toHaveLength(20);
    expect(counts.inOneGo).toBe(1);
  });

  it("has nothing to wait for with few points, or a driver that plans in one go", () => {
    expect(new LearnedGroups(pointsOf(1000)).prepare(planning().driver, limits)).toBeUndefined();
    expect(new LearnedGroups(pointsOf(5000)).prepare(planning(false).driver, limits)).toBeUndefined();
  });
});
