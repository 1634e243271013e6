import { expect, it } from "vitest";
import { ApiDeaths } from "./deaths.ts";

const HOUR_MS = 3_600_000;

it("tells of a death with its cause for an hour, and then no more", () => {
  const deaths = new ApiDeaths();
  expect(deaths.notes(0)).toEqual([]);
  deaths.add("out of memory", 1000);
  expect(deaths.notes(1000 + HOUR_MS)).toEqual([
    expect.stringMatching(/failed at 1970-01-01T00:00:01.000Z and was restarted; .*Cause: out of memory/),
  ]);
  expect(deaths.notes(1001 + HOUR_MS)).toEqual([]);
});

it("counts all of them", () => {
  const deaths = new ApiDeaths();
  deaths.add("one", 0);
  deaths.add("two", 5000);
  expect(deaths.notes(6000)).toEqual([expect.stringMatching(/it failed 2 times since the service started.*Cause: two/)]);
});
