import { readFileSync } from "node:fs";

/** Linux counts CPU time in ticks of 10 ms. */
const TICK_MS = 10;

export interface ProcessFigures {
  /** User and system time so far. */
  readonly cpuMs: number;
  readonly rssMiB: number;
  readonly peakRssMiB: number;
}

/** Figures of a running process with all its threads, from /proc. */
export function figuresOf(pid: number): ProcessFigures {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const mib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0) / 1024;
  // proc(5): utime is field 14, stime field 15, counted from 1 with pid and comm.
  return { cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS, rssMiB: mib("VmRSS"), peakRssMiB: mib("VmHWM") };
}

/** Its part of what is resident, MiB: a page that several processes share counts by their number. The kernel walks all pages for it. */
export const pssMiBOf = (pid: number): number =>
  Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0) / 1024;

/** Time that one thread of a process has had a processor so far; the first thread has the number of the process. */
export const threadCpuMs = (pid: number, thread = pid): number =>
  Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ", 1)[0]) / 1e6;

/** The processes that this one has started and that still run. */
export const childrenOf = (pid: number): readonly number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
