import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { openBuffer } from "../../src/buffer/open.ts";
import { ledgerFaults } from "../../src/buffer/testing/ledger.ts";
import { randomOf } from "../lab/powerloss/crashes.ts";
import { startAckProxy } from "../support/ack-proxy.ts";
import { type Publish, startRefusingBroker } from "../support/refusing-broker.ts";
import { createWeather, VALUES } from "./kill-plan.ts";

export interface KillResult {
  readonly kills: number;
  /** Values reported as committed. */
  readonly committed: number;
  /** Values that the broker took, each counted once. */
  readonly received: number;
  /** Reported as committed, and neither with the broker nor counted as dropped. */
  readonly lost: number;
  /** Values that the broker took again. */
  readonly duplicates: number;
  /** Acknowledgements that the collector never got, and connections that were reset. */
  readonly acknowledgementsDropped: number;
  readonly resets: number;
  /** Publishes that the broker refused. */
  readonly refusals: number;
  /** Looks at the ledger while it ran and after each kill, and such as were not exact. */
  readonly ledgers: number;
  readonly inexact: number;
  /** What the ledger says at the end, in values; accepted = delivered + dropped, and delivered = received, or it is wrong. */
  readonly accepted: number;
  readonly delivered: number;
  readonly dropped: number;
  readonly alarms: readonly string[];
}

/** The promise: nothing is lost, nothing is dropped of what passes in the end, and the ledger is exact at every look. */
export const killsHeld = ({ lost, inexact, alarms, accepted, delivered, dropped, received }: KillResult): boolean =>
  lost + inexact + alarms.length + dropped === 0 && accepted === delivered && delivered === received;

const START_TIMEOUT_MS = 30_000;
const DRAIN_TIMEOUT_MS = 120_000;
/** After its first commit a life lasts so long at most. */
const LIFE_MS = 700;
/** Until all is well in the last life. */
const CLEAR_AFTER_MS = 1000;
const BOUNDS = { maxBytes: 2 ** 30, maxAgeMs: 1e12 };

/**
 * Kills a process with the whole pipeline again and again (SIGKILL), while its broker refuses what it likes and acknowledgements get lost;
 * then the last life delivers the rest, all goes well, and both ends are compared.
 */
export async function soakKill(
  { rounds, seed }: { readonly rounds: number; readonly seed: number },
  onProgress: (done: number) => void = () => {},
): Promise<KillResult> {
  const folder = mkdtempSync(join(tmpdir(), "collector-kill-"));
  const random = randomOf(seed);
  const weather = createWeather(randomOf(seed + 1));
  const account = new Account();
  let refusals = 0;
  const refuse = (publish: Publish) => {
    const refusal = weather.refuse(publish);
    if (refusal) refusals++;
    return refusal;
  };
  const broker = await startRefusingBroker(5, refuse, (publish) => account.received(publish));
  const proxy = await startAckProxy(broker.port, () => weather.ack());
  const file = join(folder, "buffer.db");
  let child: ChildProcess | undefined;
  try {
    for (let round = 1; round <= rounds + 1; round++) {
      const events = join(folder, `events-${round}`);
      writeFileSync(events, "");
      const isLast = round > rounds;
      // Numbers of one life never meet those of another, whatever was appended and not committed.
      const first = round * 1_000_000 + 1;
      const life = [file, events, String(first), `run-${round}`, String(proxy.port), isLast ? "drain" : "append"];
      child = spawn(process.execPath, [join(import.meta.dirname, "kill-child.ts"), ...life], { stdio: "inherit" });
      const exited = new Promise((done) => child?.once("exit", done));
      if (isLast) {
        await wait(CLEAR_AFTER_MS);
        weather.clear();
        await Promise.race([exited, wait(DRAIN_TIMEOUT_MS, undefined, { ref: false })]);
      } else {
        await until(() => /^c /m.test(readFileSync(events, "utf8")), START_TIMEOUT_MS, `round ${round} has committed nothing`);
        await wait(random() * LIFE_MS);
        child.kill("SIGKILL");
        await exited;
      }
      account.life(first, readFileSync(events, "utf8"));
      rmSync(events);
      account.file(file);
      onProgress(round);
    }
    return { kills: rounds, refusals, acknowledgementsDropped: proxy.dropped(), resets: proxy.resets(), ...account.result() };
  } finally {
    child?.kill("SIGKILL");
    await proxy.stop();
    await broker.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What both ends have seen. */
class Account {
  /** Numbers of readouts. */
  readonly #committed = new Set<number>();
  /** How often, by number times VALUES plus the place of the value. */
  readonly #received = new Map<number, number>();
  readonly #alarms: string[] = [];
  #ledgers = 0;
  #inexact = 0;
  #last = { accepted: 0, delivered: 0, dropped: 0 };

  received({ payload }: Publish): void {
    const { readouts } = JSON.parse(payload) as { readonly readouts: readonly { readonly values: Readonly<Record<string, number>> }[] };
    for (const { values } of readouts)
      for (const [name, number] of Object.entries(values)) {
        const key = number * VALUES + Number(name.slice(1));
        this.#received.set(key, (this.#received.get(key) ?? 0) + 1);
      }
  }

  /** The events of one life. */
  life(first: number, events: string): void {
    let next = first;
    for (const line of events.split("\n").slice(0, -1)) {
      const [what, ...numbers] = line.split(" ");
      const [a = 0, delivered = 0, pending = 0, dropped = 0] = numbers.map(Number);
      if (what === "c") for (; next <= a; next++) this.#committed.add(next);
      else if (what === "l") this.#look(a === delivered + pending + dropped);
      else if (what === "!") this.#alarms.push(line.slice(2));
    }
  }

  /** The file as a life has left it. */
  file(file: string): void {
    const buffer = openBuffer(file, { ...BOUNDS, keepRemovedMs: 1e12, onAlarm: (message) => this.#alarms.push(message) });
    const [ledger] = buffer.ledger().sinks;
    this.#look(ledgerFaults(buffer, file, () => false).length === 0);
    buffer.close();
    const dropped = Object.values(ledger?.dropped ?? {}).reduce((sum, n) => sum + n, 0);
    this.#last = { accepted: ledger?.accepted ?? 0, delivered: ledger?.delivered ?? 0, dropped };
  }

  result() {
    const missing = [...this.#committed].reduce(
      (sum, number) =>
        sum + Array.from({ length: VALUES }, (_, place) => number * VALUES + place).filter((key) => !this.#received.has(key)).length,
      0,
    );
    return {
      committed: this.#committed.size * VALUES,
      received: this.#received.size,
      lost: Math.max(0, missing - this.#last.dropped),
      duplicates: [...this.#received.values()].reduce((sum, times) => sum + times - 1, 0),
      ledgers: this.#ledgers,
      inexact: this.#inexact,
      ...this.#last,
      alarms: this.#alarms,
    };
  }

  #look(isExact: boolean): void {
    this.#ledgers++;
    if (!isExact) this.#inexact++;
  }
}

async function until(condition: () => boolean, timeoutMs: number, otherwise: string): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(otherwise);
    await wait(20);
  }
}
