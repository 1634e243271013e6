import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startModbusPlant } from "../../../drivers/modbus_tcp/simulator.ts";
import { startBroker } from "../../../test/support/broker.ts";
import { builtCollector, startBuiltCollector } from "../../../test/support/built-collector.ts";
import { temporaryFolder } from "../../api/server/testing.ts";

const MAX_COMMANDS = 10;

test("from nothing to values at the broker with at most ten commands, no JSON and no uuid typed", { timeout: 60_000 }, async () => {
  const registers = new Map(Array.from({ length: 10 }, (_, n) => [n, () => 100 + n] as const));
  const plant = await startModbusPlant({ port: 0, units: new Map([[1, { holding: registers }]]) });
  onTestFinished(() => plant.close());
  const broker = await startBroker({});
  onTestFinished(() => broker.stop());
  const csv = join(temporaryFolder(), "press-1.csv");
  const lines = Array.from({ length: 10 }, (_, n) => `r${n};holding:${n};uint16;${n === 3 ? "0,1" : ""}`);
  writeFileSync(csv, `name;address;type;factor\n${lines.join("\n")}\n`);

  // The first command is the service's own start.
  const collector = await startBuiltCollector();
  onTestFinished(() => void collector.stop());
  await collector.adminKey();
  const program = await builtCollector();
  const typed = ["collector run"];
  const type = (...words: string[]): Promise<string> => {
    typed.push(["collector", ...words].join(" "));
    return new Promise((resolve, reject) =>
      execFile(program, [...words, "--config", collector.settingsFile], (error, stdout, stderr) =>
        error ? reject(new Error(`${words.join(" ")}: ${stdout}${stderr}`)) : resolve(stdout),
      ),
    );
  };
  await type("sink", "add", "plant", "mqtt", "host=127.0.0.1", `port=${broker.port}`, "topic=plant/{source}");
  await type("source", "add", "press-1", "modbus_tcp", "host=127.0.0.1", `port=${plant.port}`, "--interval", "1s");
  expect(await type("variables", "import", "press-1", csv)).toContain("10 created");

  const values = () => {
    const payload = broker.received.findLast(({ topic }) => topic === "plant/press-1")?.payload;
    const { readouts } = JSON.parse(payload ?? '{"readouts":[]}') as { readonly readouts: readonly { readonly values: object }[] };
    return readouts.at(-1)?.values;
  };
  await expect
    .poll(values, { timeout: 30_000 })
    .toEqual({ r0: 100, r1: 101, r2: 102, r3: 10.3, r4: 104, r5: 105, r6: 106, r7: 107, r8: 108, r9: 109 });
  expect(await type("source", "list")).toContain("press-1");
  expect(typed.length).toBeLessThanOrEqual(MAX_COMMANDS);
  expect(typed.join("\n")).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}|[{"]\s*"/);

  // A sink that nobody answers for is its own trouble: the others go on.
  await type("sink", "add", "ahead", "mqtt", "host=127.0.0.1", "port=1", "topic=ahead");
  await expect.poll(async () => (await collector.status()).sinks.length, { timeout: 20_000 }).toBe(2);
  const count = broker.received.length;
  await expect.poll(() => broker.received.length, { timeout: 20_000 }).toBeGreaterThan(count + 1);
});
