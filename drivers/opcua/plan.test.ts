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
