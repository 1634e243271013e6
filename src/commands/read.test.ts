import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { EXIT } from "./io.ts";
import { runCommand } from "./testing.ts";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function readBeside(policy: string | undefined, host = "127.0.0.1") {
  const folder = mkdtempSync(join(tmpdir(), "collector-read-"));
  open.push(() => rmSync(folder, { recursive: true }));
  if (policy !== undefined) writeFileSync(join(folder, "policy.yaml"), policy);
  const plant = await startModbusPlant({ units: new Map([[1, { holding: new Map([[0, 7]]) }]]) });
  open.push(plant.close);
  const words = ["read", "modbus_tcp", `host=${host}`, `port=${plant.port}`, "holding:0", "--json"];
  const { code, out, err } = await runCommand(...words, "--config", join(folder, "collector.yaml"));
  return { exit: code, err, answer: out === "" ? undefined : JSON.parse(out), accepted: plant.accepted() };
}

describe("read and the policy of the machine", () => {
  it("reads any address where there is no policy file", async () => {
    const { exit, answer } = await readBeside(undefined);
    expect([exit, answer.values[0].value]).toEqual([EXIT.good, 7]);
  });

  it("connects to nothing that the policy does not open, a name included", async () => {
    for (const host of ["127.0.0.1", "localhost"]) {
      const { exit, answer, accepted } = await readBeside("sources: {networks: [10.0.0.0/8]}\n", host);
      expect(exit).toBe(EXIT.sourceFailed);
      expect(answer).toMatchObject({
        reason: { type: "UNKNOWN" },
        condition: "forbidden_by_policy",
        detail: expect.stringContaining("sources.networks"),
      });
      expect(accepted).toBe(0);
    }
  });

  it("reads what the policy opens", async () => {
    const { exit } = await readBeside("sources: {networks: [127.0.0.0/8, '::1']}\n");
    expect(exit).toBe(EXIT.good);
  });

  it("opens nothing where the policy cannot be read", async () => {
    const { exit, err, accepted } = await readBeside("sources: {networks: [everywhere]}\n");
    expect([exit, accepted]).toEqual([EXIT.usage, 0]);
    expect(err).toMatch(/policy\.yaml: sources\.networks/);
  });
});
