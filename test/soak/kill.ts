import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { randomOf } from "../lab/powerloss/crashes.ts";
import { figuresOf } from "../support/process-figures.ts";
import { Account, type SinkResult } from "./kill-account.ts";
import { type FaultCounts, MachineFaults, type MachinePlan } from "./kill-faults.ts";
import { Network, type NetworkCounts } from "./kill-network.ts";
import { type FaultKind, LIFE_NUMBERS, type Life, SINKS } from "./kill-plan.ts";
import { type SnapshotCounts, Snapshots } from "./kill-snapshot.ts";

export interface KillOptions {
  /** At least; up to twice as many where one of the faults has not been met. */
  readonly rounds: number;
  readonly seed: number;
  /** In each life some of them, by the seed. */
  readonly faults: readonly FaultKind[];
  /** Keeps the folder with the buffer, and says where it is. */
  readonly onKept?: (folder: string) => void;
}

export interface KillResult extends FaultCounts, NetworkCounts, SnapshotCounts {
  readonly kills: number;
  /** Lives that were ended in order. */
  readonly stops: number;
  /** Lives with wide readouts. */
  readonly wideLives: number;
  /** Times that a sink was removed from the configuration. */
  readonly removals: number;
  /** Faults that were asked for and did not happen. */
  readonly unmet: readonly FaultKind[];
  /** Values that were reported as committed, and are not in `takenAway`. */
  readonly committed: number;
  /** Values that were committed after a copy of the state folder was made, and taken out of it by the copy. */
  readonly takenAway: number;
  /** Readouts whose stamp was corrected, that came again with another stamp, and whose stamp is called right and is not. */
  readonly corrected: number;
  readonly restamped: number;
  /** Such as came again with another stamp, and are of a life before the state folder was put back: what it had noted of them is gone. */
  readonly restampedAfterRestore: number;
  readonly misstamped: number;
  /** Looks at the ledger while it ran and after each life, and such as were not exact. */
  readonly ledgers: number;
  readonly inexact: number;
  /** Lives of the account; more than one: it was lost. */
  readonly epochs: number;
  /** Values that were read and not stored, by the account; those that a process that was stopped had left; and those of them that it lacks. */
  readonly rejected: number;
  readonly unstoredAtEnd: number;
  readonly uncounted: number;
  /** The most that a process took above what it took at its first commit. */
  readonly aboveIdleMiB: number;
  /** By sink. */
  readonly sinks: readonly SinkResult[];
  /** But for those that the faults are expected to cause. */
  readonly alarms: readonly string[];
  /** The first readouts with wrong stamps. */
  readonly examples: readonly string[];
}

/** With the flags that the service has. */
const NODE = resolve(import.meta.dirname, "../../bin/collector-node");
/** Of what a process may take above its idle memory. */
const MAX_ABOVE_IDLE_MIB = 60;
const START_TIMEOUT_MS = 60_000;
/** So long at most a life waits for so many messages to be sent. */
const START_DELIVERY_MS = 2500;
const MET_ATTEMPTS = 10;
const STOP_TIMEOUT_MS = 30_000;
const DRAIN_TIMEOUT_MS = 180_000;
/** After its first commit a life lasts so long at most; one over a slow link. */
const LIFE_MS = 700;
const SLOW_LIFE_MS = 2500;
/** Until all is well in the last life. */
const CLEAR_AFTER_MS = 1000;
/** If a fault has not happened there are up to so many times as many lives. */
const MOST_ROUNDS = 2;
/** Of a fault in a life, where it is asked for. */
const CHANCE = 0.6;

type Counts = FaultCounts & NetworkCounts & SnapshotCounts & { readonly [name in "stops" | "wideLives" | "removals"]: number };
/** The count that says that a fault has happened. */
const COUNTED_AS: Readonly<Record<FaultKind, keyof Counts>> = {
  refusals: "refusals",
  "149": "tooLarge",
  acknowledgements: "acknowledgementsDropped",
  connect: "resets",
  link: "linkChanges",
  away: "outages",
  "removed-sink": "removals",
  memory: "wideLives",
  stop: "stops",
  snapshot: "restores",
  full: "fullDisks",
  disk: "diskFaults",
  clock: "clockSteps",
  pages: "pagesDamaged",
};

/**
 * The promise: nothing is lost and nothing is dropped but what was in damaged pages; the ledger of each sink is exact at every look, and at the
 * end what its receiver has; what was not stored is counted; what comes again comes with the stamps it had. Of a state folder that was put back
 * only what is `takenAway` is missing.
 */
