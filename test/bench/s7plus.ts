import { type Measured, median, startDevice, startReader } from "./reader-process.ts";

const VALUES = 1000;
const SCANS = { warmUp: 300, measured: 150 } as const;
const ROUNDS = 7;
const BROWSED = [20_000, 50_000] as const;
const BUDGET = { times: 3, seconds: 10 } as const;

/** 1,000 numbers a scan with s7plus and with s7 in turns, each reader and each CPU a process; then all symbols of large programs. */
export async function benchS7Plus(): Promise<void> {
  const [cpu, port] = await startDevice("s7plus-simulator.ts", "s7plus", VALUES);
  const [other, otherPort] = await startDevice("s7plus-simulator.ts", "s7", VALUES);
  const ours = startReader<{ readonly requests: number }>("s7plus-reader.ts", "s7plus", port, VALUES);
  const s7 = startReader<{ readonly requests: number }>("s7plus-reader.ts", "s7", otherPort, VALUES);
  try {
    const [{ requests }, { requests: jobs }] = [await ours.measure(SCANS.warmUp), await s7.measure(SCANS.warmUp)];
    const rounds: { readonly ours: Measured; readonly s7: Measured }[] = [];
    for (let i = 0; i < ROUNDS; i++) rounds.push({ ours: await ours.measure(SCANS.measured), s7: await s7.measure(SCANS.measured) });
    const words = (who: "ours" | "s7") =>
      `${((median(rounds.map((round) => round[who].cpuUs)) * 1000) / VALUES).toFixed(0)} ns, ${median(rounds.map((round) => round[who].perSecond)).toFixed(0)} scans/s`;
    const times = median(rounds.map((round) => round.ours.cpuUs / round.s7.cpuUs)).toFixed(2);
    console.log(`s7plus: ${VALUES} numbers a scan from our simulators; medians of ${ROUNDS} rounds in turns, each reader a process`);
    console.log(`  CPU per value: ${words("ours")} with ${requests} requests`);
    console.log(`  s7, scattered, messages of 480 bytes: ${words("s7")} with ${jobs} jobs: ${times} times (budget ${BUDGET.times})`);
  } finally {
    for (const reader of [ours, s7]) reader.stop();
    for (const child of [cpu, other]) child.kill();
  }
  for (const count of BROWSED) await browse(count);
}

async function browse(count: number): Promise<void> {
  const [cpu, port] = await startDevice("s7plus-simulator.ts", "s7plus", count);
  const browser = startReader<{ readonly mostMiB: number; readonly moreMiB: number }>("s7plus-reader.ts", "browse", port, count);
  try {
    const { cpuUs, perSecond, mostMiB, moreMiB } = await browser.measure(1);
    const budget = count === BROWSED[0] ? ` (budget ${BUDGET.seconds} s)` : "";
    console.log(
      `  browse of ${count} symbols: ${(1 / perSecond).toFixed(1)} s${budget}, ${(cpuUs / 1e6).toFixed(1)} s of CPU, ` +
        `${mostMiB.toFixed(0)} MiB resident at most, ${moreMiB.toFixed(0)} more than before`,
    );
  } finally {
    browser.stop();
    cpu.kill();
  }
}
