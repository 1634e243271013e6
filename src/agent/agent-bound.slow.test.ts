import path from "node:path";
import { expect, it } from "vitest";
import { DRIVERS } from "../../drivers/index.ts";
import { startSimulator } from "../../drivers/vendor_b/simulator.ts";
import { plant, running, source, variable } from "../../test/support/agent.ts";
import { loadProfile } from "../configuration/profile-file.ts";
import { unboundWords } from "../model/binding.ts";
import { codesOf, textsOf } from "../model/testing/warnings.ts";

const PROFILE = loadProfile(path.resolve(import.meta.dirname, "../../drivers/vendor_b/example-profile.yaml"));

it("says of an unbound type what is missing while all else runs, and reads it once it is bound, as after a fresh start", async () => {
  const [device, moulder] = [await plant(), await startSimulator()];
  const { agent, of, report } = running({ drivers: DRIVERS });
  const details = { type: "vendor_b", host: "127.0.0.1", port: moulder.port, machine: "C5", initialization_mode: "Default" };
  const base = source(1, moulder.port);
  const variables = [variable(1, 1, "parts"), variable(1, 2, "level/3"), variable(1, 3, "cycle_time")];
  const bound = (local: Readonly<Record<string, unknown>>, more: object = {}) => ({
    ...base,
    record: { ...base.record, type: "vendor_b", details: { ...details, ...more } },
    variables,
    local,
  });
  await agent.apply([bound({}), source(2, device.port)]);
  await expect.poll(() => of("machine-2").length).toBeGreaterThan(2);
  const unbound = { reason: { type: "UNKNOWN" }, condition: "type_not_supported", detail: unboundWords("vendor_b") };
  expect(report(1)).toMatchObject({ status: { state: { type: "ERROR", reason: { type: "UNKNOWN" } } }, error: unbound });

  await agent.apply([bound({ profile: PROFILE }, { machine: "C9" }), source(2, device.port)]);
  await expect
    .poll(() => report(1)?.error)
    .toMatchObject({ condition: "configuration_invalid", detail: expect.stringContaining("machine") });
  await agent.apply([bound({ profile: { problem: "x.yaml:3: for: is required" } }), source(2, device.port)]);
  await expect.poll(() => report(1)?.error?.detail).toContain("x.yaml:3: for: is required");

  await agent.apply([bound({ profile: PROFILE }), source(2, device.port)]);
  await expect
    .poll(() => of("machine-1").at(-1)?.readout.readings)
    .toEqual([
      { quality: "good", value: 70_000 },
      { quality: "good", value: -3 },
      { quality: "good", value: 12.34 },
    ]);
  expect(report(1)).toMatchObject({ status: { state: { type: "OK" } } });
  expect(codesOf(report(1)?.warnings)).toContain("profile_unverified");
  expect(textsOf(report(1)?.warnings)).toEqual([expect.stringContaining("has been verified on no device")]);
  expect(report(2)?.counters.failed_readouts).toBe(0);
  await agent.apply([]);
  await moulder.close();
});
