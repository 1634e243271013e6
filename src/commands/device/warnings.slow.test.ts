import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FinsSimulator, startSimulator } from "../../../drivers/fins/simulator.ts";
import { temporaryFolder } from "../../api/server/testing.ts";
import { runCommand } from "../testing.ts";

/** A CS1 or newer, which the words call a Classic, with an option that has no effect over TCP. */
let device: FinsSimulator;
beforeAll(async () => {
  device = await startSimulator();
});
afterAll(() => device.close());

const OF_CONFIGURATION = { code: "setting_without_effect", severity: "note", about: "local_port" };
const OF_SESSION = { code: "model_contradicts", severity: "warning", about: "target_plc" };

function run(verb: string, ...more: readonly string[]) {
  const at = ["host=127.0.0.1", `port=${device.port}`, "transport=tcp", "local_port=9601"];
  const route = ["local_address=0.0.0", "remote_address=0.0.0", "target_plc=Classic"];
  return runCommand(verb, "fins", ...at, ...route, "D0", ...more, "--config", join(temporaryFolder(), "collector.yaml"));
}

describe.each(["probe", "read"])("collector %s", (verb) => {
  it("prints the warnings of configuration and session", async () => {
    const { out } = await run(verb);
    expect(out).toMatch(/\n {2}Note: local_port 9601 has no effect/);
    expect(out).toMatch(/\n {2}Note: the controller is a CP1L\S*: set target_plc to Cs1OrNewer\n/);
  });

  it("has them in JSON as status has them", async () => {
    const { out } = await run(verb, "--json");
    const { warnings } = JSON.parse(out);
    expect(warnings).toEqual([expect.objectContaining(OF_CONFIGURATION), expect.objectContaining(OF_SESSION)]);
  });
});

it("collector read prints a warning once, not with each pass", async () => {
  const { out } = await run("read", "--count", "3", "--interval", "10ms");
  expect(out.split("has no effect")).toHaveLength(2);
});
