import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { parse, stringify } from "yaml";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { dashboard } from "../../package/monitoring/dashboard.ts";
import { addModbusSource, apiOf } from "../support/api.ts";
import { startBuiltCollector } from "../support/built-collector.ts";
import type { CollectorProcess } from "../support/collector-process.ts";
import { freePort } from "../support/free-port.ts";

/** The dashboard's queries and the alert rules, asked of a real Prometheus that scrapes the running collector. */

const RULES_FILE = path.resolve(import.meta.dirname, "../../package/monitoring/collector-alerts.yml");
const isMissing = ["prometheus", "promtool"].some((tool) => spawnSync(tool, ["--version"]).status !== 0);

interface Rule {
  readonly alert: string;
  readonly expr: string;
}
const RULES = (parse(readFileSync(RULES_FILE, "utf8")) as { groups: { rules: Rule[] }[] }).groups.flatMap(({ rules }) => rules);
const QUERIES = (dashboard() as { panels: { title: string; targets: { expr: string }[] }[] }).panels.flatMap(({ title, targets }) =>
  targets.map(({ expr }) => ({ title, expr: expr.replaceAll("$__rate_interval", "10s").replaceAll("$instance", ".*") })),
);
/** Panels that show nothing while nothing is wrong, or while there is no certificate yet. */
const MAY_BE_EMPTY = ["Lost, by reason", "Days until certificates end"];
/** The alerts that what is planted here sets off. */
const EXPECTED = ["CollectorSinkFailing", "CollectorSourceFailing"];
/** This machine's own, of which the test knows nothing. */
const OF_THE_MACHINE = ["CollectorClockUnsynchronised", "CollectorDiskFilling", "CollectorAlarm"];

interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

