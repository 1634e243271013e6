import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { atOnce } from "../../../src/base/timer.ts";
import type { Point } from "../../driver.ts";
import { type FileAddress, parseFileAddress } from "./address.ts";
import { FAMILIES, type FileFamily } from "./files.ts";
import { placeOf } from "./place.ts";
import { type FileRead, planFileSteps } from "./plan.ts";

const LIMITS = { fileBytes: 236, maxPoints: 65_536 };

function pointOf(text: string, index: number, family: FileFamily = "slc"): Point<FileAddress> {
  const { address, type } = parseFileAddress(text, undefined, "windows-1252");
  return { index, address: { ...address, place: placeOf(address, family) }, type };
}
const plan = (texts: readonly string[], limits = LIMITS, family: FileFamily = "slc"): FileRead[] =>
  atOnce(
    planFileSteps(
      texts.map((text, index) => pointOf(text, index, family)),
      limits,
    ),
  );
const names = (...of: Parameters<typeof plan>): string[] => plan(...of).map(({ item }) => item.name);

describe("a plan of data files", () => {
  it("joins elements of a file, with their members and bits, and what is between them", () => {
    expect(names(["N7:0", "N7:9", "N7:4/3", "N7:2{3}"])).toEqual(["N7:0..9"]);
    expect(names(["T4:2.ACC", "T4:0/DN", "T4:2"])).toEqual(["T4:0..2"]);
    expect(names(["N7:0", "N9:0", "B7:0"])).toEqual(["N7:0", "N9:0", "B7:0"]);
    expect(names(["B3/37", "B3:2", "B3:0"])).toEqual(["B3:0..2"]);
  });

  it("keeps slots of inputs apart, and takes those of a PLC-5 together", () => {
    expect(names(["I:1.0/7", "I:1.3", "I:2/1", "O:1"])).toEqual(["I:1.0..3", "I:2.0", "O:1.0"]);
    expect(names(["I:010/7", "I:017/1", "O:001"], LIMITS, "plc5")).toEqual(["I:010..017", "O:001"]);
  });

  it("fills requests up to the size, and gives a longer value one of its own", () => {
    expect(names(["N7:0", "N7:117", "N7:118"])).toEqual(["N7:0..117", "N7:118"]);
    expect(names(["N7:0{200}", "N7:250"])).toEqual(["N7:0..199", "N7:250"]);
    expect(names(["ST9:0", "ST9:1", "ST9:2"])).toEqual(["ST9:0..1", "ST9:2"]);
    expect(names(["ST9:0", "ST9:1"], { ...LIMITS, fileBytes: 82 })).toEqual(["ST9:0", "ST9:1"]);
  });

  const KINDS = [
    ["N7", 300, 2],
    ["F8", 200, 4],
    ["T4", 60, 6],
    ["ST9", 20, 84],
  ] as const;
  const some = fc.constantFrom(...KINDS).chain(([file, most, bytes]) => fc.nat(most).map((element) => ({ file, element, bytes })));
  const asked = fc.array(some, { maxLength: 80 });
  const sizes = fc.constantFrom(82, 100, 225, 234, 236);

  it("has each point once, within the size, whatever the order of the points (property)", () => {
    fc.assert(
      fc.property(asked, sizes, fc.constantFrom(...FAMILIES), fc.array(fc.nat()), (elements, fileBytes, family, shuffle) => {
        const texts = elements
          .map(({ file, element }) => `${file}:${element}`)
          .filter((text) => family !== "logix" || !text.startsWith("ST"));
        const points = texts.map((text, index) => pointOf(text, index, family));
        const limits = { ...LIMITS, fileBytes };
        const reads = atOnce(planFileSteps(points, limits));
        expect(reads.flatMap((read) => read.points.map(({ index }) => index)).sort((a, b) => a - b)).toEqual(texts.map((_, i) => i));
        for (const { item, points: own, offsets, decoders } of reads) {
          expect(item.bytes <= fileBytes || item.count === 1).toBe(true);
          expect([offsets.length, decoders.length]).toEqual([own.length, own.length]);
          for (const offset of offsets) expect(offset + item.kind.bytes).toBeLessThanOrEqual(item.bytes);
        }
        const other = points.toSorted(
          (a, b) => (shuffle[a.index % (shuffle.length || 1)] ?? 0) - (shuffle[b.index % (shuffle.length || 1)] ?? 0),
        );
        expect(atOnce(planFileSteps(other, limits))).toEqual(reads.map((read) => ({ ...read, decoders: expect.anything() })));
      }),
    );
  });

  it("has the fewest requests that a file can be read with (property)", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(300), { minLength: 1, maxLength: 60 }), sizes, (elements, fileBytes) => {
        const room = Math.floor(fileBytes / 2);
        // From the first element on, as far as an answer goes, and again from the first one behind it.
        let [fewest, end] = [0, -1];
        for (const element of elements.toSorted((a, b) => a - b))
          if (element > end) {
            fewest++;
            end = element + room - 1;
          }
        expect(
          plan(
            elements.map((element) => `N7:${element}`),
            { ...LIMITS, fileBytes },
          ),
        ).toHaveLength(fewest);
      }),
    );
  });

  it("begins a request with a point that has to be apart", () => {
    const points = ["N7:0", "N7:1", "N7:2"].map((text, index) => pointOf(text, index));
    const apart = new Set(points.slice(1, 2));
    expect(atOnce(planFileSteps(points, LIMITS, apart)).map(({ item }) => item.name)).toEqual(["N7:0", "N7:1..2"]);
  });
});