export function killsHeld(result: KillResult): boolean {
  const { inexact, alarms, restamped, misstamped, epochs, pagesDamaged, uncounted, aboveIdleMiB } = result;
  if (inexact + alarms.length + restamped + misstamped + uncounted > 0 || epochs !== 1 || aboveIdleMiB > MAX_ABOVE_IDLE_MIB) return false;
  return result.sinks.every(({ lost, accepted, delivered, dropped, damaged, received }) => {
    if (lost > 0 || accepted !== delivered + dropped || dropped !== damaged) return false;
    // What was in a damaged page may have been received without an acknowledgement.
    return pagesDamaged > 0 ? delivered <= received && received <= accepted : delivered === received && dropped === 0;
  });
}

/**
 * Ends a process with the whole pipeline again and again (SIGKILL), while its broker, its platform, the ways to them and its machine fail in
 * the asked ways; then the last life delivers the rest, all goes well, and both ends are compared.
 */
export async function soakKill(options: KillOptions, onProgress: (done: number) => void = () => {}): Promise<KillResult> {
  const folder = mkdtempSync(join(tmpdir(), "collector-kill-"));
  const soak = new KillSoak(options, folder);
  try {
    return await soak.run(onProgress);
  } finally {
    await soak.stop();
    if (options.onKept) options.onKept(folder);
    else rmSync(folder, { recursive: true, force: true });
  }
}

class KillSoak {
  readonly #options: KillOptions;
  readonly #folder: string;
  readonly #file: string;
  readonly #random: () => number;
  readonly #network: Network;
  readonly #machine: MachineFaults;
  readonly #account: Account;
  readonly #snapshots: Snapshots;
  readonly #counts = { kills: 0, stops: 0, wideLives: 0, removals: 0, aboveIdleMiB: 0 };
  #active: ReadonlySet<FaultKind> = new Set();
  #child: ChildProcess | undefined;

  constructor(options: KillOptions, folder: string) {
    const { seed, faults } = options;
    this.#options = options;
    this.#folder = folder;
    this.#file = join(folder, "state", "buffer.db");
    mkdirSync(join(folder, "state"));
    this.#random = randomOf(seed);
    this.#network = new Network(randomOf(seed + 1));
    this.#machine = new MachineFaults(faults, folder, this.#file, randomOf(seed + 2));
    this.#account = new Account(faults);
    this.#snapshots = new Snapshots(folder, this.#file, this.#account);
  }

