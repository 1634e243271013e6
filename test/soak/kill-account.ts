import { openBuffer } from "../../src/buffer/open.ts";
import { ledgerFaults } from "../../src/buffer/testing/ledger.ts";
import type { Publish } from "../support/refusing-broker.ts";
import { type FaultKind, monotonicMs } from "./kill-faults.ts";
import { VALUES } from "./kill-plan.ts";

/** What the process may say of the faults that it is given. */
const EXPECTED: Readonly<Record<FaultKind, RegExp>> = {
  disk: /takes no values|takes values again|are not stored, and counted as such now/,
  clock: /^$/,
  pages: /is damaged .*( from a new one|wait in memory meanwhile)$/,
};
/** Stamps that are called right are so by this: steps below a second are not corrected. */
const RIGHT_WITHIN_MS = 1200;
/** The name of messages with values that the disk never took. */
const UNSTORED = /^.{8}u-/;
export const BOUNDS = { maxBytes: 2 ** 30, maxAgeMs: 3_600_000, keepRemovedMs: 1e12 };

interface Message {
  readonly id: string;
  readonly readouts: readonly {
    readonly ts: string;
    readonly span_ms: number;
    readonly clock: string;
    readonly values: Readonly<Record<string, number>>;
  }[];
}

/** What both ends have seen. */
export class Account {
  readonly #expected: readonly RegExp[];
  /** Epoch ms at which the clock that nobody sets was 0. */
  readonly #origin = Date.now() - monotonicMs();
  /** Numbers of readouts. */
  readonly #committed = new Set<number>();
  /** How often, by number times VALUES plus the place of the value. */
  readonly #received = new Map<number, number>();
  /** By number: time and state of the clock as they came first. */
  readonly #stamps = new Map<number, string>();
  readonly #alarms: string[] = [];
  #unstored = 0;
  #restamped = 0;
  #misstamped = 0;
  #corrected = 0;
  #ledgers = 0;
  #inexact = 0;
  #epochs = new Set<string>();
  #last = { accepted: 0, delivered: 0, dropped: 0, damaged: 0, deliveredUnstored: 0 };

  constructor(faults: readonly FaultKind[]) {
    this.#expected = faults.map((kind) => EXPECTED[kind]);
  }

  received({ payload }: Publish): void {
    const { id, readouts } = JSON.parse(payload) as Message;
    for (const { ts, span_ms, clock, values } of readouts) {
      for (const [name, number] of Object.entries(values)) {
        const key = number * VALUES + Number(name.slice(1));
        const times = this.#received.get(key) ?? 0;
        if (times === 0 && UNSTORED.test(id)) this.#unstored++;
        this.#received.set(key, times + 1);
      }
      const [number] = Object.values(values);
      if (number !== undefined) this.#stamp(number, ts, clock, span_ms);
    }
  }

  /** `trueMs`: when it was read by the clock that nobody sets, which a readout has in the place of its span. */
  #stamp(number: number, ts: string, clock: string, trueMs: number): void {
    const stamp = `${ts} ${clock}`;
    const before = this.#stamps.get(number);
    this.#stamps.set(number, before ?? stamp);
    if (before !== undefined && before !== stamp) this.#restamped++;
    if (before !== undefined) return;
    if (clock === "corrected") this.#corrected++;
    if (clock !== "unsynchronised" && Math.abs(Date.parse(ts) - this.#origin - trueMs) > RIGHT_WITHIN_MS) this.#misstamped++;
  }

  /** The events of one life. */
  life(first: number, events: string): void {
    let next = first;
    for (const line of events.split("\n").slice(0, -1)) {
      const [what, ...numbers] = line.split(" ");
      const [a = 0, delivered = 0, pending = 0, dropped = 0] = numbers.map(Number);
      if (what === "c") for (; next <= a; next++) this.#committed.add(next);
      else if (what === "r") next = Math.max(next, a + 1);
      else if (what === "l") this.#look(a === delivered + pending + dropped);
      else if (what === "!") this.#alarm(line.slice(2));
    }
  }

  /** The file as a life has left it. */
  file(file: string): void {
    const buffer = openBuffer(file, { ...BOUNDS, onAlarm: (message) => this.#alarm(message) });
    const { epoch, sinks } = buffer.ledger();
    const [ledger] = sinks;
    this.#epochs.add(epoch);
    this.#look(ledgerFaults(buffer, file, () => false).length === 0);
    buffer.close();
    const dropped = Object.values(ledger?.dropped ?? {}).reduce((sum, n) => sum + n, 0);
    this.#last = {
      accepted: ledger?.accepted ?? 0,
      delivered: ledger?.delivered ?? 0,
      dropped,
      damaged: ledger?.dropped.damaged ?? 0,
      deliveredUnstored: ledger?.deliveredUnstored ?? 0,
    };
  }

  result() {
    const missing = [...this.#committed].reduce(
      (sum, number) =>
        sum + Array.from({ length: VALUES }, (_, place) => number * VALUES + place).filter((key) => !this.#received.has(key)).length,
      0,
    );
    return {
      committed: this.#committed.size * VALUES,
      received: this.#received.size - this.#unstored,
      unstored: this.#unstored,
      lost: Math.max(0, missing - this.#last.dropped),
      duplicates: [...this.#received.values()].reduce((sum, times) => sum + times - 1, 0),
      corrected: this.#corrected,
      restamped: this.#restamped,
      misstamped: this.#misstamped,
      ledgers: this.#ledgers,
      inexact: this.#inexact,
      epochs: this.#epochs.size,
      ...this.#last,
      alarms: this.#alarms,
    };
  }

  #alarm(message: string): void {
    if (!this.#expected.some((expected) => expected.test(message))) this.#alarms.push(message);
  }

  #look(isExact: boolean): void {
    this.#ledgers++;
    if (!isExact) this.#inexact++;
  }
}
