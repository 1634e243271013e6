import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { simulation } from "../../../simulators/main.ts";
import { temporaryFolder } from "../../api/server/testing.ts";
import type { SimulatedFault } from "../../model/simulation.ts";
import { EXIT } from "../io.ts";
import { runCommandWith, settingsFile } from "../testing.ts";

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const ADDRESSES = ["holding:0:float32", "holding:2", "holding:10:uint32", "holding:12:uint64", "coil:0"];

/** `collector probe --habits` of a simulated press with this fault. */
async function probed(faults: readonly SimulatedFault[], ...words: readonly string[]) {
  const press = simulation.machines.find(({ type }) => type === "modbus_tcp");
  const running = await press?.start({ host: "127.0.0.1", port: 0, faults });
  if (!running) throw new Error("there is no simulated press");
  cleanUp.push(() => running.close());
  await running.plant(faults);
  const folder = temporaryFolder();
  const config = settingsFile(folder, {});
  writeFileSync(join(folder, "policy.yaml"), "sources: {networks: [127.0.0.0/8]}\n");
  const device = ["modbus_tcp", "host=127.0.0.1", `port=${running.port}`, "answer_timeout=200ms"];
  const all = ["probe", ...device, ...words, "--habits", "--config", config];
  const run = (...more: string[]) => runCommandWith({ env: { HOME: folder } }, ...all, ...more);
  return { run };
}

describe("probe --habits", () => {
  it.each([
    ["deaf", "deaf_at_first", "repeat_first", ["max_gap=0"]],
    ["hurried", "pause", "min_pause", ["max_gap=0", "ephemeral_connections=false"]],
    ["one-at-a-time", "one_in_flight", "in_flight", ["max_gap=0", "in_flight=4"]],
    ["short-blocks", "small_blocks", "max_registers", ["ephemeral_connections=false"]],
  ] as const)("finds of a device that is %s: %s, with the setting %s", async (fault, habit, setting, settings) => {
    const { run } = await probed([fault], ...settings, ...ADDRESSES);
    const { code, out, err } = await run("--json");
    const found = JSON.parse(out) as { habits: readonly { name: string; settings: object }[]; good: number };
    expect([code, err]).toEqual([EXIT.good, ""]);
    expect(found.habits.map(({ name }) => name)).toEqual([habit]);
    expect(Object.keys(found.habits[0]?.settings ?? {})).toContain(setting);
    expect(found.good).toBe(ADDRESSES.length);
  });

  it("says of a device without any that it is read as it is configured", async () => {
    const { run } = await probed([], ...ADDRESSES);
    const { code, out } = await run();
    expect(code).toBe(EXIT.good);
    expect(out).toMatch(/^modbus_tcp 127\.0\.0\.1:\d+: 5 of 5 variables read in the last of \d readouts/);
    expect(out).toContain("It has none of the habits");
  });

  it("needs variables, and says so", async () => {
    const { run } = await probed([]);
    const { code, err } = await run();
    expect(code).toBe(EXIT.usage);
    expect(err).toContain("--habits needs variables to read");
  });
});
