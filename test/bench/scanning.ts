import { createInterface } from "node:readline";

/** One scan after the other, in a process of its own: no reader pays for what another leaves to be collected. */
export interface Scanner {
  scan(): Promise<unknown>;
  /** Of one more scan, to see that it was right; absent: the device's values change. */
  values?(): Promise<readonly unknown[]>;
  /** For the parent. */
  readonly about: object;
}

/** For each line of input, a number of scans, prints a line of JSON. `sum`: of the values, where the scanner has them. */
export async function serveScans({ scan, values, about }: Scanner, sum: number): Promise<never> {
  for await (const line of createInterface({ input: process.stdin })) {
    const scans = Number(line);
    const [cpu, began] = [process.cpuUsage(), performance.now()];
    for (let i = 0; i < scans; i++) await scan();
    const { user, system } = process.cpuUsage(cpu);
    const measured = { cpuUs: (user + system) / scans, perSecond: (scans * 1000) / (performance.now() - began), ...about };
    const read = (await values?.())?.reduce<number>((total, value) => total + (typeof value === "number" ? value : Number.NaN), 0);
    if (read !== undefined && read !== sum) throw new Error(`the sum ${read} was read instead of ${sum}`);
    console.log(JSON.stringify(measured));
  }
  process.exit(0);
}
