import { describe, expect, it } from "vitest";
import { deviceMemory } from "../../test/support/driver-context.ts";
import { SilentHelp } from "./silent-help.ts";

const MINUTE = 60_000;

describe("help without an answer", () => {
  it("rests for a minute, then twice as long each time, an hour at most", () => {
    let now = 0;
    const help = new SilentHelp(deviceMemory(), () => now);
    const rests = Array.from({ length: 9 }, () => {
      help.silent("list", "no list");
      const restMs = help.msLeft("list");
      now += restMs;
      expect(help.isDue("list")).toBe(true);
      return restMs / MINUTE;
    });
    expect(rests).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
  });

  it("begins again with a minute once it was answered", () => {
    const help = new SilentHelp(deviceMemory(), () => 0);
    help.silent("list", "no list");
    help.silentAgain("list");
    expect(help.msLeft("list")).toBe(2 * MINUTE);
    help.answered("list");
    expect(help.isDue("list")).toBe(true);
    help.silent("list", "no list");
    expect(help.msLeft("list")).toBe(MINUTE);
  });

  it("outlives the session, each kind apart", () => {
    const memory = deviceMemory();
    new SilentHelp(memory, () => 0).silent("list", "no list");
    const next = new SilentHelp(memory, () => 1000);
    next.silent("slot 3", undefined);
    expect([next.isDue("list"), next.isDue("slot 3"), next.isDue("mark")]).toEqual([false, false, true]);
    next.answered("slot 3");
    expect(next.kinds).toEqual(["list"]);
    expect(new SilentHelp(memory, () => 1000).warnings()).toEqual([{ code: "help_silent", text: "no list", about: "list" }]);
  });

  it("says nothing of what a person would not miss", () => {
    const help = new SilentHelp(undefined, () => 0);
    help.silent("slot 3", undefined);
    expect(help.isDue("slot 3")).toBe(false);
    expect(help.warnings()).toEqual([]);
  });
});
