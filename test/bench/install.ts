import { execFileSync, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { apiOf } from "../support/api.ts";
import { type CollectorProcess, startCollector } from "../support/collector-process.ts";
import { figuresOf } from "../support/process-figures.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const NODE = path.join(ROOT, "bin/collector-node");
const STARTS = 5;
const VARIABLES = 2000;
const SETTLE_S = 20;
const MIB = 2 ** 20;

/** What an installation costs: the packages, the start, the memory, and what the unit exposes. Started from the package's own files. */
export async function benchInstall(): Promise<void> {
  const dir = mkdtempSync(path.join(os.tmpdir(), "collector-bench-"));
  try {
    execFileSync(NODE, [path.join(ROOT, "package/package.ts"), "--without-images", "--out", dir], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    const debs = readdirSync(dir).filter((file) => file.endsWith(".deb"));
    for (const deb of debs) console.log(`${deb}: ${(statSync(path.join(dir, deb)).size / MIB).toFixed(1)} MiB (budget 32)`);
    const tree = path.join(dir, "tree");
    const architecture = process.arch === "x64" ? "amd64" : "arm64";
    execFileSync("dpkg-deb", ["-x", path.join(dir, debs.find((file) => file.endsWith(`_${architecture}.deb`)) ?? ""), tree]);
    // As /usr/bin/collector does, which names the installed paths.
    const lib = path.join(tree, "usr/lib/collector");
    const start = `. ${lib}/bin/runtime-flags.sh; exec ${lib}/bin/node $flags ${lib}/app/main.js "$@"`;
    const command = ["/bin/sh", "-c", start, "collector"] as const;
    await benchStart(command);
    await benchMemory(dir, command);
    const checked = spawnSync(
      "systemd-analyze",
      ["security", "--offline=true", "--no-pager", path.join(tree, "lib/systemd/system/collector.service")],
      { encoding: "utf8" },
    );
    console.log(
      `exposure ${/exposure level for \S+ (\S+)/.exec(checked.stdout)?.[1] ?? "not measured: systemd-analyze is missing"} (budget 1.2)`,
    );
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function benchStart(command: readonly [string, ...string[]]): Promise<void> {
  const times: number[] = [];
  for (let i = 0; i < STARTS; i++) {
    const began = performance.now();
    const collector = await startCollector({ command });
    times.push(performance.now() - began);
    await collector.stop();
  }
  times.sort((a, b) => a - b);
  console.log(
    `start to ready ${times[Math.floor(STARTS / 2)]?.toFixed(0)} ms (median of ${STARTS}; ${times[0]?.toFixed(0)} to ${times.at(-1)?.toFixed(0)})`,
  );
}

async function benchMemory(dir: string, command: readonly [string, ...string[]]): Promise<void> {
  const plant = await startModbusPlant({
    port: 0,
    units: new Map([
      [1, { holding: new Map(Array.from({ length: VARIABLES }, (_, n) => [n, (ms: number) => (n + Math.floor(ms)) & 0xffff])) }],
    ]),
  });
  const home = path.join(dir, "home");
  mkdirSync(path.join(home, "variables"), { recursive: true });
  const csv = `name;address\n${Array.from({ length: VARIABLES }, (_, i) => `r${i};holding:${i}`).join("\n")}\n`;
  writeFileSync(path.join(home, "variables", "machine.csv"), csv);
  const collector = await startCollector({ dir: home, command });
  try {
    await settle();
    print("idle", collector);
    const api = apiOf(collector.apiUrl, await collector.adminKey());
    const { collector: uuid } = await collector.status();
    const details = { type: "modbus_tcp", host: "127.0.0.1", port: plant.port };
    const source = await api.post("/v2/data-sources", { name: "machine", collector: uuid, machine: randomUUID(), details });
    await api.patch(`/v2/data-sources/${source.uuid}`, { readout_interval: 1 });
    await settle();
    print(`${VARIABLES} Modbus variables every second`, collector);
    const [read] = (await collector.status()).sources;
    console.log(`  ${read?.counters.values_read} values read, ${read?.status.state.type}`);
  } finally {
    await collector.stop();
    await plant.close();
  }
}

const settle = () => new Promise((done) => setTimeout(done, SETTLE_S * 1000));

function print(what: string, { pid }: CollectorProcess): void {
  const { rssMiB, peakRssMiB } = figuresOf(pid);
  console.log(`memory ${what}: ${rssMiB.toFixed(0)} MiB (peak ${peakRssMiB.toFixed(0)})`);
}
