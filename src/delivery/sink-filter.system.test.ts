import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { ReasonError } from "../model/reason.ts";
import { type AnySinkKind, copyReadout, type SinkBatch, type WriteResult } from "../sinks/sink.ts";
import { mqttSpec, type Rig, startRig } from "./testing/rig.ts";

/** A sink whose writes are `write`, with the filter. */
async function rigOf(settings: object, write: (batch: SinkBatch) => WriteResult): Promise<Rig> {
  const kind: AnySinkKind = {
    type: "mqtt",
    title: "one of this test",
    details: z.unknown(),
    settings: z.strictObject({}),
    delivery: "every",
    takesExploration: false,
    publishIntervalMs: () => 100,
    endpoint: () => "nowhere",
    open: async () => ({
      inFlight: 4,
      warnings: [],
      lost: new Promise<Error>(() => {}),
      write: async (batch) => write({ ...batch, readouts: Array.from(batch.readouts, copyReadout) }),
      close: () => Promise.resolve(),
    }),
  };
  const rig = await startRig(
    {},
    { sinks: { mqtt: { delivery: "every", takesExploration: false, kind: async () => ({ default: kind }) } } },
  );
  onTestFinished(() => rig.stop());
  rig.start(mqttSpec(1, { settings }));
  return rig;
}

const isExact = (rig: Rig): boolean => {
  const { accepted = 0, delivered = 0, filtered = 0, pending = 0, dropped = {} } = rig.sink() ?? {};
  return accepted === delivered + filtered + pending + (dropped.refused ?? 0);
};

test("a sink gets the variables that it takes, the rest is counted as filtered, and nothing waits", async () => {
  const taken = new Map<string, number>();
  const rig = await rigOf({ sources: ["press-*"], variables: ["*1", "*3"] }, ({ layout, readouts }) => {
    for (const { time, readings } of readouts)
      for (const [place, reading] of readings.entries())
        if (reading) taken.set(`${layout.source.name} ${layout.variables[place]?.name} ${time}`, 1);
    return { refused: 0 };
  });
  rig.append(30);
  rig.append(30, { source: "mill" });
  await expect.poll(() => [rig.sink()?.accepted, rig.sink()?.pending], { timeout: 10_000 }).toEqual([240, 0]);
  expect(rig.sink()).toMatchObject({ delivered: taken.size, filtered: 240 - taken.size });
  expect([...new Set([...taken.keys()].map((key) => key.split(" ").slice(0, 2).join(" ")))]).toEqual(["press-1 v1", "press-1 v3"]);
  expect(taken.size).toBe(60);
});

test("counts a row once that is taken apart: its dropped values, and those that the filter leaves out", async () => {
  const has = ({ readouts }: SinkBatch, value: number): boolean =>
    [...readouts].some(({ readings }) => readings.some((one) => one !== undefined && one.quality !== "bad" && one.value === value));
  const rig = await rigOf({ variables: ["*0", "*2"] }, (batch) => {
    // The third value of the readout with the number 7.
    if (batch.layout.source.name === "press-1" && has(batch, 9)) throw new ReasonError("CONNECTION_RESET", "reset");
    return { refused: 0 };
  });
  rig.append(8);
  const timer = setInterval(() => rig.append(1, { source: "press-2", timeOf: (number) => number, variables: 1 }), 200);
  onTestFinished(() => clearInterval(timer));
  await expect.poll(() => rig.sink()?.dropped.refused, { timeout: 60_000, interval: 50 }).toBeGreaterThan(0);
  clearInterval(timer);
  await expect.poll(() => rig.sink()?.pending, { timeout: 10_000 }).toBe(0);
  expect(isExact(rig)).toBe(true);
  expect(rig.sink()?.filtered).toBe(16);
}, 90_000);
