import path from "node:path";
import process from "node:process";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Play } from "./play.ts";
import { expectWithin, playAll, played } from "./plays.ts";

const USUAL = { first: 1, plays: 100 } as const;
const FIRST_SEED = Number(process.env["CHAOS_SEED"] ?? USUAL.first);
const PLAYS = Number(process.env["CHAOS_PLAYS"] ?? USUAL.plays);
const DOC = path.resolve(import.meta.dirname, "../../docs/generated/chaos.md");

const HEADER = [
  "# What several troubles at once cost",
  "",
  `Written by \`test/chaos\`: the agent in a time of its own, ${USUAL.plays} plays that seeds make. A plant has 5 to 30 Modbus and S7 sources, alone on their device or behind gateways, of which some are busy with a dead request for 0.5 or 3 s. Three to eight of 31 kinds of trouble come at once, for 2 to 30 s: of a device, of a unit, of a place, and of the collector (a kill that leaves the files alone, a clock that jumps, changes of the configuration). Each value carries its device, unit, place, boot and time, so that a wrong one is recognised.`,
  "",
  "A source is healthy from 60 s after the end of a trouble that is about it until the next one begins, and loses a readout for each interval without a whole one. Healing is the time from the end of a trouble until each source that it was about is read as a whole, less three of its intervals; sources that another trouble is about are left out.",
  "",
  "| | samples | half | 95 % | 99 % | worst | target |",
  "| --- | --- | --- | --- | --- | --- | --- |",
] as const;

beforeEach(
  () =>
    void vi.useFakeTimers({
      toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date", "performance"],
    }),
);
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Plays that once failed, cut down to what it took. */
const NAMED: Readonly<Record<string, Omit<Play, "seed">>> = {
  "a request that was put off when its connection ended, and whose turn did not come again, had neither a value nor a fault": {
    devices: [{ type: "modbus_tcp", answerMs: 5, holdMs: 500, keepsConnection: true }],
    sources: [
      { device: 0, unit: 1, intervalMs: 1000, places: [0, 3] },
      { device: 0, unit: 2, intervalMs: 5000, places: [0, 1, 500, 501, 1000, 1003] },
    ],
    troubles: [{ kind: "resets", source: 0, fromMs: 16_941, untilMs: 46_359 }],
    lengthMs: 111_359,
  },
};

describe("plants with several troubles at once", () => {
  it.each(Object.entries(NAMED))("%s", async (_, play) => {
    await played({ seed: 0, ...play });
  });

  it("give no wrong value, cost the healthy little, and heal soon", { timeout: 600_000 }, async () => {
    const { measures, rows } = await playAll(FIRST_SEED, PLAYS);
    expectWithin(measures);
    if (FIRST_SEED === USUAL.first && PLAYS === USUAL.plays) await expect(`${[...HEADER, ...rows].join("\n")}\n`).toMatchFileSnapshot(DOC);
  });
});
