import { expect, it } from "vitest";
import { connectRefused } from "./refusal.ts";

const stepOf = (code: number, hasUser: boolean) => connectRefused("h:1883", "Not authorized", code, { sink: "hall-3", hasUser }).nextStep;

it("gives the password once more where a broker may refuse it, and only where a user was sent", () => {
  for (const code of [4, 5, 134, 135])
    expect(stepOf(code, true)).toMatch(/^Give the password once more: `sudo collector secret set hall-3`; if it is right, .*broker's log/);
  expect([stepOf(135, false), stepOf(133, true), stepOf(136, true)]).toEqual([undefined, undefined, undefined]);
});
