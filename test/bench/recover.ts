import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { encodeReadout, layoutKey } from "../../src/buffer/codec.ts";
import { openBuffer } from "../../src/buffer/open.ts";
import { asideFiles } from "../../src/buffer/recover.ts";
import { plainLayout } from "../../src/buffer/testing/readouts.ts";
import { figuresOf } from "../support/process-figures.ts";
import { startRefusingBroker } from "../support/refusing-broker.ts";
import { rootPagesOf } from "../support/root-pages.ts";

const BIN = resolve(import.meta.dirname, "../../bin");
const SINK = "7e0d3c5a-0000-4000-8000-00000000000a";
const PAGE_BYTES = 4096;

interface Backlog {
  readonly name: string;
  readonly variables: number;
  readonly readouts: number;
}

const BACKLOGS: readonly Backlog[] = [
  { name: "small readouts", variables: 20, readouts: 100_000 },
  { name: "readouts of 1,000", variables: 1000, readouts: 8400 },
  { name: "four times as many", variables: 1000, readouts: 33_600 },
  { name: "readouts of 100,000", variables: 100_000, readouts: 84 },
];

/** Recovers a large file whose account is gone, as the service does: time, memory, what it says, and whether the numbers meet. */
export async function benchRecover(): Promise<void> {
  for (const backlog of BACKLOGS) await recovery(backlog);
}

async function recovery(backlog: Backlog): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "bench-recover-"));
  const file = join(folder, "buffer.db");
  const values = fill(file, backlog);
  const MiB = statSync(file).size / 2 ** 20;
  damage(file);
  let arrived = 0;
  const broker = await startRefusingBroker(
    5,
    () => undefined,
    ({ payload }) => {
      const { readouts } = JSON.parse(payload) as { readonly readouts: readonly { readonly values: object }[] };
      for (const readout of readouts) arrived += Object.keys(readout.values).length;
    },
  );
  const host = spawn(join(BIN, "collector-node"), [join(import.meta.dirname, "recover-host.ts"), file, SINK, String(broker.port)], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  try {
    const state = follow(host);
    while (state.alarms.length === 0) await delay(50);
    await delay(1000);
    const idle = figuresOf(host.pid ?? 0);
    const config = join(folder, "collector.yaml");
    writeFileSync(config, `state_dir: ${folder}\n`);
    const [aside] = asideFiles(file);
    const startedMs = performance.now();
    execFileSync(join(BIN, "collector"), ["buffer", "recover", aside?.name ?? "", "--config", config]);
    const verbMs = performance.now() - startedMs;
    const saidMs: number[] = [];
    let told = state.alarms.length;
    while (asideFiles(file).every(({ state: is }) => is !== "recovered")) {
      await delay(50);
      for (; told < state.alarms.length; told++) saidMs.push(performance.now() - startedMs);
    }
    const recoveredMs = performance.now() - startedMs;
    const recoveredMiB = figuresOf(host.pid ?? 0).peakRssMiB - idle.rssMiB;
    while (state.pending !== 0 || arrived < values) await delay(50);
    await delay(500);
    const { peakRssMiB, cpuMs } = figuresOf(host.pid ?? 0);
    console.log(`${backlog.name}: ${values} values in ${MiB.toFixed(1)} MiB; the verb took ${verbMs.toFixed(0)} ms`);
    console.log(
      `  recovered after ${(recoveredMs / 1000).toFixed(1)} s, delivered after ${((performance.now() - startedMs) / 1000).toFixed(1)} s`,
    );
    console.log(
      `  CPU ${((cpuMs - idle.cpuMs) / 1000).toFixed(1)} s; at most ${recoveredMiB.toFixed(0)} MiB, in the end ${(peakRssMiB - idle.rssMiB).toFixed(0)} MiB above ${idle.rssMiB.toFixed(0)} MiB`,
    );
    console.log(
      `  ledger ${JSON.stringify(state.ledger)}, arrived ${arrived}; said after ${saidMs.map((ms) => (ms / 1000).toFixed(0)).join(", ")} s:`,
    );
    for (const alarm of state.alarms) console.log(`    ${alarm}`);
  } finally {
    host.kill("SIGKILL");
    await once(host, "exit");
    await broker.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function follow(host: ChildProcess) {
  const state = { alarms: [] as string[], ledger: undefined as unknown, pending: -1 };
  host.on("message", (message: { readonly alarm?: string; readonly ledger?: { readonly pending: number } }) => {
    if (message.alarm !== undefined) state.alarms.push(message.alarm);
    if (!message.ledger) return;
    state.ledger = message.ledger;
    state.pending = message.ledger.pending;
  });
  return state;
}

/** A backlog that nobody has fetched; returns its values. */
function fill(file: string, { variables, readouts }: Backlog): number {
  const layout = plainLayout(variables, { scalar: "uint32" });
  const key = layoutKey(layout);
  const buffer = openBuffer(file, { maxBytes: 2 ** 30, maxAgeMs: 86_400_000, onAlarm: ({ text }) => console.error(text) });
  buffer.setSinks([{ id: SINK, takesExploration: false }]);
  const step = Math.max(1, Math.round(50_000 / variables));
  const beganMs = Date.now() - readouts * 100;
  for (let n = 0; n < readouts; n += step) {
    const batches = Array.from({ length: Math.min(step, readouts - n) }, (_, i) => {
      const time = beganMs + (n + i) * 100;
      const readings = layout.variables.map((_variable, place) => ({
        quality: "good" as const,
        value: ((n + i) * 2654435761 + place * 40_503) % 2 ** 32,
      }));
      const readout = { time, spanMs: 1, clockSynced: true, readings };
      return { seq: n + i + 1, layoutKey: key, time, ...encodeReadout(layout, readout) };
    });
    buffer.commit({ run: "bench", layouts: [{ key, layout }], batches, acknowledgements: [] });
  }
  buffer.close();
  return variables * readouts;
}

/** Both places of the account are gone, and so is what a start could read around. */
function damage(file: string): void {
  const roots = rootPagesOf(file);
  const fd = openSync(file, "r+");
  for (const [table, page] of roots)
    if (["meta", "account"].includes(table)) writeSync(fd, Buffer.alloc(PAGE_BYTES, 0x11), 0, PAGE_BYTES, (page - 1) * PAGE_BYTES);
  closeSync(fd);
}
