import { expect, test } from "vitest";
import { plainLayout, plainReadout } from "../../buffer/testing/readouts.ts";
import { createSizeLimit, partOf, partsWithin, wholeOf } from "./smaller.ts";

test("the limit is half of what was too large, not below 1 KiB, and doubles after ten minutes without a refusal", () => {
  let nowMs = 0;
  const limit = createSizeLimit(131_072, () => nowMs);
  expect(limit.bytes()).toBe(131_072);
  limit.tooLarge(100_000);
  expect(limit.bytes()).toBe(50_000);
  limit.tooLarge(120_000);
  expect(limit.bytes()).toBe(50_000);
  limit.tooLarge(10);
  expect(limit.bytes()).toBe(1024);
  const raised = [];
  for (let i = 0; i < 8; i++) {
    nowMs += 600_000;
    raised.push(limit.bytes());
  }
  expect([raised[0], raised[1], raised.at(-1)]).toEqual([2048, 4096, 131_072]);
});

test("a part of a batch has the readings of its parts, in their readouts and places", () => {
  const batch = { id: "e", layout: plainLayout(4), readouts: [plainReadout(4, 0), plainReadout(4, 10)], backlog: false };
  expect(wholeOf(batch)).toEqual([
    { readout: 0, from: 0, to: 4 },
    { readout: 1, from: 0, to: 4 },
  ]);
  const part = partOf(batch, [{ readout: 1, from: 1, to: 3 }], "e.1", 700);
  expect([part.id, part.maxMessageBytes]).toEqual(["e.1", 700]);
  expect([...part.readouts].map(({ readings }) => readings.map((reading) => reading !== undefined))).toEqual([
    [false, false, false, false],
    [false, true, true, false],
  ]);
  expect(partsWithin(wholeOf(batch), [{ readout: 1, from: 1, to: 3 }])).toEqual([{ readout: 1, from: 1, to: 3 }]);
});
