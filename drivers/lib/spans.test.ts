import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { groupSpans, type Span } from "./spans.ts";

const spans = fc.array(fc.record({ start: fc.nat(300), length: fc.integer({ min: 1, max: 20 }) }), { maxLength: 60 });
const limits = fc.record({ length: fc.integer({ min: 1, max: 125 }), gap: fc.nat(30), count: fc.integer({ min: 1, max: 40 }) });
const itself = (span: Span) => span;

describe("groupSpans", () => {
  it("joins neighbours, bridges a gap, and begins again beyond it", () => {
    const items = [
      { start: 0, length: 2 },
      { start: 2, length: 1 },
      { start: 7, length: 2 },
      { start: 14, length: 1 },
    ];
    const groups = groupSpans(items, itself, { length: 125, gap: 4, count: 100 });
    expect(groups.map(({ start, length }) => [start, length])).toEqual([
      [0, 9],
      [14, 1],
    ]);
  });

  it("leaves an item that is longer than a group by itself", () => {
    const groups = groupSpans(
      [
        { start: 0, length: 200 },
        { start: 10, length: 1 },
      ],
      itself,
      { length: 125, gap: 4, count: 100 },
    );
    expect(groups.map(({ start, length }) => [start, length])).toEqual([
      [0, 200],
      [10, 1],
    ]);
  });

  it("holds every item once and whole, within the limits, bridging no gap above the limit", () => {
    fc.assert(
      fc.property(spans, limits, (items, limit) => {
        const groups = groupSpans(items, itself, limit);
        expect(new Set(groups.flatMap((group) => group.items))).toEqual(new Set(items));
        expect(groups.reduce((n, group) => n + group.items.length, 0)).toBe(items.length);
        for (const { start, length, items: members } of groups) {
          expect(members.length).toBeLessThanOrEqual(limit.count);
          if (members.length > 1) expect(length).toBeLessThanOrEqual(limit.length);
          expect(start).toBe(Math.min(...members.map((span) => span.start)));
          expect(start + length).toBe(Math.max(...members.map((span) => span.start + span.length)));
          let end = start;
          for (const span of members) {
            expect(span.start - end).toBeLessThanOrEqual(limit.gap);
            end = Math.max(end, span.start + span.length);
          }
        }
      }),
    );
  });

  it("gives the same groups whatever the order", () => {
    fc.assert(
      fc.property(
        spans.chain((items) => fc.tuple(fc.constant(items), fc.shuffledSubarray(items, { minLength: items.length }))),
        limits,
        ([items, shuffled], limit) => {
          const shape = (list: readonly Span[]) =>
            groupSpans(list, itself, limit).map(({ start, length, items: { length: n } }) => [start, length, n]);
          expect(shape(shuffled)).toEqual(shape(items));
        },
      ),
    );
  });
});
