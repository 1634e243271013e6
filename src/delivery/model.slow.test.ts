import fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import type { SinkSpec } from "./messages.ts";
import { House, START_MS, STEP_MS, WAYS } from "./testing/house.ts";
import { mqttSpec } from "./testing/rig.ts";

/**
 * Store and delivery as the host wires them, in fake time. Each message between them waits until a step lets it through, so that sinks come,
 * go and change, threads end and values are committed in every order. Each sink gets all that was read while it was configured.
 */

/** Far below the time after which the watchdog attaches a sink again: nothing may need it. */
const SERVED_WITHIN_MS = 6000;
const UUIDS = ["a", "b", "c"] as const;

type Step =
  | { readonly do: "append" | "wait"; readonly n: number }
  | { readonly do: "sinks"; readonly uuids: readonly string[] }
  | { readonly do: "rename" | "lose"; readonly uuid: string }
  | { readonly do: "hold"; readonly ways: readonly number[] }
  | { readonly do: "deliver"; readonly way: number; readonly n: number }
  | { readonly do: "end_store" | "end_delivery" };

const uuid = fc.constantFrom(...UUIDS);
const way = fc.constantFrom(...WAYS);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("append" as const), n: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 9, arbitrary: fc.record({ do: fc.constant("wait" as const), n: fc.integer({ min: 0, max: 15 }) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("sinks" as const), uuids: fc.subarray([...UUIDS]) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("rename" as const), uuid }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("lose" as const), uuid }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("hold" as const), ways: fc.array(way, { maxLength: 2 }) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("deliver" as const), way, n: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("end_store" as const, "end_delivery" as const) }) },
);

async function perform(house: House, one: Step, renames: { count: number }): Promise<void> {
  if (one.do === "append") house.append(one.n);
  else if (one.do === "wait") await house.pass(one.n * STEP_MS);
  else if (one.do === "sinks") house.setSinks(one.uuids.map((id) => house.configured().find((spec) => spec.uuid === id) ?? specOf(id)));
  else if (one.do === "rename") {
    const name = `name ${++renames.count}`;
    house.setSinks(house.configured().map((spec) => (spec.uuid === one.uuid ? { ...spec, name } : spec)));
  } else if (one.do === "lose") house.loseSink(one.uuid);
  else if (one.do === "hold") house.hold(one.ways);
  else if (one.do === "deliver") house.deliver(one.way, one.n);
  else if (one.do === "end_store") house.endStore();
  else house.endDelivery();
}

const specOf = (id: string): SinkSpec => mqttSpec(1, { uuid: id, name: id }, { publish_interval: 50 });

afterEach(() => void vi.useRealTimers());

async function play(steps: readonly Step[]): Promise<void> {
  vi.useFakeTimers({ now: START_MS });
  const house = new House();
  const renames = { count: 0 };
  try {
    for (const one of steps) {
      await perform(house, one, renames);
      await vi.advanceTimersByTimeAsync(0);
    }
    house.hold([]);
    house.append(1);
    await house.pass(500);
    await house.pass(SERVED_WITHIN_MS, () => house.missing().length === 0 && house.pending() === 0);
    expect(house.missing()).toEqual([]);
    expect(house.pending()).toBe(0);
    expect(house.alarms).toEqual([]);
    expect(house.lines.filter(({ level }) => level === "error")).toEqual([]);
  } finally {
    await house.end();
    vi.useRealTimers();
  }
}

/** More of them by hand, where this room was changed. */
const RUNS = Number(process.env["MODEL_RUNS"] ?? 30);

/** The ids that the file reserves while no sink is there are not committed ones for a sink that attaches before the store has told of it. */
const FIRST_SINK: readonly Step[] = [
  { do: "wait", n: 5 },
  { do: "append", n: 1 },
  { do: "wait", n: 5 },
  { do: "end_delivery" },
  { do: "wait", n: 5 },
  { do: "hold", ways: [4] },
  { do: "sinks", uuids: ["b"] },
  { do: "wait", n: 5 },
  { do: "append", n: 3 },
  { do: "wait", n: 5 },
];

test("each sink gets all that was read while it was configured, in every order of changes, commits and threads that end", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60, size: "max" }), (steps) => play(steps)),
    { numRuns: RUNS, examples: [[[...FIRST_SINK]]] },
  );
}, 600_000);
