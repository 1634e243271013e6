import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { startModbusPlant } from "../../../drivers/modbus_tcp/simulator.ts";
import { EXIT } from "../io.ts";
import { runCommand } from "../testing.ts";

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
        detail: expect.stringContaining("add `loopback: true` to sources in "),
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
    expect(err).toMatch(/policy\.yaml:1: sources\.networks\.0: expected/);
  });
});

describe("read of a device of which a part does not answer", () => {
  const holding = new Map([0, 1, 2, 3, 4].map((at) => [at, at * 11] as const));
  const units = new Map([1, 2].map((unit) => [unit, { holding }] as const));

  async function readAround(misbehave: Parameters<typeof startModbusPlant>[0]["misbehave"], ...addresses: string[]) {
    const plant = await startModbusPlant({ units, ...(misbehave && { misbehave }) });
    open.push(plant.close);
    const words = ["read", "modbus_tcp", "host=127.0.0.1", `port=${plant.port}`, "answer_timeout=300ms", ...addresses, "--json"];
    const { code, out } = await runCommand(...words);
    return { code, values: JSON.parse(out).values as { value: unknown; fault?: string }[] };
  }

  it("shows what the other unit answers, over a new connection", async () => {
    const { code, values } = await readAround(({ unit }) => (unit === 1 ? { silent: true } : undefined), "1/holding:0", "2/holding:1");
    expect(code).toBe(EXIT.variableBad);
    expect(values).toMatchObject([{ value: null, fault: "no_answer" }, { value: 11 }]);
  });

  it.each([{ hangUp: "rst" as const }, { silent: true as const }])("shows what can be read next to an address with %j", async (odd) => {
    const bad = ({ start, count }: { start: number; count: number }) => (start <= 2 && start + count > 2 ? odd : undefined);
    const { code, values } = await readAround(bad, "holding:0", "holding:2", "holding:4", "2/holding:1");
    expect(code).toBe(EXIT.variableBad);
    expect(values).toMatchObject([{ value: 0 }, { value: null, fault: "no_answer" }, { value: 44 }, { value: 11 }]);
  });
});
