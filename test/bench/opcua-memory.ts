import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { bundle } from "../../build.ts";
import { startOpcuaSimulator } from "../../drivers/opcua/simulator.ts";
import { apiOf } from "../support/api.ts";
import { startCollector } from "../support/collector-process.ts";
import { freePort } from "../support/free-port.ts";
import { childrenOf, pssMiBOf } from "../support/process-figures.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const VARIABLES = 2000;
const SETTLE_MS = 15_000;

/** What OPC UA costs a bundled collector in memory: read, and read and hosted. The machine that it reads is in this process. */
export async function benchOpcuaMemory(): Promise<void> {
  const { arch } = process;
  if (arch !== "x64" && arch !== "arm64") return;
  const dir = mkdtempSync(path.join(os.tmpdir(), "bench-opcua-"));
  const app = path.join(dir, "app");
  await bundle({ out: app, arch, packageDir: (name) => path.join(ROOT, "node_modules", name) });
  const simulator = await startOpcuaSimulator({ bulk: VARIABLES });
  mkdirSync(path.join(dir, "variables"));
  const rows = Array.from({ length: VARIABLES }, (_, i) => `v${i},"ns=${simulator.plantIndex};s=Bulk.${i}"`);
  writeFileSync(path.join(dir, "variables/mill.csv"), `name,address\n${rows.join("\n")}\n`);
  const collector = await startCollector({ dir, command: [path.join(ROOT, "bin/collector-node"), path.join(app, "main.js")] });
  const pssMiB = async (): Promise<string> => {
    await new Promise((done) => setTimeout(done, SETTLE_MS));
    return [collector.pid, ...childrenOf(collector.pid)].reduce((sum, pid) => sum + pssMiBOf(pid), 0).toFixed(0);
  };
  try {
    const idle = await pssMiB();
    const api = apiOf(collector.apiUrl, await collector.adminKey());
    const { collector: uuid } = await collector.status();
    const details = simulator.details("127.0.0.1", simulator.port);
    const source = await api.post("/v2/data-sources", { name: "mill", collector: uuid, machine: randomUUID(), details });
    await api.patch(`/v2/data-sources/${source.uuid}`, { readout_interval: 1 });
    const reading = await pssMiB();
    const server = { type: "opcua", port: await freePort(), security_modes: ["None"], security_policies: ["None"], anonymous: true };
    await api.post("/v2/data-sinks", { name: "server", collector: uuid, details: server });
    const hosting = await pssMiB();
    const { sources, sinks } = await collector.status();
    console.log(
      `memory of the bundled collector, PSS: ${idle} MiB idle, ${reading} MiB with ${VARIABLES} OPC UA variables read every second (budget 190), ${hosting} MiB with these hosted too ` +
        `(source ${sources[0]?.status.state.type}, sink ${sinks[0]?.state})`,
    );
  } finally {
    await collector.stop();
    await simulator.close();
    rmSync(dir, { recursive: true, force: true });
  }
}
