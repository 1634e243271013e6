import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { openBuffer } from "../../src/buffer/open.ts";
import { ledgerFaults } from "../../src/buffer/testing/ledger.ts";
import { randomOf } from "../lab/powerloss/crashes.ts";

export interface KillResult {
  readonly kills: number;
  /** Readouts reported as committed. */
  readonly committed: number;
  /** Readouts that reached the sink, each counted once. */
  readonly delivered: number;
  /** Reported as committed and never delivered. */
  readonly lost: number;
  readonly duplicates: number;
  /** Delivered again after one kill, counted at the kill of the process that delivered them last. */
  readonly mostDuplicatesOfOneKill: number;
  /** Bound of that: readouts that may be delivered and not yet acknowledged. */
  readonly window: number;
  /** Out of order within live, or within backlog. */
  readonly disordered: number;
  /** Looks at the ledger while it ran, and such as were not exact. */
  readonly ledgers: number;
  readonly inexact: number;
  /** What the ledger says at the end, in values. */
  readonly accepted: number;
  /** What the sink has, in values: the same, or the ledger is wrong. */
  readonly received: number;
  readonly alarms: readonly string[];
}

const VALUES = 3;
const WINDOW = 200;
const START_TIMEOUT_MS = 30_000;
const DRAIN_TIMEOUT_MS = 120_000;

/** Kills a process that appends and acknowledges again and again (SIGKILL), lets the last one deliver all, and compares both ends. */
export async function soakKill(
  { rounds, seed }: { readonly rounds: number; readonly seed: number },
  onProgress: (done: number) => void = () => {},
): Promise<KillResult> {
  const folder = mkdtempSync(join(tmpdir(), "collector-kill-"));
  const random = randomOf(seed);
  const file = join(folder, "buffer.db");
  const seen = createAccount();
  let child: ChildProcess | undefined;
  try {
    for (let round = 1; round <= rounds + 1; round++) {
      const events = join(folder, `events-${round}`);
      writeFileSync(events, "");
      const task = round <= rounds ? "append" : "drain";
      // Numbers of one life never meet those of another, whatever was appended and not committed.
      const first = round * 1_000_000 + 1;
      const life = [file, events, String(first), `run-${round}`, String(VALUES), String(WINDOW), task];
      child = spawn(process.execPath, [join(import.meta.dirname, "kill-child.ts"), ...life], { stdio: "inherit" });
      const exited = new Promise((done) => child?.once("exit", done));
      await until(() => statSync(events).size > 0, START_TIMEOUT_MS, `round ${round} has not started`);
      if (task === "append") {
        await wait(random() * 120);
        child.kill("SIGKILL");
        await exited;
      } else await Promise.race([exited, wait(DRAIN_TIMEOUT_MS, undefined, { ref: false })]);
      seen.life(first, readFileSync(events, "utf8"));
      rmSync(events);
      onProgress(round);
    }
    const buffer = openBuffer(file, { maxBytes: 2 ** 30, maxAgeMs: 1e12, onAlarm: (message) => seen.alarms.push(message) });
    const [ledger] = buffer.ledger().sinks;
    const faults = ledgerFaults(buffer, file, () => false);
    buffer.close();
    return { kills: rounds, window: WINDOW, accepted: ledger?.accepted ?? 0, ...seen.result(faults.length) };
  } finally {
    child?.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

function createAccount() {
  const committed = new Set<number>();
  /** By number: in which life it was delivered last. */
  const delivered = new Map<number, number>();
  /** By life: what was delivered again that it had delivered. */
  const again = new Map<number, number>();
  const alarms: string[] = [];
  let disordered = 0;
  let ledgers = 0;
  let inexact = 0;
  return {
    alarms,
    life(first: number, events: string): void {
      let next = first;
      const last = { live: 0, backlog: 0 };
      for (const line of events.split("\n").slice(0, -1)) {
        const [what, a = "", b = "", c = ""] = line.split(" ");
        if (what === "c") for (; next <= Number(a); next++) committed.add(next);
        else if (what === "d") {
          const number = Number(a);
          const before = delivered.get(number);
          if (before !== undefined) again.set(before, (again.get(before) ?? 0) + 1);
          delivered.set(number, first);
          const lane = b === "live" ? "live" : "backlog";
          if (number <= last[lane]) disordered++;
          last[lane] = number;
        } else if (what === "l") {
          ledgers++;
          if (Number(a) !== Number(b) + Number(c)) inexact++;
        } else if (what === "!") alarms.push(line.slice(2));
      }
    },
    result: (faults: number) => ({
      committed: committed.size,
      delivered: delivered.size,
      lost: [...committed].filter((number) => !delivered.has(number)).length,
      duplicates: [...again.values()].reduce((sum, n) => sum + n, 0),
      mostDuplicatesOfOneKill: Math.max(0, ...again.values()),
      disordered,
      ledgers,
      inexact: inexact + faults,
      received: delivered.size * VALUES,
      alarms,
    }),
  };
}

async function until(condition: () => boolean, timeoutMs: number, otherwise: string): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(otherwise);
    await wait(10);
  }
}
