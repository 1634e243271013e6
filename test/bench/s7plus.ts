import { spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";

/** With the flags that the collector runs with. */
const NODE = path.resolve(import.meta.dirname, "../../bin/collector-node");
const VALUES = 1000;
/** For s7: numbers that lie too far apart to be read as one range, as symbols are each an item of their own. */
const [BLOCKS, STEP] = [4, 64];
const [WARM_UP, SCANS, ROUNDS] = [300, 150, 7];
const BROWSED = [20_000, 50_000] as const;
const [BUDGET_TIMES, BUDGET_SECONDS] = [3, 10];

interface Child {
  /** Its next line; with `words` written to it before. */
  line(words?: string): Promise<string>;
  stop(): void;
}

function start(file: string, ...args: readonly (string | number)[]): Child {
  const child = spawn(NODE, [path.join(import.meta.dirname, file), ...args.map(String)], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async line(words) {
      if (words !== undefined) child.stdin.write(`${words}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error(`${file} ${args.join(" ")} has ended`);
      return value;
    },
    stop: () => void child.kill(),
  };
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

interface Scanned {
  readonly cpuUsPerValue: number;
  readonly scansPerSecond: number;
  readonly requests: number;
}

/** 1,000 numbers a scan with both drivers in turns, each reader and each simulated CPU a process; then all symbols of large programs. */
export async function benchS7Plus(): Promise<void> {
  const servers = [start("s7plus-server.ts", "s7", VALUES, BLOCKS, STEP), start("s7plus-server.ts", "s7plus", VALUES)];
  const ports = await Promise.all(servers.map((server) => server.line()));
  const readers = [
    start("s7plus-reader.ts", "s7", ports[0] ?? 0, VALUES, BLOCKS, STEP),
    start("s7plus-reader.ts", "s7plus", ports[1] ?? 0, VALUES),
  ];
  const measure = async (scans: number): Promise<readonly Scanned[]> => {
    const measured: Scanned[] = [];
    for (const reader of readers) measured.push(JSON.parse(await reader.line(`${scans}`)) as Scanned);
    return measured;
  };
  await measure(WARM_UP);
  const rounds: (readonly Scanned[])[] = [];
  for (let i = 0; i < ROUNDS; i++) rounds.push(await measure(SCANS));
  for (const child of [...readers, ...servers]) child.stop();
  const all = (who: number, field: keyof Scanned) => rounds.map((round) => round[who]?.[field] ?? Number.NaN);
  const times = median(rounds.map(([s7, s7plus]) => (s7plus?.cpuUsPerValue ?? Number.NaN) / (s7?.cpuUsPerValue ?? Number.NaN)));
  const words = (who: number) =>
    `${median(all(who, "cpuUsPerValue")).toFixed(2)} µs a value, ${median(all(who, "scansPerSecond")).toFixed(0)} scans/s with ${all(who, "requests")[0]} requests`;
  console.log(`s7plus: ${VALUES} numbers a scan from our simulators; medians of ${ROUNDS} rounds in turns, each reader a process`);
  console.log(`  CPU of s7plus: ${words(1)}`);
  console.log(`  CPU of s7 (scattered, PDU 480): ${words(0)}: s7plus takes ${times.toFixed(2)} times (budget ${BUDGET_TIMES})`);
  for (const count of BROWSED) await browse(count);
}

async function browse(count: number): Promise<void> {
  const server = start("s7plus-server.ts", "s7plus", count);
  const reader = start("s7plus-reader.ts", "s7plus", await server.line(), count);
  const found = JSON.parse(await reader.line("browse")) as Record<"seconds" | "cpuSeconds" | "mostMiB" | "moreMiB", number>;
  for (const child of [reader, server]) child.stop();
  const budget = count === BROWSED[0] ? ` (budget ${BUDGET_SECONDS} s)` : "";
  console.log(
    `  browse of ${count} symbols: ${found.seconds.toFixed(1)} s${budget}, ${found.cpuSeconds.toFixed(1)} s of CPU, ` +
      `${found.mostMiB.toFixed(0)} MiB resident at most, ${found.moreMiB.toFixed(0)} more than before`,
  );
}
