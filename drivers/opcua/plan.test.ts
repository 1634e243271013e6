import fc from "fast-check";
import { expect, it } from "vitest";
import { parseAddress } from "./address.ts";
import { plan } from "./plan.ts";

it("puts every point into one request, in order, none above the limit", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(500)), fc.integer({ min: 1, max: 50 }), (indexes, maxPoints) => {
      const points = indexes.map((index) => ({ index, ...parseAddress(`i=${index}`, undefined) }));
      const requests = plan(points, { maxPoints, maxBytes: 1000, inFlight: 1 });
      expect(requests.flatMap((request) => request.points.map((point) => point.index))).toEqual([...indexes].sort((a, b) => a - b));
      for (const request of requests) expect(request.points.length).toBeLessThanOrEqual(maxPoints);
      expect(requests.length).toBe(Math.ceil(indexes.length / maxPoints));
    }),
  );
});

it("asks for variables that are parts of one node together", () => {
  const point = (index: number, id: number, field?: string) => ({
    index,
    address: { kind: "resolved" as const, namespace: 2, id: { type: "i" as const, value: id }, ...(field && { select: [{ field }] }) },
    type: { scalar: "auto" } as const,
  });
  const points = [point(0, 1, "a"), point(1, 2), point(2, 3, "a"), point(3, 1, "b"), point(4, 1), point(5, 3, "b")];
  const indexes = (maxPoints: number, apart: readonly number[] = []) =>
    plan(points, { maxPoints, maxBytes: 1000, inFlight: 1 }, new Set(points.filter(({ index }) => apart.includes(index)))).map((request) =>
      request.points.map(({ index }) => index),
    );
  expect(indexes(100)).toEqual([[0, 3, 4, 1, 2, 5]]);
  expect(indexes(4)).toEqual([
    [0, 3, 4, 1],
    [2, 5],
  ]);
  expect(indexes(2)).toEqual([
    [0, 3],
    [4, 1],
    [2, 5],
  ]);
  expect(indexes(100, [4])).toEqual([
    [0, 3],
    [4, 1, 2, 5],
  ]);
});
