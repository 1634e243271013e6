import { execFileSync, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { figuresOf, type ProcessFigures, pssMiBOf } from "../support/process-figures.ts";

/** Choices of a person for a bench; undefined: the default of the bench. */
export interface BenchOptions {
  isMeant(name: string): boolean;
  readonly rounds: number | undefined;
  readonly seconds: number | undefined;
  /** Shares of the CPU too, by perf. */
  readonly perf: boolean;
}

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const [low = Number.NaN, high = Number.NaN] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return (low + high) / 2;
};

/** Median, and the least and the most where there are several. */
export const spread = (values: readonly number[], digits: number): string =>
  values.length < 2
    ? median(values).toFixed(digits)
    : `${median(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)} to ${Math.max(...values).toFixed(digits)})`;

export interface Stretch {
  readonly cpuMs: number;
  readonly elapsedMs: number;
  readonly figures: ProcessFigures;
  readonly pssMiB: number;
}

/** CPU and memory of a process over so many seconds; with perf its shares are printed. */
export async function stretchOf(pid: number, seconds: number, perf: boolean): Promise<Stretch> {
  const file = path.join(os.tmpdir(), `collector-bench-${pid}.perf`);
  const recording = perf
    ? spawn("perf", ["record", "-q", "-F", "499", "-o", file, "-p", String(pid), "--", "sleep", String(seconds)], { stdio: "ignore" })
    : undefined;
  const recorded = recording && new Promise<void>((done) => recording.once("exit", () => done()).once("error", () => done()));
  const [before, began] = [figuresOf(pid), performance.now()];
  await new Promise((done) => setTimeout(done, seconds * 1000));
  const [figures, elapsedMs] = [figuresOf(pid), performance.now() - began];
  await recorded;
  if (perf) printShares(file);
  return { cpuMs: figures.cpuMs - before.cpuMs, elapsedMs, figures, pssMiB: pssMiBOf(pid) };
}

function printShares(file: string): void {
  try {
    const report = execFileSync("perf", ["report", "-i", file, "--stdio", "-q", "--percent-limit", "1", "--sort", "comm,dso"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    console.log(report.trimEnd());
  } catch {
    console.log("  shares not measured; they take perf (Debian: linux-perf) and kernel.perf_event_paranoid of at most 1, or root");
  }
  rmSync(file, { force: true });
}
