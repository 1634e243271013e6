import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";
import { LAYOUTS, type LayoutName } from "./fins-places.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
/** With the flags that the collector runs with. */
const NODE = path.join(ROOT, "bin/collector-node");
const WORDS = 1000;
const [WARM_UP, SCANS, ROUNDS] = [2000, 400, 7];

interface Measured {
  /** Of the reader's process, for a scan. */
  readonly cpuUs: number;
  readonly perSecond: number;
  readonly requests: number;
  readonly mostOfFewest?: number;
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

async function startServer(script: string, ...args: readonly string[]): Promise<readonly [ChildProcess, number]> {
  const child = spawn(NODE, [path.join(import.meta.dirname, script), ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const line = await new Promise<Buffer>((ready, failed) => {
    child.stdout.once("data", ready);
    child.once("exit", (code) => failed(new Error(`${script} ended with ${code}`)));
  });
  return [child, Number([JSON.parse(line.toString())].flat()[0])];
}

interface Reader {
  measure(scans: number): Promise<Measured>;
  stop(): void;
}

function startReader(...args: readonly (string | number)[]): Reader {
  const child = spawn(NODE, [path.join(import.meta.dirname, "fins-reader.ts"), ...args.map(String)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async measure(scans) {
      child.stdin.write(`${scans}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error(`the process that reads (${args.join(" ")}) has ended`);
      return JSON.parse(value) as Measured;
    },
    stop: () => void child.stdin.end(),
  };
}

const perValue = (cpuUs: number): string => `${((cpuUs * 1000) / WORDS).toFixed(0)} ns`;

async function compare(transport: "tcp" | "udp", layout: LayoutName, port: number, modbusPort: number): Promise<void> {
  const [ours, theirs, modbus] = [
    startReader("fins", port, transport, layout),
    startReader("omron-fins", port, transport, layout),
    startReader("modbus", modbusPort, "tcp", "adjacent"),
  ];
  const { requests, mostOfFewest = Number.NaN } = await ours.measure(WARM_UP);
  const { requests: theirRequests } = await theirs.measure(WARM_UP / 40);
  await modbus.measure(WARM_UP);
  const rounds: { readonly our: Measured; readonly their: Measured; readonly mb: Measured }[] = [];
  for (let i = 0; i < ROUNDS; i++)
    rounds.push({ our: await ours.measure(SCANS), their: await theirs.measure(SCANS / 20), mb: await modbus.measure(SCANS) });
  for (const reader of [ours, theirs, modbus]) reader.stop();
  const cpu = (who: "our" | "their" | "mb") => median(rounds.map((round) => round[who].cpuUs));
  const ratio = (who: "their" | "mb") => median(rounds.map((round) => round.our.cpuUs / round[who].cpuUs)).toFixed(2);
  const budget = layout === "blocks" ? " (budget 1.50)" : "";
  console.log(
    `  ${transport} ${layout}: ${requests} requests, at most ${mostOfFewest.toFixed(2)} times the fewest (budget 1.05); CPU per value ${perValue(cpu("our"))}, ` +
      `modbus_tcp ${perValue(cpu("mb"))}: ${ratio("mb")} times${budget}; omron-fins ${perValue(cpu("their"))} with ${theirRequests} requests: ${ratio("their")} times`,
  );
}

/** The driver beside our Modbus driver that reads 1,000 adjacent registers, and beside omron-fins, in turns. */
export async function benchFins(): Promise<void> {
  const [simulator, port] = await startServer("fins-simulator.ts");
  const [device, modbusPort] = await startServer("devices.ts", "1", String(WORDS));
  try {
    console.log(`fins: ${WORDS} words of a simulator; medians of ${ROUNDS} rounds in turns, each reader a process`);
    for (const transport of ["tcp", "udp"] as const) for (const layout of LAYOUTS) await compare(transport, layout, port, modbusPort);
  } finally {
    simulator.kill();
    device.kill();
  }
}
