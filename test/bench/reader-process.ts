import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";

const ROOT = path.resolve(import.meta.dirname, "../..");
/** With the flags that the collector runs with. */
const NODE = path.join(ROOT, "bin/collector-node");

/** Of one process that reads, for a scan. */
export interface Measured {
  readonly cpuUs: number;
  readonly perSecond: number;
}

export interface Reader<About> {
  measure(scans: number): Promise<Measured & About>;
  stop(): void;
}

export const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** Starts a device of a bench; it prints its port, or a list of ports, when it is ready. */
export async function startDevice(script: string, ...args: readonly (string | number)[]): Promise<readonly [ChildProcess, number]> {
  const child = spawn(NODE, [path.join(import.meta.dirname, script), ...args.map(String)], { stdio: ["ignore", "pipe", "inherit"] });
  const line = await new Promise<Buffer>((ready, failed) => {
    child.stdout.once("data", ready);
    child.once("exit", (code) => failed(new Error(`${script} ended with ${code}`)));
  });
  return [child, Number([JSON.parse(line.toString())].flat()[0])];
}

/** Starts a script that ends in `serveScans`. */
export function startReader<About>(script: string, ...args: readonly (string | number)[]): Reader<About> {
  const child = spawn(NODE, [path.join(import.meta.dirname, script), ...args.map(String)], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async measure(scans) {
      child.stdin.write(`${scans}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error(`${script} ${args.join(" ")} has ended`);
      return JSON.parse(value) as Measured & About;
    },
    stop: () => void child.stdin.end(),
  };
}
