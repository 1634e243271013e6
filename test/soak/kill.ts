import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { randomOf } from "../lab/powerloss/crashes.ts";
import { startAckProxy } from "../support/ack-proxy.ts";
import { type Publish, startRefusingBroker } from "../support/refusing-broker.ts";
import { Account } from "./kill-account.ts";
import { type FaultCounts, type FaultKind, MachineFaults } from "./kill-faults.ts";
import { createWeather } from "./kill-plan.ts";

export interface KillOptions {
  readonly rounds: number;
  readonly seed: number;
  /** Of the machine, beside the broker's. */
  readonly faults: readonly FaultKind[];
}

export interface KillResult extends FaultCounts {
  readonly kills: number;
  /** Values reported as committed. */
  readonly committed: number;
  /** Values that the broker took, each counted once; such as came unstored, because the disk took nothing, apart. */
  readonly received: number;
  readonly unstored: number;
  /** Reported as committed, and neither with the broker nor counted as dropped. */
  readonly lost: number;
  /** Values that the broker took again. */
  readonly duplicates: number;
  /** Readouts whose stamp was corrected, that came again with another stamp, and whose stamp is called right and is not. */
  readonly corrected: number;
  readonly restamped: number;
  readonly misstamped: number;
  /** Acknowledgements that the collector never got, and connections that were reset. */
  readonly acknowledgementsDropped: number;
  readonly resets: number;
  /** Publishes that the broker refused. */
  readonly refusals: number;
  /** Looks at the ledger while it ran and after each kill, and such as were not exact. */
  readonly ledgers: number;
  readonly inexact: number;
  /** Lives of the account; more than one: it was lost. */
  readonly epochs: number;
  /** What the ledger says at the end, in values; accepted = delivered + dropped, and delivered = received, or it is wrong. */
  readonly accepted: number;
  readonly delivered: number;
  readonly dropped: number;
  /** Of what was dropped: what was in damaged pages. */
  readonly damaged: number;
  /** Of `unstored`, what the ledger knows. */
  readonly deliveredUnstored: number;
  /** But for those that the faults are expected to cause. */
  readonly alarms: readonly string[];
}

/**
 * The promise: nothing is lost, nothing is dropped but what was in damaged pages, the ledger is exact at every look, and what comes again comes
 * with the stamps it had.
 */
export function killsHeld(result: KillResult): boolean {
  const { lost, inexact, alarms, accepted, delivered, dropped, damaged, received, restamped, misstamped, epochs, pagesDamaged } = result;
  if (lost + inexact + alarms.length + restamped + misstamped > 0 || epochs !== 1) return false;
  if (accepted !== delivered + dropped || dropped !== damaged) return false;
  // What was in a damaged page may have been received without an acknowledgement.
  return pagesDamaged > 0 ? delivered <= received && received <= accepted : delivered === received && dropped === 0;
}

const START_TIMEOUT_MS = 60_000;
const DRAIN_TIMEOUT_MS = 120_000;
/** After its first commit a life lasts so long at most. */
const LIFE_MS = 700;
/** Until all is well in the last life. */
const CLEAR_AFTER_MS = 1000;

/**
 * Kills a process with the whole pipeline again and again (SIGKILL), while its broker refuses what it likes, acknowledgements get lost, and its
 * machine fails in the asked ways; then the last life delivers the rest, all goes well, and both ends are compared.
 */
export async function soakKill({ rounds, seed, faults }: KillOptions, onProgress: (done: number) => void = () => {}): Promise<KillResult> {
  const folder = mkdtempSync(join(tmpdir(), "collector-kill-"));
  const file = join(folder, "buffer.db");
  const random = randomOf(seed);
  const weather = createWeather(randomOf(seed + 1));
  const machine = new MachineFaults(faults, folder, file, randomOf(seed + 2));
  const account = new Account(faults);
  let refusals = 0;
  const refuse = (publish: Publish) => {
    const refusal = weather.refuse(publish);
    if (refusal) refusals++;
    return refusal;
  };
  const broker = await startRefusingBroker(5, refuse, (publish) => account.received(publish));
  const proxy = await startAckProxy(broker.port, () => weather.ack());
  let child: ChildProcess | undefined;
  try {
    for (let round = 1; round <= rounds + 1; round++) {
      const events = join(folder, `events-${round}`);
      writeFileSync(events, "");
      const isLast = round > rounds;
      // Numbers of one life never meet those of another, whatever was appended and not committed.
      const first = round * 1_000_000 + 1;
      const life = [file, events, String(first), `run-${round}`, String(proxy.port), isLast ? "drain" : "append"];
      const leastMs = machine.begin();
      child = spawn(process.execPath, [join(import.meta.dirname, "kill-child.ts"), ...life], { stdio: "inherit", env: machine.env });
      const exited = new Promise((done) => child?.once("exit", done));
      if (isLast) {
        await wait(CLEAR_AFTER_MS);
        weather.clear();
        machine.clear();
        await Promise.race([exited, wait(DRAIN_TIMEOUT_MS, undefined, { ref: false })]);
      } else {
        await until(() => /^c /m.test(readFileSync(events, "utf8")), START_TIMEOUT_MS, `round ${round} has committed nothing`);
        machine.goOn(leastMs);
        await wait(leastMs + random() * LIFE_MS);
        child.kill("SIGKILL");
        await exited;
      }
      machine.end();
      account.life(first, readFileSync(events, "utf8"));
      rmSync(events);
      // Some find the damage with the log of the life before beside it, some after a clean look.
      if (!isLast && random() < 0.3) machine.damage();
      account.file(file);
      if (!isLast) machine.damage();
      onProgress(round);
    }
    const around = { refusals, acknowledgementsDropped: proxy.dropped(), resets: proxy.resets(), ...machine.counts };
    return { kills: rounds, ...around, ...account.result() };
  } finally {
    child?.kill("SIGKILL");
    machine.close();
    await proxy.stop();
    await broker.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function until(condition: () => boolean, timeoutMs: number, otherwise: string): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(otherwise);
    await wait(20);
  }
}