  async run(onProgress: (done: number) => void): Promise<KillResult> {
    const { rounds, faults } = this.#options;
    await this.#network.start(this.#account, faults.includes("link"));
    let round = 0;
    while (round < rounds || (round < MOST_ROUNDS * rounds && this.#unmet().length > 0)) {
      await this.#round(++round, false);
      onProgress(round);
    }
    await this.#round(++round, true);
    return { ...this.#counts, ...this.#around(), unmet: this.#unmet(), ...this.#account.result() };
  }

  #around(): FaultCounts & NetworkCounts & SnapshotCounts {
    return { ...this.#network.counts, ...this.#snapshots.counts, ...this.#machine.counts };
  }

  /** Faults that were asked for and have not happened. */
  #unmet(): readonly FaultKind[] {
    const counts = { ...this.#counts, ...this.#around() };
    return this.#options.faults.filter((kind) => counts[COUNTED_AS[kind]] === 0);
  }

  async stop(): Promise<void> {
    this.#child?.kill("SIGKILL");
    this.#machine.close();
    await this.#network.stop();
  }

  async #round(round: number, isLast: boolean): Promise<void> {
    // Numbers of one life never meet those of another, whatever was appended and not committed.
    const first = round * LIFE_NUMBERS + 1;
    const events = join(this.#folder, `events-${round}`);
    writeFileSync(events, "");
    const unmet = new Set(this.#unmet());
    this.#active = new Set(this.#options.faults.filter((kind) => this.#random() < CHANCE || unmet.has(kind)));
    const plan = this.#machine.begin(this.#active);
    // If the disk stays full nobody takes the values either, or they would be handed out.
    this.#network.begin(this.#active, plan.isFull && this.#active.has("away"));
    const life = this.#lifeOf(round, isLast, events);
    this.#account.begin(first, life.hasWide);
    if (life.hasWide) this.#counts.wideLives++;
    const child = spawn(NODE, [join(import.meta.dirname, "kill-child.ts"), JSON.stringify(life)], {
      stdio: "inherit",
      env: this.#machine.env,
    });
    this.#child = child;
    const exited = new Promise<void>((done) => child.once("exit", () => done()));
    if (isLast) await this.#drain(exited);
    else await this.#live(child, exited, life, plan);
    this.#machine.end();
    await this.#network.settle();
    this.#account.life(first, readFileSync(events, "utf8"));
    rmSync(events);
    // Some find the damage with the log of the life before beside it, some after a clean look.
    if (!isLast && this.#random() < 0.3) this.#machine.damage();
    if (this.#active.has("snapshot") && !isLast) this.#copyOrRestore(life);
    this.#account.file(this.#file);
    this.#machine.repaired();
    if (!isLast) this.#machine.damage();
  }

  #lifeOf(round: number, isLast: boolean, events: string): Life {
    const isSlow = this.#active.has("link");
    const removals = this.#active.has("removed-sink") && !isLast ? this.#removals(isSlow ? SLOW_LIFE_MS : LIFE_MS) : [];
    this.#counts.removals += removals.length;
    return {
      file: this.#file,
      events,
      run: `run-${round}`,
      first: round * LIFE_NUMBERS + 1,
      brokerPort: this.#network.brokerPort,
      platform: this.#network.platform,
      task: isLast ? "drain" : "append",
      publishTimeoutMs: isLast ? 10_000 : isSlow ? 3000 : 400,
      hasWide: this.#active.has("memory"),
      removals,
    };
  }

  #removals(withinMs: number): Life["removals"] {
    return SINKS.flatMap((_, sink) => {
      if (this.#random() < 0.4) return [];
      // Some lives begin without it, and some end so.
      const fromMs = this.#random() < 0.3 ? 0 : 300 + Math.round(this.#random() * withinMs);
      return [{ sink, fromMs, toMs: fromMs + Math.round(this.#random() * withinMs) }];
    });
  }

  async #live(child: ChildProcess, exited: Promise<void>, life: Life, plan: MachinePlan): Promise<void> {
    const hasCommitted = () => /^c /m.test(readFileSync(life.events, "utf8"));
    await until(hasCommitted, START_TIMEOUT_MS, `${life.run} has committed nothing`);
    // On a busy machine a delivery begins late, and where nobody is there it does not.
    const { attempts } = this.#network;
    await until(() => this.#network.attempts > attempts + MET_ATTEMPTS, START_DELIVERY_MS);
    const idleMiB = figuresOf(child.pid ?? 0).rssMiB;
    this.#machine.goOn(plan);
    const longMs = this.#active.has("link") ? SLOW_LIFE_MS : LIFE_MS;
    const lastsMs = plan.leastMs + this.#random() * longMs;
    const copiedAfterMs = this.#active.has("snapshot") && this.#random() < 0.4 ? this.#random() * lastsMs : lastsMs;
    await wait(copiedAfterMs);
    if (copiedAfterMs < lastsMs) {
      child.kill("SIGSTOP");
      await until(() => isStopped(child.pid ?? 0), STOP_TIMEOUT_MS, `${life.run} does not stop for a copy`);
      this.#snapshots.take({ ...life, isRunning: true });
      child.kill("SIGCONT");
      await wait(lastsMs - copiedAfterMs);
    }
    const { peakRssMiB } = figuresOf(child.pid ?? 0);
    this.#counts.aboveIdleMiB = Math.max(this.#counts.aboveIdleMiB, Math.round(peakRssMiB - idleMiB));
    const isEnded = this.#active.has("stop") && (this.#counts.stops === 0 || this.#random() < 0.5);
    if (isEnded) {
      this.#counts.stops++;
      child.kill("SIGTERM");
      const hasEnded = exited.then(() => true);
      if (await Promise.race([hasEnded, wait(STOP_TIMEOUT_MS, false, { ref: false })])) return;
      throw new Error(`${life.run} was stopped, and has not ended within ${STOP_TIMEOUT_MS} ms`);
    }
    this.#counts.kills++;
    child.kill("SIGKILL");
    await exited;
  }

  async #drain(exited: Promise<void>): Promise<void> {
    await wait(CLEAR_AFTER_MS);
    this.#network.clear();
    this.#machine.clear();
    await Promise.race([exited, wait(DRAIN_TIMEOUT_MS, undefined, { ref: false })]);
    if (this.#child?.exitCode === null) this.#child.kill("SIGKILL");
    await exited;
  }

  #copyOrRestore(life: Life): void {
    const { snapshots, restores } = this.#snapshots.counts;
    // One that was put back is put back again, or taken again.
    const chance = this.#random();
    if (snapshots === 0 || chance < 0.25) this.#snapshots.take({ ...life, isRunning: false });
    else if (restores === 0 || chance > 0.7) this.#snapshots.restore();
  }
}

/** proc(5): a thread within a system call goes on to its end, whatever was sent to its process. */
function isStopped(pid: number): boolean {
  const tasks = `/proc/${pid}/task`;
  try {
    return readdirSync(tasks).every((task) => /\) [Tt]/.test(readFileSync(join(tasks, task, "stat"), "utf8")));
  } catch {
    // One of them has just ended.
    return false;
  }
}

/** Throws `otherwise` where the time is up; without it that is as good. */
async function until(condition: () => boolean, timeoutMs: number, otherwise?: string): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > endMs && otherwise === undefined) return;
    if (performance.now() > endMs) throw new Error(otherwise);
    await wait(20);
  }
}
