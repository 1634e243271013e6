import { expect, test } from "vitest";
import { isBrokenOff } from "./broken-off.ts";

const BEFORE = "name;address\na;holding:10\nb;holding:20\n";
const brokenOff = (now: string, before = BEFORE) => isBrokenOff(Buffer.from(now), Buffer.from(before));

test.each([
  ["in an address", "name;address\na;holding:1", true],
  ["in the first line", "name;addr", true],
  ["behind a line, which an editor without a last line end may have made", "name;address\na;holding:10", false],
  ["with a line end", "name;address\na;holding:10\n", false],
  ["with nothing in it", "", false],
  ["in another text", "name;address\na;holding:9", false],
  ["as it was", BEFORE, false],
  ["without its last line end", BEFORE.slice(0, -1), false],
  ["longer than before", `${BEFORE}c;hol`, false],
])("a file that ends %s", (_, now, expected) => expect(brokenOff(now)).toBe(expected));

test("line ends of other systems", () => {
  expect(brokenOff("a\r\nb", "a\r\nb\r\nc\r\n")).toBe(false);
  expect(brokenOff("a\r", "a\r\nb\r\n")).toBe(false);
  const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, "utf16le");
  expect(isBrokenOff(utf16("a\n"), utf16("a\nb\n"))).toBe(false);
});