describe.skipIf(isMissing && process.env["COLLECTOR_REQUIRE_PARTS"] !== "1")("a real Prometheus", () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "collector-prometheus-"));
  const open: (() => unknown)[] = [];
  let collector: CollectorProcess;
  let prometheus: ChildProcess;
  let url: string;
  let revive: () => Promise<unknown>;

  const query = async (expr: string): Promise<readonly Sample[]> => {
    const answer = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expr)}`);
    const body = (await answer.json()) as { status: string; error?: string; data?: { result: Sample[] } };
    expect([body.status, body.error], expr).toEqual(["success", undefined]);
    return body.data?.result ?? [];
  };
  const alerting = async (): Promise<readonly string[]> => {
    const found = await Promise.all(RULES.map(async ({ alert, expr }) => ((await query(expr)).length > 0 ? [alert] : [])));
    return found
      .flat()
      .filter((alert) => !OF_THE_MACHINE.includes(alert))
      .sort();
  };

  beforeAll(async () => {
    const plant = await startModbusPlant({ units: new Map([[1, { holding: new Map([[0, 1]]) }]]) });
    open.push(plant.close);
    collector = await startBuiltCollector();
    open.push(() => collector.stop());
    const api = apiOf(collector.apiUrl, await collector.adminKey());
    const { collector: uuid } = await collector.status();
    const [deadPort, port] = [await freePort(), await freePort()];
    for (const [name, of] of Object.entries({ press: plant.port, dead: deadPort }))
      await addModbusSource(api, uuid, { name, port: of, readout_interval: 1, variables: { v: "holding:0" } });
    const details = { type: "mqtt", host: "127.0.0.1", port: await freePort(), topic: "t/{source}" };
    const sink = await api.post("/v2/data-sinks", { name: "broker", collector: uuid, details });
    revive = async () => {
      await api.remove(`/v2/data-sinks/${sink.uuid}`);
      const healed = await startModbusPlant({ port: deadPort, units: new Map([[1, { holding: new Map([[0, 1]]) }]]) });
      open.push(healed.close);
    };
    writeFileSync(
      path.join(folder, "prometheus.yml"),
      stringify({
        global: { scrape_interval: "1s", evaluation_interval: "1s" },
        rule_files: [RULES_FILE],
        scrape_configs: [{ job_name: "collector", static_configs: [{ targets: [new URL(collector.httpUrl).host] }] }],
      }),
    );
    url = `http://127.0.0.1:${port}`;
    const words = [
      `--config.file=${folder}/prometheus.yml`,
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
    ];
    prometheus = spawn("prometheus", [...words, "--log.level=warn"], { stdio: "ignore" });
    open.push(() => prometheus.kill("SIGKILL"));
    const isReady = () =>
      fetch(`${url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    await vi.waitUntil(isReady, { timeout: 30_000, interval: 100 });
  }, 90_000);
  afterAll(async () => {
    for (const close of open.splice(0).reverse()) await close();
    rmSync(folder, { recursive: true, force: true });
  }, 30_000);

  it("takes every query of the dashboard, and each panel shows something", async () => {
    const empty = async () => {
      const found = await Promise.all(QUERIES.map(async ({ title, expr }) => ((await query(expr)).length === 0 ? [title] : [])));
      return [...new Set(found.flat())].filter((title) => !MAY_BE_EMPTY.includes(title));
    };
    await expect.poll(empty, { timeout: 25_000, interval: 500 }).toEqual([]);
    const [why] = await query('collector_source_state{state="ERROR"}');
    expect(why?.metric).toMatchObject({ source: "dead", reason: "CONNECTION_REFUSED" });
  });

  it("finds by the alert rules what is planted, and nothing else", async () => {
    await expect.poll(alerting, { timeout: 25_000, interval: 500 }).toEqual(EXPECTED);
    expect(
      (await query(RULES.find(({ alert }) => alert === "CollectorSourceFailing")?.expr ?? "")).map(({ metric }) => metric["source"]),
    ).toEqual(["dead"]);
    const health = async (): Promise<readonly string[]> => {
      const { data } = (await (await fetch(`${url}/api/v1/rules`)).json()) as { data: { groups: { rules: { health: string }[] }[] } };
      return data.groups.flatMap(({ rules }) => rules.map((rule) => rule.health));
    };
    await expect.poll(health, { timeout: 20_000 }).toEqual(RULES.map(() => "ok"));
  });

  it("would fire those that last, with words of the collector, and not at once", async () => {
    const text = await (await fetch(`${collector.httpUrl}/metrics`)).text();
    const series = text
      .split("\n")
      .filter((line) => /^collector_(source|sink)_(up|state)/.test(line))
      .map((line) => ({ series: line.slice(0, line.lastIndexOf(" ")), values: `${line.slice(line.lastIndexOf(" ") + 1)}x20` }));
    const [, source = "{}"] = /^collector_source_up(\{source="dead".*\}) /m.exec(text) ?? [];
    const { source: name, type, uuid } = Object.fromEntries([...source.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]));
    const file = path.join(folder, "rules.test.yml");
    const fires = (evalTime: string, alerts: readonly object[]) => ({
      eval_time: evalTime,
      alertname: "CollectorSourceFailing",
      exp_alerts: alerts,
    });
    const alert = {
      exp_labels: { severity: "warning", source: name, type, uuid },
      exp_annotations: { summary: "dead (modbus_tcp) is not read", description: "Why, and what to do: collector status 'dead'" },
    };
    writeFileSync(
      file,
      stringify({
        rule_files: [RULES_FILE],
        evaluation_interval: "1m",
        tests: [{ interval: "1m", input_series: series, alert_rule_test: [fires("3m", []), fires("10m", [alert])] }],
      }),
    );
    expect(execFileSync("promtool", ["test", "rules", file], { encoding: "utf8" })).toContain("SUCCESS");
  });

  it("finds nothing once all is well again", async () => {
    await revive();
    await expect.poll(alerting, { timeout: 60_000, interval: 500 }).toEqual([]);
  }, 70_000);
});
