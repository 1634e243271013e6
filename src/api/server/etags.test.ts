import { expect, it } from "vitest";
import { matchesNone, requireMatch } from "./etags.ts";

const TAG = '"1-7"';

it.each<[string | undefined, boolean]>([
  [undefined, false],
  [TAG, true],
  [`W/${TAG}`, true],
  [`"1-6", W/${TAG}`, true],
  ["*", true],
  ['"1-6"', false],
  ['W/"1-6"', false],
])("If-None-Match %s is compared weakly", (header, isMatch) => expect(matchesNone(header, TAG)).toBe(isMatch));

it.each<[string | undefined, boolean]>([
  [undefined, true],
  [TAG, true],
  ['"1-7.Zm9v"', true],
  ["*", true],
  [`W/${TAG}`, false],
  ['"1-6"', false],
])("If-Match %s is compared strongly, whatever the status was", (header, passes) => {
  if (passes) requireMatch(header, TAG);
  else expect(() => requireMatch(header, TAG)).toThrow(/has changed since it was read/);
});
