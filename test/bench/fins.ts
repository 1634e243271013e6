import { LAYOUTS, type LayoutName } from "./fins-places.ts";
import { type Measured, median, type Reader, startDevice, startReader } from "./reader-process.ts";

const WORDS = 1000;
const SCANS = { warmUp: 1000, measured: 300, theirsWarmUp: 50, theirs: 20 } as const;
const ROUNDS = 5;

interface Asked {
  readonly requests: number;
}

async function compare(transport: "tcp" | "udp", layout: LayoutName, port: number, modbusPort: number): Promise<void> {
  const start = <About>(who: string, at: number): Reader<About> => startReader<About>("fins-reader.ts", who, at, transport, layout);
  const ours = start<Asked & { readonly mostOfFewest: number }>("fins", port);
  const theirs = start<Asked>("omron-fins", port);
  const modbus = start<Asked>("modbus_tcp", modbusPort);
  try {
    const { requests, mostOfFewest } = await ours.measure(SCANS.warmUp);
    const { requests: theirRequests } = await theirs.measure(SCANS.theirsWarmUp);
    await modbus.measure(SCANS.warmUp);
    const rounds: { readonly ours: Measured; readonly theirs: Measured; readonly modbus: Measured }[] = [];
    for (let i = 0; i < ROUNDS; i++)
      rounds.push({
        ours: await ours.measure(SCANS.measured),
        theirs: await theirs.measure(SCANS.theirs),
        modbus: await modbus.measure(SCANS.measured),
      });
    const perValue = (who: "ours" | "theirs" | "modbus") =>
      `${((median(rounds.map((round) => round[who].cpuUs)) * 1000) / WORDS).toFixed(0)} ns`;
    const ratio = (who: "theirs" | "modbus") => median(rounds.map((round) => round.ours.cpuUs / round[who].cpuUs)).toFixed(2);
    console.log(
      `  ${transport} ${layout}: ${requests} requests, at most ${mostOfFewest.toFixed(2)} times the fewest (budget 1.05); ` +
        `CPU per value ${perValue("ours")}, modbus_tcp ${perValue("modbus")}: ${ratio("modbus")} times${layout === "blocks" ? " (budget 1.5)" : ""}; ` +
        `omron-fins ${perValue("theirs")} with ${theirRequests} requests: ${ratio("theirs")} times`,
    );
  } finally {
    for (const reader of [ours, theirs, modbus]) reader.stop();
  }
}

/** The driver beside our Modbus driver that reads 1,000 adjacent registers, and beside omron-fins, in turns. */
export async function benchFins(): Promise<void> {
  const [simulator, port] = await startDevice("fins-simulator.ts");
  const [device, modbusPort] = await startDevice("devices.ts", 1, WORDS);
  try {
    console.log(`fins: ${WORDS} words of our simulator; medians of ${ROUNDS} rounds in turns, each reader a process`);
    for (const transport of ["tcp", "udp"] as const) for (const layout of LAYOUTS) await compare(transport, layout, port, modbusPort);
  } finally {
    for (const child of [simulator, device]) child.kill();
  }
}
