import { benchTags, fewestPackets } from "./cip-tags.ts";
import { type Measured, median, type Reader, startDevice, startReader } from "./reader-process.ts";

const SCANS = { warmUp: 2000, measured: 400, theirs: 20 } as const;
const ROUNDS = 9;
const CONNECTION_BYTES = 4002;

/** The driver beside our Modbus driver that reads as many adjacent registers, and beside st-ethernet-ip, in turns. */
export async function benchCip(): Promise<void> {
  const tags = benchTags("read");
  const [simulator, port] = await startDevice("cip-simulator.ts");
  const [device, modbusPort] = await startDevice("devices.ts", 1, tags.length);
  const readers = {
    ours: startReader<{ readonly packets: number }>("cip-reader.ts", "vendor_a", port),
    modbus: startReader("cip-reader.ts", "modbus_tcp", modbusPort),
    theirs: startReader("cip-reader.ts", "st-ethernet-ip", port),
  };
  const { ours, modbus, theirs } = readers;
  try {
    const { packets } = await ours.measure(SCANS.warmUp);
    await modbus.measure(SCANS.warmUp);
    await theirs.measure(SCANS.theirs);
    const rounds: { readonly ours: Measured; readonly modbus: Measured; readonly theirs: Measured }[] = [];
    for (let i = 0; i < ROUNDS; i++)
      rounds.push({
        ours: await ours.measure(SCANS.measured),
        modbus: await modbus.measure(SCANS.measured),
        theirs: await theirs.measure(SCANS.theirs),
      });
    const perValue = (who: keyof typeof readers) =>
      `${((median(rounds.map((round) => round[who].cpuUs)) * 1000) / tags.length).toFixed(0)} ns`;
    const ratio = (who: "modbus" | "theirs") => median(rounds.map((round) => round.ours.cpuUs / round[who].cpuUs)).toFixed(2);
    const fewest = fewestPackets(tags, CONNECTION_BYTES);
    console.log(`cip: ${tags.length} scattered tags of our simulator; medians of ${ROUNDS} rounds in turns, each reader a process`);
    console.log(`  packets for a scan: ${packets}, ${fewest} at least: ${((packets / fewest - 1) * 100).toFixed(0)} % more (budget 5 %)`);
    console.log(
      `  CPU per value: ${perValue("ours")}, modbus_tcp with adjacent registers ${perValue("modbus")}: ${ratio("modbus")} times (budget 3)`,
    );
    console.log(`  st-ethernet-ip: ${perValue("theirs")}: ${ratio("theirs")} times`);
  } finally {
    for (const reader of Object.values(readers) as readonly Reader<unknown>[]) reader.stop();
    for (const child of [simulator, device]) child.kill();
  }
}
