import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import Database from "better-sqlite3";
import { afterEach, expect, test } from "vitest";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { runCommand } from "../../src/commands/testing.ts";
import { apiOf } from "../support/api.ts";
import { startBuiltCollector } from "../support/built-collector.ts";
import type { CollectorProcess } from "../support/collector-process.ts";
import { freePort } from "../support/free-port.ts";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

interface Verified {
  readonly ok: boolean;
  readonly readouts: number;
  readonly unproved: number;
  readonly findings: readonly { readonly kind: string; readonly source: string; readonly time: string; readonly id: string }[];
}

test("collector verify names each readout that the embedded API has lost, changed or doubled, and none after kill -9", async () => {
  const plant = await startModbusPlant({
    units: new Map([[1, { holding: new Map([0, 1].map((n) => [n, (ms: number) => (n + Math.floor(ms)) & 0xffff])) }]]),
  });
  open.push(plant.close);
  const ports = { api: await freePort(), http: await freePort() };
  let dir: string | undefined;
  const start = async (): Promise<CollectorProcess> => {
    const started = await startBuiltCollector({
      ports,
      ...(dir !== undefined && { dir }),
      settings: { readout_interval_unit: "milliseconds", publish_interval_unit: "milliseconds" },
    });
    open.push(() => started.child.kill("SIGKILL"));
    dir = path.dirname(started.settingsFile);
    return started;
  };
  let collector = await start();
  const config = ["--config", collector.settingsFile];
  const api = apiOf(collector.apiUrl, await collector.adminKey());
  const added = await runCommand("sink", "add", "platform", "platform", "publish_interval=200", "manifest=true", ...config);
  expect([added.code, added.err]).toEqual([0, ""]);
  const { collector: uuid } = await collector.status();
  const details = { type: "modbus_tcp", host: "127.0.0.1", port: plant.port };
  const machine = "00000000-0000-4000-8000-000000000001";
  const { uuid: source } = await api.post("/v2/data-sources", { name: "press-1", collector: uuid, machine, details });
  await api.patch(`/v2/data-sources/${source}`, { readout_interval: 100 });
  for (const n of [0, 1]) await api.post("/ext/v1/variables", { data_source: source, name: `v${n}`, address: `holding:${n}` });
  const delivers = async (more: number): Promise<void> => {
    const delivered = async () => (await collector.status()).sinks[0]?.ledger?.delivered ?? 0;
    const before = await delivered();
    await expect.poll(delivered, { timeout: 20_000 }).toBeGreaterThan(before + more);
  };
  await delivers(20);
  await collector.kill();
  collector = await start();
  await delivers(20);

  const until = new Date().toISOString();
  // Delivery of later values shows that of earlier ones.
  await delivers(8);
  await delay(300);
  const verify = async (...words: string[]): Promise<Verified & { readonly code: number }> => {
    const { code, out, err } = await runCommand("verify", "platform", "--until", until, ...words, "--json", ...config);
    expect(out, err).not.toBe("");
    return { code, ...(JSON.parse(out) as Verified) };
  };
  const whole = await verify();
  expect(whole).toMatchObject({ code: 0, ok: true, findings: [], unproved: 0 });
  expect(whole.readouts).toBeGreaterThan(15);

  const values = new Database(path.join(path.dirname(collector.settingsFile), "state", "api", "values.db"));
  open.push(() => values.close());
  // The first readouts have one of the variables: the other was configured after them.
  const ofBoth = "SELECT time FROM samples WHERE time < ? GROUP BY time HAVING count(*) = 2 ORDER BY time";
  const times = values.prepare<[number], number>(ofBoth).pluck().all(Date.parse(until));
  const [gone = 0, partly = 0, changed = 0, doubled = 0] = times;
  // Extra readouts count from the first acknowledgement on, and so after the first batches.
  const copied = times.at(-4) ?? 0;
  const run = (sql: string, ...values_: readonly unknown[]) => expect(values.prepare(sql).run(...values_).changes).toBeGreaterThan(0);
  run("DELETE FROM samples WHERE time = ?", gone);
  run("DELETE FROM samples WHERE time = ? AND series = (SELECT min(id) FROM series)", partly);
  run("UPDATE samples SET value = '7.5' WHERE time = ? AND series = (SELECT min(id) FROM series)", changed);
  run(
    "INSERT INTO series (data_source, variable, collector, machine) SELECT data_source, upper(variable), collector, machine FROM series LIMIT 1",
  );
  const copy = "INSERT INTO samples (series, time, quality, value) SELECT";
  run(`${copy} (SELECT max(id) FROM series), time, quality, value FROM samples WHERE time = ? LIMIT 1`, doubled);
  run(`${copy} series, time + 1, quality, value FROM samples WHERE time = ?`, copied);
  const { code, findings } = await verify();
  const textOf = (ms: number): string => new Date(ms).toISOString();
  expect([code, findings.map(({ kind, source: name, time }) => [kind, name, time])]).toEqual([
    1,
    [
      ["missing", "press-1", textOf(gone)],
      ["incomplete", "press-1", textOf(partly)],
      ["different", "press-1", textOf(changed)],
      ["double", "press-1", textOf(doubled)],
      ["extra", "press-1", textOf(copied + 1)],
    ],
  ]);
  expect(await verify("--since", textOf(copied + 2))).toMatchObject({ code: 0, findings: [] });
}, 90_000);
